//! IP input: from a frame to a transport's datagram, or to IP itself.

use crate::arrival::{Arrival, Arrived, Target};
use crate::icmp::errors::IcmpError;
use crate::interface::{Interface, Medium};
use crate::reassembly::{Insertion, Key, Piece};
use crate::received::{Datagram, Received};
use crate::{Ip, IpEnvironment, scope};
use inhost_base::{HardwareAddress, IpAddr, LinkId};
use inhost_buf::Packet;
use inhost_event::{Drop, Event, FrameDropped, Mask};
use inhost_wire::ethernet::{self, EtherType, EthernetView};
use inhost_wire::ipv4::{self, Ipv4Header, Ipv4View, OptionPlaces};
use inhost_wire::ipv6::{self, ExtensionError, Ipv6Header, Ipv6View};
use inhost_wire::{Ecn, protocol};

impl Ip {
    /// Takes a frame that came in by `link`: link header included where the link has one, and nothing before it.
    /// [`Received`] says who owns the packet's memory afterwards; a fragment that is kept is copied. The caller counts
    /// and records received frames; drops are counted and recorded here.
    pub fn receive(&mut self, link: LinkId, packet: &mut Packet, env: &mut IpEnvironment<'_>) -> Received {
        if self.interface(link).is_none() {
            return Received::Dropped(Drop::NotForUs);
        }
        let received = match self.receive_frame(link, packet, env) {
            Ok(received) => received,
            Err(why) => {
                self.count_drop(link, why, env);
                Received::Dropped(why)
            }
        };
        if self.interface(link).is_some_and(|interface| interface.neighbours.has_actions()) {
            self.run_actions(link, env);
        }
        received
    }
    /// Counts and records that something that came in by `link` went no further.
    pub(crate) fn count_drop(&mut self, link: LinkId, why: Drop, env: &mut IpEnvironment<'_>) {
        if let Some(interface) = self.interface_mut(link) {
            interface.counters.count_drop(why);
        }
        env.sink.emit(Mask::LINK, env.now, || Event::FrameDropped(FrameDropped { link, why }));
    }
    fn receive_frame(
        &mut self,
        link: LinkId,
        packet: &mut Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        self.sender = None;
        self.arrived = Arrived::default();
        let interface = self.interface(link).ok_or(Drop::NotForUs)?;
        let own = match interface.config.medium {
            Medium::Ethernet(own) => own,
            Medium::Ip | Medium::Loopback => {
                return match packet.bytes().first().map(|byte| byte >> 4) {
                    Some(4) => self.receive_ipv4(link, true, packet, env),
                    Some(6) => self.receive_ipv6(link, true, packet, env),
                    Some(_) => Err(Drop::UnknownProtocol),
                    None => Err(Drop::Malformed),
                };
            }
        };
        let view = EthernetView::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
        // spec: RFC1122 2.4-1
        let (to, from, ethertype) = (view.destination(), view.source(), view.ethertype());
        if to != own && to.is_unicast() {
            return Err(Drop::NotForUs);
        }
        if !from.is_unicast() || from == HardwareAddress::default() || from == own {
            return Err(Drop::BadSource);
        }
        packet.trim_front(ethernet::LENGTH);
        self.sender = Some((link, from));
        match ethertype {
            EtherType::IPV4 => self.receive_ipv4(link, to == own, packet, env),
            EtherType::IPV6 => self.receive_ipv6(link, to == own, packet, env),
            EtherType::ARP => {
                let mut link = self.link(link).ok_or(Drop::NotForUs)?;
                link.receive_arp(from, packet.bytes(), env).map(|()| Received::Handled)
            }
            _ => Err(Drop::UnknownProtocol),
        }
    }

