//! A guest on the `user` network, and the operating system's own sockets at the far end.

#![allow(clippy::disallowed_methods, reason = "the far end is the system's, under the system's clock")]

use inhost_base::{Duration, Endpoint, Instant, LinkId};
use inhost_buf::Batch;
use inhost_gateway::{
    Forward, GatewayConfig, LoopbackPorts, Running, Transport, UserDriver, guest_interface, user_link,
};
use inhost_interop::{DEADLINE, join, receive};
use inhost_link::Driver;
use inhost_runtime::Reactor;
use inhost_socket::{ConnectError, DatagramError, Ends, Host, Stream};
use inhost_stack::{ListenOptions, Stack, StackConfig, UdpOptions};
use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::rc::Rc;
use std::thread::JoinHandle;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

struct Rig {
    guest: Host,
    link: LinkId,
    driver: UserDriver,
    running: Running,
    reactor: Reactor,
    origin: std::time::Instant,
    batch: Batch,
    /// The most memory that the gateway's stack held at the end of a round.
    most_bytes: Rc<Cell<usize>>,
}

impl Rig {
    fn new(config: GatewayConfig) -> Rig {
        let mut stack = Stack::new(StackConfig::default(), [1; 32], Instant::ZERO);
        let link = stack.add_link(guest_interface("user0", &config), Instant::ZERO).unwrap();
        let guest = Host::new(stack, Instant::ZERO);
        let reactor = Reactor::new().unwrap();
        let (driver, running) = user_link(&guest, config, &reactor, [2; 32]).unwrap().split();
        let origin = std::time::Instant::now();
        let (batch, most_bytes) = (Batch::new(), Rc::default());
        Rig { guest, link, driver, running, reactor, origin, batch, most_bytes }
    }
    /// A rig whose guest reaches every port of the system's loopback at 10.0.2.2.
    fn open() -> Rig {
        Rig::new({
            let mut config = GatewayConfig::default();
            config.loopback_ports = LoopbackPorts::All;
            config
        })
    }
    fn round(&mut self) {
        let now = Instant::from_nanos(self.origin.elapsed().as_nanos() as u64);
        let Rig { guest, link, driver, batch, .. } = self;
        driver.advance(now);
        guest.with_stack(|stack, _| driver.receive(stack.pool(), batch)).unwrap();
        guest.receive(*link, batch, now);
        guest.run(now, 1000);
        guest.transmit(*link, now, 64, driver);
        let held = self.running.gateway.host().with_stack(|stack, _| stack.memory().outstanding_bytes());
        self.most_bytes.set(self.most_bytes.get().max(held));
        let busy = guest.has_runnable()
            || driver.has_received()
            || (guest.wants_transmit(*link) && driver.can_transmit());
        let until = guest.deadline().map_or(Duration::from_millis(50), |at| at.since(now));
        let wait = if busy { Duration::ZERO } else { until.min(Duration::from_millis(50)) };
        self.reactor.wait(Some(wait)).unwrap();
    }
    fn run<T: 'static>(&mut self, future: impl Future<Output = T> + 'static) -> T {
        let result = Rc::new(RefCell::new(None));
        let place = result.clone();
        let task = self.guest.spawn(async move {
            let value = future.await;
            *place.borrow_mut() = Some(value);
        });
        let started = std::time::Instant::now();
        while started.elapsed() < DEADLINE {
            self.round();
            if let Some(value) = result.borrow_mut().take() {
                return value;
            }
            assert!(!task.is_finished() || result.borrow().is_some(), "the guest's task panicked");
        }
        panic!("no end after {DEADLINE:?}");
    }
    fn run_until_end_of(&mut self, thread: JoinHandle<()>) {
        let started = std::time::Instant::now();
        while !thread.is_finished() {
            self.round();
            assert!(started.elapsed() < DEADLINE, "the thread does not end");
        }
        join(thread);
    }
    fn run_for(&mut self, time: std::time::Duration) {
        let started = std::time::Instant::now();
        while started.elapsed() < time {
            self.round();
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.guest.stop();
    }
}

/// The system's loopback, as the guest sees it.
fn beyond(port: u16) -> Endpoint {
    Endpoint::new([10, 0, 2, 2], port)
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// One connection of the system's, served in a thread.
fn serve_one<T: Send + 'static>(
    serve: impl FnOnce(TcpStream) -> io::Result<T> + Send + 'static,
) -> (u16, JoinHandle<io::Result<T>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        serve(stream)
    });
    (port, thread)
}

fn echo(mut stream: TcpStream) -> io::Result<usize> {
    let (mut chunk, mut total) = (vec![0; 50_000], 0);
    loop {
        let length = stream.read(&mut chunk)?;
        if length == 0 {
            return Ok(total);
        }
        stream.write_all(&chunk[..length])?;
        total += length;
    }
}

fn reset_on_close(stream: &TcpStream) {
    rustix::net::sockopt::set_socket_linger(stream, Some(std::time::Duration::ZERO)).unwrap();
}

