//! Command-line arguments of `inhost peep`.

use clap::{Args, ValueEnum};
use std::num::NonZeroU64;
use std::path::PathBuf;

/// Arguments of `inhost peep`.
#[derive(Args, Debug)]
pub struct Peep {
    /// Read a capture, pcap or pcapng, instead of watching the running host; - is standard input. Several are put in one
    /// order of time
    #[arg(long, short = 'r', value_name = "FILE")]
    pub read: Vec<PathBuf>,
    /// Watch an interface of this system; that needs CAP_NET_RAW
    #[arg(long, short = 'i', value_name = "NAME", conflicts_with_all = ["read", "via", "past"])]
    pub interface: Option<String>,
    /// Only frames that these words choose, as tcpdump has them: tcp port 80 and not host 10.9.0.1
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,
    /// Write the chosen frames into this file, pcapng, with the events of hosts as comments; - is standard output
    #[arg(long, short = 'w', value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// End after so many frames
    #[arg(long, short = 'c', value_name = "COUNT")]
    pub count: Option<NonZeroU64>,
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
    #[arg(long, conflicts_with_all = ["verbose", "hex", "ebcdic", "write"])]
    pub json: bool,
    /// Print TCP's segments and events as qlog: a JSON text sequence, as of QUIC
    #[arg(long, conflicts_with_all = ["verbose", "hex", "ebcdic", "write", "json", "states"])]
    pub qlog: bool,
    /// Print the JSON Schema of the records of --qlog
    #[arg(long)]
    pub qlog_schema: bool,
    /// Show one connection as text instead, all that was typed with it: its ends, such as 10.9.0.1:23-10.9.0.2:1025
    #[arg(long, value_name = "END-END", conflicts_with_all = ["json", "qlog", "write"])]
    pub stream: Option<String>,
    /// Leave Telnet's commands in the text of a connection
    #[arg(long, requires = "stream")]
    pub raw: bool,
    /// Show the state of each connection at intervals, such as 1s or 100ms
    #[arg(long, value_name = "INTERVAL", value_parser = interval, conflicts_with_all = ["stream", "write"])]
    pub states: Option<u64>,
    /// Begin with what the running host's flight recorder still holds
    #[arg(long, conflicts_with = "read")]
    pub past: bool,
    /// Put the clock of a capture forward or back, such as server.pcapng=+3ms or server=-20us
    #[arg(long, value_name = "FILE=TIME", value_parser = clock, requires = "read")]
    pub clock: Vec<(String, i64)>,
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

/// A time with its unit, in nanoseconds.
fn time_ns(text: &str) -> Option<i64> {
    let place = text.find(|character: char| character.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(place);
    let unit_ns = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    Some((number * unit_ns) as i64)
}

fn interval(text: &str) -> Result<u64, String> {
    let found = time_ns(text).and_then(|ns| u64::try_from(ns).ok()).filter(|&ns| ns > 0);
    found.ok_or_else(|| "give a time with its unit: 1s, 100ms, 50us".to_owned())
}

fn clock(text: &str) -> Result<(String, i64), String> {
    let found = text.rsplit_once('=').and_then(|(name, time)| Some((name.to_owned(), time_ns(time)?)));
    found.ok_or_else(|| "give a capture and a time with its unit: server.pcapng=+3ms".to_owned())
}

pub const PEEP_EXAMPLES: &str = "\
Examples:
  inhost peep
      the frames and events of the host that runs
  inhost peep --states 1s tcp port 23
  inhost peep -i eth0 -c 10 'udp port 53 or icmp'
  inhost peep -r trace.pcapng -v 'tcp[tcpflags] & (tcp-syn|tcp-fin) != 0'
  inhost peep -r client.pcapng -r server.pcapng --time relative --states 1s
      what two hosts did, in one order of time
  inhost peep -r trace.pcapng --qlog tcp port 23 > trace.sqlog
  inhost peep -r trace.pcapng --stream 10.9.0.1:23-10.9.0.2:1025
  inhost peep -r trace.pcapng -w part.pcapng conversation 10.9.0.1:23 10.9.0.2:1025";
