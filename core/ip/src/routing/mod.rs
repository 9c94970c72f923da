//! Routing: the route table, gateway health, redirects, path MTUs, and the cache of forwarding decisions. [`Routing`]
//! owns this state; each call lends it the links.

pub(crate) mod advertised;
mod decision;
mod gateway;
mod path;
mod path_mtu;
mod redirect;
mod table;

pub(crate) use decision::{DECISION_LIMIT, RouteDecision};
pub(crate) use gateway::GATEWAY_LIMIT;
pub(crate) use path_mtu::{IPV4_FLOOR_BYTES, PATH_MTU_LIMIT, plateau_below};
pub(crate) use redirect::REDIRECT_LIMIT;
pub(crate) use table::{PREFERENCE_ADVERTISED, ROUTE_LIMIT};
pub use table::{PREFERENCE_CONFIGURED, PREFERENCE_LEASED, Route, RouteOrigin};

use crate::interface::Interfaces;
use crate::path::Path;
use crate::table::Keyed;
use alloc::vec::Vec;
use decision::DecisionCache;
use gateway::Gateways;
use inhost_base::{Instant, IpAddr, LinkId};
use path_mtu::PathMtu;
use redirect::Redirects;
use table::RouteTable;

/// A transport's request for a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteRequest {
    /// A gateway to prefer among those of the routes.
    pub gateway: Option<IpAddr>,
    pub destination: IpAddr,
    /// The source address, where the transport has chosen it.
    pub source: Option<IpAddr>,
    /// The only link to use.
    pub bound: Option<LinkId>,
    pub now: Instant,
}

/// The routing state of one host.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Routing {
    table: RouteTable,
    gateways: Gateways,
    redirects: Redirects,
    path_mtu: PathMtu,
    decisions: DecisionCache,
    is_router: bool,
    generation: u32,
}

