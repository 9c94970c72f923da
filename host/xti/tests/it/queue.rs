//! A queue of connect indications: several at a time, answered in another order.

use inhost_socket::ConnectionError;
use inhost_xti::{Error, Indication, Look, Provider, SendFlags, Sequence, State, TransportEndpoint};

use crate::common::{client, here, host, run, server, settle};

/// Callers who wait, and the endpoint that they called.
async fn called(
    host: &inhost_socket::Host,
    callers: usize,
    queue_length: usize,
) -> (TransportEndpoint, Vec<TransportEndpoint>) {
    let far = server(host, 700, queue_length);
    let mut near = Vec::new();
    for _ in 0..callers {
        let caller = client(host);
        caller.connect(here(700)).await.unwrap();
        near.push(caller);
    }
    (far, near)
}

async fn listen_to_all(far: &TransportEndpoint, callers: usize) -> Vec<Indication> {
    let mut all = Vec::new();
    for _ in 0..callers {
        all.push(far.listen().await.unwrap());
    }
    all
}

#[test]
fn indications_are_accepted_in_another_order_and_the_last_on_the_listener_itself() {
    let host = host();
    run(&host, async {
        let (far, near) = called(&host, 4, 5).await;
        let calls = listen_to_all(&far, 4).await;
        assert_eq!((far.state(), far.try_listen()), (Ok(State::Incon), Err(Error::NoData)));
        for (caller, indication) in near.iter().zip(&calls) {
            assert_eq!(caller.addresses().unwrap().local, Some(indication.from));
        }
        assert_eq!(far.accept(&far, calls[0].sequence), Err(Error::IndicationsOutstanding));
        let third = TransportEndpoint::open(&host, Provider::Tcp);
        far.accept(&third, calls[2].sequence).unwrap();
        assert_eq!((far.state(), third.state()), (Ok(State::Incon), Ok(State::Dataxfer)));
        assert_eq!(far.accept(&third, calls[0].sequence), Err(Error::OutState));
        assert_eq!(far.accept(&client(&host), calls[2].sequence), Err(Error::BadSequence));
        far.snddis(Some(calls[3].sequence)).unwrap();
        assert_eq!(far.snddis(None), Err(Error::BadSequence));
        let first = client(&host);
        far.accept(&first, calls[0].sequence).unwrap();
        far.accept(&far, calls[1].sequence).unwrap();
        assert_eq!(far.state(), Ok(State::Dataxfer));
        for (caller, word) in near.iter().zip([b"0", b"1", b"2"]) {
            caller.snd(word, SendFlags::default()).await.unwrap();
        }
        for (endpoint, word) in [(&first, b"0"), (&far, b"1"), (&third, b"2")] {
            let mut place = [0; 4];
            let received = endpoint.rcv(&mut place).await.unwrap();
            assert_eq!(&place[..received.length_bytes], word);
        }
        // The one that was rejected.
        assert_eq!(near[3].event().await, Ok(Look::Disconnect));
        assert_eq!(near[3].rcvdis().unwrap().why, ConnectionError::Reset);
        // An endpoint that had no address has the connection's.
        assert_eq!(third.addresses().unwrap().local, Some(here(700)));
    });
}

#[test]
fn a_caller_who_was_not_listened_to_comes_first() {
    let host = host();
    run(&host, async {
        let (far, _near) = called(&host, 2, 5).await;
        let first = far.listen().await.unwrap();
        assert_eq!(far.look(), Ok(Some(Look::Listen)));
        let onto = TransportEndpoint::open(&host, Provider::Tcp);
        assert_eq!(far.accept(&onto, first.sequence), Err(Error::Look(Look::Listen)));
        assert_eq!(far.accept(&far, first.sequence), Err(Error::Look(Look::Listen)));
        let second = far.listen().await.unwrap();
        far.accept(&onto, first.sequence).unwrap();
        far.accept(&far, second.sequence).unwrap();
    });
}