async fn exchange(stream: Stream, sent: Vec<u8>) -> Vec<u8> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut back = Vec::new();
    let write = async {
        writer.write_all(&sent).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    futures_lite::future::zip(write, reader.read_to_end(&mut back)).await.1.unwrap();
    back
}

#[test]
fn ten_megabytes_each_way_arrive_intact_and_memory_stays_bounded() {
    let mut rig = Rig::open();
    let (port, thread) = serve_one(echo);
    let guest = rig.guest.clone();
    let back = rig.run(async move {
        let stream = guest.connect(beyond(port)).await.unwrap();
        exchange(stream, pattern(10 << 20)).await
    });
    assert!(back == pattern(10 << 20));
    assert_eq!(join(thread).unwrap(), 10 << 20);
    let most = rig.most_bytes.get();
    assert!(most > 0 && most < 8 << 20, "the gateway held {most} bytes");
}

#[test]
fn each_side_can_close_and_still_listen() {
    let mut rig = Rig::open();
    let (port, thread) = serve_one(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all)?;
        stream.write_all(b"got ")?;
        stream.write_all(all.len().to_string().as_bytes())
    });
    let guest = rig.guest.clone();
    let answer = rig.run(async move {
        let stream = guest.connect(beyond(port)).await.unwrap();
        exchange(stream, pattern(100_000)).await
    });
    assert_eq!(answer, b"got 100000");
    join(thread).unwrap();

    let (port, thread) = serve_one(|mut stream| {
        stream.write_all(b"only this")?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut all = Vec::new();
        stream.read_to_end(&mut all)?;
        Ok(all.len())
    });
    let guest = rig.guest.clone();
    rig.run(async move {
        let mut stream = guest.connect(beyond(port)).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "only this");
        stream.write_all(&pattern(70_000)).await.unwrap();
        stream.shutdown();
    });
    rig.run_for(std::time::Duration::from_millis(100));
    assert_eq!(join(thread).unwrap(), 70_000);
    assert_eq!(rig.running.gateway.connections(), 0);
}

#[test]
fn resets_pass_both_ways() {
    let mut rig = Rig::open();
    let (port, thread) = serve_one(|mut stream| {
        // Reset before the guest is connected, the port would be one that refuses.
        stream.read_exact(&mut [0])?;
        reset_on_close(&stream);
        Ok(())
    });
    let guest = rig.guest.clone();
    rig.run(async move {
        let mut stream = guest.connect(beyond(port)).await.unwrap();
        stream.write_all(b"!").await.unwrap();
        assert!(stream.read(&mut [0; 10]).await.is_err(), "a reset is not an end of the stream");
    });
    join(thread).unwrap();

    let (port, thread) = serve_one(|mut stream| stream.read_to_end(&mut Vec::new()));
    let guest = rig.guest.clone();
    rig.run(async move {
        let mut stream = guest.connect(beyond(port)).await.unwrap();
        stream.write_all(b"something").await.unwrap();
        guest.sleep(Duration::from_millis(50)).await;
        stream.abort();
    });
    rig.run_for(std::time::Duration::from_millis(100));
    assert_eq!(join(thread).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(rig.running.gateway.counters().connections_reset, 2);
}

fn refused(error: &ConnectError) -> bool {
    let number = inhost_socket::errno::Errno::errno(error);
    io::Error::from_raw_os_error(number).kind() == ErrorKind::ConnectionRefused
}

#[test]
fn the_guest_is_refused_what_the_system_is_refused_and_what_is_not_allowed() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listening = TcpListener::bind("127.0.0.1:0").unwrap();
    let open = listening.local_addr().unwrap().port();
    let try_each = |mut rig: Rig, targets: Vec<Endpoint>| {
        let guest = rig.guest.clone();
        rig.run(async move {
            for to in targets {
                let error = guest.connect(to).await.unwrap_err();
                assert!(refused(&error), "{to}: {error}");
            }
        });
    };
    try_each(Rig::open(), vec![beyond(closed), Endpoint::new([127, 0, 0, 2], open)]);
    // By default the loopback is closed, however it is called.
    let only = {
        let mut config = GatewayConfig::default();
        config.loopback_ports = LoopbackPorts::Only(vec![closed]);
        config
    };
    try_each(Rig::new(only), vec![beyond(open), beyond(closed)]);
    let v6 = Endpoint::new("fd00:10:0:2::2".parse::<std::net::IpAddr>().unwrap(), open);
    let metadata = Endpoint::new([169, 254, 169, 254], 80);
    try_each(Rig::new(GatewayConfig::default()), vec![beyond(open), v6, metadata]);
}

