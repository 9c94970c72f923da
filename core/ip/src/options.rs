//! IPv4 options: written, processed and echoed.

use crate::arrival::{Arrival, Arrived, Target};
use crate::received::Received;
use crate::{Ip, IpEnvironment, Path, RouteError, scope};
use inhost_base::{Instant, IpAddr, Ipv4Addr, LinkId};
use inhost_buf::Packet;
use inhost_event::Drop;
use inhost_wire::ipv4::{self, BadOption, OptionBytes, OptionPlaces, SourceRoute, TimestampKind};
use inhost_wire::protocol;

/// Options that a datagram of ours is to bear (IPv4 alone has them).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ipv4Options {
    /// The source route; its path then comes from [`Ip::route_by`]. Default: none.
    pub source_route: Option<SourceRoute>,
    /// Room for so many addresses of those that it passes, 9 at most. Default: 0, no record.
    pub record_route: u8,
    /// Times of those that it passes: what each entry holds, and room for how many. Default: none.
    pub timestamps: Option<(TimestampKind, u8)>,
}

/// Options as they stand behind a header: what [`Ip::header_options`] makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeaderOptions {
    bytes: OptionBytes,
    /// Whom the header is addressed to instead of the destination.
    first_hop: Option<Ipv4Addr>,
}

impl HeaderOptions {
    /// The options as they are written.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.as_bytes()
    }
    /// The first hop of a source route, to which the header is addressed.
    pub(crate) fn first_hop(&self) -> Option<Ipv4Addr> {
        self.first_hop
    }
    /// Bytes that they take in each header.
    pub fn length(&self) -> usize {
        self.bytes.as_bytes().len()
    }
    /// Those of the fragments behind the first.
    pub(crate) fn of_later_fragments(&self) -> HeaderOptions {
        HeaderOptions { bytes: OptionBytes::copied(self.bytes.as_bytes()), first_hop: self.first_hop }
    }
    /// Adds a source route to `destination`; false when there is no room, or one already.
    // spec: RFC1122 3.2.1.8-8
    fn add_source_route(&mut self, route: &SourceRoute, destination: IpAddr) -> bool {
        let IpAddr::V4(destination) = destination else { return false };
        let fits = self.first_hop.is_none() && self.bytes.add_source_route(route, destination);
        if fits {
            self.first_hop = Some(route.first());
        }
        fits
    }
}

