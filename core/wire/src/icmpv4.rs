//! The Internet Control Message Protocol for IPv4 (RFC 792; codes of RFC 1122 §3.2.2.1 and RFC 1812 §5.2.7.1;
//! next-hop MTU of RFC 1191).

use crate::Malformed;
use crate::checksum::Sum;
use crate::cursor::{Reader, Writer};
use crate::quoted::Quoted;
use inhost_base::Ipv4Addr;

/// Bytes before the data or the quoted packet.
pub const LENGTH: usize = 8;

const ECHO_REPLY: u8 = 0;
const DESTINATION_UNREACHABLE: u8 = 3;
const REDIRECT: u8 = 5;
const ECHO_REQUEST: u8 = 8;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;
const TIMESTAMP: u8 = 13;
const TIMESTAMP_REPLY: u8 = 14;
/// The high bit of a nonstandard time, which is not milliseconds since midnight UT (RFC 792).
pub const NONSTANDARD_TIME: u32 = 1 << 31;

/// Why a destination cannot be reached.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnreachableCode {
    /// No route to the network.
    Network,
    /// The host does not answer its neighbour.
    Host,
    /// The host does not speak the protocol.
    Protocol,
    /// Nobody at that port.
    Port,
    /// Too long, and fragmentation is forbidden.
    FragmentationNeeded,
    /// A hop of the source route cannot be reached.
    SourceRouteFailed,
    /// The network does not exist.
    NetworkUnknown,
    /// The host does not exist.
    HostUnknown,
    /// The source is isolated (obsolete).
    SourceIsolated,
    /// Forbidden to the network.
    NetworkProhibited,
    /// Forbidden to the host.
    HostProhibited,
    /// Not for this type of service.
    NetworkForService,
    /// Not for this type of service.
    HostForService,
    /// A filter forbids it.
    Prohibited,
    /// The precedence is refused for this host.
    PrecedenceViolation,
    /// The precedence is below the network's minimum.
    PrecedenceCutoff,
    /// A code that is not defined.
    Other(u8),
}

impl UnreachableCode {
    const DEFINED: [UnreachableCode; 16] = [
        UnreachableCode::Network,
        UnreachableCode::Host,
        UnreachableCode::Protocol,
        UnreachableCode::Port,
        UnreachableCode::FragmentationNeeded,
        UnreachableCode::SourceRouteFailed,
        UnreachableCode::NetworkUnknown,
        UnreachableCode::HostUnknown,
        UnreachableCode::SourceIsolated,
        UnreachableCode::NetworkProhibited,
        UnreachableCode::HostProhibited,
        UnreachableCode::NetworkForService,
        UnreachableCode::HostForService,
        UnreachableCode::Prohibited,
        UnreachableCode::PrecedenceViolation,
        UnreachableCode::PrecedenceCutoff,
    ];

    /// The code on the wire.
    pub fn to_u8(self) -> u8 {
        match self {
            UnreachableCode::Other(code) => code,
            // There are sixteen.
            defined => UnreachableCode::DEFINED.iter().position(|c| *c == defined).unwrap_or(0) as u8,
        }
    }
    /// The meaning of a code on the wire.
    pub fn from_u8(code: u8) -> Self {
        match UnreachableCode::DEFINED.get(usize::from(code)) {
            Some(defined) => *defined,
            None => UnreachableCode::Other(code),
        }
    }
    /// Whether a connection outlives the error (RFC 1122 §4.2.3.9): all but protocol unreachable, port unreachable
    /// and fragmentation needed, the last of which is not an error but news of a smaller MTU.
    pub fn is_soft(self) -> bool {
        !matches!(
            self,
            UnreachableCode::Protocol | UnreachableCode::Port | UnreachableCode::FragmentationNeeded
        )
    }
}

/// The codes of a redirect.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RedirectCode {
    /// The network; a host reads it as the host (RFC 1122 §3.2.2.2).
    Network,
    /// The host.
    Host,
    /// The network, for a type of service.
    NetworkForService,
    /// The host, for a type of service.
    HostForService,
}

impl RedirectCode {
    fn from_u8(code: u8) -> Option<Self> {
        Some(match code {
            0 => RedirectCode::Network,
            1 => RedirectCode::Host,
            2 => RedirectCode::NetworkForService,
            3 => RedirectCode::HostForService,
            _ => return None,
        })
    }
}

/// Which time ran out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TimeExceededCode {
    /// The packet's hops.
    InTransit,
    /// The wait for the rest of its fragments.
    Reassembly,
}

