//! ICMP and ICMPv6 received: echo and timestamp requests, errors for transports, redirects.

use super::Input;
use crate::arrival::{Arrival, Target};
use crate::output::{EchoMessage, IcmpMessage, Output};
use crate::path::HeaderHow;
use crate::received::{EchoReply, EchoRequest, ErrorKind, Received, Redirect, TransportError};
use crate::routing::{IPV4_FLOOR_BYTES, plateau_below};
use crate::{IpEnvironment, SendDatagramError};
use inhost_base::{IpAddr, Ipv6Addr};
use inhost_buf::Packet;
use inhost_event::Drop;
use inhost_wire::icmpv4::{self, Icmpv4Message, Icmpv4View, TimeExceededCode, Times};
use inhost_wire::icmpv6::{self, Icmpv6Message, Icmpv6View};
use inhost_wire::ipv6;
use inhost_wire::ndp::{NdpMessage, NdpOptions};
use inhost_wire::quoted::Quoted;

impl Input {
    pub(super) fn receive_icmpv4(
        &mut self,
        output: &mut Output,
        arrival: &Arrival,
        packet: &mut Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        let view = Icmpv4View::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
        // spec: RFC792
        if !view.checksum_ok() {
            return Err(Drop::Checksum);
        }
        let message = Icmpv4Message::parse(&view);
        match message {
            Icmpv4Message::EchoRequest { identifier, sequence, data } => {
                // To a broadcast only where that is asked for, since it amplifies (RFC 1122 §3.2.2.6 leaves the choice).
                if arrival.target == Target::Many && !self.answer_broadcast_echoes {
                    return Err(Drop::NotForUs);
                }
                if answers_echo(output, arrival) {
                    self.answer_echo(output, arrival, EchoMessage { identifier, sequence, data }, env);
                    return Ok(Received::Handled);
                }
                packet.trim_front(icmpv4::LENGTH);
                Ok(echo_request(arrival, identifier, sequence))
            }
            // spec: RFC1122 3.2.2.6-5
            Icmpv4Message::EchoReply { .. } if arrival.target == Target::Many => Err(Drop::NotForUs),
            Icmpv4Message::EchoReply { identifier, sequence, .. } => {
                packet.trim_front(icmpv4::LENGTH);
                Ok(echo_reply(arrival, identifier, sequence))
            }
            Icmpv4Message::Redirect { gateway, .. } => {
                let quoted = message.quoted().ok_or(Drop::Malformed)?;
                self.check_quoted(arrival, &quoted)?;
                let (link, from, next_hop) = (arrival.link, arrival.source, IpAddr::V4(gateway));
                Ok(Received::Redirect(Redirect { link, from, quoted, next_hop, hardware: None }))
            }
            Icmpv4Message::DestinationUnreachable { .. }
            | Icmpv4Message::TimeExceeded { .. }
            | Icmpv4Message::ParameterProblem { .. } => {
                let quoted = message.quoted().ok_or(Drop::Malformed)?;
                let (kind, mtu_bytes) = kind_v4(&message, &quoted).ok_or(Drop::UnknownProtocol)?;
                self.pass_error(output, arrival, quoted, kind, mtu_bytes)
            }
            Icmpv4Message::TimestampRequest(times) => {
                self.answer_timestamp(output, arrival, times, env).map(|()| Received::Handled)
            }
            // Nobody here asks.
            Icmpv4Message::TimestampReply(_) => Err(Drop::NotCredible),
            // Queries retired by RFC 6918 and RFC 7126, and unknown types, are silently discarded.
            // spec: RFC1122 3.2.2-1, 3.2.2.7-1, 3.2.2.9-2
            // Source quench is one of these (RFC 6633).
            // spec: RFC9293 MUST-55
            Icmpv4Message::Other { .. } => Err(Drop::UnknownProtocol),
        }
    }
    // spec: RFC4443 2.4
    pub(super) fn receive_icmpv6(
        &mut self,
        output: &mut Output,
        arrival: &Arrival,
        packet: &mut Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        let (IpAddr::V6(source), IpAddr::V6(destination)) = (arrival.source, arrival.destination) else {
            return Err(Drop::Malformed);
        };
        let view = Icmpv6View::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
        // spec: RFC4443 2.3
        if !view.checksum_ok(source, destination) {
            return Err(Drop::Checksum);
        }
        let message = Icmpv6Message::parse(&view).map_err(|_| Drop::Malformed)?;
        let is_from_nobody = arrival.source.is_unspecified();
        match message {
            Icmpv6Message::Ndp(message) => {
                if output.paths().interface(arrival.link).is_none_or(|link| link.hardware().is_none())
                    && !matches!(message, NdpMessage::RouterAdvertisement { .. })
                {
                    // Between two ends nothing is resolved.
                    return Ok(Received::Handled);
                }
                let mut link = output.paths_mut().link(arrival.link).ok_or(Drop::NotForUs)?;
                link.receive_ndp(arrival, (source, destination), &message, env)?;
                match message {
                    NdpMessage::Redirect { target, destination, options } => {
                        self.redirect_v6(arrival, target, destination, &options)
                    }
                    _ => Ok(Received::Handled),
                }
            }
            Icmpv6Message::Mld(message) => {
                let mut link = output.paths_mut().link(arrival.link).ok_or(Drop::NotForUs)?;
                link.interface_mut().receive_mld(arrival, source, &message, env)?;
                Ok(Received::Handled)
            }
            _ if is_from_nobody => Err(Drop::BadSource),
            Icmpv6Message::EchoRequest { identifier, sequence, data } => {
                if !answers_echo(output, arrival) {
                    packet.trim_front(icmpv6::LENGTH);
                    return Ok(echo_request(arrival, identifier, sequence));
                }
                self.answer_echo(output, arrival, EchoMessage { identifier, sequence, data }, env);
                Ok(Received::Handled)
            }
            Icmpv6Message::EchoReply { .. } if arrival.target == Target::Many => Err(Drop::NotForUs),
            Icmpv6Message::EchoReply { identifier, sequence, .. } => {
                packet.trim_front(icmpv6::LENGTH);
                Ok(echo_reply(arrival, identifier, sequence))
            }
            Icmpv6Message::PacketTooBig { mtu, .. } if (mtu as usize) < ipv6::MINIMUM_MTU_BYTES => {
                // spec: RFC8201 4
                Err(Drop::NotCredible)
            }
            Icmpv6Message::DestinationUnreachable { .. }
            | Icmpv6Message::PacketTooBig { .. }
            | Icmpv6Message::TimeExceeded { .. }
            | Icmpv6Message::ParameterProblem { .. } => {
                let quoted = message.quoted().ok_or(Drop::Malformed)?;
                let (kind, mtu_bytes) = kind_v6(&message).ok_or(Drop::UnknownProtocol)?;
                self.pass_error(output, arrival, quoted, kind, mtu_bytes)
            }
            // spec: RFC4443 2.4 (b)
            Icmpv6Message::Other { .. } => Err(Drop::UnknownProtocol),
        }
    }
    /// Queues the answer to a request, from the address that was asked.
    // spec: RFC1122 3.2.2.6-1, 3.2.2.6-3, 3.2.2.6-4; RFC4443 4.2
    fn answer_echo(
        &mut self,
        output: &mut Output,
        arrival: &Arrival,
        echo: EchoMessage<'_>,
        env: &mut IpEnvironment<'_>,
    ) {
        // The answer to a group's request comes from the address that suits, and not at any rate.
        // spec: RFC1122 3.3.4.2-1
        let source = Some(arrival.destination).filter(|_| arrival.target != Target::Many);
        if source.is_none() && !output.is_within_limit(env.now(), env.random()) {
            return;
        }
        let Ok((path, options)) = self.return_path(output.paths_mut(), arrival, source, env.now()) else {
            return;
        };
        if output.echo_reply(&path, options.as_ref(), &echo, env).is_ok() {
            output.paths_mut().count(arrival.link, |counters| counters.answered_echoes += 1);
        }
    }
    /// Queues the answer to a question for the time, as often as errors may be sent.
    // spec: RFC1122 3.2.2.8-2
    fn answer_timestamp(
        &mut self,
        output: &mut Output,
        arrival: &Arrival,
        asked: Times,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), Drop> {
        if arrival.target != Target::Us || !self.answer_timestamps {
            return Err(Drop::UnknownProtocol);
        }
        if !output.is_within_limit(env.now(), env.random()) {
            return Err(Drop::RateLimited);
        }
        let (path, options) = self
            .return_path(output.paths_mut(), arrival, Some(arrival.destination), env.now())
            .map_err(|_| Drop::NoRoute)?;
        let time = output.clock().time_of_day(env.now());
        let times = Times { receive: time, transmit: time, ..asked };
        let reply = IcmpMessage::V4(Icmpv4Message::TimestampReply(times));
        let how = HeaderHow::new(reply.protocol());
        let queued = output.queue_message(&path, &how, options.as_ref(), &reply, env);
        if queued == Err(SendDatagramError::NoMemory) {
            return Err(Drop::NoMemory);
        }
        if queued.is_ok() {
            output.paths_mut().count(arrival.link, |counters| counters.answered_timestamps += 1);
        }
        Ok(())
    }
    /// Whether the quoted packet may have been ours: the error came to the address that it is about.
    // spec: RFC5927 4
    fn check_quoted(&self, arrival: &Arrival, quoted: &Quoted) -> Result<(), Drop> {
        let is_for_one = arrival.target != Target::Many;
        let is_same =
            quoted.source == arrival.destination && quoted.source.is_ipv4() == arrival.source.is_ipv4();
        if is_for_one && is_same { Ok(()) } else { Err(Drop::NotCredible) }
    }
    /// An ICMPv6 redirect that passed the checks of neighbour discovery. One without a quoted packet cannot be verified
    /// and is dropped; a router quotes as much as fits (RFC 4861 §8.2).
    // spec: RFC4861 8.1
    fn redirect_v6(
        &self,
        arrival: &Arrival,
        target: Ipv6Addr,
        destination: Ipv6Addr,
        options: &NdpOptions<'_>,
    ) -> Result<Received, Drop> {
        let quoted = options.redirected.and_then(Quoted::of_ipv6).ok_or(Drop::NotCredible)?;
        self.check_quoted(arrival, &quoted)?;
        if quoted.destination != destination {
            return Err(Drop::NotCredible);
        }
        Ok(Received::Redirect(Redirect {
            link: arrival.link,
            from: arrival.source,
            quoted,
            next_hop: target.into(),
            hardware: options.target_link_layer,
        }))
    }
    // spec: RFC1122 3.2.2-3, 3.4-3; RFC4443 2.4 (d)
    fn pass_error(
        &mut self,
        output: &mut Output,
        arrival: &Arrival,
        quoted: Quoted,
        kind: ErrorKind,
        mtu_bytes: Option<u16>,
    ) -> Result<Received, Drop> {
        self.check_quoted(arrival, &quoted)?;
        output.paths_mut().count(arrival.link, |counters| counters.received_errors += 1);
        Ok(Received::Error(TransportError {
            link: arrival.link,
            reporter: arrival.source,
            quoted,
            kind,
            soft: kind.is_soft(),
            mtu_bytes,
        }))
    }
}

