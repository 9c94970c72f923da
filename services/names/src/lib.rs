//! Names to addresses and connections: literal addresses, a table of hosts, then the DNS over the host's own UDP and
//! TCP, or the link itself for `.local` (RFC 6762); both families looked up at once and raced (RFC 8305). Any record, with
//! who said so and how long it took ([`Names::records`]); and a caching forwarder for others ([`forward`]).
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

mod answer;
mod asked;
mod cache;
mod codec;
mod connect;
mod denial;
mod driver;
mod error;
pub mod forward;
pub mod fuzz;
mod health;
mod hosts;
mod local;
mod machine;
pub mod mdns;
mod race;
mod records;
mod resolve;
mod servers;
pub mod service;

pub use answer::{
    ALIASES_LIMIT, Answer, AnswerError, NEGATIVE_LIMIT, RECORDS_LIMIT, Source, TIME_TO_LIVE_LIMIT, code_name,
    shown,
};
pub use asked::{Mismatch, Question, UDP_ANSWER_BYTES};
pub use cache::Cache;
pub use driver::DnsClient;
pub use error::{ConnectByNameError, LookUpError};
pub use health::{FIRST_REST, Health, LONGEST_REST, SERVERS_REMEMBERED};
/// The format of messages, names and records, which is hickory's.
pub use hickory_proto as proto;
pub use hosts::Hosts;
pub use local::{LOCAL_TIME_TO_LIVE_SECONDS, reverse_name};
pub use machine::{
    ASKED_LIMIT, Action, Attempt, AttemptOutcome, Exchange, Failed, MISMATCHES_LIMIT, QUESTION_LIMIT,
    Resolution, RetrySchedule, Transport,
};
pub use race::{Family, Race, RaceConfig, Step};
pub use records::{RecordsRequest, RecordsResult, data_shown, kinds_of};
pub use servers::{DNS_PORT, SEARCH_LIMIT, SERVERS_LIMIT, Servers};

use forward::Home;
use inhost_base::IpAddr;
use inhost_socket::{AddressFuture, Host, Resolve, Stream};
use std::cell::RefCell;
use std::io;

/// Memory of the answers that look-ups keep, where the host has no forwarder.
const CACHE_BYTES: usize = 256 << 10;

/// Configuration of name resolution.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct NamesConfig {
    /// The table that is asked before the DNS. Default: empty.
    pub hosts: Hosts,
    /// The name servers. Default: none, and then only literal addresses and the table are known.
    pub servers: Servers,
    /// Configuration of the address race. Default: as RFC 8305 recommends.
    pub race: RaceConfig,
    /// Seed of identifiers and of letter case: secret entropy. Default: zeros, for tests.
    pub seed: [u8; 32],
}

impl NamesConfig {
    /// A table, name servers, and entropy that nobody else knows; addresses are raced as RFC 8305 recommends.
    ///
    /// ```
    /// use inhost_names::{Hosts, NamesConfig, Servers};
    /// let servers = Servers::parse("nameserver 192.0.2.53\nsearch example.com\n");
    /// let config = NamesConfig::new(Hosts::parse("192.0.2.7 printer\n"), servers, [7; 32]);
    /// assert_eq!(config.servers.search, ["example.com"]);
    /// ```
    pub fn new(hosts: Hosts, servers: Servers, seed: [u8; 32]) -> NamesConfig {
        NamesConfig { hosts, servers, race: RaceConfig::default(), seed }
    }
}

/// Finds addresses for one host, and connects by name. It belongs to the host's thread, as every local task does.
pub struct Names {
    host: Host,
    hosts: RefCell<Hosts>,
    race: RaceConfig,
    servers: RefCell<Servers>,
    asker: DnsClient,
    cache: RefCell<Cache>,
    /// The host's own forwarder, whose cache is used instead.
    home: RefCell<Option<Home>>,
}

