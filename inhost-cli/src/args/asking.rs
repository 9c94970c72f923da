//! Command-line arguments of `inhost whois` and `inhost finger`.

use super::Reach;
use clap::Args;

/// Arguments of `inhost whois`.
#[derive(Args, Debug)]
pub struct Whois {
    /// A domain, an address, a network's number; in quotes what has spaces; or a whois://server/ URL with one
    pub query: String,
    /// The server to begin with
    #[arg(long, short, value_name = "HOST[:PORT]", default_value = inhost_whois::ROOT)]
    pub server: String,
    /// Its port [default: 43]
    #[arg(long, short, value_name = "PORT")]
    pub port: Option<u16>,
    /// Ask this server alone, whomever it refers to
    #[arg(long)]
    pub no_referral: bool,
    #[command(flatten)]
    pub common: Asking,
}

/// Arguments of `inhost finger`.
#[derive(Args, Debug)]
pub struct Finger {
    /// [user]@host[:port] or finger:// URL; @host for all who are there; ada@one@two has two ask one
    pub who: String,
    /// Ask for more of each user (/W)
    #[arg(long, short)]
    pub long: bool,
    /// Port [default: 79]
    #[arg(long, short, value_name = "PORT")]
    pub port: Option<u16>,
    #[command(flatten)]
    pub common: Asking,
}

/// Arguments common to both commands.
#[derive(Args, Debug)]
pub struct Asking {
    #[command(flatten)]
    pub reach: Reach,
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
  inhost whois whois://whois.ripe.net:43/AS64496
--timeout is for all of an answer, 30 s by default. What terminals obey is taken out of the answers.";

pub const FINGER_EXAMPLES: &str = "\
Examples:
  inhost finger ada@example.net
  inhost finger --long @10.9.0.1 --link tap:in0,address=10.9.0.2/24,host=10.9.0.1/24
  inhost finger ada@inside.example@gate.example
      gate.example asks inside.example, where it allows that
--timeout is for all of the answer, 30 s by default. What terminals obey is taken out of the answer.";
