//! ICMP errors sent: when one is allowed, and how much of the invoking packet it quotes.

use super::{IcmpMessage, Output};
use crate::interface::Interface;
use crate::path::HeaderHow;
use crate::received::Datagram;
use crate::{IpEnvironment, scope};
use inhost_base::{IpAddr, LinkId};
use inhost_buf::Packet;
use inhost_event::Drop;
use inhost_wire::icmpv4::{self, Icmpv4Message, Icmpv4View};
use inhost_wire::icmpv6::{self, Icmpv6Message};
use inhost_wire::ipv4::{BadOption, Ipv4Header, Ipv4View};
use inhost_wire::ipv6::{self, Ipv6View};
use inhost_wire::protocol;

/// The longest IPv4 error, IP header included (RFC 1812 §4.3.2.3).
const IPV4_LONGEST_BYTES: usize = 576;
/// The longest IPv6 error, IP header included (RFC 4443 §2.4 (c)).
const IPV6_LONGEST_BYTES: usize = 1280;

/// The precedence of routers' errors (RFC 1812 §4.3.2.5), as differentiated services.
const INTERNETWORK_CONTROL: u8 = 6 << 5;

/// Why a gateway refuses a packet that it took for another host, as it tells the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Unreachable {
    /// Nobody has the port: as the host itself says it, from the address that was meant.
    #[default]
    Port,
    /// The host cannot be reached: as a router says it.
    Host,
    /// It is forbidden (administratively prohibited): as a router with a filter says it.
    Prohibited,
}

impl From<Unreachable> for IcmpError {
    fn from(why: Unreachable) -> IcmpError {
        match why {
            Unreachable::Port => IcmpError::PortUnreachable,
            Unreachable::Host => IcmpError::HostUnreachable,
            Unreachable::Prohibited => IcmpError::Prohibited,
        }
    }
}

/// An ICMP error to send, for both families.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IcmpError {
    PortUnreachable,
    /// Where, from the start of the IP header, the protocol is named.
    ProtocolUnreachable {
        named_at: u32,
    },
    ReassemblyTimeExceeded,
    /// Of a packet for another: its hops are spent.
    TimeExceeded,
    /// Of a packet for another: no route leads there.
    NetworkUnreachable,
    /// Of a packet for another: its next hop does not answer.
    HostUnreachable,
    /// Of a packet for another: it is forbidden.
    Prohibited,
    /// Of a packet for another: the next link takes no more.
    TooBig {
        mtu_bytes: u16,
    },
    /// Of a packet for another, of IPv6 only: its link-local source means nothing there.
    BeyondScope,
    /// Of IPv4 only: the next hop of its source route cannot be reached, or must not.
    SourceRouteFailed,
    ParameterProblem {
        code: u8,
        pointer: u32,
    },
}

impl IcmpError {
    /// Whether it is about a packet that was not for us.
    fn is_of_a_router(self) -> bool {
        matches!(
            self,
            IcmpError::TimeExceeded
                | IcmpError::NetworkUnreachable
                | IcmpError::HostUnreachable
                | IcmpError::Prohibited
                | IcmpError::TooBig { .. }
                | IcmpError::BeyondScope
        )
    }
}

