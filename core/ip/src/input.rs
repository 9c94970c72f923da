//! IP input: from a frame to a transport's datagram, or to IP itself.

mod finish;
mod icmp;
mod options;
mod reassembly;

use crate::arrival::{Arrival, Arrived, Target};
use crate::config::Forwarding;
use crate::forward::Forwarder;
use crate::interface::Interface;
use crate::output::Output;
use crate::output::errors::IcmpError;
use crate::paths::Paths;
use crate::reassembly::{Key, Piece, Reassembly};
use crate::received::{Datagram, Received};
use crate::{IpConfig, IpEnvironment, Medium, scope};
use inhost_base::{HardwareAddress, IpAddr, LinkId};
use inhost_buf::{Packet, Pool};
use inhost_event::Drop;
use inhost_wire::ethernet::{self, EtherType, EthernetView};
use inhost_wire::ipv4::{self, Ipv4Header, Ipv4View, OptionPlaces, SourceRoute};
use inhost_wire::ipv6::{self, ExtensionError, Ipv6Header, Ipv6View};
use inhost_wire::{Ecn, protocol};

/// The processing of received packets: checks, options, reassembly and ICMP, until a packet is delivered to a transport
/// or to IP itself, or goes to the [`Forwarder`]. Answers go out by [`Output`], which each call lends it.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Input {
    reassembly: Reassembly,
    /// Results of the options of the datagram received last.
    last: Arrived,
    /// Where the frame that was received last came from.
    sender: Option<(LinkId, HardwareAddress)>,
    accept_source_routes: bool,
    record_options: bool,
    answer_timestamps: bool,
    answer_broadcast_echoes: bool,
    forwarding: Option<Forwarding>,
}

impl Input {
    pub(crate) fn new(config: &IpConfig, reassembly: Reassembly) -> Input {
        Input {
            reassembly,
            last: Arrived::default(),
            sender: None,
            accept_source_routes: config.accept_source_routes,
            record_options: config.record_options,
            answer_timestamps: config.answer_timestamps,
            answer_broadcast_echoes: config.answer_broadcast_echoes,
            forwarding: config.forwarding,
        }
    }
    /// Takes a frame that came in by `link`; see [`crate::Ip::receive`].
    pub(crate) fn receive(
        &mut self,
        output: &mut Output,
        link: LinkId,
        packet: &mut Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Received {
        if output.paths().interface(link).is_none() {
            return Received::Dropped(Drop::NotForUs);
        }
        let received = match self.receive_frame(output, link, packet, env) {
            Ok(received) => received,
            Err(why) => {
                output.paths_mut().count_drop(link, why, env);
                Received::Dropped(why)
            }
        };
        if output.paths().interface(link).is_some_and(|interface| interface.has_actions()) {
            output.paths_mut().run_actions(link, env);
        }
        received
    }
    fn receive_frame(
        &mut self,
        output: &mut Output,
        link: LinkId,
        packet: &mut Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        self.sender = None;
        self.last = Arrived::default();
        let interface = output.paths().interface(link).ok_or(Drop::NotForUs)?;
        let own = match interface.config().medium {
            Medium::Ethernet(own) => own,
            Medium::Ip | Medium::Loopback => {
                return self.receive_packet(output, link, packet, env);
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
            EtherType::IPV4 => self.receive_ipv4(output, link, to == own, packet, env),
            EtherType::IPV6 => self.receive_ipv6(output, link, to == own, packet, env),
            EtherType::ARP => {
                let mut link = output.paths_mut().link(link).ok_or(Drop::NotForUs)?;
                link.receive_arp(from, packet.bytes(), env).map(|()| Received::Handled)
            }
            _ => Err(Drop::UnknownProtocol),
        }
    }

    /// Whether the slow path would give just `datagram` of a frame; see [`crate::Ip::receives_directly`].
    pub(crate) fn receives_directly(
        &mut self,
        output: &mut Output,
        frame: &[u8],
        at: usize,
        datagram: &Datagram,
    ) -> bool {
        let Datagram { link, source, destination, .. } = *datagram;
        let Some(interface) = output.paths().interface(link) else { return false };
        if source.is_ipv6() && !interface.config().ipv6
            || self.check_addresses(output.paths(), link, source, destination, true, false) != Ok(Target::Us)
        {
            return false;
        }
        self.last = Arrived::default();
        self.sender = match at {
            ethernet::LENGTH => EthernetView::new(frame).ok().map(|view| (link, view.source())),
            _ => None,
        };
        output.paths_mut().count(link, |counters| counters.delivered_datagrams += 1);
        true
    }
    /// The reversed source route of the datagram received last; see [`crate::Ip::return_route`].
    pub(crate) fn return_route(&self) -> Option<&SourceRoute> {
        self.last.back.as_ref()
    }
    /// The hardware address from which the frame that was received last came in on `link`.
    pub(crate) fn sender_on(&self, link: LinkId) -> Option<HardwareAddress> {
        self.sender.filter(|sender| sender.0 == link).map(|sender| sender.1)
    }
    /// The forwarder of a router.
    pub(crate) fn forwarder<'a>(&self, output: &'a mut Output) -> Result<Forwarder<'a>, Drop> {
        let forwarding = self.forwarding.ok_or(Drop::NotForUs)?;
        Ok(Forwarder::new(output, forwarding, self.record_options))
    }
    /// Datagrams being put together from fragments.
    pub(crate) fn reassembly(&self) -> &Reassembly {
        &self.reassembly
    }
    #[cfg(feature = "freeze")]
    pub(crate) fn reassembly_mut(&mut self) -> &mut Reassembly {
        &mut self.reassembly
    }
    /// Gives all packet memory back.
    pub(crate) fn clear(&mut self, pool: &mut Pool) {
        self.reassembly.clear(pool);
    }

