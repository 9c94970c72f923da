//! Headers of such packets, written with their sums.

use crate::checksum::{Sum, words_of};
use crate::ipv4::{self, Ipv4Header};
use crate::ipv6::{self, Ipv6Header};
use crate::protocol;
use crate::tcp::{self, PlainHeader, TcpHeader};
use inhost_base::IpAddr;

/// The two ends of such packets, and the fields of IP that they share.
#[derive(Clone, Copy, Debug)]
pub struct FlowHeader {
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// The source port.
    pub source_port: u16,
    /// The destination port.
    pub destination_port: u16,
    /// Differentiated services and ECN.
    pub dscp_ecn: u8,
    /// The hop limit, or time to live.
    pub hop_limit: u8,
}

/// Headers that were written.
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
    /// Writes the headers of a packet with `payload_bytes` of data, which must not be fragmented, with a TCP checksum of
    /// 0. The words are summed as they are written, so that nothing is read again. `None` when the packet would be too
    /// long, or the headers do not fit.
    #[inline(always)]
    pub fn emit(
        &self,
        header: &PlainHeader,
        payload_bytes: usize,
        into: &mut [u8],
    ) -> Option<WrittenHeaders> {
        let options_bytes = if header.timestamps.is_some() { tcp::TIMESTAMPS_BYTES } else { 0 };
        let (mut written, place) = self.emit_ip(options_bytes + payload_bytes, into)?;
        let (place, rest) = place.split_first_chunk_mut()?;
        let mut words = header.fixed((self.source_port, self.destination_port), options_bytes).emit(place);
        if let Some(timestamps) = header.timestamps {
            words += tcp::emit_timestamps_alone(timestamps, rest.first_chunk_mut()?);
        }
        written.header_sum = Sum::of_words(words);
        written.header_bytes += options_bytes;
        Some(written)
    }
    /// As [`FlowHeader::emit`], for any TCP header, whose ports are not looked at.
    pub fn emit_any(
        &self,
        header: &TcpHeader,
        payload_bytes: usize,
        into: &mut [u8],
    ) -> Option<WrittenHeaders> {
        let options_bytes = header.options.length();
        let (mut written, place) = self.emit_ip(options_bytes + payload_bytes, into)?;
        let (place, rest) = place.split_first_chunk_mut()?;
        written.header_sum =
            Sum::of_words(header.fixed((self.source_port, self.destination_port), options_bytes).emit(place));
        if options_bytes > 0 {
            let options = rest.get_mut(..options_bytes)?;
            header.options.emit(options);
            written.header_sum = written.header_sum.combine(Sum::of(options), false);
            written.header_bytes += options_bytes;
        }
        Some(written)
    }
    /// Writes the IP header of a segment with `behind_bytes` behind TCP's fixed part: Returns the written headers,
    /// without TCP's options and sum, and the place of the TCP header.
    #[inline(always)]
    fn emit_ip<'b>(&self, behind_bytes: usize, into: &'b mut [u8]) -> Option<(WrittenHeaders, &'b mut [u8])> {
        let length = u16::try_from(tcp::LENGTH + behind_bytes).ok()?;
        let addresses = words_of(self.source) + words_of(self.destination);
        let (ip_bytes, place) = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let (place, rest) = into.split_first_chunk_mut()?;
                // A packet that is never fragmented needs no identification (RFC 6864 §4.1).
                let header = Ipv4Header {
                    dscp_ecn: self.dscp_ecn,
                    time_to_live: self.hop_limit,
                    ..Ipv4Header::new(source, destination, protocol::TCP, length)
                };
                let total_length = length.checked_add(ipv4::LENGTH as u16)?;
                header.emit_fixed(0, total_length, addresses, place);
                (ipv4::LENGTH, rest)
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let (place, rest) = into.split_first_chunk_mut::<{ ipv6::LENGTH }>()?;
                let header = Ipv6Header {
                    dscp_ecn: self.dscp_ecn,
                    hop_limit: self.hop_limit,
                    ..Ipv6Header::new(source, destination, protocol::TCP, length)
                };
                header.emit(place);
                (ipv6::LENGTH, rest)
            }
            _ => return None,
        };
        let pseudo_sum = Sum::of_words(addresses + u64::from(protocol::TCP) + u64::from(length));
        let header_bytes = ip_bytes + tcp::LENGTH;
        Some((WrittenHeaders { ip_bytes, header_bytes, pseudo_sum, header_sum: Sum::ZERO }, place))
    }
}
