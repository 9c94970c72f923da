//! From a name to addresses: literal, table, then the DNS.

use crate::bridge::Provider;
use crate::{Family, Hosts, LookUpError, Servers, hosts};
use futures_lite::future;
use hickory_resolver::Resolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts, ServerOrderingStrategy,
};
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use inhost_base::{Endpoint, Instant, IpAddr, Ipv4Addr, Ipv6Addr};
use inhost_common::Cleaner;
use inhost_socket::Host;
use std::str::FromStr;

/// Answers kept until their time to live is over.
const CACHED_ANSWERS: u64 = 512;
/// RFC 1035 §2.3.4.
const NAME_BYTES: usize = 255;

/// What is asked of the DNS, and of whom.
pub(crate) struct Dns {
    resolver: Resolver<Provider>,
    provider: Provider,
    servers: Vec<Endpoint>,
}

impl Dns {
    /// A DNS client on `host`; `None` where no server is configured.
    pub(crate) fn new(host: &Host, servers: &Servers) -> Option<Dns> {
        let Servers { servers: endpoints, search, dots, timeout, attempts } = servers;
        if endpoints.is_empty() {
            return None;
        }
        let name_servers = endpoints.iter().map(|server| {
            let with_port = |mut connection: ConnectionConfig| {
                connection.port = server.port;
                connection
            };
            let connections = vec![with_port(ConnectionConfig::udp()), with_port(ConnectionConfig::tcp())];
            NameServerConfig::new(server.address, true, connections)
        });
        let search = search.iter().filter_map(|domain| Name::from_str(domain).ok()).collect();
        let config = ResolverConfig::from_parts(None, search, name_servers.collect());
        let mut options = ResolverOpts::default();
        options.ndots = *dots;
        options.timeout = (*timeout).into();
        options.attempts = *attempts;
        options.edns0 = true;
        options.cache_size = CACHED_ANSWERS;
        options.use_hosts_file = ResolveHosts::Never;
        options.server_ordering_strategy = ServerOrderingStrategy::UserProvidedOrder;
        // One at a time and in order, as resolv.conf(5) says: a second server is for when the first is silent.
        options.num_concurrent_reqs = 1;
        // The stack draws its ports from where no one can guess them (RFC 6056).
        options.os_port_selection = true;
        let provider = Provider::start(host);
        let mut builder = Resolver::builder_with_config(config, provider.clone());
        *builder.options_mut() = options;
        // It fails only where a TLS configuration cannot be had, and none is asked for.
        let resolver = builder.build().ok()?;
        Some(Dns { resolver, provider, servers: endpoints.clone() })
    }

    /// The addresses of one family.
    async fn look_up(&self, name: &str, family: Family, host: &Host) -> Result<Vec<IpAddr>, LookUpError> {
        let started = host.now();
        let kind = match family {
            Family::Six => RecordType::AAAA,
            Family::Four => RecordType::A,
        };
        let answer = self.provider.within(self.resolver.lookup(name, kind)).await;
        let found = answer.map_err(|error| self.explain(name, error, started, host.now()))?;
        let addresses: Vec<IpAddr> = found
            .answers()
            .iter()
            .filter_map(|record| match &record.data {
                RData::A(a) => Some(IpAddr::V4(a.0)),
                RData::AAAA(a) => Some(IpAddr::V6(a.0)),
                _ => None,
            })
            .filter(|address| Family::of(*address) == family)
            .collect();
        if addresses.is_empty() {
            return Err(LookUpError::NoAddress { name: name.to_owned(), servers: self.servers.clone() });
        }
        Ok(addresses)
    }

    /// The name that the DNS gives to an address (RFC 1035 §3.5, RFC 3596 §2.5).
    pub(crate) async fn name_of(&self, address: IpAddr) -> Option<String> {
        let answer = self.provider.within(self.resolver.lookup(Name::from(address), RecordType::PTR)).await;
        let answer = answer.ok()?;
        let name = answer.answers().iter().find_map(|record| match &record.data {
            RData::PTR(name) => Some(&name.0),
            _ => None,
        })?;
        Some(Cleaner::line(name.to_ascii().trim_end_matches('.').as_bytes()))
    }

