//! The four services over a link, as a caller sees them.

mod network;

use futures_lite::future::zip;
use inhost_base::{Duration, Endpoint};
use inhost_common::{AdmissionLimits, Callers, Rate};
use inhost_event::SendCause;
use inhost_little::{Counters, Little, LittleConfig, Pattern, serve};
use inhost_socket::Host;
use inhost_stack::{SocketInfo, UdpOptions};
use network::Network;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const NOON: &str = "Thursday, January 1, 1970 12:00:00-UTC\r\n";

fn start(config: LittleConfig) -> (Network, Host, Little) {
    let network = Network::new();
    let little = serve(&network.ends[1].host, config, Callers::default(), || 12 * 3600).unwrap();
    let host = network.ends[0].host.clone();
    (network, host, little)
}

fn at(port: u16) -> Endpoint {
    Endpoint::new([10, 9, 0, 2], port)
}

/// spec: RFC862
#[test]
fn echo_over_tcp_of_both_families() {
    let (mut network, host, little) = start(LittleConfig::default());
    for address in ["10.9.0.2", "2001:db8:9::2"] {
        let host = host.clone();
        let to = Endpoint::new(address.parse::<std::net::IpAddr>().unwrap(), 7);
        network.run(async move {
            let stream = host.connect(to).await.unwrap();
            let sent: Vec<u8> = (0..300_000u32).map(|n| (n / 7) as u8).collect();
            let (mut reader, mut writer) = tokio::io::split(stream);
            let mut back = Vec::new();
            let write = async {
                writer.write_all(&sent).await.unwrap();
                writer.shutdown().await.unwrap();
            };
            zip(write, reader.read_to_end(&mut back)).await.1.unwrap();
            assert!(back == sent);
        });
    }
    assert_eq!(little.counters().connections, 2);
}

#[test]
fn the_other_three_over_tcp() {
    let (mut network, host, _little) = start(LittleConfig::default());
    network.run(async move {
        let mut daytime = host.connect(at(13)).await.unwrap();
        let mut line = String::new();
        daytime.read_to_string(&mut line).await.unwrap();
        assert_eq!(line, NOON);
        let mut discard = host.connect(at(9)).await.unwrap();
        discard.write_all(&[7; 100_000]).await.unwrap();
        discard.shutdown();
        assert_eq!(discard.read(&mut [0; 10]).await.unwrap(), 0);
        let mut chargen = host.connect(at(19)).await.unwrap();
        let (mut text, mut expected) = (vec![0; 200_000], vec![0; 200_000]);
        chargen.read_exact(&mut text).await.unwrap();
        Pattern::new().fill(&mut expected);
        assert!(text == expected);
    });
}

/// spec: RFC867
#[test]
fn daytime_answers_a_caller_who_spoke_first() {
    let (mut network, host, little) = start(LittleConfig::default());
    network.run(async move {
        for question in [&b"what time is it?\r\n"[..], &[b'x'; 20_000]] {
            let mut daytime = host.connect(at(13)).await.unwrap();
            daytime.write_all(question).await.unwrap();
            host.sleep(Duration::from_millis(50)).await;
            let mut line = String::new();
            daytime.read_to_string(&mut line).await.unwrap();
            assert_eq!(line, NOON);
        }
    });
    assert_eq!(little.counters().connections_idle, 0);
}

#[test]
fn one_caller_cannot_have_all_connections() {
    let mut config = LittleConfig::default();
    config.limits = AdmissionLimits::per_minute(4, 2, u32::MAX);
    let (mut network, host, little) = start(config);
    network.run(async move {
        let _kept = [host.connect(at(7)).await.unwrap(), host.connect(at(9)).await.unwrap()];
        let mut third = host.connect(at(7)).await.unwrap();
        assert!(third.read(&mut [0; 1]).await.is_err());
        // The caller's IPv6 address is another peer.
        let other = Endpoint::new("2001:db8:9::2".parse::<std::net::IpAddr>().unwrap(), 7);
        let mut other = host.connect(other).await.unwrap();
        other.write_all(b"x").await.unwrap();
        assert_eq!(other.read(&mut [0; 1]).await.unwrap(), 1);
    });
    assert_eq!(little.counters().connections_refused, 1);
}

