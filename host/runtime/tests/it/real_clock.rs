//! The runtime under the real clock: loopback, two threads, remote and blocking sockets, shutdown.
#![allow(clippy::disallowed_methods)] // The real clock is what is tested.

use std::io::{Read, Write};
use std::thread;
use std::time;

use crate::{beside, in_time};

use inhost_base::{Duration, Endpoint, Ipv4Addr};
use inhost_interop::join;
use inhost_link::memory;
use inhost_runtime::{Runtime, interface};
use inhost_socket::{Host, both};
use inhost_socket::{RemoteHost, blocking};
use inhost_stack::{ConnectOptions, ListenOptions, StackConfig, UdpOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const TEN_MEGABYTES: usize = 10 << 20;

fn here(port: u16) -> Endpoint {
    Endpoint::new(Ipv4Addr::LOCALHOST, port)
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect()
}

/// An echo service, task by task.
fn echo(host: &Host, at: Endpoint) {
    let listener = host.listen(at, ListenOptions::default()).unwrap();
    let serve = host.clone();
    host.spawn(async move {
        while let Ok(stream) = listener.accept().await {
            serve
                .spawn(async move {
                    let (mut from, mut to) = tokio::io::split(stream);
                    if tokio::io::copy(&mut from, &mut to).await.is_ok() {
                        let _ = to.shutdown().await;
                    }
                })
                .detach();
        }
    })
    .detach();
}

/// Timestamps of ICMP and of IP options are those of the system's calendar.
#[test]
fn a_host_knows_the_time_of_day() {
    const DAY_MS: u32 = 24 * 60 * 60 * 1000;
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let host = runtime.host().clone();
    let told_ms = in_time(&mut runtime, async { host.with_stack(|stack, now| stack.ip().time_of_day(now)) });
    let calendar = time::SystemTime::now().duration_since(time::UNIX_EPOCH).unwrap();
    let right_ms = (calendar.as_millis() % u128::from(DAY_MS)) as u32;
    assert!(told_ms < DAY_MS, "marked as another clock's: {told_ms:#x}");
    let apart_ms = (right_ms + DAY_MS - told_ms) % DAY_MS;
    let apart_ms = apart_ms.min(DAY_MS - apart_ms);
    assert!(apart_ms < 10_000, "{told_ms} ms since midnight, {right_ms} by the calendar");
}

#[test]
fn a_loopback_echo() {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let host = runtime.host().clone();
    echo(&host, here(7));
    let answer = in_time(&mut runtime, async {
        let mut stream = host.connect(here(7)).await.unwrap();
        stream.write_all(b"real time").await.unwrap();
        stream.shutdown();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    });
    assert_eq!(answer, "real time");
}

#[test]
fn a_sleep_takes_its_time_and_no_more_than_it_must() {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let host = runtime.host().clone();
    let began = time::Instant::now();
    runtime.run(async move { host.sleep(Duration::from_millis(50)).await }).unwrap();
    let took = began.elapsed();
    assert!(took >= time::Duration::from_millis(50), "{took:?}");
    assert!(took < time::Duration::from_millis(1050), "{took:?}");
}

#[test]
fn a_runtime_that_polls_looks_again_for_a_while_and_then_sleeps() {
    let (a, _b) = memory::pair(&memory::Config { doorbell: true, ..memory::Config::default() }).unwrap();
    let mut runtime = on_link(a, "10.1.0.1/24");
    let host = runtime.host().clone();
    let rounds_of_a_nap = |runtime: &mut Runtime| {
        let before = runtime.rounds();
        runtime.run(host.sleep(Duration::from_millis(20))).unwrap();
        runtime.rounds() - before
    };
    let asleep = rounds_of_a_nap(&mut runtime);
    runtime.set_busy_poll(Duration::from_secs(1));
    // One that polling would have spared it.
    rounds_of_a_nap(&mut runtime);
    let polling = rounds_of_a_nap(&mut runtime);
    assert!(polling > 100 + asleep, "{polling} rounds against {asleep}");
    runtime.set_busy_poll(Duration::from_micros(10));
    let seldom = rounds_of_a_nap(&mut runtime);
    assert!(seldom < polling / 2, "{seldom} rounds against {polling}");
    // What takes longer than it looks is slept for at once.
    runtime.set_busy_poll(Duration::from_millis(5));
    rounds_of_a_nap(&mut runtime);
    let cold = rounds_of_a_nap(&mut runtime);
    assert!(cold <= asleep + 5, "{cold} rounds against {asleep}");
}

#[test]
fn a_sleep_of_microseconds_is_not_rounded_up() {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let host = runtime.host().clone();
    let mut took: Vec<_> = (0..50)
        .map(|_| {
            let began = time::Instant::now();
            runtime.run(host.sleep(Duration::from_micros(200))).unwrap();
            began.elapsed()
        })
        .collect();
    took.sort();
    // The machine may do much else; a clock of milliseconds would show in the quickest.
    assert!(took[0] < time::Duration::from_micros(900), "{:?}", took[0]);
}

#[test]
fn an_idle_runtime_sleeps() {
    let (a, b) = memory::pair(&memory::Config { doorbell: true, ..memory::Config::default() }).unwrap();
    let mut runtime = on_link(a, "10.1.0.1/24");
    let host = runtime.host().clone();
    echo(&host, here(7));
    let open = in_time(&mut runtime, host.connect(here(7))).unwrap();
    runtime.run(host.sleep(Duration::from_millis(200))).unwrap();
    let before = runtime.rounds();
    runtime.run(host.sleep(Duration::from_millis(500))).unwrap();
    let rounds = runtime.rounds() - before;
    assert!(rounds < 20, "{rounds} rounds while nothing happened");
    drop((open, b));
}

/// A runtime with one end of a memory link.
fn on_link(driver: memory::Memory, address: &str) -> Runtime {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let config = interface("memory", &driver).with_address(address.parse().unwrap());
    let host = runtime.host().clone();
    runtime.add_link(&host, config, Box::new(driver)).unwrap();
    runtime
}

#[test]
fn two_runtimes_on_two_threads() {
    let config = memory::Config { doorbell: true, mtu_bytes: 1500, ..memory::Config::default() };
    let (a, b) = memory::pair(&config).unwrap();
    let (stop, stopped) = async_channel::bounded::<()>(1);
    let server = thread::spawn(move || {
        let mut runtime = on_link(b, "10.1.0.2/24");
        let host = runtime.host().clone();
        echo(&host, Endpoint::new(Ipv4Addr::UNSPECIFIED, 7));
        in_time(&mut runtime, stopped.recv()).unwrap();
        runtime.shutdown(Duration::from_secs(5)).unwrap()
    });
    let mut runtime = on_link(a, "10.1.0.1/24");
    let host = runtime.host().clone();
    let sent = pattern(TEN_MEGABYTES);
    let received = in_time(&mut runtime, async {
        let stream = host.connect(Endpoint::new([10, 1, 0, 2], 7)).await.unwrap();
        let (mut from, mut to) = tokio::io::split(stream);
        let write = async {
            to.write_all(&sent).await.unwrap();
            to.shutdown().await.unwrap();
        };
        let mut received = Vec::new();
        both(write, from.read_to_end(&mut received)).await.1.unwrap();
        received
    });
    assert!(received == sent);
    stop.send_blocking(()).unwrap();
    // The last acknowledgments of our side still have to go.
    runtime.run(host.sleep(Duration::from_millis(50))).unwrap();
    assert_eq!(join(server).aborted, 0);
}

#[test]
fn two_hosts_in_one_runtime() {
    let (a, b) = memory::pair(&memory::Config::default()).unwrap();
    let mut runtime = on_link(a, "10.1.0.1/24");
    let other = runtime.add_host(StackConfig::default()).unwrap();
    let config = interface("memory", &b).with_address("10.1.0.2/24".parse().unwrap());
    runtime.add_link(&other, config, Box::new(b)).unwrap();
    echo(&other, Endpoint::new(Ipv4Addr::UNSPECIFIED, 7));
    let host = runtime.host().clone();
    let answer = in_time(&mut runtime, async {
        let mut stream = host.connect(Endpoint::new([10, 1, 0, 2], 7)).await.unwrap();
        stream.write_all(b"next door").await.unwrap();
        stream.shutdown();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    });
    assert_eq!(answer, "next door");
    let shown = inhost_runtime::control::netstat_with_links(&host, Some(&runtime.links()));
    let link = &shown["interfaces"][1];
    assert_eq!((link["name"].as_str(), link["medium"].as_str()), (Some("memory"), Some("ip")), "{link}");
    assert_eq!(link["addresses"][0]["address"], "10.1.0.1/24");
    assert!(link["driver"]["received_frames"].as_u64().unwrap() >= 2, "{link}");
    assert_eq!(shown["routes"][0]["destination"], "10.1.0.0/24", "{}", shown["routes"]);
}

/// Runs `work` on another thread while a runtime with an echo service lives.
fn with_remote(work: impl FnOnce(RemoteHost) + Send + 'static) {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let host = runtime.host().clone();
    echo(&host, here(7));
    let remote = host.remote();
    beside(&mut runtime, move || work(remote));
}

#[test]
fn a_remote_stream_moves_ten_megabytes_intact() {
    with_remote(|remote| {
        let sent = pattern(TEN_MEGABYTES);
        let received = blocking::block_on(async {
            let stream = remote.connect(here(7)).await.unwrap();
            let (mut from, mut to) = tokio::io::split(stream);
            let write = async {
                to.write_all(&sent).await.unwrap();
                to.shutdown().await.unwrap();
            };
            let mut received = Vec::new();
            both(write, from.read_to_end(&mut received)).await.1.unwrap();
            received
        });
        assert!(received == sent);
    });
}

#[test]
fn blocking_sockets_move_ten_megabytes_intact() {
    with_remote(|remote| {
        let sent = pattern(TEN_MEGABYTES);
        let stream = blocking::TcpStream::connect(&remote, here(7)).unwrap();
        let mut writer = stream.clone();
        let bytes = sent.clone();
        let writing = thread::spawn(move || {
            writer.write_all(&bytes).unwrap();
            writer.shutdown();
        });
        let mut received = Vec::new();
        (&stream).read_to_end(&mut received).unwrap();
        join(writing);
        assert!(received == sent);
    });
}

#[test]
fn blocking_sockets_listen_give_up_in_time_and_know_their_errors() {
    with_remote(|remote| {
        let refused = blocking::TcpStream::connect(&remote, here(99)).unwrap_err();
        assert_eq!(inhost_socket::errno::number(&refused), inhost_socket::errno::ECONNREFUSED);

        let mut listener = blocking::TcpListener::bind(&remote, here(80), ListenOptions::default()).unwrap();
        listener.set_timeout(Some(time::Duration::from_millis(20)));
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        listener.set_timeout(None);
        let limit = time::Duration::from_secs(5);
        let mut caller =
            blocking::TcpStream::connect_within(&remote, here(80), ConnectOptions::default(), limit).unwrap();
        let mut called = listener.accept().unwrap();
        assert_eq!(called.remote(), caller.local());
        called.set_read_timeout(Some(time::Duration::from_millis(20)));
        assert_eq!(called.read(&mut [0; 8]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        caller.write_all(b"abc").unwrap();
        caller.send_urgent(b"!").unwrap();
        called.set_read_timeout(Some(limit));
        let mut place = [0; 4];
        called.read_exact(&mut place).unwrap();
        assert_eq!(&place, b"abc!");
        caller.abort();
        assert_eq!(called.read(&mut place).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);

        let mut socket = blocking::UdpSocket::bind(&remote, here(0), UdpOptions::default()).unwrap();
        let other = blocking::UdpSocket::bind(&remote, here(5353), UdpOptions::default()).unwrap();
        socket.send_to(b"question", here(5353)).unwrap();
        let (count, from) = other.receive_from(&mut [0; 100]).unwrap();
        assert_eq!(count, 8);
        other.send_to(b"answer", from).unwrap();
        let mut place = [0; 100];
        let (count, from) = socket.receive_from(&mut place).unwrap();
        assert_eq!((&place[..count], from), (&b"answer"[..], here(5353)));
        socket.set_read_timeout(Some(time::Duration::from_millis(20)));
        assert_eq!(socket.receive_from(&mut place).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    });
}

#[test]
fn the_shutdown_keeps_its_deadline() {
    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let host = runtime.host().clone();
    echo(&host, here(7));
    let stream = in_time(&mut runtime, host.connect(here(7))).unwrap();
    // One connection that nobody closes: it has to be aborted, at both its ends.
    let began = time::Instant::now();
    let shutdown = runtime.shutdown(Duration::from_millis(100)).unwrap();
    assert_eq!(shutdown.aborted, 2);
    assert!(began.elapsed() >= time::Duration::from_millis(100));
    assert!(began.elapsed() < time::Duration::from_millis(1100));
    drop(stream);

    let mut runtime = Runtime::new(StackConfig::default()).unwrap();
    let host = runtime.host().clone();
    echo(&host, here(7));
    drop(in_time(&mut runtime, host.connect(here(7))).unwrap());
    let shutdown = runtime.shutdown(Duration::from_secs(10)).unwrap();
    assert_eq!(shutdown.aborted, 0);
    assert!(shutdown.took < Duration::from_secs(5), "{}", shutdown.took);
}
