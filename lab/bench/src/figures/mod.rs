//! The published figures: what TCP here does beside the kernel's, beside what theory says, among its like and under
//! attack. Each command prints a table and draws its pictures into docs/figures.

mod chart;
mod fairness;
mod kernel;
mod machine;
mod options;
mod statistics;

use options::Options;

/// What the figures are called on the command line.
pub const USAGE: &str = "\
       inhost-bench figures kernel [--cells A,B] [--pairs N] [--subject cubic|bbr|ours] [--again] [--table]
                                   [--share MBIT] [--runs N] [--json]
                                             transfers beside the kernel's, through an emulated link (needs root)
       inhost-bench figures fairness [--repeats N] [--seconds N] [--json]
                                             ten of ours in simulation; five beside five of the kernel's (needs root)";

/// Runs one of the figures.
pub fn command(words: &[&str]) -> Result<(), String> {
    let (figure, rest) = words.split_first().ok_or("which figure?")?;
    let options = Options::new(rest);
    match *figure {
        "fairness" => fairness::command(options),
        "kernel" => kernel::command(options),
        _ => Err(format!("no figure is called {figure:?}")),
    }
}
