//! Frames that are shorter than their headers say, of an established connection: none of their bytes reaches anybody.

use crate::common::packets::{SingleHost, header, segment_frame};
use crate::common::{LINK, endpoint};
use inhost_base::Sequence;
use inhost_buf::{Batch, Checksum};
use inhost_event::Ignore;
use inhost_stack::{ConnectOptions, TcpSocketId};
use inhost_wire::tcp::Flags;

/// An established connection that takes its segments by the fast path: some have come in order.
fn established() -> (SingleHost, TcpSocketId, impl Fn(u32, &[u8]) -> Vec<u8>) {
    let mut host = SingleHost::new();
    let remote = endpoint(1, 80);
    let socket = host.stack.tcp(host.now, &mut Ignore).connect(remote, ConnectOptions::default()).unwrap();
    host.flush();
    let syn = host.segment_sent();
    let (local, Sequence(initial)) = (syn.from, syn.header.sequence);
    let next = initial.wrapping_add(1);
    let mut answer = header(Flags::SYN | Flags::ACK, 900, next);
    answer.options.mss = Some(1460);
    host.segment(remote, local, answer, b"");
    let data = move |sequence: u32, payload: &[u8]| {
        let header = header(Flags::ACK | Flags::PSH, sequence, next);
        segment_frame(remote, local, header, payload)
    };
    for place in 0..4 {
        host.deliver(&data(901 + place * 1000, &[1; 1000]));
    }
    let read = host.stack.tcp(host.now, &mut Ignore).read(socket, &mut [0; 9000]);
    assert_eq!(read.ok(), Some(4000));
    (host, socket, data)
}

#[test]
fn a_frame_that_is_cut_off_brings_nothing_though_its_device_vouches_for_it() {
    for checksum in [Checksum::Unknown, Checksum::Verified] {
        for cut in [1, 2, 600, 999, 1000] {
            let (mut host, socket, data) = established();
            let frame = data(4901, &[2; 1000]);
            let mut packet = host.stack.pool().take(frame.len()).unwrap();
            packet.append(&frame[..frame.len() - cut]);
            packet.set_checksum(checksum);
            let mut batch = Batch::new();
            batch.push(packet).unwrap();
            host.stack.receive(LINK, &mut batch, host.now, &mut Ignore);
            host.flush();
            let mut place = [0; 9000];
            let read = host.stack.tcp(host.now, &mut Ignore).read(socket, &mut place);
            assert!(read.is_err(), "{read:?}, with {cut} bytes cut off and the checksum {checksum:?}");
            let info = host.stack.instruments().info(socket, host.now).unwrap().tcp.unwrap();
            assert_eq!(info.receive_next, Sequence(4901), "nothing was acknowledged");
            // Whole, it is taken.
            host.deliver(&frame);
            assert_eq!(host.stack.tcp(host.now, &mut Ignore).read(socket, &mut place).ok(), Some(1000));
        }
    }
}

#[test]
fn what_lies_behind_a_frame_is_no_part_of_it() {
    let (mut host, socket, data) = established();
    let mut frame = data(4901, &[2; 1000]);
    // Padding, as on an Ethernet.
    frame.extend_from_slice(&[9; 40]);
    host.deliver(&frame);
    let mut place = [0; 9000];
    assert_eq!(host.stack.tcp(host.now, &mut Ignore).read(socket, &mut place).ok(), Some(1000));
    assert_eq!(place[..1000], [2; 1000]);
}
