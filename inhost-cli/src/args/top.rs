//! Command-line arguments of `inhost top`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `inhost top`.
#[derive(Args, Debug)]
pub struct Top {
    /// Which connections, in the manner of ss, such as: state established and dport = :443
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,
    /// By what they are sorted at first
    #[arg(long, short, value_enum, value_name = "COLUMN", default_value_t = Sort::SendRate)]
    pub sort: Sort,
    /// How often it looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub every: f64,
    /// Print the screen once, as text, and end
    #[arg(long)]
    pub once: bool,
    /// Control socket of the running host
    #[arg(long, value_name = "PATH")]
    pub via: Option<PathBuf>,
}

/// Columns by which connections are sorted, from left to right.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
#[allow(missing_docs)] // The names say it.
pub enum Sort {
    Local,
    Remote,
    State,
    Age,
    SendRate,
    ReceiveRate,
    Rtt,
    Retransmitted,
    Cause,
}

impl Sort {
    /// The name that the host's interface has for it.
    pub fn name(self) -> String {
        self.to_possible_value().map(|of| of.get_name().replace('-', "_")).unwrap_or_default()
    }
    /// Names begin with the first, figures with the largest.
    pub fn is_descending_at_first(self) -> bool {
        !matches!(self, Sort::Local | Sort::Remote | Sort::State | Sort::Cause)
    }
}

pub const TOP_EXAMPLES: &str = "\
Examples:
  inhost top
      connections with what they wait for; Enter opens one, ? lists the keys
  inhost top --sort retransmitted state established
  inhost top 'cause = receivers-window and not port 22'
  inhost top --once
      as text, for scripts and reports";
