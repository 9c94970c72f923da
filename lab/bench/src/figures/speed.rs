//! How many segments the simulator carries in a second of one core.

use super::bulk::{Bulk, BulkConfig};
use super::machine;
use super::options::Options;
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

/// What one network showed.
#[derive(Serialize)]
struct Shown {
    network: &'static str,
    checker: bool,
    segments: u64,
    core_s: f64,
    segments_a_second: f64,
}

/// `inhost-bench figures speed …`
pub fn command(mut options: Options) -> Result<(), String> {
    let json = options.flag("--json");
    let segments = options.value("--segments")?.unwrap_or(SEGMENTS);
    options.end()?;
    eprintln!("{}, {}", machine::describe(), machine::today());
    let (one_by_one, moderated) = (Duration::ZERO, Duration::from_micros(50));
    let networks = [
        ("one connection, 1 Gbit/s, 10 ms", 1, Loss::None, one_by_one),
        ("the same, interrupts of 50 us", 1, Loss::None, moderated),
        ("100 connections, 1 Gbit/s, 10 ms", 100, Loss::None, one_by_one),
        ("the same, interrupts of 50 us", 100, Loss::None, moderated),
        ("100 connections, 1 % lost", 100, Loss::per_mille(10), one_by_one),
    ];
    let mut shown = Vec::new();
    for checker in [false, true] {
        for (network, connections, loss, coalescing) in &networks {
            let link = LinkConfig { loss: loss.clone(), coalescing: *coalescing, ..LinkConfig::default() };
            shown.push(measure(network, *connections, link, checker, segments)?);
        }
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&shown).map_err(|e| e.to_string())?);
        return Ok(());
    }
    let table = to_table(&shown);
    print!("{table}");
    if segments == SEGMENTS { page::put("speed", &table) } else { Ok(()) }
}

fn to_table(shown: &[Shown]) -> String {
    let mut table =
        "Segments that the simulator carries from stack to stack, acknowledgments included\n".to_owned();
    let _ = writeln!(
        table,
        "{:<34} {:>7} {:>10} {:>9} {:>14}  met",
        "network", "checker", "segments", "s of core", "a second"
    );
    for s in shown {
        let _ = writeln!(
            table,
            "{:<34} {:>7} {:>10} {:>9.2} {:>14.0}  {}",
            s.network,
            if s.checker { "on" } else { "off" },
            s.segments,
            s.core_s,
            s.segments_a_second,
            if s.segments_a_second >= GOAL { "yes" } else { "NO" }
        );
    }
    table
}

fn measure(
    network: &'static str,
    connections: usize,
    link: LinkConfig,
    checker: bool,
    wanted: u64,
) -> Result<Shown, String> {
    let link = LinkConfig {
        delay: Duration::from_millis(5),
        rate_bits_per_second: Some(1_000_000_000),
        queue: QueueConfig::tail_drop(1000),
        ..link
    };
    let mut bulk = Bulk::new(BulkConfig {
        links: [link.clone(), LinkConfig { loss: Loss::None, ..link }],
        stack: StackConfig { memory_limit_bytes: 1 << 30, ..StackConfig::default() },
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
    Ok(Shown { network, checker, segments, core_s, segments_a_second: segments as f64 / core_s })
}
