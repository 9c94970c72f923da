//! IPv4 forwarding (RFC 1812).

use crate::icmp::errors::IcmpError;
use crate::received::Received;
use crate::routing::RouteDecision;
use crate::{Ip, IpEnvironment};
use inhost_base::{Instant, IpAddr, Ipv4Addr, LinkId};
use inhost_buf::Packet;
use inhost_event::Drop;
use inhost_wire::ipv4::{self, BadOption, Ipv4Header, Ipv4View, OptionBytes, OptionPlaces};

impl Ip {
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
            return self.refuse_to_forward(link, Drop::HopLimit, IcmpError::TimeExceeded, packet, env);
        }
        let (source, destination) = (IpAddr::V4(header.source), IpAddr::V4(header.destination));
        let Some(route) = self.routing.forward(&self.interfaces, destination, env.now) else {
            let error =
                if is_source_routed { IcmpError::SourceRouteFailed } else { IcmpError::NetworkUnreachable };
            return self.refuse_to_forward(link, Drop::NoRoute, error, packet, env);
        };
        // spec: RFC1812 5.3.13.4
        let is_strict = places.source_route.is_some_and(|place| place.is_strict(packet.bytes()));
        if is_strict && is_source_routed && route.next_hop != destination {
            return self.refuse_to_forward(link, Drop::NoRoute, IcmpError::SourceRouteFailed, packet, env);
        }
        let mtu_bytes = self.interface(route.link).map_or(0, |interface| interface.mtu_bytes(false));
        let is_too_long = total_bytes > usize::from(mtu_bytes);
        // spec: RFC1812 4.2.2.7, RFC1191 4
        if is_too_long && header.dont_fragment {
            let error = IcmpError::TooBig { mtu_bytes };
            return self.refuse_to_forward(link, Drop::TooBig, error, packet, env);
        }
        if route.link == link && places.source_route.is_none() {
            self.redirect(link, source, destination, route.next_hop, packet, env);
        }
        if !places.is_empty()
            && let Err(bad) = self.write_hop_options(route, packet, places, is_source_routed, env.now)
        {
            return self.refuse_option(link, bad, packet, env);
        }
        ipv4::decrement_time_to_live(packet.bytes_mut());
        match is_too_long {
            true => self.forward_in_fragments(link, route, packet, usize::from(mtu_bytes), env)?,
            false => self.send_on(link, route, packet.take(), env)?,
        }
        Ok(Received::Handled)
    }
    /// Follows the source route that names us as the hop where the packet is now.
    // spec: RFC1122 3.3.5-1, 3.3.5-2
    pub(crate) fn follow_source_route(
        &mut self,
        link: LinkId,
        packet: &mut Packet,
        places: &OptionPlaces,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        let Some(place) = places.source_route else { return Err(Drop::BadOption) };
        if packet.is_unfinished() {
            return self.receive_finished(link, packet, env);
        }
        let view = Ipv4View::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
        let (source, header_bytes) = (view.source(), view.header_length());
        let next = match place.next_hop(packet.bytes()) {
            Ok(Some(next)) => next,
            Ok(None) => return Err(Drop::BadOption),
            Err(bad) => return self.refuse_option(link, bad, packet, env),
        };
        let may_go_on = self.forwarding.is_some_and(|forwarding| forwarding.source_routes)
            && self.may_forward(link, source.into(), next.into())
            && !self.is_local(next.into());
        // spec: RFC1122 3.3.5-3
        if !may_go_on {
            return self.refuse_to_forward(link, Drop::BadOption, IcmpError::SourceRouteFailed, packet, env);
        }
        let header = packet.bytes_mut().get_mut(..header_bytes).ok_or(Drop::Malformed)?;
        ipv4::readdress(header, next);
        self.forward_ipv4(link, packet, places, true, env)
    }
    /// Tells the sender of a packet which byte of its options makes no sense.
    // spec: RFC1122 3.2.2.5-1
    pub(crate) fn refuse_option(
        &mut self,
        link: LinkId,
        bad: BadOption,
        packet: &Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        let error = IcmpError::ParameterProblem { code: 0, pointer: u32::from(bad.pointer) };
        self.refuse_to_forward(link, Drop::BadOption, error, packet, env)
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
            .interface(route.link)
            .and_then(|link| crate::select::select_source(link, like, None))
            .map(|assigned| assigned.address());
        let Some(IpAddr::V4(own)) = own else { return Ok(()) };
        let header_bytes = Ipv4View::new(packet.bytes()).map_or(0, |view| view.header_length());
        let time = self.clock.time_of_day(now);
        let Some(header) = packet.bytes_mut().get_mut(..header_bytes) else { return Ok(()) };
        if let Some(place) = places.source_route.filter(|_| is_source_routed) {
            place.record(header, own)?;
        }
        if self.record_options {
            if let Some(place) = places.record_route {
                place.record(header, own)?;
            }
            if let Some(place) = places.timestamp {
                let is_ours = |address| self.is_local(IpAddr::V4(address));
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
            let mut fragment = env.pool.take(ipv4::LENGTH + options.len() + bytes).ok_or(Drop::NoMemory)?;
            let written = header.emit_with_options(options, fragment.spare_mut());
            fragment.extend(written);
            fragment.append(part);
            self.send_on(from, route, fragment, env)?;
            if let Some(interface) = self.interface_mut(route.link) {
                interface.counters.sent_fragments += 1;
            }
            options = copied.as_bytes();
            offset += bytes;
        }
        Ok(())
    }
}
