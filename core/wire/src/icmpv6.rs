//! The Internet Control Message Protocol for IPv6 (RFC 4443), with the messages of neighbour discovery and of
//! multicast listeners that travel in it.

use crate::checksum::{Sum, pseudo_header};
use crate::cursor::{Reader, Writer};
use crate::icmpv4::TimeExceededCode;
use crate::mld::MldMessage;
use crate::ndp::NdpMessage;
use crate::quoted::Quoted;
use crate::{Malformed, protocol};
use inhost_base::{IpAddr, Ipv6Addr};

/// Bytes before the data or the quoted packet of an error or echo message.
pub const LENGTH: usize = 8;

const DESTINATION_UNREACHABLE: u8 = 1;
const PACKET_TOO_BIG: u8 = 2;
const TIME_EXCEEDED: u8 = 3;
const PARAMETER_PROBLEM: u8 = 4;
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;

/// Why a destination cannot be reached (RFC 4443 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnreachableCode {
    /// No route.
    NoRoute,
    /// A filter forbids it.
    Prohibited,
    /// The destination is beyond the scope of the source address.
    BeyondScope,
    /// The host does not answer its neighbour, or anything else.
    Address,
    /// Nobody at that port.
    Port,
    /// The source address fails a policy.
    SourcePolicy,
    /// The route to the destination is rejected.
    RouteRejected,
    /// A source routing header is wrong (RFC 6550 §20.18).
    SourceRoute,
    /// A code that is not defined.
    Other(u8),
}

impl UnreachableCode {
    /// The code on the wire.
    pub fn to_u8(self) -> u8 {
        match self {
            UnreachableCode::NoRoute => 0,
            UnreachableCode::Prohibited => 1,
            UnreachableCode::BeyondScope => 2,
            UnreachableCode::Address => 3,
            UnreachableCode::Port => 4,
            UnreachableCode::SourcePolicy => 5,
            UnreachableCode::RouteRejected => 6,
            UnreachableCode::SourceRoute => 7,
            UnreachableCode::Other(code) => code,
        }
    }
    /// The meaning of a code on the wire.
    pub fn from_u8(code: u8) -> Self {
        match code {
            0 => UnreachableCode::NoRoute,
            1 => UnreachableCode::Prohibited,
            2 => UnreachableCode::BeyondScope,
            3 => UnreachableCode::Address,
            4 => UnreachableCode::Port,
            5 => UnreachableCode::SourcePolicy,
            6 => UnreachableCode::RouteRejected,
            7 => UnreachableCode::SourceRoute,
            other => UnreachableCode::Other(other),
        }
    }
    /// Whether a connection outlives the error: all but prohibited and port unreachable (RFC 5461 §2).
    pub fn is_soft(self) -> bool {
        !matches!(self, UnreachableCode::Prohibited | UnreachableCode::Port)
    }
}

/// A message in place; its checksum is asked for apart.
#[derive(Clone, Copy, Debug)]
pub struct Icmpv6View<'a> {
    whole: &'a [u8],
    header: &'a [u8; 4],
    body: &'a [u8],
}

impl<'a> Icmpv6View<'a> {
    /// The upper layer of an IPv6 packet.
    pub fn new(message: &'a [u8]) -> Result<Self, Malformed> {
        let (header, body) = message.split_first_chunk().ok_or(Malformed::Truncated)?;
        Ok(Icmpv6View { whole: message, header, body })
    }
    /// Whether the checksum over pseudo-header and message is right.
    // spec: RFC4443 2.3
    pub fn checksum_ok(&self, source: Ipv6Addr, destination: Ipv6Addr) -> bool {
        sum_of(self.whole, source, destination).is_valid()
    }
    /// The type; from 128 on it is not an error message.
    pub fn kind(&self) -> u8 {
        self.header[0]
    }
    /// The code.
    pub fn code(&self) -> u8 {
        self.header[1]
    }
    /// The bytes after the checksum.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }
}

