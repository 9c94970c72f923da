//! Stored lease of a link, as the text of a file (RFC 2131 §3.2: a client that was restarted asks for the address that
//! it had).

use crate::client::Remembered;
use crate::lease::{LEAST_LEASE_S, Lease, LeasedRoute, Settings, Terms};
use crate::limits;
use core::fmt::Write as _;
use core::str::FromStr;
use inhost_base::{Cidr, Duration, Instant, Ipv4Addr};

/// A longer file is none of ours.
pub const LONGEST_BYTES: usize = 16 << 10;

const HEADING: &str = "# The DHCP lease of a link, kept by inhost for its next start.\n";

/// The text that keeps `remembered`, at `now`, when it is `unix_s` seconds after 1970.
pub fn write(remembered: &Remembered, now: Instant, unix_s: u64) -> String {
    let Remembered { lease, wanted, link_local } = remembered;
    let mut text = String::from(HEADING);
    // Writing to a string does not fail.
    let mut line = |key: &str, value: &dyn core::fmt::Display| {
        let _ = writeln!(text, "{key} = {value}");
    };
    if let Some(wanted) = wanted {
        line("wanted", wanted);
    }
    if let Some(link_local) = link_local {
        line("link_local", link_local);
    }
    let Some(lease) = lease else { return text };
    let Lease { address, prefix_bits, server, asked_at, terms, settings } = lease;
    let Terms { renew_s, rebind_s, lease_s } = terms;
    let Settings { routes, name_servers, search, mtu_bytes } = settings;
    line("address", &format_args!("{address}/{prefix_bits}"));
    line("server", server);
    line("asked_unix_s", &unix_s.saturating_sub(now.since(*asked_at).as_secs()));
    line("renew_s", renew_s);
    line("rebind_s", rebind_s);
    line("lease_s", lease_s);
    for LeasedRoute { destination, gateway } in routes {
        match gateway {
            Some(gateway) => line("route", &format_args!("{destination} {gateway}")),
            None => line("route", destination),
        }
    }
    name_servers.iter().for_each(|server| line("name_server", server));
    search.iter().for_each(|domain| line("search", domain));
    mtu_bytes.iter().for_each(|mtu| line("mtu", mtu));
    text
}

/// Reads such a text. What is missing, spoilt or over is left out; a lease with a time of which the clock knows nothing is
/// only asked for.
pub fn read(text: &str, now: Instant, unix_s: u64) -> Remembered {
    let mut kept = Kept::default();
    if text.len() > LONGEST_BYTES {
        return Remembered::default();
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some((key, value)) = line.split_once('=') {
            kept.take(key.trim(), value.trim());
        }
    }
    let wanted = kept.address.map(|(address, _)| address).or(kept.wanted);
    Remembered { wanted, link_local: kept.link_local, lease: kept.lease(now, unix_s) }
}

#[derive(Default)]
struct Kept {
    wanted: Option<Ipv4Addr>,
    link_local: Option<Ipv4Addr>,
    address: Option<(Ipv4Addr, u8)>,
    server: Option<Ipv4Addr>,
    asked_unix_s: Option<u64>,
    renew_s: Option<u32>,
    rebind_s: Option<u32>,
    lease_s: Option<u32>,
    settings: Settings,
}

impl Kept {
    fn take(&mut self, key: &str, value: &str) {
        let settings = &mut self.settings;
        match key {
            "wanted" => self.wanted = parsed(value),
            "link_local" => self.link_local = parsed(value),
            "address" => self.address = parsed(value).and_then(split),
            "server" => self.server = parsed(value),
            "asked_unix_s" => self.asked_unix_s = parsed(value),
            "renew_s" => self.renew_s = parsed(value),
            "rebind_s" => self.rebind_s = parsed(value),
            "lease_s" => self.lease_s = parsed(value),
            "route" if settings.routes.len() < limits::ROUTES => settings.routes.extend(route(value)),
            "name_server" if settings.name_servers.len() < limits::NAME_SERVERS => {
                settings.name_servers.extend(parsed::<Ipv4Addr>(value));
            }
            "search"
                if settings.search.len() < limits::SEARCH_DOMAINS
                    && crate::codec::reply::is_domain(value) =>
            {
                settings.search.push(value.to_owned());
            }
            "mtu" => {
                settings.mtu_bytes = parsed(value).filter(|&mtu| mtu >= crate::codec::reply::LEAST_MTU_BYTES)
            }
            _ => {}
        }
    }
    fn lease(self, now: Instant, unix_s: u64) -> Option<Lease> {
        let (address, prefix_bits) = self.address?;
        let lease_s = self.lease_s.filter(|&s| s >= LEAST_LEASE_S)?;
        // A clock that was set back says nothing of how much is left.
        let age = Duration::from_secs(unix_s.checked_sub(self.asked_unix_s?)?);
        let terms = Terms::new(lease_s, self.renew_s, self.rebind_s);
        let server = self.server?;
        let whole = Lease { address, prefix_bits, server, asked_at: now, terms, settings: self.settings };
        // The host's own clock may be younger than the lease, so its times are made shorter instead.
        let left = |at: Instant| (at.since(now).as_secs().saturating_sub(age.as_secs())) as u32;
        if lease_s == crate::lease::FOR_EVER_S {
            return Some(whole);
        }
        let terms = Terms {
            renew_s: left(whole.renew_at()),
            rebind_s: left(whole.rebind_at()),
            lease_s: left(whole.expires_at()),
        };
        (terms.lease_s > 0).then_some(Lease { terms, ..whole })
    }
}

