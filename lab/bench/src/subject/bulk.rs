//! A stream that never waits for its writer, between two hosts in memory.

use crate::answer::Answer;
use crate::host::{self, SHIPPED};
use crate::wire::{Two, WireConfig};
use bytes::Bytes;
use inhost_event::Ignore;
use inhost_stack::{SendHow, TcpSocketId};
use std::time::Duration;

/// Bytes of one write, and of one read: what the first level of the processor's cache holds.
const PIECE_BYTES: usize = 32 << 10;
/// The same where segments are longer than that, and copied.
const LONG_PIECE_BYTES: usize = 64 << 10;
/// Rounds between two looks at whether the time is over.
const ROUNDS_A_LOOK: usize = 16;
/// The share of the time that goes by before anything is counted.
const WARM_UP: f64 = 0.2;

/// How the ends meet the stack.
#[derive(Clone, Copy, PartialEq)]
enum Face {
    /// Bytes are copied in and out.
    Copying,
    /// Bytes are lent to be sent and looked at where they lie when they have come: each end reads every byte once, as a
    /// sum of words.
    Lending,
}

/// `memory-bulk-MTU[-trusted][-lend]`, of which `words` is what follows the second dash.
pub fn memory(words: &str, length: Duration) -> Result<Answer, String> {
    let mut words = words.split('-');
    let mtu_bytes =
        words.next().and_then(|w| w.parse().ok()).ok_or("the MTU is missing, as in memory-bulk-1500")?;
    let (mut trusted, mut face) = (false, Face::Copying);
    for word in words {
        match word {
            "trusted" => trusted = true,
            "lend" => face = Face::Lending,
            _ => return Err(format!("{word:?} is not understood")),
        }
    }
    let wire = WireConfig { mtu_bytes, trusted };
    let mut two = Two::new(&host::with_window(), wire, 1)?;
    let listener = two.listen(80)?;
    let ends = two.connect(listener, 80)?;
    let is_long = usize::from(mtu_bytes) > PIECE_BYTES && face == Face::Copying;
    let piece_bytes = if is_long { LONG_PIECE_BYTES } else { PIECE_BYTES };
    run(&mut two, ends, face, piece_bytes, length.mul_f64(WARM_UP))?;
    let (frames, acks) = (two.there.frames, two.back.frames);
    let measured = run(&mut two, ends, face, piece_bytes, length)?;
    let segments = (two.there.frames - frames) as f64;
    let each = segments / (two.back.frames - acks).max(1) as f64;
    let settings = format!(
        "{SHIPPED}; MTU {mtu_bytes}, 256 KiB windows, {} frames a pass, {} KiB a call, one ACK per \
         {each:.1} segments{}{}",
        wire.frames_a_pass(),
        piece_bytes >> 10,
        if trusted { ", receiver trusts the wire, payloads handed on where they lie" } else { "" },
        if face == Face::Lending { ", lent and read in place" } else { "" },
    );
    Ok(Answer::new(settings)
        .with("rate", measured.bytes * 8.0 / measured.core_seconds / 1e9)
        .with("core_seconds", measured.core_seconds)
        .with("segments", segments)
        .with("bytes", measured.bytes))
}

struct Measured {
    bytes: f64,
    core_seconds: f64,
}

fn run(
    two: &mut Two,
    (caller, called): (TcpSocketId, TcpSocketId),
    face: Face,
    piece_bytes: usize,
    length: Duration,
) -> Result<Measured, String> {
    let text = Bytes::from(vec![0x5a; piece_bytes]);
    let mut place = vec![0; piece_bytes];
    two.tick();
    let (began, mut received, mut seen) = (two.now, 0, 0u64);
    let core_began = core_seconds();
    let until = began + length.into();
    while two.now < until {
        let before = received;
        for _ in 0..ROUNDS_A_LOOK {
            match face {
                Face::Copying => while two.caller.tcp(two.now, &mut Ignore).send(caller, &text).is_ok() {},
                Face::Lending => lend(two, caller, &text, &mut seen),
            }
            two.pass_there();
            received += match face {
                Face::Copying => read(two, called, &mut place),
                Face::Lending => look(two, called, &mut seen),
            };
            two.pass_back();
            two.tick();
            two.timers();
        }
        if received == before && two.now.since(began).as_secs() > 5 {
            return Err(format!("nothing came any more after {received} bytes"));
        }
    }
    std::hint::black_box(seen);
    Ok(Measured { bytes: received as f64, core_seconds: core_seconds() - core_began })
}

fn read(two: &mut Two, called: TcpSocketId, place: &mut [u8]) -> usize {
    let mut received = 0;
    while let Ok(count @ 1..) = two.called.tcp(two.now, &mut Ignore).read(called, place) {
        received += count;
    }
    received
}

fn lend(two: &mut Two, caller: TcpSocketId, text: &Bytes, seen: &mut u64) {
    loop {
        let mut piece = text.clone();
        let how = SendHow::default();
        let Ok(taken @ 1..) = two.caller.tcp(two.now, &mut Ignore).lend(caller, &mut piece, how) else {
            return;
        };
        *seen = seen.wrapping_add(touch(&text[..taken]));
    }
}

fn look(two: &mut Two, called: TcpSocketId, seen: &mut u64) -> usize {
    let mut received = 0;
    while let Ok(packet) = two.called.tcp(two.now, &mut Ignore).borrow(called) {
        let count = packet.len();
        *seen = seen.wrapping_add(touch(packet.bytes()));
        two.called.pool().give(packet);
        received += count;
        if count == 0 {
            break;
        }
    }
    received
}

/// Reads every byte, as wide as the processor can.
pub fn touch(bytes: &[u8]) -> u64 {
    u64::from(inhost_buf::sum(bytes))
}

/// Time that a core has spent on this thread.
pub fn core_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
