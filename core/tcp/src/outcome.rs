//! What a call tells its caller.

use crate::{Ecn, Header, PlainHeader};
use inhost_base::Sequence;
use inhost_buf::{Full, Shareable, Slices};
use inhost_event::Drop;
use inhost_wire::tcp::{Flags, TcpOptions};

/// What has changed about a connection in one call: a set. When it wants to be called next, and whether it would send,
/// are queried after every call and are not part of this set.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes(u16);

bitflags::bitflags! {
    impl Changes: u16 {
        /// There is something to read, or to learn by reading.
        const READABLE = 1;
        /// There is room to send again.
        const WRITABLE = 1 << 1;
        /// The handshake is done.
        const CONNECTED = 1 << 2;
        /// The peer has closed its side, and all that it sent has arrived.
        const PEER_CLOSED = 1 << 3;
        /// The peer announced urgent data further ahead than known before.
        const URGENT = 1 << 4;
        /// [`Connection::error`](crate::Connection::error) or `soft_error` has something new.
        const ERROR = 1 << 5;
        /// The connection is over for good; the stack may reap it once the application has let go.
        const CLOSED = 1 << 6;
        /// The peer is there: it acknowledged something new. Advice for the neighbour cache (RFC 4861 §7.3.1).
        const REACHED = 1 << 7;
        /// The peer seems not to be there: retransmissions passed R1. Advice for routing (RFC 9293 §3.8.3).
        const SUSPECT = 1 << 8;
        /// The connection is over, but for TIME-WAIT. It is told once.
        const ENDED = 1 << 9;
    }
}

impl core::fmt::Debug for Changes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        inhost_base::write_names(f, self.iter_names().map(|(name, _)| name))
    }
}

/// What came of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// What has changed.
    pub changes: Changes,
    /// Why the segment went no further, when it did not.
    pub dropped: Option<Drop>,
    /// A reset for the stack to send, outside the connection's own output.
    pub reset: Option<ResetReply>,
}

/// A segment with RST that RFC 9293 §3.5.2 or §3.10.5 asks for.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ResetReply {
    /// Its sequence number.
    pub sequence: Sequence,
    /// Its acknowledgment number; without one the ACK flag is not set.
    pub acknowledgment: Option<Sequence>,
    /// Its timestamps, where they were agreed on (RFC 7323 §3.2).
    pub timestamps: Option<(u32, u32)>,
}

impl ResetReply {
    /// The segment's header, ports 0.
    pub fn header(&self) -> Header {
        let flags = if self.acknowledgment.is_some() { Flags::RST | Flags::ACK } else { Flags::RST };
        Header {
            sequence: self.sequence,
            acknowledgment: self.acknowledgment.unwrap_or_default(),
            flags,
            options: TcpOptions { timestamps: self.timestamps, ..TcpOptions::NONE },
            ..Header::default()
        }
    }
    /// The answer to a segment for which there is no connection (RFC 9293 §3.10.7.1); a reset gets none.
    pub fn to(header: &Header, payload_bytes: usize) -> Option<ResetReply> {
        if header.flags.rst() {
            return None;
        }
        if header.flags.ack() {
            return Some(ResetReply { sequence: header.acknowledgment, ..ResetReply::default() });
        }
        let length = payload_bytes as u32 + u32::from(header.flags.syn()) + u32::from(header.flags.fin());
        let acknowledgment = Some(header.sequence + length);
        Some(ResetReply { acknowledgment, ..ResetReply::default() })
    }
}

/// How bytes are to be sent. The default is a push, as a socket's write is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendHow {
    /// The receiver shall have these bytes without waiting for more. Successive pushes are promoted: one mark moves
    /// to the end of what is queued (UCLA §2.4, RFC 9293 §3.9.1.2). Bytes without push may be held, a bounded time,
    /// until they fill a segment.
    pub push: bool,
    /// The last of these bytes is urgent (RFC 9293 §3.8.5).
    pub urgent: bool,
    /// More follows at once: like no push.
    pub more: bool,
    /// A record ends with the last of these bytes: no segment has bytes from both sides of it.
    pub end_of_record: bool,
}
impl Default for SendHow {
    fn default() -> Self {
        SendHow { push: true, urgent: false, more: false, end_of_record: false }
    }
}

/// Takes the segments of one pass of [`Connection::transmit`](crate::Connection::transmit).
pub trait SegmentOutput {
    /// Takes one segment whole, or nothing of it: the device is full, or the neighbour's address is not known yet. `ecn`
    /// belongs into the IP header.
    fn segment(&mut self, header: &Header, payload: Slices<'_>, ecn: Ecn) -> Result<(), Full>;
    /// As [`SegmentOutput::segment`], for a header with nothing out of the ordinary.
    fn plain(&mut self, header: &PlainHeader, payload: Slices<'_>, ecn: Ecn) -> Result<(), Full> {
        self.segment(&header.full(), payload, ecn)
    }
    /// As [`SegmentOutput::segment`], for a payload that [may be shared](inhost_buf::Frame::share).
    fn shared(
        &mut self,
        header: &Header,
        payload: Slices<'_>,
        shareable: Shareable<'_>,
        ecn: Ecn,
    ) -> Result<(), Full> {
        let _ = shareable;
        self.segment(header, payload, ecn)
    }
    /// The most payload that [`SegmentOutput::large`] takes at a time, in bytes; 0 where there is no gain in it.
    fn large_bytes(&self) -> u32 {
        0
    }
    /// Whether the sums of payloads are of use; where the device makes checksums they are not.
    fn wants_sums(&self) -> bool {
        true
    }
    /// Whether a long payload is best lent so that its memory [can be shared](inhost_buf::Frame::share).
    fn shares(&self) -> bool {
        false
    }
    /// Takes a run of segments as one: `payload` is to be cut into segments of `segment_bytes`, the last may be shorter.
    /// `header` is the first one's, save that FIN and PSH belong to the last. Gives the bytes taken, of whole segments:
    /// fewer than all where the device became full. It is asked only where [`SegmentOutput::large_bytes`] is above 0.
    /// `sums` are those of the segments' payloads, as far as they are known.
    fn large(
        &mut self,
        header: &Header,
        payload: Slices<'_>,
        segment_bytes: u16,
        sums: &[Option<u16>],
        ecn: Ecn,
    ) -> Result<u32, Full> {
        let _ = (header, payload, segment_bytes, sums, ecn);
        Err(Full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_a_set() {
        let both = Changes::READABLE | Changes::WRITABLE;
        assert_eq!(both | Changes::READABLE, both);
        let mut grown = both;
        grown |= Changes::WRITABLE;
        assert_eq!(grown, both);
        assert!(both.contains(Changes::WRITABLE) && both.intersects(Changes::WRITABLE | Changes::ERROR));
        assert!(!both.contains(Changes::WRITABLE | Changes::ERROR) && !both.is_empty());
        assert!(Changes::default().is_empty());
    }
}
