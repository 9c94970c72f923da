//! Datagrams, fragments and ICMP errors on the wire: made for the host under test, and read from it.

use crate::language::{Datagram, IcmpKind};
use crate::packet::{Ends, in_ip};
use crate::side::PEER_PORTS;
use inhost_base::IpAddr;
use inhost_wire::checksum::pseudo_header;
use inhost_wire::icmpv4::{Icmpv4Message, Icmpv4View, UnreachableCode as UnreachableV4};
use inhost_wire::icmpv6::{Icmpv6Message, Icmpv6View, UnreachableCode as UnreachableV6};
use inhost_wire::ipv4::Ipv4View;
use inhost_wire::ipv6::{self, Ipv6View};
use inhost_wire::protocol;
use inhost_wire::udp::{self, UdpHeader, UdpView};

/// Packets of a host other than TCP segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPacket {
    /// A whole datagram.
    Datagram(HostDatagram),
    /// A part of one.
    Fragment(HostFragment),
    /// An ICMP error.
    IcmpError(HostIcmpError),
}

/// A datagram that the host sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDatagram {
    /// Which peer it is for.
    pub peer: u8,
    /// The host's port.
    pub port: u16,
    /// The payload.
    pub payload: Vec<u8>,
    /// Checksum treatment.
    pub checksum: Summed,
}

/// A checksum of UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summed {
    /// It is right.
    Right,
    /// It is wrong.
    Wrong,
    /// The sender made none.
    Not,
}

impl Summed {
    /// In a word.
    pub fn text(self) -> &'static str {
        match self {
            Summed::Right => "right",
            Summed::Wrong => "wrong",
            Summed::Not => "none",
        }
    }
}

/// A part of a datagram that the host sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFragment {
    /// Where it begins in what IP carries.
    pub from: usize,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether others follow.
    pub more: bool,
    /// Key of a datagram's fragments.
    pub identification: u32,
}

/// An ICMP error that the host sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostIcmpError {
    /// Its type.
    pub kind: IcmpKind,
    /// The packet that it quotes, as far as it does.
    pub quoted: Vec<u8>,
    /// Whether the checksum is right.
    pub checksum_ok: bool,
}

/// The datagram, fragment or ICMP error in `packet`; `None` for other packets.
pub fn read(packet: &[u8], ends: Ends) -> Option<HostPacket> {
    let (number, payload, fragment) = match ends.peer {
        IpAddr::V4(peer) => {
            let view = Ipv4View::new(packet).ok().filter(|view| view.destination() == peer)?;
            let place =
                (usize::from(view.fragment_offset_bytes()), view.more_fragments(), view.identification());
            let fragment = view.is_fragment().then_some((place.0, place.1, u32::from(place.2)));
            (view.protocol(), view.payload(), fragment)
        }
        IpAddr::V6(peer) => {
            let view = Ipv6View::new(packet).ok().filter(|view| view.destination() == peer)?;
            let upper = ipv6::walk(&view).ok()?;
            let fragment =
                upper.fragment.map(|it| (usize::from(it.offset_bytes), it.more_fragments, it.identification));
            (upper.protocol, upper.payload, fragment)
        }
    };
    match (number, fragment) {
        (protocol::UDP, Some((from, more, identification))) => {
            Some(HostPacket::Fragment(HostFragment { from, bytes: payload.to_vec(), more, identification }))
        }
        (protocol::UDP, None) => read_datagram(payload, ends).map(HostPacket::Datagram),
        (protocol::ICMPV4 | protocol::ICMPV6, None) => {
            read_icmp_error(payload, ends).map(HostPacket::IcmpError)
        }
        _ => None,
    }
}

/// The datagram that IP carries.
pub fn read_datagram(payload: &[u8], ends: Ends) -> Option<HostDatagram> {
    let view = UdpView::new(payload).ok()?;
    let header = UdpHeader::parse(&view);
    let checksum = match (view.checksum(), view.checksum_ok(ends.host, ends.peer)) {
        (0, _) => Summed::Not,
        (_, true) => Summed::Right,
        (_, false) => Summed::Wrong,
    };
    Some(HostDatagram {
        peer: u8::try_from(header.destination_port.checked_sub(PEER_PORTS)?).ok()?,
        port: header.source_port,
        payload: view.payload().to_vec(),
        checksum,
    })
}

