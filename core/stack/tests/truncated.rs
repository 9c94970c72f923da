//! Frames that are shorter than their headers say, of an established connection: none of their bytes reaches anybody.

mod common;

use common::packets::{Lone, header, segment_frame};
use common::{LINK, endpoint};
use inhost_base::Sequence;
use inhost_buf::{Batch, Checksum};
use inhost_event::Ignore;
use inhost_stack::{ConnectOptions, TcpSocketId};
use inhost_wire::tcp::Flags;

/// An established connection that takes its segments by the fast path: some have come in order.
fn established() -> (Lone, TcpSocketId, impl Fn(u32, &[u8]) -> Vec<u8>) {
    let mut lone = Lone::new();
    let remote = endpoint(1, 80);
    let socket = lone.stack.tcp().connect(remote, ConnectOptions::default(), lone.now, &mut Ignore).unwrap();
    lone.flush();
    let syn = lone.segment_sent();
    let (local, Sequence(initial)) = (syn.from, syn.header.sequence);
    let next = initial.wrapping_add(1);
    let mut answer = header(Flags::SYN | Flags::ACK, 900, next);
    answer.options.mss = Some(1460);
    lone.segment(remote, local, answer, b"");
    let data = move |sequence: u32, payload: &[u8]| {
        let header = header(Flags::ACK | Flags::PSH, sequence, next);
        segment_frame(remote, local, header, payload)
    };
    for place in 0..4 {
        lone.deliver(&data(901 + place * 1000, &[1; 1000]));
    }
    let read = lone.stack.tcp().read(socket, &mut [0; 9000], lone.now, &mut Ignore);
    assert_eq!(read.ok(), Some(4000));
    (lone, socket, data)
}

#[test]
fn a_frame_that_is_cut_off_brings_nothing_though_its_device_vouches_for_it() {
    for checksum in [Checksum::Unknown, Checksum::Verified] {
        for cut in [1, 2, 600, 999, 1000] {
            let (mut lone, socket, data) = established();
            let frame = data(4901, &[2; 1000]);
            let mut packet = lone.stack.pool().take(frame.len()).unwrap();
            packet.append(&frame[..frame.len() - cut]);
            packet.checksum = checksum;
            let mut batch = Batch::new();
            batch.push(packet).unwrap();
            lone.stack.receive(LINK, &mut batch, lone.now, &mut Ignore);
            lone.flush();
            let mut place = [0; 9000];
            let read = lone.stack.tcp().read(socket, &mut place, lone.now, &mut Ignore);
            assert!(read.is_err(), "{read:?}, with {cut} bytes cut off and the checksum {checksum:?}");
            let info = lone.stack.instruments().info(socket, lone.now).unwrap().tcp.unwrap();
            assert_eq!(info.receive_next, Sequence(4901), "nothing was acknowledged");
            // Whole, it is taken.
            lone.deliver(&frame);
            assert_eq!(lone.stack.tcp().read(socket, &mut place, lone.now, &mut Ignore).ok(), Some(1000));
        }
    }
}

#[test]
fn what_lies_behind_a_frame_is_no_part_of_it() {
    let (mut lone, socket, data) = established();
    let mut frame = data(4901, &[2; 1000]);
    // Padding, as on an Ethernet.
    frame.extend_from_slice(&[9; 40]);
    lone.deliver(&frame);
    let mut place = [0; 9000];
    assert_eq!(lone.stack.tcp().read(socket, &mut place, lone.now, &mut Ignore).ok(), Some(1000));
    assert_eq!(place[..1000], [2; 1000]);
}
