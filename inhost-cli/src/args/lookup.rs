//! Command-line arguments of `inhost lookup`.

use super::Reach;
use clap::Args;

/// Arguments of `inhost lookup`.
#[derive(Args, Debug)]
pub struct Lookup {
    /// A name, an address whose names are wanted, or a URL: dns://server/name?type=MX (RFC 4501), else its host
    pub name: String,
    /// A type of records such as MX, several of them, and @SERVER to ask that one [default: A and AAAA]
    #[arg(value_name = "TYPE|@SERVER")]
    pub words: Vec<String>,
    #[command(flatten)]
    pub reach: Reach,
    /// Ask everybody on the link by mDNS, as is done for names that end in .local
    #[arg(long)]
    pub mdns: bool,
    /// Ask over TCP from the start
    #[arg(long)]
    pub tcp: bool,
    /// Say of every server that was asked what it said and how long that took
    #[arg(long)]
    pub trace: bool,
    /// Print one JSON object, times in nanoseconds
    #[arg(long)]
    pub json: bool,
}

/// Commands that work as they stand.
pub const LOOKUP_EXAMPLES: &str = "\
Examples:
  inhost lookup www.example.com
      its addresses, by the running host's name servers or the system's
  inhost lookup example.com MX TXT
      other records
  inhost lookup 192.0.2.7
      the names of an address
  inhost lookup -6 https://www.example.com/news
      the IPv6 addresses of the host of a URL
  inhost lookup www.example.com @10.9.0.1 --trace
      one server, and what happened on the way
  inhost lookup www.example.com AAAA @127.0.0.1:5300 --link user --json
      a server of this machine at another port, from a private host
  inhost lookup printer.local --link tap:in0,address=10.9.0.2/24
      the owner of the name on the link answers (mDNS)
--timeout is for all that is asked. Exit status: 0 when there are such records, 1 when there are none or nobody answered.";
