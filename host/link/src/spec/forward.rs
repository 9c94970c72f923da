//! A port forward: a port of the operating system that leads to a port of the host.

use core::fmt;
use core::net::SocketAddr;
use core::str::FromStr;

/// Which protocol a forward carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// TCP connections.
    Tcp,
    /// UDP datagrams.
    Udp,
}

/// `127.0.0.1:2323->23` (TCP) or `udp:127.0.0.1:2007->7`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forward {
    /// The transport protocol.
    pub transport: Transport,
    /// Where the operating system listens.
    pub from: SocketAddr,
    /// The port of our host.
    pub to: u16,
}

impl FromStr for Forward {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (transport, rest) = match (text.strip_prefix("udp:"), text.strip_prefix("tcp:")) {
            (Some(rest), _) => (Transport::Udp, rest),
            (_, Some(rest)) => (Transport::Tcp, rest),
            _ => (Transport::Tcp, text),
        };
        let (from, to) = rest.split_once("->").ok_or(())?;
        let to = to.parse().map_err(|_| ())?;
        let from: SocketAddr = from.parse().map_err(|_| ())?;
        if to == 0 { Err(()) } else { Ok(Forward { transport, from, to }) }
    }
}
impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = if self.transport == Transport::Udp { "udp:" } else { "" };
        write!(f, "{prefix}{}->{}", self.from, self.to)
    }
}
