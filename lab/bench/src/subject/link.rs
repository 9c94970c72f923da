//! Our host at one end of a TUN or TAP device, under the runtime of `inhost serve`; the kernel is at the other end.

use crate::answer::Answer;
use crate::bodies;
use crate::consume;
use crate::host::SHIPPED;
use crate::shards;
use inhost_base::{Cidr, Endpoint, Ipv4Addr};
use inhost_link::Spec;
use inhost_runtime::{Clock, Runtime, interface};
use inhost_socket::{Host, Stream};
use inhost_stack::{DuplicateDetection, StackConfig};
use std::thread::park_timeout;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The kernel's end.
const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
/// As a host's own thread looks again by default (`inhost::Host::builder`).
const BUSY_POLL: inhost_base::Duration = inhost_base::Duration::from_micros(50);
/// Ours.
pub const OURS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
/// The kernel takes a moment to bring up a device that somebody has attached to; until then it sends nothing.
pub const COMING_UP: Duration = Duration::from_millis(100);
/// Bytes of one write, and of one read.
const PIECE_BYTES: usize = 64 << 10;

/// `tun-plain:send` and similar subjects.
pub fn measure(link: &str, load: &str, length: Duration) -> Result<Answer, String> {
    match link {
        "tun1-plain" => return shards::over_tun(1, load, length),
        "tun2-plain" => return shards::over_tun(2, load, length),
        _ => {}
    }
    let spec = match link {
        "tun-plain" => "tun:bench,offload=off",
        "tun-offload" => "tun:bench",
        "tap-plain" => "tap:bench,offload=off",
        "tap-offload" => "tap:bench",
        _ => return Err(format!("{link:?} is not a link of ours")),
    };
    let spec: Spec = spec.parse().map_err(|e| format!("{spec}: {e}"))?;
    let mut runtime = Runtime::new(StackConfig::default()).map_err(|e| e.to_string())?;
    let host = runtime.host().clone();
    let driver = inhost_link::open(&spec).map_err(|e| e.to_string())?;
    let address = Cidr::new(OURS, 24).map_err(|e| e.to_string())?;
    let mut config = interface("bench", &*driver);
    config.duplicate_detection = DuplicateDetection::Off;
    let what = driver.describe();
    park_timeout(COMING_UP);
    runtime.add_link(&host, config.with_address(address), driver).map_err(|e| e.to_string())?;
    let answer = Answer::new(format!("{SHIPPED}; runtime of serve, {what}, buffers as they size themselves"));
    let clock = runtime.clock();
    let until = clock.now() + length.into();
    let done = match load {
        "send" => runtime.run(until_over(&host, length, send(&host))),
        "receive" => runtime.run(until_over(&host, length, receive(&host))),
        "bodies" => {
            runtime.set_busy_poll(BUSY_POLL);
            runtime.run(until_over(&host, length, bodies::by_a_thread(&host)))
        }
        "bodies-local" => runtime.run(until_over(&host, length, bodies::by_a_task(&host))),
        "consume" => runtime.run(until_over(&host, length, consume::ours(&host, clock))),
        "echo" | "echo-cores" => {
            let (p50, p99) = runtime.run(echo(&host, clock, until)).map_err(|e| e.to_string())??;
            return Ok(answer.with("p50", p50).with("p99", p99));
        }
        _ => return Err(format!("{load:?} is not a load")),
    };
    done.map_err(|e| e.to_string())??;
    Ok(answer)
}

/// Runs `work` for a while, or until its other end is stopped.
async fn until_over(
    host: &Host,
    length: Duration,
    work: impl Future<Output = Result<(), String>>,
) -> Result<(), String> {
    host.timeout(length.into(), work).await.unwrap_or(Ok(()))
}

pub async fn connect(host: &Host, port: u16) -> Result<Stream, String> {
    host.connect(Endpoint::new(KERNEL, port)).await.map_err(|e| e.to_string())
}

pub async fn send(host: &Host) -> Result<(), String> {
    let mut stream = connect(host, 9).await?;
    let text = vec![0x5a; PIECE_BYTES];
    // The kernel's end is stopped when all is counted.
    while stream.write_all(&text).await.is_ok() {}
    Ok(())
}

pub async fn receive(host: &Host) -> Result<(), String> {
    let mut stream = connect(host, 10).await?;
    let mut place = vec![0; PIECE_BYTES];
    loop {
        match stream.read(&mut place).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(_) => {}
        }
    }
}

/// The middle and the 99th percentile of a round trip, in microseconds.
async fn echo(host: &Host, clock: Clock, until: inhost_base::Instant) -> Result<(f64, f64), String> {
    let mut stream = connect(host, 7).await?;
    let mut place = [0; 16];
    let mut each = Vec::with_capacity(1 << 20);
    let mut last = clock.now();
    while last < until {
        stream.write_all(b"x").await.map_err(|e| e.to_string())?;
        stream.read_exact(&mut place[..1]).await.map_err(|e| e.to_string())?;
        let now = clock.now();
        each.push(now.since(last).as_nanos() as f64 / 1e3);
        last = now;
    }
    crate::echo::percentiles(each.split_off(each.len() / 5)).ok_or("too few round trips".into())
}
