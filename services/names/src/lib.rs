//! Names to addresses and connections: literal addresses, a table of hosts, then the DNS over the host's own UDP and
//! TCP; both families looked up at once and raced (RFC 8305).
//!
//! This crate asks no operating system anything: the texts of a hosts file and of a resolv.conf are given to it. It
//! has no thread and no clock of its own, so that it runs in a simulation as it runs under the real clock.
//!
//! ```
//! use inhost_names::{Hosts, Servers};
//! let hosts = Hosts::parse("10.0.0.7 multics.example multics\n");
//! assert_eq!(hosts.look_up("Multics").unwrap()[0].to_string(), "10.0.0.7");
//! let servers = Servers::parse("nameserver 10.0.2.3\noptions timeout:2\n");
//! assert_eq!(servers.servers[0].to_string(), "10.0.2.3:53");
//! ```
#![forbid(unsafe_code)]

mod bridge;
mod connect;
mod error;
mod hosts;
mod race;
mod resolve;
mod servers;

pub use error::{ConnectByNameError, LookUpError};
pub use hosts::Hosts;
pub use race::{Family, Race, RaceConfig, Step};
pub use servers::{DNS_PORT, SEARCH_LIMIT, SERVERS_LIMIT, Servers};

use connect::Source;
use inhost_base::IpAddr;
use inhost_socket::{Host, Stream};
use resolve::Dns;
use std::cell::RefCell;

/// How a host finds addresses.
#[derive(Clone, Debug, Default)]
pub struct NamesConfig {
    /// The table that is asked before the DNS. Default: empty.
    pub hosts: Hosts,
    /// The name servers. Default: none, and then only literal addresses and the table are known.
    pub servers: Servers,
    /// How addresses are raced. Default: as RFC 8305 recommends.
    pub race: RaceConfig,
}

/// Finds addresses for one host, and connects by name. It belongs to the host's thread, as every local task does.
pub struct Names {
    host: Host,
    hosts: RefCell<Hosts>,
    dns: Option<Dns>,
    race: RaceConfig,
}

impl Names {
    /// A resolver on `host`; it starts one local task, which ends with it.
    pub fn new(host: &Host, config: NamesConfig) -> Names {
        let NamesConfig { hosts, servers, race } = config;
        Names { host: host.clone(), hosts: RefCell::new(hosts), dns: Dns::new(host, &servers), race }
    }
    /// Puts another table in place of the one that was given, as after a change of the file.
    pub fn set_hosts(&self, hosts: Hosts) {
        self.hosts.replace(hosts);
    }
    /// All addresses of `name`, of both families, the one to try first in front (RFC 6724 §6). Never empty.
    pub async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, LookUpError> {
        let known = resolve::known(name, &self.hosts.borrow())?;
        let mut addresses = match known {
            Some(addresses) => addresses,
            None => resolve::look_up_both(self.dns.as_ref(), name, &self.host).await?,
        };
        connect::order(&self.host, &mut addresses);
        Ok(addresses)
    }
    /// Connects to `port` of `name`: the first of its addresses that accepts (RFC 8305).
    pub async fn connect(&self, name: &str, port: u16) -> Result<Stream, ConnectByNameError> {
        let known = resolve::known(name, &self.hosts.borrow()).map_err(ConnectByNameError::LookUp)?;
        let source = known.map_or(Source::Dns(self.dns.as_ref()), Source::Known);
        connect::connect(&self.host, source, name, port, self.race).await
    }
}

/// Connects to `port` of `name` with the means of `names`; the same as [`Names::connect`].
pub async fn connect_by_name(names: &Names, name: &str, port: u16) -> Result<Stream, ConnectByNameError> {
    names.connect(name, port).await
}
