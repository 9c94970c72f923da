//! Ethernet II (RFC 894; IEEE 802.3 §3.2.6 type interpretation).

use crate::Malformed;
use core::fmt;
use inhost_base::HardwareAddress;

/// Bytes of the header.
pub const LENGTH: usize = 14;

/// The EtherType: protocol of a frame's payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: EtherType = EtherType(0x0800);
    /// ARP.
    pub const ARP: EtherType = EtherType(0x0806);
    /// IPv6.
    pub const IPV6: EtherType = EtherType(0x86dd);
}

impl fmt::Debug for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EtherType::IPV4 => f.write_str("IPv4"),
            EtherType::ARP => f.write_str("ARP"),
            EtherType::IPV6 => f.write_str("IPv6"),
            EtherType(other) => write!(f, "EtherType({other:#06x})"),
        }
    }
}

/// A frame's header and payload, in place. The payload may end in padding; its protocol knows its length.
#[derive(Clone, Copy, Debug)]
pub struct EthernetView<'a> {
    header: &'a [u8; LENGTH],
    payload: &'a [u8],
}

impl<'a> EthernetView<'a> {
    /// A frame without preamble and frame check sequence.
    // spec: RFC1122 2.3.3-1
    pub fn new(frame: &'a [u8]) -> Result<Self, Malformed> {
        let (header, payload) = frame.split_first_chunk().ok_or(Malformed::Truncated)?;
        Ok(EthernetView { header, payload })
    }
    /// Whom the frame is for.
    pub fn destination(&self) -> HardwareAddress {
        let [a, b, c, d, e, f, ..] = *self.header;
        HardwareAddress([a, b, c, d, e, f])
    }
    /// Source address.
    pub fn source(&self) -> HardwareAddress {
        let [_, _, _, _, _, _, a, b, c, d, e, f, ..] = *self.header;
        HardwareAddress([a, b, c, d, e, f])
    }
    /// Protocol of the payload. Values below 0x0600 are lengths of 802.3 frames, which match no constant.
    pub fn ethertype(&self) -> EtherType {
        EtherType(u16::from_be_bytes([self.header[12], self.header[13]]))
    }
    /// The payload.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// The header as a value.
///
/// ```
/// use inhost_base::HardwareAddress;
/// use inhost_wire::ethernet::{EtherType, EthernetHeader, EthernetView, LENGTH};
/// let source = HardwareAddress([2, 0, 0, 0, 0, 1]);
/// let header = EthernetHeader { destination: HardwareAddress::BROADCAST, source, ethertype: EtherType::ARP };
/// let mut frame = [0; LENGTH];
/// assert_eq!(header.emit(&mut frame), LENGTH);
/// assert_eq!(EthernetHeader::parse(&EthernetView::new(&frame).unwrap()), header);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EthernetHeader {
    /// Whom the frame is for.
    pub destination: HardwareAddress,
    /// Source address.
    pub source: HardwareAddress,
    /// Protocol of the payload.
    pub ethertype: EtherType,
}

impl EthernetHeader {
    /// The header that `view` shows.
    pub fn parse(view: &EthernetView<'_>) -> Self {
        EthernetHeader { destination: view.destination(), source: view.source(), ethertype: view.ethertype() }
    }
    /// Writes [`LENGTH`] bytes; 0 when `buffer` is shorter.
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let Some(place) = buffer.first_chunk_mut::<LENGTH>() else { return 0 };
        place[..6].copy_from_slice(&self.destination.0);
        place[6..12].copy_from_slice(&self.source.0);
        place[12..].copy_from_slice(&self.ethertype.0.to_be_bytes());
        LENGTH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_wire() {
        let header = EthernetHeader {
            destination: HardwareAddress::BROADCAST,
            source: HardwareAddress([2, 0, 0, 0, 0, 9]),
            ethertype: EtherType::ARP,
        };
        let mut frame = [0; 60];
        assert_eq!(header.emit(&mut frame), LENGTH);
        let view = EthernetView::new(&frame).unwrap();
        assert_eq!(EthernetHeader::parse(&view), header);
        assert_eq!(view.payload().len(), 46);
        assert_eq!(EthernetView::new(&frame[..13]).err(), Some(Malformed::Truncated));
        assert_eq!(header.emit(&mut frame[..13]), 0);
    }
}
