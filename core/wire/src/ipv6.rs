//! The Internet Protocol, version 6 (RFC 8200).

mod extension;

pub use extension::{
    Discard, ExtensionError, FRAGMENT_HEADER_LENGTH, Fragment, MAX_EXTENSION_HEADERS, MAX_EXTENSION_OPTIONS,
    MLD_HOP_BY_HOP_LENGTH, UpperLayer, check_hop_by_hop, emit_fragment_header, emit_mld_hop_by_hop, walk,
};

use crate::Malformed;
use inhost_base::Ipv6Addr;

/// Bytes of the fixed header.
pub const LENGTH: usize = 40;
/// Every link carries packets of this many bytes (RFC 8200 §5).
pub const MINIMUM_MTU_BYTES: usize = 1280;

/// A packet in place. Version and payload length are checked.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6View<'a> {
    header: &'a [u8; LENGTH],
    payload: &'a [u8],
}

impl<'a> Ipv6View<'a> {
    /// Bytes beyond the payload length are the link's padding and not seen again. Jumbograms are not understood:
    /// a payload length of 0 means no payload.
    #[inline]
    pub fn new(packet: &'a [u8]) -> Result<Self, Malformed> {
        let view = Self::of_front(packet)?;
        if packet.len() < view.total_length() { Err(Malformed::Truncated) } else { Ok(view) }
    }
    /// A packet of which `front` may have only the headers: the payload is as much as is there.
    #[inline(always)]
    pub fn of_front(front: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) = front.split_first_chunk::<LENGTH>().ok_or(Malformed::Truncated)?;
        if header[0] >> 4 != 6 {
            return Err(Malformed::Version);
        }
        let payload_length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let payload = rest.get(..payload_length).unwrap_or(rest);
        Ok(Ipv6View { header, payload })
    }
    /// Differentiated services (six bits) and ECN (two bits): the traffic class.
    #[inline]
    pub fn dscp_ecn(&self) -> u8 {
        self.header[0] << 4 | self.header[1] >> 4
    }
    /// The flow label: 20 bits.
    pub fn flow_label(&self) -> u32 {
        u32::from_be_bytes([0, self.header[1] & 0xf, self.header[2], self.header[3]])
    }
    /// The next header: an extension header or an upper-layer protocol.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.header[6]
    }
    /// Hops it may still travel.
    #[inline]
    pub fn hop_limit(&self) -> u8 {
        self.header[7]
    }
    /// The sender.
    pub fn source(&self) -> Ipv6Addr {
        let [_, _, _, _, _, _, _, _, rest @ ..] = self.header;
        rest.first_chunk::<16>().map_or(Ipv6Addr::UNSPECIFIED, |octets| Ipv6Addr::from(*octets))
    }
    /// The receiver.
    pub fn destination(&self) -> Ipv6Addr {
        self.header.last_chunk::<16>().map_or(Ipv6Addr::UNSPECIFIED, |octets| Ipv6Addr::from(*octets))
    }
    /// Everything after the fixed header, up to the payload length: extension headers included.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
    /// Bytes of the whole packet, as the header says.
    #[inline]
    pub fn total_length(&self) -> usize {
        LENGTH + usize::from(u16::from_be_bytes([self.header[4], self.header[5]]))
    }
}

/// The fixed header as a value.
///
/// ```
/// use inhost_base::Ipv6Addr;
/// use inhost_wire::ipv6::{Ipv6Header, Ipv6View, LENGTH};
/// use inhost_wire::protocol;
/// let header = Ipv6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, protocol::NO_NEXT_HEADER, 0);
/// let mut packet = [0; LENGTH];
/// assert_eq!(header.emit(&mut packet), LENGTH);
/// assert_eq!(Ipv6Header::parse(&Ipv6View::new(&packet).unwrap()), header);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Header {
    /// Differentiated services (six bits) and ECN (two bits).
    pub dscp_ecn: u8,
    /// The flow label: 20 bits, the upper 12 are not sent.
    pub flow_label: u32,
    /// Bytes after the fixed header, extension headers included.
    pub payload_length: u16,
    /// The next header.
    pub next_header: u8,
    /// Hops it may travel.
    pub hop_limit: u8,
    /// The sender.
    pub source: Ipv6Addr,
    /// The receiver.
    pub destination: Ipv6Addr,
}

impl Ipv6Header {
    /// A header with 64 hops and neither class nor label.
    pub const fn new(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, payload_length: u16) -> Self {
        Ipv6Header {
            dscp_ecn: 0,
            flow_label: 0,
            payload_length,
            next_header,
            hop_limit: 64,
            source,
            destination,
        }
    }
    /// The header that `view` shows.
    pub fn parse(view: &Ipv6View<'_>) -> Self {
        Ipv6Header {
            dscp_ecn: view.dscp_ecn(),
            flow_label: view.flow_label(),
            // The value came from 16 bits.
            payload_length: view.payload.len() as u16,
            next_header: view.next_header(),
            hop_limit: view.hop_limit(),
            source: view.source(),
            destination: view.destination(),
        }
    }
    /// Writes [`LENGTH`] bytes; 0 when `buffer` is shorter.
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let Some(place) = buffer.first_chunk_mut::<LENGTH>() else { return 0 };
        let first = 6 << 28 | u32::from(self.dscp_ecn) << 20 | self.flow_label & 0x000f_ffff;
        place[..4].copy_from_slice(&first.to_be_bytes());
        place[4..6].copy_from_slice(&self.payload_length.to_be_bytes());
        place[6] = self.next_header;
        place[7] = self.hop_limit;
        place[8..24].copy_from_slice(&self.source.octets());
        place[24..].copy_from_slice(&self.destination.octets());
        LENGTH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_wire() {
        let header = Ipv6Header {
            dscp_ecn: 0xb9,
            flow_label: 0xabcde,
            ..Ipv6Header::new("fe80::1".parse().unwrap(), "ff02::2".parse().unwrap(), 58, 8)
        };
        let mut packet = [0xee; 50];
        assert_eq!(header.emit(&mut packet), LENGTH);
        assert_eq!(packet[..8], [0x6b, 0x9a, 0xbc, 0xde, 0, 8, 58, 64]);
        let view = Ipv6View::new(&packet).unwrap();
        assert_eq!(Ipv6Header::parse(&view), header);
        assert_eq!(view.payload().len(), 8, "padding is trimmed");
    }

    #[test]
    fn lengths_are_checked() {
        let mut packet = [0; 48];
        Ipv6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, 59, 8).emit(&mut packet);
        assert_eq!(Ipv6View::new(&packet[..47]).err(), Some(Malformed::Truncated));
        assert_eq!(Ipv6View::new(&packet[..39]).err(), Some(Malformed::Truncated));
        packet[0] = 0x45;
        assert_eq!(Ipv6View::new(&packet).err(), Some(Malformed::Version));
    }
}
