//! Command-line arguments of `inhost inett`.

use super::Common;
use clap::{Args, ValueEnum};
use inhost_inett::distribution::Distribution;
use std::path::PathBuf;

/// Arguments of `inhost inett`.
#[derive(Args, Debug)]
pub struct Inett {
    /// The host that serves, by name or address, with :PORT if it is not 5201
    #[arg(required_unless_present = "server")]
    pub host: Option<String>,
    /// Serve: to inett of other hosts, and to iperf3 -c
    #[arg(long, short, conflicts_with_all = ["host", "plan", "sweep"])]
    pub server: bool,
    /// Serve one test, and end
    #[arg(long, requires = "server")]
    pub one_off: bool,
    /// Port to serve at
    #[arg(long, short, value_name = "PORT", default_value_t = 5201, requires = "server")]
    pub port: u16,
    /// Which interface: the system's sockets, or one of a host of inhost
    /// [default: system; local where --link is given, control where --via is]
    #[arg(long, value_name = "FACE")]
    pub face: Option<InettFace>,
    /// What to measure, as a file of TOML; the flags say it, too, and go first
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// A grid: a file of TOML with the table [plan], and [values] with a list for each key
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plan", "plot"])]
    pub sweep: Option<PathBuf>,
    /// Where points of the sweep are written down as they end; those that are there are not measured again
    /// [default: the file of the sweep, with .jsonl behind it]
    #[arg(long, value_name = "FILE", requires = "sweep")]
    pub log: Option<PathBuf>,
    #[command(flatten)]
    pub what: InettPlan,
    /// Draw the rate while it runs
    #[arg(long, conflicts_with_all = ["json", "csv", "server"])]
    pub plot: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV, a line for each repetition
    #[arg(long, conflicts_with = "server")]
    pub csv: bool,
    /// The link of a host of inhost that measures [default of such a host: user]
    #[arg(long, value_name = "SPEC")]
    pub link: Option<String>,
    /// Show for which layer that host works, too; it costs time of its own
    #[arg(long)]
    pub layers: bool,
    /// Measure from the running host whose control socket this is [default of --face control: the one that runs]
    #[arg(long, value_name = "SOCKET", conflicts_with = "link")]
    pub via: Option<PathBuf>,
    #[command(flatten)]
    pub common: Common,
}

/// Which interface.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum InettFace {
    /// The sockets of the operating system
    System,
    /// The sockets of a host of inhost, used by a task of its own
    Local,
    /// The same, with bulk data that is passed by reference
    ZeroCopy,
    /// X/Open's transport interface (XTI) of a host of inhost, used by a task of its own
    Xti,
    /// The sockets of a host of inhost, used from another thread
    Send,
    /// The descriptors that the running host gives out through its control socket
    Control,
}

/// What to measure, by flags.
#[derive(Args, Debug, Default)]
pub struct InettPlan {
    /// What: stream (bulk data), request (and response), echo (of a character), screen (for a character), connect,
    /// connections (held at the same time) [default: stream]
    #[arg(long, value_name = "KIND", value_parser = ["stream", "request", "echo", "screen", "connect", "connections"])]
    pub kind: Option<String>,
    /// UDP instead of TCP
    #[arg(long, short)]
    pub udp: bool,
    /// The server sends
    #[arg(long, short = 'R', conflicts_with = "both")]
    pub receive: bool,
    /// Both send
    #[arg(long)]
    pub both: bool,
    /// For so long, such as 10s or 500ms [default: 10s]
    #[arg(long, short, value_name = "TIME", value_parser = milliseconds)]
    pub time: Option<u64>,
    /// So many bytes of bulk data, such as 1G
    #[arg(long, short = 'n', value_name = "BYTES", value_parser = size, conflicts_with = "time")]
    pub bytes: Option<u64>,
    /// So many writes, datagrams or transactions
    #[arg(long, short = 'k', value_name = "COUNT")]
    pub count: Option<u64>,
    /// Bytes of a write or a datagram, such as 128K
    #[arg(long, short = 'l', value_name = "BYTES", value_parser = size)]
    pub write: Option<u64>,
    /// Socket buffers at both ends, such as 64K
    #[arg(long, short = 'w', value_name = "BYTES", value_parser = size)]
    pub window: Option<u64>,
    /// Bits a second of each stream, such as 10M
    #[arg(long, short = 'b', value_name = "RATE", value_parser = rate)]
    pub rate: Option<u64>,
    /// Congestion control at both ends, such as cubic or bbr
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Small segments leave at once
    #[arg(long)]
    pub no_delay: bool,
    /// Parallel streams each way
    #[arg(long, short = 'P', value_name = "COUNT")]
    pub streams: Option<u16>,
    /// Connections with transactions at the same time
    #[arg(long, value_name = "COUNT")]
    pub connections: Option<u16>,
    /// Bytes of requests: 64, uniform:10-100, exponential:500, or trace:FILE
    #[arg(long, value_name = "SIZES", value_parser = distribution)]
    pub request: Option<Distribution>,
    /// Bytes of responses, in the same words
    #[arg(long, value_name = "SIZES", value_parser = distribution)]
    pub response: Option<Distribution>,
    /// Microseconds between a response and the next request, in the same words
    #[arg(long, value_name = "TIMES", value_parser = distribution)]
    pub think: Option<Distribution>,
    /// Leave out the beginning, such as 2s
    #[arg(long, short = 'O', value_name = "TIME", value_parser = milliseconds)]
    pub warm_up: Option<u64>,
    /// Time between two reports; 0 for none [default: 1s]
    #[arg(long, short, value_name = "TIME", value_parser = milliseconds)]
    pub interval: Option<u64>,
    /// Streams of bulk data meanwhile, while transactions are timed
    #[arg(long, value_name = "COUNT")]
    pub background: Option<u16>,
    /// Threads here that compute all the time
    #[arg(long, value_name = "COUNT")]
    pub load: Option<u8>,
    /// Repeat so often: a count, or from a least to a most, until the confidence interval is narrow
    #[arg(long, value_name = "LEAST[-MOST]", value_parser = repetitions)]
    pub repeat: Option<(u32, u32)>,
    /// Half of the 95 % confidence interval that is wanted, in percent of the mean [default: 5]
    #[arg(long, value_name = "PERCENT", requires = "repeat")]
    pub half_width: Option<f64>,
    /// Seed of all draws
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
}