    /// Offset of the IP header in a frame received on `link`, if the frame is addressed to us by the link's address and
    /// has a valid source: the link checks of [`Ip::receive`]. `None` leaves the decision to `receive`.
    #[inline]
    pub fn plain_offset(&self, link: LinkId, frame: &[u8]) -> Option<usize> {
        let own = match self.interface(link)?.config.medium {
            Medium::Ip | Medium::Loopback => return Some(0),
            Medium::Ethernet(own) => own,
        };
        let view = EthernetView::new(frame).ok()?;
        let from = view.source();
        let is_plain = view.destination() == own
            && from != own
            && from.is_unicast()
            && from != HardwareAddress::default()
            && match frame.get(ethernet::LENGTH).map(|byte| byte >> 4) {
                Some(4) => view.ethertype() == EtherType::IPV4,
                Some(6) => view.ethertype() == EtherType::IPV6,
                _ => false,
            };
        is_plain.then_some(ethernet::LENGTH)
    }
    /// Whether [`Ip::receive`] would give just `datagram` of a frame whose packet, whole and without options, was found
    /// `at` by [`Ip::plain_offset`], for an address of the link's. When true it counts as given; false says nothing.
    pub fn receives_directly(&mut self, frame: &[u8], at: usize, datagram: &Datagram) -> bool {
        let Datagram { link, source, destination, .. } = *datagram;
        let Some(interface) = self.interface(link) else { return false };
        if source.is_ipv6() && !interface.config.ipv6
            || self.check_addresses(link, source, destination, true, false) != Ok(Target::Us)
        {
            return false;
        }
        self.arrived = Arrived::default();
        self.sender = match at {
            ethernet::LENGTH => EthernetView::new(frame).ok().map(|view| (link, view.source())),
            _ => None,
        };
        self.count_delivered(link, 1);
        true
    }
    /// Counts datagrams that came in by `link` and were delivered without [`Ip::receive`].
    #[inline]
    pub fn count_delivered(&mut self, link: LinkId, datagrams: u64) {
        if let Some(interface) = self.interface_mut(link) {
            interface.counters.delivered_datagrams += datagrams;
        }
    }

    // spec: RFC1122 3.2.1.7-2
    pub(crate) fn receive_ipv4(
        &mut self,
        link: LinkId,
        is_to_our_card: bool,
        packet: &mut Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        let view = Ipv4View::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
        // spec: RFC1122 3.2.1.2-1
        if !view.checksum_ok() {
            return Err(Drop::Checksum);
        }
        let header = Ipv4Header::parse(&view);
        let (total_length, header_bytes, is_fragment) =
            (view.total_length(), view.header_length(), view.is_fragment());
        let (source, destination) = (IpAddr::V4(header.source), IpAddr::V4(header.destination));
        let target = self.check_addresses(link, source, destination, is_to_our_card, false)?;
        packet.truncate(total_length);
        if packet.is_unfinished() && target == Target::Others {
            return self.receive_finished(link, packet, env);
        }
        if header_bytes > ipv4::LENGTH
            && let Some(done) = self.meet_options(link, target, packet, header_bytes, env)?
        {
            return Ok(done);
        }
        if target == Target::Others {
            return self.forward_ipv4(link, packet, &OptionPlaces::default(), false, env);
        }
        if is_fragment {
            let key = Key {
                link,
                source,
                destination,
                protocol: header.protocol,
                identification: u32::from(header.identification),
            };
            let (front, payload) = packet.bytes().split_at_checked(header_bytes).ok_or(Drop::Malformed)?;
            let piece = Piece {
                header: front,
                named: None,
                offset_bytes: usize::from(header.fragment_offset_bytes),
                more_fragments: header.more_fragments,
                payload,
                ecn: Ecn::of(header.dscp_ecn),
            };
            let whole = match self.reassemble(key, &piece, env)? {
                Some(whole) => whole,
                None => return Ok(Received::Handled),
            };
            env.pool.give(core::mem::replace(packet, whole));
        }
        // The header of a datagram put together may be another than that of its last fragment.
        let view = Ipv4View::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
        let (header_bytes, dscp_ecn, hop_limit) =
            (view.header_length(), view.dscp_ecn(), view.time_to_live());
        let arrival = Arrival {
            link,
            source,
            destination,
            protocol: header.protocol,
            dscp_ecn,
            hop_limit,
            target,
            header_bytes,
            protocol_offset: 9,
            was_fragmented: is_fragment,
            has_router_alert: false,
        };
        if header_bytes > ipv4::LENGTH {
            self.take_options(&arrival, packet, env.now)?;
        }
        packet.trim_front(header_bytes);
        self.deliver(&arrival, packet, env)
    }

