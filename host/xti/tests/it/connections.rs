//! Connections: made, used, released and aborted, over the loopback of one host.

use inhost_base::Duration;
use inhost_socket::errno::{ECONNREFUSED, ECONNRESET};
use inhost_socket::{ConnectionError, both};
use inhost_tcp::KeepAlive;
use inhost_xti::{
    Error, Limit, Look, OptionRequest, OptionStatus, Provider, SendFlags, Service, State, TransportEndpoint,
    TransportOption,
};

use crate::common::{client, connected, here, host, run, server, settle};

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at / 7) as u8).collect()
}

#[test]
fn an_orderly_release_goes_each_way_through_its_states() {
    let host = host();
    run(&host, async {
        let (near, far) = connected(&host).await;
        assert_eq!((near.state(), far.state()), (Ok(State::Dataxfer), Ok(State::Dataxfer)));
        assert_eq!(near.snd(b"all of it", SendFlags::default()).await, Ok(9));
        near.sndrel().unwrap();
        assert_eq!(near.state(), Ok(State::Outrel));
        assert_eq!(near.snd(b"more", SendFlags::default()).await, Err(Error::OutState));
        settle(&host).await;
        // The release stands behind the data.
        assert_eq!(far.look(), Ok(Some(Look::Data)));
        assert_eq!(far.rcvrel(), Err(Error::NoRelease));
        let mut place = [0; 16];
        assert_eq!(far.rcv(&mut place).await.unwrap().length_bytes, 9);
        assert_eq!(far.look(), Ok(Some(Look::OrderlyRelease)));
        assert_eq!(far.rcv(&mut place).await, Err(Error::Look(Look::OrderlyRelease)));
        // XNS 5: the release of the other end keeps nobody from sending, received or not.
        assert_eq!(far.snd(b"answer", SendFlags::default()).await, Ok(6));
        far.rcvrel().unwrap();
        assert_eq!(far.state(), Ok(State::Inrel));
        assert_eq!(far.rcv(&mut place).await, Err(Error::OutState));
        assert_eq!(far.snd(b"!", SendFlags::PUSH).await, Ok(1));
        far.sndrel().unwrap();
        assert_eq!((far.state(), far.addresses().unwrap().remote), (Ok(State::Idle), None));
        let mut text = Vec::new();
        while let Ok(received) = near.rcv(&mut place).await {
            text.extend_from_slice(&place[..received.length_bytes]);
        }
        assert_eq!(text, b"answer!");
        near.rcvrel().unwrap();
        assert_eq!(near.state(), Ok(State::Idle));
        // Both may begin again.
        near.connect(here(700)).await.unwrap();
        assert_eq!(far.listen().await.unwrap().from, near.addresses().unwrap().local.unwrap());
        near.close().unwrap();
        far.close().unwrap();
    });
}

#[test]
fn an_abort_is_a_disconnect_at_the_other_end_and_every_call_says_so() {
    let host = host();
    run(&host, async {
        let (near, far) = connected(&host).await;
        far.snd(b"lost", SendFlags::default()).await.unwrap();
        near.snddis(None).unwrap();
        assert_eq!(near.state(), Ok(State::Idle));
        settle(&host).await;
        let look = Err(Error::Look(Look::Disconnect));
        assert_eq!(far.look(), Ok(Some(Look::Disconnect)));
        assert_eq!(far.snd(b"late", SendFlags::default()).await, look.map(|()| 0));
        assert_eq!(far.rcv(&mut [0; 4]).await.err(), look.err());
        assert_eq!((far.sndrel(), far.rcvrel(), far.snddis(None)), (look, look, look));
        assert_eq!(far.state(), Ok(State::Dataxfer));
        let gone = far.rcvdis().unwrap();
        assert_eq!((gone.why, gone.reason(), gone.sequence), (ConnectionError::Reset, ECONNRESET, None));
        assert_eq!((far.state(), far.look()), (Ok(State::Idle), Ok(None)));
        assert_eq!(far.rcvdis(), Err(Error::OutState));
    });
}

