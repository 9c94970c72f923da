//! A program with a stack of its own moves to another process, in the middle of 100 transfers of the kernel's sockets. Nobody is
//! told, nothing is lost, and how long it took is measured.

mod guest;

use std::error::Error;
use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The device, and both ends of it.
const DEVICE: &str = "sandbox0";
const OURS: &str = "10.80.0.1/24";
const GUEST: &str = "10.80.0.2/24";
/// How many call, and what each has echoed.
const TRANSFERS: usize = 100;
const TRANSFER_BYTES: usize = 4 << 20;
/// The program moves when so much of all has come back.
const MOVES_AT_PERCENT: u64 = 40;
/// The longest that all may take.
const LIMIT: Duration = Duration::from_secs(120);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] => show(),
        ["guest"] => guest::run(DEVICE, GUEST),
        ["guest", "resumed"] => guest::resume(DEVICE),
        _ => Err("usage: inhost-example-sandbox, as root".into()),
    }
}

fn show() -> Result<(), Box<dyn Error>> {
    let _device = Device::make()?;
    let mut first = Guest::start(&["guest"])?;
    // The other process waits for what there will be to go on from.
    let mut second = Guest::start(&["guest", "resumed"])?;
    let came_back = Arc::new(AtomicU64::new(0));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let calls: Vec<_> =
        (0..TRANSFERS).map(|number| runtime.spawn(transfer(number, came_back.clone()))).collect();
    println!("{TRANSFERS} transfers of {} MiB, each way", TRANSFER_BYTES >> 20);

    let all_bytes = (TRANSFERS * TRANSFER_BYTES) as u64;
    runtime.block_on(until(|| came_back.load(Ordering::Relaxed) * 100 >= all_bytes * MOVES_AT_PERCENT))?;
    let state = first.stop()?;
    let moved_at = came_back.load(Ordering::Relaxed);
    let paused = second.go_on(&state)?;
    println!(
        "moved at {} %: {} KiB of state, {:.1} ms without a host",
        moved_at * 100 / all_bytes,
        state.len() >> 10,
        paused.as_secs_f64() * 1e3
    );

    let mut lost = 0;
    for call in calls {
        let ended = runtime.block_on(async { tokio::time::timeout(LIMIT, call).await });
        if let Err(why) = ended.map_err(io::Error::from).and_then(|ended| ended?) {
            eprintln!("{why}");
            lost += 1;
        }
    }
    println!("{} transfers intact, {lost} lost", TRANSFERS - lost);
    if lost > 0 { Err("the move was noticed".into()) } else { Ok(()) }
}

/// The byte at an offset of a transfer.
fn byte(number: usize, at: usize) -> u8 {
    (at.wrapping_mul(31) >> 3) as u8 ^ number as u8
}

/// Sends a text of its own and reads it back.
async fn transfer(number: usize, came_back: Arc<AtomicU64>) -> io::Result<()> {
    let stream = loop {
        // The first calls come before the guest is there.
        match tokio::time::timeout(Duration::from_secs(1), TcpStream::connect("10.80.0.2:7")).await {
            Ok(Ok(stream)) => break stream,
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    let (mut receive, mut send) = stream.into_split();
    let sending = async {
        let text: Vec<u8> = (0..TRANSFER_BYTES).map(|at| byte(number, at)).collect();
        send.write_all(&text).await?;
        send.shutdown().await
    };
    let receiving = async {
        let (mut place, mut at) = (vec![0; 64 << 10], 0);
        loop {
            let count = receive.read(&mut place).await?;
            if count == 0 {
                break;
            }
            let is_same =
                place[..count].iter().enumerate().all(|(index, &got)| got == byte(number, at + index));
            if !is_same {
                return Err(io::Error::other(format!(
                    "transfer {number} is other than what was sent, after {at} bytes"
                )));
            }
            at += count;
            came_back.fetch_add(count as u64, Ordering::Relaxed);
        }
        match at {
            TRANSFER_BYTES => Ok(()),
            _ => Err(io::Error::other(format!("transfer {number} ended after {at} bytes"))),
        }
    };
    tokio::try_join!(sending, receiving).map(|_| ())
}

/// Waits until something is so.
async fn until(is_so: impl Fn() -> bool) -> Result<(), Box<dyn Error>> {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    Ok(tokio::time::timeout(LIMIT, waiting).await?)
}

/// A device that stays while processes come and go.
struct Device;

impl Device {
    fn make() -> Result<Device, Box<dyn Error>> {
        let ip = |arguments: &str| -> Result<(), Box<dyn Error>> {
            let done = Command::new("ip").args(arguments.split(' ')).output()?;
            match done.status.success() {
                true => Ok(()),
                false => {
                    Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&done.stderr).trim()).into())
                }
            }
        };
        ip(&format!("tuntap add dev {DEVICE} mode tun vnet_hdr"))?;
        let device = Device;
        ip(&format!("address add {OURS} dev {DEVICE}"))?;
        ip(&format!("link set {DEVICE} up"))?;
        Ok(device)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["link", "delete", DEVICE]).status();
    }
}

/// A process of the program under test. It ends with this.
struct Guest(Child);

impl Guest {
    fn start(arguments: &[&str]) -> io::Result<Guest> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        Ok(Guest(command.spawn()?))
    }
    /// Has it stop, and gives all that it was.
    fn stop(&mut self) -> io::Result<Vec<u8>> {
        drop(self.0.stdin.take());
        let mut state = Vec::new();
        self.0.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?.read_to_end(&mut state)?;
        match self.0.wait()?.success() && !state.is_empty() {
            true => Ok(state),
            false => Err(io::Error::other("the guest did not give its state")),
        }
    }
    /// Has it go on from there; for how long there was no host.
    fn go_on(&mut self, state: &[u8]) -> Result<Duration, Box<dyn Error>> {
        let mut input = self.0.stdin.take().ok_or("no input")?;
        input.write_all(state)?;
        drop(input);
        let mut nanoseconds = [0; 8];
        self.0.stdout.as_mut().ok_or("no output")?.read_exact(&mut nanoseconds)?;
        Ok(Duration::from_nanos(u64::from_le_bytes(nanoseconds)))
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
