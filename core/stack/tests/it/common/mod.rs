//! Two hosts on a wire that loses, repeats, reorders and spoils frames, on a clock that the test keeps.
#![allow(dead_code)] // Each test file uses a part.

pub mod packets;
pub mod siege;
pub mod transfer;

use inhost_base::{Duration, Endpoint, HardwareAddress, Instant, IpAddr, Ipv4Addr, LinkId, Random};
use inhost_buf::{Batch, Device, Frame, Full};
use inhost_event::{Ignore, Mask, Recorded};
use inhost_stack::{
    ConnectOptions, DuplicateDetection, InterfaceConfig, ListenOptions, ListenerId, Medium, Readiness,
    SocketId, Stack, StackConfig, TcpSocketId,
};
use std::collections::BTreeMap;

/// The link that each host has, beside its loopback.
pub const LINK: LinkId = LinkId(1);
/// Steps after which a run is called endless.
const STEP_CAP: usize = 2_000_000;

/// What a wire does to frames, in thousandths, and how long it takes.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    pub lost: u32,
    pub repeated: u32,
    pub corrupted: u32,
    /// Frames that are held back for up to ten times the delay.
    pub reordered: u32,
    pub delay: Duration,
}

impl Faults {
    pub const NONE: Faults =
        Faults { lost: 0, repeated: 0, corrupted: 0, reordered: 0, delay: Duration::from_millis(1) };
}

/// One direction of the wire.
pub struct Wire {
    frames: BTreeMap<(Instant, u64), Vec<u8>>,
    sent: u64,
    pub faults: Faults,
    random: Random,
    now: Instant,
    /// Frames that fit before the device is full; drained by [`Net::round`].
    pub room: usize,
    used: usize,
    pub passed: u64,
}

impl Wire {
    fn new(seed: u64) -> Wire {
        Wire {
            frames: BTreeMap::new(),
            sent: 0,
            faults: Faults::NONE,
            random: Random::from_number(seed),
            now: Instant::ZERO,
            room: usize::MAX,
            used: 0,
            passed: 0,
        }
    }
    fn happens(&mut self, thousandths: u32) -> bool {
        thousandths > 0 && self.random.public_below(1000) < thousandths
    }
    fn add(&mut self, frame: Vec<u8>) {
        let mut delay = self.faults.delay;
        if self.happens(self.faults.reordered) {
            delay += delay.times(u64::from(self.random.public_below(10)));
        }
        self.sent += 1;
        self.frames.insert((self.now + delay, self.sent), frame);
    }
    fn next(&self) -> Option<Instant> {
        self.frames.keys().next().map(|&(at, _)| at)
    }
    /// Some of the frames under way.
    pub fn peek(&self) -> Vec<Vec<u8>> {
        self.frames.values().take(5).cloned().collect()
    }
}

impl Device for Wire {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        if self.used >= self.room {
            return Err(Full);
        }
        self.used += 1;
        let mut bytes = vec![0; frame.len()];
        frame.write_to(&mut bytes).unwrap();
        if self.happens(self.faults.lost) {
            return Ok(());
        }
        if self.happens(self.faults.corrupted) {
            let bit = self.random.public_below(bytes.len() as u32 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        if self.happens(self.faults.repeated) {
            self.add(bytes.clone());
        }
        self.passed += 1;
        self.add(bytes);
        Ok(())
    }
}

/// Two hosts and the wires between them. Host 0 is 10.0.0.1 and fd00::1, host 1 is 10.0.0.2 and fd00::2.
pub struct Net {
    pub now: Instant,
    pub stacks: [Stack; 2],
    pub sinks: [Recorded; 2],
    /// `wires[i]` carries what host `i` sends.
    pub wires: [Wire; 2],
    pub steps: usize,
}

pub fn address(host: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, host as u8 + 1))
}
pub fn address_v6(host: usize) -> IpAddr {
    format!("fd00::{}", host + 1).parse().unwrap()
}
pub fn endpoint(host: usize, port: u16) -> Endpoint {
    Endpoint::new(address(host), port)
}