impl TimeExceededCode {
    pub(crate) fn from_u8(code: u8) -> Option<Self> {
        match code {
            0 => Some(TimeExceededCode::InTransit),
            1 => Some(TimeExceededCode::Reassembly),
            _ => None,
        }
    }
}

/// A message in place; its checksum is asked for apart.
#[derive(Clone, Copy, Debug)]
pub struct Icmpv4View<'a>(&'a [u8]);

impl<'a> Icmpv4View<'a> {
    /// The payload of an IPv4 packet.
    pub fn new(message: &'a [u8]) -> Result<Self, Malformed> {
        if message.len() < LENGTH { Err(Malformed::Truncated) } else { Ok(Icmpv4View(message)) }
    }
    /// Whether the checksum over the whole message is right.
    // spec: RFC792 checksum
    pub fn checksum_ok(&self) -> bool {
        Sum::of(self.0).is_valid()
    }
    /// The type.
    pub fn kind(&self) -> u8 {
        self.0.first().copied().unwrap_or(0)
    }
    /// The code.
    pub fn code(&self) -> u8 {
        self.0.get(1).copied().unwrap_or(0)
    }
}

/// Times of a timestamp request or reply: milliseconds since midnight UT, or with [`NONSTANDARD_TIME`] of another clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Times {
    /// Whose request it is.
    pub identifier: u16,
    /// Which of the requests.
    pub sequence: u16,
    /// When the request was sent.
    pub originate: u32,
    /// When it was received.
    pub receive: u32,
    /// When the reply was sent.
    pub transmit: u32,
}

impl Times {
    const BYTES: usize = 12;

    fn parse(identifier: u16, sequence: u16, rest: &[u8]) -> Option<Self> {
        let mut r = Reader::new(rest);
        let (originate, receive, transmit) = (r.u32()?, r.u32()?, r.u32()?);
        Some(Times { identifier, sequence, originate, receive, transmit })
    }
}

/// The message as a value.
///
/// ```
/// use inhost_wire::icmpv4::{Icmpv4Message, Icmpv4View};
/// let request = Icmpv4Message::EchoRequest { identifier: 7, sequence: 1, data: b"ping" };
/// let mut bytes = [0; 64];
/// let length = request.emit(&mut bytes);
/// let view = Icmpv4View::new(&bytes[..length]).unwrap();
/// assert!(view.checksum_ok());
/// assert_eq!(Icmpv4Message::parse(&view), request);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Icmpv4Message<'a> {
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
    /// A packet could not be delivered.
    DestinationUnreachable {
        /// Why.
        code: UnreachableCode,
        /// With [`UnreachableCode::FragmentationNeeded`], the MTU of the link that was too narrow; 0 from routers
        /// older than RFC 1191, and with any other code.
        next_hop_mtu: u16,
        /// The front of the packet; see [`Quoted::of_ipv4`].
        invoking: &'a [u8],
    },
    /// There is a better gateway.
    Redirect {
        /// For what.
        code: RedirectCode,
        /// Which.
        gateway: Ipv4Addr,
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
        /// 0: see the pointer. 1: an option is missing. 2: bad length.
        code: u8,
        /// The offending byte.
        pointer: u8,
        /// The front of the packet.
        invoking: &'a [u8],
    },
    /// A timestamp request.
    TimestampRequest(Times),
    /// The answer.
    TimestampReply(Times),
    /// A message of another type, or of a code that is not defined.
    Other {
        /// The type.
        kind: u8,
        /// The code.
        code: u8,
        /// The bytes after the checksum: at least 4.
        body: &'a [u8],
    },
}

impl<'a> Icmpv4Message<'a> {
    /// The message that `view` shows.
    pub fn parse(view: &Icmpv4View<'a>) -> Self {
        let (kind, code) = (view.kind(), view.code());
        let body = view.0.get(4..).unwrap_or(&[]);
        let other = Icmpv4Message::Other { kind, code, body };
        let Some((&[a, b, c, d], rest)) = body.split_first_chunk::<4>() else { return other };
        let (first, second) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        match kind {
            ECHO_REQUEST if code == 0 => {
                Icmpv4Message::EchoRequest { identifier: first, sequence: second, data: rest }
            }
            ECHO_REPLY if code == 0 => {
                Icmpv4Message::EchoReply { identifier: first, sequence: second, data: rest }
            }
            DESTINATION_UNREACHABLE => {
                let code = UnreachableCode::from_u8(code);
                let next_hop_mtu = if code == UnreachableCode::FragmentationNeeded { second } else { 0 };
                Icmpv4Message::DestinationUnreachable { code, next_hop_mtu, invoking: rest }
            }
            REDIRECT => RedirectCode::from_u8(code).map_or(other, |code| Icmpv4Message::Redirect {
                code,
                gateway: Ipv4Addr::new(a, b, c, d),
                invoking: rest,
            }),
            TIME_EXCEEDED => TimeExceededCode::from_u8(code)
                .map_or(other, |code| Icmpv4Message::TimeExceeded { code, invoking: rest }),
            PARAMETER_PROBLEM => Icmpv4Message::ParameterProblem { code, pointer: a, invoking: rest },
            TIMESTAMP if code == 0 => {
                Times::parse(first, second, rest).map_or(other, Icmpv4Message::TimestampRequest)
            }
            TIMESTAMP_REPLY if code == 0 => {
                Times::parse(first, second, rest).map_or(other, Icmpv4Message::TimestampReply)
            }
            _ => other,
        }
    }

