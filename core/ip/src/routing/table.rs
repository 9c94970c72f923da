//! The route table: longest prefix first, then preference, then age.

use alloc::vec::Vec;
use inhost_base::{Cidr, Instant, IpAddr, LinkId};

/// Most routes of a host.
pub(crate) const ROUTE_LIMIT: usize = 256;

/// Preference of configured routes. Lower is better; gateways of a list count up from here.
pub const PREFERENCE_CONFIGURED: u32 = 100;
/// Preference of routes from a lease (RFC 2132 §3.5); the routers of a lease count up from here.
pub const PREFERENCE_LEASED: u32 = 500;
/// Preference of an advertised router of medium preference (RFC 4191). High is one less, low one more.
pub(crate) const PREFERENCE_ADVERTISED: u32 = 1001;

/// The origin of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum RouteOrigin {
    /// An address of ours has this prefix.
    Connected,
    /// The configuration.
    Configured,
    /// A DHCP lease (RFC 2132, RFC 3442).
    Leased,
    /// A router advertisement, valid until this instant (RFC 4861 §6.3.4).
    Advertised(Instant),
}

/// One route.
///
/// ```
/// use inhost_base::LinkId;
/// use inhost_ip::{PREFERENCE_CONFIGURED, Route, RouteOrigin};
/// let route = Route {
///     destination: "192.0.2.0/24".parse()?,
///     link: LinkId(1),
///     gateway: Some("10.9.0.1".parse()?),
///     preference: PREFERENCE_CONFIGURED,
///     origin: RouteOrigin::Configured,
/// };
/// assert!(route.destination.contains("192.0.2.7".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Route {
    /// The destination network. `0.0.0.0/0` and `::/0` are the default routes.
    pub destination: Cidr,
    /// The outgoing link.
    pub link: LinkId,
    /// The next hop; `None` when the destinations are on the link.
    pub gateway: Option<IpAddr>,
    /// Lower is tried first among routes with one prefix.
    pub preference: u32,
    /// The origin of the route.
    pub origin: RouteOrigin,
}

impl Route {
    /// Whether a router advertised it.
    pub(crate) fn is_advertised(&self) -> bool {
        matches!(self.origin, RouteOrigin::Advertised(_))
    }
}

/// The routes, sorted by prefix length, preference and age.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct RouteTable {
    routes: Vec<Route>,
}

impl RouteTable {
    pub fn all(&self) -> &[Route] {
        &self.routes
    }
    /// Adds a route, or renews the one with the same destination, link and gateway, which keeps its place unless its
    /// preference changes. False when the table is full.
    pub fn insert(&mut self, route: Route) -> bool {
        let is_same = |other: &&mut Route| {
            other.destination == route.destination
                && other.link == route.link
                && other.gateway == route.gateway
                && other.preference == route.preference
        };
        if let Some(held) = self.routes.iter_mut().find(is_same) {
            *held = route;
            return true;
        }
        self.remove(&route);
        if self.routes.len() >= ROUTE_LIMIT {
            return false;
        }
        let order = |route: &Route| (u8::MAX - route.destination.prefix_bits(), route.preference);
        let at = self.routes.partition_point(|other| order(other) <= order(&route));
        self.routes.insert(at, route);
        true
    }
    /// Removes the route with the same destination, link and gateway.
    pub fn remove(&mut self, route: &Route) -> bool {
        self.remove_where(|other| {
            other.destination.network() == route.destination.network()
                && other.destination.prefix_bits() == route.destination.prefix_bits()
                && other.link == route.link
                && other.gateway == route.gateway
        })
    }
    /// Removes the routes for which `is_out` holds. True when there was any.
    pub fn remove_where(&mut self, mut is_out: impl FnMut(&Route) -> bool) -> bool {
        let before = self.routes.len();
        self.routes.retain(|route| !is_out(route));
        self.routes.len() != before
    }
    /// The routes of the longest prefix that covers `destination`, in order of preference, among those of `links`
    /// that the caller allows.
    // spec: RFC1122 3.3.1.1-1, 3.3.1.2-3, 3.2.1.3-1, 3.3.1.1-2
    pub fn longest(
        &self,
        destination: IpAddr,
        mut allows: impl FnMut(&Route) -> bool,
    ) -> impl Iterator<Item = &Route> {
        let mut bits = None;
        self.routes.iter().filter(move |route| {
            let fits = bits.is_none_or(|bits| bits == route.destination.prefix_bits())
                && route.destination.contains(destination)
                && allows(route);
            if fits {
                bits = Some(route.destination.prefix_bits());
            }
            fits
        })
    }
    /// When the first advertised route expires.
    pub fn deadline(&self) -> Instant {
        let ends = |route: &Route| match route.origin {
            RouteOrigin::Advertised(until) => until,
            RouteOrigin::Connected | RouteOrigin::Configured | RouteOrigin::Leased => Instant::FAR_FUTURE,
        };
        self.routes.iter().map(ends).min().unwrap_or(Instant::FAR_FUTURE)
    }
    /// Removes expired routes. True when there was any.
    pub fn timeout(&mut self, now: Instant) -> bool {
        self.remove_where(|route| matches!(route.origin, RouteOrigin::Advertised(until) if until <= now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(destination: &str, gateway: Option<&str>, preference: u32) -> Route {
        Route {
            destination: destination.parse().unwrap(),
            link: LinkId(1),
            gateway: gateway.map(|g| g.parse().unwrap()),
            preference,
            origin: RouteOrigin::Configured,
        }
    }

    // spec: RFC1122 3.3.1.1-1, 3.3.1.2-3
    #[test]
    fn the_longest_prefix_wins_and_then_preference() {
        let mut table = RouteTable::default();
        table.insert(route("0.0.0.0/0", Some("10.0.0.2"), 2));
        table.insert(route("0.0.0.0/0", Some("10.0.0.1"), 1));
        table.insert(route("10.0.0.0/8", None, 9));
        table.insert(route("10.1.0.0/16", Some("10.0.0.3"), 9));
        let gateways = |to: &str| -> Vec<Option<IpAddr>> {
            table.longest(to.parse().unwrap(), |_| true).map(|route| route.gateway).collect()
        };
        assert_eq!(gateways("10.1.2.3"), [Some("10.0.0.3".parse().unwrap())]);
        assert_eq!(gateways("10.2.2.3"), [None]);
        assert_eq!(
            gateways("192.0.2.1"),
            [Some("10.0.0.1".parse().unwrap()), Some("10.0.0.2".parse().unwrap())]
        );
        assert!(gateways("2001:db8::1").is_empty());
    }

    #[test]
    fn a_route_is_renewed_not_doubled_and_the_table_is_bounded() {
        let mut table = RouteTable::default();
        for i in 0..1000u32 {
            let octets = i.to_be_bytes();
            let inserted = table.insert(route(&format!("10.{}.{}.0/24", octets[2], octets[3]), None, 1));
            assert_eq!(inserted, (i as usize) < ROUTE_LIMIT);
        }
        assert!(table.insert(route("10.0.0.0/24", None, 7)));
        let before: Vec<_> = table.all().to_vec();
        assert!(table.insert(before[3]));
        assert_eq!(table.all(), before, "a renewed route keeps its place");
        assert_eq!(table.all().len(), ROUTE_LIMIT);
    }
}
