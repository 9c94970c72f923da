//! Command-line arguments that clients share: the same flags for the same things.

use super::Through;
use crate::connection::Family;
use clap::Args;
use inhost_base::Duration;

/// Arguments of every client that connects.
#[derive(Args, Debug, Clone, Default)]
pub struct Reach {
    #[command(flatten)]
    pub through: Through,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of every client.
#[derive(Args, Debug, Clone, Default)]
pub struct Common {
    /// Seconds to wait for the other host; the page of each command says what for
    #[arg(long, visible_alias = "wait", short = 'W', value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// Use IPv4 only
    #[arg(short = '4', conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6')]
    pub ipv6: bool,
    /// Say on standard error how the other host is reached, and what is said to it where that is text
    #[arg(long, short)]
    pub verbose: bool,
}

impl Common {
    /// The family that is asked for.
    pub fn family(&self) -> Family {
        Family::of(self.ipv4, self.ipv6)
    }
    /// How long to wait, if that was said.
    pub fn limit(&self) -> Option<Duration> {
        self.timeout.map(|seconds| Duration::from_nanos((seconds * 1e9) as u64))
    }
    /// A line for `--verbose`.
    pub fn note(&self, text: impl std::fmt::Display) {
        if self.verbose {
            crate::failure::print_error(text);
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.01..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds from 0.01 to 3600".into()),
    }
}
