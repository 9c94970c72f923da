//! A stream that never waits for its writer, between two hosts in memory.

use crate::two::{Host, Two};
use crate::{Answer, core_seconds};
use smoltcp::iface::SocketHandle;
use std::time::{Duration, Instant};

/// Bytes of one write, and of one read.
const PIECE_BYTES: usize = 32 << 10;
const WINDOW_BYTES: usize = 256 << 10;
const ROUNDS_A_LOOK: usize = 16;

pub fn memory(words: &str, length: Duration) -> Result<Answer, String> {
    let (mtu, rest) = words.split_once('-').unwrap_or((words, ""));
    let mtu_bytes: usize = mtu.parse().map_err(|_| "the MTU is missing, as in memory-bulk-1500")?;
    let trusted = match rest {
        "" => false,
        "trusted" => true,
        _ => return Err(format!("{rest:?} is not understood")),
    };
    let mut two = Two::new(mtu_bytes, trusted);
    let ends = two.connect(WINDOW_BYTES)?;
    run(&mut two, ends, length.mul_f64(0.2))?;
    let (frames, acks) = (two.there.borrow().carried, two.back.borrow().carried);
    let core_began = core_seconds();
    let bytes = run(&mut two, ends, length)? as f64;
    let core_seconds = core_seconds() - core_began;
    let segments = (two.there.borrow().carried - frames) as f64;
    let each = segments / (two.back.borrow().carried - acks).max(1) as f64;
    let settings = format!(
        "no congestion control, SACK, timestamps or Nagle, delayed ACK 10 ms; MTU {mtu_bytes}, 256 KiB windows, one ACK per \
         {each:.1} segments{}{}",
        if trusted { ", no checksums" } else { "" },
        if cfg!(target_feature = "avx2") { ", built for AVX2" } else { "" },
    );
    let figures = vec![
        ("rate", bytes * 8.0 / core_seconds / 1e9),
        ("core_seconds", core_seconds),
        ("segments", segments),
        ("bytes", bytes),
    ];
    Ok(Answer { settings, figures })
}

/// `segments` of 1460 bytes, to be counted and not timed: what is sent in `transmit_side`, and what is received in
/// `receive_side`. Without checksums, which the compiler puts into their callers, where they
/// could not be told from the rest.
pub fn path(segments: usize) -> Result<Answer, String> {
    let mut two = Two::new(1500, true);
    let (caller, called) = two.connect(WINDOW_BYTES)?;
    let text = vec![0x5a; PIECE_BYTES];
    let mut place = vec![0; PIECE_BYTES];
    let mut received = 0;
    for _ in 0..100 * segments {
        let now = two.now();
        while matches!(two.caller.socket(caller).send_slice(&text), Ok(1..)) {}
        transmit_side(&mut two.caller, now);
        receive_side(&mut two.called, now);
        while let Ok(count @ 1..) = two.called.socket(called).recv_slice(&mut place) {
            received += count;
        }
        transmit_side(&mut two.called, now);
        receive_side(&mut two.caller, now);
        if received >= segments * 1460 {
            let carried = (two.there.borrow().carried as f64, two.back.borrow().carried as f64);
            let settings = format!(
                "no congestion control, SACK, timestamps or Nagle; no checksums; one ACK per {:.0} segments",
                carried.0 / carried.1.max(1.0)
            );
            return Ok(Answer { settings, figures: vec![("segments", carried.0)] });
        }
    }
    Err(format!("only {received} bytes arrived"))
}

#[inline(never)]
fn transmit_side(host: &mut Host, now: smoltcp::time::Instant) {
    host.interface.poll_egress(now, &mut host.device, &mut host.sockets);
}

#[inline(never)]
fn receive_side(host: &mut Host, now: smoltcp::time::Instant) {
    host.poll_in(now);
}

fn run(
    two: &mut Two,
    (caller, called): (SocketHandle, SocketHandle),
    length: Duration,
) -> Result<usize, String> {
    let text = vec![0x5a; PIECE_BYTES];
    let mut place = vec![0; PIECE_BYTES];
    let began = Instant::now();
    let mut received = 0;
    loop {
        let before = received;
        for _ in 0..ROUNDS_A_LOOK {
            let now = two.now();
            while matches!(two.caller.socket(caller).send_slice(&text), Ok(1..)) {}
            two.caller.poll(now);
            two.called.poll(now);
            while let Ok(count @ 1..) = two.called.socket(called).recv_slice(&mut place) {
                received += count;
            }
        }
        if received == before && began.elapsed().as_secs() > 5 {
            return Err(format!("nothing came any more after {received} bytes"));
        }
        if began.elapsed() >= length {
            return Ok(received);
        }
    }
}