    /// Whether this is an error message, about which no error message may be sent (RFC 1122 §3.2.2). An unknown
    /// type is taken for one.
    pub fn is_error(&self) -> bool {
        match self {
            Icmpv4Message::EchoRequest { .. }
            | Icmpv4Message::EchoReply { .. }
            | Icmpv4Message::TimestampRequest(_)
            | Icmpv4Message::TimestampReply(_) => false,
            // Information and address mask queries and router discovery.
            Icmpv4Message::Other { kind, .. } => !matches!(kind, 0 | 8..=10 | 13..=18),
            _ => true,
        }
    }

    /// The packet quoted by an error message; `None` in a query, and when too little is quoted.
    pub fn quoted(&self) -> Option<Quoted> {
        match self {
            Icmpv4Message::DestinationUnreachable { invoking, .. }
            | Icmpv4Message::Redirect { invoking, .. }
            | Icmpv4Message::TimeExceeded { invoking, .. }
            | Icmpv4Message::ParameterProblem { invoking, .. } => Quoted::of_ipv4(invoking),
            Icmpv4Message::EchoRequest { .. }
            | Icmpv4Message::EchoReply { .. }
            | Icmpv4Message::TimestampRequest(_)
            | Icmpv4Message::TimestampReply(_)
            | Icmpv4Message::Other { .. } => None,
        }
    }

    /// Bytes that [`Icmpv4Message::emit`] writes.
    pub fn length(&self) -> usize {
        match self {
            Icmpv4Message::EchoRequest { data: rest, .. }
            | Icmpv4Message::EchoReply { data: rest, .. }
            | Icmpv4Message::DestinationUnreachable { invoking: rest, .. }
            | Icmpv4Message::Redirect { invoking: rest, .. }
            | Icmpv4Message::TimeExceeded { invoking: rest, .. }
            | Icmpv4Message::ParameterProblem { invoking: rest, .. } => LENGTH + rest.len(),
            Icmpv4Message::TimestampRequest(_) | Icmpv4Message::TimestampReply(_) => LENGTH + Times::BYTES,
            Icmpv4Message::Other { body, .. } => 4 + body.len(),
        }
    }

    /// Writes the message with its checksum; its length, or 0 when `buffer` is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let mut w = Writer::new(buffer);
        match *self {
            Icmpv4Message::EchoRequest { identifier, sequence, data } => {
                w.u8(ECHO_REQUEST).u8(0).u16(0).u16(identifier).u16(sequence).bytes(data)
            }
            Icmpv4Message::EchoReply { identifier, sequence, data } => {
                w.u8(ECHO_REPLY).u8(0).u16(0).u16(identifier).u16(sequence).bytes(data)
            }
            Icmpv4Message::DestinationUnreachable { code, next_hop_mtu, invoking } => {
                let mtu = if code == UnreachableCode::FragmentationNeeded { next_hop_mtu } else { 0 };
                w.u8(DESTINATION_UNREACHABLE).u8(code.to_u8()).u16(0).u16(0).u16(mtu).bytes(invoking)
            }
            Icmpv4Message::Redirect { code, gateway, invoking } => {
                w.u8(REDIRECT).u8(code as u8).u16(0).ipv4(gateway).bytes(invoking)
            }
            Icmpv4Message::TimeExceeded { code, invoking } => {
                w.u8(TIME_EXCEEDED).u8(code as u8).u16(0).u32(0).bytes(invoking)
            }
            Icmpv4Message::ParameterProblem { code, pointer, invoking } => {
                w.u8(PARAMETER_PROBLEM).u8(code).u16(0).u8(pointer).bytes(&[0; 3]).bytes(invoking)
            }
            Icmpv4Message::TimestampRequest(times) => {
                w.u8(TIMESTAMP);
                write_times(&mut w, &times)
            }
            Icmpv4Message::TimestampReply(times) => {
                w.u8(TIMESTAMP_REPLY);
                write_times(&mut w, &times)
            }
            Icmpv4Message::Other { kind, code, body } => w.u8(kind).u8(code).u16(0).bytes(body),
        };
        let checksum = Sum::of(w.written()).finish();
        w.patch_u16(2, checksum).finish()
    }
}