    /// Takes a packet to us, from its IP header on.
    fn receive_packet(
        &mut self,
        output: &mut Output,
        link: LinkId,
        packet: &mut Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        match packet.bytes().first().map(|byte| byte >> 4) {
            Some(4) => self.receive_ipv4(output, link, true, packet, env),
            Some(6) => self.receive_ipv6(output, link, true, packet, env),
            Some(_) => Err(Drop::UnknownProtocol),
            None => Err(Drop::Malformed),
        }
    }
    // spec: RFC1122 3.2.1.7-2
    fn receive_ipv4(
        &mut self,
        output: &mut Output,
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
        let target =
            self.check_addresses(output.paths(), link, source, destination, is_to_our_card, false)?;
        packet.truncate(total_length);
        if packet.is_unfinished() && target == Target::Others {
            return self.receive_finished(output, link, packet, env);
        }
        if header_bytes > ipv4::LENGTH
            && let Some(done) = self.process_options(output, link, target, packet, header_bytes, env)?
        {
            return Ok(done);
        }
        if target == Target::Others {
            return self.forwarder(output)?.forward_ipv4(link, packet, &OptionPlaces::default(), false, env);
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
            let Some(whole) = self.reassemble(output, key, &piece, env)? else {
                return Ok(Received::Handled);
            };
            env.pool().give(core::mem::replace(packet, whole));
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
            self.read_options(output, &arrival, packet, env.now())?;
        }
        packet.trim_front(header_bytes);
        self.deliver(output, &arrival, packet, env)
    }