#[test]
fn a_guest_that_does_not_read_stops_the_writer_on_the_other_side() {
    let mut rig = Rig::open();
    let (tell, reported) = std::sync::mpsc::channel();
    let (port, thread) = serve_one(move |mut stream| {
        stream.set_nonblocking(true)?;
        let (data, mut sent, mut idle) = (pattern(64 << 20), 0, 0);
        // Until nothing was taken for a fifth of a second.
        while idle < 20 {
            match stream.write(&data[sent..]) {
                Ok(taken) => (sent, idle) = (sent + taken, 0),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    idle += 1;
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                Err(error) => return Err(error),
            }
        }
        tell.send(sent).unwrap();
        Ok(sent)
    });
    let guest = rig.guest.clone();
    let mut stream = rig.run(async move { guest.connect(beyond(port)).await.unwrap() });
    let started = std::time::Instant::now();
    let sent = loop {
        rig.run_for(std::time::Duration::from_millis(20));
        if let Ok(sent) = reported.try_recv() {
            break sent;
        }
        assert!(started.elapsed() < DEADLINE);
    };
    // The system's own buffers are part of it; ours hold what their limits say.
    assert!(sent < 32 << 20, "{sent} bytes were taken from a writer whose reader does not read");
    assert!(rig.most_bytes.get() < 8 << 20);
    let received = rig.run(async move {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        all
    });
    assert_eq!(join(thread).unwrap(), sent);
    assert!(received == pattern(64 << 20)[..sent]);
}

#[test]
fn a_system_that_does_not_read_stops_the_guest() {
    let mut rig = Rig::open();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (port, thread) = serve_one(move |mut stream| {
        receive(&wait);
        let mut all = Vec::new();
        stream.read_to_end(&mut all)?;
        Ok(all)
    });
    let guest = rig.guest.clone();
    let sent = Rc::new(Cell::new(0));
    let count = sent.clone();
    let writer = guest.clone().spawn(async move {
        let mut stream = guest.connect(beyond(port)).await.unwrap();
        let data = pattern(32 << 20);
        while count.get() < data.len() {
            let taken = stream.write(&data[count.get()..]).await.unwrap();
            count.set(count.get() + taken);
        }
        stream.shutdown();
        stream
    });
    rig.run_for(std::time::Duration::from_millis(500));
    assert!(sent.get() > 0 && sent.get() < 24 << 20, "{} bytes", sent.get());
    assert!(rig.most_bytes.get() < 8 << 20);
    go.send(()).unwrap();
    let mut stream = rig.run(writer);
    assert_eq!(rig.run(async move { stream.read(&mut [0; 1]).await.unwrap() }), 0);
    assert!(join(thread).unwrap() == pattern(32 << 20));
}

#[test]
fn a_hundred_connections_at_once() {
    const CONNECTIONS: usize = 100;
    let mut rig = Rig::open();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let threads: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let (stream, _) = listener.accept().unwrap();
                std::thread::spawn(move || echo(stream).unwrap())
            })
            .collect();
        threads.into_iter().map(join).sum::<usize>()
    });
    let guest = rig.guest.clone();
    rig.run(async move {
        let mut tasks = Vec::new();
        for number in 0..CONNECTIONS {
            let host = guest.clone();
            tasks.push(guest.spawn(async move {
                let stream = host.connect(beyond(port)).await.unwrap();
                let sent = pattern(20_000 + number);
                assert!(exchange(stream, sent.clone()).await == sent);
            }));
        }
        for task in tasks {
            task.await;
        }
    });
    rig.run_for(std::time::Duration::from_millis(50));
    assert_eq!(join(server), CONNECTIONS * 20_000 + CONNECTIONS * (CONNECTIONS - 1) / 2);
    assert_eq!(rig.running.gateway.counters().connections_outward, CONNECTIONS as u64);
    assert_eq!(rig.running.gateway.connections(), 0);
}

/// A thread that sends every datagram back until stopped.
fn udp_echo() -> (u16, JoinHandle<usize>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    let port = socket.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (mut place, mut count) = (vec![0; 65_535], 0);
        loop {
            let (length, from) = socket.recv_from(&mut place).unwrap();
            if &place[..length] == b"stop" {
                return count;
            }
            socket.send_to(&place[..length], from).unwrap();
            count += 1;
        }
    });
    (port, thread)
}

#[test]
fn datagrams_go_out_and_their_answers_come_back() {
    let mut rig = Rig::open();
    let (port, thread) = udp_echo();
    let guest = rig.guest.clone();
    rig.run(async move {
        let any = Endpoint::new([0, 0, 0, 0], 0);
        let socket = guest.udp(any, UdpOptions::default()).unwrap();
        let mut place = vec![0; 65_535];
        for length in [0, 1, 1_000, 30_000, 60_000] {
            let sent = pattern(length);
            socket.send_to(&sent, beyond(port)).await.unwrap();
            let received = guest.timeout(Duration::from_secs(5), socket.receive_from(&mut place)).await;
            let received = received.unwrap().unwrap();
            assert_eq!((received.from, received.length_bytes), (beyond(port), length));
            assert!(place[..length] == sent);
        }
        socket.send_to(b"stop", beyond(port)).await.unwrap();
        guest.sleep(Duration::from_millis(20)).await;
    });
    assert_eq!(join(thread), 5);
    assert_eq!(rig.running.gateway.counters().udp_flows, 1);
}

