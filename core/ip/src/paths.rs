//! Paths: the links of a host and the routes over them, as transports ask for them.

mod order;
mod timeout;

use crate::counters::InterfaceCounters;
use crate::interface::{Interface, Interfaces};
use crate::link::{Link, StableKey};
use crate::neighbour::cache::Claim;
use crate::path::{LinkHeader, Path, Resolution};
use crate::received::{Redirect, TransportError};
use crate::routing::{Route, RouteDecision, RouteRequest, Routing};
use crate::{IpEnvironment, RouteError, scope};
use alloc::collections::VecDeque;
use core::cell::Cell;
use inhost_base::{HardwareAddress, Instant, IpAddr, LinkId};
use inhost_event::{Drop, Event, FrameDropped, Mask};
use inhost_wire::ipv4::SourceRoute;

/// Pending notices of resolved neighbours. Further ones are dropped, so a waiting transport needs a timer, too.
pub(crate) const RESOLVED_LIMIT: usize = 1024;

/// The links of a host with their neighbours, and the routes over them: all that a [`Path`] follows from.
///
/// A transport asks [`Paths::route`] for a path, keeps it while [`Paths::generation`] stays the same, asks
/// [`Paths::resolve`] for the header of the link, and reports what it learns about the path by [`Paths::confirm`],
/// [`Paths::suspect`], [`Paths::path_mtu_confirmed`] and [`Paths::redirect_confirmed`]. [`crate::Ip::paths`] and
/// [`crate::Ip::paths_mut`] lend the paths of a host.
///
/// ```
/// use inhost_base::{Instant, Random};
/// use inhost_ip::{Ip, IpConfig};
///
/// let mut ip = Ip::new(IpConfig::default(), &mut Random::from_number(1));
/// let path = ip.paths_mut().route("127.0.0.1".parse()?, None, None, Instant::ZERO)?;
/// assert_eq!(path.source, path.destination);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Paths {
    interfaces: Interfaces,
    routing: Routing,
    /// Neighbours whose resolution has ended, for transports that wait for them.
    resolved: VecDeque<(LinkId, IpAddr)>,
    stable_key: StableKey,
    /// The next deadline of IP, while it is known.
    deadline: Cell<Option<Instant>>,
}

impl Paths {
    pub(crate) fn new(interfaces: Interfaces, routing: Routing, stable_key: StableKey) -> Paths {
        Paths { interfaces, routing, resolved: VecDeque::new(), stable_key, deadline: Cell::new(None) }
    }