#[test]
fn a_refused_call_is_a_disconnect_to_receive_whether_it_waited_or_not() {
    let host = host();
    run(&host, async {
        let near = client(&host);
        assert_eq!(near.connect(here(9)).await, Err(Error::Look(Look::Disconnect)));
        assert_eq!((near.state(), near.look()), (Ok(State::Outcon), Ok(Some(Look::Disconnect))));
        assert_eq!(near.snddis(None), Err(Error::Look(Look::Disconnect)));
        assert_eq!(near.rcvdis().unwrap().reason(), ECONNREFUSED);
        assert_eq!(near.state(), Ok(State::Idle));

        assert_eq!(near.try_connect(here(9)), Err(Error::NoData));
        assert_eq!(near.rcvdis(), Err(Error::NoDisconnect));
        assert_eq!(near.event().await, Ok(Look::Disconnect));
        assert_eq!(near.try_rcvconnect(), Err(Error::Look(Look::Disconnect)));
        assert_eq!(near.rcvconnect().await, Err(Error::Look(Look::Disconnect)));
        assert_eq!(near.rcvdis().unwrap().why, ConnectionError::Refused);
        assert_eq!(near.state(), Ok(State::Idle));
    });
}

#[test]
fn a_call_that_does_not_wait_is_answered_later_or_taken_back() {
    let host = host();
    run(&host, async {
        let (near, far) = (client(&host), server(&host, 700, 2));
        assert_eq!(near.try_connect(here(700)), Err(Error::NoData));
        assert_eq!((near.state(), near.look()), (Ok(State::Outcon), Ok(None)));
        assert_eq!(near.try_rcvconnect(), Err(Error::NoData));
        assert_eq!(near.try_connect(here(700)), Err(Error::OutState));
        assert_eq!(near.event().await, Ok(Look::Connect));
        assert_eq!(near.rcvconnect().await, Ok(here(700)));
        assert_eq!(near.addresses().unwrap().remote, Some(here(700)));

        let other = client(&host);
        assert_eq!(other.try_connect(here(700)), Err(Error::NoData));
        other.snddis(None).unwrap();
        assert_eq!(other.state(), Ok(State::Idle));
        assert_eq!(far.listen().await.unwrap().from, near.addresses().unwrap().local.unwrap());
    });
}

#[test]
fn a_call_that_waits_changes_the_state_and_outlives_its_future() {
    let host = host();
    run(&host, async {
        let (near, _far) = (client(&host), server(&host, 700, 2));
        let watch = async {
            assert_eq!((near.state(), near.sync()), (Err(Error::StateChanging), Err(Error::StateChanging)));
            assert_eq!(near.unbind(), Err(Error::StateChanging));
            assert_eq!(near.try_connect(here(701)), Err(Error::StateChanging));
        };
        assert_eq!(both(near.connect(here(700)), watch).await.0, Ok(here(700)));
        near.snddis(None).unwrap();
        {
            let mut dropped = std::pin::pin!(near.connect(here(700)));
            let polled = futures_once(dropped.as_mut());
            assert_eq!((polled, near.state()), (None, Err(Error::StateChanging)));
        }
        assert_eq!(near.state(), Ok(State::Outcon));
        assert_eq!(near.rcvconnect().await, Ok(here(700)));
    });
}

/// One step of a future.
fn futures_once<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}

#[test]
fn a_reader_that_sleeps_holds_the_sender_up_and_is_told_of_by_events() {
    let host = host();
    run(&host, async {
        let (near, far) = connected(&host).await;
        near.optmgmt(OptionRequest::Negotiate, &[TransportOption::SendBuffer(64 << 10)]).unwrap();
        let sent_data = pattern(64 << 20);
        let mut sent = 0;
        let flow = loop {
            match near.try_snd(&sent_data[sent..], SendFlags::default()) {
                Ok(count) => sent += count,
                Err(why) => break why,
            }
            settle(&host).await;
        };
        assert_eq!((flow, near.look()), (Error::Flow, Ok(None)));
        let reader = async {
            let (mut place, mut received) = (vec![0; 100_000], Vec::new());
            while received.len() < sent {
                let count = far.rcv(&mut place).await.unwrap().length_bytes;
                received.extend_from_slice(&place[..count]);
            }
            received
        };
        let (event, received) = both(near.event(), reader).await;
        assert_eq!(event, Ok(Look::GoData));
        // The event is over once it was told.
        assert_eq!(near.look(), Ok(None));
        assert!(received == sent_data[..sent]);
        assert_eq!(far.try_rcv(&mut [0; 8]), Err(Error::NoData));
    });
}