    // spec: RFC8200 3, 4
    fn receive_ipv6(
        &mut self,
        output: &mut Output,
        link: LinkId,
        is_to_our_card: bool,
        packet: &mut Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        if !output.paths().interface(link).is_some_and(|interface| interface.config().ipv6) {
            return Err(Drop::UnknownProtocol);
        }
        let view = Ipv6View::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
        let header = Ipv6Header::parse(&view);
        let (source, destination) = (IpAddr::V6(header.source), IpAddr::V6(header.destination));
        let total_length = view.total_length();
        let target = self.check_addresses(output.paths(), link, source, destination, is_to_our_card, true);
        packet.truncate(total_length);
        if target == Err(Drop::NotForUs)
            && is_to_our_card
            && let Ok(mut forwarder) = self.forwarder(output)
        {
            forwarder.refuse_beyond_scope(link, source, destination, packet, env);
        }
        let target = target?;
        if packet.is_unfinished() && target == Target::Others {
            return self.receive_finished(output, link, packet, env);
        }
        if target == Target::Others {
            return self.forwarder(output)?.forward_ipv6(link, packet, env);
        }
        let mut was_fragmented = false;
        // A second round for a datagram put together; a fragment within a datagram gets no third.
        for _ in 0..2 {
            let view = Ipv6View::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
            let dscp_ecn = view.dscp_ecn();
            let upper = match ipv6::walk(&view) {
                Ok(upper) => upper,
                Err(error) => return Err(self.refuse_extension(output, link, error, packet, target, env)),
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
                return self.deliver(output, &arrival, packet, env);
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
            let Some(whole) = self.reassemble(output, key, &piece, env)? else {
                return Ok(Received::Handled);
            };
            env.pool().give(core::mem::replace(packet, whole));
        }
        Err(Drop::Fragment)
    }
    fn refuse_extension(
        &mut self,
        output: &mut Output,
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
            output.send_error(link, error, packet.bytes(), env);
        }
        Drop::BadOption
    }
    /// Whether a packet may come from its source and is for us.
    // spec: RFC1122 3.2.1.3-3, 3.2.1.3-4, 3.2.1.3-6
    fn check_addresses(
        &self,
        paths: &Paths,
        link: LinkId,
        source: IpAddr,
        destination: IpAddr,
        is_to_our_card: bool,
        may_be_unspecified: bool,
    ) -> Result<Target, Drop> {
        let interface = paths.interface(link).ok_or(Drop::NotForUs)?;
        if interface.is_loopback() {
            let both = paths.is_local(source) && paths.is_local(destination);
            return if both { Ok(Target::Us) } else { Err(Drop::NotForUs) };
        }
        let may_be_source = if source.is_unspecified() {
            may_be_unspecified
        } else {
            scope::is_unicast(source)
                && !scope::is_loopback(source)
                && !interface.owns(source)
                && (self.forwarding.is_none() || !paths.is_local(source))
                && !interface.is_broadcast(source)
        };
        if !may_be_source {
            return Err(Drop::BadSource);
        }
        let target = target_of(interface, destination)
            .or_else(|| self.target_beyond(paths, link, source, destination))
            .ok_or(Drop::NotForUs)?;
        // A packet to one host in a frame to all is a mistake or an attack.
        // spec: RFC1122 3.3.6-4
        if target != Target::Many && !is_to_our_card {
            return Err(Drop::NotForUs);
        }
        Ok(target)
    }
    /// The target in a router of a packet whose destination is not an address of the link by which it came: us, by an
    /// address on another link, or others.
    // spec: RFC1812 5.2.3
    fn target_beyond(
        &self,
        paths: &Paths,
        link: LinkId,
        source: IpAddr,
        destination: IpAddr,
    ) -> Option<Target> {
        self.forwarding?;
        if link != LinkId(0) && scope::is_forwardable(source) && paths.has_forwarded(destination) {
            return Some(Target::Others);
        }
        if paths.interfaces().is_reachable_own(destination) {
            return Some(Target::Us);
        }
        let may = !paths.is_local(destination) && self.may_forward(paths, link, source, destination);
        may.then_some(Target::Others)
    }
    /// Whether we are a router, and a packet that came in by `link` to our card may go on from `source` to `destination`.
    // spec: RFC1812 5.3.7, 5.3.4, 4.2.2.11; RFC1122 3.1-1, 3.1-2, 3.1-3
    fn may_forward(&self, paths: &Paths, link: LinkId, source: IpAddr, destination: IpAddr) -> bool {
        self.forwarding.is_some()
            && link != LinkId(0)
            && scope::is_forwardable(source)
            && scope::is_forwardable(destination)
            && !paths.is_local(source)
            && !paths.interfaces().is_broadcast(destination)
    }
    /// Delivers a whole datagram to the protocol that it carries.
    fn deliver(
        &mut self,
        output: &mut Output,
        arrival: &Arrival,
        packet: &mut Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        let is_ipv4 = arrival.source.is_ipv4();
        match arrival.protocol {
            protocol::ICMPV4 if is_ipv4 => self.receive_icmpv4(output, arrival, packet, env),
            protocol::ICMPV6 if !is_ipv4 => self.receive_icmpv6(output, arrival, packet, env),
            protocol::IGMP if is_ipv4 => {
                let mut link = output.paths_mut().link(arrival.link).ok_or(Drop::NotForUs)?;
                link.interface_mut().receive_igmp(packet.bytes(), env).map(|()| Received::Handled)
            }
            protocol::NO_NEXT_HEADER if !is_ipv4 => Ok(Received::Handled),
            // Only duplicate address detection and listener reports use the unspecified source.
            _ if arrival.source.is_unspecified() => Err(Drop::BadSource),
            _ => {
                output.paths_mut().count(arrival.link, |counters| counters.delivered_datagrams += 1);
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
        return interface.listens_to(destination).then_some(Target::Many);
    }
    if interface.owns(destination) {
        return Some(Target::Us);
    }
    if interface.is_broadcast(destination) {
        return Some(Target::Many);
    }
    interface.takes_any(destination).then_some(Target::Anybody)
}
