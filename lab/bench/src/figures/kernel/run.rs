//! One run: one transfer of one sender through one cell.

use super::capture::Capture;
use super::cell::{Cell, Loss};
use super::drops::Drops;
use super::emulator::{Emulator, PathCount};
use super::place::Place;
use super::subject::{Over, ReceiverStats, Subject, receive, send_from_kernel, send_from_ours};
use super::wire::{Wire, WireConfig};
use crate::figures::statistics::Histogram;
use inhost_base::{Duration, Instant};
use inhost_link::Tunnel;
use inhost_runtime::Clock;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::thread::ScopedJoinHandle;

/// The limit of the send buffer and of the receive buffer, for both stacks: more than twice what the longest path
/// and its queue hold.
pub const BUFFER_LIMIT_BYTES: usize = 16 << 20;
/// A run that takes so many times what was expected is ended, and counts with what it has carried.
const TIMEOUT_FACTOR: f64 = 5.0;

/// What a run gave: a line of the committed files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The cell's name.
    pub cell: String,
    /// The pair's number in the cell, which decides what is lost.
    pub pair: u32,
    /// The sender.
    pub subject: String,
    /// Bytes that the receiver's application got.
    pub bytes: u64,
    /// From the call to connect until the last of them.
    pub seconds: f64,
    /// Whether that was all of the transfer.
    pub complete: bool,
    /// Between one delivery to the application and the next.
    pub gaps: Histogram,
    /// Packets lost on the wire by decision, and packets that the queue had no room for.
    pub lost: u64,
    /// See above.
    pub overflowed: u64,
    /// How late the emulator handed packets over: the 99th percentile.
    pub late_p99_us: f64,
    /// The day.
    pub date: String,
    /// The version of the sender: the kernel's release, or our commit.
    pub version: String,
}

impl Row {
    /// Bits that reached the application in a second.
    pub fn bits_per_second(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.seconds
    }
}

/// What was measured, before it has a name.
pub struct Measured {
    /// What the receiver saw.
    pub received: Vec<ReceiverStats>,
    /// When the sender began to connect.
    pub began: Instant,
    /// What the emulator saw.
    pub path: PathCount,
}

/// The wires of a cell: what is lost follows from `pair`; acknowledgments have the same rate, delay and queue, and
/// nothing of them is lost.
pub fn wires(cell: &Cell, pair: u32) -> [WireConfig; 2] {
    let wire = |loss| WireConfig {
        rate_bits_per_second: cell.rate_bits_per_second(),
        delay: cell.round_trip.divided_by(2),
        queue_bytes: cell.queue_bytes(),
        drops: Drops::new(loss, cell.seed(pair)),
    };
    [wire(cell.loss), wire(Loss::None)]
}

/// Runs one transfer; the thread is left in its own namespace.
pub fn run(
    emulator: &Emulator,
    cell: &Cell,
    pair: u32,
    subject: &Subject,
    captures: Option<&Path>,
) -> Result<Row, String> {
    let name = format!("{}-{}-{pair}.pcap", cell.name(), subject.name());
    let capture = captures.map(|folder| Capture::create(&folder.join(name))).transpose()?;
    let (place, ends) = Place::new(BUFFER_LIMIT_BYTES)?;
    let limit = Duration::from_millis((cell.expected_s() * TIMEOUT_FACTOR * 1000.0) as u64);
    let joining = Joining { ends, wires: wires(cell, pair), capture };
    let measured = measure(emulator, &place, joining, limit, 1, |place, clock, over| match subject {
        Subject::Kernel(congestion) => send_from_kernel(congestion, cell.transfer_bytes(), clock, over),
        Subject::Ours => send_from_ours(place, BUFFER_LIMIT_BYTES, 1, cell.transfer_bytes(), clock, over),
    })?;
    let Measured { received, began, path } = measured;
    let [received] = <[ReceiverStats; 1]>::try_from(received).map_err(|_| "not one connection")?;
    let complete = received.bytes == cell.transfer_bytes();
    let last_at = received.last_at.filter(|_| complete).unwrap_or(began + limit);
    Ok(Row {
        cell: cell.name(),
        pair,
        subject: subject.name(),
        bytes: received.bytes,
        seconds: round(last_at.since(began).as_secs_f64(), 6),
        complete,
        gaps: received.gaps,
        lost: path.wires[0].lost,
        overflowed: path.wires[0].overflowed + path.wires[1].overflowed + path.refused,
        late_p99_us: round(path.late.quantile(0.99).unwrap_or(0.0) / 1000.0, 1),
        date: crate::figures::machine::today(),
        version: match subject {
            Subject::Kernel(_) => crate::figures::machine::kernel(),
            Subject::Ours => crate::figures::machine::commit(),
        },
    })
}

