//! Command-line arguments of `inhost history`.

use clap::{Args, ValueEnum};
use inhost_base::Cidr;
use inhost_history::Limit;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ZonedDateTime};
use std::path::PathBuf;

/// Arguments of `inhost history`.
#[derive(Args, Debug)]
pub struct History {
    /// Those that ended since then: 2h, 3days, 2026-11-24T10:00 (local time) or 2026-11-24T10:00Z
    #[arg(long, value_name = "WHEN", value_parser = when)]
    pub since: Option<Timestamp>,
    /// Those that ended before
    #[arg(long, value_name = "WHEN", value_parser = when)]
    pub until: Option<Timestamp>,
    /// Those with a peer of this address or network, such as 10.9.0.2 or 10.9.0.0/16
    #[arg(long, value_name = "NETWORK", value_parser = network)]
    pub peer: Option<Cidr>,
    /// Those with this port at either end
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Those that this limited most, such as "receiver's window" or receivers-window
    #[arg(long, value_name = "CAUSE", value_parser = cause)]
    pub cause: Option<Causes>,
    /// Those that ended with an error
    #[arg(long)]
    pub failed: bool,
    /// Those with less than this rate, such as 1Mbit
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub slower_than: Option<Rate>,
    /// Those with more than this rate
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub faster_than: Option<Rate>,
    /// The order
    #[arg(long, value_enum, default_value_t = By::Latest)]
    pub by: By,
    /// Show so many
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 20)]
    pub count: u32,
    /// Draw how many ended, and what they waited for, over time, as SVG; - is standard output
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with = "svg")]
    pub json: bool,
    /// Folder of the records [default: that of `inhost serve` without `[history] folder`]
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
}

/// The order of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum By {
    /// The latest first
    Latest,
    /// The slowest first
    Slowest,
    /// Those that lived longest first
    Longest,
    /// Those with the most bytes first
    Largest,
    /// Those with the most segments sent again first
    Resent,
}

/// Causes of one name.
#[derive(Clone, Debug)]
pub struct Causes(pub Vec<Limit>);

/// Bits per second.
#[derive(Clone, Copy, Debug)]
pub struct Rate(pub u64);

fn when(text: &str) -> Result<Timestamp, String> {
    let ago = || text.parse::<Span>().ok().and_then(|span| ZonedDateTime::now().checked_sub(span).ok());
    let local =
        || text.parse::<DateTime>().ok().and_then(|time| time.to_zoned_datetime(TimeZone::system()).ok());
    let time = text.parse::<Timestamp>().ok();
    let time = time.or_else(|| local().or_else(ago).map(|zoned| zoned.timestamp()));
    time.ok_or_else(|| "give a time ago, as 2h or 3days, or a time, as 2026-11-24T10:00".to_owned())
}

fn network(text: &str) -> Result<Cidr, String> {
    let whole = || text.parse::<std::net::IpAddr>().ok().map(Cidr::whole);
    let wrong = || "give an address or a network, as 10.9.0.2 or 10.9.0.0/16".to_owned();
    text.parse().ok().or_else(whole).ok_or_else(wrong)
}

/// A cause in words, or as one word, as traps have it.
fn cause(text: &str) -> Result<Causes, String> {
    let found = Limit::named(text);
    if found.is_empty() {
        let known: std::collections::BTreeSet<String> = Limit::all().map(Limit::word).collect();
        return Err(format!("the causes are {}", known.into_iter().collect::<Vec<_>>().join(", ")));
    }
    Ok(Causes(found))
}

fn rate(text: &str) -> Result<Rate, String> {
    let number = text.trim_end_matches("/s").trim_end_matches("bit");
    let (number, factor) = match number.char_indices().last() {
        Some((at, 'k')) => (&number[..at], 1e3),
        Some((at, 'M')) => (&number[..at], 1e6),
        Some((at, 'G')) => (&number[..at], 1e9),
        _ => (number, 1.0),
    };
    let number: Option<f64> = number.trim().parse().ok().filter(|number: &f64| *number >= 0.0);
    let rate = number.map(|number| Rate((number * factor) as u64));
    rate.ok_or_else(|| "give bits per second, as 500kbit or 1.5Mbit".to_owned())
}

pub const HISTORY_EXAMPLES: &str = "\
Examples:
  inhost history
      the latest connections that ended
  inhost history --since 2h --cause receivers-window --by slowest
      what a receiver's window held up
  inhost history --peer 10.9.0.0/16 --failed
  inhost history --slower-than 1Mbit --by largest -n 5 --json
  inhost history --since 1day --svg day.svg";
