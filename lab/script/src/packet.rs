//! IP packets: made for the host under test, and read from it.

use crate::language::{About, Icmp, IcmpKind};
use crate::side::PEER_PORTS;
use inhost_base::{IpAddr, Ipv4Addr, Ipv6Addr, Sequence};
use inhost_wire::checksum::{self, Sum};
use inhost_wire::icmpv4::{
    Icmpv4Message, TimeExceededCode as TimeExceeded, UnreachableCode as UnreachableV4,
};
use inhost_wire::icmpv6::{Icmpv6Message, UnreachableCode as UnreachableV6};
use inhost_wire::ipv4::{self, Ipv4Header, Ipv4View};
use inhost_wire::ipv6::{self, Ipv6Header, Ipv6View};
use inhost_wire::tcp::{Flags, Segment, TcpHeader, TcpView, fill_checksum};
use inhost_wire::{Ecn, protocol};

/// The host under test and the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The host's address.
    pub host: IpAddr,
    /// The peer's address.
    pub peer: IpAddr,
}

impl Ends {
    /// The addresses of every script.
    pub fn new(is_ipv6: bool) -> Ends {
        if is_ipv6 {
            let host = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
            let peer = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
            Ends { host: host.into(), peer: peer.into() }
        } else {
            Ends { host: Ipv4Addr::new(10, 0, 0, 1).into(), peer: Ipv4Addr::new(10, 0, 0, 2).into() }
        }
    }
}

/// A segment that the host sent.
#[derive(Clone, Copy, Debug)]
pub struct HostSegment<'a> {
    /// Which peer it is for.
    pub peer: u8,
    /// The segment.
    pub segment: Segment<'a>,
    /// The mark in its IP header.
    pub ecn: Ecn,
    /// Whether both checksums are right.
    pub checksum_ok: bool,
}

/// The TCP segment in `packet`; `None` for other packets.
pub fn read(packet: &[u8], ends: Ends) -> Option<HostSegment<'_>> {
    let (payload, dscp_ecn, ip_ok) = match ends.peer {
        IpAddr::V4(peer) => {
            let view = Ipv4View::new(packet).ok()?;
            let is_it = view.protocol() == protocol::TCP && view.destination() == peer;
            is_it.then(|| (view.payload(), view.dscp_ecn(), view.checksum_ok()))?
        }
        IpAddr::V6(peer) => {
            let view = Ipv6View::new(packet).ok()?;
            let is_it = view.next_header() == protocol::TCP && view.destination() == peer;
            is_it.then(|| (view.payload(), view.dscp_ecn(), true))?
        }
    };
    let view = TcpView::new(payload).ok()?;
    let segment = Segment::parse(&view);
    let peer = u8::try_from(segment.destination_port.checked_sub(PEER_PORTS)?).ok()?;
    let checksum_ok = ip_ok && view.checksum_ok(ends.host, ends.peer);
    Some(HostSegment { peer, segment, ecn: Ecn::of(dscp_ecn), checksum_ok })
}

/// The peer's segment as an IP packet. `raw` is appended to the options and padded.
pub fn segment(ends: Ends, header: &TcpHeader, payload: &[u8], raw: &[u8], ecn: Ecn) -> Vec<u8> {
    let segment = header.with_payload(payload);
    let mut tcp = vec![0; segment.length()];
    segment.emit(ends.peer, ends.host, &mut tcp);
    if !raw.is_empty() {
        insert_options(&mut tcp, header.length(), raw, ends);
    }
    in_ip(ends.peer, ends.host, protocol::TCP, ecn.bits(), &tcp)
}
/// Spoils the last byte of the TCP checksum's field of a packet that [`segment`] made.
pub fn spoil_checksum(packet: &mut [u8]) {
    let ip_bytes =
        if packet.first().is_some_and(|first| first >> 4 == 6) { ipv6::LENGTH } else { ipv4::LENGTH };
    if let Some(byte) = packet.get_mut(ip_bytes + 17) {
        *byte ^= 0x55;
    }
}

fn insert_options(tcp: &mut Vec<u8>, header_bytes: usize, raw: &[u8], ends: Ends) {
    let mut raw = raw.to_vec();
    raw.resize(raw.len().next_multiple_of(4), 0);
    let words = (header_bytes + raw.len()) / 4;
    tcp.splice(header_bytes..header_bytes, raw);
    tcp[12] = ((words.min(15) as u8) << 4) | (tcp[12] & 0xf);
    let pseudo = checksum::pseudo_header(ends.peer, ends.host, protocol::TCP, tcp.len() as u32);
    fill_checksum(tcp, pseudo, Sum::of(&[]));
}