fn echo_reply(arrival: &Arrival, identifier: u16, sequence: u16) -> Received {
    Received::EchoReply(EchoReply {
        link: arrival.link,
        source: arrival.source,
        destination: arrival.destination,
        identifier,
        sequence,
        hop_limit: arrival.hop_limit,
    })
}

/// Whether an echo request is answered here, and not by a gateway above.
fn answers_echo(output: &Output, arrival: &Arrival) -> bool {
    let any = || output.paths().interface(arrival.link).is_some_and(|own| own.config().answer_any_echo);
    arrival.target != Target::Anybody || any()
}

fn echo_request(arrival: &Arrival, identifier: u16, sequence: u16) -> Received {
    Received::EchoRequest(EchoRequest {
        link: arrival.link,
        source: arrival.source,
        destination: arrival.destination,
        identifier,
        sequence,
    })
}

// spec: RFC1122 3.2.2.1-2, 3.2.2.4-1, 3.2.2.5-2
fn kind_v4(message: &Icmpv4Message<'_>, quoted: &Quoted) -> Option<(ErrorKind, Option<u16>)> {
    use icmpv4::UnreachableCode as Code;
    let kind = match *message {
        Icmpv4Message::DestinationUnreachable { code: Code::FragmentationNeeded, next_hop_mtu, .. } => {
            // spec: RFC1191 5, 7.1
            let refused = u16::try_from(quoted.packet_length).unwrap_or(u16::MAX);
            let mtu = if next_hop_mtu == 0 { plateau_below(refused) } else { next_hop_mtu };
            return Some((ErrorKind::PacketTooBig, Some(mtu.max(IPV4_FLOOR_BYTES))));
        }
        Icmpv4Message::DestinationUnreachable { code, .. } => match code {
            Code::Protocol => ErrorKind::ProtocolUnreachable,
            Code::Port => ErrorKind::PortUnreachable,
            Code::Network | Code::NetworkUnknown | Code::NetworkForService => ErrorKind::NetworkUnreachable,
            Code::NetworkProhibited
            | Code::HostProhibited
            | Code::Prohibited
            | Code::PrecedenceViolation
            | Code::PrecedenceCutoff => ErrorKind::Prohibited,
            _ => ErrorKind::HostUnreachable,
        },
        Icmpv4Message::TimeExceeded { code: TimeExceededCode::InTransit, .. } => ErrorKind::TimeExceeded,
        Icmpv4Message::TimeExceeded { .. } => ErrorKind::ReassemblyTimeExceeded,
        Icmpv4Message::ParameterProblem { .. } => ErrorKind::ParameterProblem,
        _ => return None,
    };
    Some((kind, None))
}

