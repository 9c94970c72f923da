//! Two hosts that exchange a line over TCP, in a program with neither `std` nor an allocator of the system's.
//!
//! Its panic handler is a lang item that `std` has, too. So the compiler refuses this program as soon as any crate below it
//! brings `std` in. Of the C library it has the entry point, `memcpy` and its kin, and nothing else.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicUsize, Ordering};
use inhost_stack::{
    Batch, Cidr, ConnectOptions, Device, Duration, Endpoint, Frame, Full, Ignore, Instant, InterfaceConfig,
    Ipv4Addr, LinkId, ListenOptions, Medium, Stack, StackConfig,
};

/// Memory of the whole program.
const ARENA_BYTES: usize = 64 << 20;

/// Hands out one block after the other and takes none back.
struct Arena {
    used: AtomicUsize,
    memory: core::cell::UnsafeCell<[u8; ARENA_BYTES]>,
}

// SAFETY: each byte of the memory belongs to one allocation alone, as the counter goes up atomically.
unsafe impl Sync for Arena {}

// SAFETY: a block lies within the memory, is aligned as asked for and overlaps no other.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.memory.get().cast::<u8>();
        let place = |used: usize| (base as usize + used).next_multiple_of(layout.align()) - base as usize;
        let end = |used: usize| place(used).checked_add(layout.size()).filter(|&end| end <= ARENA_BYTES);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end) {
            // SAFETY: `end` was within the memory, so its beginning is.
            Ok(used) => unsafe { base.add(place(used)) },
            Err(_) => core::ptr::null_mut(),
        }
    }
    unsafe fn dealloc(&self, _block: *mut u8, _layout: Layout) {}
}

#[global_allocator]
static ARENA: Arena =
    Arena { used: AtomicUsize::new(0), memory: core::cell::UnsafeCell::new([0; ARENA_BYTES]) };

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: the C library's, which may be called at any time.
    unsafe { abort() }
}

#[link(name = "c")]
unsafe extern "C" {
    fn abort() -> !;
}

/// The compiler's own libraries were built to unwind and name this; nothing calls it.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// The frames that one host has sent.
#[derive(Default)]
struct Wire(Vec<Vec<u8>>);

impl Device for Wire {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        let mut bytes = alloc::vec![0; frame.len()];
        frame.write_to(&mut bytes);
        self.0.push(bytes);
        Ok(())
    }
}

fn host(number: u8, now: Instant) -> Option<(Stack, LinkId)> {
    let mut config = StackConfig::default();
    config.memory_limit_bytes = 4 << 20;
    let mut stack = Stack::new(config, [number; 32], now);
    let address = Cidr::new(Ipv4Addr::new(10, 0, 0, number), 24).ok()?;
    let link = stack.add_link(InterfaceConfig::new("wire", Medium::Ip).with_address(address), now).ok()?;
    Some((stack, link))
}

fn exchange() -> Option<()> {
    let mut now = Instant::ZERO;
    let (mut caller, wire) = host(1, now)?;
    let (mut called, _) = host(2, now)?;
    let (to, options) = (Endpoint::new(Ipv4Addr::new(10, 0, 0, 2), 7), ConnectOptions::default());
    let listener = called.tcp(now, &mut Ignore).listen(to, ListenOptions::default()).ok()?;
    let socket = caller.tcp(now, &mut Ignore).connect(to, options).ok()?;
    let (mut sent, mut accepted) = (false, None);
    for _ in 0..1000 {
        now += Duration::from_millis(1);
        carry(&mut caller, &mut called, wire, now);
        carry(&mut called, &mut caller, wire, now);
        if !sent {
            sent = caller.tcp(now, &mut Ignore).send(socket, b"no std") == Ok(6);
        }
        if accepted.is_none() {
            accepted = called.tcp(now, &mut Ignore).accept(listener).ok()?;
        }
        let mut line = [0; 16];
        if let Some(connection) = &accepted
            && called.tcp(now, &mut Ignore).read(connection.socket, &mut line) == Ok(6)
        {
            return (&line[..6] == b"no std").then_some(());
        }
    }
    None
}

/// A round of `from`, and its frames to `to`.
fn carry(from: &mut Stack, to: &mut Stack, link: LinkId, now: Instant) {
    from.timeout(now, &mut Ignore);
    let mut wire = Wire::default();
    from.transmit(link, now, 64, &mut wire, &mut Ignore);
    for frame in wire.0 {
        let Some(mut packet) = to.pool().take(frame.len()) else { return };
        packet.append(&frame);
        let mut batch = Batch::new();
        if batch.push(packet).is_ok() {
            to.receive(link, &mut batch, now, &mut Ignore);
        }
    }
}

/// 0 when the line came across, 1 otherwise.
#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    i32::from(exchange().is_none())
}
