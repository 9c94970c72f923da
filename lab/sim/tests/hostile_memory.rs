//! Memory that hostile peers pin, counted at the allocator: by capacity, whatever the host's own counts say.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use inhost_sim::hostile;

/// Frames thrown.
const FRAMES: u64 = 300_000;

struct Counting;
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_host_under_hostile_peers_takes_at_most_a_third_more_than_its_limit() {
    let (mut before, mut most) = (None, 0);
    let report = hostile::run_peers(8, FRAMES, &mut |_| {
        let now = ALLOCATED.load(Ordering::Relaxed);
        // At the first look the attackers have nothing yet: the rest of the simulation is what it is.
        before.get_or_insert(now);
        most = most.max(now);
    });
    let taken = most - before.unwrap();
    let limit = hostile::MEMORY_BYTES / 10 * 13;
    println!("{taken} bytes taken, {} may be", limit);
    assert!(taken <= limit, "{taken} bytes taken, where {limit} may be");
    let report = report.unwrap();
    // They did take what they could get.
    assert!(report.most_memory_bytes > hostile::MEMORY_BYTES / 3, "{report:#?}");
}