#[test]
fn a_full_queue_is_said_and_keeps_nobody_from_accepting() {
    let host = host();
    run(&host, async {
        let (far, _near) = called(&host, 1, 1).await;
        let first = far.listen().await.unwrap();
        let late = client(&host);
        late.connect(here(700)).await.unwrap();
        assert_eq!((far.try_listen(), far.look()), (Err(Error::QueueFull), Ok(None)));
        let onto = TransportEndpoint::open(&host, Provider::Tcp);
        far.accept(&onto, first.sequence).unwrap();
        assert_eq!((far.state(), far.look()), (Ok(State::Idle), Ok(Some(Look::Listen))));
        // A call from an endpoint for which a caller waits, and taking its address back, come later.
        assert_eq!(far.connect(here(700)).await, Err(Error::Look(Look::Listen)));
        assert_eq!(far.unbind(), Err(Error::Look(Look::Listen)));
        let second = far.listen().await.unwrap();
        far.snddis(Some(second.sequence)).unwrap();
        far.unbind().unwrap();
    });
}

#[test]
fn a_caller_who_gives_up_is_a_disconnect_of_that_indication() {
    let host = host();
    run(&host, async {
        let (far, near) = called(&host, 3, 3).await;
        let calls = listen_to_all(&far, 2).await;
        near[1].snddis(None).unwrap();
        assert_eq!(far.event().await, Ok(Look::Listen));
        settle(&host).await;
        let look = Error::Look(Look::Disconnect);
        assert_eq!((far.look(), far.try_listen()), (Ok(Some(Look::Disconnect)), Err(look)));
        let onto = TransportEndpoint::open(&host, Provider::Tcp);
        assert_eq!(far.accept(&onto, calls[0].sequence), Err(look));
        assert_eq!(far.snddis(Some(calls[1].sequence)), Err(look));
        let gone = far.rcvdis().unwrap();
        assert_eq!((gone.sequence, gone.why), (Some(calls[1].sequence), ConnectionError::Reset));
        assert_eq!(far.state(), Ok(State::Incon));
        assert_eq!(far.accept(&onto, calls[1].sequence), Err(Error::BadSequence));
        // One that waits with nobody before it is found by the listener that waits.
        let third = far.listen().await.unwrap();
        near[0].snddis(None).unwrap();
        near[2].snddis(None).unwrap();
        settle(&host).await;
        assert_eq!(far.rcvdis().unwrap().sequence, Some(calls[0].sequence));
        assert_eq!(far.rcvdis().unwrap().sequence, Some(third.sequence));
        assert_eq!((far.state(), far.rcvdis()), (Ok(State::Idle), Err(Error::OutState)));
    });
}

#[test]
fn one_that_waits_to_listen_is_woken_by_a_caller_who_gives_up() {
    let host = host();
    run(&host, async {
        let (far, near) = called(&host, 1, 2).await;
        let call = far.listen().await.unwrap();
        let gives_up = async {
            settle(&host).await;
            near[0].snddis(None).unwrap();
        };
        let (waited, ()) = inhost_socket::both(far.listen(), gives_up).await;
        assert_eq!(waited, Err(Error::Look(Look::Disconnect)));
        assert_eq!(far.rcvdis().unwrap().sequence, Some(call.sequence));
    });
}

#[test]
fn the_endpoint_that_takes_a_connection_has_to_fit() {
    let host = host();
    let other_host = crate::common::host();
    run(&host, async {
        let (far, _near) = called(&host, 1, 2).await;
        assert_eq!(far.accept(&far, Sequence(1)), Err(Error::OutState));
        let call = far.listen().await.unwrap();
        let busy = server(&host, 701, 1);
        assert_eq!(far.accept(&busy, call.sequence), Err(Error::ResponderQueueLength));
        let datagrams = TransportEndpoint::open(&host, Provider::Udp);
        assert_eq!(far.accept(&datagrams, call.sequence), Err(Error::ProviderMismatch));
        let foreign = TransportEndpoint::open(&other_host, Provider::Tcp);
        assert_eq!(far.accept(&foreign, call.sequence), Err(Error::ProviderMismatch));
        let closed = TransportEndpoint::open(&host, Provider::Tcp);
        closed.close().unwrap();
        assert_eq!(far.accept(&closed, call.sequence), Err(Error::BadEndpoint));
        assert_eq!(client(&host).listen().await, Err(Error::BadQueueLength));
        far.accept(&far, call.sequence).unwrap();
        assert_eq!(far.listen().await, Err(Error::OutState));
    });
}
