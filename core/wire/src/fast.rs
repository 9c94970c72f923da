//! The fast path of TCP headers, read and written in one step: IP without options, extension headers or fragments and
//! without a congestion mark; TCP with ACK, perhaps PSH, and at most the timestamps option in its usual place. Any other
//! packet is left to the slow path, [`crate::tcp`].

mod next;

use crate::checksum::{Sum, words_of};
use crate::tcp::PlainHeader;
use crate::{protocol, tcp};
use inhost_base::{IpAddr, Ipv4Addr, Ipv6Addr, Sequence};
pub use next::NextSegment;

const IPV4_BYTES: usize = crate::ipv4::LENGTH;
const IPV6_BYTES: usize = crate::ipv6::LENGTH;
/// Bytes of the timestamps option behind two no-operations, and those that begin it (RFC 7323 appendix A).
const TIMESTAMPS_BYTES: usize = 12;
const TIMESTAMPS_BEGIN: [u8; 4] = [1, 1, 8, 10];
/// The control bits that may be set, and the one that must be.
const PUSH: u8 = tcp::Flags::PSH.bits() as u8;
const ACKNOWLEDGE: u8 = tcp::Flags::ACK.bits() as u8;
/// The flag of IPv4, in its place.
const DONT_FRAGMENT: u16 = 0x4000;
/// The two bits of the IP header that say that a packet met congestion (RFC 3168 §5).
const CONGESTED: u8 = 3;

/// A segment in the shape that the fast path takes. Its IP header is checked; its TCP checksum is not.
#[derive(Clone, Copy, Debug)]
pub struct FastSegment<'a> {
    /// The sender's address and the receiver's, as they lie in front of the TCP header.
    addresses: &'a [u8],
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The rest of the TCP header.
    pub header: PlainHeader,
    /// Bytes of the IP header.
    pub ip_bytes: usize,
    /// Bytes of both headers.
    pub header_bytes: usize,
    /// Bytes of the packet; what follows is the link's padding.
    pub total_bytes: usize,
}

