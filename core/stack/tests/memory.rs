//! Memory, counted at the allocator: nothing is allocated for a segment in steady state, and an idle connection is
//! small.
#![allow(unsafe_code)] // A global allocator cannot be written without.

#[path = "it/common/mod.rs"]
mod common;

use common::{Net, endpoint};
use inhost_base::Duration;
use inhost_event::Ignore;
use inhost_stack::{ListenOptions, Medium, StackConfig, TcpSocketId};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

fn count(calls: u64, bytes: i64) {
    // While a thread ends there is nothing to count in.
    let _ = CALLS.try_with(|cell| cell.set(cell.get() + calls));
    let _ = BYTES.try_with(|cell| cell.set(cell.get() + bytes));
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(1, new_size as i64 - layout.size() as i64);
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A wire without memory of its own: frames go straight from one host's `transmit` into packets of the other.
mod direct {
    use inhost_base::{Duration, Instant};
    use inhost_buf::{Batch, Device, Frame, Full, Packet};
    use inhost_event::Ignore;
    use inhost_stack::Stack;

    pub struct Pipe {
        packets: Vec<Packet>,
        pub frames: u64,
    }
    impl Pipe {
        pub fn new() -> Pipe {
            Pipe { packets: Vec::with_capacity(64), frames: 0 }
        }
        /// Takes buffers from the receiver's pool, carries one pass, and gives the rest back.
        pub fn carry(&mut self, from: &mut Stack, to: &mut Stack, batch: &mut Batch, now: Instant) -> bool {
            let mut filled = Filled { free: &mut self.packets, batch, frames: 0 };
            while filled.free.len() < 32 {
                filled.free.push(to.pool().take(1500).unwrap());
            }
            let more = from.transmit(super::common::LINK, now, 32, &mut filled, &mut Ignore).more;
            self.frames += filled.frames;
            while let Some(packet) = self.packets.pop() {
                to.pool().give(packet);
            }
            let some = !batch.is_empty();
            to.receive(super::common::LINK, batch, now, &mut Ignore);
            some || more
        }
    }
    struct Filled<'a> {
        free: &'a mut Vec<Packet>,
        batch: &'a mut Batch,
        frames: u64,
    }
    impl Device for Filled<'_> {
        fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
            let Some(mut packet) = self.free.pop() else { return Err(Full) };
            frame.write_to(packet.spare_mut()).unwrap();
            packet.extend(frame.len()).unwrap();
            self.frames += 1;
            self.batch.push(packet).unwrap();
            Ok(())
        }
    }
    pub const STEP: Duration = Duration::from_micros(500);
}

#[test]
fn no_segment_allocates_in_steady_state() {
    let mut net = Net::new(1);
    let (caller, called) = net.connected(80);
    net.pass(Duration::from_secs(1));
    let (mut there, mut back) = (direct::Pipe::new(), direct::Pipe::new());
    let mut batch = inhost_buf::Batch::new();
    let text = [7; 8192];
    let mut place = [0; 16_384];
    let [mut sender, mut receiver] = net.stacks;
    let mut sink = inhost_event::Ignore;
    let (mut now, mut received) = (net.now, 0u64);
    let mut round = |received: &mut u64| {
        now += direct::STEP;
        while sender.tcp(now, &mut sink).send(caller, &text).is_ok() {}
        while there.carry(&mut sender, &mut receiver, &mut batch, now) {
            while let Ok(count @ 1..) = receiver.tcp(now, &mut sink).read(called, &mut place) {
                *received += count as u64;
            }
        }
        while back.carry(&mut receiver, &mut sender, &mut batch, now) {}
        for stack in [&mut sender, &mut receiver] {
            if stack.deadline().is_some_and(|deadline| deadline <= now) {
                stack.timeout(now, &mut sink);
            }
            while stack.ready().is_some() {}
        }
    };
    // Windows open, and queues grow to their size.
    for _ in 0..400 {
        round(&mut received);
    }
    let (calls, before) = (CALLS.get(), received);
    for _ in 0..400 {
        round(&mut received);
    }
    let segments = (received - before) / 1448;
    assert!(segments > 10_000, "{segments} segments");
    assert_eq!(CALLS.get() - calls, 0, "allocations for {segments} segments");
}

#[test]
fn an_idle_connection_is_small() {
    const COUNT: usize = 4000;
    let mut config = StackConfig::default();
    config.memory_limit_bytes = 256 << 20;
    let mut net = Net::with(2, config, |_| Medium::Ip);
    let mut options = ListenOptions::default();
    options.backlog = COUNT;
    options.syn_queue = COUNT;
    let listener = net.listen_with(1, 80, options);
    let before = BYTES.get();
    let mut accepted: Vec<TcpSocketId> = Vec::with_capacity(COUNT);
    let callers: Vec<TcpSocketId> = (0..COUNT).map(|_| net.connect(0, endpoint(1, 80))).collect();
    net.pass(Duration::from_secs(2));
    while let Some(found) = net.stacks[1].tcp(net.now, &mut Ignore).accept(listener).unwrap() {
        accepted.push(found.socket);
    }
    assert_eq!(accepted.len(), COUNT);
    for (&caller, &called) in callers.iter().zip(&accepted) {
        net.send(0, caller, b"hello");
        let _ = called;
    }
    net.pass(Duration::from_secs(1));
    for &called in &accepted {
        assert_eq!(net.read(1, called, 9), b"hello");
    }
    net.pass(Duration::from_secs(300));
    for stack in &net.stacks {
        assert_eq!(stack.memory().outstanding_bytes(), 0, "idle connections hold buffers");
    }
    // What the pool and the test keep for reuse is not a connection's.
    let pooled: usize = net.stacks.iter().map(|stack| stack.memory().idle_bytes()).sum();
    let own = 2 * COUNT * size_of::<TcpSocketId>();
    let each = (BYTES.get() - before - pooled as i64 - own as i64) / (2 * COUNT as i64);
    println!("{each} bytes for each idle connection");
    assert!(each <= 512, "{each} bytes for each idle connection");
}
