//! The User Datagram Protocol (RFC 768; over IPv6, RFC 8200 §8.1).

use crate::checksum::{Sum, pseudo_header};
use crate::{Malformed, protocol};
use inhost_base::IpAddr;

/// Bytes of the header.
pub const LENGTH: usize = 8;

/// A datagram in place.
#[derive(Clone, Copy, Debug)]
pub struct UdpView<'a> {
    header: &'a [u8; LENGTH],
    payload: &'a [u8],
}

impl<'a> UdpView<'a> {
    /// Checks the length field; bytes beyond it are not seen again.
    pub fn new(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) = datagram.split_first_chunk::<LENGTH>().ok_or(Malformed::Truncated)?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let payload_length = length.checked_sub(LENGTH).ok_or(Malformed::Length)?;
        let payload = rest.get(..payload_length).ok_or(Malformed::Truncated)?;
        Ok(UdpView { header, payload })
    }
    /// The sender's port; 0 when no answer is wanted.
    pub fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.header[0], self.header[1]])
    }
    /// The receiver's port.
    pub fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }
    /// Bytes of header and payload.
    pub fn length(&self) -> usize {
        LENGTH + self.payload.len()
    }
    /// The checksum field; 0 means that the sender made none.
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[6], self.header[7]])
    }
    /// Whether the checksum is right for a datagram between these addresses. The sender may have left it out
    /// over IPv4, not over IPv6.
    // spec: RFC1122 4.1.3.4-1
    // spec: RFC8200 8.1
    pub fn checksum_ok(&self, source: IpAddr, destination: IpAddr) -> bool {
        if self.checksum() == 0 {
            return source.is_ipv4() && destination.is_ipv4();
        }
        pseudo_header(source, destination, protocol::UDP, self.length() as u32)
            .add_bytes(self.header)
            .add_bytes(self.payload)
            .is_valid()
    }
    /// The payload.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// The ports: all that a UDP header means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpHeader {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
}

impl UdpHeader {
    /// The header that `view` shows.
    pub fn parse(view: &UdpView<'_>) -> Self {
        UdpHeader { source_port: view.source_port(), destination_port: view.destination_port() }
    }
    /// Writes the header of a datagram with `payload_length` bytes, whose sum is `payload_sum`; [`LENGTH`], or
    /// 0 when `buffer` is too short or the length exceeds 65,535.
    pub fn emit(
        &self,
        source: IpAddr,
        destination: IpAddr,
        payload_length: usize,
        payload_sum: Sum,
        buffer: &mut [u8],
    ) -> usize {
        let Ok(length) = u16::try_from(payload_length.saturating_add(LENGTH)) else { return 0 };
        let Some(place) = buffer.first_chunk_mut::<LENGTH>() else { return 0 };
        place[..2].copy_from_slice(&self.source_port.to_be_bytes());
        place[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        place[4..6].copy_from_slice(&length.to_be_bytes());
        place[6..8].copy_from_slice(&[0, 0]);
        let sum = pseudo_header(source, destination, protocol::UDP, u32::from(length));
        let checksum = match sum.add_bytes(place).combine(payload_sum, false).finish() {
            0 => 0xffff, // 0 is taken: it says that there is no checksum.
            other => other,
        };
        place[6..8].copy_from_slice(&checksum.to_be_bytes());
        LENGTH
    }
    /// Writes header and payload; their length, or 0 when `buffer` is too short or the length exceeds 65,535.
    pub fn emit_datagram(
        &self,
        source: IpAddr,
        destination: IpAddr,
        payload: &[u8],
        buffer: &mut [u8],
    ) -> usize {
        let Some(place) = buffer.get_mut(LENGTH..LENGTH + payload.len()) else { return 0 };
        place.copy_from_slice(payload);
        match self.emit(source, destination, payload.len(), Sum::of(payload), buffer) {
            0 => 0,
            header => header + payload.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::{Ipv4Addr, Ipv6Addr};

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1));
    const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2));
    const A6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
    const B6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
    const HEADER: UdpHeader = UdpHeader { source_port: 1024, destination_port: 7 };

    #[test]
    fn a_datagram_survives_the_wire() {
        for (source, destination) in [(A, B), (A6, B6)] {
            let mut buffer = [0; 64];
            let length = HEADER.emit_datagram(source, destination, b"odd", &mut buffer);
            assert_eq!(length, 11);
            let view = UdpView::new(&buffer).unwrap();
            assert!(view.checksum_ok(source, destination));
            assert_eq!((UdpHeader::parse(&view), view.payload()), (HEADER, &b"odd"[..]));
            assert!(!view.checksum_ok(source, A), "another destination");
            buffer[9] ^= 1;
            assert!(!UdpView::new(&buffer).unwrap().checksum_ok(source, destination));
        }
    }

    #[test]
    fn no_checksum_is_an_ipv4_liberty() {
        let mut buffer = [0; 11];
        HEADER.emit_datagram(A, B, b"odd", &mut buffer);
        buffer[6..8].fill(0);
        let view = UdpView::new(&buffer).unwrap();
        // spec: RFC1122 4.1.3.4-1
        assert!(view.checksum_ok(A, B));
        // spec: RFC8200 8.1
        assert!(!view.checksum_ok(A6, B6));
    }

    #[test]
    fn a_sum_of_zero_is_sent_as_all_ones() {
        let mut buffer = [0; 10];
        let missing = (0..=u16::MAX)
            .find(|word| {
                HEADER.emit_datagram(A, B, &word.to_be_bytes(), &mut buffer);
                buffer[6..8] == [0xff, 0xff]
            })
            .expect("one payload sums to zero");
        HEADER.emit_datagram(A, B, &missing.to_be_bytes(), &mut buffer);
        assert!(UdpView::new(&buffer).unwrap().checksum_ok(A, B));
    }

    #[test]
    fn lengths_are_checked() {
        let mut buffer = [0; 12];
        HEADER.emit_datagram(A, B, b"odd", &mut buffer);
        assert_eq!(UdpView::new(&buffer[..7]).err(), Some(Malformed::Truncated));
        assert_eq!(UdpView::new(&buffer[..10]).err(), Some(Malformed::Truncated));
        buffer[5] = 7;
        assert_eq!(UdpView::new(&buffer).err(), Some(Malformed::Length));
        assert_eq!(HEADER.emit_datagram(A, B, &[0; 65_528], &mut vec![0; 70_000]), 0);
    }
}
