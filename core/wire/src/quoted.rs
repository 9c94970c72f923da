//! The packet that an ICMP error quotes, parsed as far as its endpoints.

use crate::cursor::Reader;
use crate::ipv4::OptionPlaces;
use crate::ipv6::MAX_EXTENSION_HEADERS;
use crate::{ipv4, ipv6, protocol};
use inhost_base::{IpAddr, Ipv4Addr, Sequence};

/// The addresses, protocol and ports in the front of a quoted packet. Its lengths and checksums are not verified: the
/// quote is cut off, and routers change fields on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quoted {
    /// The sender of the quoted packet: this host, when the error is meant for it.
    pub source: IpAddr,
    /// Whom it was for; with a source route, whom it was for in the end.
    pub destination: IpAddr,
    /// The upper-layer protocol, as in [`crate::protocol`].
    pub protocol: u8,
    /// The port it came from, of TCP and UDP; of an echo message, its identifier; 0 when not quoted.
    pub source_port: u16,
    /// The port it was for, of TCP and UDP; of an echo message, its sequence number; 0 when not quoted.
    pub destination_port: u16,
    /// TCP's sequence number, when it is quoted.
    pub tcp_sequence: Option<Sequence>,
    /// Bytes of the whole packet, as its header said (RFC 1191 §5 estimates an MTU from it).
    pub packet_length: u32,
}

impl Quoted {
    /// Reads an IPv4 packet as quoted by ICMP: the header and at least 8 bytes. `None` when there is less than a
    /// header, options included: without it the destination of a source-routed packet is unknown.
    // spec: RFC1122 3.2.2-3
    pub fn of_ipv4(invoking: &[u8]) -> Option<Quoted> {
        let header: &[u8; 20] = invoking.first_chunk()?;
        let header_length = usize::from(header[0] & 0xf) * 4;
        if header[0] >> 4 != 4 || header_length < header.len() {
            return None;
        }
        let mut r = Reader::new(header);
        r.bytes(2)?;
        let packet_length = u32::from(r.u16()?);
        r.bytes(2)?;
        let is_first = r.u16()? & 0x1fff == 0;
        r.u8()?;
        let protocol = r.u8()?;
        r.bytes(2)?;
        let (source, destination) = (IpAddr::V4(r.ipv4()?), IpAddr::V4(r.ipv4()?));
        let destination = routed_to(invoking.get(..header_length)?).map_or(destination, IpAddr::V4);
        let upper = invoking.get(header_length..).filter(|_| is_first).unwrap_or(&[]);
        Some(Quoted::of_upper(source, destination, packet_length, protocol, upper))
    }

    /// Reads an IPv6 packet as quoted by ICMPv6: as much of it as fits. `None` when there is less than a header.
    pub fn of_ipv6(invoking: &[u8]) -> Option<Quoted> {
        let mut r = Reader::new(invoking);
        if r.u32()? >> 28 != 6 {
            return None;
        }
        let packet_length = u32::from(r.u16()?) + ipv6::LENGTH as u32;
        let next = r.u8()?;
        r.u8()?;
        let (source, destination) = (IpAddr::V6(r.ipv6()?), IpAddr::V6(r.ipv6()?));
        let (protocol, upper) = upper_layer(next, r);
        Some(Quoted::of_upper(source, destination, packet_length, protocol, upper))
    }

    fn of_upper(
        source: IpAddr,
        destination: IpAddr,
        packet_length: u32,
        protocol: u8,
        upper: &[u8],
    ) -> Quoted {
        let mut quoted = Quoted {
            source,
            destination,
            protocol,
            source_port: 0,
            destination_port: 0,
            tcp_sequence: None,
            packet_length,
        };
        let mut r = Reader::new(upper);
        match (protocol, r.u16(), r.u16()) {
            (protocol::TCP | protocol::UDP, Some(source_port), Some(destination_port)) => {
                quoted.source_port = source_port;
                quoted.destination_port = destination_port;
                if protocol == protocol::TCP {
                    quoted.tcp_sequence = r.u32().map(Sequence);
                }
            }
            (protocol::ICMPV4, Some(0x0800), Some(_)) | (protocol::ICMPV6, Some(0x8000), Some(_)) => {
                quoted.source_port = r.u16().unwrap_or(0);
                quoted.destination_port = r.u16().unwrap_or(0);
            }
            _ => {}
        }
        quoted
    }
}

