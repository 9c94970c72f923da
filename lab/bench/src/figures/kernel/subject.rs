//! Senders: the kernel with one of its congestion controls, or ours. The receiver is always the kernel.

use super::place::Place;
use crate::figures::statistics::Histogram;
use inhost_base::{Duration, Endpoint, Instant};
use inhost_runtime::{Clock, Runtime, interface};
use inhost_stack::{ConnectOptions, DuplicateDetection, StackConfig, TcpConfig};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of one write and one read.
const PIECE_BYTES: usize = 256 << 10;
/// How often those who wait look whether the time is over.
const LOOK: Duration = Duration::from_millis(100);

/// Stacks under test, as senders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subject {
    /// The kernel of this machine, with the congestion control of this name.
    Kernel(String),
    /// Our own stack under its own runtime, on its own TUN device.
    Ours,
}

impl Subject {
    /// Its name in the rows.
    pub fn name(&self) -> String {
        match self {
            Subject::Kernel(congestion) => format!("linux-{congestion}"),
            Subject::Ours => "inhost-cubic".into(),
        }
    }
}

/// Statistics of a receiver.
#[derive(Clone, Debug, Default)]
pub struct ReceiverStats {
    /// Bytes, in order.
    pub bytes: u64,
    /// When the last of them came.
    pub last_at: Option<Instant>,
    /// Between one read that gave data and the next.
    pub gaps: Histogram,
    /// Bytes in each second of the clock.
    pub by_second: Vec<u64>,
    /// The sender.
    pub from: Option<std::net::IpAddr>,
}

impl ReceiverStats {
    fn add(&mut self, bytes: u64, now: Instant) {
        if let Some(last) = self.last_at.replace(now) {
            self.gaps.add(now.since(last).as_nanos());
        }
        self.bytes += bytes;
        let second = (now.as_millis() / 1000) as usize;
        if self.by_second.len() <= second {
            self.by_second.resize(second + 1, 0);
        }
        self.by_second[second] += bytes;
    }
}

/// Ends both sides of a run when its time is over.
pub type Over = Arc<AtomicBool>;

/// Receives one connection to its end, or until the time is `over`.
pub fn receive(listener: &TcpListener, clock: Clock, over: &Over) -> Result<ReceiverStats, String> {
    let mut stream = accept(listener, over)?;
    stream.set_read_timeout(Some(std_time(LOOK))).map_err(|e| e.to_string())?;
    let mut place = vec![0; PIECE_BYTES];
    let from = stream.peer_addr().map_err(|e| e.to_string())?.ip();
    let mut stats = ReceiverStats { from: Some(from), ..ReceiverStats::default() };
    while !over.load(Ordering::Relaxed) {
        match stream.read(&mut place) {
            Ok(0) => break,
            Ok(count) => stats.add(count as u64, clock.now()),
            Err(error) if is_time_over(&error) => {}
            Err(error) => return Err(format!("the receiver: {error}")),
        }
    }
    Ok(stats)
}

/// Accepts a connection, unless the time is over.
pub fn accept(listener: &TcpListener, over: &Over) -> Result<TcpStream, String> {
    listener.set_nonblocking(true).map_err(|e| e.to_string())?;
    while !over.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).map_err(|e| e.to_string())?;
                return Ok(stream);
            }
            Err(error) if is_time_over(&error) => wait_readable(listener)?,
            Err(error) => return Err(format!("the receiver does not accept: {error}")),
        }
    }
    Err("no connection came in time".into())
}

fn wait_readable(listener: &TcpListener) -> Result<(), String> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let wait = Timespec { tv_sec: 0, tv_nsec: LOOK.as_nanos() as _ };
    let mut descriptors = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut descriptors, Some(&wait)).map(drop).map_err(|e| e.to_string())
}