fn milliseconds(text: &str) -> Result<u64, String> {
    let units = [("", 1000), ("ms", 1), ("s", 1000), ("m", 60_000), ("min", 60_000), ("h", 3_600_000)];
    super::job::with_unit(text, &units).ok_or_else(|| "give 10s, 500ms, 2m".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    super::job::size(text)
}

fn rate(text: &str) -> Result<u64, String> {
    let units = [("", 1), ("K", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];
    super::job::with_unit(text, &units).ok_or_else(|| "give bits a second, such as 500K, 10M, 1G".to_owned())
}

fn repetitions(text: &str) -> Result<(u32, u32), String> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    match (least.parse::<u32>(), most.parse::<u32>()) {
        (Ok(least), Ok(most)) if 0 < least && least <= most => Ok((least, most)),
        _ => Err("give a count such as 5, or from a least to a most such as 3-20".to_owned()),
    }
}

fn distribution(text: &str) -> Result<Distribution, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text:?} is not a whole number"));
    let found = match text.split_once(':') {
        None => Distribution::Constant(number(text)?),
        Some(("exponential", mean)) => Distribution::Exponential { mean: number(mean)? },
        Some(("uniform", range)) => {
            let (least, most) = range.split_once('-').ok_or("give uniform:LEAST-MOST")?;
            Distribution::Uniform { least: number(least)?, most: number(most)? }
        }
        Some(("trace", path)) => {
            let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {path}: {e}"))?;
            Distribution::from_trace(&text).map_err(|e| format!("{path}: {e}"))?
        }
        Some(_) => return Err("give 64, uniform:10-100, exponential:500 or trace:FILE".to_owned()),
    };
    found.validate().map(|()| found).map_err(|e| e.to_string())
}

/// Commands that work as they stand.
pub const INETT_EXAMPLES: &str = "\
Examples:
  inhost inett --server
  inhost inett 127.0.0.1
      how much goes through; the server may be iperf3 -s, too
  inhost inett 127.0.0.1 --kind echo --time 5s
      how long a character takes, there and back
  inhost inett 127.0.0.1 --kind request --response exponential:4096 --connections 8 --background 1
      transactions under load
  inhost inett 127.0.0.1 --repeat 3-20 --half-width 2 --time 2s
      until the mean is known within 2 %
  inhost inett 127.0.0.1 --link user
      from a host of inhost instead of the system's sockets
  inhost inett 127.0.0.1 --link user --face xti
      the same by X/Open's transport interface
  inhost inett 127.0.0.1 --link user --layers
      and for which layer the host works
  inhost inett 10.9.0.2 --face control
      from the host that runs
  inhost inett 127.0.0.1 --sweep grid.toml --csv
Transactions need an inett at the other end. docs/inett.md tells of plans and sweeps.";