    /// Chooses a new key for addresses, where there is no secret of the owner's.
    #[cfg(feature = "freeze")]
    pub(crate) fn reseed(&mut self, random: &mut inhost_base::Random) {
        self.stable_key.rekey(random.private_key());
    }
    /// Changes whenever a [`Path`] asked for earlier may be no longer right.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.routing.generation()
    }
    /// The routes, in the order in which they are tried.
    pub fn routes(&self) -> &[Route] {
        self.routing.routes()
    }
    /// Redirects in force.
    pub fn redirects(&self) -> usize {
        self.routing.redirects()
    }
    /// Whether `address` is one of ours, on any link, the loopback included.
    pub fn is_local(&self, address: IpAddr) -> bool {
        self.interfaces.is_local(address)
    }
    /// Whether `address` is one of ours, or becomes one when duplicate address detection has passed. A socket may be
    /// bound to it before.
    pub fn is_local_or_tentative(&self, address: IpAddr) -> bool {
        self.is_local(address) || self.interfaces.is_tentative(address)
    }
    /// Whether `address` is a broadcast address on `link`: the limited one, or that of a network of the link.
    pub fn is_broadcast(&self, link: LinkId, address: IpAddr) -> bool {
        self.interface(link).is_some_and(|interface| interface.is_broadcast(address))
    }
    /// Whether packets that leave by `link` need hardware addresses.
    #[inline]
    pub fn has_neighbours(&self, link: LinkId) -> bool {
        self.interface(link).is_some_and(|interface| interface.hardware().is_some())
    }

    /// The path to `destination`: on the link `bound` if one is given, from `source` if one is given (which then must
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
    /// The same as [`Paths::route`], through `gateway` where that is given, is one that a route to `destination` names,
    /// and is not out of use. A redirect may still lead elsewhere.
    pub fn route_through(
        &mut self,
        gateway: Option<IpAddr>,
        destination: IpAddr,
        source: Option<IpAddr>,
        bound: Option<LinkId>,
        now: Instant,
    ) -> Result<Path, RouteError> {
        let request = RouteRequest { gateway, destination, source, bound, now };
        self.routing.path(&self.interfaces, &request)
    }
    /// The path to `destination` through the hops of a source route: [`Paths::route`] to its first hop. Every header
    /// on the path must be written with the same route, see [`crate::Ip::header_options`]. The first hop of a strict
    /// route must be a neighbour, and no redirect changes it (UCLA §2.3).
    pub fn route_by(
        &mut self,
        route: &SourceRoute,
        destination: IpAddr,
        source: Option<IpAddr>,
        bound: Option<LinkId>,
        now: Instant,
    ) -> Result<Path, RouteError> {
        let first = IpAddr::V4(route.first());
        let is_wrong = !destination.is_ipv4() || !scope::is_unicast(destination) || self.is_local(first);
        if is_wrong || route.hops().any(|hop| !scope::is_unicast(hop.into())) {
            return Err(RouteError::BadDestination);
        }
        let path = self.route(first, source, bound, now)?;
        if route.is_strict() && path.next_hop != first {
            return Err(RouteError::NoRoute);
        }
        // A router that finds a packet too big knows only where it goes next.
        let ends = route.hops().map(IpAddr::V4).chain([destination]);
        let mtu_bytes = ends.fold(path.mtu_bytes, |least, end| self.routing.mtu_towards(end, least, now));
        Ok(Path { destination, mtu_bytes, option_bytes: route.length() as u8, ..path })
    }
    /// The broadcast path on `link` of a host without an address: from 0.0.0.0, which is allowed for nothing else (RFC
    /// 1122 §3.2.1.3 (a), RFC 2131 §4.1).
    pub fn route_unaddressed(&self, link: LinkId) -> Result<Path, RouteError> {
        self.routing.path_unaddressed(&self.interfaces, link)
    }
    /// The link header for `path`. An unknown neighbour is asked, and [`Paths::take_resolved`] returns it when that
    /// ends; nothing is queued.
    // spec: RFC1122 2.4-3
    #[inline]
    pub fn resolve(&mut self, path: &Path, env: &mut IpEnvironment<'_>) -> Resolution {
        let Some(interface) = self.interfaces.get_mut(path.link) else { return Resolution::Failed };
        if interface.hardware().is_none() {
            return Resolution::Ready(LinkHeader::NONE);
        }
        let resolution = interface.resolve(path.next_hop, env.now());
        if interface.has_actions() {
            self.run_actions(path.link, env);
        }
        resolution
    }
    /// Whether [`Paths::take_resolved`] returns a notice.
    #[inline]
    pub fn has_resolved(&self) -> bool {
        !self.resolved.is_empty()
    }
    /// Takes a notice that a neighbour became reachable or failed. Call until `None`.
    pub fn take_resolved(&mut self) -> Option<(LinkId, IpAddr)> {
        self.resolved.pop_front()
    }

    /// Records that the other end of `path` answered: the neighbour is reachable, and a gateway forwards. Cheap enough
    /// for every acknowledgment that moves a window.
    // spec: RFC4861 7.3.1
    pub fn confirm(&mut self, path: &Path, now: Instant) {
        let Some(interface) = self.interfaces.get_mut(path.link) else { return };
        if interface.confirm(path.next_hop, now) {
            self.deadline_moved();
        }
        if path.next_hop != path.destination && self.routing.confirm(path.link, path.next_hop, now) {
            self.changed();
        }
    }
    /// Records that a transport's data on `path` is not being acknowledged: the neighbour is probed, and a gateway that
    /// answers but keeps being suspected is not used for a while if there is another. Call at each time-out; then see
    /// whether [`Paths::generation`] has moved.
    // spec: RFC1122 3.3.1.4-4
    pub fn suspect(&mut self, path: &Path, env: &mut IpEnvironment<'_>) {
        let now = env.now();
        let Some(interface) = self.interfaces.get_mut(path.link) else { return };
        interface.suspect(path.next_hop, now);
        self.deadline_moved();
        self.run_actions(path.link, env);
        if path.next_hop == path.destination {
            return;
        }
        if self.routing.suspect(path, now) {
            self.changed();
        }
    }
    /// Applies the MTU of `error` after the transport has verified the quoted packet (a TCP sequence in flight, the
    /// ports of a connected UDP socket, an echo in progress). True when it changed; the paths to the destination must
    /// then be asked for anew.
    // spec: RFC1191 3; RFC8201 4; RFC5927 7; RFC4821 4-8
    pub fn path_mtu_confirmed(&mut self, error: &TransportError, now: Instant) -> bool {
        let (Some(mtu_bytes), Some(interface)) = (error.mtu_bytes, self.interface(error.link)) else {
            return false;
        };
        let destination = error.quoted.destination;
        let link_mtu_bytes = interface.mtu_bytes(destination.is_ipv6());
        let is_lower = self.routing.lower_path_mtu(destination, mtu_bytes, link_mtu_bytes, now);
        if is_lower {
            self.changed();
        }
        is_lower
    }
    /// Accepts a redirect after the transport has verified that this host sent the quoted packet. The sender must be
    /// the current first hop, and the new one must be on the link.
    // spec: RFC1122 3.2.2.2-3, 3.2.2.2-4, 3.3.1.2-2; RFC4861 8.1, 8.3
    pub fn redirect_confirmed(&mut self, redirect: &Redirect, now: Instant) -> Result<(), Drop> {
        let Redirect { link, from, ref quoted, next_hop, hardware } = *redirect;
        let destination = quoted.destination;
        let interface = self.interface(link).ok_or(Drop::NotForUs)?;
        let is_possible = interface.config().accept_redirects
            && interface.hardware().is_some()
            && scope::is_unicast(next_hop)
            && !scope::is_loopback(next_hop)
            && next_hop.is_ipv4() == destination.is_ipv4()
            && (interface.is_on_link(next_hop) || next_hop == destination && destination.is_ipv6())
            && !interface.is_broadcast(next_hop)
            && !self.is_local(next_hop)
            && scope::is_unicast(destination)
            && !self.is_local(destination);
        let in_use = self.route(destination, None, Some(link), now).map(|path| path.next_hop);
        if !is_possible || in_use != Ok(from) || next_hop == from {
            return Err(Drop::NotCredible);
        }
        self.routing.redirect(link, destination, next_hop, now);
        if let Some(interface) = self.interfaces.get_mut(link) {
            interface.count(|counters| counters.accepted_redirects += 1);
            if let Some(hardware) = hardware {
                let is_router = (next_hop != destination).then_some(true);
                interface.claim(next_hop, Claim::of_option(hardware, is_router), now);
            }
        }
        self.changed();
        Ok(())
    }

    #[inline]
    pub(crate) fn interface(&self, link: LinkId) -> Option<&Interface> {
        self.interfaces.get(link)
    }
    #[inline]
    pub(crate) fn interface_mut(&mut self, link: LinkId) -> Option<&mut Interface> {
        self.interfaces.get_mut(link)
    }
    pub(crate) fn interfaces(&self) -> &Interfaces {
        &self.interfaces
    }
    pub(crate) fn interfaces_mut(&mut self) -> &mut Interfaces {
        &mut self.interfaces
    }
    /// Whether the host forwards.
    pub(crate) fn is_router(&self) -> bool {
        self.routing.is_router()
    }
    /// The routing state. Call [`Paths::changed`] after a change of routes.
    pub(crate) fn routing_mut(&mut self) -> &mut Routing {
        &mut self.routing
    }
    /// One link, to be changed. The next deadline is computed anew afterwards.
    pub(crate) fn link(&mut self, link: LinkId) -> Option<Link<'_>> {
        self.deadline.set(None);
        let Paths { interfaces, routing, stable_key, .. } = self;
        Some(Link::new(interfaces.get_mut(link)?, routing, stable_key))
    }
    /// Where a router sends packets to `destination`.
    pub(crate) fn forwarding_decision(&mut self, destination: IpAddr, now: Instant) -> Option<RouteDecision> {
        self.routing.forward(&self.interfaces, destination, now)
    }
    /// Whether a packet to `destination` has been forwarded before, and nothing that it was checked against has changed.
    pub(crate) fn has_forwarded(&self, destination: IpAddr) -> bool {
        self.routing.has_decision(destination)
    }
    /// The gateway of a route on `link` whose hardware address is `hardware`, of the family of `like`.
    pub(crate) fn gateway_at(&self, link: LinkId, hardware: HardwareAddress, like: IpAddr) -> Option<IpAddr> {
        let interface = self.interface(link)?;
        let is_it = |gateway: IpAddr| interface.known_hardware(gateway) == Some(hardware);
        self.routing.gateways_of(link).find(|&gateway| gateway.is_ipv4() == like.is_ipv4() && is_it(gateway))
    }
    /// Counts something on `link`.
    #[inline]
    pub(crate) fn count(&mut self, link: LinkId, add: impl FnOnce(&mut InterfaceCounters)) {
        if let Some(interface) = self.interfaces.get_mut(link) {
            interface.count(add);
        }
    }
    /// Counts and records that something that came in by `link` went no further.
    pub(crate) fn count_drop(&mut self, link: LinkId, why: Drop, env: &mut IpEnvironment<'_>) {
        self.count(link, |counters| counters.drops[why as usize] += 1);
        env.emit(Mask::LINK.union(Mask::DROP), || Event::FrameDropped(FrameDropped { link, why }));
    }
    /// Records that a path given earlier may be wrong now.
    pub(crate) fn changed(&mut self) {
        self.routing.changed();
        self.deadline_moved();
    }
    /// Records that the next deadline may be another.
    pub(crate) fn deadline_moved(&mut self) {
        self.deadline.set(None);
    }
    /// The next deadline of links and routes, or that of `others` if it is sooner. It is kept until something moves it.
    #[inline]
    pub(crate) fn deadline(&self, others: impl FnOnce() -> Instant) -> Instant {
        self.deadline.get().unwrap_or_else(|| self.next_deadline(others()))
    }
    #[cold]
    fn next_deadline(&self, others: Instant) -> Instant {
        let deadline = self.interfaces.deadline().min(self.routing.deadline()).min(others);
        self.deadline.set(Some(deadline));
        deadline
    }
    /// Notifies transports that resolution of a neighbour has succeeded or failed.
    fn notify_resolved(&mut self, link: LinkId, address: IpAddr) {
        if self.resolved.len() < RESOLVED_LIMIT && !self.resolved.contains(&(link, address)) {
            self.resolved.push_back((link, address));
        }
    }
}