impl Routing {
    pub fn new(is_router: bool, keyed: Keyed) -> Self {
        Routing {
            table: RouteTable::default(),
            gateways: Gateways::default(),
            redirects: Redirects::default(),
            path_mtu: PathMtu::new(keyed),
            decisions: DecisionCache::new(keyed),
            is_router,
            generation: 0,
        }
    }
    /// Checks thawed routes.
    #[cfg(feature = "freeze")]
    pub fn check(&self) -> Result<(), inhost_base::freeze::Invalid> {
        self.decisions.check()
    }
    /// Chooses a new key.
    #[cfg(feature = "freeze")]
    pub fn rekey(&mut self, keyed: Keyed) {
        self.path_mtu.rekey(keyed);
        self.decisions = DecisionCache::new(keyed);
    }
    /// Whether the host forwards.
    pub fn is_router(&self) -> bool {
        self.is_router
    }
    /// Changes whenever a path given earlier may be wrong.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.generation
    }
    /// A path given earlier may be wrong now.
    pub fn changed(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }
    /// The routes, in the order in which they are tried.
    pub fn routes(&self) -> &[Route] {
        self.table.all()
    }
    /// The gateways that routes of `link` name.
    pub fn gateways_of(&self, link: LinkId) -> impl Iterator<Item = IpAddr> + '_ {
        self.table.all().iter().filter(move |route| route.link == link).filter_map(|route| route.gateway)
    }
    /// Number of accepted redirects.
    pub fn redirects(&self) -> usize {
        self.redirects.len()
    }
    /// Adds or changes a route, and watches its gateway. False when the table is full.
    pub fn add(&mut self, route: Route) -> bool {
        let is_added = self.table.insert(route);
        if let Some(gateway) = route.gateway.filter(|_| is_added) {
            self.gateways.watch(route.link, gateway);
        }
        is_added
    }
    /// Removes a route. False when there is none such.
    pub fn remove(&mut self, route: &Route) -> bool {
        let is_removed = self.table.remove(route);
        if is_removed {
            self.forget_unused_gateways();
        }
        is_removed
    }
    /// Removes the routes for which `is_out` holds. False when there are none.
    pub fn remove_where(&mut self, is_out: impl Fn(&Route) -> bool) -> bool {
        let is_removed = self.table.remove_where(is_out);
        if is_removed {
            self.forget_unused_gateways();
        }
        is_removed
    }
    fn forget_unused_gateways(&mut self) {
        let Routing { table, gateways, .. } = self;
        gateways.retain(|link, address| {
            table.all().iter().any(|route| route.link == link && route.gateway == Some(address))
        });
    }
    /// Accepts a redirect: `destination` is reached by `next_hop` from now on.
    pub fn redirect(&mut self, link: LinkId, destination: IpAddr, next_hop: IpAddr, now: Instant) {
        self.redirects.insert(link, destination, next_hop, now);
    }
    /// A neighbour does not answer. True when that changes paths.
    pub fn next_hop_failed(&mut self, link: LinkId, address: IpAddr, now: Instant) -> bool {
        let was_redirected = self.redirects.forget_through(link, address);
        self.gateways.mark_unreachable(link, address, now) || was_redirected
    }
    /// A neighbour answers. True when it is a gateway that was out of use.
    pub fn gateway_is_reachable(&mut self, link: LinkId, address: IpAddr) -> bool {
        self.gateways.mark_reachable(link, address)
    }
    /// Data sent through a gateway is acknowledged. True when that changes paths.
    #[inline]
    pub fn confirm(&mut self, link: LinkId, gateway: IpAddr, now: Instant) -> bool {
        self.gateways.confirmed(link, gateway, now)
    }
    /// Data sent through the gateway of `path` is not acknowledged. True when that changes paths.
    pub fn suspect(&mut self, path: &Path, now: Instant) -> bool {
        let was_redirected = self.redirects.forget_through(path.link, path.next_hop);
        let is_ipv4 = path.destination.is_ipv4();
        let has_other = self.table.all().iter().any(|route| {
            route.gateway.is_some_and(|other| other != path.next_hop && other.is_ipv4() == is_ipv4)
                && route.destination.contains(path.destination)
        });
        has_other && self.gateways.suspected(path.link, path.next_hop, now) || was_redirected
    }
    /// The MTU towards `destination`, at most `link_mtu_bytes`.
    pub fn mtu_towards(&self, destination: IpAddr, link_mtu_bytes: u16, now: Instant) -> u16 {
        self.path_mtu.towards(destination, link_mtu_bytes, now)
    }
    /// A packet to `destination` was too long for `mtu_bytes`. True when the path's MTU falls.
    pub fn lower_path_mtu(
        &mut self,
        destination: IpAddr,
        mtu_bytes: u16,
        link_mtu_bytes: u16,
        now: Instant,
    ) -> bool {
        let current_bytes = self.mtu_towards(destination, link_mtu_bytes, now);
        self.path_mtu.lower(destination, mtu_bytes, current_bytes, now)
    }
    /// Whether the cache has a valid forwarding decision for `destination`.
    pub fn has_decision(&self, destination: IpAddr) -> bool {
        self.decisions.find(destination, self.generation).is_some()
    }
    /// The forwarding decision for `destination`, cached until any table changes.
    // spec: RFC1812 5.2.4
    pub fn forward(
        &mut self,
        links: &Interfaces,
        destination: IpAddr,
        now: Instant,
    ) -> Option<RouteDecision> {
        if let Some(decision) = self.decisions.find(destination, self.generation) {
            return Some(decision);
        }
        let is_usable =
            |link, gateway: Option<IpAddr>| gateway.is_none_or(|g| self.gateways.is_usable(link, g, now));
        let mut routes = self.table.longest(destination, |_| true).map(|route| (route.link, route.gateway));
        let (link, gateway) = match routes.find(|&(link, gateway)| is_usable(link, gateway)) {
            Some(hop) => hop,
            None => {
                drop(routes);
                let hops = self.first_hops(links, destination, None, None).ok()?;
                *self.in_order(&hops, now).first()?
            }
        };
        // A router ignores redirects (RFC 1812 §5.2.7.2, RFC 4861 §8.2).
        let decision = RouteDecision { link, next_hop: gateway.unwrap_or(destination) };
        self.decisions.insert(destination, self.generation, decision);
        Some(decision)
    }
    /// The next instant at which [`Routing::timeout`] has something to do.
    pub fn deadline(&self) -> Instant {
        self.table
            .deadline()
            .min(self.gateways.deadline())
            .min(self.redirects.deadline())
            .min(self.path_mtu.deadline())
    }
    /// Removes expired state. Returns whether paths may change, and the silent gateways that are to be probed.
    pub fn timeout(&mut self, now: Instant) -> (bool, Vec<(LinkId, IpAddr)>) {
        let routes_ended = self.table.timeout(now);
        if routes_ended {
            self.forget_unused_gateways();
        }
        let redirects_ended = self.redirects.timeout(now);
        let mtus_ended = self.path_mtu.timeout(now);
        let (rests_ended, silent) = self.gateways.timeout(now);
        (routes_ended || redirects_ended || mtus_ended || rests_ended, silent)
    }
}
