//! Command-line arguments of `inhost netstat`.

use super::Sort;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, Error, ValueEnum};
use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Arguments of `inhost netstat`.
#[derive(Args, Debug)]
pub struct Netstat {
    /// What to show, or the first word of a filter
    #[arg(value_name = "PART", value_parser = FirstWord)]
    pub first: Option<First>,
    /// Which connections, in the manner of ss, such as: state established and dport = :443
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,
    /// The order of connections
    #[arg(long, value_enum, value_name = "COLUMN", default_value_t = Sort::Age)]
    pub sort: Sort,
    /// So many connections at most
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub count: Option<NonZeroUsize>,
    /// Draw the histograms into this file; - is standard output
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Control socket of the running host
    #[arg(long, value_name = "PATH")]
    pub via: Option<PathBuf>,
}

/// A part of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Part {
    /// Links with their addresses, leases and groups
    Interfaces,
    /// Connections with the figures behind their state
    Connections,
    /// Listeners with both queues
    Listeners,
    /// Sessions of services
    Sessions,
    /// Where the time of each connection went
    Ledgers,
    /// Neighbours on links
    Neighbours,
    /// Routes
    Routes,
    /// Counters, and what was dropped for which reason
    Counters,
    /// Timers, memory pools, reassembly of fragments, and who waits to send
    Queues,
    /// Round trips, acknowledgment times, queues, segment sizes and service times
    Histograms,
    /// The latest lines of the log
    Log,
}

/// The first word: a part, or a word of a filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum First {
    Part(Part),
    Word(String),
}

/// Takes a part by its name, and any word that a filter may begin with.
#[derive(Clone)]
struct FirstWord;

/// Words without a digit that a filter may begin with.
const BEGIN: [&str; 9] = ["state", "src", "dst", "sport", "dport", "port", "cause", "not", "("];

impl TypedValueParser for FirstWord {
    type Value = First;
    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<First, Error> {
        let word = StringValueParser::new().parse_ref(command, argument, value)?;
        if let Ok(part) = Part::from_str(&word, false) {
            return Ok(First::Part(part));
        }
        let first = word.split_whitespace().next().unwrap_or_default();
        let can_begin = BEGIN.contains(&first) || first.starts_with(['(', '!']);
        if can_begin || word.contains(|character: char| character.is_ascii_digit()) {
            return Ok(First::Word(word));
        }
        let parts: Vec<String> = Part::value_variants()
            .iter()
            .filter_map(|part| Some(part.to_possible_value()?.get_name().to_owned()))
            .collect();
        let words = BEGIN.join(", ");
        let detail = format!(
            "{word:?} is not a part: give one of {}; or a filter, which begins with {words}\n",
            parts.join(", ")
        );
        Err(Error::raw(ErrorKind::InvalidValue, detail).with_cmd(command))
    }
    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Part::value_variants().iter().filter_map(Part::to_possible_value)))
    }
}

impl Netstat {
    /// The part that is meant.
    pub fn part(&self) -> Option<Part> {
        match self.first {
            Some(First::Part(part)) => Some(part),
            _ => None,
        }
    }
    /// The words of the filter.
    pub fn filter(&self) -> String {
        let first = match &self.first {
            Some(First::Word(word)) => Some(word.as_str()),
            _ => None,
        };
        first.into_iter().chain(self.filter.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
    }
}

pub const NETSTAT_EXAMPLES: &str = "\
Examples:
  inhost netstat
  inhost netstat state established and dport = :443
  inhost netstat --sort send-rate -n 10 'not cause = application-idle'
  inhost netstat ledgers dst 10.0.0.0/8
      where the time of each connection went, cause by cause
  inhost netstat histograms --svg histograms.svg
  inhost netstat counters
      each with its reason, what was dropped
  inhost netstat --json";
