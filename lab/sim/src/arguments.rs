//! Command-line arguments of `inhost-sim`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use inhost_sim::Offloads;
use std::path::PathBuf;

/// Run many seeds of simulated networks, or show one of them in detail
#[derive(Parser, Debug)]
#[command(name = "inhost-sim", max_term_width = 100, disable_help_subcommand = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run seeds, each a network with faults, and check every segment; print how to replay those that fail
    #[command(after_help = SOAK_EXAMPLES)]
    Soak {
        /// How many seeds
        #[arg(long, value_name = "COUNT")]
        seeds: u64,
        /// The first of them
        #[arg(long, value_name = "SEED", default_value_t = 0)]
        from: u64,
        /// Let every device and host do all for several segments at once, or nothing, or try both [default: each seed
        /// decides]
        #[arg(long, value_name = "WHICH", value_parser = offload())]
        offload: Option<Offload>,
        /// Run each seed twice, once with hosts that are frozen and thawed at random moments, and compare all frames and
        /// events; needs the feature `freeze`
        #[arg(long, conflicts_with = "offload")]
        freeze: bool,
    },
    /// Run one seed again, and show its scenario and every frame
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay {
        /// The seed
        seed: u64,
        /// Write the frames into this capture instead of printing them
        #[arg(value_name = "FILE.pcapng")]
        file: Option<PathBuf>,
        /// Let every device and host do all for several segments at once, or nothing, as the soak had it
        #[arg(long, value_name = "WHICH", value_parser = offload_of_one())]
        offload: Option<Offloads>,
    },
    /// Throw random, spoilt and forged frames into a host in the middle of transfers
    #[command(after_help = HOSTILE_EXAMPLES)]
    Hostile {
        /// How many frames
        #[arg(long, value_name = "COUNT")]
        frames: u64,
        /// What they are drawn from
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Print one line for each run: what it was, and a number each for its frames and for frames with events
    ///
    /// What two builds print is equal where their hosts do the same.
    #[command(after_help = DIGEST_EXAMPLES)]
    Digest {
        /// Seeds, from the first on
        #[arg(long, value_name = "COUNT")]
        seeds: u64,
        /// Hostile worlds
        #[arg(long, value_name = "COUNT")]
        worlds: u64,
    },
    /// Measure segments in a second of processor time, in one long transfer
    #[command(after_help = BENCH_EXAMPLES)]
    Bench,
}

/// With what to run each seed, one after the other.
pub type Offload = &'static [Offloads];

fn offload() -> impl TypedValueParser<Value = Offload> {
    PossibleValuesParser::new(["on", "off", "both"]).map(|word| -> Offload {
        match word.as_str() {
            "on" => &[Offloads::On],
            "off" => &[Offloads::Off],
            _ => &[Offloads::Off, Offloads::On],
        }
    })
}

fn offload_of_one() -> impl TypedValueParser<Value = Offloads> {
    PossibleValuesParser::new(["on", "off"])
        .map(|word| if word == "on" { Offloads::On } else { Offloads::Off })
}

const SOAK_EXAMPLES: &str = "\
Examples:
  inhost-sim soak --seeds 1000
  inhost-sim soak --seeds 3000 --from 7000 --offload both
  inhost-sim soak --freeze --seeds 100";

const REPLAY_EXAMPLES: &str = "\
Examples:
  inhost-sim replay 4711
  inhost-sim replay 4711 seed.pcapng --offload on";

const HOSTILE_EXAMPLES: &str = "\
Examples:
  inhost-sim hostile --frames 1000000
  inhost-sim hostile --frames 1000000 --seed 7";

const DIGEST_EXAMPLES: &str = "\
Examples:
  inhost-sim digest --seeds 10000 --worlds 100 > before.txt";

const BENCH_EXAMPLES: &str = "\
Examples:
  inhost-sim bench";

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory;

    #[test]
    fn the_help_shows_what_works() {
        inhost_interop::help::check(&Arguments::command());
    }
}