    // spec: RFC8200 3, 4
    pub(crate) fn receive_ipv6(
        &mut self,
        link: LinkId,
        is_to_our_card: bool,
        packet: &mut Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        if !self.interface(link).is_some_and(|interface| interface.config.ipv6) {
            return Err(Drop::UnknownProtocol);
        }
        let view = Ipv6View::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
        let header = Ipv6Header::parse(&view);
        let (source, destination) = (IpAddr::V6(header.source), IpAddr::V6(header.destination));
        let total_length = view.total_length();
        let target = self.check_addresses(link, source, destination, is_to_our_card, true);
        packet.truncate(total_length);
        if target == Err(Drop::NotForUs) && is_to_our_card {
            self.refuse_beyond_scope(link, source, destination, packet, env);
        }
        let target = target?;
        if packet.is_unfinished() && target == Target::Others {
            return self.receive_finished(link, packet, env);
        }
        if target == Target::Others {
            return self.forward_ipv6(link, packet, env);
        }
        let mut was_fragmented = false;
        // A second round for a datagram put together; a fragment within a datagram gets no third.
        for _ in 0..2 {
            let view = Ipv6View::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
            let dscp_ecn = view.dscp_ecn();
            let upper = match ipv6::walk(&view) {
                Ok(upper) => upper,
                Err(error) => return Err(self.refuse_extension(link, error, packet, target, env)),
            };
            let Some(fragment) = upper.fragment else {
                let arrival = Arrival {
                    link,
                    source,
                    destination,
                    protocol: upper.protocol,
                    dscp_ecn,
                    hop_limit: header.hop_limit,
                    target,
                    header_bytes: upper.offset,
                    protocol_offset: upper.next_header_offset,
                    was_fragmented,
                    has_router_alert: upper.router_alert == Some(0),
                };
                packet.trim_front(arrival.header_bytes);
                return self.deliver(&arrival, packet, env);
            };
            if was_fragmented {
                return Err(Drop::Fragment);
            }
            was_fragmented = true;
            let key = Key { link, source, destination, protocol: 0, identification: fragment.identification };
            let piece = Piece {
                header: packet.bytes().get(..fragment.header_offset).ok_or(Drop::Malformed)?,
                named: Some((fragment.named_at, upper.protocol)),
                offset_bytes: usize::from(fragment.offset_bytes),
                more_fragments: fragment.more_fragments,
                payload: upper.payload,
                ecn: Ecn::of(dscp_ecn),
            };
            let whole = match self.reassemble(key, &piece, env)? {
                Some(whole) => whole,
                None => return Ok(Received::Handled),
            };
            env.pool.give(core::mem::replace(packet, whole));
        }
        Err(Drop::Fragment)
    }
    fn refuse_extension(
        &mut self,
        link: LinkId,
        error: ExtensionError,
        packet: &Packet,
        target: Target,
        env: &mut IpEnvironment<'_>,
    ) -> Drop {
        if let ExtensionError::ParameterProblem { code, pointer, even_if_multicast } = error
            && (target != Target::Many || even_if_multicast)
        {
            let error = IcmpError::ParameterProblem { code, pointer };
            self.send_error(link, error, packet.bytes(), env);
        }
        Drop::BadOption
    }
    fn reassemble(
        &mut self,
        key: Key,
        piece: &Piece<'_>,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Option<Packet>, Drop> {
        self.deadline_moved();
        if let Some(interface) = self.interface_mut(key.link) {
            interface.counters.received_fragments += 1;
        }
        match self.reassembly.insert(key, piece, env.now, env.pool) {
            Insertion::Kept => Ok(None),
            Insertion::Dropped(why) => Err(why),
            Insertion::Complete(packet) => {
                if let Some(interface) = self.interface_mut(key.link) {
                    interface.counters.reassembled_datagrams += 1;
                }
                Ok(Some(packet))
            }
        }
    }
    /// Whether a packet may come from its source and is for us.
    // spec: RFC1122 3.2.1.3-3, 3.2.1.3-4, 3.2.1.3-6
    fn check_addresses(
        &self,
        link: LinkId,
        source: IpAddr,
        destination: IpAddr,
        is_to_our_card: bool,
        may_be_unspecified: bool,
    ) -> Result<Target, Drop> {
        let interface = self.interface(link).ok_or(Drop::NotForUs)?;
        if interface.is_loopback() {
            let both = self.is_local(source) && self.is_local(destination);
            return if both { Ok(Target::Us) } else { Err(Drop::NotForUs) };
        }
        let may_be_source = if source.is_unspecified() {
            may_be_unspecified
        } else {
            scope::is_unicast(source)
                && !scope::is_loopback(source)
                && !interface.owns(source)
                && (self.forwarding.is_none() || !self.is_local(source))
                && !interface.is_broadcast(source)
        };
        if !may_be_source {
            return Err(Drop::BadSource);
        }
        let target = target_of(interface, destination)
            .or_else(|| self.target_beyond(link, source, destination))
            .ok_or(Drop::NotForUs)?;
        // A packet for one host in a frame for all is a mistake or a trick.
        // spec: RFC1122 3.3.6-4
        if target != Target::Many && !is_to_our_card {
            return Err(Drop::NotForUs);
        }
        Ok(target)
    }
    /// Whom a packet means whose destination is nothing to the link by which it came: us by an address on another link,
    /// if we are a router, or others.
    // spec: RFC1812 5.2.3
    fn target_beyond(&self, link: LinkId, source: IpAddr, destination: IpAddr) -> Option<Target> {
        self.forwarding?;
        if self.has_forwarded(link, source, destination) {
            return Some(Target::Others);
        }
        if self.interfaces.is_reachable_own(destination) {
            return Some(Target::Us);
        }
        let may = !self.is_local(destination) && self.may_forward(link, source, destination);
        may.then_some(Target::Others)
    }
    /// Hands a whole datagram to whom it is for.
    fn deliver(
        &mut self,
        arrival: &Arrival,
        packet: &mut Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        let is_ipv4 = arrival.source.is_ipv4();
        match arrival.protocol {
            protocol::ICMPV4 if is_ipv4 => self.receive_icmpv4(arrival, packet, env),
            protocol::ICMPV6 if !is_ipv4 => self.receive_icmpv6(arrival, packet, env),
            protocol::IGMP if is_ipv4 => {
                let link = self.link(arrival.link).ok_or(Drop::NotForUs)?;
                link.interface.receive_igmp(packet.bytes(), env).map(|()| Received::Handled)
            }
            protocol::NO_NEXT_HEADER if !is_ipv4 => Ok(Received::Handled),
            // Only duplicate address detection and listener reports use the unspecified source.
            _ if arrival.source.is_unspecified() => Err(Drop::BadSource),
            _ => {
                if let Some(interface) = self.interface_mut(arrival.link) {
                    interface.counters.delivered_datagrams += 1;
                }
                Ok(Received::Datagram(Datagram {
                    link: arrival.link,
                    source: arrival.source,
                    destination: arrival.destination,
                    protocol: arrival.protocol,
                    ecn: Ecn::of(arrival.dscp_ecn),
                    hop_limit: arrival.hop_limit,
                    to_unicast: arrival.target != Target::Many,
                    header_bytes: arrival.header_bytes as u16,
                    protocol_offset: arrival.protocol_offset as u16,
                }))
            }
        }
    }
}

/// The target of `destination` on this link; `None` when it is not for us.
fn target_of(interface: &Interface, destination: IpAddr) -> Option<Target> {
    if destination.is_multicast() {
        return interface.groups.contains(destination).then_some(Target::Many);
    }
    if interface.owns(destination) {
        return Some(Target::Us);
    }
    if interface.is_broadcast(destination) {
        return Some(Target::Many);
    }
    let takes_any =
        interface.config.any_address && scope::is_unicast(destination) && !scope::is_loopback(destination);
    takes_any.then_some(Target::Anybody)
}