/// No answer waits for the acknowledgment of the one before: a caller that says nothing for a while delays that.
#[test]
fn an_echo_is_not_held_back() {
    let (mut network, host, _little) = start(LittleConfig::default());
    network.takes_every = 10;
    let echo = network.run(async move {
        let mut echo = host.connect(at(7)).await.unwrap();
        echo.set_nagle(false);
        for _ in 0..40 {
            echo.write_all(b"one").await.unwrap();
            // Before the answer was taken, and so before it can be acknowledged.
            host.sleep(Duration::from_micros(15)).await;
            echo.write_all(b"two").await.unwrap();
            echo.read_exact(&mut [0; 6]).await.unwrap();
        }
        echo
    });
    let held = network.ends[1].host.with_stack(|stack, now| {
        let of_echo = |info: &SocketInfo| info.remote == Some(echo.local());
        let info = stack.instruments().sockets(now).find(of_echo).unwrap();
        info.tcp.unwrap().ledgers.send.of(SendCause::SmallData)
    });
    assert_eq!(held, Duration::ZERO);
}

async fn ask(host: &Host, from_port: u16, port: u16, question: &[u8]) -> Option<Vec<u8>> {
    let here = Endpoint::new([10, 9, 0, 1], from_port);
    let socket = host.udp(here, UdpOptions::default()).unwrap();
    socket.send_to(question, at(port)).await.unwrap();
    let mut answer = vec![0; 4096];
    let received = host.timeout(Duration::from_secs(2), socket.receive_from(&mut answer)).await.ok()?;
    answer.truncate(received.unwrap().length_bytes);
    Some(answer)
}

#[test]
fn all_four_over_udp() {
    let (mut network, host, little) = start(LittleConfig::default());
    network.run(async move {
        assert_eq!(ask(&host, 0, 7, b"hello").await.unwrap(), b"hello");
        assert_eq!(ask(&host, 0, 13, b"").await.unwrap(), NOON.as_bytes());
        let (mut line, mut pattern) = (vec![0; 74], Pattern::new());
        pattern.fill(&mut line);
        assert_eq!(ask(&host, 0, 19, b"?").await.unwrap(), line);
        assert_eq!(ask(&host, 0, 9, b"hello").await, None);
    });
    assert_eq!(little.counters().answers, 3);
}

#[test]
fn services_are_not_answered_and_no_one_too_often() {
    let each = Rate { burst: 5, per_second: 1 };
    let (mut network, host, little) = start({
        let mut config = LittleConfig::default();
        config.answers_each = each;
        config
    });
    network.run(async move {
        for service in [7, 19, 53] {
            assert_eq!(ask(&host, service, 7, b"loop").await, None);
        }
        let socket = host.udp(Endpoint::new([10, 9, 0, 1], 0), UdpOptions::default()).unwrap();
        for _ in 0..50 {
            socket.send_to(b"x", at(19)).await.unwrap();
        }
        host.sleep(Duration::from_millis(100)).await;
    });
    let Counters { answers, unanswered, .. } = little.counters();
    assert_eq!((answers, unanswered), (5, 48));
}

#[test]
fn connections_are_limited_and_idle_ones_reset() {
    let config = {
        let mut config = LittleConfig::default();
        config.limits.sessions = 2;
        config.idle_limit = Duration::from_secs(10);
        config
    };
    let (mut network, host, little) = start(config);
    network.run(async move {
        let mut kept = [host.connect(at(7)).await.unwrap(), host.connect(at(9)).await.unwrap()];
        let mut third = host.connect(at(7)).await.unwrap();
        assert!(third.read(&mut [0; 1]).await.is_err());
        for stream in &mut kept {
            assert!(stream.read(&mut [0; 1]).await.is_err());
        }
    });
    let Counters { connections, connections_refused, connections_idle, .. } = little.counters();
    assert_eq!((connections, connections_refused, connections_idle), (2, 1, 2));
    assert_eq!(little.connections(), 0);
    assert!(network.now >= inhost_base::Instant::from_millis(10_000));
}
