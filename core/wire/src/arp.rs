//! Address resolution for IPv4 over Ethernet (RFC 826).

use crate::Malformed;
use crate::cursor::Writer;
use crate::ethernet::EtherType;
use inhost_base::{HardwareAddress, Ipv4Addr};

/// Bytes of a packet for IPv4 over Ethernet.
pub const LENGTH: usize = 28;

const HARDWARE_ETHERNET: u16 = 1;

/// The operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArpOperation {
    /// Asks for the target's hardware address.
    Request,
    /// Tells the sender's.
    Reply,
    /// Something that RFC 826 does not define.
    Other(u16),
}

impl ArpOperation {
    fn from_u16(value: u16) -> Self {
        match value {
            1 => ArpOperation::Request,
            2 => ArpOperation::Reply,
            other => ArpOperation::Other(other),
        }
    }
    fn to_u16(self) -> u16 {
        match self {
            ArpOperation::Request => 1,
            ArpOperation::Reply => 2,
            ArpOperation::Other(other) => other,
        }
    }
}

/// A packet in place, known to be for IPv4 over Ethernet.
#[derive(Clone, Copy, Debug)]
pub struct ArpView<'a>(&'a [u8; LENGTH]);

impl<'a> ArpView<'a> {
    /// Checks both address spaces and their lengths (RFC 826, packet reception); bytes beyond are padding.
    // spec: RFC826 "Do I have the hardware type? Do I speak the protocol?"
    pub fn new(packet: &'a [u8]) -> Result<Self, Malformed> {
        let packet: &[u8; LENGTH] = packet.first_chunk().ok_or(Malformed::Truncated)?;
        let expected = [0, HARDWARE_ETHERNET as u8, 0x08, 0x00, 6, 4];
        match packet.starts_with(&expected) {
            true => Ok(ArpView(packet)),
            false => Err(Malformed::Value),
        }
    }
    /// Request or reply.
    pub fn operation(&self) -> ArpOperation {
        ArpOperation::from_u16(u16::from_be_bytes([self.0[6], self.0[7]]))
    }
    /// The sender's card.
    pub fn sender_hardware(&self) -> HardwareAddress {
        let [_, _, _, _, _, _, _, _, a, b, c, d, e, f, ..] = *self.0;
        HardwareAddress([a, b, c, d, e, f])
    }
    /// The sender's address; unspecified in a probe (RFC 5227 §1.1).
    pub fn sender_protocol(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.0[14], self.0[15], self.0[16], self.0[17])
    }
    /// The target's card; meaningless in a request.
    pub fn target_hardware(&self) -> HardwareAddress {
        let [.., a, b, c, d, e, f, _, _, _, _] = *self.0;
        HardwareAddress([a, b, c, d, e, f])
    }
    /// The target's address.
    pub fn target_protocol(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.0[24], self.0[25], self.0[26], self.0[27])
    }
}

/// A packet as a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArpPacket {
    /// Request or reply.
    pub operation: ArpOperation,
    /// The sender's card.
    pub sender_hardware: HardwareAddress,
    /// The sender's address; unspecified in a probe.
    pub sender_protocol: Ipv4Addr,
    /// The target's card; zero in a request.
    pub target_hardware: HardwareAddress,
    /// The target's address.
    pub target_protocol: Ipv4Addr,
}

impl ArpPacket {
    /// The packet that `view` shows.
    pub fn parse(view: &ArpView<'_>) -> Self {
        ArpPacket {
            operation: view.operation(),
            sender_hardware: view.sender_hardware(),
            sender_protocol: view.sender_protocol(),
            target_hardware: view.target_hardware(),
            target_protocol: view.target_protocol(),
        }
    }
    /// Writes [`LENGTH`] bytes; 0 when `buffer` is shorter.
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let mut w = Writer::new(buffer);
        w.u16(HARDWARE_ETHERNET).u16(EtherType::IPV4.0).u8(6).u8(4).u16(self.operation.to_u16());
        w.bytes(&self.sender_hardware.0).ipv4(self.sender_protocol);
        w.bytes(&self.target_hardware.0).ipv4(self.target_protocol);
        w.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_the_wire() {
        // spec: RFC826 packet format
        let bytes = [
            0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 9, 0, 1, 0, 0, 0, 0, 0, 0, 10, 9, 0, 2, //
            0xaa, 0xaa,
        ];
        let packet = ArpPacket::parse(&ArpView::new(&bytes).unwrap());
        let expected = ArpPacket {
            operation: ArpOperation::Request,
            sender_hardware: HardwareAddress([2, 0, 0, 0, 0, 1]),
            sender_protocol: Ipv4Addr::new(10, 9, 0, 1),
            target_hardware: HardwareAddress([0; 6]),
            target_protocol: Ipv4Addr::new(10, 9, 0, 2),
        };
        assert_eq!(packet, expected);
        let mut out = [0; LENGTH];
        assert_eq!(packet.emit(&mut out), LENGTH);
        assert_eq!(out, bytes[..LENGTH]);
        assert_eq!(packet.emit(&mut out[..27]), 0);
    }

    #[test]
    fn other_address_spaces_are_refused() {
        // spec: RFC826 packet reception
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(&[0, 6, 8, 0, 6, 4, 0, 1]);
        assert_eq!(ArpView::new(&bytes).err(), Some(Malformed::Value));
        assert_eq!(ArpView::new(&bytes[..27]).err(), Some(Malformed::Truncated));
    }
}
