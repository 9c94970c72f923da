//! A run of like segments, told by comparing words, and the same segments read one by one: both hosts must end alike.

use crate::common::{Net, endpoint, ethernet, interface};
use inhost_base::Duration;
use inhost_buf::{Batch, Device, Frame, Full};
use inhost_event::Ignore;
use inhost_ip::InterfaceView;
use inhost_stack::{Medium, Stack, StackConfig, TcpSocketId};
use inhost_wire::checksum::Sum;

/// Keeps what is sent.
#[derive(Default)]
struct Kept(Vec<Vec<u8>>);

impl Device for Kept {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let mut bytes = vec![0; frame.len()];
        frame.write_to(&mut bytes).unwrap();
        self.0.push(bytes);
        Ok(())
    }
}

fn give(stack: &mut Stack, frames: &[Vec<u8>], now: inhost_base::Instant) {
    let mut batch = Batch::new();
    for frame in frames {
        let mut packet = stack.pool().take(1600).unwrap();
        packet.append(frame);
        batch.push(packet).unwrap();
    }
    stack.receive(crate::common::LINK, &mut batch, now, &mut Ignore);
}

fn read_all(net: &mut Net, socket: TcpSocketId) -> Vec<u8> {
    let mut got = Vec::new();
    loop {
        let piece = net.read(1, socket, 1 << 16);
        if piece.is_empty() {
            return got;
        }
        got.extend(piece);
    }
}

/// What the receiver looks like after `change` was done to the frames of one pass, and what it read and answers.
fn after(gro: bool, medium: fn(usize) -> Medium, v6: bool, change: &dyn Fn(&mut Vec<Vec<u8>>)) -> String {
    let mut net = Net::with(5, StackConfig::default(), medium);
    let mut config = interface(1, medium(1));
    config.gro = gro;
    net.stacks[1] = Stack::new(StackConfig::default(), [9; 32], net.now);
    net.stacks[1].add_link(config, net.now).unwrap();
    let listener = if v6 {
        let at = inhost_base::Endpoint { address: crate::common::address_v6(1), port: 80 };
        net.stacks[1].tcp(net.now, &mut Ignore).listen(at, inhost_stack::ListenOptions::default()).unwrap()
    } else {
        net.listen(1, 80)
    };
    let to = if v6 {
        inhost_base::Endpoint { address: crate::common::address_v6(1), port: 80 }
    } else {
        endpoint(1, 80)
    };
    let caller = net.connect(0, to);
    let mut called = None;
    assert!(net.run(Duration::from_secs(20), |net| {
        called = called.or(net.stacks[1].tcp(net.now, &mut Ignore).accept(listener).unwrap());
        called.is_some()
    }));
    let called = called.unwrap().socket;
    let mut story = String::new();
    for round in 0..1u32 {
        let bytes: Vec<u8> = (0..12_000u32).map(|i| (i * 7 + i / 251 + round) as u8).collect();
        net.send(0, caller, &bytes);
        let mut kept = Kept::default();
        // They leave at a pace.
        for _ in 0..500 {
            let now = net.now;
            net.stacks[0].timeout(now, &mut Ignore);
            net.stacks[0].transmit(crate::common::LINK, now, 64, &mut kept, &mut Ignore);
            net.now += Duration::from_micros(100);
        }
        assert!(kept.0.len() > 5, "{} frames in a pass", kept.0.len());
        change(&mut kept.0);
        let now = net.now;
        give(&mut net.stacks[1], &kept.0, now);
        let got = read_all(&mut net, called);
        let info = net.stacks[1].instruments().info(called, now).unwrap();
        let link = net.stacks[1].instruments().link_counters(crate::common::LINK);
        let counters = net.stacks[1].ip().interface(crate::common::LINK).map(InterfaceView::counters);
        story += &format!("{} bytes {:?}; {info:?}; {link:?}; {counters:?}", got.len(), Sum::of(&got));
        let mut answers = Kept::default();
        net.stacks[1].transmit(crate::common::LINK, now, 64, &mut answers, &mut Ignore);
        story += &format!("; {:02x?}\n", answers.0);
        give(&mut net.stacks[0], &answers.0, now);
        net.now += Duration::from_millis(3);
        // what was corrupted is sent again, for both alike.
        net.pass(Duration::from_secs(2));
        story += &format!("{}\n", read_all(&mut net, called).len());
    }
    story
}

fn agree(change: &dyn Fn(&mut Vec<Vec<u8>>)) {
    for v6 in [false, true] {
        for medium in [(|_| Medium::Ip) as fn(usize) -> Medium, ethernet] {
            let (one_by_one, in_runs) = (after(false, medium, v6, change), after(true, medium, v6, change));
            let differs = one_by_one.bytes().zip(in_runs.bytes()).position(|(a, b)| a != b);
            let near = |story: &str| {
                differs.map(|at| story.chars().skip(at.saturating_sub(40)).take(60).collect::<String>())
            };
            assert!(one_by_one == in_runs, "IPv6 {v6}: {:?}, {:?}", near(&one_by_one), near(&in_runs));
        }
    }
}

#[test]
fn a_run_is_taken_as_its_segments_are() {
    agree(&|_| {});
}

/// Where the IP header begins, which differs from link to link.
fn network_of(frame: &[u8]) -> usize {
    if matches!(frame[0] >> 4, 4 | 6) { 0 } else { 14 }
}

#[test]
fn packets_may_be_numbered() {
    for wrong in [None, Some(4)] {
        agree(&|frames| {
            for (index, frame) in frames.iter_mut().enumerate() {
                let at = network_of(frame);
                if frame[at] >> 4 == 4 {
                    let ip = &mut frame[at..at + 20];
                    ip[4..6].copy_from_slice(&(index as u16 * 3 + 7).to_be_bytes());
                    ip[10..12].fill(0);
                    let sum = Sum::of(ip).finish();
                    ip[10..12].copy_from_slice(&sum.to_be_bytes());
                    ip[11] ^= u8::from(wrong == Some(index));
                }
            }
        });
    }
}

#[test]
fn every_bit_of_a_header_matters() {
    for bit in 0..8 * 60 {
        agree(&|frames| {
            let at = network_of(&frames[3]) + bit / 8;
            frames[3][at] ^= 1 << (bit % 8);
        });
    }
}

#[test]
fn what_is_repeated_missing_or_out_of_order_is_no_run() {
    agree(&|frames| frames.swap(3, 4));
    agree(&|frames| {
        frames.remove(3);
    });
    agree(&|frames| frames.insert(3, frames[3].clone()));
    agree(&|frames| frames[3].truncate(900));
    agree(&|frames| frames[3].extend_from_slice(b"padding"));
    agree(&|frames| {
        let last = frames[4].len() - 1;
        frames[4][last] ^= 0x40;
    });
}
