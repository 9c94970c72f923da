//! The peer never reads: each service of a simulated host, with a caller that says all there is to say at once and reads
//! nothing. What the service holds for it is counted at the allocator.

mod files;
mod ftp;
mod names;
mod telnet;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::rc::Rc;

use inhost_common::Callers;
use inhost_little::{LittleConfig, Service};
use inhost_sim::{Duration, Node, ProgramResult, Simulation};
use inhost_socket::Stream;
use inhost_stack::{SendHow, StackConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Bytes of a request that is repeated, in all.
const REQUEST_BYTES: usize = 1 << 20;
/// Each of the four buffers of a connection.
const BUFFER_BYTES: usize = 64 << 10;
/// What both hosts, the link and the service may hold for a caller that reads nothing.
const HELD_BYTES: isize = 2 << 20;
/// How long the caller goes on.
const STAY: Duration = Duration::from_secs(600);

/// Counts what each thread has allocated, for each simulation keeps to one.
struct Counting;
thread_local! {
    static ALLOCATED: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}
fn count(bytes: isize) {
    // A thread that is ending counts no more.
    let _ = ALLOCATED.try_with(|allocated| {
        allocated.set(allocated.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(allocated.get())));
    });
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Lets a caller say `request` again and again to `port` of a host on which `serve` runs, once `prelude` has been
/// said with it; gives the most memory that was held meanwhile.
fn held(
    port: u16,
    serve: impl AsyncFn(Node) -> ProgramResult + 'static,
    prelude: impl AsyncFnOnce(&Node, &mut Stream) -> std::io::Result<Option<Stream>> + 'static,
    request: &'static [u8],
) -> isize {
    let mut simulation = Simulation::new(1);
    simulation.set_time_limit(STAY + STAY);
    let mut config = StackConfig::default();
    config.tcp.send_buffer_limit_bytes = BUFFER_BYTES;
    config.tcp.receive_buffer_limit_bytes = BUFFER_BYTES;
    simulation.set_config(config);
    simulation.host("server", serve);
    let held = Rc::new(Cell::new(0));
    let tells = held.clone();
    simulation.client("caller", async move |node| {
        let mut stream = node.dial("server", port).await?;
        let other = prelude(&node, &mut stream).await?;
        let before = ALLOCATED.get();
        MOST.set(before);
        let says = async {
            let requests = request.repeat(REQUEST_BYTES / request.len().max(1));
            let mut rest = &requests[..];
            while !rest.is_empty() {
                match stream.send(rest, SendHow::default()).await {
                    Ok(count) => rest = &rest[count..],
                    // The server may end it.
                    Err(_) => break,
                }
            }
            std::future::pending::<()>().await;
        };
        let _ = node.timeout(STAY, says).await;
        tells.set(MOST.get() - before);
        drop(other);
        Ok(())
    });
    if let Err(why) = simulation.run() {
        panic!("{why}");
    }
    held.get()
}

/// The caller's own requests, and what both stacks and the service hold.
fn assert_little(what: &str, held: isize) {
    println!("{what}: {held} bytes held");
    let limit = REQUEST_BYTES as isize + HELD_BYTES;
    assert!(held <= limit, "{what}: {held} bytes are held for a caller that reads nothing; {limit} may be");
}

/// Reads until `text` has come.
async fn expect(stream: &mut Stream, text: &str) -> std::io::Result<String> {
    let mut received = String::new();
    while !received.ends_with(text) {
        let mut octet = [0];
        stream.read_exact(&mut octet).await?;
        received.extend(octet[0].is_ascii().then_some(char::from(octet[0])));
    }
    Ok(received)
}

/// Says a line and reads until `text`.
async fn says(stream: &mut Stream, line: &str, text: &str) -> std::io::Result<String> {
    stream.write_all(format!("{line}\r\n").as_bytes()).await?;
    expect(stream, text).await
}

#[test]
fn the_little_services_hold_little() {
    for service in [Service::Echo, Service::Chargen, Service::Daytime, Service::Discard] {
        let serve = async |node: Node| {
            let mut config = LittleConfig::default();
            config.idle_limit = Duration::from_secs(3600);
            let _little = inhost_little::serve(&node, config, Callers::default(), || 1_795_300_000)?;
            std::future::pending::<()>().await;
            Ok(())
        };
        let held = held(service.port(), serve, async |_, _| Ok(None), b"what is not read\r\n");
        assert_little(service.name(), held);
    }
}
