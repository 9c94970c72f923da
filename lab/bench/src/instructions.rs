//! Instruction counts under callgrind: they repeat, whatever else the machine does, so that they can gate.

use crate::paths::{HOLES_RATIO, PATHS, Path};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::process::Command;

/// The committed counts.
const BASELINE: &str = "lab/bench/instructions.toml";
/// A count may rise by so much before it is called a rise, in per cent: what parts that own their state may cost.
const TOLERANCE_PERCENT: f64 = 5.0;
/// The same for a connection's beginning and end, where each rule is met once.
const CONNECT_TOLERANCE_PERCENT: f64 = 15.0;

#[derive(Serialize, Deserialize)]
struct Baseline {
    /// Instructions for one time of each path.
    instructions: BTreeMap<String, f64>,
}

/// Counts each path, prints the table, and fails where one has risen.
pub fn compare() -> Result<(), String> {
    let text = std::fs::read_to_string(BASELINE).map_err(|e| {
        format!("{BASELINE}: {e}; run from the root, or write it with: inhost-bench instructions --write")
    })?;
    let baseline: Baseline = toml::from_str(&text).map_err(|e| format!("{BASELINE}: {e}"))?;
    let mut risen = Vec::new();
    let mut counts = BTreeMap::new();
    println!("{:<14} {:>12} {:>12} {:>8}  one time is", "path", "instructions", "baseline", "change");
    for path in PATHS {
        let count = count(path)?;
        counts.insert(path.name, count);
        let before = baseline.instructions.get(path.name).copied();
        let change = before.map(|before| 100.0 * (count - before) / before);
        println!(
            "{:<14} {count:>12.0} {:>12} {:>8}  {}",
            path.name,
            before.map_or_else(|| "-".into(), |before| format!("{before:.0}")),
            change.map_or_else(|| "-".into(), |change| format!("{change:+.1} %")),
            path.unit
        );
        match change {
            None => risen.push(format!("{} has no baseline", path.name)),
            Some(change) if change > tolerance_percent(path) => {
                risen.push(format!("{} rose by {change:.1} %", path.name));
            }
            Some(_) => {}
        }
    }
    let (many, few, most) = HOLES_RATIO;
    if let (Some(many_count), Some(few_count)) = (counts.get(many), counts.get(few)) {
        let ratio = many_count / few_count;
        println!("{many} costs {ratio:.2} times {few}; {most} at most");
        if ratio > most {
            risen.push(format!("{many} costs {ratio:.2} times {few}"));
        }
    }
    if risen.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}; find out where (callgrind_annotate), or accept it with: inhost-bench instructions --write",
        risen.join("; ")
    ))
}

fn tolerance_percent(path: &Path) -> f64 {
    if path.name == "connect" { CONNECT_TOLERANCE_PERCENT } else { TOLERANCE_PERCENT }
}

/// Counts each path and writes the baseline.
pub fn write() -> Result<(), String> {
    let mut instructions = BTreeMap::new();
    for path in PATHS {
        instructions.insert(path.name.to_owned(), count(path)?.round());
    }
    let text = toml::to_string(&Baseline { instructions }).map_err(|e| e.to_string())?;
    let head =
        "# Instructions for one time of each path, release build, counted by callgrind; see inhost-bench.\n";
    std::fs::write(BASELINE, format!("{head}{text}")).map_err(|e| format!("{BASELINE}: {e}"))
}

/// Instructions for one time: what `2n` times cost more than `n`, so that starting up does not count.
fn count(path: &Path) -> Result<f64, String> {
    let short = run(path, path.times)?;
    let long = run(path, 2 * path.times)?;
    Ok((long as f64 - short as f64) / path.times as f64)
}

fn run(path: &Path, times: u64) -> Result<u64, String> {
    let own = std::env::current_exe().map_err(|e| format!("this program's path is unknown: {e}"))?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    if !path.only.is_empty() {
        command.arg(format!("--toggle-collect={}", path.only));
    }
    command.arg(own).args(["path", path.name, &times.to_string()]);
    // Addresses and hashes of the standard library do not depend on the environment then.
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let output = command
        .output()
        .map_err(|e| format!("valgrind does not start: {e}; install it (apt-get install valgrind)"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{} under valgrind failed: {text}", path.name));
    }
    let collected =
        text.lines().find_map(|line| line.split_once("Collected : ")).map(|(_, count)| count.trim());
    collected
        .and_then(|count| count.parse().ok())
        .ok_or_else(|| format!("valgrind said nothing of what it collected: {text}"))
}
