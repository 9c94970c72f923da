//! A frame in words: its layers from the link to the application, each with its fields.
//!
//! Frames may be cut anywhere and say anything. What is missing is left out, and what strangers wrote is cleaned.

mod application;
mod dhcp;
mod icmp;
mod network;
mod telnet;
mod transport;

use inhost_explain::capture::{Frame, LinkType};
use std::net::SocketAddr;

use crate::flows::Flows;

/// A layer of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layer {
    /// Its protocol: `ipv4`, `tcp`, `dns`.
    pub name: &'static str,
    /// Its fields with their values, in the order of the header.
    pub fields: Vec<(&'static str, String)>,
    /// What a person wants to know of it, in a few words.
    pub words: String,
}

/// A frame in words.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Decoded {
    /// From the link inwards.
    pub layers: Vec<Layer>,
    /// From whom to whom, as far as there are addresses; port 0 where there is none.
    pub ends: Option<[SocketAddr; 2]>,
    /// The bytes of the stream or datagram that the innermost transport carries.
    pub payload: Vec<u8>,
}

impl Layer {
    fn new(name: &'static str) -> Layer {
        Layer { name, fields: Vec::new(), words: String::new() }
    }
    fn field(&mut self, name: &'static str, value: impl ToString) {
        self.fields.push((name, value.to_string()));
    }
}

/// Numbers of headers, highest byte first; none behind the end of what was captured.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let found = bytes.get(at..at + length)?;
    Some(found.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}
fn mac(bytes: &[u8], at: usize) -> Option<String> {
    let octets = bytes.get(at..at + 6)?;
    Some(octets.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().join(":"))
}

/// Decodes a frame; `flows` makes the numbers of TCP relative.
pub fn decode(frame: &Frame<'_>, flows: &mut Flows) -> Decoded {
    let mut decoded = Decoded::default();
    let bytes = frame.bytes;
    let (ethertype, rest) = match frame.link {
        LinkType::Ethernet => {
            let mut layer = Layer::new("ethernet");
            if let (Some(destination), Some(source)) = (mac(bytes, 0), mac(bytes, 6)) {
                layer.words = format!("{source} > {destination}");
                layer.field("source", source);
                layer.field("destination", destination);
            }
            decoded.layers.push(layer);
            (number(bytes, 12, 2), bytes.get(14..))
        }
        LinkType::Cooked => (number(bytes, 14, 2), bytes.get(16..)),
        LinkType::Cooked2 => (number(bytes, 0, 2), bytes.get(20..)),
        LinkType::Loopback => (None, bytes.get(4..)),
        LinkType::Ip => (None, Some(bytes)),
        _ => return decoded,
    };
    let Some(rest) = rest else { return decoded };
    let by_version = || match rest.first().map(|octet| octet >> 4) {
        Some(6) => 0x86dd,
        _ => 0x0800,
    };
    network::decode(ethertype.unwrap_or_else(by_version), rest, frame, flows, &mut decoded);
    decoded
}
