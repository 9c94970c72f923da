//! Command-line arguments of `inhost explain` and `inhost record`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `inhost explain`.
#[derive(Args, Debug)]
pub struct Explain {
    /// Captures, pcap or pcapng; - is standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["live", "follow", "mcp", "schema"])]
    pub files: Vec<PathBuf>,
    /// Explain connections of the running host: all that lost the most time, or those with this end, address or port
    #[arg(long, value_name = "CONNECTION", num_args = 0..=1, default_missing_value = "", conflicts_with = "files")]
    pub live: Option<String>,
    /// Say anew what slows the running host's connections, until interrupted
    #[arg(long, conflicts_with_all = ["files", "live"])]
    pub follow: bool,
    /// Seconds between what --follow says
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, requires = "follow")]
    pub every: f64,
    /// Only connections with this end (10.9.0.2:80), address or port
    #[arg(long, value_name = "CONNECTION")]
    pub only: Option<String>,
    /// Only frames that this filter in tcpdump's words chooses
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["live", "svg"])]
    pub filter: Option<String>,
    /// Say this much: connections, those that lost the most time first
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,
    /// Print JSON; --schema says what it means
    #[arg(long)]
    pub json: bool,
    /// Print the JSON Schema of --json
    #[arg(long, exclusive = true)]
    pub schema: bool,
    /// Draw the first connection that is printed into this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["live", "follow"])]
    pub svg: Option<PathBuf>,
    /// Answer a language model's program by the Model Context Protocol, on standard input and output
    #[arg(long, conflicts_with_all = ["files", "live", "follow", "json", "svg"])]
    pub mcp: bool,
    /// Control socket of the running host [default: that of `inhost serve`]
    #[arg(long, value_name = "PATH")]
    pub via: Option<PathBuf>,
}

/// Commands of `inhost record`.
#[derive(Subcommand, Debug)]
pub enum Record {
    /// Write the latest frames and events of the running host into a pcapng file
    #[command(after_help = WRITE_EXAMPLES)]
    Write {
        /// The file; - is standard output
        file: PathBuf,
        #[command(flatten)]
        of: Of,
        /// Control socket of the running host [default: that of `inhost serve`]
        #[arg(long, value_name = "PATH")]
        via: Option<PathBuf>,
    },
    /// Show the armed traps, and how often each sprang
    #[command(after_help = TRAPS_EXAMPLES)]
    Traps {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Control socket of the running host [default: that of `inhost serve`]
        #[arg(long, value_name = "PATH")]
        via: Option<PathBuf>,
    },
    /// Arm a trap: when it springs, the host writes a file with what led to it
    #[command(after_help = ARM_EXAMPLES)]
    Arm(TrapWords),
    /// Disarm a trap
    #[command(after_help = DISARM_EXAMPLES)]
    Disarm(TrapWords),
}

/// Which frames are written.
#[derive(Args, Debug)]
pub struct Of {
    /// Those of the connection between two ends, such as 10.9.0.1:23-10.9.0.2:1025
    #[arg(long, value_name = "END-END")]
    pub connection: Option<String>,
    /// Those from or to this address
    #[arg(long, value_name = "ADDRESS")]
    pub host: Option<std::net::IpAddr>,
    /// Those from or to this port
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
}

/// A trap.
#[derive(Args, Debug)]
pub struct TrapWords {
    /// frame, retransmission, zero-window, bad-checksum, reset, or share CAUSE over PER_CENT; then host ADDRESS and port NUMBER
    #[arg(required = true, value_name = "TRAP")]
    pub words: Vec<String>,
    /// Control socket of the running host [default: that of `inhost serve`]
    #[arg(long, value_name = "PATH")]
    pub via: Option<PathBuf>,
}

pub const EXPLAIN_EXAMPLES: &str = "\
Examples:
  inhost explain transfer.pcap
      why each connection was not faster, and what to do
  inhost explain transfer.pcap --only 10.9.0.2:80 --svg transfer.svg
  inhost explain transfer.pcap --filter 'net 10.9.0.0/16 and not port 22'
  inhost explain - --json
      what tcpdump -w - writes, from standard input
  inhost explain --live
      the connections of the host that runs
  inhost explain --live :23
  inhost explain --follow --every 5
  inhost explain --mcp
      tools for a language model's program";
pub const RECORD_EXAMPLES: &str = "\
Examples:
  inhost record write now.pcapng
  inhost record arm reset port 80
  inhost record traps";
const WRITE_EXAMPLES: &str = "\
Examples:
  inhost record write now.pcapng
  inhost record write one.pcapng --connection 10.9.0.1:23-10.9.0.2:1025
  inhost record write - --port 80";
const TRAPS_EXAMPLES: &str = "\
Examples:
  inhost record traps";
const ARM_EXAMPLES: &str = "\
Examples:
  inhost record arm retransmission host 10.9.0.2
  inhost record arm zero-window port 80
  inhost record arm share receivers-window over 50";
const DISARM_EXAMPLES: &str = "\
Examples:
  inhost record disarm zero-window port 80";
