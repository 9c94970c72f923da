//! Sockets that are `Send`, in tasks of tokio: `inhost::net` on a host with a thread of its own, and netstack-smoltcp on the
//! same runtime. One measurement a process, one line of JSON as its answer.
//!
//! netstack-smoltcp opens no connection, so the kernel's end calls both of them.

mod netstack;

use std::future::Future;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

const USAGE: &str = "\
usage: inhost-bench-net LINK:LOAD SECONDS
LINK:LOAD of tun-offload and send-net receive-net echo-net echo-cores-net open-net (inhost on a thread of its own) or the
same with within for net (inhost in a task of the runtime), of tun-plain and the same with netstack for net
INHOST_BUSY_POLL_US in the environment: for how long the host of net looks again instead of sleeping";

/// Connections that are opened and kept, and the longest time for that.
const OPEN_CONNECTIONS: usize = 10_000;
const OPEN_LIMIT: Duration = Duration::from_secs(8);
/// Bytes of one write, and of one read.
const PIECE_BYTES: usize = 64 << 10;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [word, seconds] = words[..] else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let length = seconds.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    let (Some(length), Some((link, load))) = (length, word.split_once(':')) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match measure(link, load, length) {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("inhost-bench-net {word}: {why}");
            ExitCode::FAILURE
        }
    }
}

fn measure(link: &str, load: &str, length: Duration) -> Result<String, String> {
    let (load, stack) = load.rsplit_once('-').ok_or(USAGE)?;
    let port = match load {
        "send" => 9,
        "receive" => 10,
        "echo" | "echo-cores" => 7,
        "open" => 13,
        _ => return Err(USAGE.into()),
    };
    let runtime = runtime(load).map_err(|e| e.to_string())?;
    let (settings, figures) = match (stack, link) {
        ("net", "tun-offload") => {
            let mut host = inhost::Host::builder().link("tun:bench,address=10.9.0.2/24");
            if let Some(us) = std::env::var("INHOST_BUSY_POLL_US").ok().and_then(|us| us.parse().ok()) {
                host = host.busy_poll(Duration::from_micros(us));
            }
            let host = host.start().map_err(|e| e.to_string())?;
            let figures = runtime.block_on(async {
                let listener = host.listen(("10.9.0.2", port)).await.map_err(|e| e.to_string())?;
                let accept = async || Ok(listener.accept().await.map_err(|e| e.to_string())?.0);
                run(accept, load, length).await
            });
            ("inhost::net; a host on a thread of its own, as it is by default", figures?)
        }
        ("within", "tun-offload") => {
            // Everything is on this thread.
            let runtime = Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
            let figures = LocalSet::new().block_on(&runtime, async {
                let host = inhost::Host::builder().link("tun:bench,address=10.9.0.2/24");
                let (host, driver) = host.within_tokio().map_err(|e| e.to_string())?;
                tokio::task::spawn_local(driver);
                let listener = host.listen(("10.9.0.2", port)).await.map_err(|e| e.to_string())?;
                let accept = async || Ok(listener.accept().await.map_err(|e| e.to_string())?.0);
                run(accept, load, length).await
            });
            ("inhost::net; a host in a task of tokio's thread (within_tokio)", figures?)
        }
        ("netstack", "tun-plain") => {
            let figures = runtime.block_on(async {
                let mut listener = netstack::listen("bench").await?;
                run(async || netstack::accept(&mut listener).await, load, length).await
            });
            ("netstack-smoltcp 0.2.4; buffers of 512 KiB, a packet a call", figures?)
        }
        _ => return Err(USAGE.into()),
    };
    // What still runs ends with the process.
    runtime.shutdown_background();
    Ok(format!("{{\"figures\":{{{figures}}},\"settings\":\"{settings}\"}}"))
}

/// A round trip needs one thread, a stream all.
fn runtime(load: &str) -> std::io::Result<Runtime> {
    match load {
        "echo" | "echo-cores" => Builder::new_current_thread().enable_all().build(),
        _ => Builder::new_multi_thread().enable_all().build(),
    }
}

/// Works for so long, or until the other end is stopped.
async fn run<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    mut accept: impl AsyncFnMut() -> Result<S, String>,
    load: &str,
    length: Duration,
) -> Result<String, String> {
    match load {
        "send" => on_a_task(length, send(accept().await?)).await,
        "receive" => on_a_task(length, receive(accept().await?)).await,
        "open" => open(accept).await,
        _ => echo(accept().await?, length).await,
    }
}

/// Accepts until there are as many connections as are opened, or the time for that is over, and keeps them: how many a second, and the
/// memory of each.
async fn open<S: AsyncRead + Unpin>(
    mut accept: impl AsyncFnMut() -> Result<S, String>,
) -> Result<String, String> {
    let mut streams = Vec::with_capacity(OPEN_CONNECTIONS);
    let mut next = async || {
        let mut stream = accept().await?;
        stream.read_u8().await.map_err(|e| e.to_string())?;
        Ok::<_, String>(stream)
    };
    streams.push(next().await?);
    let (began, before_bytes) = (Instant::now(), resident_bytes()?);
    while streams.len() < OPEN_CONNECTIONS && began.elapsed() < OPEN_LIMIT {
        let left = OPEN_LIMIT.saturating_sub(began.elapsed());
        match tokio::time::timeout(left, next()).await {
            Ok(stream) => streams.push(stream?),
            Err(_) => break,
        }
    }
    let (seconds, count) = (began.elapsed().as_secs_f64(), (streams.len() - 1) as f64);
    let each_bytes = resident_bytes()?.saturating_sub(before_bytes) as f64 / count;
    Ok(format!("\"rate\":{},\"bytes\":{each_bytes},\"open\":{}", count / seconds, streams.len()))
}

/// Memory that this process has in use.
fn resident_bytes() -> Result<u64, String> {
    let statm = std::fs::read_to_string("/proc/self/statm").map_err(|e| e.to_string())?;
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    Ok(pages.ok_or("/proc/self/statm has no second number")? * 4096)
}

async fn on_a_task(
    length: Duration,
    work: impl Future<Output = ()> + Send + 'static,
) -> Result<String, String> {
    let task = tokio::spawn(work);
    let _ = tokio::time::timeout(length, task).await;
    Ok(String::new())
}

async fn send(mut stream: impl AsyncWrite + Unpin) {
    let text = vec![0x5a; PIECE_BYTES];
    while stream.write_all(&text).await.is_ok() {}
}

async fn receive(mut stream: impl AsyncRead + Unpin) {
    let mut place = vec![0; PIECE_BYTES];
    while stream.read(&mut place).await.is_ok_and(|count| count > 0) {}
}

/// The middle and the 99th percentile of a round trip, in microseconds.
async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin, length: Duration) -> Result<String, String> {
    let (mut place, mut each) = ([0; 16], Vec::with_capacity(1 << 20));
    let began = Instant::now();
    let mut last = began;
    while last.duration_since(began) < length {
        stream.write_all(b"x").await.map_err(|e| e.to_string())?;
        stream.read_exact(&mut place[..1]).await.map_err(|e| e.to_string())?;
        let now = Instant::now();
        each.push(now.duration_since(last).as_nanos() as f64 / 1e3);
        last = now;
    }
    let mut each = each.split_off(each.len() / 5);
    each.sort_by(f64::total_cmp);
    let at = |percent: usize| each.get(each.len() * percent / 100).copied().unwrap_or(f64::NAN);
    Ok(format!("\"p50\":{},\"p99\":{}", at(50), at(99)))
}