#[test]
fn expedited_data_is_marked_and_never_mixed_with_what_follows() {
    let host = host();
    run(&host, async {
        let (near, far) = connected(&host).await;
        near.snd(b"abc", SendFlags::EXPEDITED).await.unwrap();
        settle(&host).await;
        near.snd(b"plain", SendFlags::default()).await.unwrap();
        settle(&host).await;
        assert_eq!(far.look(), Ok(Some(Look::ExpeditedData)));
        let mut place = [0; 16];
        let first = far.rcv(&mut place[..2]).await.unwrap();
        assert_eq!((first.length_bytes, first.expedited, first.more), (2, true, true));
        let second = far.rcv(&mut place).await.unwrap();
        assert_eq!((second.length_bytes, second.expedited, second.more), (1, true, false));
        assert_eq!(far.look(), Ok(Some(Look::Data)));
        let third = far.rcv(&mut place).await.unwrap();
        assert_eq!(
            (&place[..third.length_bytes], third.expedited, third.more),
            (&b"plain"[..], false, false)
        );
    });
}

#[test]
fn more_waits_for_what_follows_and_push_does_not() {
    let host = host();
    run(&host, async {
        let (near, far) = connected(&host).await;
        let mut place = [0; 16];
        let began = host.now();
        near.snd(b"held", SendFlags::MORE).await.unwrap();
        assert_eq!(far.rcv(&mut place).await.unwrap().length_bytes, 4);
        let held = host.now().since(began);
        let began = host.now();
        near.snd(b"gone", SendFlags { more: true, ..SendFlags::PUSH }).await.unwrap();
        assert_eq!(far.rcv(&mut place).await.unwrap().length_bytes, 4);
        let pushed = host.now().since(began);
        assert!(held >= Duration::from_millis(100) && pushed < Duration::from_millis(1), "{held} {pushed}");
    });
}

#[test]
fn options_are_negotiated_told_and_carried_to_connections() {
    let host = host();
    run(&host, async {
        let keep = TransportOption::KeepAlive(Some(KeepAlive::default()));
        let wanted = [TransportOption::NoDelay(true), keep, TransportOption::ReceiveBuffer(300_000)];
        let near = client(&host);
        let default = near.optmgmt(OptionRequest::Default, &wanted).unwrap();
        assert_eq!(default[0], (TransportOption::NoDelay(false), OptionStatus::Success));
        assert_eq!(default[1].0, TransportOption::KeepAlive(None));
        assert_eq!(near.optmgmt(OptionRequest::Check, &wanted).unwrap()[1], (keep, OptionStatus::Success));
        assert_eq!(near.optmgmt(OptionRequest::Current, &wanted), Ok(default));
        let done = near.optmgmt(OptionRequest::Negotiate, &wanted).unwrap();
        assert_eq!(near.optmgmt(OptionRequest::Current, &wanted), Ok(done));
        let far = server(&host, 700, 1);
        near.connect(here(700)).await.unwrap();
        let socket = host.with_stack(|stack, now| {
            let of = stack.instruments().sockets(now).find(|info| info.remote == Some(here(700)));
            of.and_then(|info| stack.typed(info.socket))
        });
        let Some(inhost_stack::AnySocketId::Tcp(socket)) = socket else { panic!("{socket:?}") };
        let options = host.with_stack(|stack, _| stack.instruments().options(socket)).unwrap();
        assert!(!options.tcp.nagle && options.tcp.keep_alive.is_some());
        // On a connection that is there, an option holds from now on.
        near.optmgmt(OptionRequest::Negotiate, &[TransportOption::NoDelay(false)]).unwrap();
        assert!(host.with_stack(|stack, _| stack.instruments().options(socket)).unwrap().tcp.nagle);
        drop(far);

        let datagrams = TransportEndpoint::open(&host, Provider::Udp);
        let managed = datagrams.optmgmt(OptionRequest::Negotiate, &wanted).unwrap();
        let statuses: Vec<OptionStatus> = managed.iter().map(|(_, status)| *status).collect();
        use OptionStatus::{NotSupported, Success};
        assert_eq!(statuses, [NotSupported, NotSupported, Success]);
    });
}