#[test]
fn a_closed_port_is_reported_to_a_connected_socket() {
    let mut rig = Rig::open();
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let guest = rig.guest.clone();
    rig.run(async move {
        // Nobody listens at the first; the second is not allowed.
        for to in [beyond(closed), Endpoint::new([127, 0, 0, 9], closed)] {
            let socket = guest.udp(Endpoint::new([10, 0, 2, 15], 0), UdpOptions::default()).unwrap();
            socket.connect(to).unwrap();
            socket.send(b"anyone?").await.unwrap();
            let answer =
                guest.timeout(Duration::from_secs(5), socket.receive_from(&mut [0; 10])).await.unwrap();
            assert!(matches!(answer, Err(DatagramError::Stack(_))), "{to}: {answer:?}");
        }
    });
}

/// TFTP's server answers from a port of its own (RFC 1350 §4): the gateway's socket is not connected.
#[test]
fn a_closed_port_is_reported_to_who_asks_for_a_file() {
    let mut rig = Rig::open();
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let asked = server.local_addr().unwrap().port();
    let answers = std::thread::spawn(move || {
        server.set_read_timeout(Some(DEADLINE)).unwrap();
        let (_, from) = server.recv_from(&mut [0; 100]).unwrap();
        // Gone once it has answered.
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"\0\x03\0\x01data", from).unwrap();
    });
    let guest = rig.guest.clone();
    rig.run(async move {
        const REQUEST: &[u8] = b"\0\x01file\0octet\0";
        let mut place = [0; 100];
        let socket = guest.udp(Endpoint::new([10, 0, 2, 15], 0), UdpOptions::default()).unwrap();
        socket.connect(beyond(closed)).unwrap();
        for _ in 0..2 {
            socket.send(REQUEST).await.unwrap();
            let answer =
                guest.timeout(Duration::from_secs(5), socket.receive_from(&mut place)).await.unwrap();
            assert!(matches!(answer, Err(DatagramError::Stack(_))), "{answer:?}");
        }
        let socket = guest.udp(Endpoint::new([10, 0, 2, 15], 0), UdpOptions::default()).unwrap();
        socket.send_to(REQUEST, beyond(asked)).await.unwrap();
        let answer = guest.timeout(Duration::from_secs(5), socket.receive_from(&mut place)).await;
        let gone = answer.unwrap().unwrap().from;
        assert_ne!(gone.port, asked);
        // Its socket is closed for certain.
        join(answers);
        socket.connect(gone).unwrap();
        socket.send(b"\0\x04\0\x01").await.unwrap();
        let answer = guest.timeout(Duration::from_secs(5), socket.receive_from(&mut place)).await.unwrap();
        assert!(matches!(answer, Err(DatagramError::Stack(_))), "{answer:?}");
    });
}

#[test]
fn udp_conversations_are_bounded() {
    let config = {
        let mut config = GatewayConfig::default();
        config.loopback_ports = LoopbackPorts::All;
        config.udp_flows_limit = 8;
        config
    };
    let mut rig = Rig::new(config);
    let (port, thread) = udp_echo();
    let guest = rig.guest.clone();
    rig.run(async move {
        for _ in 0..100 {
            let socket = guest.udp(Endpoint::new([0, 0, 0, 0], 0), UdpOptions::default()).unwrap();
            socket.send_to(b"x", beyond(port)).await.unwrap();
            let received = guest.timeout(Duration::from_secs(5), socket.receive_from(&mut [0; 10])).await;
            assert_eq!(received.unwrap().unwrap().length_bytes, 1);
        }
        let socket = guest.udp(Endpoint::new([0, 0, 0, 0], 0), UdpOptions::default()).unwrap();
        socket.send_to(b"stop", beyond(port)).await.unwrap();
        guest.sleep(Duration::from_millis(20)).await;
    });
    assert_eq!(join(thread), 100);
    let gateway = &rig.running.gateway;
    assert_eq!((gateway.counters().udp_flows, gateway.udp_flows()), (101, 8));
}

#[test]
fn a_silent_udp_conversation_is_forgotten() {
    let mut config = GatewayConfig::default();
    config.loopback_ports = LoopbackPorts::All;
    config.udp_idle = Duration::from_millis(1_000);
    let mut rig = Rig::new(config);
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    peer.set_read_timeout(Some(DEADLINE)).unwrap();
    let to = beyond(peer.local_addr().unwrap().port());
    let socket = rig.guest.udp(Endpoint::new([0, 0, 0, 0], 0), UdpOptions::default()).unwrap();
    let socket = Rc::new(socket);
    let mut source = None;
    // Moving keeps it; silence longer than the limit ends it, and the next datagram begins another.
    for (pause_ms, same) in [(0, true), (400, true), (400, true), (400, true), (1_500, false)] {
        rig.run_for(std::time::Duration::from_millis(pause_ms));
        let sender = socket.clone();
        rig.run(async move { sender.send_to(b"x", to).await.unwrap() });
        rig.run_for(std::time::Duration::from_millis(20));
        let from = peer.recv_from(&mut [0; 10]).unwrap().1;
        assert_eq!(*source.get_or_insert(from) == from, same, "after {pause_ms} ms");
        assert_eq!(rig.running.gateway.udp_flows(), 1);
    }
    rig.run_for(std::time::Duration::from_millis(1_500));
    assert_eq!(rig.running.gateway.udp_flows(), 0);
}