/// What the emulator joins, and how.
pub struct Joining {
    /// The devices at both ends.
    pub ends: [Tunnel; 2],
    /// From the first to the second, and back.
    pub wires: [WireConfig; 2],
    /// Where what enters is written.
    pub capture: Option<Capture>,
}

/// Joins the ends by the emulator, receives so many connections, and lets `send` send until it is done or the
/// `limit` is over.
pub fn measure(
    emulator: &Emulator,
    place: &Place,
    Joining { ends, wires, capture }: Joining,
    limit: Duration,
    connections: usize,
    send: impl FnOnce(&Place, Clock, &Over) -> Result<Instant, String>,
) -> Result<Measured, String> {
    let listener = place.listen()?;
    let path = emulator.join(ends, Box::new(wires.map(Wire::new)), capture);
    let clock = Clock::start();
    let over = Over::default();
    let (began, received) = std::thread::scope(|scope| {
        let receivers: Vec<_> =
            (0..connections).map(|_| scope.spawn(|| receive(&listener, clock, &over))).collect();
        let (timer, watched) = std::sync::mpsc::channel::<()>();
        let ends = &over;
        scope.spawn(move || {
            let limit = std::time::Duration::from_nanos(limit.as_nanos());
            if watched.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                ends.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        });
        let began = send(place, clock, &over);
        if began.is_err() {
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        let received: Vec<Result<ReceiverStats, String>> = receivers.into_iter().map(joined).collect();
        drop(timer);
        (began, received)
    });
    Ok(Measured {
        began: began?,
        received: received.into_iter().collect::<Result<_, _>>()?,
        path: path.count(),
    })
}

fn joined(receiver: ScopedJoinHandle<'_, Result<ReceiverStats, String>>) -> Result<ReceiverStats, String> {
    receiver.join().unwrap_or_else(|_| Err("the receiver panicked".into()))
}

/// Rounded to so many decimals, so that the committed files stay short.
fn round(value: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Bytes of the small transfer.
    const BYTES: u64 = 1_000_000;

    fn transfer(emulator: &Emulator, subject: &Subject) -> Result<Measured, String> {
        let cell = Cell { rate_mbit: 100, round_trip: Duration::from_millis(4), loss: Loss::Random(0.01) };
        let (place, ends) = Place::new(BUFFER_LIMIT_BYTES)?;
        let joining = Joining { ends, wires: wires(&cell, 0), capture: None };
        let limit = Duration::from_secs(30);
        measure(emulator, &place, joining, limit, 1, |place, clock, over| match subject {
            Subject::Kernel(congestion) => send_from_kernel(congestion, BYTES, clock, over),
            Subject::Ours => send_from_ours(place, BUFFER_LIMIT_BYTES, 1, BYTES, clock, over),
        })
    }

    #[test]
    fn both_senders_bring_all_through_the_same_losses() {
        if !rustix::process::geteuid().is_root() {
            inhost_interop::left_out("network namespaces need root; run as root");
            return;
        }
        let emulator = Arc::new(Emulator::start().unwrap());
        for subject in [Subject::Kernel("cubic".into()), Subject::Ours] {
            // Each on its own thread, which is left in the namespaces that it makes.
            let (emulator, sender) = (emulator.clone(), subject.clone());
            let thread = std::thread::spawn(move || transfer(&emulator, &sender));
            let Measured { received, began, path } = inhost_interop::join(thread).unwrap();
            assert_eq!(received[0].bytes, BYTES, "{subject:?}");
            assert!(path.wires[0].lost > 0, "{subject:?}: {path:?}");
            let seconds = received[0].last_at.unwrap().since(began).as_secs_f64();
            // The link's own time for so many bytes.
            assert!(seconds > BYTES as f64 * 8.0 / 100e6, "{subject:?}: {seconds}");
        }
    }
}
