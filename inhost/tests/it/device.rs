//! The program's end of a link, and sockets for every address.
#![cfg(feature = "tokio")]

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_util::{Sink, Stream};
use inhost::Host;
use inhost::device::{self, AnyUdpSocket, Batch, Driver, PacketsFramed, Pool};
use inhost::link::memory;
use inhost::net::Unreachable;
use inhost::stack::{DuplicateDetection, UdpOptions};

use crate::in_time;

#[test]
fn a_sink_holds_one_packet_back_while_the_queue_is_full_and_ends_with_the_host() {
    let mut config = device::Config::default();
    config.queue_packets = 1;
    let (packets, mut driver) = device::packets(config).unwrap();
    let mut framed = PacketsFramed::from(packets.clone());
    let mut context = Context::from_waker(Waker::noop());
    fn sink(framed: &mut PacketsFramed) -> Pin<&mut impl Sink<&'static [u8], Error = io::Error>> {
        Pin::new(framed)
    }
    assert!(matches!(sink(&mut framed).poll_ready(&mut context), Poll::Ready(Ok(()))));
    // Another handle takes the room that was promised.
    assert!(packets.try_send(b"first"));
    sink(&mut framed).start_send(b"second").unwrap();
    assert!(sink(&mut framed).poll_flush(&mut context).is_pending());
    assert!(sink(&mut framed).poll_ready(&mut context).is_pending());
    let (mut pool, mut batch) = (Pool::new(1 << 20), Batch::new());
    for packet in [&b"first"[..], b"second"] {
        assert_eq!(driver.receive(&mut pool, &mut batch).unwrap(), 1);
        assert_eq!(batch.pop().unwrap().bytes(), packet);
        assert!(matches!(sink(&mut framed).poll_flush(&mut context), Poll::Ready(Ok(()))));
    }
    assert!(Pin::new(&mut framed).poll_next(&mut context).is_pending());
    drop(driver);
    assert!(matches!(Pin::new(&mut framed).poll_next(&mut context), Poll::Ready(None)));
    let Poll::Ready(Err(gone)) = sink(&mut framed).poll_ready(&mut context) else {
        panic!("the host is gone")
    };
    assert_eq!(gone.kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn one_socket_takes_datagrams_of_both_families_but_those_to_a_port_of_another() {
    let (guest, host) = guest_and_host();
    let test = async {
        let any = AnyUdpSocket::bind(&host).await?;
        let refused = AnyUdpSocket::bind(&host).await.expect_err("there is one");
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        let mut options = UdpOptions::default();
        options.any_address = true;
        let names = host.udp_with("[::]:53".parse().unwrap(), options).await?;
        let mut place = [0; 64];
        for (ours, theirs) in [("0.0.0.0:0", "203.0.113.9:4000"), ("[::]:0", "[2001:db8::9]:4001")] {
            let asking = guest.udp(ours).await?;
            asking.send_to(b"question", theirs).await?;
            let (length, from, meant) = any.recv_from(&mut place).await?;
            assert_eq!((&place[..length], meant), (&b"question"[..], theirs.parse().unwrap()));
            any.send_from(b"answer", meant, from).await?;
            let (length, from) = asking.recv_from(&mut place).await?;
            assert_eq!((&place[..length], from), (&b"answer"[..], meant));
        }
        let asking = guest.udp("0.0.0.0:0").await?;
        asking.send_to(b"name", "203.0.113.9:53").await?;
        assert_eq!(names.recv(&mut place).await?, 4);
        io::Result::Ok(())
    };
    in_time(test).await.unwrap();
}

/// A guest, and a host that takes every address for it.
fn guest_and_host() -> (Host, Host) {
    let config = memory::Config { doorbell: true, ..memory::Config::default() };
    let (near, far) = memory::pair(&config).unwrap();
    let guest = Host::builder().driver(near, |mut link| {
        // What a socket sends before its address is known to be unique is lost.
        link.duplicate_detection = DuplicateDetection::Off;
        link.with_address("10.0.0.2/24".parse().unwrap())
            .with_gateway([10, 0, 0, 1])
            .with_address("fd00::2/64".parse().unwrap())
            .with_gateway("fd00::1".parse::<std::net::Ipv6Addr>().unwrap())
    });
    (guest.start().unwrap(), Host::builder().any_address(far).start().unwrap())
}

#[tokio::test]
async fn a_datagram_is_refused_in_the_words_of_its_family() {
    let (guest, host) = guest_and_host();
    let test = async {
        let any = host.udp_any().await?;
        for (ours, theirs) in [("0.0.0.0:0", "203.0.113.9:4000"), ("[::]:0", "[2001:db8::9]:4001")] {
            for (why, kind) in [
                (Unreachable::Port, io::ErrorKind::ConnectionRefused),
                (Unreachable::Host, io::ErrorKind::HostUnreachable),
                (Unreachable::Prohibited, io::ErrorKind::HostUnreachable),
            ] {
                let asking = guest.udp(ours).await?;
                asking.connect(theirs).await?;
                asking.send(b"question").await?;
                let (_, from, meant) = any.recv_from(&mut [0; 64]).await?;
                any.refuse(from, meant, why).await?;
                let refused = asking.recv(&mut [0; 64]).await.expect_err("it is refused");
                assert_eq!(refused.kind(), kind, "{why:?} to {theirs}");
            }
        }
        io::Result::Ok(())
    };
    in_time(test).await.unwrap();
}

#[tokio::test]
async fn a_host_without_a_link_for_every_address_says_so_at_once() {
    let host = Host::builder().start().unwrap();
    let refused = host.listen_any().await.expect_err("nobody could call");
    assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    assert!(refused.to_string().contains("Builder::any_address"), "{refused}");
    let refused = host.udp_any().await.map(drop).expect_err("nobody could send");
    assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    let (_guest, host) = guest_and_host();
    host.listen_any().await.unwrap();
}
