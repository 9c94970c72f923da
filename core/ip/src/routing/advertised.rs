//! Routes from router advertisements (RFC 4861 §6.3.4): default routers and on-link prefixes.

use super::{PREFERENCE_ADVERTISED, Route, RouteOrigin, Routing};
use inhost_base::{Cidr, Duration, Instant, IpAddr, Ipv6Addr, LinkId};
use inhost_wire::ndp::PrefixInformation;

/// Most routers accepted on one link.
pub(crate) const ROUTER_LIMIT: usize = 8;
/// Most on-link prefixes that routers of one link advertise.
const PREFIX_LIMIT: usize = 16;

impl Routing {
    /// Removes a router that no longer advertises itself. False when it was none.
    pub fn forget_router(&mut self, link: LinkId, address: IpAddr) -> bool {
        self.remove_where(|route| {
            route.link == link && route.gateway == Some(address) && route.is_advertised()
        })
    }
    /// Adds, renews or removes a default router.
    // spec: RFC4861 6.3.4
    pub fn learn_router(&mut self, link: LinkId, router: IpAddr, lifetime_s: u16, now: Instant) {
        if lifetime_s == 0 {
            if self.forget_router(link, router) {
                self.changed();
            }
            return;
        }
        let advertised =
            |route: &&Route| route.link == link && route.gateway.is_some() && route.is_advertised();
        let known = self.routes().iter().filter(advertised);
        let is_known = known.clone().any(|route| route.gateway == Some(router));
        if !is_known && known.count() >= ROUTER_LIMIT {
            return;
        }
        let configured = |route: &Route| {
            route.gateway == Some(router) && route.link == link && route.origin == RouteOrigin::Configured
        };
        if self.routes().iter().any(configured) {
            return;
        }
        let Ok(destination) = Cidr::new(Ipv6Addr::UNSPECIFIED, 0) else { return };
        let until = now + Duration::from_secs(u64::from(lifetime_s));
        let route = Route {
            destination,
            link,
            gateway: Some(router),
            preference: PREFERENCE_ADVERTISED,
            origin: RouteOrigin::Advertised(until),
        };
        self.add(route);
        if !is_known {
            self.changed();
        }
    }
    /// Adds, renews or removes an on-link prefix.
    // spec: RFC4861 6.3.4
    pub fn learn_prefix(&mut self, link: LinkId, prefix: &PrefixInformation, now: Instant) {
        let Ok(cidr) = Cidr::new(prefix.prefix, prefix.prefix_bits) else { return };
        let Ok(destination) = Cidr::new(cidr.network(), prefix.prefix_bits) else { return };
        let on_link = |route: &&Route| route.link == link && route.gateway.is_none();
        let on_link = self.routes().iter().filter(on_link);
        let held = on_link.clone().find(|route| route.destination == destination).copied();
        let is_refused = match held {
            Some(held) => !held.is_advertised(),
            None => on_link.filter(|route| route.is_advertised()).count() >= PREFIX_LIMIT,
        };
        if is_refused {
            return;
        }
        let until = end_of(prefix.valid_lifetime_s, now);
        let route = Route {
            destination,
            link,
            gateway: None,
            preference: PREFERENCE_ADVERTISED,
            origin: RouteOrigin::Advertised(until),
        };
        let is_change = if until <= now { self.remove(&route) } else { self.add(route) && held.is_none() };
        if is_change {
            self.changed();
        }
    }
}

/// When a lifetime of so many seconds ends.
pub(crate) fn end_of(lifetime_s: u32, now: Instant) -> Instant {
    if lifetime_s == u32::MAX {
        Instant::FAR_FUTURE
    } else {
        now + Duration::from_secs(u64::from(lifetime_s))
    }
}