/// Whether a call only ended because of its own time limit.
pub fn is_time_over(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Sends `bytes` from the kernel, whose namespace this thread is in; says when it began to connect.
pub fn send_from_kernel(congestion: &str, bytes: u64, clock: Clock, over: &Over) -> Result<Instant, String> {
    let to: SocketAddr = Place::receiver_address();
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|e| e.to_string())?;
    sockopt::set_tcp_congestion(&socket, congestion)
        .map_err(|e| format!("the kernel has no congestion control {congestion}: {e}"))?;
    let began = clock.now();
    rustix::net::connect(&socket, &to).map_err(|e| format!("the kernel does not connect: {e}"))?;
    let mut stream = TcpStream::from(socket);
    stream.set_write_timeout(Some(std_time(LOOK))).map_err(|e| e.to_string())?;
    let text = vec![0x5a; PIECE_BYTES];
    let mut left = bytes;
    while left > 0 && !over.load(Ordering::Relaxed) {
        let piece = text.len().min(left as usize);
        match stream.write(&text[..piece]) {
            Ok(count) => left -= count as u64,
            Err(error) if is_time_over(&error) => {}
            // The receiver may have seen first that the time is over.
            Err(_) if over.load(Ordering::Relaxed) => break,
            Err(error) => return Err(format!("the kernel's sender: {error}")),
        }
    }
    if over.load(Ordering::Relaxed) {
        return Ok(began);
    }
    stream.shutdown(std::net::Shutdown::Write).map_err(|e| e.to_string())?;
    // The receiver closes when it has all.
    stream.set_read_timeout(Some(std_time(LOOK))).map_err(|e| e.to_string())?;
    while !over.load(Ordering::Relaxed) {
        match stream.read(&mut [0]) {
            Err(error) if is_time_over(&error) => {}
            _ => break,
        }
    }
    Ok(began)
}

/// Sends `bytes` on each of `connections` from our own stack; says when it began to connect.
pub fn send_from_ours(
    place: &Place,
    buffer_limit_bytes: usize,
    connections: usize,
    bytes: u64,
    clock: Clock,
    over: &Over,
) -> Result<Instant, String> {
    let mut tcp = TcpConfig::default();
    tcp.send_buffer_limit_bytes = buffer_limit_bytes;
    let memory_limit_bytes = (4 * connections * buffer_limit_bytes).max(64 << 20);
    let mut config = StackConfig::default();
    config.memory_limit_bytes = memory_limit_bytes;
    config.tcp = tcp;
    let mut runtime = Runtime::new(config).map_err(|e| e.to_string())?;
    let (tunnel, address) = place.own_link()?;
    let mut interface = interface("wire", &tunnel).with_address(address);
    interface.duplicate_detection = DuplicateDetection::Off;
    let host = runtime.host().clone();
    runtime.add_link(&host, interface, Box::new(tunnel)).map_err(|e| e.to_string())?;
    let began = clock.now();
    let talks: Vec<_> = (0..connections).map(|_| host.spawn(talk(host.clone(), bytes))).collect();
    let waits = host.clone();
    let (ends, over) = (over, Arc::clone(over));
    let time_over = async move {
        while !over.load(Ordering::Relaxed) {
            waits.sleep(LOOK).await;
        }
        Ok(())
    };
    let all = async {
        for talk in talks {
            talk.await?;
        }
        Ok(())
    };
    let sent: Result<(), String> =
        runtime.run(futures_lite::future::or(all, time_over)).map_err(|e| e.to_string())?;
    // The receiver may have seen first that the time is over.
    if ends.load(Ordering::Relaxed) { Ok(began) } else { sent.map(|()| began) }
}

/// One connection of ours: sends all, and waits until the receiver has closed.
async fn talk(host: inhost_socket::Host, bytes: u64) -> Result<(), String> {
    let to = Place::receiver_address();
    let to = Endpoint::new(to.ip(), to.port());
    let stream = host
        .connect_with(to, ConnectOptions::default())
        .await
        .map_err(|e| format!("our host does not connect: {e}"))?;
    let text = vec![0x5a; PIECE_BYTES];
    let mut left = bytes;
    while left > 0 {
        let piece = text.len().min(left as usize);
        left -= stream.send(&text[..piece], Default::default()).await.map_err(|e| e.to_string())? as u64;
    }
    stream.shutdown();
    while let Ok(1..) = stream.receive(&mut [0]).await {}
    Ok(())
}

/// A time as the standard library has it.
pub fn std_time(time: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(time.as_nanos())
}
