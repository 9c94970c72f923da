//! Packets that the gateway reads and writes beside its stack: echo requests for other hosts, their replies, and ICMP
//! destination unreachable; and requests of TFTP in datagrams ([`tftp`]).

pub(crate) mod tftp;

use crate::config::Closed;
use inhost_base::{Endpoint, IpAddr};
use inhost_wire::icmpv4::{self, Icmpv4Message, Icmpv4View};
use inhost_wire::icmpv6::{self, Icmpv6Message, Icmpv6View};
use inhost_wire::ipv4::{self, Ipv4Header, Ipv4View};
use inhost_wire::ipv6::{self, Ipv6Header, Ipv6View};
use inhost_wire::udp::{self, UdpHeader};
use inhost_wire::{checksum::Sum, protocol};

/// Octets of the original packet quoted in an error: RFC 792 asks for eight bytes after the header, RFC 1812 for as
/// much as 576 bytes hold.
const QUOTED_BYTES: usize = 548;

/// An echo request from the guest to someone else than the gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct EchoRequest {
    pub(crate) from: IpAddr,
    pub(crate) to: IpAddr,
    pub(crate) identifier: u16,
    pub(crate) sequence: u16,
    pub(crate) data: Vec<u8>,
}

/// Decision on a packet from the guest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// The gateway's stack takes it.
    ForStack,
    /// It asks another for an echo.
    EchoElsewhere(EchoRequest),
    /// It is dropped: a broken or fragmented message to another, which nobody here could pass on.
    Nothing,
}

/// Looks at one packet.
pub(crate) fn classify(packet: &[u8], is_own: impl Fn(IpAddr) -> bool) -> Class {
    match packet.first().map(|first| first >> 4) {
        Some(4) => classify_v4(packet, is_own),
        Some(6) => classify_v6(packet, is_own),
        _ => Class::ForStack,
    }
}

fn classify_v4(packet: &[u8], is_own: impl Fn(IpAddr) -> bool) -> Class {
    let Ok(ip) = Ipv4View::new(packet) else { return Class::ForStack };
    let (from, to) = (IpAddr::V4(ip.source()), IpAddr::V4(ip.destination()));
    if ip.protocol() != protocol::ICMPV4 || is_own(to) || ip.destination().is_multicast() {
        return Class::ForStack;
    }
    if ip.is_fragment() || !ip.checksum_ok() {
        return Class::Nothing;
    }
    let Ok(view) = Icmpv4View::new(ip.payload()) else { return Class::Nothing };
    if !view.checksum_ok() {
        return Class::Nothing;
    }
    match Icmpv4Message::parse(&view) {
        Icmpv4Message::EchoRequest { identifier, sequence, data } => {
            Class::EchoElsewhere(EchoRequest { from, to, identifier, sequence, data: data.to_vec() })
        }
        // Errors concern what the gateway's stack sent in another's name; the rest it does not answer.
        message if message.is_error() => Class::ForStack,
        _ => Class::Nothing,
    }
}

fn classify_v6(packet: &[u8], is_own: impl Fn(IpAddr) -> bool) -> Class {
    let Ok(ip) = Ipv6View::new(packet) else { return Class::ForStack };
    let (from, to) = (IpAddr::V6(ip.source()), IpAddr::V6(ip.destination()));
    if is_own(to) || ip.destination().is_multicast() {
        return Class::ForStack;
    }
    match ip.next_header() {
        protocol::ICMPV6 => {}
        // An echo request in fragments, or behind other headers, would be answered by the stack in another's name.
        protocol::TCP | protocol::UDP => return Class::ForStack,
        _ => return Class::Nothing,
    }
    let Ok(view) = Icmpv6View::new(ip.payload()) else { return Class::Nothing };
    if !view.checksum_ok(ip.source(), ip.destination()) {
        return Class::Nothing;
    }
    match Icmpv6Message::parse(&view) {
        Ok(Icmpv6Message::EchoRequest { identifier, sequence, data }) => {
            Class::EchoElsewhere(EchoRequest { from, to, identifier, sequence, data: data.to_vec() })
        }
        Ok(message) if message.is_error() => Class::ForStack,
        // Neighbour discovery is to the stack, which knows what to believe.
        Ok(Icmpv6Message::Ndp(_)) => Class::ForStack,
        _ => Class::Nothing,
    }
}