/// The rest of a timestamp message after its type.
fn write_times<'a, 'b>(w: &'a mut Writer<'b>, times: &Times) -> &'a mut Writer<'b> {
    let Times { identifier, sequence, originate, receive, transmit } = *times;
    w.u8(0).u16(0).u16(identifier).u16(sequence).u32(originate).u32(receive).u32(transmit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survives(message: Icmpv4Message<'_>) -> Vec<u8> {
        let mut buffer = vec![0xee; message.length()];
        assert_eq!(message.emit(&mut buffer), buffer.len());
        let view = Icmpv4View::new(&buffer).unwrap();
        assert!(view.checksum_ok());
        assert_eq!(Icmpv4Message::parse(&view), message);
        assert_eq!(message.emit(&mut vec![0; buffer.len() - 1]), 0);
        buffer
    }

    #[test]
    fn every_message_survives_the_wire() {
        // spec: RFC792 message formats
        let invoking = &[0x45; 28][..];
        survives(Icmpv4Message::EchoRequest { identifier: 1, sequence: 2, data: b"ping!" });
        survives(Icmpv4Message::EchoReply { identifier: 1, sequence: 2, data: b"" });
        for code in 0..=255 {
            let code = UnreachableCode::from_u8(code);
            let next_hop_mtu = if code.to_u8() == 4 { 1400 } else { 0 };
            survives(Icmpv4Message::DestinationUnreachable { code, next_hop_mtu, invoking });
            survives(Icmpv4Message::ParameterProblem { code: code.to_u8(), pointer: 9, invoking });
        }
        for code in [0, 1, 2, 3].map(|code| RedirectCode::from_u8(code).unwrap()) {
            survives(Icmpv4Message::Redirect { code, gateway: Ipv4Addr::new(10, 9, 0, 254), invoking });
        }
        for code in [TimeExceededCode::InTransit, TimeExceededCode::Reassembly] {
            survives(Icmpv4Message::TimeExceeded { code, invoking });
        }
        let times =
            Times { identifier: 1, sequence: 2, originate: 3, receive: 4, transmit: NONSTANDARD_TIME };
        survives(Icmpv4Message::TimestampRequest(times));
        assert_eq!(survives(Icmpv4Message::TimestampReply(times)).len(), 20);
        survives(Icmpv4Message::Other { kind: 15, code: 0, body: &[0; 16] });
    }

    #[test]
    fn a_ping_on_the_wire() {
        // The first bytes of a request as the common ping sends it, with its checksum.
        let bytes = [
            8, 0, 0x4d, 0x56, 0, 1, 0, 5, b'a', b'b', b'c', b'd', b'e', b'f', b'g', b'h', b'i', b'j', b'k',
            b'l', b'm', b'n', b'o', b'p', b'q', b'r', b's', b't', b'u', b'v', b'w', b'a', b'b', b'c', b'd',
            b'e', b'f', b'g', b'h', b'i',
        ];
        let view = Icmpv4View::new(&bytes).unwrap();
        assert!(view.checksum_ok());
        let message = Icmpv4Message::parse(&view);
        assert_eq!(survives(message), bytes);
        assert!(!message.is_error());
    }

    #[test]
    fn undefined_codes_are_other_messages() {
        for (kind, code) in [(5, 4), (11, 2), (8, 1), (0, 1), (13, 0), (14, 1)] {
            let bytes = [kind, code, 0, 0, 0, 0, 0, 0];
            let message = Icmpv4Message::parse(&Icmpv4View::new(&bytes).unwrap());
            assert_eq!(message, Icmpv4Message::Other { kind, code, body: &[0; 4] });
        }
        assert_eq!(Icmpv4View::new(&[0; 7]).err(), Some(Malformed::Truncated));
    }

    #[test]
    fn errors_are_told_from_queries() {
        // spec: RFC1122 3.2.2-5
        let other = |kind| Icmpv4Message::Other { kind, code: 0, body: &[0; 4] };
        assert!(!other(13).is_error() && other(4).is_error() && other(200).is_error());
        assert!(Icmpv4Message::TimeExceeded { code: TimeExceededCode::InTransit, invoking: &[] }.is_error());
        // spec: RFC1122 3.2.2.1-4
        assert!(UnreachableCode::Host.is_soft() && !UnreachableCode::Port.is_soft());
    }
}
