//! Frames that another host of the program takes where their payload lies: streams arrive whole, whatever is lost on the
//! way, kept by the receiver or copied after all, and all memory returns to the host that it is of.

use crate::common::{address, endpoint, interface};
use bytes::Bytes;
use inhost_base::{Duration, Endpoint, Instant, Ipv4Addr, LinkId, Random};
use inhost_buf::{Batch, Checksum, Device, Frame, Full, Offers, Offload, Packet, Shareable};
use inhost_event::Ignore;
use inhost_stack::{ConnectOptions, ListenOptions, Medium, SendHow, Stack, StackConfig, TcpSocketId};
use std::collections::VecDeque;

const LINK: LinkId = LinkId(1);
const STEP: Duration = Duration::from_millis(1);

/// A wire that hands frames on, and loses some.
struct Wire {
    mtu_bytes: u16,
    /// Of a hundred frames.
    lost: u32,
    trusted: bool,
    /// Empty buffers of the receiver's.
    free: Vec<Packet>,
    /// Frames with their pieces.
    waiting: VecDeque<Vec<Packet>>,
    /// Those that were lost.
    dropped: VecDeque<Vec<Packet>>,
    random: Random,
    shared: usize,
    copied: usize,
}

impl Device for Wire {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let mut packet = self.empty(frame)?;
        let length = frame.write_to(packet.spare_mut()).unwrap();
        packet.extend(length).unwrap();
        self.copied += usize::from(length > 10_000);
        self.carry(vec![packet]);
        Ok(())
    }
    fn transmit_shared(&mut self, frame: &Frame<'_>, payload: Shareable<'_>) -> Result<(), Full> {
        let mut packets = Vec::new();
        frame.share(payload, self.empty(frame)?, |packet| packets.push(packet)).unwrap();
        self.shared += 1;
        self.carry(packets);
        Ok(())
    }
    fn offers(&self) -> Offers {
        Offers { sharing: true, checksum: self.trusted, ..Offers::NONE }
    }
}

impl Wire {
    fn empty(&mut self, frame: &Frame<'_>) -> Result<Packet, Full> {
        let mut packet = self.free.pop().ok_or(Full)?;
        packet.set_checksum(match frame.offload {
            Offload::Checksum { .. } => Checksum::Partial,
            _ if self.trusted => Checksum::Verified,
            _ => Checksum::Unknown,
        });
        Ok(packet)
    }
    fn carry(&mut self, packets: Vec<Packet>) {
        let is_lost = self.random.public_below(100) < self.lost;
        if is_lost { &mut self.dropped } else { &mut self.waiting }.push_back(packets);
    }
}

struct Pair {
    now: Instant,
    stacks: [Stack; 2],
    wires: [Wire; 2],
}