/// The ICMP message that asks for the echo, as the system's echo sockets want it: identifier and checksum are theirs.
pub(crate) fn echo_message(request: &EchoRequest, sequence: u16) -> Vec<u8> {
    let mut message = vec![0; icmpv4::LENGTH + request.data.len()];
    let data = &request.data;
    let identifier = request.identifier;
    match (request.from, request.to) {
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            Icmpv6Message::EchoRequest { identifier, sequence, data }.emit(from, to, &mut message)
        }
        _ => Icmpv4Message::EchoRequest { identifier, sequence, data }.emit(&mut message),
    };
    message
}

/// The sequence number and the data of an echo reply, as the system's echo sockets give it.
pub(crate) fn echo_reply_parts(message: &[u8], is_v6: bool) -> Option<(u16, &[u8])> {
    if is_v6 {
        match Icmpv6Message::parse(&Icmpv6View::new(message).ok()?).ok()? {
            Icmpv6Message::EchoReply { sequence, data, .. } => Some((sequence, data)),
            _ => None,
        }
    } else {
        match Icmpv4Message::parse(&Icmpv4View::new(message).ok()?) {
            Icmpv4Message::EchoReply { sequence, data, .. } => Some((sequence, data)),
            _ => None,
        }
    }
}

/// The packet that answers `request` with `data`.
pub(crate) fn echo_reply(request: &EchoRequest, data: &[u8]) -> Vec<u8> {
    let EchoRequest { identifier, sequence, .. } = *request;
    message(
        request.to,
        request.from,
        Icmpv4Message::EchoReply { identifier, sequence, data },
        Icmpv6Message::EchoReply { identifier, sequence, data },
    )
}

/// Why a destination cannot be reached, in both families' words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unreachable {
    Prohibited,
    Host,
    Port,
}

impl From<Closed> for Unreachable {
    fn from(why: Closed) -> Self {
        match why {
            Closed::Nobody => Unreachable::Host,
            Closed::Policy | Closed::NotUnicast => Unreachable::Prohibited,
        }
    }
}

impl Unreachable {
    fn v4(self) -> icmpv4::UnreachableCode {
        match self {
            Unreachable::Prohibited => icmpv4::UnreachableCode::Prohibited,
            Unreachable::Host => icmpv4::UnreachableCode::Host,
            Unreachable::Port => icmpv4::UnreachableCode::Port,
        }
    }
    fn v6(self) -> icmpv6::UnreachableCode {
        match self {
            Unreachable::Prohibited => icmpv6::UnreachableCode::Prohibited,
            Unreachable::Host => icmpv6::UnreachableCode::Address,
            Unreachable::Port => icmpv6::UnreachableCode::Port,
        }
    }
}

/// The gateway's news that the destination of `invoking`, a packet of the guest's, cannot be reached.
pub(crate) fn unreachable(gateway: IpAddr, guest: IpAddr, why: Unreachable, invoking: &[u8]) -> Vec<u8> {
    let invoking = &invoking[..invoking.len().min(QUOTED_BYTES)];
    message(
        gateway,
        guest,
        Icmpv4Message::DestinationUnreachable { code: why.v4(), next_hop_mtu: 0, invoking },
        Icmpv6Message::DestinationUnreachable { code: why.v6(), invoking },
    )
}

/// The guest's echo request again, to be quoted.
pub(crate) fn quoted_echo(request: &EchoRequest) -> Vec<u8> {
    let EchoRequest { identifier, sequence, ref data, .. } = *request;
    message(
        request.from,
        request.to,
        Icmpv4Message::EchoRequest { identifier, sequence, data },
        Icmpv6Message::EchoRequest { identifier, sequence, data },
    )
}

/// A datagram of the guest's as far as an error must quote it: its headers.
pub(crate) fn quoted_datagram(from: Endpoint, to: Endpoint) -> Vec<u8> {
    let mut header = [0; udp::LENGTH];
    let ports = UdpHeader { source_port: from.port, destination_port: to.port };
    ports.emit(from.address, to.address, 0, Sum::ZERO, &mut header);
    packet(from.address, to.address, protocol::UDP, &header, 0)
}

