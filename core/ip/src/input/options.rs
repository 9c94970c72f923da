//! IPv4 options received: source routes followed, routes and times recorded, and what an answer repeats.

use super::Input;
use crate::arrival::{Arrival, Arrived, Target};
use crate::options::HeaderOptions;
use crate::output::Output;
use crate::output::errors::IcmpError;
use crate::paths::Paths;
use crate::received::Received;
use crate::{IpEnvironment, Path, RouteError};
use inhost_base::{Instant, IpAddr, LinkId};
use inhost_buf::Packet;
use inhost_event::Drop;
use inhost_wire::ipv4::{self, BadOption, Ipv4View, OptionBytes, OptionPlaces, SourceRoute};
use inhost_wire::protocol;

impl Input {
    /// The path of a reply to the packet received last, and its options.
    // spec: RFC1122 3.2.2.6-6, 3.2.2.6-7, 3.2.2.8-3, 3.2.2.8-4
    pub(super) fn return_path(
        &mut self,
        paths: &mut Paths,
        arrival: &Arrival,
        source: Option<IpAddr>,
        now: Instant,
    ) -> Result<(Path, Option<HeaderOptions>), RouteError> {
        let Arrived { back, records } = self.last;
        let path = match &back {
            Some(route) => paths.route_by(route, arrival.source, source, Some(arrival.link), now)?,
            None => paths.route(arrival.source, source, Some(arrival.link), now)?,
        };
        if back.is_none() && records.is_none() {
            return Ok((path, None));
        }
        Ok((path, Some(HeaderOptions::of_answer(records, back.as_ref(), arrival.source))))
    }
    /// Processes the options of a received packet. `Some` when the packet needs no further processing.
    // spec: RFC9293 MUST-50
    // spec: RFC1122 3.2.1.8-3, 3.2.1.8-4
    pub(super) fn process_options(
        &mut self,
        output: &mut Output,
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
            Err(bad) => return Err(output.refuse_option(link, bad, packet, env)),
        };
        if target == Target::Others {
            return self.forwarder(output)?.forward_ipv4(link, packet, &places, false, env).map(Some);
        }
        let Some(route) = places.source_route else { return Ok(None) };
        match route.next_hop(packet.bytes()) {
            Ok(None) if self.accept_source_routes && target == Target::Us => Ok(None),
            Ok(None) => Err(Drop::BadOption),
            _ if target == Target::Us => {
                self.follow_source_route(output, link, packet, &places, env).map(Some)
            }
            _ => Err(Drop::BadOption),
        }
    }
    /// Follows the source route in which we are the current hop.
    // spec: RFC1122 3.3.5-1, 3.3.5-2
    fn follow_source_route(
        &mut self,
        output: &mut Output,
        link: LinkId,
        packet: &mut Packet,
        places: &OptionPlaces,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        let Some(place) = places.source_route else { return Err(Drop::BadOption) };
        if packet.is_unfinished() {
            return self.receive_finished(output, link, packet, env);
        }
        let view = Ipv4View::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
        let (source, header_bytes) = (view.source(), view.header_length());
        let next = match place.next_hop(packet.bytes()) {
            Ok(Some(next)) => next,
            Ok(None) => return Err(Drop::BadOption),
            Err(bad) => return Err(output.refuse_option(link, bad, packet, env)),
        };
        let may_go_on = self.forwarding.is_some_and(|forwarding| forwarding.source_routes)
            && self.may_forward(output.paths(), link, source.into(), next.into())
            && !output.paths().is_local(next.into());
        // spec: RFC1122 3.3.5-3
        if !may_go_on {
            return Err(output.refuse(link, Drop::BadOption, IcmpError::SourceRouteFailed, packet, env));
        }
        let header = packet.bytes_mut().get_mut(..header_bytes).ok_or(Drop::Malformed)?;
        ipv4::readdress(header, next);
        self.forwarder(output)?.forward_ipv4(link, packet, places, true, env)
    }
    /// Reads the options of a whole datagram that is for us, and writes our part of them.
    // spec: RFC1122 3.2.1.8-5, 3.2.1.8-7, 3.2.1.8-10
    pub(super) fn read_options(
        &mut self,
        output: &mut Output,
        arrival: &Arrival,
        packet: &mut Packet,
        now: Instant,
    ) -> Result<(), Drop> {
        let (IpAddr::V4(source), IpAddr::V4(own)) = (arrival.source, arrival.destination) else {
            return Ok(());
        };
        let time = output.clock().time_of_day(now);
        let header = packet.bytes_mut().get_mut(..arrival.header_bytes).ok_or(Drop::Malformed)?;
        let options = header.get(ipv4::LENGTH..).unwrap_or(&[]);
        let places = OptionPlaces::find(options).map_err(bad_of_many)?;
        let back = places.source_route.and_then(|place| SourceRoute::back(header, place, source));
        self.last = Arrived { back, records: None };
        if !self.record_options || arrival.target != Target::Us {
            return Ok(());
        }
        let mut records = OptionBytes::new();
        if let Some(place) = places.record_route {
            place.record(header, own).map_err(bad_of_many)?;
        }
        if let Some(place) = places.timestamp {
            let is_ours = |address| output.paths().is_local(IpAddr::V4(address));
            ipv4::record_time(header, place, own, is_ours, time).map_err(bad_of_many)?;
        }
        ipv4::renew_checksum(header);
        if arrival.protocol == protocol::ICMPV4 {
            for place in [places.record_route, places.timestamp].into_iter().flatten() {
                records.add_copy(header, place);
            }
            self.last.records = Some(records);
        }
        Ok(())
    }
}

/// A bad option about which nothing is said.
fn bad_of_many(_: BadOption) -> Drop {
    Drop::BadOption
}