impl Pair {
    fn new(seed: u32, mtu_bytes: u16, lost: u32, trusted: bool) -> Pair {
        let now = Instant::from_millis(5_000);
        let stacks = [0, 1].map(|host| {
            let mut stack = Stack::new(StackConfig::default(), [host as u8 + 1; 32], now);
            let mut config = interface(host, Medium::Ip);
            config.mtu_bytes = mtu_bytes;
            stack.add_link(config, now).unwrap();
            stack
        });
        let wires = [0, 1].map(|host| Wire {
            mtu_bytes,
            lost,
            trusted,
            free: Vec::new(),
            waiting: VecDeque::new(),
            dropped: VecDeque::new(),
            random: Random::from_number(u64::from(seed * 2 + host)),
            shared: 0,
            copied: 0,
        });
        Pair { now, stacks, wires }
    }
    fn pass(&mut self) {
        self.now += STEP;
        for host in 0..2 {
            let (wire, now) = (&mut self.wires[host], self.now);
            let [first, second] = &mut self.stacks;
            let (from, to) = if host == 0 { (first, second) } else { (second, first) };
            wire.free.extend((0..8).filter_map(|_| to.pool().take(usize::from(wire.mtu_bytes))));
            from.transmit(LINK, now, 8, wire, &mut Ignore);
            // Of a frame that is lost only the headers are the receiver's.
            let heads = wire.dropped.drain(..).filter_map(|packets| packets.into_iter().next());
            heads.chain(wire.free.drain(..)).for_each(|packet| to.pool().give(packet));
            let mut batch = Batch::new();
            while let Some(packets) = wire.waiting.pop_front() {
                assert!(batch.has_room());
                packets.into_iter().for_each(|packet| batch.push(packet).unwrap());
            }
            to.receive(LINK, &mut batch, now, &mut Ignore);
        }
        for stack in &mut self.stacks {
            if stack.deadline().is_some_and(|deadline| deadline <= self.now) {
                stack.timeout(self.now, &mut Ignore);
            }
        }
    }
    fn connect(&mut self) -> (TcpSocketId, TcpSocketId) {
        let listener = self.stacks[1]
            .tcp(self.now, &mut Ignore)
            .listen(endpoint(1, 80), ListenOptions::default())
            .unwrap();
        let to = Endpoint { address: address(1), port: 80 };
        let caller =
            self.stacks[0].tcp(self.now, &mut Ignore).connect(to, ConnectOptions::default()).unwrap();
        for _ in 0..60_000 {
            self.pass();
            if let Some(accepted) = self.stacks[1].tcp(self.now, &mut Ignore).accept(listener).unwrap() {
                return (caller, accepted.socket);
            }
        }
        panic!("nobody was accepted");
    }
    fn outstanding_bytes(&self) -> [usize; 2] {
        [0, 1].map(|host| self.stacks[host].memory().outstanding_bytes())
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Sends `bytes`, lent or written in pieces of any length, and reads them, late and in any way.
fn carry(pair: &mut Pair, bytes: &[u8], random: &mut Random) {
    let (caller, called) = pair.connect();
    let (mut sent, mut got) = (0, Vec::new());
    let mut place = vec![0; 100_000];
    for _ in 0..400_000 {
        let now = pair.now;
        while sent < bytes.len() {
            let length = (1 + random.public_below(120_000) as usize).min(bytes.len() - sent);
            let piece = &bytes[sent..sent + length];
            let taken = match random.public_chance(0.3) {
                true => {
                    let mut lent = Bytes::copy_from_slice(piece);
                    pair.stacks[0].tcp(now, &mut Ignore).lend(caller, &mut lent, SendHow::default())
                }
                false => pair.stacks[0].tcp(now, &mut Ignore).send(caller, piece),
            };
            match taken {
                Ok(taken) => sent += taken,
                Err(_) => break,
            }
        }
        pair.pass();
        if random.public_chance(0.5) {
            continue;
        }
        if random.public_chance(0.5) {
            while let Ok(packet) = pair.stacks[1].tcp(pair.now, &mut Ignore).borrow(called) {
                got.extend_from_slice(packet.bytes());
                pair.stacks[1].pool().give(packet);
            }
        } else {
            while let Ok(count @ 1..) = pair.stacks[1].tcp(pair.now, &mut Ignore).read(called, &mut place) {
                got.extend_from_slice(&place[..count]);
            }
        }
        if got.len() == bytes.len() && pair.outstanding_bytes() == [0, 0] {
            break;
        }
    }
    assert!(got == bytes, "{} of {} bytes arrived", got.len(), bytes.len());
    assert_eq!(pair.outstanding_bytes(), [0, 0]);
}

#[test]
fn payloads_go_by_reference_and_all_memory_returns() {
    let bytes = pattern(3_000_000);
    for seed in 0..6 {
        let mut pair = Pair::new(seed, 65_535, 0, true);
        carry(&mut pair, &bytes, &mut Random::from_number(u64::from(seed)));
        let [there, _] = &pair.wires;
        assert!(there.shared > 20 && there.shared > there.copied, "{} and {}", there.shared, there.copied);
    }
}

#[test]
fn what_is_lost_spoilt_by_no_trust_or_out_of_order_is_copied_and_arrives() {
    let bytes = pattern(1_500_000);
    for seed in 0..12 {
        let mtu_bytes = [65_535, 20_000, 9_000][seed as usize % 3];
        let mut pair = Pair::new(seed, mtu_bytes, 4, seed % 2 == 0);
        carry(&mut pair, &bytes, &mut Random::from_number(u64::from(seed)));
        let [there, _] = &pair.wires;
        assert!(there.shared > 10, "MTU {mtu_bytes}: {} and {}", there.shared, there.copied);
    }
}

/// A receiver that keeps what it got outlives its sender's interest: the sender's account is settled all the same.
#[test]
fn a_reader_may_keep_what_its_sender_let_go() {
    let bytes = pattern(60_000);
    let mut pair = Pair::new(1, 65_535, 0, true);
    let (caller, called) = pair.connect();
    assert_eq!(pair.stacks[0].tcp(pair.now, &mut Ignore).send(caller, &bytes), Ok(bytes.len()));
    let mut kept = Vec::new();
    for _ in 0..200 {
        pair.pass();
        while let Ok(packet) = pair.stacks[1].tcp(pair.now, &mut Ignore).borrow(called) {
            kept.push(packet);
        }
    }
    assert_eq!(pair.outstanding_bytes()[0], 0, "acknowledged, and so no more the sender's");
    assert!(pair.outstanding_bytes()[1] >= bytes.len());
    let got: Vec<u8> = kept.iter().flat_map(|packet| packet.bytes().to_vec()).collect();
    assert!(got == bytes && kept.iter().any(Packet::is_shared));
    kept.into_iter().for_each(|packet| pair.stacks[1].pool().give(packet));
    assert_eq!(pair.outstanding_bytes(), [0, 0]);
}

#[test]
fn the_loopback_carries_bulk_and_its_memory_returns() {
    let now = Instant::from_millis(5_000);
    let mut host = Stack::new(StackConfig::default(), [1; 32], now);
    let there = Endpoint::new(Ipv4Addr::LOCALHOST, 80);
    let listener = host.tcp(now, &mut Ignore).listen(there, ListenOptions::default()).unwrap();
    let caller = host.tcp(now, &mut Ignore).connect(there, ConnectOptions::default()).unwrap();
    host.timeout(now, &mut Ignore);
    let called = host.tcp(now, &mut Ignore).accept(listener).unwrap().unwrap().socket;
    let bytes = pattern(4_000_000);
    let (mut sent, mut got, mut now) = (0, Vec::new(), now);
    let mut place = vec![0; 50_000];
    while got.len() < bytes.len() {
        now += STEP;
        while let Ok(taken @ 1..) = host.tcp(now, &mut Ignore).send(caller, &bytes[sent..]) {
            sent += taken;
        }
        host.timeout(now, &mut Ignore);
        while let Ok(count @ 1..) = host.tcp(now, &mut Ignore).read(called, &mut place) {
            got.extend_from_slice(&place[..count]);
        }
        assert!(now < Instant::from_millis(100_000), "{} bytes arrived", got.len());
    }
    host.timeout(now + STEP.times(1_000), &mut Ignore);
    assert!(got == bytes);
    assert_eq!(host.memory().outstanding_bytes(), 0);
}
