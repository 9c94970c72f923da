//! Command-line arguments of `inhost-script`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use inhost_script::Offloads;
use inhost_script::choices::Choice;
use std::path::PathBuf;

/// Play scripts of packets against our stack, and against the kernel
#[derive(Parser, Debug)]
#[command(name = "inhost-script", max_term_width = 100, disable_help_subcommand = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Play scripts against our stack, the kernel, or our stack in its `linux` profile
    #[command(after_help = RUN_EXAMPLES)]
    Run(Run),
    /// Play scripts on both sides, and write the table of differences into docs/scripts.md
    #[command(after_help = TABLE_EXAMPLES)]
    Table {
        /// Scripts, or folders of them [default: lab/script/scripts]
        #[arg(value_name = "FILE-OR-FOLDER")]
        paths: Vec<PathBuf>,
    },
    /// Print a number for each script and profile, and for each of so many exchanges of the judge
    ///
    /// What two builds print is equal where our stack does the same.
    #[command(after_help = DIGEST_EXAMPLES)]
    Digest {
        /// How many exchanges
        #[arg(long, value_name = "COUNT")]
        exchanges: u64,
        /// Scripts, or folders of them
        #[arg(value_name = "FILE-OR-FOLDER")]
        paths: Vec<PathBuf>,
    },
    /// Draw short exchanges from seeds, play each on the kernel and on our stack in its `linux` profile, and print each
    /// difference of no known class; needs root
    #[command(after_help = DIFFER_EXAMPLES)]
    Differ(Differ),
}

/// Arguments of `inhost-script run`.
#[derive(Args, Debug)]
pub struct Run {
    /// Scripts, or folders of them
    #[arg(value_name = "FILE-OR-FOLDER", required = true)]
    pub paths: Vec<PathBuf>,
    /// Against the kernel, 16 at a time; needs root
    #[arg(long, conflicts_with_all = ["linux", "offload"])]
    pub kernel: bool,
    /// Against our stack in its `linux` profile
    #[arg(long)]
    pub linux: bool,
    /// On a device that cuts, sums and checks for our stack, with nothing done for several segments at once, or both
    /// [default: the host does it]
    #[arg(long, value_name = "WHICH", value_parser = offload())]
    pub offload: Option<Offload>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `inhost-script differ`.
#[derive(Args, Debug)]
pub struct Differ {
    /// How many seeds
    #[arg(long, value_name = "COUNT", value_parser = number)]
    pub seeds: u64,
    /// The first of them
    #[arg(long, value_name = "SEED", default_value = "0", value_parser = number)]
    pub from: u64,
    /// Play one in so many
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = number)]
    pub every: u64,
    /// Exchanges at a time; nearly all of their time is waiting
    #[arg(long, value_name = "COUNT", default_value = "48", value_parser = number)]
    pub jobs: u64,
    /// Begin no more after so long
    #[arg(long, value_name = "SECONDS", value_parser = number)]
    pub seconds: Option<u64>,
    /// Print differences of open classes, too
    #[arg(long)]
    pub open: bool,
    /// Print the differences that undoing this choice of the profile makes
    #[arg(long, value_name = "CHOICE", value_parser = choice)]
    pub without: Option<&'static str>,
    /// Make no exchange small
    #[arg(long)]
    pub as_drawn: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The devices to play on.
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

/// A number, which may have underscores as in Rust.
fn number(text: &str) -> Result<u64, std::num::ParseIntError> {
    text.replace('_', "").parse()
}

fn choice(name: &str) -> Result<&'static str, String> {
    let choice = Choice::named(name).ok_or("the profile has no such choice")?;
    Ok(choice.name)
}

const RUN_EXAMPLES: &str = "\
Examples:
  inhost-script run lab/script/scripts
  inhost-script run --kernel lab/script/scripts/closing
  inhost-script run --linux --offload both --json lab/script/scripts";

const TABLE_EXAMPLES: &str = "\
Examples:
  inhost-script table";

const DIGEST_EXAMPLES: &str = "\
Examples:
  inhost-script digest --exchanges 2000 lab/script/scripts > before.txt";

const DIFFER_EXAMPLES: &str = "\
Examples:
  inhost-script differ --seeds 1000
  inhost-script differ --seeds 5_000 --from 20_000 --open --jobs 16
  inhost-script differ --seeds 5000 --without received_data_survives_reset --json";

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory;

    #[test]
    fn the_help_shows_what_works() {
        inhost_interop::help::check(&Arguments::command());
    }
}