/// Where a source route in a quoted header ends, which is what its sender calls the destination.
fn routed_to(header: &[u8]) -> Option<Ipv4Addr> {
    OptionPlaces::find(header.get(ipv4::LENGTH..)?).ok()?.source_route?.final_hop(header)
}

/// Steps over extension headers as far as they are quoted. The upper layer of a fragment that is not the
/// first is empty.
fn upper_layer(mut next: u8, mut r: Reader<'_>) -> (u8, &[u8]) {
    for _ in 0..MAX_EXTENSION_HEADERS {
        let mut ahead = r;
        let stepped = match next {
            protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION_OPTIONS => {
                (|| Some((ahead.u8()?, ahead.u8().and_then(|u| ahead.bytes(6 + 8 * usize::from(u)))?, true)))(
                )
            }
            protocol::FRAGMENT => (|| {
                let named = ahead.u8()?;
                ahead.u8()?;
                let is_first = ahead.u16()? & !7 == 0;
                Some((named, ahead.bytes(4)?, is_first))
            })(),
            _ => break,
        };
        match stepped {
            Some((named, _, true)) => (next, r) = (named, ahead),
            Some((named, _, false)) => return (named, &[]),
            None => return (next, &[]),
        }
    }
    (next, r.rest())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv4::Ipv4Header;
    use crate::ipv6::{Ipv6Header, emit_fragment_header, emit_mld_hop_by_hop};
    use crate::tcp::Segment;
    use inhost_base::Ipv6Addr;

    const A: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

    fn tcp_over_ipv4() -> Vec<u8> {
        let segment =
            Segment { source_port: 5, destination_port: 23, sequence: Sequence(9), ..Segment::default() };
        let mut packet = vec![0; 40];
        Ipv4Header::new(A, B, protocol::TCP, 20).emit(&mut packet);
        segment.emit(A.into(), B.into(), &mut packet[20..]);
        packet
    }

    #[test]
    fn eight_bytes_behind_the_header_name_the_connection() {
        // spec: RFC1122 3.2.2-3
        let packet = tcp_over_ipv4();
        let quoted = Quoted::of_ipv4(&packet[..28]).unwrap();
        let expected = Quoted {
            source: A.into(),
            destination: B.into(),
            protocol: protocol::TCP,
            source_port: 5,
            destination_port: 23,
            tcp_sequence: Some(Sequence(9)),
            packet_length: 40,
        };
        assert_eq!(quoted, expected);
        assert_eq!(Quoted::of_ipv4(&packet[..26]).unwrap().tcp_sequence, None);
        assert_eq!(Quoted::of_ipv4(&packet[..23]).unwrap().source_port, 0);
        assert_eq!(Quoted::of_ipv4(&packet[..19]), None);
        assert_eq!(Quoted::of_ipv6(&packet), None);
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let mut packet = tcp_over_ipv4();
        packet[7] = 1;
        let quoted = Quoted::of_ipv4(&packet).unwrap();
        assert_eq!((quoted.protocol, quoted.source_port, quoted.tcp_sequence), (protocol::TCP, 0, None));
    }

    #[test]
    fn extension_headers_are_stepped_over() {
        let mut packet = vec![0; 40 + 8 + 8 + 8];
        let source = Ipv6Addr::LOCALHOST;
        Ipv6Header::new(source, source, protocol::HOP_BY_HOP, 1200).emit(&mut packet);
        emit_mld_hop_by_hop(&mut packet[40..]);
        packet[40] = protocol::FRAGMENT;
        emit_fragment_header(protocol::ICMPV6, 0, true, 1, &mut packet[48..]);
        packet[56..64].copy_from_slice(&[128, 0, 0, 0, 0, 7, 0, 1]);
        let quoted = Quoted::of_ipv6(&packet).unwrap();
        assert_eq!((quoted.protocol, quoted.source_port, quoted.destination_port), (58, 7, 1));
        assert_eq!(quoted.packet_length, 1240);
        emit_fragment_header(protocol::ICMPV6, 8, true, 1, &mut packet[48..]);
        let quoted = Quoted::of_ipv6(&packet).unwrap();
        assert_eq!((quoted.protocol, quoted.source_port), (58, 0));
        assert_eq!(Quoted::of_ipv6(&packet[..45]).unwrap().protocol, protocol::HOP_BY_HOP);
    }
}