/// As at a handover: the next process is to have the port, though answers were still awaited.
#[test]
fn a_udp_port_is_free_once_forwarding_stops() {
    let mut config = GatewayConfig::default();
    let outside = "127.0.0.1:0".parse().unwrap();
    config.forwards = vec![Forward { transport: Transport::Udp, outside, guest_port: 7 }];
    let mut rig = Rig::new(config);
    let at = rig.running.gateway.forwards()[0].outside;
    let caller = UdpSocket::bind("127.0.0.1:0").unwrap();
    caller.send_to(b"anyone?", at).unwrap();
    rig.run_for(std::time::Duration::from_millis(50));
    assert_eq!(rig.running.gateway.udp_flows(), 1);
    rig.running.gateway.stop_forwarding();
    rig.run_for(std::time::Duration::from_millis(50));
    drop(UdpSocket::bind(at).unwrap());
    rig.running.gateway.resume_forwarding().unwrap();
    assert_eq!(rig.running.gateway.forwards()[0].outside, at);
}

#[test]
fn ports_lead_inward() {
    let outside = "127.0.0.1:0".parse().unwrap();
    let mut rig = Rig::new({
        let mut config = GatewayConfig::default();
        config.forwards = vec![
            Forward { transport: Transport::Tcp, outside, guest_port: 7 },
            Forward { transport: Transport::Udp, outside, guest_port: 7 },
            Forward { transport: Transport::Tcp, outside, guest_port: 8 },
        ];
        config
    });
    let at: Vec<_> = rig.running.gateway.forwards().iter().map(|forward| forward.outside).collect();
    let guest = rig.guest.clone();
    let listener = guest.listen(Endpoint::new([0, 0, 0, 0], 7), ListenOptions::default()).unwrap();
    let echoing = guest.spawn(async move {
        while let Ok(stream) = listener.accept().await {
            assert_eq!(stream.remote().address.to_string(), "10.0.2.2");
            let (mut reader, mut writer) = tokio::io::split(stream);
            let mut chunk = vec![0; 20_000];
            loop {
                let length = reader.read(&mut chunk).await.unwrap();
                if length == 0 {
                    break;
                }
                writer.write_all(&chunk[..length]).await.unwrap();
            }
            writer.shutdown().await.unwrap();
        }
    });
    let socket = guest.udp(Endpoint::new([0, 0, 0, 0], 7), UdpOptions::default()).unwrap();
    let answering = guest.spawn(async move {
        let mut place = vec![0; 65_535];
        while let Ok(received) = socket.receive_from(&mut place).await {
            socket.send_between(&place[..received.length_bytes], Ends::back(&received)).await.unwrap();
        }
    });
    let client = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(at[0]).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let sent = pattern(3 << 20);
        let mut writer = stream.try_clone().unwrap();
        let outgoing = sent.clone();
        let writing = std::thread::spawn(move || {
            writer.write_all(&outgoing).unwrap();
            writer.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        join(writing);
        assert!(back == sent);
        for number in 0..10u8 {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(DEADLINE)).unwrap();
            socket.send_to(&[number; 3], at[1]).unwrap();
            let mut place = [0; 10];
            let (length, from) = socket.recv_from(&mut place).unwrap();
            assert_eq!((&place[..length], from), (&[number; 3][..], at[1]));
        }
        // Nobody listens at the guest's port 8.
        let mut shut = TcpStream::connect(at[2]).unwrap();
        shut.set_read_timeout(Some(DEADLINE)).unwrap();
        assert_eq!(shut.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
    rig.run_until_end_of(client);
    drop((echoing, answering));
    let counters = rig.running.gateway.counters();
    assert_eq!((counters.connections_inward, counters.connections_refused), (1, 1));
}

/// A connection of the system's from one of its loopback addresses.
fn connect_from(address: [u8; 4], to: std::net::SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &std::net::SocketAddr::from((address, 0))).unwrap();
    connect(&socket, &to).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
}

#[test]
fn one_outer_caller_takes_no_place_of_the_others() {
    let outside = "127.0.0.1:0".parse().unwrap();
    let mut config = GatewayConfig::default();
    config.forwards = vec![Forward { transport: Transport::Tcp, outside, guest_port: 7 }];
    config.connections_limit = 6;
    config.connections_per_caller = 4;
    let mut rig = Rig::new(config);
    let at = rig.running.gateway.forwards()[0].outside;
    let (guest, listener) = (
        rig.guest.clone(),
        rig.guest.listen(Endpoint::new([0, 0, 0, 0], 7), ListenOptions::default()).unwrap(),
    );
    rig.guest
        .spawn(async move {
            while let Ok(mut stream) = listener.accept().await {
                guest
                    .spawn(async move {
                        let _ = stream.write_all(b"!").await;
                        let _ = stream.read(&mut [0; 1]).await;
                    })
                    .detach();
            }
        })
        .detach();
    let client = std::thread::spawn(move || {
        let is_served = |stream: &mut TcpStream| stream.read_exact(&mut [0]).is_ok();
        let mut greedy: Vec<_> = (0..10).map(|_| connect_from([127, 0, 0, 2], at)).collect();
        greedy.retain_mut(is_served);
        assert_eq!(greedy.len(), 4);
        let mut others: Vec<_> = (3..6).map(|last| connect_from([127, 0, 0, last], at)).collect();
        others.retain_mut(is_served);
        assert_eq!(others.len(), 2, "the places of all together are 6");
        // A place that is given back is the caller's again.
        greedy.pop();
        let began = std::time::Instant::now();
        while !is_served(&mut connect_from([127, 0, 0, 2], at)) {
            assert!(began.elapsed() < DEADLINE);
        }
    });
    rig.run_until_end_of(client);
}

#[test]
fn the_service_knows_the_outer_caller_of_all_that_is_forwarded() {
    let outside = "127.0.0.1:0".parse().unwrap();
    let mut config = GatewayConfig::default();
    config.forwards = vec![
        Forward { transport: Transport::Tcp, outside, guest_port: 7 },
        Forward { transport: Transport::Udp, outside, guest_port: 7 },
    ];
    let callers = config.callers.clone();
    let mut rig = Rig::new(config);
    let at: Vec<_> = rig.running.gateway.forwards().iter().map(|forward| forward.outside).collect();
    let guest = rig.guest.clone();
    let listener = guest.listen(Endpoint::new([0, 0, 0, 0], 7), ListenOptions::default()).unwrap();
    let (table, host) = (callers.clone(), guest.clone());
    let saying = guest.spawn(async move {
        while let Ok(mut stream) = listener.accept().await {
            let caller = table.of(Transport::Tcp, stream.remote());
            host.spawn(async move {
                stream.write_all(caller.to_string().as_bytes()).await.unwrap();
                stream.shutdown();
                let _ = stream.read(&mut [0; 1]).await;
            })
            .detach();
        }
    });
    let socket = guest.udp(Endpoint::new([0, 0, 0, 0], 7), UdpOptions::default()).unwrap();
    let table = callers.clone();
    let answering = guest.spawn(async move {
        while let Ok(received) = socket.receive_from(&mut [0; 100]).await {
            let caller = table.of(Transport::Udp, received.from).to_string();
            socket.send_between(caller.as_bytes(), Ends::back(&received)).await.unwrap();
        }
    });
    let client = std::thread::spawn(move || {
        // More at once than the gateway polls tasks in a round.
        let both = |number: u16| if number.is_multiple_of(2) { [127, 0, 0, 2] } else { [127, 0, 0, 3] };
        let streams: Vec<_> = (0..400).map(|number| connect_from(both(number), at[0])).collect();
        for mut stream in streams {
            let mut reported = String::new();
            stream.read_to_string(&mut reported).unwrap();
            assert_eq!(reported, stream.local_addr().unwrap().to_string());
        }
        for address in [[127, 0, 0, 2], [127, 0, 0, 3]] {
            let socket = UdpSocket::bind((std::net::Ipv4Addr::from(address), 0)).unwrap();
            socket.set_read_timeout(Some(DEADLINE)).unwrap();
            socket.send_to(b"?", at[1]).unwrap();
            let mut reported = [0; 100];
            let (length, _) = socket.recv_from(&mut reported).unwrap();
            assert_eq!(reported[..length], *socket.local_addr().unwrap().to_string().as_bytes());
        }
    });
    rig.run_until_end_of(client);
    drop((saying, answering));
    rig.run_for(std::time::Duration::from_millis(100));
    // What is over is forgotten.
    let entered = (49_152..=65_535).filter(|&port| callers.forwarded(Transport::Tcp, beyond(port)).is_some());
    assert_eq!(entered.count(), 0);
}

#[test]
fn names_are_asked_of_the_systems_servers_and_of_the_next_when_one_is_silent() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    // A port that is free for datagrams may be taken for connections.
    let (tcp, port, thread) = loop {
        let (port, thread) = udp_echo();
        if let Ok(tcp) = TcpListener::bind(("127.0.0.1", port)) {
            break (tcp, port, thread);
        }
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"stop", ("127.0.0.1", port)).unwrap();
        join(thread);
    };
    let tcp = std::thread::spawn(move || echo(tcp.accept().unwrap().0).unwrap());
    let mut config = GatewayConfig::default();
    config.resolvers = vec![silent.local_addr().unwrap().into(), Endpoint::new([127, 0, 0, 1], port)];
    let mut rig = Rig::new(config);
    let guest = rig.guest.clone();
    rig.run(async move {
        let names = Endpoint::new([10, 0, 2, 3], 53);
        let socket = guest.udp(Endpoint::new([0, 0, 0, 0], 0), UdpOptions::default()).unwrap();
        let mut answered = false;
        for _ in 0..5 {
            socket.send_to(b"question", names).await.unwrap();
            let mut place = [0; 100];
            let wait = Duration::from_millis(800);
            if let Ok(received) = guest.timeout(wait, socket.receive_from(&mut place)).await {
                let received = received.unwrap();
                assert_eq!((received.from, &place[..received.length_bytes]), (names, &b"question"[..]));
                answered = true;
                break;
            }
        }
        assert!(answered, "the second server was never asked");
        let stream = guest.connect(Endpoint::new([10, 0, 2, 2], 53)).await.unwrap();
        assert_eq!(exchange(stream, b"a long question".to_vec()).await, b"a long question");
        socket.send_to(b"stop", names).await.unwrap();
        guest.sleep(Duration::from_millis(20)).await;
    });
    join(thread);
    assert_eq!(join(tcp), 15);
}