impl Ip {
    /// The path to `destination` through the hops of `route`: as [`Ip::route`] to its first hop. Every header on the
    /// path must be written with the same route, see [`Ip::header_options`]. The first hop of a strict route must be a
    /// neighbour, and no redirect changes it (UCLA §2.3).
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
        if route.strict && path.next_hop != first {
            return Err(RouteError::NoRoute);
        }
        Ok(Path { destination, option_bytes: route.length() as u8, ..path })
    }
    /// The options for headers on `path`; `None` when they do not fit, or the path is not one of IPv4. Our own time is
    /// the first that is written (RFC 1122 §3.2.1.8 (e)).
    // spec: RFC1122 3.2.1.8-1, 3.2.1.8-5, 3.2.1.8-9
    pub fn header_options(&self, wanted: &Ipv4Options, path: &Path, now: Instant) -> Option<HeaderOptions> {
        let Ipv4Options { source_route, record_route, timestamps } = wanted;
        let mut options = HeaderOptions::default();
        let IpAddr::V4(own) = path.source else { return None };
        let routed = source_route.is_none_or(|route| options.add_source_route(&route, path.destination));
        let slots = usize::from(*record_route);
        let recorded = slots == 0 || options.bytes.add_record_route(slots);
        let timed = timestamps.is_none_or(|(kind, slots)| {
            options.bytes.add_timestamp(kind, usize::from(slots), own, self.time_of_day(now))
        });
        (routed && recorded && timed).then_some(options)
    }
    /// The reversed source route of the datagram that [`Ip::receive`] handed up last, when it came by a source route:
    /// with [`Ip::route_by`] it leads to its sender (RFC 1122 §3.2.1.8 (c)). Ask before the next call of `receive`.
    // spec: RFC1122 3.2.1.8-6
    pub fn return_route(&self) -> Option<&SourceRoute> {
        self.arrived.back.as_ref()
    }
    /// The path of a reply to the packet received last, and its options.
    // spec: RFC1122 3.2.2.6-6, 3.2.2.6-7, 3.2.2.8-3, 3.2.2.8-4
    pub(crate) fn way_back(
        &mut self,
        arrival: &Arrival,
        source: Option<IpAddr>,
        now: Instant,
    ) -> Result<(Path, Option<HeaderOptions>), RouteError> {
        let Arrived { back, records } = self.arrived;
        let path = match &back {
            Some(route) => self.route_by(route, arrival.source, source, Some(arrival.link), now)?,
            None => self.route(arrival.source, source, Some(arrival.link), now)?,
        };
        if back.is_none() && records.is_none() {
            return Ok((path, None));
        }
        let mut options = HeaderOptions { bytes: records.unwrap_or_default(), first_hop: None };
        // Where both do not fit, the reversed route has precedence.
        if let Some(route) = &back
            && !options.add_source_route(route, arrival.source)
        {
            options = HeaderOptions::default();
            options.add_source_route(route, arrival.source);
        }
        Ok((path, Some(options)))
    }
    // spec: RFC9293 MUST-50
    /// Processes the options of a received packet. `Some` when the packet needs no further processing.
    // spec: RFC1122 3.2.1.8-3, 3.2.1.8-4
    pub(crate) fn meet_options(
        &mut self,
        link: LinkId,
        target: Target,
        packet: &mut Packet,
        header_bytes: usize,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Option<Received>, Drop> {
        let options = packet.bytes().get(ipv4::LENGTH..header_bytes).unwrap_or(&[]);
        let places = match OptionPlaces::find(options) {
            Ok(places) => places,
            Err(bad) if target == Target::Many => return Err(bad_of_many(bad)),
            Err(bad) => return self.refuse_option(link, bad, packet, env).map(Some),
        };
        if target == Target::Others {
            return self.forward_ipv4(link, packet, &places, false, env).map(Some);
        }
        let Some(route) = places.source_route else { return Ok(None) };
        match route.next_hop(packet.bytes()) {
            Ok(None) if self.accept_source_routes && target == Target::Us => Ok(None),
            Ok(None) => Err(Drop::BadOption),
            _ if target == Target::Us => self.follow_source_route(link, packet, &places, env).map(Some),
            _ => Err(Drop::BadOption),
        }
    }
    /// Reads the options of a whole datagram that is for us, and writes our part of them.
    // spec: RFC1122 3.2.1.8-5, 3.2.1.8-7, 3.2.1.8-10
    pub(crate) fn take_options(
        &mut self,
        arrival: &Arrival,
        packet: &mut Packet,
        now: Instant,
    ) -> Result<(), Drop> {
        let (IpAddr::V4(source), IpAddr::V4(own)) = (arrival.source, arrival.destination) else {
            return Ok(());
        };
        let time = self.time_of_day(now);
        let header = packet.bytes_mut().get_mut(..arrival.header_bytes).ok_or(Drop::Malformed)?;
        let options = header.get(ipv4::LENGTH..).unwrap_or(&[]);
        let places = OptionPlaces::find(options).map_err(bad_of_many)?;
        let back = places.source_route.and_then(|place| SourceRoute::back(header, place, source));
        self.arrived = Arrived { back, records: None };
        if !self.record_options || arrival.target != Target::Us {
            return Ok(());
        }
        let mut records = OptionBytes::new();
        if let Some(place) = places.record_route {
            place.record(header, own).map_err(bad_of_many)?;
        }
        if let Some(place) = places.timestamp {
            let is_ours = |address| self.is_local(IpAddr::V4(address));
            ipv4::record_time(header, place, own, is_ours, time).map_err(bad_of_many)?;
        }
        ipv4::renew_checksum(header);
        if arrival.protocol == protocol::ICMPV4 {
            for place in [places.record_route, places.timestamp].into_iter().flatten() {
                records.add_copy(header, place);
            }
            self.arrived.records = Some(records);
        }
        Ok(())
    }
}

/// A bad option about which nothing is said.
fn bad_of_many(_: BadOption) -> Drop {
    Drop::BadOption
}
