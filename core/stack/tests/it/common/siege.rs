//! One host among many callers: honest ones, who are a host of their own, and others, whom the test plays.

use super::packets::{Kept, Sent, parse_segment, segment_frame};
use super::{LINK, address, endpoint, interface};
use inhost_base::{Duration, Endpoint, Instant, Ipv4Addr, Sequence};
use inhost_buf::Batch;
use inhost_event::Ignore;
use inhost_stack::{
    AnySocketId, ConnectOptions, ListenOptions, ListenerId, Medium, Readiness, Stack, StackConfig,
    TcpSocketId,
};
use inhost_wire::tcp::{Flags, TcpHeader, TcpOptions};
use std::collections::BTreeMap;

/// Says what it hears.
pub const ECHO: u16 = 7;
/// Reads what comes.
pub const DISCARD: u16 = 9;
/// Talks without end.
pub const CHARGEN: u16 = 19;

/// What the host said last to a caller that the test plays.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    pub next: Sequence,
    pub acknowledgment: Sequence,
    pub window_bytes: u32,
    pub scale: u8,
}

pub struct Siege {
    pub host: Stack,
    pub honest: Stack,
    pub now: Instant,
    /// By the caller's end, for as long as the host has not reset it.
    pub said: BTreeMap<Endpoint, Said>,
    /// Of the services' connections, by their port.
    pub served: BTreeMap<TcpSocketId, u16>,
    listeners: Vec<ListenerId>,
    /// Bytes that the services have read.
    pub read_bytes: u64,
    /// What callers say that they take in a segment.
    pub mss: u16,
}