#[test]
fn addresses_are_bound_found_busy_and_taken_back() {
    let host = host();
    run(&host, async {
        let far = server(&host, 700, 3);
        let other = TransportEndpoint::open(&host, Provider::Tcp);
        assert_eq!(other.bind(Some(here(700)), 1), Err(Error::AddressBusy));
        assert_eq!(other.bind(Some(here(700)), 0), Err(Error::AddressBusy));
        let strange = inhost_base::Endpoint::new([10, 9, 9, 9], 1);
        assert_eq!(other.bind(Some(strange), 1), Err(Error::BadAddress));
        assert_eq!(other.state(), Ok(State::Unbnd));
        assert_eq!(far.bind(None, 0), Err(Error::OutState));
        far.unbind().unwrap();
        let bound = other.bind(Some(here(0)), 1).unwrap();
        assert_ne!(bound.address.port, 0);
        assert_eq!(other.addresses().unwrap().local, Some(bound.address));
        far.bind(Some(here(700)), 0).unwrap();
        far.connect(bound.address).await.unwrap();
        assert_eq!(far.addresses().unwrap().local, Some(here(700)));
        assert_eq!(far.connect(here(1)).await, Err(Error::OutState));
        let third = client(&host);
        assert_eq!(third.connect(here(0)).await, Err(Error::BadAddress));
        assert_eq!((third.state(), third.look()), (Ok(State::Idle), Ok(None)));
    });
}

#[test]
fn a_closed_endpoint_is_none_and_each_provider_has_its_own_calls() {
    let host = host();
    run(&host, async {
        let (near, far) = connected(&host).await;
        near.snd(b"the last words", SendFlags::default()).await.unwrap();
        near.close().unwrap();
        assert_eq!(
            (near.close(), near.state(), near.look()),
            (Err(Error::BadEndpoint), Err(Error::BadEndpoint), Err(Error::BadEndpoint))
        );
        assert_eq!(near.bind(None, 0), Err(Error::BadEndpoint));
        assert_eq!(near.snd(b"?", SendFlags::default()).await, Err(Error::BadEndpoint));
        // What was sent before is still delivered.
        let mut place = [0; 32];
        assert_eq!(far.rcv(&mut place).await.unwrap().length_bytes, 14);
        assert_eq!(far.rcv(&mut place).await, Err(Error::Look(Look::OrderlyRelease)));
        assert_eq!(far.sndudata(b"?", here(1)).await, Err(Error::NotSupported));
        assert_eq!(far.rcvuderr(), Err(Error::NotSupported));
        assert_eq!(far.snd(b"", SendFlags::default()).await, Err(Error::BadData));

        let datagrams = TransportEndpoint::open(&host, Provider::Udp);
        datagrams.bind(None, 5).unwrap();
        assert_eq!(datagrams.connect(here(700)).await, Err(Error::NotSupported));
        assert_eq!(datagrams.snd(b"?", SendFlags::default()).await, Err(Error::NotSupported));
        assert_eq!(
            (datagrams.sndrel(), datagrams.rcvdis().err()),
            (Err(Error::NotSupported), Some(Error::NotSupported))
        );
        assert_eq!((far.info().service, far.info().tsdu), (Service::ConnectionsOrderly, Limit::Bytes(0)));
        assert_eq!((datagrams.info().service, datagrams.info().etsdu), (Service::Datagrams, Limit::Invalid));
    });
}

#[test]
fn a_lingering_time_of_zero_makes_the_close_a_reset() {
    let host = host();
    run(&host, async {
        let (near, far) = connected(&host).await;
        near.optmgmt(OptionRequest::Negotiate, &[TransportOption::Linger(Some(Duration::ZERO))]).unwrap();
        drop(near);
        assert_eq!(far.event().await, Ok(Look::Disconnect));
        assert_eq!(far.rcvdis().unwrap().why, ConnectionError::Reset);
    });
}
