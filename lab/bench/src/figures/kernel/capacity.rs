//! Proof that the emulator carries twice what is asked of it, before anything is measured through it.

use super::cell::{Cell, Loss};
use super::emulator::Emulator;
use super::place::Place;
use super::run::{BUFFER_LIMIT_BYTES, Joining, Measured, measure, wires};
use super::schedule::Share;
use super::subject::send_from_kernel;
use inhost_base::Duration;
use std::fmt::Write;

/// How long the proof runs at each rate.
const SECONDS: u64 = 5;
/// Twice, less what TCP leaves now and then.
const TWICE: f64 = 1.95;
/// Tries.
const TRIES: u32 = 4;

/// What was carried at twice a rate.
pub struct Carried {
    /// The rate under test.
    pub rate_mbit: u64,
    /// Paths at a time, as many as the share allows at the rate under test.
    pub paths: usize,
    /// Of the slowest path, with all headers.
    pub slowest_mbit: f64,
    /// Of all together.
    pub all_mbit: f64,
    /// How late packets were handed over: the 99th percentile of the worst path.
    pub late_p99_us: f64,
}

impl Carried {
    fn is_twice(&self) -> bool {
        self.slowest_mbit >= TWICE * self.rate_mbit as f64
    }
}

/// Lets the kernel send over as many paths as will run together, each at twice the rate; again when its TCP left some of
/// it, which tells nothing of the emulator.
pub fn prove(emulator: &Emulator, rate_mbit: u64, share: Share) -> Result<Carried, String> {
    let mut carried = carry(emulator, rate_mbit, share)?;
    for _ in 1..TRIES {
        if carried.is_twice() {
            break;
        }
        carried = carry(emulator, rate_mbit, share)?;
    }
    Ok(carried)
}

fn carry(emulator: &Emulator, rate_mbit: u64, share: Share) -> Result<Carried, String> {
    let doubled = Cell { rate_mbit: 2 * rate_mbit, round_trip: Duration::from_millis(20), loss: Loss::None };
    let fit = share.bits_per_second / (rate_mbit * 1_000_000) as f64;
    let paths = (fit as usize).clamp(1, share.runs);
    let one = || -> Result<(f64, f64), String> {
        let (place, ends) = Place::new(BUFFER_LIMIT_BYTES)?;
        let limit = Duration::from_secs(10 * SECONDS);
        let bytes = doubled.rate_bits_per_second() / 8 * SECONDS;
        let joining = Joining { ends, wires: wires(&doubled, 0), capture: None };
        let Measured { received, began, path } =
            measure(emulator, &place, joining, limit, 1, |_, clock, over| {
                send_from_kernel("cubic", bytes, clock, over)
            })?;
        let received = received.first().ok_or("nothing was carried")?;
        // Whole seconds only, and not the first, which is slow start.
        let first = (began.as_millis() / 1000) as usize + 2;
        let seconds =
            received.by_second.get(first..received.by_second.len().saturating_sub(1)).unwrap_or(&[]);
        let payload: u64 = seconds.iter().sum();
        let carried = path.wires[0].carried_bytes as f64 / received.bytes.max(1) as f64;
        let mbit = payload as f64 * carried * 8e-6 / seconds.len().max(1) as f64;
        Ok((mbit, path.late.quantile(0.99).unwrap_or(0.0) / 1000.0))
    };
    let carried: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..paths).map(|_| scope.spawn(one)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<(f64, f64), String>>| {
            thread.join().unwrap_or_else(|_| Err("the proof panicked".into()))
        };
        threads.into_iter().map(join).collect::<Result<_, _>>()
    })?;
    Ok(Carried {
        rate_mbit,
        paths,
        slowest_mbit: carried.iter().map(|c| c.0).fold(f64::INFINITY, f64::min),
        all_mbit: carried.iter().map(|c| c.0).sum(),
        late_p99_us: carried.iter().map(|c| c.1).fold(0.0, f64::max),
    })
}

/// For a person; an error where some path carried less than twice its rate.
pub fn to_table(shown: &[Carried]) -> Result<String, String> {
    let mut table = format!(
        "{:>7} {:>6}  {:>12} {:>10}  {:>12}\n{:>7} {:>6}  {:>12} {:>10}  {:>12}\n",
        "rate", "paths", "slowest path", "all", "late by", "Mbit/s", "", "Mbit/s", "Mbit/s", "p99 µs"
    );
    for c in shown {
        let _ = writeln!(
            table,
            "{:>7} {:>6}  {:>12.1} {:>10.1}  {:>12.0}",
            c.rate_mbit, c.paths, c.slowest_mbit, c.all_mbit, c.late_p99_us
        );
    }
    match shown.iter().find(|c| !c.is_twice()) {
        None => Ok(table),
        Some(c) => Err(format!(
            "the emulator does not carry twice {} Mbit/s here; give it less at a time with --share\n{table}",
            c.rate_mbit
        )),
    }
}
