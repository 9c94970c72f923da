//! IPv4 forwarding (RFC 1812).

use super::Forwarder;
use crate::IpEnvironment;
use crate::output::errors::IcmpError;
use crate::received::Received;
use crate::routing::RouteDecision;
use inhost_base::{Instant, IpAddr, Ipv4Addr, LinkId};
use inhost_buf::Packet;
use inhost_event::Drop;
use inhost_wire::ipv4::{self, BadOption, Ipv4Header, Ipv4View, OptionBytes, OptionPlaces};

impl Forwarder<'_> {
    /// Sends a packet on. Its header has been checked, its window begins there and ends where the packet does.
    /// `is_source_routed` when we were named as a hop.
    // spec: RFC1812 5.2.1
    pub(crate) fn forward_ipv4(
        &mut self,
        link: LinkId,
        packet: &mut Packet,
        places: &OptionPlaces,
        is_source_routed: bool,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        let view = Ipv4View::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
        let (header, total_bytes) = (Ipv4Header::parse(&view), view.total_length());
        // spec: RFC1812 5.3.1
        if header.time_to_live <= 1 {
            return Err(self.output.refuse(link, Drop::HopLimit, IcmpError::TimeExceeded, packet, env));
        }
        let (source, destination) = (IpAddr::V4(header.source), IpAddr::V4(header.destination));
        let Some(route) = self.output.paths_mut().forwarding_decision(destination, env.now()) else {
            let error =
                if is_source_routed { IcmpError::SourceRouteFailed } else { IcmpError::NetworkUnreachable };
            return Err(self.output.refuse(link, Drop::NoRoute, error, packet, env));
        };
        // spec: RFC1812 5.3.13.4
        let is_strict = places.source_route.is_some_and(|place| place.is_strict(packet.bytes()));
        if is_strict && is_source_routed && route.next_hop != destination {
            return Err(self.output.refuse(link, Drop::NoRoute, IcmpError::SourceRouteFailed, packet, env));
        }
        let mtu_bytes =
            self.output.paths().interface(route.link).map_or(0, |interface| interface.mtu_bytes(false));
        let is_too_long = total_bytes > usize::from(mtu_bytes);
        // spec: RFC1812 4.2.2.7, RFC1191 4
        if is_too_long && header.dont_fragment {
            let error = IcmpError::TooBig { mtu_bytes };
            return Err(self.output.refuse(link, Drop::TooBig, error, packet, env));
        }
        if route.link == link && places.source_route.is_none() {
            self.redirect(link, source, destination, route.next_hop, packet, env);
        }
        if !places.is_empty()
            && let Err(bad) = self.write_hop_options(route, packet, places, is_source_routed, env.now())
        {
            return Err(self.output.refuse_option(link, bad, packet, env));
        }
        ipv4::decrement_time_to_live(packet.bytes_mut());
        match is_too_long {
            true => self.forward_in_fragments(link, route, packet, usize::from(mtu_bytes), env)?,
            false => self.send_on(link, route, packet.take(), env)?,
        }
        Ok(Received::Handled)
    }
    /// Writes our part of the options: our address on the link by which the packet leaves, and the time.
    // spec: RFC1812 5.2.4, 5.3.13
    fn write_hop_options(
        &mut self,
        route: RouteDecision,
        packet: &mut Packet,
        places: &OptionPlaces,
        is_source_routed: bool,
        now: Instant,
    ) -> Result<(), BadOption> {
        let like = IpAddr::V4(Ipv4Addr::BROADCAST);
        let own = self
            .output
            .paths()
            .interface(route.link)
            .and_then(|link| crate::select::select_source(link, like, None))
            .map(|assigned| assigned.address());
        let Some(IpAddr::V4(own)) = own else { return Ok(()) };
        let header_bytes = Ipv4View::new(packet.bytes()).map_or(0, |view| view.header_length());
        let time = self.output.clock().time_of_day(now);
        let Some(header) = packet.bytes_mut().get_mut(..header_bytes) else { return Ok(()) };
        if let Some(place) = places.source_route.filter(|_| is_source_routed) {
            place.record(header, own)?;
        }
        if self.record_options {
            if let Some(place) = places.record_route {
                place.record(header, own)?;
            }
            if let Some(place) = places.timestamp {
                let is_ours = |address| self.output.paths().is_local(IpAddr::V4(address));
                ipv4::record_time(header, place, own, is_ours, time)?;
            }
        }
        ipv4::renew_checksum(header);
        Ok(())
    }
    /// Cuts a packet for a link that takes `mtu_bytes`, and sends the parts on.
    // spec: RFC1812 4.2.2.7
    fn forward_in_fragments(
        &mut self,
        from: LinkId,
        route: RouteDecision,
        packet: &Packet,
        mtu_bytes: usize,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), Drop> {
        let view = Ipv4View::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
        let (whole, payload) = (Ipv4Header::parse(&view), view.payload());
        let copied = OptionBytes::copied(view.options());
        let mut options = view.options();
        let mut offset = 0;
        while offset < payload.len() {
            let room = mtu_bytes.saturating_sub(ipv4::LENGTH + options.len()) & !7;
            let bytes = room.min(payload.len() - offset);
            let part =
                payload.get(offset..offset + bytes).filter(|part| !part.is_empty()).ok_or(Drop::TooBig)?;
            let header = Ipv4Header {
                more_fragments: whole.more_fragments || offset + bytes < payload.len(),
                fragment_offset_bytes: whole.fragment_offset_bytes.saturating_add(offset as u16),
                payload_length: bytes as u16,
                ..whole
            };
            let mut fragment = env.pool().take(ipv4::LENGTH + options.len() + bytes).ok_or(Drop::NoMemory)?;
            fragment.append_with(|into| header.emit_with_options(options, into));
            fragment.append(part);
            self.send_on(from, route, fragment, env)?;
            self.output.paths_mut().count(route.link, |counters| counters.sent_fragments += 1);
            options = copied.as_bytes();
            offset += bytes;
        }
        Ok(())
    }
}
