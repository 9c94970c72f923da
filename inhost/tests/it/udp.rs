//! UDP sockets: what holds of tokio's on the kernel's loopback holds of ours, in production and in the simulator; and
//! what is ours alone.
#![cfg(all(feature = "sim", feature = "tokio"))]

use std::future::{Future, poll_fn};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::LazyLock;
use std::sync::mpsc;

use inhost::Host;
use inhost::link::memory;
use inhost::local::errno::{EACCES, EDESTADDRREQ, EMSGSIZE, number};
use inhost::net::{Ecn, SendDatagrams, UdpSocket};
use inhost::stack::{SocketOption, UdpOptions};
use inhost_interop::{join, receive};

use crate::in_time;

/// Tests of one implementation, whose sockets are in `net` and whose interests in `ready`. Each is a future that needs
/// no executor of its own.
macro_rules! semantics {
    ($($ready:ident)::+, $($net:ident)::+) => {
        use std::future::poll_fn;
        use std::io::{self, ErrorKind};
        use std::net::SocketAddr;
        use std::task::Poll;

        use $($net)::+::UdpSocket;
        use $($ready)::+::Interest;
        use inhost::local::errno::{EDESTADDRREQ, EMSGSIZE, number};
        use tokio::io::ReadBuf;

        async fn pair() -> io::Result<(UdpSocket, UdpSocket, SocketAddr, SocketAddr)> {
            let (a, b) = (UdpSocket::bind("127.0.0.1:0").await?, UdpSocket::bind("127.0.0.1:0").await?);
            let (at_a, at_b) = (a.local_addr()?, b.local_addr()?);
            assert!(at_a.port() != 0 && at_a.port() != at_b.port());
            Ok((a, b, at_a, at_b))
        }

        pub async fn datagrams_keep_their_ends_and_what_does_not_fit_is_lost() -> io::Result<()> {
            let (a, b, at_a, at_b) = pair().await?;
            let mut place = [0; 100];
            assert_eq!(a.send_to(b"first", at_b).await?, 5);
            assert_eq!(a.send_to(b"", at_b).await?, 0);
            assert_eq!(a.send_to(&[7; 1000], ("127.0.0.1", at_b.port())).await?, 1000);
            assert_eq!(b.recv_from(&mut place).await?, (5, at_a));
            assert_eq!(&place[..5], b"first");
            assert_eq!(b.recv_from(&mut place).await?, (0, at_a));
            assert_eq!(b.recv_from(&mut place).await?, (100, at_a));
            assert_eq!(place, [7; 100]);
            assert_eq!(b.try_recv_from(&mut place).unwrap_err().kind(), ErrorKind::WouldBlock);
            Ok(())
        }

        pub async fn a_connected_socket_hears_its_peer_alone() -> io::Result<()> {
            let (a, b, at_a, at_b) = pair().await?;
            assert_eq!(a.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
            assert_eq!(number(&a.send(b"whereto?").await.unwrap_err()), EDESTADDRREQ);
            a.connect(at_b).await?;
            assert_eq!((a.peer_addr()?, a.local_addr()?), (at_b, at_a));
            let stranger = UdpSocket::bind("127.0.0.1:0").await?;
            stranger.send_to(b"pst", at_a).await?;
            assert_eq!(a.send(b"to b").await?, 4);
            let mut place = [0; 100];
            assert_eq!(b.recv_from(&mut place).await?, (4, at_a));
            b.send_to(b"to a", at_a).await?;
            assert_eq!(a.recv(&mut place).await?, 4);
            assert_eq!(&place[..4], b"to a");
            assert_eq!(a.try_recv(&mut place).unwrap_err().kind(), ErrorKind::WouldBlock);
            // It still sends to others when it is told to, and can be connected anew.
            a.connect(stranger.local_addr()?).await?;
            a.send(b"to you").await?;
            assert_eq!(stranger.recv_from(&mut place).await?, (6, at_a));
            Ok(())
        }

        pub async fn an_unspecified_end_gets_its_address_when_it_is_connected() -> io::Result<()> {
            let a = UdpSocket::bind("0.0.0.0:0").await?;
            let b = UdpSocket::bind("127.0.0.1:0").await?;
            assert!(a.local_addr()?.ip().is_unspecified());
            a.connect(b.local_addr()?).await?;
            assert_eq!(a.local_addr()?.ip().to_string(), "127.0.0.1");
            Ok(())
        }

        pub async fn attempts_do_not_wait_and_readiness_says_when() -> io::Result<()> {
            let (a, b, at_a, at_b) = pair().await?;
            let mut place = [0; 100];
            assert_eq!(b.try_recv(&mut place).unwrap_err().kind(), ErrorKind::WouldBlock);
            let both = Interest::READABLE | Interest::WRITABLE;
            let ready = b.ready(both).await?;
            assert!(ready.is_writable() && !ready.is_readable() && !ready.is_read_closed());
            a.writable().await?;
            assert_eq!(a.try_send_to(b"now", at_b)?, 3);
            b.readable().await?;
            assert!(b.ready(both).await?.is_readable());
            let mut calls = 0;
            let received = b.async_io(Interest::READABLE, || {
                calls += 1;
                if calls == 1 { b.try_peek_from(&mut place) } else { b.try_recv_from(&mut place) }
            });
            assert_eq!(received.await?, (3, at_a));
            assert_eq!(b.try_io(Interest::READABLE, || b.try_recv_from(&mut place))?, (3, at_a));
            let again = b.try_io(Interest::READABLE, || b.try_recv_from(&mut place));
            assert_eq!(again.unwrap_err().kind(), ErrorKind::WouldBlock);
            Ok(())
        }

        pub async fn a_peek_takes_nothing() -> io::Result<()> {
            let (a, b, at_a, at_b) = pair().await?;
            assert_eq!(b.try_peek_sender().unwrap_err().kind(), ErrorKind::WouldBlock);
            a.send_to(b"abcdef", at_b).await?;
            let mut place = [0; 4];
            assert_eq!(b.peek_sender().await?, at_a);
            assert_eq!(b.peek_from(&mut place).await?, (4, at_a));
            assert_eq!(&place, b"abcd");
            assert_eq!((b.peek(&mut place).await?, b.try_peek(&mut place)?), (4, 4));
            assert_eq!((b.try_peek_from(&mut place)?, b.try_peek_sender()?), ((4, at_a), at_a));
            let mut buffer = [0; 10];
            let mut buffer = ReadBuf::new(&mut buffer);
            assert_eq!(poll_fn(|context| b.poll_peek_from(context, &mut buffer)).await?, at_a);
            assert_eq!(buffer.filled(), b"abcdef");
            assert_eq!(b.recv(&mut [0; 10]).await?, 6);
            assert!(b.try_peek(&mut place).is_err());
            Ok(())
        }

        pub async fn buffers_are_filled_from_where_they_are() -> io::Result<()> {
            let (a, b, at_a, at_b) = pair().await?;
            for _ in 0..4 {
                a.send_to(b"xyz", at_b).await?;
            }
            let mut place = [0; 4];
            let mut buffer = ReadBuf::new(&mut place);
            poll_fn(|context| b.poll_recv(context, &mut buffer)).await?;
            assert_eq!(buffer.filled(), b"xyz");
            assert_eq!(poll_fn(|context| b.poll_recv_from(context, &mut buffer)).await?, at_a);
            assert_eq!(buffer.filled(), b"xyzx");
            let mut text = b"begin ".to_vec();
            text.reserve(100);
            assert_eq!(b.recv_buf(&mut text).await?, 3);
            assert_eq!(b.recv_buf_from(&mut text).await?, (3, at_a));
            assert_eq!(text, b"begin xyzxyz");
            assert_eq!(b.try_recv_buf(&mut text).unwrap_err().kind(), ErrorKind::WouldBlock);
            a.send_to(b"!", at_b).await?;
            b.readable().await?;
            assert_eq!(b.try_recv_buf_from(&mut text)?, (1, at_a));
            assert_eq!(text, b"begin xyzxyz!");
            Ok(())
        }

        pub async fn a_port_without_a_socket_refuses() -> io::Result<()> {
            let (a, b, _, at_b) = pair().await?;
            drop(b);
            a.connect(at_b).await?;
            a.send(b"anybody?").await?;
            assert_eq!(a.recv(&mut [0; 10]).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
            assert!(a.take_error()?.is_none());
            // An unconnected socket goes on: what one peer refuses says nothing about others.
            let (a, b, at_a, at_b) = pair().await?;
            let closed = {
                let gone = UdpSocket::bind("127.0.0.1:0").await?;
                gone.local_addr()?
            };
            a.send_to(b"x", closed).await?;
            a.send_to(b"y", at_b).await?;
            assert_eq!(b.recv_from(&mut [0; 10]).await?, (1, at_a));
            b.send_to(b"z", at_a).await?;
            assert_eq!(a.recv_from(&mut [0; 10]).await?, (1, at_b));
            Ok(())
        }

        pub async fn the_longest_datagram_goes_and_a_longer_one_is_refused() -> io::Result<()> {
            let (a, b, at_a, at_b) = pair().await?;
            let longest = vec![9; 65_507];
            assert_eq!(a.send_to(&longest, at_b).await?, 65_507);
            let mut place = vec![0; 70_000];
            assert_eq!(b.recv_from(&mut place).await?, (65_507, at_a));
            assert!(place[..65_507] == longest);
            assert_eq!(number(&a.send_to(&[0; 65_508], at_b).await.unwrap_err()), EMSGSIZE);
            assert_eq!(number(&a.try_send_to(&[0; 65_508], at_b).unwrap_err()), EMSGSIZE);
            Ok(())
        }

        pub async fn an_address_is_bound_once() -> io::Result<()> {
            let (_a, _b, at_a, _) = pair().await?;
            assert_eq!(UdpSocket::bind(at_a).await.unwrap_err().kind(), ErrorKind::AddrInUse);
            let not_ours = UdpSocket::bind("192.0.2.1:0").await;
            assert_eq!(not_ours.unwrap_err().kind(), ErrorKind::AddrNotAvailable);
            let first_that_works = UdpSocket::bind(&["192.0.2.1:0".parse().unwrap(), at_a, local()][..]).await?;
            assert_ne!(first_that_works.local_addr()?.port(), at_a.port());
            Ok(())
        }
        fn local() -> SocketAddr {
            "127.0.0.1:0".parse().unwrap()
        }

        pub async fn options_are_what_they_were_set_to() -> io::Result<()> {
            let (a, ..) = pair().await?;
            assert_eq!((a.broadcast()?, a.ttl()?, a.tos_v4()?), (false, 64, 0));
            a.set_broadcast(true)?;
            a.set_ttl(7)?;
            a.set_tos_v4(0xb8)?;
            assert_eq!((a.broadcast()?, a.ttl()?, a.tos_v4()?), (true, 7, 0xb8));
            assert!(a.set_ttl(0).is_err() && a.set_ttl(256).is_err());
            Ok(())
        }

        pub async fn each_of_many_that_wait_gets_a_datagram() -> io::Result<()> {
            let (a, b, _, at_b) = pair().await?;
            let one = || async {
                let mut place = [0; 1];
                b.recv(&mut place).await.map(|_| place[0])
            };
            let mut waiting: Vec<_> = (0..50).map(|_| Box::pin(one())).collect();
            let mut received = Vec::new();
            let mut next = 0;
            poll_fn(|context| {
                let mut index = 0;
                while index < waiting.len() {
                    match waiting[index].as_mut().poll(context) {
                        Poll::Ready(number) => {
                            received.push(number?);
                            drop(waiting.swap_remove(index));
                        }
                        Poll::Pending => index += 1,
                    }
                }
                while next < 50 && a.try_send_to(&[next], at_b).is_ok() {
                    next += 1;
                }
                if next < 50 {
                    context.waker().wake_by_ref();
                }
                if waiting.is_empty() { Poll::Ready(io::Result::Ok(())) } else { Poll::Pending }
            })
            .await?;
            received.sort_unstable();
            assert_eq!(received, (0..50).collect::<Vec<_>>());
            Ok(())
        }

        pub async fn what_was_sent_before_the_close_arrives() -> io::Result<()> {
            let (a, b, _, at_b) = pair().await?;
            for number in 0..50 {
                a.send_to(&[number; 200], at_b).await?;
            }
            drop(a);
            for number in 0..50 {
                let mut place = [0; 300];
                assert_eq!(b.recv(&mut place).await?, 200);
                assert_eq!(place[..200], [number; 200]);
            }
            Ok(())
        }

        use std::future::Future;
    };
}

mod kernel {
    semantics!(tokio::io, tokio::net);
}
mod ours {
    semantics!(inhost::net, inhost::net);
}

/// The host of all tests that need no other.
static HOST: LazyLock<Host> = LazyLock::new(|| {
    let host = Host::builder().start().unwrap();
    host.make_default();
    host
});

/// Each test thrice: of tokio's socket on the kernel, of ours within tokio, and of ours on a simulated host.
macro_rules! thrice {
    ($($name:ident),* $(,)?) => { $(
        #[tokio::test]
        async fn $name() -> io::Result<()> {
            LazyLock::force(&HOST);
            in_time(kernel::$name()).await?;
            in_time(ours::$name()).await?;
            simulated(|| ours::$name());
            Ok(())
        }
    )* };
}

thrice!(
    datagrams_keep_their_ends_and_what_does_not_fit_is_lost,
    a_connected_socket_hears_its_peer_alone,
    an_unspecified_end_gets_its_address_when_it_is_connected,
    attempts_do_not_wait_and_readiness_says_when,
    a_peek_takes_nothing,
    buffers_are_filled_from_where_they_are,
    a_port_without_a_socket_refuses,
    the_longest_datagram_goes_and_a_longer_one_is_refused,
    an_address_is_bound_once,
    options_are_what_they_were_set_to,
    each_of_many_that_wait_gets_a_datagram,
    what_was_sent_before_the_close_arrives,
);

fn simulated<F: Future<Output = io::Result<()>> + 'static>(test: impl Fn() -> F + Copy + 'static) {
    inhost::sim::explore(0..3, |simulation| {
        simulation.client("alone", async move |_| Ok(test().await?));
    });
}

/// Two hosts on threads of their own, joined by a link of memory.
fn pair() -> io::Result<(Host, Host)> {
    let config = memory::Config { doorbell: true, ..memory::Config::default() };
    let (near, far) = memory::pair(&config)?;
    let near =
        Host::builder().name("near").driver(near, |link| link.with_address("10.9.0.1/24".parse().unwrap()));
    let far =
        Host::builder().name("far").driver(far, |link| link.with_address("10.9.0.2/24".parse().unwrap()));
    Ok((near.start()?, far.start()?))
}

fn large() -> UdpOptions {
    let mut options = UdpOptions::default();
    options.receive_limit_bytes = 4 << 20;
    options
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[tokio::test]
async fn one_call_sends_and_receives_several_datagrams_with_mark_and_ends() -> io::Result<()> {
    in_time(async {
        let (near, far) = pair()?;
        let server = far.udp("0.0.0.0:443").await?;
        let client = near.udp("0.0.0.0:0").await?;
        let mut how = SendDatagrams::to(at("10.9.0.2:443").into());
        let bytes: Vec<u8> = (0..3_700u32).map(|index| index as u8).collect();
        let mut place = vec![0; 65_536];
        for ecn in [Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1, Ecn::CongestionExperienced] {
            (how.segment_bytes, how.ecn, how.from) = (1_200, ecn, Some(at("10.9.0.1:0").into()));
            assert_eq!(client.try_send_with(&bytes, &how)?, 3_700);
            let mut received = Vec::new();
            while received.len() < 3_700 {
                let some = poll_fn(|context| server.poll_recv_gro(context, &mut place)).await?;
                assert_eq!((some.info.ecn, some.info.to), (ecn, at("10.9.0.2:443").into()));
                assert_eq!(SocketAddr::from(some.info.from).ip(), at("10.9.0.1:0").ip());
                assert!(some.segment_bytes == 1_200 || some.segment_bytes == 100);
                received.extend_from_slice(&place[..some.info.length_bytes]);
            }
            assert_eq!(received, bytes);
        }
        // A place for one and a half gets one.
        how.segment_bytes = 1_000;
        client.try_send_with(&bytes[..2_500], &how)?;
        let mut small = [0; 1_400];
        for (length, segment_bytes) in [(1_000, 1_000), (1_000, 1_000), (500, 500)] {
            let some = poll_fn(|context| server.poll_recv_gro(context, &mut small)).await?;
            assert_eq!((some.info.length_bytes, some.segment_bytes), (length, segment_bytes));
        }
        // The octet that was set as an option marks plain datagrams.
        client.set_tos_v4(0x2a)?;
        client.send_to(b"marked", "10.9.0.2:443").await?;
        let some = poll_fn(|context| server.poll_recv_gro(context, &mut place)).await?;
        assert_eq!((some.info.length_bytes, some.info.ecn), (6, Ecn::Capable0));
        Ok(())
    })
    .await
}

/// Keeps the thread of `host` from doing anything until the sender is dropped.
fn hold(host: &Host) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let remote = host.remote().clone();
    std::thread::spawn(move || {
        let stall = move |_: &inhost::local::Host| {
            let _ = begun.send(());
            let _ = held.recv();
        };
        remote.call_now(stall)
    });
    receive(&begins);
    release
}

#[tokio::test]
async fn a_full_socket_would_block_and_says_when_there_is_room() -> io::Result<()> {
    in_time(async {
        let (near, far) = pair()?;
        let server = far.udp_with(at("10.9.0.2:7"), large()).await?;
        let client = near.udp("10.9.0.1:0").await?;
        client.connect("10.9.0.2:7").await?;
        let held = hold(&near);
        let mut sent = 0u32;
        let error = loop {
            match client.try_send(&[sent as u8; 1_000]) {
                Ok(_) => sent += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        // As much as the limit says, and no more.
        assert!((200..=262).contains(&sent), "{sent}");
        // Too little room for a long one is not would-block for ever, nor room.
        assert!(client.try_send(&[0; 60_000]).is_err());
        let mut writable = Box::pin(client.writable());
        let is_pending =
            poll_fn(|context| std::task::Poll::Ready(writable.as_mut().poll(context).is_pending())).await;
        assert!(is_pending);
        drop(held);
        writable.await?;
        client.try_send(&[0; 60_000])?;
        let mut place = vec![0; 65_536];
        for number in 0..sent {
            assert_eq!(server.recv(&mut place).await?, 1_000);
            assert_eq!(place[999], number as u8);
        }
        assert_eq!(server.recv(&mut place).await?, 60_000);
        assert_eq!(server.dropped(), 0);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_waits_for_the_host_is_sent_though_the_socket_is_closed() -> io::Result<()> {
    in_time(async {
        let (near, far) = pair()?;
        let server = far.udp_with(at("10.9.0.2:7"), large()).await?;
        let client = near.udp("10.9.0.1:0").await?;
        let held = hold(&near);
        for number in 0..150 {
            client.try_send_to(&[number; 1_000], at("10.9.0.2:7"))?;
        }
        drop(client);
        drop(held);
        let mut place = [0; 1_000];
        for number in 0..150 {
            assert_eq!(server.recv(&mut place).await?, 1_000);
            assert_eq!(place, [number; 1_000]);
        }
        Ok(())
    })
    .await
}

#[test]
fn simulated_hosts_talk_by_name_and_lose_what_the_link_loses() {
    inhost::sim::explore(0..5, |simulation| {
        let loss = inhost::sim::Loss::per_mille(100);
        simulation.set_link(inhost::sim::LinkConfig { loss, ..inhost::sim::LinkConfig::default() });
        simulation.host("server", async |_| {
            let socket = UdpSocket::bind("0.0.0.0:7").await?;
            let mut place = [0; 100];
            loop {
                let (length, from) = socket.recv_from(&mut place).await?;
                socket.send_to(&place[..length], from).await?;
            }
        });
        simulation.client("client", async |_| {
            let socket = UdpSocket::bind("0.0.0.0:0").await?;
            socket.connect("server:7").await?;
            let (mut answers, mut unreachable) = (0, 0);
            for number in 0..100 {
                let mut place = [0; 100];
                let exchange = async {
                    socket.send(&[number; 50]).await?;
                    socket.recv(&mut place).await
                };
                match inhost::sim::time::timeout(std::time::Duration::from_secs(2), exchange).await {
                    // One that waited for its neighbour may come late.
                    Ok(Ok(length)) => {
                        assert_eq!((length, &place[..50]), (50, &[place[0]; 50][..]));
                        assert!(place[0] <= number);
                        answers += 1;
                    }
                    // Questions for the neighbour are lost, too, and for a while it counts as away.
                    Ok(Err(error)) if error.kind() == io::ErrorKind::HostUnreachable => {
                        unreachable += 1;
                        inhost::sim::time::sleep(std::time::Duration::from_secs(2)).await;
                    }
                    Ok(Err(error)) => return Err(error.into()),
                    Err(_) => {}
                }
            }
            assert!(unreachable < 10, "{unreachable}");
            // A datagram and its answer cross two links each.
            assert!((10..90).contains(&answers), "{answers}");
            Ok(())
        });
    });
}

#[tokio::test]
async fn what_arrives_beyond_the_limits_is_counted() -> io::Result<()> {
    in_time(async {
        let (near, far) = pair()?;
        let mut options = UdpOptions::default();
        options.receive_limit_bytes = 20_000;
        let server = far.udp_with(at("10.9.0.2:7"), options).await?;
        let client = near.udp("10.9.0.1:0").await?;
        client.connect("10.9.0.2:7").await?;
        for _ in 0..200 {
            client.send(&[1; 1_000]).await?;
        }
        // The last one comes after the others were judged.
        let judge = far.udp("10.9.0.2:8").await?;
        client.send_to(b"end", "10.9.0.2:8").await?;
        judge.recv(&mut [0; 3]).await?;
        let mut received = 0;
        let mut place = [0; 1_000];
        while server.try_recv(&mut place).is_ok() {
            received += 1;
            // What waits in the host comes up when there is room.
            far.run(async |_| ()).await.unwrap();
        }
        assert!((20..200).contains(&received), "{received}");
        assert_eq!(server.dropped(), 200 - received);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn threads_share_a_socket_and_every_datagram_comes_once() -> io::Result<()> {
    in_time(async {
        const EACH: u32 = 5_000;
        let (near, far) = pair()?;
        let server = std::sync::Arc::new(far.udp_with(at("10.9.0.2:7"), large()).await?);
        let client = std::sync::Arc::new(near.udp("10.9.0.1:0").await?);
        client.connect("10.9.0.2:7").await?;
        let (permits, permitted) = async_channel::bounded::<()>(64);
        let senders: Vec<_> = (0..4)
            .map(|sender: u32| {
                let (client, permits) = (client.clone(), permits.clone());
                std::thread::spawn(move || {
                    inhost::block_on(async {
                        for number in 0..EACH {
                            permits.send(()).await.unwrap();
                            client.send(&(sender * EACH + number).to_be_bytes()).await.unwrap();
                        }
                    });
                })
            })
            .collect();
        let receivers: Vec<_> = (0..3)
            .map(|_| {
                let (server, permitted) = (server.clone(), permitted.clone());
                std::thread::spawn(move || {
                    inhost::block_on(async {
                        let mut all = Vec::new();
                        loop {
                            let mut place = [0; 4];
                            server.recv(&mut place).await.unwrap();
                            let _ = permitted.try_recv();
                            match u32::from_be_bytes(place) {
                                u32::MAX => return all,
                                number => all.push(number),
                            }
                        }
                    })
                })
            })
            .collect();
        senders.into_iter().for_each(join);
        for _ in 0..3 {
            client.send(&u32::MAX.to_be_bytes()).await?;
        }
        let mut all: Vec<u32> = receivers.into_iter().flat_map(join).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..4 * EACH));
        assert_eq!(server.dropped(), 0);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_group_is_heard_from_joining_to_leaving_or_closing() -> io::Result<()> {
    in_time(async {
        let (near, far) = pair()?;
        let group = Ipv4Addr::new(239, 1, 2, 3);
        let server = far.udp("0.0.0.0:7").await?;
        let client = near.udp("10.9.0.1:0").await?;
        server.join_multicast_v4(group, Ipv4Addr::new(10, 9, 0, 2))?;
        let again = server.join_multicast_v4(group, Ipv4Addr::UNSPECIFIED);
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        client.send_to(b"all of you", (group, 7)).await?;
        let mut place = [0; 20];
        assert_eq!(server.recv_from(&mut place).await?, (10, client.local_addr()?));
        server.leave_multicast_v4(group, Ipv4Addr::UNSPECIFIED)?;
        let again = server.leave_multicast_v4(group, Ipv4Addr::UNSPECIFIED);
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AddrNotAvailable);
        client.send_to(b"nobody", (group, 7)).await?;
        client.send_to(b"you", "10.9.0.2:7").await?;
        assert_eq!(server.recv(&mut place).await?, 3);
        // A socket that is closed leaves its groups, so that another hears nothing of them.
        let other = far.udp("0.0.0.0:8").await?;
        server.join_multicast_v4(group, Ipv4Addr::UNSPECIFIED)?;
        drop(server);
        far.run(async |_| ()).await.unwrap();
        client.send_to(b"nobody", (group, 8)).await?;
        client.send_to(b"you", "10.9.0.2:8").await?;
        assert_eq!(other.recv(&mut place).await?, 3);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn broadcasts_need_leave_and_errors_of_the_route_come_with_the_next_call_that_sends() -> io::Result<()>
{
    in_time(async {
        let (near, _far) = pair()?;
        let socket = near.udp("10.9.0.1:0").await?;
        let everybody = at("255.255.255.255:7");
        assert_eq!(number(&socket.try_send_to(b"x", everybody).unwrap_err()), EACCES);
        socket.set_broadcast(true)?;
        socket.try_send_to(b"x", everybody)?;
        assert_eq!(number(&socket.try_send(b"x").unwrap_err()), EDESTADDRREQ);
        socket.try_send_to(b"x", at("192.0.2.1:7"))?;
        // It is not news for one that receives, but the next that sends gets it.
        socket.ready(inhost::net::Interest::WRITABLE).await?;
        far_away(&near).await;
        assert_eq!(socket.try_recv(&mut [0; 1]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let error = socket.try_send_to(b"x", at("10.9.0.2:7")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NetworkUnreachable);
        socket.try_send_to(b"x", at("10.9.0.2:7"))?;
        // Several that do not fit a datagram of IP's are refused.
        let mut how = SendDatagrams::to(at("10.9.0.2:7").into());
        how.segment_bytes = 10;
        assert_eq!(number(&socket.try_send_with(&[0; 641], &how).unwrap_err()), EMSGSIZE);
        Ok(())
    })
    .await
}

/// The host has done what was asked of it before.
async fn far_away(host: &Host) {
    host.run(async |_| ()).await.unwrap();
    host.run(async |_| ()).await.unwrap();
}

#[tokio::test]
async fn an_error_is_reported_once() -> io::Result<()> {
    in_time(async {
        let (near, far) = pair()?;
        let _other = far.udp("10.9.0.2:7").await?;
        let socket = near.udp("10.9.0.1:0").await?;
        socket.connect("10.9.0.2:9").await?;
        for _ in 0..2 {
            socket.send(b"anybody?").await?;
            socket.readable().await?;
            let error = socket.take_error()?.unwrap();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
            assert!(socket.take_error()?.is_none());
        }
        // The next call that sends reports it as well as one that receives.
        socket.send(b"anybody?").await?;
        socket.readable().await?;
        assert_eq!(socket.try_send(b"x").unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        socket.try_send(b"x")?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_stopped_host_ends_what_waits() -> io::Result<()> {
    in_time(async {
        let host = Host::builder().start()?;
        let socket = host.udp("127.0.0.1:0").await?;
        socket.set_option(SocketOption::ReceiveBufferLimit(1 << 20));
        let waits = tokio::spawn(async move { socket.recv(&mut [0; 1]).await });
        host.shutdown().await;
        drop(host);
        assert_eq!(waits.await.unwrap().unwrap_err().kind(), io::ErrorKind::NetworkDown);
        Ok(())
    })
    .await
}

/// Sockets cross threads, and are used by several at once.
const fn assert_send_and_sync<T: Send + Sync>() {}
const _: () = assert_send_and_sync::<UdpSocket>();
