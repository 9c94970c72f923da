//! A connection to the Linux kernel whose end moves to another process: a stack on a TUN device is frozen in the middle of
//! a transfer, and a second process thaws it, opens the device anew and goes on. Needs root.

use inhost_buf::Batch;
use inhost_interop::DEADLINE;
use inhost_link::{Driver, Tunnel, TunnelConfig};
use inhost_stack::{
    AnySocketId, ConnectOptions, Duration, Endpoint, Ignore, Instant, InterfaceConfig, Ipv4Addr, Key, LinkId,
    Medium, SocketId, Stack, StackConfig, TcpSocketId,
};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

/// Bytes that the stack sends, and after how many it moves.
const STREAM_BYTES: usize = 2_000_000;
const MOVES_AFTER_BYTES: usize = 500_000;
const LINK: LinkId = LinkId(1);
/// What the kernel's end says when it has got everything.
const THANKS: &[u8] = b"all of it";

fn byte(at: usize) -> u8 {
    (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}

fn tunnel() -> Tunnel {
    let config = TunnelConfig {
        mtu_bytes: 1500,
        host_addresses: vec!["10.79.0.1/24".parse().unwrap()],
        ..TunnelConfig::new("intest2", false)
    };
    Tunnel::open(config).unwrap()
}

/// A stack on a device. Its time goes on from when it was frozen.
struct Running {
    stack: Stack,
    tunnel: Tunnel,
    socket: TcpSocketId,
    sent: usize,
    /// What this process sends of the stream.
    most: usize,
    began: std::time::Instant,
    first: Instant,
}

impl Running {
    #[allow(clippy::disallowed_methods)] // The driver's clock.
    fn new(stack: Stack, tunnel: Tunnel, socket: TcpSocketId, sent: usize, most: usize) -> Running {
        let first = stack.instruments().now();
        Running { stack, tunnel, socket, sent, most, began: std::time::Instant::now(), first }
    }
    fn now(&self) -> Instant {
        self.first + Duration::from_nanos(self.began.elapsed().as_nanos() as u64)
    }
    /// A round: frames up, timers, the application, frames down.
    fn round(&mut self) {
        let (now, mut batch) = (self.now(), Batch::new());
        self.tunnel.receive(self.stack.pool(), &mut batch).unwrap();
        let is_idle = batch.is_empty();
        self.stack.receive(LINK, &mut batch, now, &mut Ignore);
        self.stack.timeout(now, &mut Ignore);
        while self.sent < self.most {
            let end = self.most.min(self.sent + 4096);
            let bytes: Vec<u8> = (self.sent..end).map(byte).collect();
            match self.stack.tcp(now, &mut Ignore).send(self.socket, &bytes) {
                Ok(count) if count > 0 => self.sent += count,
                _ => break,
            }
        }
        while self.stack.transmit(LINK, now, 64, &mut self.tunnel, &mut Ignore).more {}
        if is_idle {
            std::thread::park_timeout(std::time::Duration::from_micros(200));
        }
    }
}

/// The other process.
fn other_process(path: OsString) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let stack = Stack::thaw(&std::fs::read(path).unwrap(), 64 << 20).unwrap();
    let socket = SocketId(Key::from_bits(number("INHOST_SOCKET").unwrap()));
    let socket = stack.typed(socket).and_then(AnySocketId::tcp).expect("the connection, by its identifier");
    let sent = number("INHOST_SENT").unwrap() as usize;
    let mut running = Running::new(stack, tunnel(), socket, sent, STREAM_BYTES);
    let mut answer = Vec::new();
    while answer != THANKS {
        running.round();
        let (now, mut place) = (running.now(), [0; 100]);
        if let Ok(count) = running.stack.tcp(now, &mut Ignore).read(socket, &mut place) {
            answer.extend_from_slice(&place[..count]);
        }
        assert!(running.began.elapsed() < DEADLINE, "{} bytes sent", running.sent);
    }
    let now = running.now();
    running.stack.close(socket, now, &mut Ignore).unwrap();
    for _ in 0..100 {
        running.round();
    }
}

#[test]
fn the_kernels_peer_moves_to_another_process_in_the_middle_of_a_transfer() {
    if let Some(path) = std::env::var_os("INHOST_FROZEN") {
        return other_process(path);
    }
    if !inhost_interop::own_network() {
        return;
    }
    let device = tunnel();
    let listener = TcpListener::bind("10.79.0.1:7000").unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut stack = Stack::new(StackConfig::default(), [5; 32], Instant::from_millis(1));
    let config = InterfaceConfig::new("wire", Medium::Ip).with_address("10.79.0.2/24".parse().unwrap());
    let now = stack.instruments().now();
    assert_eq!(stack.add_link(config, now), Ok(LINK));
    let to = Endpoint::new(Ipv4Addr::new(10, 79, 0, 1), 7000);
    let socket = stack.tcp(now, &mut Ignore).connect(to, ConnectOptions::default()).unwrap();
    // The rest is for the other process.
    let mut running = Running::new(stack, device, socket, 0, STREAM_BYTES / 2);
    let mut kernel = loop {
        running.round();
        assert!(running.began.elapsed().as_secs() < 10, "no connection");
        if let Ok((stream, _)) = listener.accept() {
            break stream;
        }
    };
    kernel.set_nonblocking(true).unwrap();
    let mut received = 0;
    let mut place = vec![0; 4096];
    let check = |bytes: &[u8], received: &mut usize| {
        assert!(bytes.iter().enumerate().all(|(at, &found)| found == byte(*received + at)));
        *received += bytes.len();
    };
    while received < MOVES_AFTER_BYTES {
        running.round();
        if let Ok(count) = kernel.read(&mut place) {
            check(&place[..count], &mut received);
        }
        assert!(running.began.elapsed().as_secs() < 30, "{received} bytes received");
    }
    let path = std::env::temp_dir().join(format!("inhost-kernel-frozen-{}", std::process::id()));
    std::fs::write(&path, running.stack.freeze().unwrap()).unwrap();
    let sent = running.sent;
    // With the device goes its address; the kernel keeps the connection and sends again.
    drop(running);
    let mut other = Command::new(std::env::current_exe().unwrap());
    other
        .args([
            "--exact",
            "freeze::the_kernels_peer_moves_to_another_process_in_the_middle_of_a_transfer",
            "--nocapture",
        ])
        .env("INHOST_FROZEN", &path)
        .env("INHOST_SOCKET", socket.key().to_bits().to_string())
        .env("INHOST_SENT", sent.to_string());
    let mut other = inhost_interop::Running::spawn(&mut other);
    kernel.set_nonblocking(false).unwrap();
    kernel.set_read_timeout(Some(DEADLINE)).unwrap();
    while received < STREAM_BYTES {
        let count = kernel.read(&mut place).unwrap();
        assert_ne!(count, 0, "the stream ended after {received} bytes");
        check(&place[..count], &mut received);
    }
    kernel.write_all(THANKS).unwrap();
    assert_eq!(kernel.read(&mut place).unwrap(), 0, "the end of the stream");
    drop(kernel);
    assert!(other.wait().success());
    std::fs::remove_file(&path).unwrap();
}
