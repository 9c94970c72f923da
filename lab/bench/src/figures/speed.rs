//! How many segments the simulator carries in a second of one core.

use super::bulk::{Bulk, BulkConfig};
use super::machine;
use super::page;
use inhost_base::Duration;
use inhost_sim::{LinkConfig, Loss, QueueConfig};
use inhost_stack::StackConfig;
use serde::Serialize;
use std::fmt::Write;

/// Segments a second that the simulator has to reach.
const GOAL: f64 = 1e6;
/// Segments of each measurement, roughly.
const SEGMENTS: u64 = 3_000_000;

/// Measurements of each condition, in turns with the others; the median is what counts.
const RUNS: usize = 3;

/// Each network: its name, its connections and what it loses.
const NETWORKS: [(&str, usize, Loss); 3] = [
    ("one connection", 1, Loss::None),
    ("100 connections", 100, Loss::None),
    ("100 connections, 1 % lost", 100, Loss::per_mille(10)),
];
/// Each sort of card: its name, when it tells of frames, and whether it makes checksums, cuts and puts together.
const CARDS: [(&str, Duration, bool); 3] = [
    ("a frame at a time", Duration::ZERO, false),
    ("interrupts of 50 us", Duration::from_micros(50), false),
    ("offloads, and the same", Duration::from_micros(50), true),
];

/// What one network showed.
#[derive(Serialize)]
struct Shown {
    network: &'static str,
    card: &'static str,
    checker: bool,
    segments: u64,
    /// Segments a second of each run, from the slowest to the fastest.
    runs: Vec<f64>,
}

impl Shown {
    fn median(&self) -> f64 {
        self.runs[self.runs.len() / 2]
    }
}

/// Arguments of `inhost-bench figures speed`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Segments of a run
    #[arg(long, value_name = "COUNT", default_value_t = SEGMENTS)]
    segments: u64,
    /// Runs of each
    #[arg(long, value_name = "COUNT", default_value_t = RUNS)]
    runs: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `inhost-bench figures speed …`
pub fn command(options: &Options) -> Result<(), String> {
    let Options { segments, runs, json } = *options;
    eprintln!("{}, {}", machine::describe(), machine::today());
    let mut shown: Vec<Shown> = Vec::new();
    for run in 0..runs.max(1) {
        let mut rows = shown.iter_mut();
        let mut new = Vec::new();
        for checker in [false, true] {
            for (network, connections, loss) in NETWORKS {
                for (card, coalescing, offloads) in CARDS {
                    let link = LinkConfig {
                        loss: loss.clone(),
                        coalescing,
                        offloads,
                        gathers: offloads,
                        ..LinkConfig::default()
                    };
                    let (carried, segments_a_second) = measure(connections, link, checker, segments)?;
                    let runs = vec![segments_a_second];
                    match rows.next() {
                        Some(row) => row.runs.extend(runs),
                        None => new.push(Shown { network, card, checker, segments: carried, runs }),
                    }
                }
            }
        }
        eprintln!("run {} of {runs}", run + 1);
        shown.extend(new);
    }
    shown.iter_mut().for_each(|row| row.runs.sort_by(f64::total_cmp));
    if json {
        println!("{}", serde_json::to_string_pretty(&shown).map_err(|e| e.to_string())?);
        return Ok(());
    }
    let table = to_table(&shown);
    print!("{table}");
    if segments == SEGMENTS && runs == RUNS { page::put("speed", &table) } else { Ok(()) }
}

fn to_table(shown: &[Shown]) -> String {
    let mut table =
        "Segments that the simulator carries over 1 Gbit/s and 10 ms, acknowledgments included\n".to_owned();
    let _ = writeln!(
        table,
        "{:<26} {:<23} {:>7} {:>8} {:>9} {:>9} {:>9}  met",
        "network", "card", "checker", "segments", "a second", "slowest", "fastest"
    );
    for s in shown {
        let (slowest, fastest) = (s.runs[0], s.runs[s.runs.len() - 1]);
        let _ = writeln!(
            table,
            "{:<26} {:<23} {:>7} {:>8} {:>9.0} {slowest:>9.0} {fastest:>9.0}  {}",
            s.network,
            s.card,
            if s.checker { "on" } else { "off" },
            s.segments,
            s.median(),
            if s.median() >= GOAL { "yes" } else { "NO" }
        );
    }
    table
}

/// Segments carried, and how many in a second of one core.
fn measure(connections: usize, link: LinkConfig, checker: bool, wanted: u64) -> Result<(u64, f64), String> {
    let link = LinkConfig {
        delay: Duration::from_millis(5),
        rate_bits_per_second: Some(1_000_000_000),
        queue: QueueConfig::tail_drop(1000),
        ..link
    };
    let mut bulk = Bulk::new(BulkConfig {
        links: [link.clone(), LinkConfig { loss: Loss::None, ..link }],
        stack: {
            let mut config = StackConfig::default();
            config.memory_limit_bytes = 1 << 30;
            config
        },
        starts: vec![Duration::ZERO; connections],
        seed: 1,
    })?;
    if !checker {
        bulk.network.check_nothing();
    }
    let carried = |bulk: &Bulk| bulk.statistics().iter().map(|s| s.delivered).sum::<u64>();
    // Handshakes and slow start are not what is measured.
    bulk.pass(Duration::from_secs(1))?;
    let (before, began_s) = (carried(&bulk), machine::core_seconds());
    while carried(&bulk) - before < wanted {
        bulk.pass(Duration::from_millis(100))?;
    }
    let core_s = machine::core_seconds() - began_s;
    let segments = carried(&bulk) - before;
    Ok((segments, segments as f64 / core_s))
}
