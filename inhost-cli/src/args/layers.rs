//! Command-line arguments of `inhost layers`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `inhost layers`.
#[derive(Args, Clone, Debug)]
pub struct Layers {
    /// Measure these rounds from now on
    #[arg(long, value_enum)]
    pub mode: Option<Measured>,
    /// With sampled rounds, measure one in so many [default: 64]
    #[arg(long, value_name = "ROUNDS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub one_in: Option<u32>,
    /// Forget what was measured before
    #[arg(long)]
    pub reset: bool,
    /// Measure anew for so long, in sampled rounds or in those of --mode, and leave the instrument as it was before
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub for_s: Option<f64>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Draw nanoseconds a segment by layer, a bar for each direction and size, as SVG; - is standard output
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Draw a flame graph as SVG
    #[arg(long, value_name = "FILE")]
    pub flame: Option<PathBuf>,
    /// Write folded stacks, for programs that draw flame graphs
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,
    /// Draw the latest transitions between layers over time as SVG; needs --mode full
    #[arg(long, value_name = "FILE")]
    pub time_line: Option<PathBuf>,
    /// The length of the time-line in microseconds
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 1000, requires = "time_line")]
    pub last: u64,
    /// Print the JSON Schema of --json, and ask no host
    #[arg(long)]
    pub schema: bool,
    /// Control socket of the running host
    #[arg(long, value_name = "PATH")]
    pub via: Option<PathBuf>,
}

/// Which rounds are measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Measured {
    /// None
    Off,
    /// One in many, chosen at random
    Sampled,
    /// Every one; transitions are kept, too
    Full,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0 && *seconds <= 86_400.0);
    seconds.ok_or_else(|| "give seconds, up to 86400".to_owned())
}

pub const LAYERS_EXAMPLES: &str = "\
Examples:
  inhost layers --for 5
      where the time of the running host goes in the next five seconds: one round in 64 is measured
  inhost layers --mode sampled
      from now on; then inhost layers says what was measured
  inhost layers --for 2 --mode full --time-line line.svg --last 500
      the last 500 microseconds, layer by layer
  inhost layers --svg segments.svg --flame flame.svg --folded stacks.txt
  inhost layers --json";
