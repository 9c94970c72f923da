//! Path selection: loopback, multicast, routes, gateways and source address.

use super::{RouteRequest, Routing};
use crate::interface::{Interface, Interfaces};
use crate::path::Path;
use crate::select::select_source;
use crate::{RouteError, scope};
use alloc::vec::Vec;
use inhost_base::{Instant, IpAddr, Ipv4Addr, LinkId};

impl Routing {
    /// The path that a transport asks for; see [`crate::Paths::route_through`].
    pub fn path(&mut self, links: &Interfaces, request: &RouteRequest) -> Result<Path, RouteError> {
        let source = request.source.filter(|source| !source.is_unspecified());
        let request = RouteRequest { source, ..*request };
        let RouteRequest { gateway, destination, bound, now, .. } = request;
        self.check_ends(links, &request)?;
        if links.is_local(destination) {
            return self.loop_back(links, &request);
        }
        if scope::is_loopback(destination) {
            return Err(RouteError::BadDestination);
        }
        if destination.is_multicast() || destination == IpAddr::V4(Ipv4Addr::BROADCAST) {
            return self.route_to_group(links, &request);
        }
        if let Some((link, gateway)) = self.only_hop(links, &request) {
            let next_hop = self.redirected(link, destination, gateway, now);
            return self.path_by(links, link, next_hop, destination, source, now);
        }
        let hops = self.first_hops(links, destination, source, bound)?;
        let mut hops = self.in_order(&hops, now);
        // False sorts first; the others keep their order.
        hops.sort_by_key(|hop| hop.1.is_none() || hop.1 != gateway);
        let mut error = RouteError::NoRoute;
        for (link, gateway) in hops {
            let next_hop = self.redirected(link, destination, gateway, now);
            match self.path_by(links, link, next_hop, destination, source, now) {
                Ok(path) => return Ok(path),
                Err(why) => error = why,
            }
        }
        Err(error)
    }
    /// The broadcast path on `link`, from 0.0.0.0.
    pub fn path_unaddressed(&self, links: &Interfaces, link: LinkId) -> Result<Path, RouteError> {
        let interface = links.get(link).filter(|interface| !interface.is_loopback());
        let interface = interface.ok_or(RouteError::NoLink)?;
        let (own, all) = (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::BROADCAST.into());
        Ok(self.path_over(interface, all, own, all))
    }
    /// The path over `interface` of a destination of which nothing else is known.
    fn path_over(
        &self,
        interface: &Interface,
        next_hop: IpAddr,
        source: IpAddr,
        destination: IpAddr,
    ) -> Path {
        let is_ipv6 = destination.is_ipv6();
        Path {
            link: interface.link(),
            next_hop,
            source,
            destination,
            mtu_bytes: interface.mtu_bytes(is_ipv6),
            hop_limit: interface.hop_limit(is_ipv6),
            option_bytes: 0,
            generation: self.generation,
        }
    }
    fn check_ends(&self, links: &Interfaces, request: &RouteRequest) -> Result<(), RouteError> {
        let RouteRequest { destination, source, bound, .. } = *request;
        let is_group = destination.is_multicast() || destination == IpAddr::V4(Ipv4Addr::BROADCAST);
        if !is_group && !scope::is_unicast(destination)
            || source.is_some_and(|source| source.is_ipv4() != destination.is_ipv4())
        {
            return Err(RouteError::BadDestination);
        }
        if bound.is_some_and(|link| links.get(link).is_none()) {
            return Err(RouteError::NoLink);
        }
        let may_be_source =
            |interface: &Interface| source.is_none_or(|source| self.may_send_from(links, interface, source));
        let found = match bound.and_then(|link| links.get(link)) {
            Some(interface) if !interface.is_loopback() => may_be_source(interface),
            _ => source.is_none_or(scope::is_loopback) || links.iter().any(may_be_source),
        };
        if found { Ok(()) } else { Err(RouteError::NotOurs) }
    }
    /// The loopback path to an address of our own.
    fn loop_back(&self, links: &Interfaces, request: &RouteRequest) -> Result<Path, RouteError> {
        let RouteRequest { destination, source, bound, .. } = *request;
        let is_bound_elsewhere = bound.is_some_and(|bound| {
            bound != LinkId(0) && !links.get(bound).is_some_and(|link| link.owns(destination))
        });
        if is_bound_elsewhere {
            return Err(RouteError::NoRoute);
        }
        let own = match destination {
            IpAddr::V4(a) if a.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            other => other,
        };
        let loopback = links.get(LinkId(0)).ok_or(RouteError::NoLink)?;
        Ok(self.path_over(loopback, destination, source.unwrap_or(own), destination))
    }
    /// The path to a multicast or broadcast address: by the requested link, that of the source, that of a route, or the
    /// only link.
    // spec: RFC1122 3.3.6-3
    fn route_to_group(&self, links: &Interfaces, request: &RouteRequest) -> Result<Path, RouteError> {
        let RouteRequest { destination, source, bound, now, .. } = *request;
        let of_source = source
            .and_then(|source| links.iter().find(|interface| interface.owns(source)))
            .map(Interface::link);
        let routed = self.table.longest(destination, |_| true).next().map(|route| route.link);
        let mut others = links.iter().filter(|interface| {
            !interface.is_loopback()
                && interface.addresses().iter().any(|a| a.address().is_ipv4() == destination.is_ipv4())
        });
        let only = match (others.next(), others.next()) {
            (Some(interface), None) => Ok(interface.link()),
            (Some(_), Some(_)) => Err(RouteError::Ambiguous),
            _ => Err(RouteError::NoRoute),
        };
        let link = match bound.or(of_source).or(routed) {
            Some(link) => link,
            None => only?,
        };
        self.path_by(links, link, destination, destination, source, now)
    }
    /// The link and next hop of the longest prefix, when there is only one route and it is usable.
    fn only_hop(&self, links: &Interfaces, request: &RouteRequest) -> Option<(LinkId, Option<IpAddr>)> {
        let RouteRequest { destination, source, bound, now, .. } = *request;
        let mut hops =
            self.table.longest(destination, |route| self.allows_link(links, route.link, source, bound));
        let (Some(hop), None) = (hops.next(), hops.next()) else { return None };
        let is_usable = hop.gateway.is_none_or(|gateway| self.gateways.is_usable(hop.link, gateway, now));
        is_usable.then_some((hop.link, hop.gateway))
    }
    /// Whether packets from `source` may leave by `link`.
    fn allows_link(
        &self,
        links: &Interfaces,
        link: LinkId,
        source: Option<IpAddr>,
        bound: Option<LinkId>,
    ) -> bool {
        bound.is_none_or(|bound| bound == link)
            && links.get(link).is_some_and(|interface| {
                source.is_none_or(|source| self.may_send_from(links, interface, source))
            })
    }
    /// The links and next hops of the longest prefix, in order of preference.
    pub(super) fn first_hops(
        &self,
        links: &Interfaces,
        destination: IpAddr,
        source: Option<IpAddr>,
        bound: Option<LinkId>,
    ) -> Result<Vec<(LinkId, Option<IpAddr>)>, RouteError> {
        let hops: Vec<_> = self
            .table
            .longest(destination, |route| self.allows_link(links, route.link, source, bound))
            .map(|route| (route.link, route.gateway))
            .collect();
        let first = hops.first().map(|hop| hop.0);
        let is_local_to_several = destination.is_ipv6()
            && scope::is_link_local(destination)
            && hops.iter().any(|hop| Some(hop.0) != first);
        match (hops.is_empty(), is_local_to_several) {
            (true, _) => Err(RouteError::NoRoute),
            (_, true) => Err(RouteError::Ambiguous),
            _ => Ok(hops),
        }
    }
    /// The usable hops; when all gateways are unusable, the one whose turn it is.
    // spec: RFC1122 3.3.1.5-1
    pub(super) fn in_order(
        &mut self,
        hops: &[(LinkId, Option<IpAddr>)],
        now: Instant,
    ) -> Vec<(LinkId, Option<IpAddr>)> {
        let is_usable = |&(link, gateway): &(LinkId, Option<IpAddr>)| {
            gateway.is_none_or(|gateway| self.gateways.is_usable(link, gateway, now))
        };
        let usable: Vec<_> = hops.iter().copied().filter(is_usable).collect();
        if !usable.is_empty() {
            return usable;
        }
        let candidates: Vec<_> =
            hops.iter().filter_map(|&(link, gateway)| gateway.map(|gateway| (link, gateway))).collect();
        self.gateways.in_turn(&candidates).map(|(link, gateway)| (link, Some(gateway))).into_iter().collect()
    }
    /// The next hop, as a redirect may have changed it.
    fn redirected(&self, link: LinkId, destination: IpAddr, gateway: Option<IpAddr>, now: Instant) -> IpAddr {
        match gateway {
            Some(gateway) => self.redirects.next_hop(link, destination, now).unwrap_or(gateway),
            None => destination,
        }
    }
    fn path_by(
        &self,
        links: &Interfaces,
        link: LinkId,
        next_hop: IpAddr,
        destination: IpAddr,
        source: Option<IpAddr>,
        now: Instant,
    ) -> Result<Path, RouteError> {
        let interface = links.get(link).ok_or(RouteError::NoLink)?;
        let is_ipv6 = destination.is_ipv6();
        if is_ipv6 && !interface.config().ipv6 {
            return Err(RouteError::NoRoute);
        }
        let source = match source {
            Some(source) => source,
            None => match select_source(interface, destination, Some(next_hop)) {
                Some(assigned) => assigned.address(),
                None if interface.has_tentative(is_ipv6) => return Err(RouteError::Tentative),
                None => return Err(RouteError::NoSource),
            },
        };
        let path = self.path_over(interface, next_hop, source, destination);
        Ok(Path {
            mtu_bytes: self.path_mtu.towards(destination, path.mtu_bytes, now),
            hop_limit: if destination.is_multicast() { 1 } else { path.hop_limit },
            ..path
        })
    }
    /// Whether packets from `source` may leave by `interface`: a router's addresses are good on each of its links.
    // spec: RFC1122 3.2.1.3-2
    fn may_send_from(&self, links: &Interfaces, interface: &Interface, source: IpAddr) -> bool {
        interface.owns(source)
            || interface.takes_any(source)
            || self.is_router && links.is_reachable_own(source)
    }
}
