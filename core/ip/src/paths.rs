//! Path calls of transports: route lookup, next-hop resolution, and feedback.

use crate::neighbour::cache::Lookup;
use crate::path::{Path, Resolution};
use crate::routing::RouteRequest;
use crate::{Ip, IpEnvironment, RouteError, TransportError};
use inhost_base::{Instant, IpAddr, LinkId};

impl Ip {
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
        let request = RouteRequest { gateway, destination, source, bound, now };
        self.routing.path(&self.interfaces, &request)
    }
    /// The broadcast path on `link` of a host without an address: from 0.0.0.0, which is allowed for nothing else (RFC
    /// 1122 §3.2.1.3 (a), RFC 2131 §4.1).
    pub fn route_unaddressed(&self, link: LinkId) -> Result<Path, RouteError> {
        self.routing.path_unaddressed(&self.interfaces, link)
    }
    /// The gateway from which the frame that was received last, with a packet of `source`, came in on `link`, when it came
    /// from one: the first choice for what answers a call (UCLA §2.3).
    pub fn gateway_towards(&self, link: LinkId, source: IpAddr) -> Option<IpAddr> {
        let (_, hardware) = self.sender.filter(|sender| sender.0 == link)?;
        let neighbours = &self.interface(link)?.neighbours;
        let is_sender = |gateway: IpAddr| neighbours.peek(gateway) == Some(Lookup::Known(hardware));
        self.routing
            .gateways_of(link)
            .find(|&gateway| gateway.is_ipv4() == source.is_ipv4() && is_sender(gateway))
    }
    /// The link header for `path`. An unknown neighbour is asked, and [`Ip::take_resolved`] returns it when that ends;
    /// nothing is queued.
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
            self.run_actions(path.link, env);
        }
        resolution
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
        if path.next_hop != path.destination && self.routing.confirm(path.link, path.next_hop, now) {
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
        self.run_actions(path.link, env);
        if path.next_hop == path.destination {
            return;
        }
        if self.routing.suspect(path, now) {
            self.paths_changed();
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
            self.paths_changed();
        }
        is_lower
    }
}
