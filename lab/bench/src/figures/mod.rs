//! The published figures: inhost's TCP against the kernel's and against theory, its fairness, and its behaviour under
//! attack. Each command prints a table and draws its pictures into docs/figures.

mod bulk;
pub mod chart;
mod fairness;
mod files;
mod flood;
pub mod kernel;
mod layers;
pub mod machine;
mod overload;
pub mod page;
mod response;
mod speed;
pub mod statistics;

use clap::Subcommand;

/// The figures.
#[derive(Subcommand, Debug)]
pub enum Figure {
    /// Transfers beside the kernel's, through an emulated link; needs root
    #[command(after_help = KERNEL_EXAMPLES)]
    Kernel(kernel::Options),
    /// One connection at 1 and 10 Gbit/s in simulation, beside the response function of RFC 9438
    #[command(after_help = RESPONSE_EXAMPLES)]
    Response(response::Options),
    /// Ten of ours in simulation; five beside five of the kernel's, which needs root
    #[command(after_help = FAIRNESS_EXAMPLES)]
    Fairness(fairness::Options),
    /// FTP and TFTP beside other servers and clients; needs root
    #[command(after_help = FILES_EXAMPLES)]
    Files(files::Options),
    /// Transfers beside a flood of SYNs, in simulation
    #[command(after_help = FLOOD_EXAMPLES)]
    Flood(flood::Options),
    /// For which layers the time of a segment goes, beside VPI's
    #[command(after_help = LAYERS_EXAMPLES)]
    Layers(layers::Options),
    /// Datagrams worked off when too many come, in virtual time
    #[command(after_help = OVERLOAD_EXAMPLES)]
    Overload(overload::Options),
    /// Segments that the simulator carries in a second of one core
    #[command(after_help = SPEED_EXAMPLES)]
    Speed(speed::Options),
}

const KERNEL_EXAMPLES: &str = "\
Examples:
  inhost-bench figures kernel --cells 10M-20ms-1r --subject ours --again
  inhost-bench figures kernel --table --json";
const RESPONSE_EXAMPLES: &str = "\
Examples:
  inhost-bench figures response --rates 1,10 --losses 1e-3,1e-4 --json
  inhost-bench figures response --fill";
const FAIRNESS_EXAMPLES: &str = "Examples:\n  inhost-bench figures fairness --simulated --json";
const FILES_EXAMPLES: &str = "Examples:\n  inhost-bench figures files --only ftp,tftp --megabytes 100";
const FLOOD_EXAMPLES: &str = "Examples:\n  inhost-bench figures flood --rate 10000";
const LAYERS_EXAMPLES: &str = "Examples:\n  inhost-bench figures layers --runs 3 --json";
const OVERLOAD_EXAMPLES: &str = "Examples:\n  inhost-bench figures overload";
const SPEED_EXAMPLES: &str = "Examples:\n  inhost-bench figures speed --segments 100000 --runs 1";

/// Measures one of the figures.
pub fn command(figure: Figure) -> Result<(), String> {
    match figure {
        Figure::Kernel(options) => kernel::command(options),
        Figure::Response(options) => response::command(&options),
        Figure::Fairness(options) => fairness::command(&options),
        Figure::Files(options) => files::command(&options),
        Figure::Flood(options) => flood::command(&options),
        Figure::Layers(options) => layers::command(&options),
        Figure::Overload(options) => overload::command(&options),
        Figure::Speed(options) => speed::command(&options),
    }
}
