//! In steady state nothing is allocated: not for a segment of a bulk transfer, not for an echo. One test alone in its
//! program, for the allocator counts everybody's calls.

#[path = "../src/pair.rs"]
mod pair;

use inhost_event::Ignore;
use inhost_stack::TcpSocketId;
use pair::{FRAMES, Pair};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes of one segment at MTU 1500 with timestamps.
const SEGMENT_BYTES: u64 = 1448;

/// Calls of the allocator during `work`.
fn allocations(work: impl FnOnce()) -> usize {
    let region = Region::new(ALLOCATOR);
    work();
    let change = region.change();
    change.allocations + change.reallocations
}

fn bulk(pair: &mut Pair, [caller, called]: [TcpSocketId; 2], segments: u64) {
    let text = [7; 8192];
    let mut place = [0; 16_384];
    let mut received = 0;
    while received < segments * SEGMENT_BYTES {
        while pair.caller.tcp(pair.now, &mut Ignore).send(caller, &text).is_ok() {}
        pair.pass_there();
        while let Ok(count @ 1..) = pair.called.tcp(pair.now, &mut Ignore).read(called, &mut place) {
            received += count as u64;
        }
        pair.round();
    }
}

fn echo(pair: &mut Pair, [caller, called]: [TcpSocketId; 2], times: u64) {
    for _ in 0..times {
        pair.echo(caller, called).unwrap();
        while pair.caller.ready().is_some() || pair.called.ready().is_some() {}
    }
}

#[test]
fn nothing_is_allocated_in_steady_state() {
    runs_without_allocation(Pair::new(16, FRAMES).unwrap());
    // The flight recorder's ring, once it is filled.
    runs_without_allocation(Pair::new(16, FRAMES).unwrap().recorded());
}

fn runs_without_allocation(mut pair: Pair) {
    let listener = pair.listen(80).unwrap();
    let ends = pair.connect(listener, 80).map(|(caller, called)| [caller, called]).unwrap();
    // Windows open, and queues grow to their size.
    bulk(&mut pair, ends, 20_000);
    assert_eq!(allocations(|| bulk(&mut pair, ends, 20_000)), 0, "for 20,000 segments");
    let ends = pair.connect(listener, 80).map(|(caller, called)| [caller, called]).unwrap();
    echo(&mut pair, ends, 1_000);
    assert_eq!(allocations(|| echo(&mut pair, ends, 10_000)), 0, "for 10,000 echoes");
}
