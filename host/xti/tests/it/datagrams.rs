//! Datagrams, and what they meet.

use inhost_socket::both;
use inhost_socket::errno::ECONNREFUSED;
use inhost_xti::{Error, Look, Provider, State, TransportEndpoint};

use crate::common::{here, host, run, settle};

#[test]
fn datagrams_go_both_ways_whole_or_in_parts() {
    let host = host();
    run(&host, async {
        let (near, far) =
            (TransportEndpoint::open(&host, Provider::Udp), TransportEndpoint::open(&host, Provider::Udp));
        assert_eq!(near.sndudata(b"?", here(7)).await, Err(Error::OutState));
        let bound = near.bind(Some(here(0)), 9).unwrap();
        assert!(bound.queue_length == 0 && bound.address.port != 0);
        far.bind(Some(here(7)), 0).unwrap();
        let mut place = [0; 8];
        assert_eq!(far.try_rcvudata(&mut place), Err(Error::NoData));
        let (received, sent) = both(far.rcvudata(&mut place), near.sndudata(b"0123456789", here(7))).await;
        sent.unwrap();
        let first = received.unwrap();
        assert_eq!((first.length_bytes, first.from, first.more), (8, bound.address, true));
        assert_eq!(far.look(), Ok(Some(Look::Data)));
        let rest = far.try_rcvudata(&mut place).unwrap();
        assert_eq!((&place[..rest.length_bytes], rest.more), (&b"89"[..], false));
        assert_eq!((far.look(), far.state()), (Ok(None), Ok(State::Idle)));
        // One without a byte is one, too.
        far.try_sndudata(b"", bound.address).unwrap();
        assert_eq!(near.event().await, Ok(Look::Data));
        assert_eq!(near.unbind(), Err(Error::Look(Look::Data)));
        let mut large = vec![0; 70_000];
        assert_eq!(near.rcvudata(&mut large).await.unwrap().length_bytes, 0);
        assert_eq!(near.sndudata(&large, here(7)).await, Err(Error::BadData));
        assert_eq!(near.sndudata(b"?", here(0)).await, Err(Error::BadAddress));
        near.sndudata(&large[..60_000], here(7)).await.unwrap();
        assert_eq!(far.rcvudata(&mut large).await.unwrap().length_bytes, 60_000);
        near.unbind().unwrap();
    });
}

#[test]
fn what_a_datagram_met_has_to_be_received_before_others() {
    let host = host();
    run(&host, async {
        let near = TransportEndpoint::open(&host, Provider::Udp);
        near.bind(Some(here(0)), 0).unwrap();
        assert_eq!(near.rcvuderr(), Err(Error::NoDatagramError));
        near.sndudata(b"anybody?", here(4444)).await.unwrap();
        settle(&host).await;
        let look = Error::Look(Look::DatagramError);
        assert_eq!(
            (near.look(), near.event().await),
            (Ok(Some(Look::DatagramError)), Ok(Look::DatagramError))
        );
        assert_eq!(near.sndudata(b"again", here(4444)).await, Err(look));
        assert_eq!(near.rcvudata(&mut [0; 8]).await.err(), Some(look));
        assert_eq!(near.rcvuderr().unwrap().number, ECONNREFUSED);
        assert_eq!((near.rcvuderr(), near.look()), (Err(Error::NoDatagramError), Ok(None)));
        // One that was not looked at is found by the call.
        near.sndudata(b"again", here(4444)).await.unwrap();
        settle(&host).await;
        assert_eq!(near.rcvuderr().unwrap().number, ECONNREFUSED);
    });
}
