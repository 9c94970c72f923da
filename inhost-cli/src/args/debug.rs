//! Command-line arguments of `inhost debug`.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `inhost debug`.
#[derive(Args, Debug)]
pub struct Debug {
    /// Commands to play, a line each; - is standard input [default: a prompt]
    #[arg(value_name = "SCRIPT", conflicts_with = "live")]
    pub script: Option<PathBuf>,
    /// Show the whole state of connections of the running host: the only one, or those with this end, address or port
    #[arg(long, value_name = "CONNECTION", num_args = 0..=1, default_missing_value = "")]
    pub live: Option<String>,
    /// Print JSON, an object a step; --schema says what it means
    #[arg(long)]
    pub json: bool,
    /// Print the JSON Schema of --json
    #[arg(long, exclusive = true)]
    pub schema: bool,
    /// Control socket of the running host [default: that of `inhost serve`]
    #[arg(long, value_name = "PATH", requires = "live")]
    pub via: Option<PathBuf>,
}

pub const DEBUG_EXAMPLES: &str = "\
Examples:
  inhost debug
      two hosts on a virtual clock, and a prompt: connect, step, send 3000, drop, run, show, undo, help
  inhost debug loss.debug
      a session that was saved, again
  inhost debug --json loss.debug
      the same for a program, an object a step
  inhost debug --live
      the whole state of the running host's connection
  inhost debug --live 10.9.0.2:1025 --json
The hosts of a session are inhost's own, in this process: no privilege, no network, and nothing of a running host.";