fn message(from: IpAddr, to: IpAddr, v4: Icmpv4Message<'_>, v6: Icmpv6Message<'_>) -> Vec<u8> {
    match (from, to) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut body = vec![0; v6.length()];
            v6.emit(source, destination, &mut body);
            packet(from, to, protocol::ICMPV6, &body, 0)
        }
        _ => {
            let mut body = vec![0; v4.length()];
            v4.emit(&mut body);
            packet(from, to, protocol::ICMPV4, &body, 0)
        }
    }
}

/// An IP packet with `body`, whose header counts `more_bytes` that are not there. Empty when it does not fit one.
fn packet(from: IpAddr, to: IpAddr, protocol: u8, body: &[u8], more_bytes: usize) -> Vec<u8> {
    let Ok(length) = u16::try_from(body.len() + more_bytes) else { return Vec::new() };
    let (mut packet, header_bytes) = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut packet = vec![0; ipv4::LENGTH];
            let written = Ipv4Header::new(from, to, protocol, length).emit(&mut packet);
            (packet, written)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut packet = vec![0; ipv6::LENGTH];
            let written = Ipv6Header::new(from, to, protocol, length).emit(&mut packet);
            (packet, written)
        }
        _ => return Vec::new(),
    };
    if header_bytes == 0 {
        return Vec::new();
    }
    packet.extend_from_slice(body);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(from: &str, to: &str) -> EchoRequest {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        EchoRequest { from, to, identifier: 7, sequence: 9, data: b"hello".to_vec() }
    }

    #[test]
    fn echo_for_others_is_taken_out_and_answered_in_their_name() {
        let is_own =
            |address: IpAddr| address.to_string().ends_with(".2") || address.to_string().ends_with(":2");
        for (guest, gateway, other) in
            [("10.0.2.15", "10.0.2.2", "1.1.1.1"), ("fd00::15", "fd00::2", "2001:db8::1")]
        {
            let elsewhere = request(guest, other);
            let packet = quoted_echo(&elsewhere);
            assert_eq!(classify(&packet, is_own), Class::EchoElsewhere(elsewhere.clone()));
            assert_eq!(classify(&quoted_echo(&request(guest, gateway)), is_own), Class::ForStack);
            let mut broken = packet.clone();
            *broken.last_mut().unwrap() ^= 1;
            assert_eq!(classify(&broken, is_own), Class::Nothing);
            // The answer is what the request would be the other way round, but for its type.
            let reply = echo_reply(&elsewhere, b"hello");
            assert_eq!(reply.len(), packet.len());
            assert_eq!(classify(&reply, is_own), Class::Nothing);
            let asked = echo_message(&elsewhere, 1234);
            let header = packet.len() - asked.len();
            assert_eq!(echo_reply_parts(&reply[header..], guest.contains(':')), Some((9, &b"hello"[..])));
            assert_eq!(echo_reply_parts(&asked, guest.contains(':')), None);
            let news = unreachable(
                gateway.parse().unwrap(),
                guest.parse().unwrap(),
                Unreachable::Prohibited,
                &packet,
            );
            assert!(news.ends_with(&packet));
        }
    }

    #[test]
    fn a_quoted_datagram_tells_its_ports() {
        let packet = quoted_datagram(Endpoint::new([10, 0, 2, 15], 5000), Endpoint::new([1, 1, 1, 1], 53));
        assert_eq!(packet.len(), 28);
        assert_eq!(packet[2..4], 28u16.to_be_bytes());
        assert_eq!(
            (&packet[20..22], &packet[22..24]),
            (&5000u16.to_be_bytes()[..], &53u16.to_be_bytes()[..])
        );
    }

    #[test]
    fn everything_else_is_the_stacks() {
        let is_own = |_: IpAddr| false;
        assert_eq!(classify(&[], is_own), Class::ForStack);
        assert_eq!(classify(&[0x45; 10], is_own), Class::ForStack);
        let udp = packet("10.0.2.15".parse().unwrap(), "1.1.1.1".parse().unwrap(), 17, &[0; 20], 0);
        assert_eq!(classify(&udp, is_own), Class::ForStack);
    }
}