pub fn ethernet(host: usize) -> Medium {
    Medium::Ethernet(HardwareAddress([2, 0, 0, 0, 0, host as u8 + 1]))
}
pub fn interface(host: usize, medium: Medium) -> InterfaceConfig {
    let mut config = InterfaceConfig::new("wire", medium)
        .with_address(format!("10.0.0.{}/24", host + 1).parse().unwrap())
        .with_address(format!("fd00::{}/64", host + 1).parse().unwrap());
    config.duplicate_detection = DuplicateDetection::Off;
    config.accept_router_advertisements = false;
    config
}

impl Net {
    pub fn new(seed: u64) -> Net {
        Net::with(seed, StackConfig::default(), |_| Medium::Ip)
    }
    pub fn ethernet(seed: u64) -> Net {
        Net::with(seed, StackConfig::default(), ethernet)
    }
    pub fn with(seed: u64, config: StackConfig, medium: impl Fn(usize) -> Medium) -> Net {
        let now = Instant::from_millis(1_000);
        let stack = |host: usize| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&(seed * 2 + host as u64).to_le_bytes());
            let mut stack = Stack::new(config.clone(), bytes, now);
            assert_eq!(stack.add_link(interface(host, medium(host)), now), Ok(LINK));
            stack
        };
        Net {
            now,
            stacks: [stack(0), stack(1)],
            sinks: [Recorded::new(Mask::empty(), 1), Recorded::new(Mask::empty(), 1)],
            wires: [Wire::new(seed ^ 0x5eed), Wire::new(seed ^ 0xfa17)],
            steps: 0,
        }
    }
    pub fn set_faults(&mut self, faults: Faults) {
        self.wires.iter_mut().for_each(|wire| wire.faults = faults);
    }
    pub fn listen(&mut self, host: usize, port: u16) -> ListenerId {
        self.listen_with(host, port, ListenOptions::default())
    }
    pub fn listen_with(&mut self, host: usize, port: u16, options: ListenOptions) -> ListenerId {
        let local = Endpoint::new(Ipv4Addr::UNSPECIFIED, port);
        self.stacks[host].tcp(self.now, &mut Ignore).listen(local, options).unwrap()
    }
    pub fn connect(&mut self, host: usize, to: Endpoint) -> TcpSocketId {
        self.stacks[host].tcp(self.now, &mut self.sinks[host]).connect(to, ConnectOptions::default()).unwrap()
    }
    /// A connection from host 0 to a new listener of host 1: the two sockets.
    pub fn connected(&mut self, port: u16) -> (TcpSocketId, TcpSocketId) {
        let listener = self.listen(1, port);
        let mut caller = self.connect(0, endpoint(1, port));
        let mut accepted = None;
        let done = self.run(Duration::from_secs(1000), |net| {
            accepted = accepted.or(net.stacks[1].tcp(net.now, &mut Ignore).accept(listener).unwrap());
            // On a bad wire even the neighbour may be out of reach for a while.
            if net.stacks[0].readiness(caller).contains(Readiness::ERROR) {
                net.close(0, caller);
                caller = net.connect(0, endpoint(1, port));
            }
            accepted.is_some() && net.stacks[0].readiness(caller).contains(Readiness::CONNECTED)
        });
        assert!(done, "no connection");
        (caller, accepted.unwrap().socket)
    }
    pub fn send(&mut self, host: usize, socket: TcpSocketId, bytes: &[u8]) -> usize {
        self.stacks[host].tcp(self.now, &mut self.sinks[host]).send(socket, bytes).unwrap()
    }
    pub fn read(&mut self, host: usize, socket: TcpSocketId, most: usize) -> Vec<u8> {
        let mut place = vec![0; most];
        let count =
            self.stacks[host].tcp(self.now, &mut self.sinks[host]).read(socket, &mut place).unwrap_or(0);
        place.truncate(count);
        place
    }
    pub fn close(&mut self, host: usize, socket: impl Into<SocketId>) {
        self.stacks[host].close(socket, self.now, &mut self.sinks[host]).unwrap();
    }

    /// A frame for `host` out of nowhere.
    pub fn inject(&mut self, host: usize, frame: &[u8]) {
        let Some(mut packet) = self.stacks[host].pool().take(frame.len()) else { return };
        packet.append(frame);
        let mut batch = Batch::new();
        batch.push(packet).unwrap();
        self.stacks[host].receive(LINK, &mut batch, self.now, &mut self.sinks[host]);
    }
    /// The first half of a round: frames up, timers.
    pub fn receive(&mut self) {
        for host in 0..2 {
            let (now, from) = (self.now, &mut self.wires[1 - host]);
            loop {
                let mut batch = Batch::new();
                while !batch.is_full()
                    && let Some(entry) = from.frames.first_entry()
                    && entry.key().0 <= now
                {
                    let bytes = entry.remove();
                    // A host without memory loses what comes.
                    if let Some(mut packet) = self.stacks[host].pool().take(bytes.len()) {
                        packet.append(&bytes);
                        batch.push(packet).unwrap();
                    }
                }
                if batch.is_empty() {
                    break;
                }
                self.stacks[host].receive(LINK, &mut batch, now, &mut self.sinks[host]);
            }
            if self.stacks[host].deadline().is_some_and(|deadline| deadline <= now) {
                self.stacks[host].timeout(now, &mut self.sinks[host]);
            }
        }
    }
    /// The second half of a round: frames down.
    pub fn transmit(&mut self) {
        for host in 0..2 {
            self.wires[host].now = self.now;
            self.wires[host].used = 0;
            loop {
                let (stack, wire) = (&mut self.stacks[host], &mut self.wires[host]);
                let done = stack.transmit(LINK, self.now, 64, wire, &mut self.sinks[host]);
                if !done.more || done.device_full {
                    break;
                }
            }
        }
    }
    /// When something happens next.
    pub fn next(&self) -> Option<Instant> {
        let frames = self.wires.iter().filter_map(Wire::next);
        let full = |host: usize| (self.wires[host].used >= self.wires[host].room).then_some(self.now);
        let timers = self.stacks.iter().filter_map(Stack::deadline);
        frames.chain(timers).chain((0..2).filter_map(full)).min()
    }
    /// One round of both hosts; false when nothing will ever happen again.
    pub fn step(&mut self, app: &mut dyn FnMut(&mut Net)) -> bool {
        self.steps += 1;
        assert!(self.steps < STEP_CAP, "no end in sight at {:?}", self.now);
        self.receive();
        app(self);
        self.transmit();
        match self.next() {
            Some(next) => {
                // A full device has room again a moment later.
                let full = (0..2).any(|host| self.wires[host].used >= self.wires[host].room);
                let least = if full { self.now + Duration::from_micros(100) } else { self.now };
                self.now = least.max(next);
                true
            }
            None => false,
        }
    }
    /// Runs until `done` or for `limit`; whether it was done.
    pub fn run(&mut self, limit: Duration, mut done: impl FnMut(&mut Net) -> bool) -> bool {
        let end = self.now + limit;
        let mut is_done = false;
        loop {
            let goes_on = self.step(&mut |net| is_done = done(net));
            if is_done {
                return true;
            }
            if !goes_on || self.now > end {
                // The application may have something to do that no frame and no timer tells of.
                return done(self);
            }
        }
    }
    /// Runs for `time`, with nothing for the applications to do.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.receive();
            self.transmit();
            match self.next() {
                Some(next) if next <= end => self.now = self.now.max(next),
                _ => break,
            }
            self.steps += 1;
            assert!(self.steps < STEP_CAP, "no end in sight at {:?}", self.now);
        }
        self.now = end;
    }
    /// Both hosts without a socket and without memory in use.
    pub fn assert_clean(&self) {
        for (host, stack) in self.stacks.iter().enumerate() {
            let left: Vec<_> = stack.instruments().sockets(self.now).collect();
            assert!(left.is_empty(), "host {host} keeps {left:?}");
            assert_eq!(stack.memory().outstanding_bytes(), 0, "host {host} keeps memory");
        }
    }
}

/// Nobody listens.
pub fn ignore() -> Ignore {
    Ignore
}
