//! Fairness: ten of ours among themselves, in simulation; and five of ours beside five of the kernel's on one
//! bottleneck of the emulator.

mod alike;
mod mixed;

use super::chart::{self, Panel};
use super::machine;
use super::page;

/// Seconds that connections live; the first ones, in which they find their places, are not counted.
const SECONDS: u64 = 40;
/// Seconds that are not counted.
const SETTLING_S: u64 = 10;
/// Repetitions of each condition.
const REPEATS: u32 = 3;

/// Arguments of `inhost-bench figures fairness`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Runs of ours beside the kernel's
    #[arg(long, value_name = "COUNT", default_value_t = REPEATS)]
    repeats: u32,
    /// Length of each
    #[arg(long, value_name = "SECONDS", default_value_t = SECONDS)]
    seconds: u64,
    /// Only ten of ours in simulation, for a machine without the rights for the rest
    #[arg(long, conflicts_with = "mixed")]
    simulated: bool,
    /// Only five of ours beside five of the kernel's, for a machine without the time for the rest
    #[arg(long)]
    mixed: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `inhost-bench figures fairness …`
pub fn command(options: &Options) -> Result<(), String> {
    let Options { repeats, seconds, simulated: simulated_only, mixed: mixed_only, json } = *options;
    let seconds = seconds.max(SETTLING_S + 2);
    eprintln!("{}, {}", machine::describe(), machine::today());
    let alike = if mixed_only { Vec::new() } else { alike::measure()? };
    let mixed = if simulated_only { Vec::new() } else { mixed::measure(repeats, seconds)? };
    if json {
        let text = serde_json::to_string_pretty(&serde_json::json!({ "alike": alike, "mixed": mixed }));
        println!("{}", text.map_err(|e| e.to_string())?);
    }
    let tables = [alike::to_table(&alike), mixed::to_table(&mixed)];
    if !json {
        print!("{}", tables.join("\n"));
    }
    if repeats < REPEATS || seconds < SECONDS || alike.is_empty() || mixed.is_empty() {
        // The page shows the whole, not what somebody tries.
        return Ok(());
    }
    page::put("fairness", &tables.join("\n"))?;
    let title = "1.0: all have the same".into();
    chart::categories(
        "docs/figures/fairness-alike.svg",
        "Jain's index of ten of inhost on one bottleneck, in simulation (dashed: the goal)",
        &[Panel { title, marks: alike::marks(&alike) }],
        &[alike::GOAL],
    )?;
    mixed::draw(&mixed)
}