#[test]
fn the_gateway_answers_echo_and_speaks_for_no_one_else() {
    let mut rig = Rig::new(GatewayConfig::default());
    let guest = rig.guest.clone();
    rig.run(async move {
        for own in ["10.0.2.2", "10.0.2.3", "fd00:10:0:2::2"] {
            let socket = guest.echo().unwrap();
            socket.send(own.parse().unwrap(), 1, b"are you there").await.unwrap();
            let mut place = [0; 100];
            let reply = guest.timeout(Duration::from_secs(5), socket.receive(&mut place)).await;
            let reply = reply.unwrap().unwrap();
            assert_eq!((reply.from.to_string().as_str(), reply.sequence), (own, 1));
            assert_eq!(&place[..reply.length_bytes], b"are you there");
        }
        // Closed to the guest: no forged answer, and an ICMP error gives the reason.
        for closed in ["169.254.169.254", "10.0.2.77"] {
            let socket = guest.echo().unwrap();
            socket.send(closed.parse().unwrap(), 1, b"?").await.unwrap();
            let mut place = [0; 100];
            let answer = guest.timeout(Duration::from_secs(1), socket.receive(&mut place)).await;
            assert!(matches!(answer, Ok(Err(DatagramError::Stack(_)))), "{closed}: {answer:?}");
        }
    });
}

