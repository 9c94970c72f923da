//! The low level protocol of a serial line between a host and a packet concentrator (MIT §5.3), LLP for short.
//!
//! This page is the whole of the format; with it another can build the other end. The paper names the four
//! special octets and their use; their values, the escapes and the four octets of the local header are ours.
//!
//! # The line
//!
//! Eight bits, no parity, and full duplex. Both ends follow the same rules. Four octets are special:
//!
//! | name | value | meaning |
//! |---|---|---|
//! | REQ | 0x8b | request to send a packet |
//! | ACK | 0x95 | the request is granted |
//! | END | 0xa6 | end of the packet |
//! | ESC | 0xb8 | the next octet stands for a displaced one |
//!
//! Each differs from each other in four bits, none begins an IP packet, and none is XON or XOFF, with or
//! without its highest bit. In a packet each of them is sent as ESC and the octet with bit 0x40 inverted:
//! REQ as b8 cb, ACK as b8 d5, END as b8 e6, ESC as b8 f8. ESC before any other octet spoils the packet.
//!
//! # A packet's way
//!
//! The sender sends REQ. The receiver, when it has a buffer, sends ACK; when it has none it is silent until it has one,
//! or until two seconds are over and the sender no longer waits. The sender then sends the packet, escaped, and END. An
//! ACK may stand anywhere in the other direction's stream, between any two octets of a packet, even after an ESC; the
//! receiver removes it. A packet has at most one REQ outstanding; an unexpected ACK is dropped.
//!
//! - No ACK within two seconds of REQ: the REQ or the ACK was spoiled, or the other end has crashed or has no buffer.
//!   The REQ is sent again; after the third one the packet is given up, and its sender is told. (The paper
//!   gives up after the first. A REQ too many does no harm: a receiver that has had nothing of the packet just
//!   answers again.)
//! - More than two seconds between ACK and the first octet, or between two octets of a packet: the packet is
//!   dropped.
//! - REQ within a packet: the END before it was lost. The received part is dropped, and the REQ is answered.
//! - A packet longer than the receiver's buffer is dropped up to its END.
//! - An octet other than REQ and ACK outside a packet is dropped.
//!
//! # A packet
//!
//! A local header of four octets, then the payload:
//!
//! | octet | field |
//! |---|---|
//! | 0 | type: 1 data, 2 address request, 3 address reply |
//! | 1 | length of the payload modulo 256 |
//! | 2, 3 | CRC of octets 0 and 1 and the payload, high octet first |
//!
//! The CRC has the polynomial x¹⁶ + x¹² + x⁵ + 1, begins with all ones, takes each octet's high bit first, and is
//! sent as it is; of the nine octets `123456789` it is 0x29b1. It finds every packet of which one octet, or two
//! that are neighbours, were changed; the length finds every packet that lost or gained fewer than 256 octets. A packet that
//! fails either, or has a type that is not listed, is dropped.
//!
//! - *Data*: the payload is an IP packet, version 4 or 6; its first four bits tell which.
//! - *Address request*: sent by a host when it starts, and again until it is answered. The payload is the IPv4
//!   address that it would like, or four zeros.
//! - *Address reply*: the concentrator's answer. The payload is the IPv4 address that the host shall have, the
//!   concentrator's own, which is the host's gateway, and one octet with the length of their network's prefix in
//!   bits. Octets behind these nine are ignored.

mod crc;
mod line;

pub use line::{Busy, Config, Counters, Event, Line};

use crate::Malformed;
use crate::cursor::{Reader, Writer};
use alloc::vec::Vec;
use inhost_base::Ipv4Addr;

/// Request to send a packet.
pub const REQ: u8 = 0x8b;
/// Request granted.
pub const ACK: u8 = 0x95;
/// End of a packet.
pub const END: u8 = 0xa6;
/// Begins the two octets that stand for a displaced one.
pub const ESC: u8 = 0xb8;

/// Bytes of the local header.
pub const LENGTH: usize = 4;

/// The bits that are inverted in a displaced octet.
const DISPLACEMENT: u8 = 0x40;

const TYPE_DATA: u8 = 1;
const TYPE_ADDRESS_REQUEST: u8 = 2;
const TYPE_ADDRESS_REPLY: u8 = 3;

/// Whether `octet` is one of the four that do not stand for themselves.
pub const fn is_special(octet: u8) -> bool {
    matches!(octet, REQ | ACK | END | ESC)
}

