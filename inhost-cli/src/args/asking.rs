//! Command-line arguments of `inhost whois` and `inhost finger`.

use super::Through;
use clap::Args;

/// Arguments of `inhost whois`.
#[derive(Args, Debug)]
pub struct Whois {
    /// A domain, an address, a network's number; in quotes what has spaces
    pub query: String,
    /// The server to begin with
    #[arg(long, short, value_name = "HOST", default_value = inhost_whois::ROOT)]
    pub server: String,
    /// Its port
    #[arg(long, short, value_name = "PORT", default_value_t = inhost_whois::PORT)]
    pub port: u16,
    /// Ask this server alone, whomever it refers to
    #[arg(long)]
    pub no_referral: bool,
    #[command(flatten)]
    pub common: Asking,
}

/// Arguments of `inhost finger`.
#[derive(Args, Debug)]
pub struct Finger {
    /// A user and a host, as ada@example.net; @example.net for all who are there; ada@one@two has two ask one
    pub who: String,
    /// Ask for more of each user (/W)
    #[arg(long, short)]
    pub long: bool,
    /// Port
    #[arg(long, short, value_name = "PORT", default_value_t = inhost_finger::client::PORT)]
    pub port: u16,
    #[command(flatten)]
    pub common: Asking,
}

/// Arguments common to both commands.
#[derive(Args, Debug)]
pub struct Asking {
    #[command(flatten)]
    pub through: Through,
    /// Seconds to wait for all of an answer
    #[arg(long, short = 'W', value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..))]
    pub wait: u16,
    /// Use IPv4 only
    #[arg(short = '4', conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6')]
    pub ipv6: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub const WHOIS_EXAMPLES: &str = "\
Examples:
  inhost whois example.com
      from the root's server on, to whomever that refers to
  inhost whois 192.0.2.7 --json
  inhost whois --server whois.ripe.net --no-referral AS64496
What terminals obey is taken out of the answers.";

pub const FINGER_EXAMPLES: &str = "\
Examples:
  inhost finger ada@example.net
  inhost finger --long @10.9.0.1 --link tap:in0,address=10.9.0.2/24,host=10.9.0.1/24
  inhost finger ada@inside.example@gate.example
      gate.example asks inside.example, where it allows that
What terminals obey is taken out of the answer.";