/// The system's echo sockets, where permitted; otherwise the guest gets an ICMP error.
#[test]
fn echo_to_others_goes_through_the_system_or_is_prohibited() {
    // The system's own address on whatever network it has; nothing is sent.
    let probe = UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = probe.connect("192.0.2.1:9").and_then(|()| probe.local_addr());
    let Ok(own) = own.map(|address| address.ip()) else {
        println!("the system has no network: no address to ask for an echo");
        return;
    };
    let icmp = Some(rustix::net::ipproto::ICMP);
    let allowed = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, icmp);
    let mut rig = Rig::new(GatewayConfig::default());
    let guest = rig.guest.clone();
    let answers = rig.run(async move {
        let socket = guest.echo().unwrap();
        let mut answers = Vec::new();
        for sequence in [1, 700] {
            socket.send(own, sequence, b"across").await.unwrap();
            let mut place = [0; 100];
            let answer = guest.timeout(Duration::from_secs(5), socket.receive(&mut place)).await.unwrap();
            answers
                .push(answer.map(|reply| (reply.from, reply.sequence, place[..reply.length_bytes].to_vec())));
        }
        answers
    });
    if allowed.is_ok() {
        assert_eq!(answers, [Ok((own, 1, b"across".to_vec())), Ok((own, 700, b"across".to_vec()))]);
        assert_eq!(rig.running.gateway.counters().echoes, 2);
    } else {
        assert!(answers.iter().all(Result::is_err), "{answers:?}");
    }
}

#[test]
fn ipv6_passes_as_ipv4_does() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        println!("the system has no IPv6");
        return;
    };
    let port = listener.local_addr().unwrap().port();
    let tcp = std::thread::spawn(move || echo(listener.accept().unwrap().0).unwrap());
    let udp = UdpSocket::bind(("::1", port)).unwrap();
    udp.set_read_timeout(Some(DEADLINE)).unwrap();
    let udp = std::thread::spawn(move || {
        let mut place = [0; 100];
        let (length, from) = udp.recv_from(&mut place).unwrap();
        udp.send_to(&place[..length], from).unwrap();
    });
    let mut rig = Rig::open();
    let guest = rig.guest.clone();
    rig.run(async move {
        let to = Endpoint::new("fd00:10:0:2::2".parse::<std::net::IpAddr>().unwrap(), port);
        let stream = guest.connect(to).await.unwrap();
        assert_eq!(stream.local().address.to_string(), "fd00:10:0:2::15");
        assert!(exchange(stream, pattern(1 << 20)).await == pattern(1 << 20));
        let any = Endpoint::new("::".parse::<std::net::IpAddr>().unwrap(), 0);
        let socket = guest.udp(any, UdpOptions::default()).unwrap();
        socket.send_to(b"six", to).await.unwrap();
        let mut place = [0; 100];
        let received = guest.timeout(Duration::from_secs(5), socket.receive_from(&mut place)).await;
        let received = received.unwrap().unwrap();
        assert_eq!((received.from, &place[..received.length_bytes]), (to, &b"six"[..]));
    });
    assert_eq!(join(tcp), 1 << 20);
    join(udp);
}