/// The message as a value.
#[expect(clippy::large_enum_variant, reason = "it lives for one call; a box would cost an allocation")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Icmpv6Message<'a> {
    /// A packet could not be delivered.
    DestinationUnreachable {
        /// Why.
        code: UnreachableCode,
        /// The front of the packet; see [`Quoted::of_ipv6`].
        invoking: &'a [u8],
    },
    /// A packet is longer than the next link's MTU.
    PacketTooBig {
        /// That MTU, in bytes.
        mtu: u32,
        /// The front of the packet.
        invoking: &'a [u8],
    },
    /// A packet or its fragments were too late.
    TimeExceeded {
        /// Which time ran out.
        code: TimeExceededCode,
        /// The front of the packet.
        invoking: &'a [u8],
    },
    /// A header made no sense.
    ParameterProblem {
        /// 0: erroneous field. 1: unrecognised next header. 2: unrecognised option. 3: incomplete chain in a
        /// first fragment.
        code: u8,
        /// The offending byte.
        pointer: u32,
        /// The front of the packet.
        invoking: &'a [u8],
    },
    /// Answer me.
    EchoRequest {
        /// Whose request it is.
        identifier: u16,
        /// Which of the requests.
        sequence: u16,
        /// To be sent back.
        data: &'a [u8],
    },
    /// The answer.
    EchoReply {
        /// Of the request.
        identifier: u16,
        /// Of the request.
        sequence: u16,
        /// Of the request.
        data: &'a [u8],
    },
    /// Neighbour discovery.
    Ndp(NdpMessage<'a>),
    /// Multicast listener discovery.
    Mld(MldMessage),
    /// A message of another type, or of a code that is not defined.
    Other {
        /// The type.
        kind: u8,
        /// The code.
        code: u8,
        /// The bytes after the checksum.
        body: &'a [u8],
    },
}

impl<'a> Icmpv6Message<'a> {
    /// The message that `view` shows. An error when it is shorter than its type needs, or breaks a rule of
    /// neighbour or listener discovery that can be seen in the message alone.
    pub fn parse(view: &Icmpv6View<'a>) -> Result<Self, Malformed> {
        let (kind, code, body) = (view.kind(), view.code(), view.body);
        let other = Icmpv6Message::Other { kind, code, body };
        match kind {
            // spec: RFC4861 6.1, 7.1, 8.1 (code is 0)
            133..=137 if code != 0 => return Err(Malformed::Value),
            133..=137 => return NdpMessage::parse(kind, body).map(Icmpv6Message::Ndp),
            130..=132 => return MldMessage::parse(kind, body).map(Icmpv6Message::Mld),
            DESTINATION_UNREACHABLE..=PARAMETER_PROBLEM | ECHO_REQUEST | ECHO_REPLY => {}
            _ => return Ok(other),
        }
        let mut r = Reader::new(body);
        let word = r.u32().ok_or(Malformed::Truncated)?;
        let (identifier, sequence) = ((word >> 16) as u16, word as u16);
        let rest = r.rest();
        Ok(match kind {
            DESTINATION_UNREACHABLE => {
                Icmpv6Message::DestinationUnreachable { code: UnreachableCode::from_u8(code), invoking: rest }
            }
            PACKET_TOO_BIG => Icmpv6Message::PacketTooBig { mtu: word, invoking: rest },
            TIME_EXCEEDED => TimeExceededCode::from_u8(code)
                .map_or(other, |code| Icmpv6Message::TimeExceeded { code, invoking: rest }),
            PARAMETER_PROBLEM => Icmpv6Message::ParameterProblem { code, pointer: word, invoking: rest },
            ECHO_REQUEST if code == 0 => Icmpv6Message::EchoRequest { identifier, sequence, data: rest },
            ECHO_REPLY if code == 0 => Icmpv6Message::EchoReply { identifier, sequence, data: rest },
            _ => other,
        })
    }