/// The octet that stands for the special one `octet` after an ESC.
const fn displaced(octet: u8) -> u8 {
    octet ^ DISPLACEMENT
}

/// Which special octet `code` stands for after an ESC.
const fn restored(code: u8) -> Option<u8> {
    let octet = code ^ DISPLACEMENT;
    if is_special(octet) { Some(octet) } else { None }
}

/// Encodes `packet`, local header included, with its special octets displaced: the octets between an ACK and an END.
pub fn encode(packet: &[u8], line: &mut impl Extend<u8>) {
    for octet in packet {
        match is_special(*octet) {
            true => line.extend([ESC, displaced(*octet)]),
            false => line.extend([*octet]),
        }
    }
}

/// Undoes [`encode`]: the packet, local header included, between an ACK and an END. ACKs are taken out; an error when a
/// REQ or END is among the octets, or an ESC before an octet that is not a displaced one.
pub fn decode(line: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut packet = Vec::with_capacity(line.len());
    let mut octets = line.iter().copied().filter(|octet| *octet != ACK);
    while let Some(octet) = octets.next() {
        packet.push(match octet {
            REQ | END => return Err(Malformed::Value),
            ESC => octets.next().and_then(restored).ok_or(Malformed::Value)?,
            data => data,
        });
    }
    Ok(packet)
}

/// A host asks the concentrator for its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressRequest {
    /// The address that it would like; unspecified when it has no wish.
    pub wanted: Ipv4Addr,
}

/// The concentrator's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressReply {
    /// The host's address.
    pub address: Ipv4Addr,
    /// The concentrator's own, the host's gateway.
    pub concentrator: Ipv4Addr,
    /// Length of the prefix of their network, at most 32.
    pub prefix_bits: u8,
}

/// A packet as a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packet<'a> {
    /// An IP packet.
    Data(&'a [u8]),
    /// A request for this end's address.
    AddressRequest(AddressRequest),
    /// This is your address.
    AddressReply(AddressReply),
}

impl<'a> Packet<'a> {
    /// The packet with local header that `bytes` are, its escapes undone. An error when it is too short, its
    /// length or CRC is wrong, or its type is not known.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (&[kind, length, crc @ ..], payload) =
            bytes.split_first_chunk::<LENGTH>().ok_or(Malformed::Truncated)?;
        if length != payload.len() as u8 {
            return Err(Malformed::Length);
        }
        if crc != crc_of(kind, length, payload).to_be_bytes() {
            return Err(Malformed::Checksum);
        }
        let mut r = Reader::new(payload);
        match kind {
            TYPE_DATA => Ok(Packet::Data(payload)),
            TYPE_ADDRESS_REQUEST => {
                let wanted = r.ipv4().ok_or(Malformed::Truncated)?;
                Ok(Packet::AddressRequest(AddressRequest { wanted }))
            }
            TYPE_ADDRESS_REPLY => {
                let address = r.ipv4().ok_or(Malformed::Truncated)?;
                let concentrator = r.ipv4().ok_or(Malformed::Truncated)?;
                let prefix_bits = r.u8().ok_or(Malformed::Truncated)?;
                if prefix_bits > 32 {
                    return Err(Malformed::Value);
                }
                Ok(Packet::AddressReply(AddressReply { address, concentrator, prefix_bits }))
            }
            _ => Err(Malformed::Value),
        }
    }

    /// Bytes that [`Packet::emit`] writes.
    pub fn length(&self) -> usize {
        LENGTH
            + match self {
                Packet::Data(payload) => payload.len(),
                Packet::AddressRequest(_) => 4,
                Packet::AddressReply(_) => 9,
            }
    }

    /// Writes local header and payload, not escaped; their length, or 0 when `buffer` is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let mut w = Writer::new(buffer);
        w.u32(0);
        let kind = match *self {
            Packet::Data(payload) => {
                w.bytes(payload);
                TYPE_DATA
            }
            Packet::AddressRequest(AddressRequest { wanted }) => {
                w.ipv4(wanted);
                TYPE_ADDRESS_REQUEST
            }
            Packet::AddressReply(AddressReply { address, concentrator, prefix_bits }) => {
                w.ipv4(address).ipv4(concentrator).u8(prefix_bits);
                TYPE_ADDRESS_REPLY
            }
        };
        let payload = w.written().get(LENGTH..).unwrap_or(&[]);
        let length = payload.len() as u8;
        let crc = crc_of(kind, length, payload);
        w.patch_u16(0, u16::from_be_bytes([kind, length])).patch_u16(2, crc).finish()
    }
}

