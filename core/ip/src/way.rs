//! From a destination to a path: loopback, groups, routes, gateways, source.

use crate::neighbour::cache::Lookup;
use crate::path::{Path, Resolution};
use crate::select::select_source;
use crate::{Interface, Ip, IpEnvironment, RouteError, TransportError, scope};
use inhost_base::{Instant, IpAddr, Ipv4Addr, LinkId};

impl Ip {
    /// The way to `destination`: by the link `bound` if one is given, from `source` if one is given (which then must
    /// be an address of the link, by the strong host model, unless the link takes any address), else from the address
    /// that RFC 6724 chooses. An address of our own, on whatever link, is reached by the loopback.
    // spec: RFC1122 3.3.4.2-2
    pub fn route(
        &mut self,
        destination: IpAddr,
        source: Option<IpAddr>,
        bound: Option<LinkId>,
        now: Instant,
    ) -> Result<Path, RouteError> {
        self.route_through(None, destination, source, bound, now)
    }
    /// As [`Ip::route`], through `gateway` where that is given, is one that a route to `destination` names, and is not
    /// out of use. A redirect may still lead elsewhere.
    pub fn route_through(
        &mut self,
        gateway: Option<IpAddr>,
        destination: IpAddr,
        source: Option<IpAddr>,
        bound: Option<LinkId>,
        now: Instant,
    ) -> Result<Path, RouteError> {
        let source = source.filter(|source| !source.is_unspecified());
        self.check_ends(destination, source, bound)?;
        if self.is_local(destination) {
            return self.loop_back(destination, source, bound);
        }
        if scope::is_loopback(destination) {
            return Err(RouteError::BadDestination);
        }
        if destination.is_multicast() || destination == IpAddr::V4(Ipv4Addr::BROADCAST) {
            return self.route_to_group(destination, source, bound, now);
        }
        if let Some((link, gateway)) = self.only_hop(destination, source, bound, now) {
            let next_hop = self.redirected(link, destination, gateway, now);
            return self.path_by(link, next_hop, destination, source, now);
        }
        let hops = self.first_hops(destination, source, bound)?;
        let mut hops = self.in_order(&hops, now);
        // False sorts first; the others keep their order.
        hops.sort_by_key(|hop| hop.1.is_none() || hop.1 != gateway);
        let mut error = RouteError::NoRoute;
        for (link, gateway) in hops {
            let next_hop = self.redirected(link, destination, gateway, now);
            match self.path_by(link, next_hop, destination, source, now) {
                Ok(path) => return Ok(path),
                Err(why) => error = why,
            }
        }
        Err(error)
    }
    /// The way to everybody on `link` from a host that has no address yet: from 0.0.0.0, which is no source for anything
    /// else (RFC 1122 §3.2.1.3 (a), RFC 2131 §4.1).
    pub fn route_unaddressed(&self, link: LinkId) -> Result<Path, RouteError> {
        let interface = self.interface(link).filter(|interface| !interface.is_loopback());
        let interface = interface.ok_or(RouteError::NoLink)?;
        Ok(Path {
            link,
            next_hop: IpAddr::V4(Ipv4Addr::BROADCAST),
            source: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            destination: IpAddr::V4(Ipv4Addr::BROADCAST),
            mtu_bytes: interface.mtu_bytes(false),
            hop_limit: interface.hop_limit(false),
            option_bytes: 0,
            generation: self.generation,
        })
    }
    /// The gateway from which the frame that was received last, with a packet of `source`, came in on `link`, when it came
    /// from one: the first choice for what answers a call (UCLA §2.3).
    pub fn came_through(&self, link: LinkId, source: IpAddr) -> Option<IpAddr> {
        let (_, card) = self.sender.filter(|sender| sender.0 == link)?;
        let neighbours = &self.interface(link)?.neighbours;
        let of_link = self.routes.all().iter().filter(|route| route.link == link);
        let mut gateways = of_link.filter_map(|route| route.gateway);
        gateways.find(|&gateway| {
            gateway.is_ipv4() == source.is_ipv4() && neighbours.peek(gateway) == Some(Lookup::Known(card))
        })
    }
    fn check_ends(
        &self,
        destination: IpAddr,
        source: Option<IpAddr>,
        bound: Option<LinkId>,
    ) -> Result<(), RouteError> {
        let is_group = destination.is_multicast() || destination == IpAddr::V4(Ipv4Addr::BROADCAST);
        if !is_group && !scope::is_unicast(destination)
            || source.is_some_and(|source| source.is_ipv4() != destination.is_ipv4())
        {
            return Err(RouteError::BadDestination);
        }
        if bound.is_some_and(|link| self.interface(link).is_none()) {
            return Err(RouteError::NoLink);
        }
        let may_be_source =
            |interface: &Interface| source.is_none_or(|source| self.may_send_from(interface, source));
        let found = match bound.and_then(|link| self.interface(link)) {
            Some(interface) if !interface.is_loopback() => may_be_source(interface),
            _ => source.is_none_or(scope::is_loopback) || self.interfaces.iter().any(may_be_source),
        };
        if found { Ok(()) } else { Err(RouteError::NotOurs) }
    }
    /// To ourselves.
    fn loop_back(
        &self,
        destination: IpAddr,
        source: Option<IpAddr>,
        bound: Option<LinkId>,
    ) -> Result<Path, RouteError> {
        let is_bound_elsewhere = bound.is_some_and(|bound| {
            bound != LinkId(0) && !self.interface(bound).is_some_and(|link| link.owns(destination))
        });
        if is_bound_elsewhere {
            return Err(RouteError::NoRoute);
        }
        let own = match destination {
            IpAddr::V4(a) if a.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            other => other,
        };
        let loopback = self.interface(LinkId(0)).ok_or(RouteError::NoLink)?;
        Ok(Path {
            link: LinkId(0),
            next_hop: destination,
            source: source.unwrap_or(own),
            destination,
            mtu_bytes: loopback.mtu_bytes(destination.is_ipv6()),
            hop_limit: loopback.hop_limit(destination.is_ipv6()),
            option_bytes: 0,
            generation: self.generation,
        })
    }
    /// To a group, or to everybody on a link: by the link asked for, that of the source, that of a route, or the only
    /// one there is.
    // spec: RFC1122 3.3.6-3
    fn route_to_group(
        &mut self,
        destination: IpAddr,
        source: Option<IpAddr>,
        bound: Option<LinkId>,
        now: Instant,
    ) -> Result<Path, RouteError> {
        let of_source = source
            .and_then(|source| self.interfaces.iter().find(|interface| interface.owns(source)))
            .map(|interface| interface.link);
        let routed = self.routes.longest(destination, |_| true).next().map(|route| route.link);
        let mut others = self.interfaces.iter().filter(|interface| {
            !interface.is_loopback()
                && interface.addresses.iter().any(|a| a.address().is_ipv4() == destination.is_ipv4())
        });
        let only = match (others.next(), others.next()) {
            (Some(interface), None) => Ok(interface.link),
            (Some(_), Some(_)) => Err(RouteError::Ambiguous),
            _ => Err(RouteError::NoRoute),
        };
        let link = match bound.or(of_source).or(routed) {
            Some(link) => link,
            None => only?,
        };
        self.path_by(link, destination, destination, source, now)
    }
    /// The link and next hop of the longest prefix, where there is but one and it is usable.
    fn only_hop(
        &self,
        destination: IpAddr,
        source: Option<IpAddr>,
        bound: Option<LinkId>,
        now: Instant,
    ) -> Option<(LinkId, Option<IpAddr>)> {
        let mut hops = self.routes.longest(destination, |route| self.allows_link(route.link, source, bound));
        let (Some(hop), None) = (hops.next(), hops.next()) else { return None };
        let is_usable = hop.gateway.is_none_or(|gateway| self.gateways.is_usable(hop.link, gateway, now));
        is_usable.then_some((hop.link, hop.gateway))
    }
    /// Whether what leaves `source` for somewhere may go by `link`.
    fn allows_link(&self, link: LinkId, source: Option<IpAddr>, bound: Option<LinkId>) -> bool {
        bound.is_none_or(|bound| bound == link)
            && self
                .interface(link)
                .is_some_and(|interface| source.is_none_or(|source| self.may_send_from(interface, source)))
    }
    /// The links and next hops of the longest prefix, in order of preference.
    pub(crate) fn first_hops(
        &self,
        destination: IpAddr,
        source: Option<IpAddr>,
        bound: Option<LinkId>,
    ) -> Result<Vec<(LinkId, Option<IpAddr>)>, RouteError> {
        let hops: Vec<_> = self
            .routes
            .longest(destination, |route| self.allows_link(route.link, source, bound))
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
    /// The usable hops first; when all gateways are out, the one whose turn it is.
    // spec: RFC1122 3.3.1.5-1
    pub(crate) fn in_order(
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
        link: LinkId,
        next_hop: IpAddr,
        destination: IpAddr,
        source: Option<IpAddr>,
        now: Instant,
    ) -> Result<Path, RouteError> {
        let interface = self.interface(link).ok_or(RouteError::NoLink)?;
        let is_ipv6 = destination.is_ipv6();
        if is_ipv6 && !interface.config.ipv6 {
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
        Ok(Path {
            link,
            next_hop,
            source,
            destination,
            mtu_bytes: self.path_mtu.towards(destination, interface.mtu_bytes(is_ipv6), now),
            hop_limit: if destination.is_multicast() { 1 } else { interface.hop_limit(is_ipv6) },
            option_bytes: 0,
            generation: self.generation,
        })
    }
    /// The link header for `path`. When the neighbour is not known yet it is asked, and [`Ip::take_resolved`] tells
    /// the end of that; nothing is queued.
    // spec: RFC1122 2.4-3
    pub fn resolve(&mut self, path: &Path, env: &mut IpEnvironment<'_>) -> Resolution {
        let Some(interface) = self.interface_mut(path.link) else { return Resolution::Failed };
        if interface.hardware().is_none() {
            return Resolution::Ready(crate::LinkHeader::NONE);
        }
        let is_ipv6 = path.next_hop.is_ipv6();
        if let Some(hardware) = interface.mapped_hardware(path.next_hop) {
            return Resolution::Ready(interface.header_to(hardware, is_ipv6));
        }
        let found = interface.neighbours.resolve(path.next_hop, env.now);
        let resolution = match found {
            Lookup::Known(hardware) => Resolution::Ready(interface.header_to(hardware, is_ipv6)),
            Lookup::Pending => Resolution::Pending,
            Lookup::Failed => Resolution::Failed,
        };
        if interface.neighbours.has_actions() {
            self.carry_out(path.link, env);
        }
        resolution
    }
    /// Whether packets from `source` may leave by `interface`: a router's addresses are good on each of its links.
    // spec: RFC1122 3.2.1.3-2
    fn may_send_from(&self, interface: &Interface, source: IpAddr) -> bool {
        let takes_any =
            interface.config.any_address && scope::is_unicast(source) && !scope::is_loopback(source);
        interface.owns(source) || takes_any || self.forwarding.is_some() && self.is_reachable_own(source)
    }
    /// Whether `address` is ours on some link, and means the same on every one.
    pub(crate) fn is_reachable_own(&self, address: IpAddr) -> bool {
        !scope::is_loopback(address)
            && !scope::is_link_local(address)
            && self.interfaces.iter().any(|interface| interface.owns(address))
    }
    /// Whether what leaves by `link` needs hardware addresses.
    #[inline]
    pub fn has_neighbours(&self, link: LinkId) -> bool {
        self.interface(link).is_some_and(|interface| interface.hardware().is_some())
    }
    /// The other end of `path` answered: the neighbour is reachable, and a gateway forwards. Cheap enough for every
    /// acknowledgment that moves a window.
    // spec: RFC4861 7.3.1
    pub fn confirm(&mut self, path: &Path, now: Instant) {
        let Some(interface) = self.interface_mut(path.link) else { return };
        if interface.hardware().is_some() && interface.neighbours.confirm(path.next_hop, now) {
            self.deadline_moved();
        }
        if path.next_hop != path.destination && self.gateways.confirmed(path.link, path.next_hop, now) {
            self.paths_changed();
        }
    }
    /// A transport's data on `path` is not being acknowledged: the neighbour is asked whether it is there, and a
    /// gateway that answers but keeps being suspected is given a rest if there is another. Call at each time-out;
    /// then see whether [`Ip::generation`] has moved.
    // spec: RFC1122 3.3.1.4-4
    pub fn suspect(&mut self, path: &Path, env: &mut IpEnvironment<'_>) {
        let now = env.now;
        let Some(interface) = self.interface_mut(path.link) else { return };
        if interface.hardware().is_some() {
            interface.neighbours.suspect(path.next_hop, now);
        }
        self.deadline_moved();
        self.carry_out(path.link, env);
        if path.next_hop == path.destination {
            return;
        }
        if self.redirects.forget_through(path.link, path.next_hop) {
            self.paths_changed();
        }
        let is_ipv4 = path.destination.is_ipv4();
        let has_other = self.routes.all().iter().any(|route| {
            route.gateway.is_some_and(|other| other != path.next_hop && other.is_ipv4() == is_ipv4)
                && route.destination.contains(path.destination)
        });
        if has_other && self.gateways.suspected(path.link, path.next_hop, now) {
            self.paths_changed();
        }
    }
    /// The transport has verified what `error` quotes (a TCP sequence in flight, the ports of a connected UDP socket,
    /// an echo under way): the path's MTU becomes what it says. True when that changed something; the paths to the
    /// destination are to be asked for anew then.
    // spec: RFC1191 3; RFC8201 4; RFC5927 7; RFC4821 4-8
    pub fn path_mtu_confirmed(&mut self, error: &TransportError, now: Instant) -> bool {
        let (Some(mtu_bytes), Some(interface)) = (error.mtu_bytes, self.interface(error.link)) else {
            return false;
        };
        let destination = error.quoted.destination;
        let link_mtu_bytes = interface.mtu_bytes(destination.is_ipv6());
        let current_bytes = self.path_mtu.towards(destination, link_mtu_bytes, now);
        let is_lower = self.path_mtu.lower(destination, mtu_bytes, current_bytes, now);
        if is_lower {
            self.paths_changed();
        }
        is_lower
    }
}
