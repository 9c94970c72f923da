//! Command-line arguments of `inhost-bench`.

use crate::figures::Figure;
use crate::{compare, explain};
use clap::{Parser, Subcommand};

/// Measure what inhost costs, alone and beside other stacks
#[derive(Parser, Debug)]
#[command(name = "inhost-bench", max_term_width = 100, disable_help_subcommand = true)]
pub struct Arguments {
    /// What to measure.
    #[command(subcommand)]
    pub command: Command,
}

/// The measurements.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Count the instructions of the main paths, and compare with lab/bench/instructions.toml; needs valgrind
    #[command(after_help = INSTRUCTIONS_EXAMPLES)]
    Instructions {
        /// Write that file instead
        #[arg(long)]
        write: bool,
    },
    /// Count the bytes of an idle connection, beside the kernel's
    #[command(after_help = MEMORY_EXAMPLES)]
    Memory {
        /// How many connections [default: 1000, then 100000]
        connections: Option<usize>,
        /// Answer one line of JSON, as `compare` asks for it
        #[arg(long, value_name = "WHICH", value_parser = ["idle", "idle-kernel"], conflicts_with = "connections")]
        json: Option<String>,
    },
    /// Take one of the main paths, as `instructions` does under valgrind
    #[command(after_help = PATH_EXAMPLES)]
    Path {
        /// The path
        name: String,
        /// How often
        times: u64,
    },
    /// Measure ours beside every peer, interleaved
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(compare::Options),
    /// Judge the verdicts of `inhost explain` against known truth
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(explain::Options),
    /// Make the figures of the pages
    #[command(subcommand)]
    Figures(Figure),
}

const INSTRUCTIONS_EXAMPLES: &str = "\
Examples:
  inhost-bench instructions
  inhost-bench instructions --write";

const MEMORY_EXAMPLES: &str = "\
Examples:
  inhost-bench memory
  inhost-bench memory 1000000";

const PATH_EXAMPLES: &str = "\
Examples:
  inhost-bench path connect 100";

const COMPARE_EXAMPLES: &str = "\
Examples:
  inhost-bench compare --list
  inhost-bench compare --quick --only memory-1500 --without gvisor,netstack --json";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  inhost-bench explain --list
  inhost-bench explain --situations loss --stacks kernel --keep wrong
  inhost-bench explain --replay wrong/loss-tail-kernel-middle
  inhost-bench explain --fit --situations web,mobile
  inhost-bench explain --last";

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory;

    #[test]
    fn the_help_shows_what_works() {
        inhost_interop::help::check(&Arguments::command());
    }
}
