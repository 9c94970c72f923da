//! Which name servers to ask and how, from the text of a resolv.conf(5).

use crate::machine::RetrySchedule;
use inhost_base::{Duration, Endpoint, IpAddr};

/// Most name servers that are asked (what C libraries keep too).
pub const SERVERS_LIMIT: usize = 3;
/// Most search domains that are tried (RFC 1535 warns of long lists).
pub const SEARCH_LIMIT: usize = 6;

/// The DNS port.
pub const DNS_PORT: u16 = 53;

/// Name servers and how to ask them.
///
/// ```
/// use inhost_names::Servers;
/// let servers = Servers::parse("nameserver 192.0.2.53\nsearch example.com\noptions attempts:3\n");
/// assert_eq!(servers.servers[0].to_string(), "192.0.2.53:53");
/// assert_eq!((servers.search.as_slice(), servers.attempts), (&["example.com".to_owned()][..], 3));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Servers {
    /// The servers, in order of preference; at most [`SERVERS_LIMIT`]. Empty: the DNS is not asked.
    pub servers: Vec<Endpoint>,
    /// Domains appended to a short name, in this order; at most [`SEARCH_LIMIT`].
    pub search: Vec<String>,
    /// A name with at least so many dots is first tried as it stands. Default 1.
    pub dots: usize,
    /// The longest wait for an answer of one server. Default 5 s, at most 30 s; a look-up as a whole ends after
    /// [`QUESTION_LIMIT`](crate::QUESTION_LIMIT).
    pub timeout: Duration,
    /// Times that each server is asked. Default 2, at most 5.
    pub attempts: usize,
}

impl Default for Servers {
    fn default() -> Self {
        Servers {
            servers: Vec::new(),
            search: Vec::new(),
            dots: 1,
            timeout: Duration::from_secs(5),
            attempts: 2,
        }
    }
}

impl Servers {
    /// Asks these and nothing else.
    pub fn of(servers: impl IntoIterator<Item = IpAddr>) -> Servers {
        let servers = servers.into_iter().map(|address| Endpoint::new(address, DNS_PORT));
        Servers { servers: servers.take(SERVERS_LIMIT).collect(), ..Servers::default() }
    }
    /// Attempts and timeouts of each server.
    pub(crate) fn retries(&self) -> RetrySchedule {
        RetrySchedule { rounds: self.attempts, timeout: self.timeout }
    }
    /// Reads the text of a resolv.conf. Lines that it does not know are passed over, and so are servers with a zone.
    /// Of several `search` or `domain` lines the last one holds.
    pub fn parse(text: &str) -> Servers {
        let mut found = Servers::default();
        for line in text.lines() {
            let line = line.split(['#', ';']).next().unwrap_or("");
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => {
                    if let Some(Ok(address)) = words.next().map(str::parse::<IpAddr>)
                        && found.servers.len() < SERVERS_LIMIT
                    {
                        found.servers.push(Endpoint::new(address, DNS_PORT));
                    }
                }
                Some("search") => found.search = words.take(SEARCH_LIMIT).map(str::to_owned).collect(),
                Some("domain") => found.search = words.take(1).map(str::to_owned).collect(),
                Some("options") => words.for_each(|word| found.option(word)),
                _ => {}
            }
        }
        found.search.retain(|domain| domain != ".");
        found
    }
    fn option(&mut self, word: &str) {
        let Some((name, Ok(value))) = word.split_once(':').map(|(n, v)| (n, v.parse::<u64>())) else {
            return;
        };
        match name {
            "ndots" => self.dots = value.min(15) as usize,
            "timeout" => self.timeout = Duration::from_secs(value.clamp(1, 30)),
            "attempts" => self.attempts = value.clamp(1, 5) as usize,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_as_systems_write_them() {
        let servers = Servers::parse(
            "# made by hand\nsearch mit.edu lcs.mit.edu ; two\nnameserver 10.0.2.3\nnameserver fd00::3\n\
             nameserver fe80::1%eth0\noptions ndots:2 timeout:99 attempts:0 edns0 trust-ad\nsortlist x\n",
        );
        assert_eq!(servers.servers.len(), 2);
        assert_eq!(servers.servers[1].to_string(), "[fd00::3]:53");
        assert_eq!(servers.search, ["mit.edu", "lcs.mit.edu"]);
        assert_eq!((servers.dots, servers.timeout, servers.attempts), (2, Duration::from_secs(30), 1));
        assert_eq!(Servers::parse(""), Servers::default());
        assert!(Servers::parse("domain .\n").search.is_empty());
    }
}