#[test]
fn the_runtime_drives_it_like_any_link() {
    let mut config = GatewayConfig::default();
    config.loopback_ports = LoopbackPorts::All;
    let mut runtime = inhost_runtime::Runtime::new(StackConfig::default()).unwrap();
    let guest = runtime.host().clone();
    let interface = guest_interface("user0", &config);
    let (driver, running) = user_link(&guest, config, runtime.handle(), [3; 32]).unwrap().split();
    runtime.add_link(&guest, interface, Box::new(driver)).unwrap();
    let (port, thread) = serve_one(echo);
    let started = std::time::Instant::now();
    let work = async {
        let stream = guest.connect(beyond(port)).await.unwrap();
        exchange(stream, pattern(4 << 20)).await
    };
    let back = runtime.run(guest.timeout(Duration::from_secs(30), work)).unwrap().unwrap();
    assert!(back == pattern(4 << 20));
    assert_eq!(join(thread).unwrap(), 4 << 20);
    // Nothing in it waits for a timer.
    assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(running.gateway.counters().connections_outward, 1);
}

/// Whether the system lets anybody listen at the IPv6 loopback.
fn has_ipv6() -> bool {
    TcpListener::bind("[::1]:0").is_ok()
}

#[test]
fn ports_lead_inward_over_ipv6_to_the_guests_ipv6_address() {
    if !has_ipv6() {
        return;
    }
    let outside = "[::1]:0".parse().unwrap();
    let forward = |transport, guest_port| Forward { transport, outside, guest_port };
    let forwards = vec![forward(Transport::Tcp, 7), forward(Transport::Udp, 7), forward(Transport::Tcp, 8)];
    let mut rig = Rig::new({
        let mut config = GatewayConfig::default();
        config.forwards = forwards;
        config
    });
    let at: Vec<_> = rig.running.gateway.forwards().iter().map(|forward| forward.outside).collect();
    let guest = rig.guest.clone();
    let any_v6 = std::net::Ipv6Addr::UNSPECIFIED;
    // One that knows both families, and one that knows only the older.
    for (local, expected) in
        [(Endpoint::new(any_v6, 7), "fd00:10:0:2::2"), (Endpoint::new([0, 0, 0, 0], 8), "10.0.2.2")]
    {
        let listener = guest.listen(local, ListenOptions::default()).unwrap();
        let serve = async move {
            while let Ok(stream) = listener.accept().await {
                assert_eq!(stream.remote().address.to_string(), expected);
                let (mut reader, mut writer) = tokio::io::split(stream);
                let mut text = Vec::new();
                reader.read_to_end(&mut text).await.unwrap();
                writer.write_all(&text).await.unwrap();
                writer.shutdown().await.unwrap();
            }
        };
        guest.spawn(serve).detach();
    }
    let socket = guest.udp(Endpoint::new(any_v6, 7), UdpOptions::default()).unwrap();
    let answer = async move {
        let mut place = vec![0; 100];
        while let Ok(received) = socket.receive_from(&mut place).await {
            socket.send_between(&place[..received.length_bytes], Ends::back(&received)).await.unwrap();
        }
    };
    guest.spawn(answer).detach();
    let client = std::thread::spawn(move || {
        for at in [at[0], at[2]] {
            let mut stream = TcpStream::connect(at).unwrap();
            stream.set_read_timeout(Some(DEADLINE)).unwrap();
            stream.write_all(b"there and back").unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut back = Vec::new();
            stream.read_to_end(&mut back).unwrap();
            assert_eq!(back, b"there and back");
        }
        let socket = UdpSocket::bind("[::1]:0").unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        socket.send_to(b"datagram", at[1]).unwrap();
        let mut place = [0; 10];
        assert_eq!(socket.recv_from(&mut place).unwrap(), (8, at[1]));
    });
    rig.run_until_end_of(client);
    assert_eq!(rig.running.gateway.counters().connections_inward, 2);
}

#[test]
fn a_reset_of_the_systems_is_passed_on_to_a_guest_that_does_not_read() {
    let mut rig = Rig::open();
    let (port, thread) = serve_one(|mut stream| {
        // More than the guest takes without reading.
        stream.set_nonblocking(true)?;
        let piece = vec![7; 1 << 16];
        let began = std::time::Instant::now();
        while began.elapsed() < std::time::Duration::from_millis(700) {
            match stream.write(&piece) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                written => {
                    written?;
                }
            }
        }
        reset_on_close(&stream);
        Ok(())
    });
    let guest = rig.guest.clone();
    let ended = rig.run(async move {
        let stream = guest.connect(beyond(port)).await.unwrap();
        // It never reads.
        guest.timeout(Duration::from_secs(20), stream.closed()).await
    });
    join(thread).unwrap();
    let counters = rig.running.gateway.counters();
    assert_eq!(ended, Ok(Err(inhost_socket::ConnectionError::Reset)), "{counters:?}");
    assert_eq!(rig.running.gateway.counters().connections_reset, 1);
}
