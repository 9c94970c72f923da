//! Ten of ours on one bottleneck, in simulation.

use crate::figures::bulk::{Bulk, BulkConfig};
use crate::figures::statistics::jain;
use inhost_base::Duration;
use inhost_sim::{LinkConfig, QueueConfig, QueueLimit, WhenFull};
use inhost_stack::StackConfig;
use serde::Serialize;
use std::fmt::Write;

/// Connections.
const FLOWS: u64 = 10;
/// Between the beginnings of two of them.
const APART: Duration = Duration::from_millis(500);
/// In which they find their places: some twenty losses where one comes in ten seconds, at the largest of the products.
const SETTLING_S: u64 = 180;
/// Counted.
const COUNTED_S: u64 = 60;
/// Jain's index is at least this.
const LEAST_JAIN: f64 = 0.95;
/// Memory of each host.
const MEMORY_BYTES: usize = 1 << 30;

/// The effect of a condition.
#[derive(Serialize)]
pub struct Alike {
    rate_mbit: u64,
    round_trip_ms: u64,
    jain: f64,
    /// The least of what a connection carried, and the most.
    range_mbit: (f64, f64),
    all_mbit: f64,
    met: bool,
}

/// Each condition once: virtual time has no noise.
pub fn measure() -> Result<Vec<Alike>, String> {
    let conditions = [(10, 20), (10, 100), (100, 20), (100, 100), (1000, 20), (1000, 100)];
    conditions.into_iter().map(|(rate_mbit, round_trip_ms)| condition(rate_mbit, round_trip_ms)).collect()
}

fn condition(rate_mbit: u64, round_trip_ms: u64) -> Result<Alike, String> {
    // The same queue as the emulator's: a bandwidth-delay product, and 64 packets at least.
    let product_bytes = (rate_mbit * 1_000_000 * round_trip_ms / 8_000).max(64 * 1500);
    let link = LinkConfig {
        delay: Duration::from_millis(round_trip_ms).divided_by(2),
        rate_bits_per_second: Some(rate_mbit * 1_000_000),
        queue: QueueConfig {
            limit: QueueLimit::Bytes(product_bytes as usize),
            when_full: WhenFull::Drop,
            ..QueueConfig::default()
        },
        ..LinkConfig::default()
    };
    let config = BulkConfig {
        links: link.into(),
        stack: {
            let mut config = StackConfig::default();
            config.memory_limit_bytes = MEMORY_BYTES;
            config
        },
        starts: (0..FLOWS).map(|flow| APART.times(flow)).collect(),
        seed: 1,
    };
    let mut bulk = Bulk::new(config)?;
    let rates = bulk.rates(Duration::from_secs(SETTLING_S), Duration::from_secs(COUNTED_S))?;
    let mbit: Vec<f64> = rates.iter().map(|rate| rate / 1e6).collect();
    let index = jain(&mbit);
    let least = mbit.iter().copied().fold(f64::INFINITY, f64::min);
    let most = mbit.iter().copied().fold(0.0, f64::max);
    eprintln!("{rate_mbit} Mbit/s, {round_trip_ms} ms: {index:.3}");
    Ok(Alike {
        rate_mbit,
        round_trip_ms,
        jain: index,
        range_mbit: (least, most),
        all_mbit: mbit.iter().sum(),
        met: index >= LEAST_JAIN,
    })
}

/// For a person.
pub fn to_table(rows: &[Alike]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = format!("{FLOWS} of inhost on one bottleneck, in simulation\n");
    let _ = writeln!(
        table,
        "{:>7} {:>6}  {:>6} {:>19} {:>10}  met",
        "Mbit/s", "RTT ms", "Jain", "least .. most", "all Mbit/s"
    );
    for row in rows {
        let range = format!("{:.2} .. {:.2}", row.range_mbit.0, row.range_mbit.1);
        let met = if row.met { "yes" } else { "NO" };
        let _ = writeln!(
            table,
            "{:>7} {:>6}  {:>6.3} {range:>19} {:>10.2}  {met}",
            row.rate_mbit, row.round_trip_ms, row.jain, row.all_mbit
        );
    }
    table
}

/// As marks of a picture: the index of each condition.
pub fn marks(rows: &[Alike]) -> Vec<crate::figures::chart::Mark> {
    let mark = |row: &Alike| crate::figures::chart::Mark {
        group: format!("{} Mbit/s, {} ms", row.rate_mbit, row.round_trip_ms),
        series: "Jain's index".into(),
        value: row.jain,
        lower: None,
    };
    rows.iter().map(mark).collect()
}

/// Where the dashed line of the picture is.
pub const GOAL: f64 = LEAST_JAIN;
