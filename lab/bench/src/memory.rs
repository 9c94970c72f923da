//! Bytes of an idle connection: ours counted at the allocator, the kernel's in its slabs.

use crate::ALLOCATOR;
use crate::pair::{FRAMES, Pair, STEP};
use inhost_base::Duration;
use inhost_stack::TcpSocketId;
use stats_alloc::Region;
use std::net::{TcpListener, TcpStream};

/// Connections that one listening port takes: fewer than there are ephemeral ports.
const CONNECTIONS_A_PORT: usize = 10_000;
/// Connections that are opened on the kernel's loopback; each has two ends.
const KERNEL_CONNECTIONS: usize = 1_000;

/// Connections of ours in the comparison.
const COMPARED: usize = 100_000;

/// Prints a row for each number of connections, and one for the kernel.
pub fn report(counts: &[usize]) -> Result<(), String> {
    println!(
        "{:<10} {:>12} {:>14} {:>12} {:>11}  how",
        "stack", "connections", "bytes an end", "a host, MiB", "echo, us"
    );
    for &count in counts {
        let Held { each, host, echo_us } = ours(count)?;
        println!(
            "{:<10} {count:>12} {each:>14.0} {:>12.0} {echo_us:>11.2}  {HOW}",
            "inhost",
            host / f64::from(1 << 20)
        );
    }
    match kernels() {
        Ok(each) => println!(
            "{:<10} {KERNEL_CONNECTIONS:>12} {each:>14.0} {:>12} {:>11}  growth of all slabs of /proc/slabinfo, loopback",
            "linux", "-", "-"
        ),
        Err(why) => println!("{:<10} {KERNEL_CONNECTIONS:>12} {:>14}  left out: {why}", "linux", "-"),
    }
    Ok(())
}

/// What the columns of ours say.
const HOW: &str = "a minute idle; live bytes at the allocator, an end without and a host with buffers kept for reuse; \
                   a byte there and back on a thousand of them in turn";

/// One line of JSON for the comparison: `idle` of ours, `idle-kernel` of the kernel's.
pub fn answer(word: &str) -> Result<(), String> {
    let (each, settings) = match word {
        "idle" => (
            ours(COMPARED)?.each,
            format!("{COMPARED} connections, a minute idle; live bytes at the allocator, each end"),
        ),
        "idle-kernel" => (
            kernels()?,
            format!(
                "{KERNEL_CONNECTIONS} connections over loopback; growth of all slabs, each end, socket and file included"
            ),
        ),
        _ => return Err(format!("{word:?} is neither idle nor idle-kernel")),
    };
    println!("{}", serde_json::json!({ "figures": { "bytes": each }, "settings": settings }));
    Ok(())
}

/// What so many connections hold, and whether they are in each other's way.
struct Held {
    /// Bytes of one end of one connection.
    each: f64,
    /// Bytes of a host with one end of all of them.
    host: f64,
    /// A byte there and back on one of them, both ends, by time of the core.
    echo_us: f64,
}

/// `count` established connections that have been idle for a minute.
fn ours(count: usize) -> Result<Held, String> {
    let region = Region::new(ALLOCATOR);
    let ports = count.div_ceil(CONNECTIONS_A_PORT);
    let mut pair = Pair::new(count + ports, FRAMES)?;
    let listeners: Vec<_> = (0..ports).map(|n| pair.listen(80 + n as u16)).collect::<Result<_, _>>()?;
    let empty = live_bytes(&region);
    let mut some = Vec::with_capacity(USED);
    for n in 0..count {
        let port = n / CONNECTIONS_A_PORT;
        let ends = pair.connect(listeners[port], 80 + port as u16)?;
        if n % count.div_ceil(USED) == 0 {
            some.push(ends);
        }
    }
    // The buffers of the handshakes go back, and what was made for them is freed.
    let until = pair.now + Duration::from_secs(60);
    while pair.now < until {
        pair.now += STEP.times(1_000);
        pair.round();
    }
    let live = live_bytes(&region);
    let pooled = pair.caller.memory().idle_bytes() + pair.called.memory().idle_bytes();
    let each = (live - empty - pooled as f64) / (2 * count) as f64;
    Ok(Held { each, host: live / 2.0, echo_us: echo_us(&mut pair, &some)? })
}

/// What a reallocation adds or frees is in these two already.
fn live_bytes(region: &Region<'_, std::alloc::System>) -> f64 {
    let change = region.change();
    change.bytes_allocated as f64 - change.bytes_deallocated as f64
}

/// Connections that are used after all have been idle, and times that each is.
const USED: usize = 1_000;
const USES: usize = 20;

fn echo_us(pair: &mut Pair, ends: &[(TcpSocketId, TcpSocketId)]) -> Result<f64, String> {
    let mut began = 0.0;
    for turn in 0..=USES {
        if turn == 1 {
            // What was freed while all were idle is there again.
            began = core_seconds();
        }
        for &(caller, called) in ends {
            pair.echo(caller, called)?;
        }
    }
    Ok((core_seconds() - began) / (USES * ends.len()) as f64 * 1e6)
}

/// Time that a core has spent on this thread.
fn core_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Bytes for each end of the kernel's connections.
fn kernels() -> Result<f64, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    let at = listener.local_addr().map_err(|e| e.to_string())?;
    let before = slab_bytes()?;
    let mut ends = Vec::new();
    for _ in 0..KERNEL_CONNECTIONS {
        ends.push(TcpStream::connect(at).map_err(|e| format!("{e}; raise the limit with ulimit -n"))?);
        ends.push(listener.accept().map_err(|e| e.to_string())?.0);
    }
    let after = slab_bytes()?;
    Ok((after as f64 - before as f64) / ends.len() as f64)
}

/// Bytes of all objects in use in the kernel's slabs.
fn slab_bytes() -> Result<u64, String> {
    let text =
        std::fs::read_to_string("/proc/slabinfo").map_err(|e| format!("/proc/slabinfo: {e}; run as root"))?;
    let bytes = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let active: u64 = fields.next()?.parse().ok()?;
        let size: u64 = fields.nth(1)?.parse().ok()?;
        Some(active * size)
    };
    Ok(text.lines().filter_map(bytes).sum())
}