fn read_icmp_error(payload: &[u8], ends: Ends) -> Option<HostIcmpError> {
    let (kind, quoted, checksum_ok) = match (ends.host, ends.peer) {
        (IpAddr::V6(host), IpAddr::V6(peer)) => {
            let view = Icmpv6View::new(payload).ok()?;
            let (kind, quoted) = kind_v6(&Icmpv6Message::parse(&view).ok()?)?;
            (kind, quoted.to_vec(), view.checksum_ok(host, peer))
        }
        _ => {
            let view = Icmpv4View::new(payload).ok()?;
            let (kind, quoted) = kind_v4(&Icmpv4Message::parse(&view))?;
            (kind, quoted.to_vec(), view.checksum_ok())
        }
    };
    Some(HostIcmpError { kind, quoted, checksum_ok })
}
fn kind_v4<'a>(message: &Icmpv4Message<'a>) -> Option<(IcmpKind, &'a [u8])> {
    match *message {
        Icmpv4Message::DestinationUnreachable { code, next_hop_mtu, invoking } => {
            let kind = match code {
                UnreachableV4::Network => IcmpKind::NetworkUnreachable,
                UnreachableV4::Protocol => IcmpKind::ProtocolUnreachable,
                UnreachableV4::Port => IcmpKind::PortUnreachable,
                UnreachableV4::Prohibited => IcmpKind::Prohibited,
                UnreachableV4::FragmentationNeeded => IcmpKind::TooBig(u32::from(next_hop_mtu)),
                _ => IcmpKind::HostUnreachable,
            };
            Some((kind, invoking))
        }
        Icmpv4Message::TimeExceeded { invoking, .. } => Some((IcmpKind::TimeExceeded, invoking)),
        Icmpv4Message::ParameterProblem { invoking, .. } => Some((IcmpKind::ParameterProblem, invoking)),
        _ => None,
    }
}
fn kind_v6<'a>(message: &Icmpv6Message<'a>) -> Option<(IcmpKind, &'a [u8])> {
    match *message {
        Icmpv6Message::DestinationUnreachable { code, invoking } => {
            let kind = match code {
                UnreachableV6::NoRoute => IcmpKind::NetworkUnreachable,
                UnreachableV6::Port => IcmpKind::PortUnreachable,
                UnreachableV6::Prohibited => IcmpKind::Prohibited,
                _ => IcmpKind::HostUnreachable,
            };
            Some((kind, invoking))
        }
        Icmpv6Message::PacketTooBig { mtu, invoking } => Some((IcmpKind::TooBig(mtu), invoking)),
        Icmpv6Message::TimeExceeded { invoking, .. } => Some((IcmpKind::TimeExceeded, invoking)),
        Icmpv6Message::ParameterProblem { code: 1, invoking, .. } => {
            Some((IcmpKind::ProtocolUnreachable, invoking))
        }
        Icmpv6Message::ParameterProblem { invoking, .. } => Some((IcmpKind::ParameterProblem, invoking)),
        _ => None,
    }
}

/// The peer's datagram as an IP packet.
pub fn datagram(ends: Ends, said: &Datagram, payload: &[u8]) -> Vec<u8> {
    let length = said.length.unwrap_or((udp::LENGTH + payload.len()) as u16);
    let header = [PEER_PORTS + u16::from(said.peer), said.port, length, 0];
    let mut bytes: Vec<u8> = header.iter().flat_map(|field| field.to_be_bytes()).collect();
    bytes.extend_from_slice(payload);
    // What lies beyond the length is not a part of the datagram.
    let counted = bytes.get(..usize::from(length)).unwrap_or(&bytes);
    let sum =
        pseudo_header(ends.peer, ends.host, protocol::UDP, u32::from(length)).add_bytes(counted).finish();
    let sum = match (said.no_checksum, said.bad_checksum, sum) {
        (true, ..) => 0,
        (_, true, sum) => sum ^ 0x5555,
        (_, _, 0) => 0xffff,
        (.., sum) => sum,
    };
    bytes[6..8].copy_from_slice(&sum.to_be_bytes());
    in_ip(ends.peer, ends.host, protocol::UDP, 0, &bytes)
}
/// Delivery of the peer's datagram.
pub fn delivered<'a>(said: &Datagram, payload: &'a [u8]) -> &'a [u8] {
    let bytes = said.length.map_or(payload.len(), |length| usize::from(length).saturating_sub(udp::LENGTH));
    payload.get(..bytes).unwrap_or(payload)
}

/// A router's message of this kind that quotes `sent`, a packet of the host's.
pub fn icmp_about(ends: Ends, kind: IcmpKind, sent: &[u8]) -> Vec<u8> {
    // RFC 792: the header and eight bytes; RFC 4443: as much as fits.
    let most = if ends.host.is_ipv4() { 28 } else { 1232 };
    crate::packet::router_message(ends, kind, sent.get(..most).unwrap_or(sent))
}