fn parsed<T: FromStr>(value: &str) -> Option<T> {
    value.parse().ok()
}
fn split(cidr: Cidr) -> Option<(Ipv4Addr, u8)> {
    match cidr.address() {
        std::net::IpAddr::V4(address) => Some((address, cidr.prefix_bits())),
        std::net::IpAddr::V6(_) => None,
    }
}
fn route(value: &str) -> Option<LeasedRoute> {
    let (destination, gateway) = match value.split_once(' ') {
        Some((destination, gateway)) => (destination, Some(parsed(gateway)?)),
        None => (value, None),
    };
    let destination: Cidr = parsed(destination)?;
    split(destination).map(|_| LeasedRoute { destination, gateway })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remembered(now: Instant) -> Remembered {
        let route = |to: &str, by: Option<&str>| LeasedRoute {
            destination: to.parse().unwrap(),
            gateway: by.map(|by| by.parse().unwrap()),
        };
        let settings = Settings {
            routes: vec![route("0.0.0.0/0", Some("10.0.0.1")), route("10.7.0.0/16", None)],
            name_servers: vec![Ipv4Addr::new(10, 0, 0, 1)],
            search: vec!["mit.example".into()],
            mtu_bytes: Some(1400),
        };
        let lease = Lease {
            address: Ipv4Addr::new(10, 0, 0, 9),
            prefix_bits: 24,
            server: Ipv4Addr::new(10, 0, 0, 1),
            asked_at: now,
            terms: Terms { renew_s: 50, rebind_s: 80, lease_s: 100 },
            settings,
        };
        let link_local = Some(Ipv4Addr::new(169, 254, 7, 7));
        Remembered { wanted: Some(lease.address), lease: Some(lease), link_local }
    }

    #[test]
    fn what_is_kept_comes_back_with_the_time_that_is_left() {
        let before = Instant::from_millis(5_000_000);
        let kept = remembered(before);
        let text = write(&kept, before + Duration::from_secs(10), 1_000_010);
        // Another start: its clock begins anew, and the wall's has gone on.
        let now = Instant::from_millis(1);
        let read = read(&text, now, 1_000_060);
        let lease = read.lease.unwrap();
        assert_eq!(lease.terms, Terms { renew_s: 0, rebind_s: 20, lease_s: 40 });
        assert_eq!((lease.asked_at, &lease.settings), (now, &kept.lease.as_ref().unwrap().settings));
        assert_eq!((read.wanted, read.link_local), (kept.wanted, kept.link_local));
    }

    #[test]
    fn what_has_ended_or_makes_no_sense_is_only_asked_for() {
        let now = Instant::from_millis(1);
        let kept = remembered(now);
        let text = write(&kept, now, 1000);
        for (unix_s, text) in [
            (1100, text.clone()),
            (999, text.clone()),
            (1000, text.replace("server", "sever")),
            (1000, text.replace("lease_s = 100", "lease_s = 1")),
        ] {
            let read = read(&text, now, unix_s);
            assert_eq!((read.lease, read.wanted), (None, kept.wanted), "{unix_s} {text}");
        }
        assert_eq!(read(&text.replace('\n', " "), now, 1000), Remembered::default());
        assert_eq!(read(&text.repeat(1000), now, 1000), Remembered::default());
        let many: String = (0..99)
            .map(|i| format!("{text}route = 10.{i}.0.0/16\nname_server = 10.0.0.{i}\nsearch = a b\n"))
            .collect();
        let read = read(&many, now, 1000);
        let settings = read.lease.map(|lease| lease.settings).unwrap_or_default();
        assert!(
            settings.routes.len() <= limits::ROUTES && settings.name_servers.len() <= limits::NAME_SERVERS
        );
        assert!(settings.search.iter().all(|domain| domain == "mit.example"));
    }
}