impl Names {
    /// A resolver on `host`.
    pub fn new(host: &Host, config: NamesConfig) -> Names {
        let NamesConfig { hosts, servers, race, seed } = config;
        let asker = DnsClient::new(host, seed);
        asker.set_retries(servers.retries());
        let (hosts, servers) = (RefCell::new(hosts), RefCell::new(servers));
        Names {
            host: host.clone(),
            hosts,
            race,
            servers,
            asker,
            cache: RefCell::new(Cache::new(CACHE_BYTES)),
            home: RefCell::default(),
        }
    }
    /// Lets the forwarder of this host answer from now on, by its table, its servers and its cache.
    pub fn set_home(&self, home: Home) {
        self.home.replace(Some(home));
        self.cache.borrow_mut().clear();
    }
    /// Puts another table in place of the one that was given, as after a change of the file.
    pub fn set_hosts(&self, hosts: Hosts) {
        self.hosts.replace(hosts);
    }
    /// Asks other name servers from now on, as after a new lease; look-ups under way end with those that they began with.
    /// Where the host's forwarder answers, which has servers of its own, only the search domains change.
    pub fn set_servers(&self, servers: &Servers) {
        self.asker.set_retries(servers.retries());
        let old = self.servers.replace(servers.clone());
        if old.servers != servers.servers {
            self.cache.borrow_mut().clear();
        }
    }
    /// All addresses of `name`, of both families, the one to try first in front (RFC 6724 §6). Never empty.
    pub async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, LookUpError> {
        let known = self.known(name)?;
        let mut addresses = match known {
            Some(addresses) => addresses,
            None if records::is_of_the_link(name) => self.look_up_on_the_link(name).await?,
            None => self.look_up_both(name).await?,
        };
        connect::order(&self.host, &mut addresses);
        Ok(addresses)
    }
    /// The name of `address`: what the table has for it, or the DNS. `None` where neither says one.
    pub async fn name_of(&self, address: IpAddr) -> Option<String> {
        let known = self.with_hosts(|hosts| hosts.names_of(address)).into_iter().next();
        match known {
            Some(name) => Some(name),
            None => self.name_in_dns(address).await,
        }
    }
    /// Connects to `port` of `name`: the first of its addresses that accepts (RFC 8305).
    pub async fn connect(&self, name: &str, port: u16) -> Result<Stream, ConnectByNameError> {
        let mut known = self.known(name).map_err(ConnectByNameError::LookUp)?;
        if known.is_none() && records::is_of_the_link(name) {
            known = Some(self.look_up_on_the_link(name).await.map_err(ConnectByNameError::LookUp)?);
        }
        let source = known.map_or(connect::Source::Dns(self), connect::Source::Known);
        connect::connect(&self.host, source, name, port, self.race).await
    }
    /// Answer to a name that needs no server.
    fn known(&self, name: &str) -> Result<Option<Vec<IpAddr>>, LookUpError> {
        self.with_hosts(|hosts| resolve::known(name, hosts))
    }
    fn with_hosts<R>(&self, ask: impl FnOnce(&Hosts) -> R) -> R {
        match &*self.home.borrow() {
            Some(home) => home.with_hosts(ask),
            None => ask(&self.hosts.borrow()),
        }
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> AddressFuture<'a> {
        Box::pin(async move {
            let kind = |error: &LookUpError| match error {
                LookUpError::NotAName { .. } => io::ErrorKind::InvalidInput,
                _ => io::ErrorKind::NotFound,
            };
            self.look_up(name).await.map_err(|error| io::Error::new(kind(&error), error))
        })
    }
}

/// Whether `name` can be the name or the address of a host at all; nobody is asked.
pub fn check_host(name: &str) -> Result<(), LookUpError> {
    resolve::known(name, &Hosts::default()).map(drop)
}

/// Whether records of `name` can be asked for at all.
pub fn check_name(name: &str) -> Result<(), LookUpError> {
    if records::address(name).is_some() { Ok(()) } else { records::full_name(name).map(drop) }
}

/// Connects to `port` of `name` with the means of `names`; the same as [`Names::connect`].
pub async fn connect_by_name(names: &Names, name: &str, port: u16) -> Result<Stream, ConnectByNameError> {
    names.connect(name, port).await
}
