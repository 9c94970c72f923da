//! What streams that are idle cost, counted at the allocator over all threads.
#![allow(unsafe_code)] // A global allocator cannot be written without.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use inhost::Host;
use inhost::net::{TcpListener, TcpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        BYTES.fetch_add(new_size, Ordering::Relaxed);
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Pairs of streams; each has two ends on the host.
const PAIRS: usize = 5_000;
/// Pairs before those, by which what the host keeps in any case is there: its flight recorder.
const EARLIER_PAIRS: usize = 2_500;
/// The most that an idle end may cost.
const MOST_BYTES: usize = 2_048;

#[test]
fn an_idle_stream_costs_two_kilobytes_at_most() -> io::Result<()> {
    let host = Host::builder().start()?;
    host.make_default();
    inhost::block_on(async {
        let listener = TcpListener::bind("127.0.0.1:7").await?;
        let mut streams = Vec::with_capacity(2 * (EARLIER_PAIRS + PAIRS));
        let mut used_bytes = [0; 2];
        for (pairs, used_bytes) in [EARLIER_PAIRS, PAIRS].into_iter().zip(&mut used_bytes) {
            for _ in 0..pairs {
                let mut caller = TcpStream::connect("127.0.0.1:7").await?;
                let (mut callee, _) = listener.accept().await?;
                // Each has carried something.
                caller.write_all(&[1; 100]).await?;
                callee.read_exact(&mut [0; 100]).await?;
                callee.write_all(&[2; 100]).await?;
                caller.read_exact(&mut [0; 100]).await?;
                streams.extend([caller, callee]);
            }
            // What was not needed for a while is given back.
            inhost_interop::pause(std::time::Duration::from_secs(4));
            *used_bytes = BYTES.load(Ordering::Relaxed);
        }
        let each_bytes = (used_bytes[1] - used_bytes[0]) / (2 * PAIRS);
        println!("{each_bytes} bytes an idle stream");
        assert!(each_bytes <= MOST_BYTES, "{each_bytes} bytes an idle stream");
        Ok(())
    })
}
