//! A segment on its way through the steps of RFC 9293 §3.10.7.

use crate::{Ecn, Header};
use inhost_base::Offset;
use inhost_buf::Packet;
use inhost_wire::tcp::Flags;

/// A segment on its way through the steps.
pub(crate) struct Arrival<'a> {
    pub header: &'a Header,
    /// The position of its sequence number in the peer's stream.
    pub first: Offset,
    /// That of its acknowledgment number in ours.
    pub acknowledgment: Offset,
    /// Its data, cut to what is new and within the window.
    pub payload: Packet,
    /// All that it bore had come before.
    pub is_repeated: bool,
    /// How long that was before.
    pub whole_bytes: u32,
    /// Position of the first byte of `payload`.
    pub start: Offset,
    /// It ends the peer's stream, after `payload`.
    pub fin: bool,
    /// The mark that its IP header bore.
    pub ecn: Ecn,
    /// Whether the host has memory for its data.
    pub keeps_data: bool,
}

impl Arrival<'_> {
    /// Whether it is an acknowledgment and nothing else.
    pub fn is_pure(&self) -> bool {
        self.header.flags.ack() && self.end() == self.first
    }
    /// Whether it is the peer's SYN, retransmitted.
    pub fn is_repeated_syn(&self) -> bool {
        self.header.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN && self.first == Offset::SYN
    }
    /// After its last byte, SYN and FIN counted.
    pub fn end(&self) -> Offset {
        let flags = self.header.flags;
        self.first + self.whole_bytes + u32::from(flags.syn()) + u32::from(flags.fin())
    }
    /// It as data: how much it bore, and how it was marked.
    pub fn coming(&self) -> Coming {
        let flags = self.header.flags;
        Coming {
            bytes: self.whole_bytes,
            new_bytes: self.payload.len() as u32,
            push: flags.psh(),
            is_marked: flags.fin() || flags.urg(),
            fin: self.fin,
            timestamps: self.header.options.timestamps,
        }
    }
    /// Whether it carries a part of a stream that goes on: data or FIN, and no SYN.
    pub fn bears_stream(&self) -> bool {
        let flags = self.header.flags;
        !flags.syn() && (self.whole_bytes > 0 || flags.fin())
    }
}

/// A segment of data, as what its coming tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    /// Its payload, with what of it had come before.
    pub bytes: u32,
    /// Payload that is new.
    pub new_bytes: u32,
    pub push: bool,
    /// It bears FIN or URG.
    pub is_marked: bool,
    /// The peer's stream ends with it.
    pub fin: bool,
    /// Its timestamp, and ours that it echoes.
    pub timestamps: Option<(u32, u32)>,
}