impl Siege {
    pub fn new(config: StackConfig) -> Siege {
        let now = Instant::from_millis(1_000);
        let stack = |config: StackConfig, host: usize| {
            let mut stack = Stack::new(config, [host as u8 + 7; 32], now);
            stack.add_link(interface(host, Medium::Ip), now).unwrap();
            stack
        };
        let mut siege = Siege {
            host: stack(config, 0),
            honest: stack(StackConfig::default(), 1),
            now,
            said: BTreeMap::new(),
            served: BTreeMap::new(),
            listeners: Vec::new(),
            read_bytes: 0,
            mss: 1460,
        };
        for port in [ECHO, DISCARD, CHARGEN] {
            let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, port);
            siege
                .listeners
                .push(siege.host.tcp(now, &mut Ignore).listen(any, ListenOptions::default()).unwrap());
        }
        siege
    }
    /// The end of a caller that the test plays.
    pub fn caller(number: usize) -> Endpoint {
        let last = 10 + (number % 200) as u8;
        Endpoint::new(Ipv4Addr::new(10, 0, 0, last), 1024 + (number / 200) as u16)
    }
    /// A segment from a caller.
    pub fn throw(&mut self, from: Endpoint, to: u16, header: TcpHeader, payload: &[u8]) {
        let frame = segment_frame(from, endpoint(0, to), header, payload);
        deliver(&mut self.host, &frame, self.now);
    }
    /// Opens connections from callers to `port`, with `window` for ever.
    pub fn open(&mut self, callers: core::ops::Range<usize>, port: u16, window: u16) {
        for number in callers {
            let from = Siege::caller(number);
            let options = TcpOptions { mss: Some(self.mss), window_scale: Some(7), ..TcpOptions::NONE };
            let syn = TcpHeader {
                sequence: Sequence(1000),
                flags: Flags::SYN,
                window,
                options,
                ..TcpHeader::default()
            };
            self.throw(from, port, syn, b"");
            self.round(Duration::ZERO);
            if let Some(said) = self.said.get(&from).copied() {
                self.acknowledge(from, port, said, window);
                self.round(Duration::from_micros(10));
            }
        }
    }
    /// Acknowledges all that was said.
    pub fn acknowledge(&mut self, from: Endpoint, port: u16, said: Said, window: u16) {
        let Said { next, acknowledgment, .. } = said;
        let header = TcpHeader {
            sequence: acknowledgment,
            acknowledgment: next,
            flags: Flags::ACK,
            window,
            ..TcpHeader::default()
        };
        self.throw(from, port, header, b"");
    }
    /// Sends up to `pieces` of one byte to [`DISCARD`]: every other one that a caller may send, and never the one that is due.
    pub fn scatter(&mut self, from: Endpoint, pieces: u32) {
        let Some(said) = self.said.get(&from).copied() else { return };
        for piece in 0..pieces.min(said.window_bytes.saturating_sub(2) / 2) {
            let header = TcpHeader {
                sequence: said.acknowledgment + (1 + 2 * piece),
                acknowledgment: said.next,
                flags: Flags::ACK,
                window: 60_000,
                ..TcpHeader::default()
            };
            self.throw(from, DISCARD, header, b"x");
        }
    }
    /// One round of both hosts, `time` later.
    pub fn round(&mut self, time: Duration) {
        self.now += time;
        let now = self.now;
        for stack in [&mut self.host, &mut self.honest] {
            if stack.deadline().is_some_and(|deadline| deadline <= now) {
                stack.timeout(now, &mut Ignore);
            }
        }
        self.serve();
        for frame in sent_by(&mut self.host, now) {
            match parse_segment(&frame) {
                Some(Sent { to, .. }) if to.address == address(1) => deliver(&mut self.honest, &frame, now),
                Some(sent) => self.note(&sent),
                None => {}
            }
        }
        for frame in sent_by(&mut self.honest, now) {
            deliver(&mut self.host, &frame, now);
        }
    }
    fn note(&mut self, sent: &Sent) {
        if sent.header.flags.rst() {
            self.said.remove(&sent.to);
            return;
        }
        let header = &sent.header;
        let is_syn = header.flags.contains(Flags::SYN);
        let next = header.sequence + sent.payload.len() as u32 + u32::from(is_syn);
        let before = self.said.get(&sent.to).filter(|_| !is_syn);
        let scale = header.options.window_scale.or(before.map(|said| said.scale)).unwrap_or(0);
        let said = Said {
            next: before.map_or(next, |said| said.next.later(next)),
            acknowledgment: header.acknowledgment,
            window_bytes: u32::from(header.window) << if is_syn { 0 } else { scale },
            scale,
        };
        self.said.insert(sent.to, said);
    }
    /// The services.
    fn serve(&mut self) {
        let mut place = [0; 8192];
        while let Some((socket, readiness)) = self.host.ready() {
            let now = self.now;
            if let Some(at) = self.listeners.iter().position(|&listener| listener == socket) {
                while let Ok(Some(accepted)) = self.host.tcp(now, &mut Ignore).accept(self.listeners[at]) {
                    self.served.insert(accepted.socket, [ECHO, DISCARD, CHARGEN][at]);
                }
                continue;
            }
            let Some(AnySocketId::Tcp(socket)) = self.host.typed(socket) else { continue };
            if readiness.contains(Readiness::CLOSED) || readiness.contains(Readiness::ERROR) {
                self.served.remove(&socket);
                let _ = self.host.close(socket, now, &mut Ignore);
                continue;
            }
            match self.served.get(&socket) {
                Some(&CHARGEN) => {
                    while self.host.tcp(now, &mut Ignore).send(socket, &[b'#'; 4096]).is_ok() {}
                }
                Some(&port) => {
                    while let Ok(count @ 1..) = self.host.tcp(now, &mut Ignore).peek(socket, &mut place) {
                        let taken = match port {
                            ECHO => {
                                self.host.tcp(now, &mut Ignore).send(socket, &place[..count]).unwrap_or(0)
                            }
                            _ => count,
                        };
                        self.host.tcp(now, &mut Ignore).consume(socket, taken).unwrap();
                        self.read_bytes += taken as u64;
                        if taken == 0 {
                            break;
                        }
                    }
                }
                None => {}
            }
        }
    }
    /// An honest call to `port`.
    pub fn call(&mut self, port: u16) -> TcpSocketId {
        self.honest.tcp(self.now, &mut Ignore).connect(endpoint(0, port), ConnectOptions::default()).unwrap()
    }
    /// How long an honest caller waits until `bytes` of its are echoed; `None` beyond `limit`.
    pub fn echo_takes(&mut self, bytes: usize, limit: Duration) -> Option<Duration> {
        let began = self.now;
        let socket = self.call(ECHO);
        let (mut sent, mut heard, mut place) = (0, 0, [0; 4096]);
        while self.now.since(began) < limit {
            self.round(Duration::from_millis(1));
            let text = vec![1; bytes - sent];
            sent += self.honest.tcp(self.now, &mut Ignore).send(socket, &text).unwrap_or(0);
            heard += self.honest.tcp(self.now, &mut Ignore).read(socket, &mut place).unwrap_or(0);
            if heard == bytes {
                self.honest.close(socket, self.now, &mut Ignore).unwrap();
                return Some(self.now.since(began));
            }
        }
        None
    }
}

fn deliver(stack: &mut Stack, frame: &[u8], now: Instant) {
    // A host without memory loses what comes.
    let Some(mut packet) = stack.pool().take(frame.len()) else { return };
    packet.append(frame);
    let mut batch = Batch::new();
    batch.push(packet).unwrap();
    stack.receive(LINK, &mut batch, now, &mut Ignore);
}
fn sent_by(stack: &mut Stack, now: Instant) -> Vec<Vec<u8>> {
    let mut kept = Kept::default();
    while stack.wants_transmit(LINK) && stack.transmit(LINK, now, 64, &mut kept, &mut Ignore).more {}
    kept.0
}