impl Output {
    /// Sends an error about a received datagram; see [`crate::Ip::port_unreachable`].
    pub(crate) fn send_datagram_error(
        &mut self,
        datagram: &Datagram,
        error: IcmpError,
        (packet, length_bytes): (&mut Packet, usize),
        env: &mut IpEnvironment<'_>,
    ) {
        let header_bytes = usize::from(datagram.header_bytes);
        if !datagram.to_unicast || packet.prepend(header_bytes).is_none() {
            return;
        }
        // Bytes beyond the datagram's length are not quoted.
        self.send_error_quoting(datagram.link, error, packet.bytes(), header_bytes + length_bytes, env);
        packet.trim_front(header_bytes);
    }
    /// Queues an error about `invoking`, a packet from its IP header on, which came in by `link`.
    // spec: RFC1122 3.2.2-2, 3.2.2-4, 3.3.8-1; RFC4443 2.4
    pub(crate) fn send_error(
        &mut self,
        link: LinkId,
        error: IcmpError,
        invoking: &[u8],
        env: &mut IpEnvironment<'_>,
    ) {
        self.send_error_quoting(link, error, invoking, usize::MAX, env);
    }
    /// Refuses a packet that came in by `link`: sends an ICMP error, and returns why it is dropped.
    pub(crate) fn refuse(
        &mut self,
        link: LinkId,
        why: Drop,
        error: IcmpError,
        packet: &Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Drop {
        self.send_error(link, error, packet.bytes(), env);
        why
    }
    /// Refuses a packet for its options, and names the byte of them that is wrong.
    // spec: RFC1122 3.2.2.5-1
    pub(crate) fn refuse_option(
        &mut self,
        link: LinkId,
        bad: BadOption,
        packet: &Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Drop {
        let error = IcmpError::ParameterProblem { code: 0, pointer: u32::from(bad.pointer) };
        self.refuse(link, Drop::BadOption, error, packet, env)
    }
    /// The same as [`Output::send_error`], with at most so many bytes quoted.
    fn send_error_quoting(
        &mut self,
        link: LinkId,
        error: IcmpError,
        invoking: &[u8],
        quoted_bytes: usize,
        env: &mut IpEnvironment<'_>,
    ) {
        let is_multicast_allowed = matches!(error, IcmpError::ParameterProblem { .. })
            && invoking.first().is_some_and(|byte| byte >> 4 == 6);
        let addresses =
            self.paths.interface(link).and_then(|link| link.may_send_error(invoking, is_multicast_allowed));
        let Some((reply_to, about)) = addresses else {
            return;
        };
        // A router answers on the link of the route to the source, from its address on that link.
        // spec: RFC1812 4.3.2.4
        let is_of_a_router = error.is_of_a_router();
        let any_address = self.paths.interface(link).is_some_and(|interface| interface.config().any_address);
        let is_ours =
            scope::is_unicast(about) && !is_of_a_router && (self.paths.is_local(about) || any_address);
        let source = Some(about).filter(|_| is_ours);
        let bound = Some(link).filter(|_| !is_of_a_router || scope::is_link_local(reply_to));
        let path = self.paths.route(reply_to, source, bound, env.now());
        // A link for any address may have none of its own: then who was meant says it.
        let path = match path {
            Err(_) if any_address && scope::is_unicast(about) => {
                self.paths.route(reply_to, Some(about), Some(link), env.now())
            }
            path => path,
        };
        let Ok(path) = path else { return };
        if !self.error_limits.allows_to(reply_to, env.now())
            || !self.error_limits.allows(env.now(), env.random())
        {
            self.paths.count(link, |counters| counters.suppressed_errors += 1);
            return;
        }
        let longest = if reply_to.is_ipv4() { IPV4_LONGEST_BYTES } else { IPV6_LONGEST_BYTES };
        let quote = (longest - path.ip_header_bytes() - icmpv4::LENGTH).min(quoted_bytes);
        let invoking = invoking.get(..quote).unwrap_or(invoking);
        let message = match path.destination {
            IpAddr::V4(_) => IcmpMessage::V4(error_message_v4(error, invoking)),
            IpAddr::V6(_) => IcmpMessage::V6(error_message_v6(error, invoking)),
        };
        // spec: RFC1812 4.3.2.5
        let is_marked = is_of_a_router || (self.errors_have_precedence && reply_to.is_ipv4());
        let dscp_ecn = if is_marked { INTERNETWORK_CONTROL } else { 0 };
        let how = HeaderHow { dscp_ecn, ..HeaderHow::new(message.protocol()) };
        let queued = self.queue_message(&path, &how, None, &message, env);
        if queued.is_ok() {
            self.paths.count(link, |counters| counters.sent_errors += 1);
        }
        self.paths.deadline_moved();
    }
}

impl Interface {
    /// Whether an error about this packet is allowed; if so, its source and destination.
    // spec: RFC1122 3.2.2-5, 3.2.2-6, 3.2.2-7, 3.2.2-8; RFC4443 2.4
    fn may_send_error(&self, invoking: &[u8], is_multicast_allowed: bool) -> Option<(IpAddr, IpAddr)> {
        let (source, destination, is_error) = match invoking.first()? >> 4 {
            4 => {
                let view = Ipv4View::new(invoking).ok()?;
                let header = Ipv4Header::parse(&view);
                if header.fragment_offset_bytes != 0 {
                    return None;
                }
                let is_error = header.protocol == protocol::ICMPV4
                    && Icmpv4View::new(view.payload())
                        .map_or(true, |icmp| Icmpv4Message::parse(&icmp).is_error());
                (IpAddr::V4(header.source), IpAddr::V4(header.destination), is_error)
            }
            6 => {
                let view = Ipv6View::new(invoking).ok()?;
                let upper = ipv6::walk(&view).ok();
                let is_later_part = upper
                    .is_some_and(|upper| upper.fragment.is_some_and(|fragment| fragment.offset_bytes != 0));
                if is_later_part {
                    return None;
                }
                let is_error = upper.is_some_and(|upper| {
                    // Types below 128 are errors, and nothing is said about redirects.
                    upper.protocol == protocol::ICMPV6
                        && upper.payload.first().is_none_or(|kind| *kind < 128 || *kind == 137)
                });
                (IpAddr::V6(view.source()), IpAddr::V6(view.destination()), is_error)
            }
            _ => return None,
        };
        let is_for_many = destination.is_multicast() || self.is_broadcast(destination);
        let is_single_source = scope::is_unicast(source) && !self.is_broadcast(source);
        let is_allowed = !is_error && is_single_source && (!is_for_many || is_multicast_allowed);
        is_allowed.then_some((source, destination))
    }
}

fn error_message_v4(error: IcmpError, invoking: &[u8]) -> Icmpv4Message<'_> {
    let unreachable = |code| Icmpv4Message::DestinationUnreachable { code, next_hop_mtu: 0, invoking };
    let exceeded = |code| Icmpv4Message::TimeExceeded { code, invoking };
    match error {
        IcmpError::PortUnreachable => unreachable(icmpv4::UnreachableCode::Port),
        IcmpError::ProtocolUnreachable { .. } => unreachable(icmpv4::UnreachableCode::Protocol),
        IcmpError::ReassemblyTimeExceeded => exceeded(icmpv4::TimeExceededCode::Reassembly),
        IcmpError::TimeExceeded => exceeded(icmpv4::TimeExceededCode::InTransit),
        IcmpError::NetworkUnreachable | IcmpError::BeyondScope => {
            unreachable(icmpv4::UnreachableCode::Network)
        }
        IcmpError::HostUnreachable => unreachable(icmpv4::UnreachableCode::Host),
        IcmpError::Prohibited => unreachable(icmpv4::UnreachableCode::Prohibited),
        // spec: RFC1191 4
        IcmpError::TooBig { mtu_bytes } => {
            let code = icmpv4::UnreachableCode::FragmentationNeeded;
            Icmpv4Message::DestinationUnreachable { code, next_hop_mtu: mtu_bytes, invoking }
        }
        IcmpError::SourceRouteFailed => unreachable(icmpv4::UnreachableCode::SourceRouteFailed),
        IcmpError::ParameterProblem { code, pointer } => {
            Icmpv4Message::ParameterProblem { code, pointer: pointer as u8, invoking }
        }
    }
}

fn error_message_v6(error: IcmpError, invoking: &[u8]) -> Icmpv6Message<'_> {
    let unreachable = |code| Icmpv6Message::DestinationUnreachable { code, invoking };
    let exceeded = |code| Icmpv6Message::TimeExceeded { code, invoking };
    let problem = |code, pointer| Icmpv6Message::ParameterProblem { code, pointer, invoking };
    match error {
        IcmpError::PortUnreachable => unreachable(icmpv6::UnreachableCode::Port),
        IcmpError::TimeExceeded => exceeded(icmpv4::TimeExceededCode::InTransit),
        IcmpError::NetworkUnreachable => unreachable(icmpv6::UnreachableCode::NoRoute),
        IcmpError::HostUnreachable | IcmpError::SourceRouteFailed => {
            unreachable(icmpv6::UnreachableCode::Address)
        }
        IcmpError::Prohibited => unreachable(icmpv6::UnreachableCode::Prohibited),
        IcmpError::BeyondScope => unreachable(icmpv6::UnreachableCode::BeyondScope),
        // spec: RFC4443 3.2
        IcmpError::TooBig { mtu_bytes } => {
            Icmpv6Message::PacketTooBig { mtu: u32::from(mtu_bytes), invoking }
        }
        // spec: RFC8200 4 (unrecognised next header)
        IcmpError::ProtocolUnreachable { named_at } => problem(1, named_at),
        IcmpError::ReassemblyTimeExceeded => exceeded(icmpv4::TimeExceededCode::Reassembly),
        IcmpError::ParameterProblem { code, pointer } => problem(code, pointer),
    }
}
