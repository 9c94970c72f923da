//! A TCP segment in an IP packet without IP options, extension headers or fragmentation: the packet of the fast paths,
//! parsed and written in one step. The formats are those of [`crate::ipv4`], [`crate::ipv6`] and [`crate::tcp`].

mod emit;
mod next;

use crate::checksum::Sum;
use crate::ipv4::{self, Ipv4View};
use crate::ipv6::{self, Ipv6View};
use crate::tcp::{PlainHeader, TcpView};
use crate::{Ecn, protocol};
pub use emit::{FlowHeader, WrittenHeaders};
use inhost_base::{IpAddr, Ipv4Addr, Ipv6Addr};
pub use next::NextSegment;

/// The IP header of such a packet. It is valid, and names TCP.
#[derive(Clone, Copy, Debug)]
pub struct IpFront<'a> {
    /// The source address and the destination's, as they lie in front of the TCP header.
    addresses: &'a [u8],
    /// Differentiated services and ECN.
    dscp_ecn: u8,
    hop_limit: u8,
    ip_bytes: usize,
    total_bytes: usize,
}

impl<'a> IpFront<'a> {
    /// The IP header of a packet of which `packet` may have the headers alone.
    #[inline(always)]
    fn of(packet: &'a [u8]) -> Option<IpFront<'a>> {
        let (address_bytes, ip_bytes, total_bytes, dscp_ecn, hop_limit) = match packet.first()? {
            0x45 => {
                let ip = Ipv4View::of_front(packet).ok()?;
                if !ip.is_plain() || ip.protocol() != protocol::TCP || !ip.checksum_ok() {
                    return None;
                }
                (4, ipv4::LENGTH, ip.total_length(), ip.dscp_ecn(), ip.time_to_live())
            }
            0x60..0x70 => {
                let ip = Ipv6View::of_front(packet).ok()?;
                if ip.next_header() != protocol::TCP {
                    return None;
                }
                (16, ipv6::LENGTH, ip.total_length(), ip.dscp_ecn(), ip.hop_limit())
            }
            _ => return None,
        };
        let addresses = packet.get(ip_bytes - 2 * address_bytes..ip_bytes)?;
        Some(IpFront { addresses, dscp_ecn, hop_limit, ip_bytes, total_bytes })
    }
    /// Source and destination, if they are IPv4's.
    #[inline]
    pub fn addresses_v4(&self) -> Option<(Ipv4Addr, Ipv4Addr)> {
        let [source, destination] = *self.addresses.as_chunks::<4>().0 else { return None };
        Some((Ipv4Addr::from(source), Ipv4Addr::from(destination)))
    }
    /// Source and destination.
    #[inline]
    pub fn addresses(&self) -> (IpAddr, IpAddr) {
        if let Some((source, destination)) = self.addresses_v4() {
            return (source.into(), destination.into());
        }
        let address = |at: usize| self.addresses.get(at..).and_then(<[u8]>::first_chunk::<16>).copied();
        (
            Ipv6Addr::from(address(0).unwrap_or_default()).into(),
            Ipv6Addr::from(address(16).unwrap_or_default()).into(),
        )
    }
    /// The hop limit, or time to live.
    #[inline]
    pub fn hop_limit(&self) -> u8 {
        self.hop_limit
    }
    /// Bytes of the IP header.
    #[inline]
    pub fn ip_bytes(&self) -> usize {
        self.ip_bytes
    }
    /// Bytes of the packet; what follows is the link's padding.
    #[inline]
    pub fn total_bytes(&self) -> usize {
        self.total_bytes
    }
    /// The ECN field.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        Ecn::of(self.dscp_ecn)
    }
    /// Whether the TCP checksum of `packet`, which this was made of, is right.
    // spec: RFC9293 MUST-3
    #[inline]
    pub fn checksum_ok(&self, packet: &[u8]) -> bool {
        covered_is_valid(packet, self.ip_bytes - self.addresses.len(), self.ip_bytes, self.total_bytes)
    }
}

/// Whether the TCP checksum of the segment from `transport` to `end` in `frame` is right. The addresses, which it covers
/// too, lie in front of it, from `addresses` on.
#[inline]
fn covered_is_valid(frame: &[u8], addresses: usize, transport: usize, end: usize) -> bool {
    let Some(covered) = frame.get(addresses..end) else { return false };
    let segment_bytes = (end - transport) as u32;
    Sum::of(covered).add_u32(segment_bytes + u32::from(protocol::TCP)).is_valid()
}

/// Such a packet with any TCP header. The TCP checksum is not checked.
#[derive(Clone, Copy, Debug)]
pub struct TcpPacket<'a> {
    /// The IP header.
    pub ip: IpFront<'a>,
    /// The segment.
    pub tcp: TcpView<'a>,
}

impl<'a> TcpPacket<'a> {
    /// Reads a packet from its IP header on.
    #[inline]
    pub fn of(packet: &'a [u8]) -> Option<TcpPacket<'a>> {
        let ip = IpFront::of(packet)?;
        let tcp = TcpView::new(packet.get(ip.ip_bytes..ip.total_bytes)?).ok()?;
        Some(TcpPacket { ip, tcp })
    }
    /// Bytes of both headers.
    #[inline]
    pub fn header_bytes(&self) -> usize {
        self.ip.ip_bytes + self.tcp.header_length()
    }
}

/// Such a packet with a plain TCP header and without a congestion mark, as established connections exchange. The TCP
/// checksum is not checked.
#[derive(Clone, Copy, Debug)]
pub struct PlainPacket<'a> {
    /// The IP header.
    pub ip: IpFront<'a>,
    /// The source port.
    pub source_port: u16,
    /// The destination port.
    pub destination_port: u16,
    /// The rest of the TCP header.
    pub header: PlainHeader,
    /// Bytes of both headers.
    pub header_bytes: usize,
}

impl<'a> PlainPacket<'a> {
    /// Reads a packet from its IP header on.
    #[inline]
    pub fn of(packet: &'a [u8]) -> Option<PlainPacket<'a>> {
        let plain = Self::of_front(packet)?;
        (plain.ip.total_bytes <= packet.len()).then_some(plain)
    }
    /// Reads a packet of which `packet` may have the headers alone.
    #[inline(always)]
    pub fn of_front(packet: &'a [u8]) -> Option<PlainPacket<'a>> {
        let ip = IpFront::of(packet)?;
        if ip.ecn() == Ecn::CongestionExperienced {
            return None;
        }
        // The link's padding may follow; the header must not reach into it.
        let tcp = TcpView::new(packet.get(ip.ip_bytes..)?).ok()?;
        let header_bytes = ip.ip_bytes + tcp.header_length();
        if header_bytes > ip.total_bytes {
            return None;
        }
        let (source_port, destination_port) = (tcp.source_port(), tcp.destination_port());
        Some(PlainPacket { ip, source_port, destination_port, header: tcp.plain_header()?, header_bytes })
    }
    /// Bytes of payload.
    #[inline]
    pub fn payload_bytes(&self) -> usize {
        self.ip.total_bytes - self.header_bytes
    }
}

#[cfg(test)]
mod any_tests;
#[cfg(test)]
mod tests;