    fn explain(&self, name: &str, error: NetError, started: Instant, now: Instant) -> LookUpError {
        let (name, servers) = (name.to_owned(), self.servers.clone());
        if error.is_nx_domain() {
            return LookUpError::NoSuchName { name, servers };
        }
        let timed_out = match &error {
            NetError::Timeout => true,
            NetError::Io(error) => error.kind() == std::io::ErrorKind::TimedOut,
            _ => false,
        };
        if timed_out {
            return LookUpError::NoAnswer { name, servers, after: now.since(started) };
        }
        match error {
            NetError::Dns(DnsError::NoRecordsFound(_)) => LookUpError::NoAddress { name, servers },
            NetError::Dns(DnsError::ResponseCode(code)) => {
                LookUpError::Failed { name, servers, what: format!("the answer was an error, {code}") }
            }
            other => LookUpError::Failed { name, servers, what: other.to_string() },
        }
    }
}

/// What can be said of a name without asking anyone.
pub(crate) fn known(name: &str, table: &Hosts) -> Result<Option<Vec<IpAddr>>, LookUpError> {
    let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(Some(vec![address]));
    }
    if !may_be_a_name(name) {
        return Err(LookUpError::NotAName { name: name.to_owned() });
    }
    if let Some(addresses) = table.look_up(name) {
        return Ok(Some(addresses.to_vec()));
    }
    // spec: RFC6761 6.3 — localhost is never asked for.
    let folded = hosts::folded(name);
    if folded == "localhost" || folded.ends_with(".localhost") {
        return Ok(Some(vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()]));
    }
    Ok(None)
}

/// Names of hosts are letters, digits, hyphens and dots (RFC 1123 §2.1); underscores occur, and other letters than
/// ASCII's are for the DNS client to translate. All digits and dots would be an address, and a wrong one.
fn may_be_a_name(name: &str) -> bool {
    let labels = name.strip_suffix('.').unwrap_or(name);
    !labels.is_empty()
        && labels.len() <= NAME_BYTES
        && labels.split('.').all(|label| !label.is_empty())
        && labels.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_'))
        && !labels.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// One family's part of a look-up.
pub(crate) async fn look_up_family(
    dns: Option<&Dns>,
    name: &str,
    family: Family,
    host: &Host,
) -> Result<Vec<IpAddr>, LookUpError> {
    match dns {
        Some(dns) => dns.look_up(name, family, host).await,
        None => Err(LookUpError::NoServers { name: name.to_owned() }),
    }
}

/// Both families at once; an error only when neither has an address.
pub(crate) async fn look_up_both(
    dns: Option<&Dns>,
    name: &str,
    host: &Host,
) -> Result<Vec<IpAddr>, LookUpError> {
    let six = look_up_family(dns, name, Family::Six, host);
    let four = look_up_family(dns, name, Family::Four, host);
    match future::zip(six, four).await {
        (Ok(mut six), Ok(four)) => {
            six.extend(four);
            Ok(six)
        }
        (Ok(found), Err(_)) | (Err(_), Ok(found)) => Ok(found),
        (Err(one), Err(other)) => Err(telling(one, other)),
    }
}

/// Of two reasons the one that says more: a name that does not exist has no address of any family, and a silence may
/// hide an address where the other answer says only that one family has none.
pub(crate) fn telling(one: LookUpError, other: LookUpError) -> LookUpError {
    let weight = |error: &LookUpError| match error {
        LookUpError::NoAddress { .. } => 0,
        LookUpError::Failed { .. } => 1,
        LookUpError::NoAnswer { .. } => 2,
        LookUpError::NoSuchName { .. } | LookUpError::NobodyHas { .. } => 3,
        LookUpError::NoServers { .. } | LookUpError::NotAName { .. } => 4,
    };
    if weight(&other) > weight(&one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_no_server() {
        let table = Hosts::parse("10.0.0.7 multics\n");
        let known = |name: &str| known(name, &table).map(|k| k.map(|a| a[0].to_string()));
        assert_eq!(known("10.1.2.3"), Ok(Some("10.1.2.3".into())));
        assert_eq!(known("fd00::1"), Ok(Some("fd00::1".into())));
        assert_eq!(known("[fd00::1]"), Ok(Some("fd00::1".into())));
        assert_eq!(known("MULTICS."), Ok(Some("10.0.0.7".into())));
        assert_eq!(known("a.localhost"), Ok(Some("::1".into())));
        assert_eq!(known("mit.edu"), Ok(None));
        assert_eq!(known("bücher.example"), Ok(None));
        for bad in ["", ".", "a..b", "1.2.3", "10.0.0.256", "a b", "a/b", &"x".repeat(300)] {
            assert!(matches!(known(bad), Err(LookUpError::NotAName { .. })), "{bad:?}");
        }
    }
}
