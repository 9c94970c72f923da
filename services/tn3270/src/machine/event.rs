//! What an end of a connection tells its owner.

use core::fmt;

use crate::codec::{DeviceReason, Header, Resource, Sense};

/// The protocol that both ends agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Protocol {
    /// RFC 1576: BINARY, END-OF-RECORD and TERMINAL-TYPE.
    Tn3270,
    /// RFC 2355.
    Tn3270e,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Tn3270 => "TN3270",
            Protocol::Tn3270e => "TN3270E",
        })
    }
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Server: a client asks for a device. The owner answers by [`accept_device`](super::Tn3270::accept_device) or
    /// [`reject_device`](super::Tn3270::reject_device).
    DeviceRequested {
        /// Its type.
        device_type: String,
        /// The device that it wants.
        resource: Option<Resource>,
    },
    /// Client: the server refused the device. The client goes on without TN3270E, if it is a terminal.
    DeviceRejected(DeviceReason),
    /// Negotiation is over; records can be sent.
    Ready(Protocol),
    /// Server: the client is not a 3270 terminal, or does not say what it is. The name is empty then.
    NotA3270(String),
    /// A record. Without TN3270E its header says 3270 data, and that no response is wanted.
    Record {
        /// The header.
        header: Header,
        /// What is behind it.
        data: Vec<u8>,
    },
    /// A response to a record of ours.
    Response {
        /// The record's number.
        sequence: u16,
        /// Whether it was executed.
        outcome: Result<(), Sense>,
    },
    /// Text before records are agreed on.
    Nvt(Vec<u8>),
    /// The Attn key: IP, or BREAK.
    Attention,
    /// The SysReq key: AO, in TN3270E with this function.
    SysReq,
    /// The peer went beyond a limit. The connection should be closed; nothing more comes.
    Violation(Violation),
}

/// What a peer did that ends the connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Violation {
    /// A record of more than [`RECORD_BYTES`](super::RECORD_BYTES).
    Record,
    /// Negotiation without end.
    Negotiation,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Violation::Record => "a record is too long",
            Violation::Negotiation => "the peer negotiates without end",
        })
    }
}