    /// Whether this is an error message, about which no error message may be sent (RFC 4443 §2.4 (e)), nor about
    /// a redirect.
    pub fn is_error(&self) -> bool {
        match self {
            Icmpv6Message::DestinationUnreachable { .. }
            | Icmpv6Message::PacketTooBig { .. }
            | Icmpv6Message::TimeExceeded { .. }
            | Icmpv6Message::ParameterProblem { .. }
            | Icmpv6Message::Ndp(NdpMessage::Redirect { .. }) => true,
            Icmpv6Message::Other { kind, .. } => *kind < 128,
            _ => false,
        }
    }

    /// The packet quoted by an error message; `None` in other messages, and when too little is quoted.
    pub fn quoted(&self) -> Option<Quoted> {
        match self {
            Icmpv6Message::DestinationUnreachable { invoking, .. }
            | Icmpv6Message::PacketTooBig { invoking, .. }
            | Icmpv6Message::TimeExceeded { invoking, .. }
            | Icmpv6Message::ParameterProblem { invoking, .. } => Quoted::of_ipv6(invoking),
            _ => None,
        }
    }

    /// Bytes that [`Icmpv6Message::emit`] writes.
    pub fn length(&self) -> usize {
        match self {
            Icmpv6Message::DestinationUnreachable { invoking: rest, .. }
            | Icmpv6Message::PacketTooBig { invoking: rest, .. }
            | Icmpv6Message::TimeExceeded { invoking: rest, .. }
            | Icmpv6Message::ParameterProblem { invoking: rest, .. }
            | Icmpv6Message::EchoRequest { data: rest, .. }
            | Icmpv6Message::EchoReply { data: rest, .. } => LENGTH + rest.len(),
            Icmpv6Message::Ndp(message) => 4 + message.body_length(),
            Icmpv6Message::Mld(message) => 4 + message.body_length(),
            Icmpv6Message::Other { body, .. } => 4 + body.len(),
        }
    }

    /// Writes the message with the checksum for these addresses; its length, or 0 when `buffer` is too short.
    pub fn emit(&self, source: Ipv6Addr, destination: Ipv6Addr, buffer: &mut [u8]) -> usize {
        let mut w = Writer::new(buffer);
        match *self {
            Icmpv6Message::DestinationUnreachable { code, invoking } => {
                w.u8(DESTINATION_UNREACHABLE).u8(code.to_u8()).u16(0).u32(0).bytes(invoking)
            }
            Icmpv6Message::PacketTooBig { mtu, invoking } => {
                w.u8(PACKET_TOO_BIG).u8(0).u16(0).u32(mtu).bytes(invoking)
            }
            Icmpv6Message::TimeExceeded { code, invoking } => {
                w.u8(TIME_EXCEEDED).u8(code as u8).u16(0).u32(0).bytes(invoking)
            }
            Icmpv6Message::ParameterProblem { code, pointer, invoking } => {
                w.u8(PARAMETER_PROBLEM).u8(code).u16(0).u32(pointer).bytes(invoking)
            }
            Icmpv6Message::EchoRequest { identifier, sequence, data } => {
                w.u8(ECHO_REQUEST).u8(0).u16(0).u16(identifier).u16(sequence).bytes(data)
            }
            Icmpv6Message::EchoReply { identifier, sequence, data } => {
                w.u8(ECHO_REPLY).u8(0).u16(0).u16(identifier).u16(sequence).bytes(data)
            }
            Icmpv6Message::Ndp(message) => {
                w.u8(message.kind()).u8(0).u16(0);
                message.write_body(&mut w);
                &mut w
            }
            Icmpv6Message::Mld(message) => {
                w.u8(message.kind()).u8(0).u16(0);
                message.write_body(&mut w);
                &mut w
            }
            Icmpv6Message::Other { kind, code, body } => w.u8(kind).u8(code).u16(0).bytes(body),
        };
        let checksum = sum_of(w.written(), source, destination).finish();
        w.patch_u16(2, checksum).finish()
    }
}

fn sum_of(message: &[u8], source: Ipv6Addr, destination: Ipv6Addr) -> Sum {
    let (source, destination) = (IpAddr::V6(source), IpAddr::V6(destination));
    pseudo_header(source, destination, protocol::ICMPV6, message.len() as u32).add_bytes(message)
}

#[cfg(test)]
mod tests;