// spec: RFC4443 3
fn kind_v6(message: &Icmpv6Message<'_>) -> Option<(ErrorKind, Option<u16>)> {
    use icmpv6::UnreachableCode as Code;
    let kind = match *message {
        Icmpv6Message::PacketTooBig { mtu, .. } => {
            return Some((ErrorKind::PacketTooBig, Some(u16::try_from(mtu).unwrap_or(u16::MAX))));
        }
        Icmpv6Message::DestinationUnreachable { code, .. } => match code {
            Code::NoRoute => ErrorKind::NetworkUnreachable,
            Code::Prohibited | Code::SourcePolicy | Code::RouteRejected => ErrorKind::Prohibited,
            Code::Port => ErrorKind::PortUnreachable,
            _ => ErrorKind::HostUnreachable,
        },
        Icmpv6Message::TimeExceeded { code: TimeExceededCode::InTransit, .. } => ErrorKind::TimeExceeded,
        Icmpv6Message::TimeExceeded { .. } => ErrorKind::ReassemblyTimeExceeded,
        Icmpv6Message::ParameterProblem { code: 1, .. } => ErrorKind::ProtocolUnreachable,
        Icmpv6Message::ParameterProblem { .. } => ErrorKind::ParameterProblem,
        _ => return None,
    };
    Some((kind, None))
}
