//! Five of ours beside five of the kernel's, on one bottleneck.

use super::SETTLING_S;
use crate::figures::chart::{self, Mark, Panel};
use crate::figures::kernel::cell::{Cell, Loss};
use crate::figures::kernel::emulator::Emulator;
use crate::figures::kernel::place::Place;
use crate::figures::kernel::run::{BUFFER_LIMIT_BYTES, Joining, Measured, measure as measure_run, wires};
use crate::figures::kernel::subject::{send_from_kernel, send_from_ours};
use crate::figures::machine;
use crate::figures::statistics::{jain, median};
use inhost_base::Duration;
use serde::Serialize;
use std::fmt::Write;

/// Connections of each stack.
const EACH: usize = 5;
/// More than any of them will send.
const ENDLESS_BYTES: u64 = 1 << 50;
/// Ours take so much of what all take, in per cent.
const FAIR_PERCENT: std::ops::RangeInclusive<f64> = 40.0..=60.0;

/// The effect of a condition.
#[derive(Serialize)]
pub struct Share {
    rate_mbit: u64,
    round_trip_ms: u64,
    /// What ours took of all, in each repetition, in per cent.
    ours_percent: Vec<f64>,
    median_percent: f64,
    /// The median of all ten.
    jain: f64,
    /// Of both together: the median.
    all_mbit: f64,
    met: bool,
}

/// Measures each condition `repeats` times.
pub fn measure(repeats: u32, seconds: u64) -> Result<Vec<Share>, String> {
    machine::run_in_real_time(rustix::thread::gettid(), crate::figures::kernel::PRIORITY);
    let emulator = Emulator::start().map_err(|e| e.to_string())?;
    let mut shares = Vec::new();
    for (rate_mbit, round_trip_ms) in [(10, 20), (10, 100), (100, 20), (100, 100)] {
        let cell = Cell { rate_mbit, round_trip: Duration::from_millis(round_trip_ms), loss: Loss::None };
        let one = |_| {
            std::thread::scope(|scope| {
                let run = scope.spawn(|| run(&emulator, &cell, seconds));
                run.join().unwrap_or_else(|_| Err("the run panicked".into()))
            })
        };
        let runs = (0..repeats).map(one).collect::<Result<Vec<Vec<(bool, f64)>>, String>>()?;
        let sum = |run: &[(bool, f64)], whose: fn(bool) -> bool| {
            run.iter().filter(|(ours, _)| whose(*ours)).map(|(_, mbit)| mbit).sum::<f64>()
        };
        let ours_percent: Vec<f64> =
            runs.iter().map(|run| 100.0 * sum(run, |ours| ours) / sum(run, |_| true)).collect();
        let jains: Vec<f64> =
            runs.iter().map(|run| jain(&run.iter().map(|(_, mbit)| *mbit).collect::<Vec<_>>())).collect();
        let alls: Vec<f64> = runs.iter().map(|run| sum(run, |_| true)).collect();
        let median_percent = median(&ours_percent).ok_or("nothing was repeated")?;
        eprintln!("{}: ours {median_percent:.1} %", cell.name());
        shares.push(Share {
            rate_mbit,
            round_trip_ms,
            ours_percent,
            median_percent,
            jain: median(&jains).unwrap_or(0.0),
            all_mbit: median(&alls).unwrap_or(0.0),
            met: FAIR_PERCENT.contains(&median_percent),
        });
    }
    Ok(shares)
}

/// One repetition: whether each connection is ours, and what it took after it had settled, in Mbit/s.
fn run(emulator: &Emulator, cell: &Cell, seconds: u64) -> Result<Vec<(bool, f64)>, String> {
    let (place, ends) = Place::new(BUFFER_LIMIT_BYTES)?;
    let limit = Duration::from_secs(seconds);
    let joining = Joining { ends, wires: wires(cell, 0), capture: None };
    let all = measure_run(emulator, &place, joining, limit, 2 * EACH, |place, clock, over| {
        std::thread::scope(|scope| {
            let kernels: Vec<_> = (0..EACH)
                .map(|_| scope.spawn(|| send_from_kernel("cubic", ENDLESS_BYTES, clock, over)))
                .collect();
            let began = send_from_ours(place, BUFFER_LIMIT_BYTES, EACH, ENDLESS_BYTES, clock, over);
            kernels.into_iter().try_for_each(|kernel| {
                kernel.join().unwrap_or_else(|_| Err("a sender panicked".into())).map(drop)
            })?;
            began
        })
    });
    let Measured { received, .. } = all?;
    // The clock stands at a second when it is started.
    let counted = |by_second: &[u64]| -> u64 {
        by_second.iter().take(seconds as usize).skip(1 + SETTLING_S as usize).sum()
    };
    let mbit = |bytes: u64| bytes as f64 * 8e-6 / (seconds - 1 - SETTLING_S) as f64;
    Ok(received.iter().map(|h| (h.from == Some(Place::own_address()), mbit(counted(&h.by_second)))).collect())
}

/// For a person.
pub fn to_table(shares: &[Share]) -> String {
    if shares.is_empty() {
        return String::new();
    }
    let mut table = format!("{EACH} of inhost beside {EACH} of Linux CUBIC on one bottleneck\n");
    let _ = writeln!(
        table,
        "{:>7} {:>6}  {:>9} {:>17}  {:>5} {:>9}  met",
        "Mbit/s", "RTT ms", "inhost %", "least .. most", "Jain", "all Mbit/s"
    );
    for s in shares {
        let (least, most) = (s.ours_percent.iter(), s.ours_percent.iter());
        let range = format!(
            "{:.1} .. {:.1}",
            least.copied().fold(f64::INFINITY, f64::min),
            most.copied().fold(0.0, f64::max)
        );
        let met = if s.met { "yes" } else { "NO" };
        let _ = writeln!(
            table,
            "{:>7} {:>6}  {:>9.1} {range:>17}  {:>5.3} {:>9.2}  {met}",
            s.rate_mbit, s.round_trip_ms, s.median_percent, s.jain, s.all_mbit
        );
    }
    table
}

/// The picture: what ours take, beside what is fair.
pub fn draw(shares: &[Share]) -> Result<(), String> {
    let marks = shares.iter().flat_map(|s| {
        let group = format!("{} Mbit/s, {} ms", s.rate_mbit, s.round_trip_ms);
        s.ours_percent.iter().map(move |percent| Mark {
            group: group.clone(),
            series: "each repetition".into(),
            value: percent / 50.0,
            lower: None,
        })
    });
    let panel =
        Panel { title: "1.0 is half of the bottleneck; fair is 0.8 to 1.2".into(), marks: marks.collect() };
    chart::categories(
        "docs/figures/fairness-mixed.svg",
        "What five of inhost take beside five of Linux CUBIC",
        &[panel],
        &[FAIR_PERCENT.start() / 50.0, FAIR_PERCENT.end() / 50.0],
    )
}
