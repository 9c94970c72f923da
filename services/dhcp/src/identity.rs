//! By what a server knows this host again: an identifier that outlives the card (RFC 4361, RFC 8415 §11).

use crate::limits::DUID_BYTES;
use core::fmt;
use inhost_base::{HardwareAddress, SipKey};

/// RFC 6355.
const KIND_UUID: [u8; 2] = [0, 4];
/// RFC 8415 §11.4, of an Ethernet.
const KIND_LINK_LAYER: [u8; 4] = [0, 3, 0, 1];
/// RFC 4361 §6.1.
const CLIENT_IDENTIFIER_TYPE: u8 = 255;

/// A DHCP unique identifier: one for a whole host, kept for ever (RFC 8415 §11).
#[derive(Clone, PartialEq, Eq)]
pub struct Duid(Vec<u8>);

impl Duid {
    /// Of 16 random bytes, to be drawn once and kept (RFC 6355).
    pub fn from_random(bytes: [u8; 16]) -> Duid {
        Duid([&KIND_UUID[..], &bytes].concat())
    }
    /// Of a card, where nothing can be kept (RFC 8415 §11.4).
    pub fn from_card(card: HardwareAddress) -> Duid {
        Duid([&KIND_LINK_LAYER[..], &card.0].concat())
    }
    /// Of what [`Duid`]'s display wrote; `None` when it is something else.
    pub fn parse(text: &str) -> Option<Duid> {
        let digits = text.trim().as_bytes();
        if !(2..=DUID_BYTES).contains(&(digits.len() / 2)) || !digits.len().is_multiple_of(2) {
            return None;
        }
        let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
        let byte = |pair: &[u8]| match pair {
            &[high, low] => Some(value(high)? << 4 | value(low)?),
            _ => None,
        };
        digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>().map(Duid)
    }
    /// As it goes over the wire.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Duid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
impl fmt::Debug for Duid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One link of a host, as servers know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The host's.
    pub duid: Duid,
    /// The link's on this host.
    pub association: u32,
}

impl Identity {
    /// The identity of the link `name`; the same after every start.
    pub fn new(duid: Duid, name: &str) -> Identity {
        let association = SipKey::from_halves(0x0069_6169_6400, 0).hash(name.as_bytes()) as u32;
        Identity { duid, association }
    }
    /// The value of DHCPv4's client identifier option (RFC 4361 §6.1).
    pub fn client_identifier(&self) -> Vec<u8> {
        [&[CLIENT_IDENTIFIER_TYPE][..], &self.association.to_be_bytes(), self.duid.bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_survives_being_written() {
        let duid = Duid::from_random(core::array::from_fn(|i| i as u8 * 17));
        assert_eq!(duid.to_string(), "000400112233445566778899aabbccddeeff");
        assert_eq!(Duid::parse(&format!("{duid}\n")), Some(duid));
        for wrong in ["", "00", "000", "zz00", &"00".repeat(131), "0004é0"] {
            assert_eq!(Duid::parse(wrong), None, "{wrong}");
        }
    }

    // RFC 4361 §6.1
    #[test]
    fn a_link_is_known_by_type_association_and_host() {
        let duid = Duid::from_card(HardwareAddress([2, 0, 0, 0, 0, 1]));
        let (one, other) = (Identity::new(duid.clone(), "in0"), Identity::new(duid, "in1"));
        let bytes = one.client_identifier();
        assert_eq!((bytes[0], &bytes[5..]), (255, &[0, 3, 0, 1, 2, 0, 0, 0, 0, 1][..]));
        assert_eq!(bytes[1..5], one.association.to_be_bytes());
        assert_ne!(one.association, other.association);
    }
}