fn crc_of(kind: u8, length: u8, payload: &[u8]) -> u16 {
    crc::extend(crc::extend(crc::START, &[kind, length]), payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
    const CONCENTRATOR: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

    fn bytes_of(packet: Packet<'_>) -> Vec<u8> {
        let mut bytes = vec![0xee; packet.length()];
        assert_eq!(packet.emit(&mut bytes), bytes.len());
        assert_eq!(packet.emit(&mut vec![0; bytes.len() - 1]), 0);
        bytes
    }

    #[test]
    fn the_special_octets_are_far_apart() {
        let special = [REQ, ACK, END, ESC];
        for (i, a) in special.iter().enumerate() {
            for b in &special[..i] {
                assert_eq!((a ^ b).count_ones(), 4);
            }
            assert!(!is_special(displaced(*a)) && restored(displaced(*a)) == Some(*a));
            assert!(!matches!(a & 0x7f, 0x11 | 0x13) && !matches!(a >> 4, 4 | 6));
        }
    }

    #[test]
    fn packets_are_as_documented() {
        let reply = AddressReply { address: HOST, concentrator: CONCENTRATOR, prefix_bits: 24 };
        let bytes = bytes_of(Packet::AddressReply(reply));
        assert_eq!(bytes[..2], [3, 9]);
        assert_eq!(bytes[4..], [10, 9, 0, 2, 10, 9, 0, 1, 24]);
        assert_eq!(Packet::parse(&bytes), Ok(Packet::AddressReply(reply)));
        let request = Packet::AddressRequest(AddressRequest { wanted: HOST });
        assert_eq!(Packet::parse(&bytes_of(request)), Ok(request));
        let data = Packet::Data(&[0x45; 300]);
        assert_eq!(bytes_of(data)[..2], [1, 44]);
        assert_eq!(Packet::parse(&bytes_of(data)), Ok(data));
    }

    #[test]
    fn one_wrong_octet_is_always_found() {
        let bytes = bytes_of(Packet::Data(b"nothing wrong must reach the application"));
        for at in 0..bytes.len() {
            for change in 1..=255 {
                let mut bad = bytes.clone();
                bad[at] ^= change;
                assert!(Packet::parse(&bad).is_err(), "octet {at} changed by {change:#x}");
            }
            let mut short = bytes.clone();
            short.remove(at);
            assert!(Packet::parse(&short).is_err());
            let mut long = bytes.clone();
            long.insert(at, 0);
            assert!(Packet::parse(&long).is_err());
        }
    }

    #[test]
    fn unknown_types_and_short_payloads_are_refused() {
        let with = |kind: u8, payload: &[u8]| {
            let mut bytes = vec![kind, payload.len() as u8];
            bytes.extend(crc_of(kind, payload.len() as u8, payload).to_be_bytes());
            bytes.extend(payload);
            Packet::parse(&bytes).map(|_| ())
        };
        assert_eq!(with(4, &[]), Err(Malformed::Value));
        assert_eq!(with(2, &[1, 2, 3]), Err(Malformed::Truncated));
        assert_eq!(with(3, &[0; 8]), Err(Malformed::Truncated));
        assert_eq!(with(3, &[33; 9]), Err(Malformed::Value));
        assert_eq!(with(3, &[24; 12]), Ok(()), "octets behind the ninth are ignored");
        assert_eq!(Packet::parse(&[1, 0, 0]), Err(Malformed::Truncated));
    }

    #[test]
    fn escapes_are_undone_and_acknowledgments_taken_out() {
        let all: Vec<u8> = (0..=255).collect();
        let mut line = Vec::new();
        encode(&all, &mut line);
        assert_eq!(line.len(), 260);
        assert_eq!(line.iter().filter(|octet| is_special(**octet)).count(), 4, "only the ESCs");
        let with_acks: Vec<u8> = line.iter().flat_map(|octet| [*octet, ACK]).collect();
        assert_eq!(decode(&with_acks), Ok(all));
        for bad in [&[ESC][..], &[ESC, ESC], &[ESC, 1], &[1, REQ], &[1, END]] {
            assert_eq!(decode(bad), Err(Malformed::Value));
        }
    }
}
