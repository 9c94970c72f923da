//! Command-line arguments of `inhost traceroute`.

use super::Reach;
use clap::{Args, ValueEnum};

/// Arguments of `inhost traceroute`.
#[derive(Args, Debug, Clone)]
pub struct Traceroute {
    /// Host name or address, host:port with a port to probe, or a URL
    pub host: String,
    /// What is sent: UDP datagrams, ICMP echo requests, or TCP calls
    #[arg(long, short = 'M', value_enum, default_value_t = Method::Udp)]
    pub method: Method,
    /// Destination port: of UDP the first of a row, of TCP the only one [default: 33434; of TCP 80]
    #[arg(long, short, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// First hop to ask
    #[arg(long, short, value_name = "HOP", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    pub first: u8,
    /// Last hop to ask
    #[arg(long, short = 'm', value_name = "HOP", default_value_t = 30, value_parser = clap::value_parser!(u8).range(1..))]
    pub max: u8,
    /// Probes for each hop
    #[arg(long, short, value_name = "PROBES", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=10))]
    pub queries: u8,
    /// Probes on their way at once
    #[arg(long, short = 'N', value_name = "PROBES", default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub parallel: u8,
    #[command(flatten)]
    pub reach: Reach,
    /// Bytes of a probe, with its IP header
    #[arg(long, short, value_name = "BYTES", default_value_t = 60, value_parser = clap::value_parser!(u16).range(60..))]
    pub size: u16,
    /// Find how large a packet may be up to each hop (path MTU)
    #[arg(long)]
    pub mtu: bool,
    /// Do not look up the names of hops
    #[arg(long, short = 'n')]
    pub numeric: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Probe methods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Method {
    /// Datagrams to ports where nobody listens
    Udp,
    /// Echo requests
    Icmp,
    /// Calls to a port, which pass where a firewall lets that service pass
    Tcp,
}

pub const TRACEROUTE_EXAMPLES: &str = "\
Examples:
  inhost traceroute 192.0.2.7
      from the running host; --via names its control socket
  inhost traceroute 192.0.2.7 --link tap:in0,address=10.9.0.2/24,host=10.9.0.1/24,gateway=10.9.0.1
      as root, where the kernel forwards for the device in0
  inhost traceroute --method tcp example.com:443 --link SPEC
      where a firewall lets only that pass
  inhost traceroute --method icmp --mtu -6 example.com --link SPEC
      with the largest packet up to each hop
The link user hides the hops: there the system's own sockets do the sending.
--timeout is for an answer, 5 s at most by default. Exit status: 0 when the destination was reached, 1 when it was not.";