/// A router's message about the host's segment that begins with `sequence`, or about a datagram that need not have been
/// sent.
pub fn icmp(ends: Ends, icmp: &Icmp, sequence: Sequence, host_port: u16) -> Vec<u8> {
    let header = TcpHeader {
        source_port: host_port,
        destination_port: PEER_PORTS + u16::from(icmp.peer),
        sequence,
        flags: Flags::ACK,
        ..TcpHeader::default()
    };
    let quoted = match icmp.about {
        About::Datagram(port) => {
            let header = datagram_header(port, PEER_PORTS + u16::from(icmp.peer));
            let mut whole =
                in_ip(ends.host, ends.peer, protocol::UDP, 0, &[&header[..], &[0; 1400]].concat());
            // Its header says how long it was; what came after eight bytes of it is not quoted (RFC 792).
            whole.truncate(whole.len() - 1400);
            whole
        }
        About::Segment(_) | About::Sent(_) => {
            let mut quoted = vec![0; header.length()];
            header.emit(&mut quoted);
            in_ip(ends.host, ends.peer, protocol::TCP, 0, &quoted)
        }
    };
    router_message(ends, icmp.kind, &quoted)
}
/// A router's message that quotes this.
pub fn router_message(ends: Ends, kind: IcmpKind, quoted: &[u8]) -> Vec<u8> {
    match (ends.host, ends.peer) {
        (IpAddr::V6(host), IpAddr::V6(peer)) => {
            let message = message_v6(kind, quoted);
            let mut body = vec![0; message.length()];
            message.emit(peer, host, &mut body);
            in_ip(ends.peer, ends.host, protocol::ICMPV6, 0, &body)
        }
        _ => {
            let quoted = match kind {
                // Four bytes that are not used come first, which the other kinds' fields stand for.
                IcmpKind::SourceQuench => [&[0; 4], quoted].concat(),
                _ => quoted.to_vec(),
            };
            let message = message_v4(kind, &quoted);
            let mut body = vec![0; message.length()];
            message.emit(&mut body);
            in_ip(ends.peer, ends.host, protocol::ICMPV4, 0, &body)
        }
    }
}

/// The header of an empty datagram, without a checksum.
fn datagram_header(from: u16, to: u16) -> Vec<u8> {
    [from, to, 1408, 0].iter().flat_map(|field| field.to_be_bytes()).collect()
}

fn message_v4(kind: IcmpKind, invoking: &[u8]) -> Icmpv4Message<'_> {
    let unreachable = |code| Icmpv4Message::DestinationUnreachable { code, next_hop_mtu: 0, invoking };
    match kind {
        IcmpKind::NetworkUnreachable => unreachable(UnreachableV4::Network),
        IcmpKind::HostUnreachable => unreachable(UnreachableV4::Host),
        IcmpKind::ProtocolUnreachable => unreachable(UnreachableV4::Protocol),
        IcmpKind::PortUnreachable => unreachable(UnreachableV4::Port),
        IcmpKind::Prohibited => unreachable(UnreachableV4::Prohibited),
        IcmpKind::TimeExceeded => Icmpv4Message::TimeExceeded { code: TimeExceeded::InTransit, invoking },
        IcmpKind::ParameterProblem => Icmpv4Message::ParameterProblem { code: 0, pointer: 0, invoking },
        IcmpKind::SourceQuench => Icmpv4Message::Other { kind: 4, code: 0, body: invoking },
        IcmpKind::TooBig(mtu) => Icmpv4Message::DestinationUnreachable {
            code: UnreachableV4::FragmentationNeeded,
            next_hop_mtu: mtu.min(0xffff) as u16,
            invoking,
        },
    }
}
fn message_v6(kind: IcmpKind, invoking: &[u8]) -> Icmpv6Message<'_> {
    let unreachable = |code| Icmpv6Message::DestinationUnreachable { code, invoking };
    match kind {
        IcmpKind::NetworkUnreachable => unreachable(UnreachableV6::NoRoute),
        IcmpKind::HostUnreachable | IcmpKind::SourceQuench => unreachable(UnreachableV6::Address),
        IcmpKind::ProtocolUnreachable => Icmpv6Message::ParameterProblem { code: 1, pointer: 6, invoking },
        IcmpKind::PortUnreachable => unreachable(UnreachableV6::Port),
        IcmpKind::Prohibited => unreachable(UnreachableV6::Prohibited),
        IcmpKind::TimeExceeded => Icmpv6Message::TimeExceeded { code: TimeExceeded::InTransit, invoking },
        IcmpKind::ParameterProblem => Icmpv6Message::ParameterProblem { code: 0, pointer: 0, invoking },
        IcmpKind::TooBig(mtu) => Icmpv6Message::PacketTooBig { mtu, invoking },
    }
}

/// `payload` in an IP packet.
pub(crate) fn in_ip(
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    dscp_ecn: u8,
    payload: &[u8],
) -> Vec<u8> {
    let length = payload.len() as u16;
    let mut packet = vec![0; ipv6::LENGTH + payload.len()];
    let header_bytes = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut header = Ipv4Header::new(source, destination, protocol, length);
            header.dscp_ecn = dscp_ecn;
            header.emit(&mut packet)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut header = Ipv6Header::new(source, destination, protocol, length);
            header.dscp_ecn = dscp_ecn;
            header.emit(&mut packet)
        }
        _ => unreachable!("both ends are of one family"),
    };
    packet.truncate(header_bytes);
    packet.extend_from_slice(payload);
    packet
}
