//! Command-line arguments of `inhost peep`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `inhost peep`.
#[derive(Args, Debug)]
pub struct Peep {
    /// Read a capture, pcap or pcapng, instead of watching the running host; - is standard input. Several are put in one
    /// order of time
    #[arg(long, short = 'r', value_name = "FILE")]
    pub read: Vec<PathBuf>,
    /// Only frames that these words choose, as tcpdump has them: tcp port 80 and not host 10.9.0.1
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,
    /// Write the chosen frames into this file, pcapng, with the events of hosts as comments
    #[arg(long, short = 'w', value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// End after so many frames
    #[arg(long, short = 'c', value_name = "COUNT")]
    pub count: Option<u64>,
    /// End after so many seconds of the trace
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<f64>,
    /// Show every field of every layer
    #[arg(long, short)]
    pub verbose: bool,
    /// Show the bytes, with ASCII
    #[arg(long, short = 'x')]
    pub hex: bool,
    /// Show the bytes, with EBCDIC
    #[arg(long, conflicts_with = "hex")]
    pub ebcdic: bool,
    /// Show sequence numbers as they are on the wire
    #[arg(long)]
    pub absolute: bool,
    /// How times are shown
    #[arg(long, value_enum, default_value_t = Times::Clock)]
    pub time: Times,
    /// Print a JSON object for each frame and event
    #[arg(long, conflicts_with_all = ["verbose", "hex", "ebcdic"])]
    pub json: bool,
    /// Show one connection as text instead: its ends, such as 10.9.0.1:23-10.9.0.2:1025
    #[arg(long, value_name = "END-END", conflicts_with_all = ["json", "write"])]
    pub stream: Option<String>,
    /// Show the state of each connection of the running host every second
    #[arg(long, conflicts_with = "read")]
    pub states: bool,
    /// Begin with what the running host's flight recorder still holds
    #[arg(long, conflicts_with = "read")]
    pub past: bool,
    /// The clock of a capture is this many milliseconds behind the others: FILE=MILLISECONDS
    #[arg(long, value_name = "FILE=MS", requires = "read")]
    pub shift: Vec<String>,
    /// Control socket of the running host [default: that of `inhost serve`]
    #[arg(long, value_name = "PATH", conflicts_with = "read")]
    pub via: Option<PathBuf>,
}

/// How times are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Times {
    /// Time of day in UTC
    Clock,
    /// Since the first frame
    Relative,
    /// Since the frame before
    Delta,
}

pub const PEEP_EXAMPLES: &str = "\
Examples:
  inhost peep
      the frames and events of the host that runs
  inhost peep --states tcp port 23
  inhost peep -r trace.pcapng -v 'udp port 53 or icmp'
  inhost peep -r one.pcapng -r other.pcapng --time relative
      what two hosts did, in one order of time
  inhost peep -r trace.pcapng --stream 10.9.0.1:23-10.9.0.2:1025
  inhost peep -r trace.pcapng -w part.pcapng conversation 10.9.0.1:23 10.9.0.2:1025";