impl<'a> FastSegment<'a> {
    /// Parses a packet from its IP header on.
    #[inline]
    pub fn of(packet: &'a [u8]) -> Option<FastSegment<'a>> {
        let segment = Self::of_headers(packet)?;
        (segment.total_bytes <= packet.len()).then_some(segment)
    }
    /// Parses the headers; `packet` may end where they do.
    #[inline(always)]
    pub fn of_headers(packet: &'a [u8]) -> Option<FastSegment<'a>> {
        let (ip_bytes, address_bytes, total_bytes) = match packet.first()? {
            0x45 => (IPV4_BYTES, 4, total_bytes_v4(packet)?),
            0x60..0x70 => (IPV6_BYTES, 16, total_bytes_v6(packet)?),
            _ => return None,
        };
        let addresses = packet.get(ip_bytes - 2 * address_bytes..ip_bytes)?;
        let there = total_bytes.min(packet.len());
        let (fixed, rest) = packet.get(ip_bytes..there)?.split_first_chunk::<{ tcp::LENGTH }>()?;
        if fixed[13] & !PUSH != ACKNOWLEDGE {
            return None;
        }
        let u32_at = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let (timestamps, tcp_bytes) = match fixed[12] {
            0x50 => (None, tcp::LENGTH),
            0x80 => {
                let [begin, value, echo] = *rest.first_chunk::<TIMESTAMPS_BYTES>()?.as_chunks::<4>().0 else {
                    return None;
                };
                if begin != TIMESTAMPS_BEGIN {
                    return None;
                }
                let timestamps = (u32::from_be_bytes(value), u32::from_be_bytes(echo));
                (Some(timestamps), tcp::LENGTH + TIMESTAMPS_BYTES)
            }
            _ => return None,
        };
        Some(FastSegment {
            addresses,
            source_port: u16::from_be_bytes([fixed[0], fixed[1]]),
            destination_port: u16::from_be_bytes([fixed[2], fixed[3]]),
            header: PlainHeader {
                sequence: Sequence(u32_at(4)),
                acknowledgment: Sequence(u32_at(8)),
                window: u16::from_be_bytes([fixed[14], fixed[15]]),
                push: fixed[13] & PUSH != 0,
                timestamps,
            },
            ip_bytes,
            header_bytes: ip_bytes + tcp_bytes,
            total_bytes,
        })
    }
    /// Source and destination, if they are IPv4 addresses.
    #[inline]
    pub fn addresses_v4(&self) -> Option<(Ipv4Addr, Ipv4Addr)> {
        let [source, destination] = *self.addresses.as_chunks::<4>().0 else { return None };
        Some((Ipv4Addr::from(source), Ipv4Addr::from(destination)))
    }
    /// Source and destination.
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
    /// Bytes of payload.
    #[inline]
    pub fn payload_bytes(&self) -> usize {
        self.total_bytes - self.header_bytes
    }
    /// Whether the TCP checksum of `packet`, which this was parsed from, is valid. The addresses of the pseudo-header lie
    /// directly before the segment, so one pass covers both.
    // spec: RFC9293 MUST-3
    #[inline]
    pub fn checksum_ok(&self, packet: &[u8]) -> bool {
        let from = self.ip_bytes - self.addresses.len();
        let Some(covered) = packet.get(from..self.total_bytes) else { return false };
        let segment_bytes = (self.total_bytes - self.ip_bytes) as u32;
        Sum::of(covered).add_u32(segment_bytes + u32::from(protocol::TCP)).is_valid()
    }
}

/// Total length of an IPv4 packet with a valid, plain header.
#[inline]
fn total_bytes_v4(packet: &[u8]) -> Option<usize> {
    let ip = packet.first_chunk::<IPV4_BYTES>()?;
    let is_fragment_or_odd = u16::from_be_bytes([ip[6], ip[7]]) & 0xbfff != 0;
    if is_fragment_or_odd || ip[9] != protocol::TCP || ip[1] & CONGESTED == CONGESTED {
        return None;
    }
    sum_v4(ip).is_valid().then(|| usize::from(u16::from_be_bytes([ip[2], ip[3]])))
}
#[inline]
fn sum_v4(ip: &[u8; IPV4_BYTES]) -> Sum {
    Sum::of_native(ip.as_chunks::<4>().0.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum())
}
/// Total length of an IPv6 packet without extension headers.
#[inline]
fn total_bytes_v6(packet: &[u8]) -> Option<usize> {
    let ip = packet.first_chunk::<IPV6_BYTES>()?;
    let is_plain = ip[6] == protocol::TCP && (ip[1] >> 4) & CONGESTED != CONGESTED;
    is_plain.then(|| IPV6_BYTES + usize::from(u16::from_be_bytes([ip[4], ip[5]])))
}

/// The header fields that are the same for every segment of a flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowHeader {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// Differentiated services and ECN.
    pub dscp_ecn: u8,
    /// Hop limit.
    pub hop_limit: u8,
}

/// Lengths and checksums of headers that were written.
#[derive(Clone, Copy, Debug)]
pub struct WrittenHeaders {
    /// Bytes of the IP header.
    pub ip_bytes: usize,
    /// Bytes of both headers.
    pub header_bytes: usize,
    /// The sum of the pseudo-header.
    pub pseudo_sum: Sum,
    /// The sum of the TCP header.
    pub header_sum: Sum,
}

impl FlowHeader {
    /// Writes the headers of a packet with `payload_bytes` of data, which must not be fragmented, the TCP checksum apart:
    /// its field is 0. Every word is summed as it is written, so that nothing is read again. `None` when the packet
    /// would be too long, or the headers do not fit.
    #[inline]
    pub fn emit(
        &self,
        header: &PlainHeader,
        payload_bytes: usize,
        into: &mut [u8],
    ) -> Option<WrittenHeaders> {
        let tcp_bytes = tcp::LENGTH + if header.timestamps.is_some() { TIMESTAMPS_BYTES } else { 0 };
        let length = u16::try_from(tcp_bytes + payload_bytes).ok()?;
        let (ip_bytes, addresses) = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let addresses = words_of(self.source) + words_of(self.destination);
                self.emit_v4(source, destination, addresses, length, into.first_chunk_mut()?)?;
                (IPV4_BYTES, addresses)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                self.emit_v6(source, destination, length, into.first_chunk_mut()?);
                (IPV6_BYTES, words_of(self.source) + words_of(self.destination))
            }
            _ => return None,
        };
        let header_sum = self.emit_tcp(header, into.get_mut(ip_bytes..)?)?;
        let pseudo_sum = Sum::of_words(addresses + u64::from(protocol::TCP) + u64::from(length));
        Some(WrittenHeaders { ip_bytes, header_bytes: ip_bytes + tcp_bytes, pseudo_sum, header_sum })
    }
    #[inline]
    fn emit_v4(
        &self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        addresses: u64,
        length: u16,
        ip: &mut [u8; IPV4_BYTES],
    ) -> Option<()> {
        let total = length.checked_add(IPV4_BYTES as u16)?;
        let first = 0x4500 | u16::from(self.dscp_ecn);
        let hops = u16::from(self.hop_limit) << 8 | u16::from(protocol::TCP);
        let sum =
            u64::from(first) + u64::from(total) + u64::from(DONT_FRAGMENT) + u64::from(hops) + addresses;
        ip[..2].copy_from_slice(&first.to_be_bytes());
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        // A packet that is never fragmented needs no identification (RFC 6864 §4.1).
        ip[4..8].copy_from_slice(&u32::from(DONT_FRAGMENT).to_be_bytes());
        ip[8..10].copy_from_slice(&hops.to_be_bytes());
        ip[10..12].copy_from_slice(&Sum::of_words(sum).finish().to_be_bytes());
        ip[12..16].copy_from_slice(&source.octets());
        ip[16..].copy_from_slice(&destination.octets());
        Some(())
    }
    #[inline]
    fn emit_v6(&self, source: Ipv6Addr, destination: Ipv6Addr, length: u16, ip: &mut [u8; IPV6_BYTES]) {
        let first = 0x6000_0000 | u32::from(self.dscp_ecn) << 20;
        ip[..4].copy_from_slice(&first.to_be_bytes());
        ip[4..6].copy_from_slice(&length.to_be_bytes());
        (ip[6], ip[7]) = (protocol::TCP, self.hop_limit);
        ip[8..24].copy_from_slice(&source.octets());
        ip[24..].copy_from_slice(&destination.octets());
    }
    #[inline]
    fn emit_tcp(&self, header: &PlainHeader, into: &mut [u8]) -> Option<Sum> {
        let (tcp, rest) = into.split_first_chunk_mut::<{ tcp::LENGTH }>()?;
        let ports = u32::from(self.source_port) << 16 | u32::from(self.destination_port);
        let offset = if header.timestamps.is_some() { 0x8000 } else { 0x5000 };
        let offset_and_flags = offset | header.flags().bits();
        let third = u32::from(offset_and_flags) << 16 | u32::from(header.window);
        let mut sum = u64::from(ports)
            + u64::from(header.sequence.0)
            + u64::from(header.acknowledgment.0)
            + u64::from(third);
        tcp[..4].copy_from_slice(&ports.to_be_bytes());
        tcp[4..8].copy_from_slice(&header.sequence.0.to_be_bytes());
        tcp[8..12].copy_from_slice(&header.acknowledgment.0.to_be_bytes());
        tcp[12..16].copy_from_slice(&third.to_be_bytes());
        tcp[16..].copy_from_slice(&[0; 4]);
        if let Some((value, echo)) = header.timestamps {
            let options = rest.first_chunk_mut::<TIMESTAMPS_BYTES>()?;
            sum += u64::from(u32::from_be_bytes(TIMESTAMPS_BEGIN)) + u64::from(value) + u64::from(echo);
            options[..4].copy_from_slice(&TIMESTAMPS_BEGIN);
            options[4..8].copy_from_slice(&value.to_be_bytes());
            options[8..].copy_from_slice(&echo.to_be_bytes());
        }
        Some(Sum::of_words(sum))
    }
}

#[cfg(test)]
mod tests;
