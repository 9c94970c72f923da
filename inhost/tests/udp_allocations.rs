//! No memory is allocated for a datagram in steady state, counted at the allocator over all threads.
#![allow(unsafe_code)] // A global allocator cannot be written without.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use inhost::Host;
use inhost::link::memory;
use inhost::net::{SendDatagrams, UdpSocket};
use inhost::stack::UdpOptions;

struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Datagrams of one measurement, and those before it.
const MEASURED: u64 = 20_000;
const WARM: u64 = 5_000;

fn pair() -> io::Result<(Host, Host)> {
    let config = memory::Config { doorbell: true, ..memory::Config::default() };
    let (near, far) = memory::pair(&config)?;
    let near =
        Host::builder().name("near").driver(near, |link| link.with_address("10.9.0.1/24".parse().unwrap()));
    let far =
        Host::builder().name("far").driver(far, |link| link.with_address("10.9.0.2/24".parse().unwrap()));
    Ok((near.start()?, far.start()?))
}

/// Each datagram is answered before the next.
async fn to_and_fro(client: &UdpSocket, server: &UdpSocket, count: u64) -> io::Result<()> {
    let mut place = [0; 2_000];
    for _ in 0..count / 2 {
        client.send(&[1; 1_200]).await?;
        let (length, from) = server.recv_from(&mut place).await?;
        server.send_to(&place[..length], from).await?;
        assert_eq!(client.recv(&mut place).await?, 1_200);
    }
    Ok(())
}

/// Ten in one call, and a few calls at a time.
async fn many_at_once(client: &UdpSocket, server: &UdpSocket, count: u64) -> io::Result<()> {
    let mut how = SendDatagrams::default();
    how.segment_bytes = 1_200;
    let bytes = [2; 12_000];
    let mut place = vec![0; 65_536];
    for _ in 0..count / 50 {
        for _ in 0..5 {
            std::future::poll_fn(|context| client.poll_send_with(context, &bytes, &how)).await?;
        }
        let mut left = 60_000;
        while left > 0 {
            let some = std::future::poll_fn(|context| server.poll_recv_gro(context, &mut place)).await?;
            left -= some.info.length_bytes;
        }
    }
    Ok(())
}

#[test]
fn no_datagram_allocates_in_steady_state() -> io::Result<()> {
    // A datagram that is lost would be waited for without end.
    inhost_interop::join(std::thread::spawn(measure))
}

fn measure() -> io::Result<()> {
    let (near, far) = pair()?;
    inhost::block_on(async {
        let server = far.udp_with("10.9.0.2:7".parse().unwrap(), UdpOptions::default()).await?;
        let client = near.udp("10.9.0.1:0").await?;
        client.connect("10.9.0.2:7").await?;
        // The executor's queue of woken tasks is a list of blocks of 31 (`concurrent-queue`). A datagram that goes alone wakes
        // a task on each host.
        let wakes = 2 * MEASURED;
        for (name, most) in [("to and fro", wakes / 31 + 100), ("many at once", MEASURED / 100)] {
            let mut calls = 0;
            for count in [WARM, MEASURED] {
                let before = CALLS.load(Ordering::Relaxed);
                match name {
                    "to and fro" => to_and_fro(&client, &server, count).await?,
                    _ => many_at_once(&client, &server, count).await?,
                }
                calls = CALLS.load(Ordering::Relaxed) - before;
            }
            println!("{name}: {calls} allocations for {MEASURED} datagrams");
            assert!(calls < most, "{name}: {calls} allocations for {MEASURED} datagrams");
        }
        assert_eq!((client.dropped(), server.dropped()), (0, 0));
        Ok(())
    })
}
