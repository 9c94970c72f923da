//! Read-only views of the two halves of a connection.

use super::Connection;
use crate::StreamError;
use crate::common::Common;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::receiver::Receiver;
use crate::sender::Sender;
use inhost_base::{Duration, Instant, Sequence};
use inhost_event::TcpState;

/// Probes after which a closed window is not a short pause of the application behind it.
const PROBES_OF_A_CLOSED_WINDOW: u8 = 3;

/// The receiving half, to be read: what arrived and waits for the application. From [`Connection::receiver`].
#[derive(Clone, Copy)]
pub struct ReceiveView<'a> {
    common: &'a Common,
    receiver: &'a Receiver,
}

/// A view of the sending half: data queued or not acknowledged. From [`Connection::sender`].
#[derive(Clone, Copy)]
pub struct SendView<'a> {
    common: &'a Common,
    sender: &'a Sender,
}

impl Connection {
    /// The receiving half, to be read.
    #[inline(always)]
    pub fn receiver(&self) -> ReceiveView<'_> {
        ReceiveView { common: &self.common, receiver: &self.receiver }
    }
    /// The sending half, to be read.
    #[inline(always)]
    pub fn sender(&self) -> SendView<'_> {
        SendView { common: &self.common, sender: &self.sender }
    }
}

impl<'a> ReceiveView<'a> {
    /// Bytes that wait to be read.
    #[inline]
    pub fn readable_bytes(self) -> usize {
        self.receiver.buffers.as_ref().map_or(0, |buffers| buffers.receive.len())
    }
    /// Whether all data of the peer was read and no more will arrive.
    pub fn is_at_end(self) -> bool {
        self.readable_bytes() == 0
            && (self.common.flags.contains(ConnectionFlags::RECEIVE_CLOSED)
                || self.common.peer_has_closed()
                || self.common.state == TcpState::Closed)
    }
    /// The first bytes that wait, as far as they lie in one piece before the urgent mark; take them by
    /// [`Connection::consume`].
    pub fn front(self) -> &'a [u8] {
        let front = self.receiver.buffers.as_ref().map_or(&[][..], |buffers| buffers.receive.front());
        let most = self.urgent_ahead().unwrap_or(usize::MAX).min(front.len());
        front.get(..most).unwrap_or(front)
    }
    /// Copies bytes without taking them; otherwise as [`Connection::read`].
    ///
    /// # Errors
    /// As [`Connection::read`].
    pub fn peek(self, into: &mut [u8]) -> Result<usize, StreamError> {
        let most = self.readable_to_mark(into.len())?;
        let Some(into) = into.get_mut(..most) else { return Ok(0) };
        Ok(self.receiver.buffers.as_ref().map_or(0, |buffers| buffers.receive.peek(into)))
    }
    /// Bytes of the stream that are still to be read up to and with the last urgent one, arrived or not; `None` when
    /// nothing is urgent. A read stops there.
    // spec: RFC9293 MUST-33 (the application learns how much)
    #[inline]
    pub fn urgent_ahead(self) -> Option<usize> {
        let ahead = self.receiver.space.urgent.since(self.receiver.read_position(self.common));
        (ahead > 0).then_some(ahead as usize)
    }
    /// Whether something is urgent, and its last byte is here, be it ahead of a gap.
    pub(super) fn urgent_has_come(self) -> bool {
        let Some(buffers) = self.receiver.buffers.as_ref().filter(|_| self.urgent_ahead().is_some()) else {
            return false;
        };
        let last = self.receiver.space.urgent.back(1);
        last < self.receiver.space.next() || buffers.reassembly.holds(last)
    }
    /// How many of `most` bytes a read may give now.
    #[inline]
    pub(super) fn readable_to_mark(self, most: usize) -> Result<usize, StreamError> {
        let readable = self.readable_bytes();
        if readable == 0 {
            return match self.common.error {
                Some(error) => Err(StreamError::Connection(error)),
                None if self.is_at_end() || most == 0 => Ok(0),
                None => Err(StreamError::WouldBlock),
            };
        }
        Ok(most.min(readable).min(self.urgent_ahead().unwrap_or(usize::MAX)))
    }
    /// Bytes of the peer's stream that arrived in order.
    pub fn received_bytes(self) -> u64 {
        self.receiver.space.received_bytes()
    }
    /// Whether the window that was offered has room for `payload_bytes` more.
    #[inline]
    pub fn has_room_for(self, payload_bytes: usize) -> bool {
        payload_bytes as u32 <= self.receiver.space.window()
    }
    /// Whether segments that differ from one with `payload_bytes` in nothing but their place may follow it by
    /// [`Connection::receive_following`]: full ones, of a stream without a hole.
    #[inline]
    pub fn may_be_followed(self, payload_bytes: usize) -> bool {
        payload_bytes > 0
            && payload_bytes >= usize::from(self.receiver.space.segment_bytes)
            && !self.common.acks_adapt()
            && self.receiver.buffers.as_ref().is_none_or(|buffers| buffers.reassembly.is_empty())
    }
}

/// What is queued and in flight, and what decides how much more a write takes. From [`SendView::queue`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendQueue {
    /// Bytes written and not acknowledged, sent or not.
    pub unacknowledged_bytes: usize,
    /// Bytes written and never sent.
    pub not_sent_bytes: usize,
    /// Bursts in flight, as Linux counts them.
    pub bursts_in_flight: usize,
    /// The peer's window.
    pub window_bytes: u32,
    /// The congestion window.
    pub congestion_window_bytes: u32,
    /// Payload of a full segment.
    pub segment_bytes: u16,
    /// Payload of the largest segment that the peer takes.
    pub peer_segment_bytes: u16,
    /// Segments that overtake one before it counts as lost.
    pub reordering_segments: u16,
}

impl SendView<'_> {
    /// The queue, cheaply.
    pub fn queue(self) -> SendQueue {
        let buffers = self.sender.buffers.as_deref();
        SendQueue {
            unacknowledged_bytes: self.unacknowledged_bytes(),
            not_sent_bytes: self.not_sent_bytes() as usize,
            bursts_in_flight: buffers.map_or(0, |buffers| buffers.flight.bursts()),
            window_bytes: self.sender.space.window,
            congestion_window_bytes: self.sender.congestion.window.window_bytes,
            segment_bytes: self.sender.segment_bytes() as u16,
            peer_segment_bytes: self.common.peer_mss,
            reordering_segments: self.sender.reordering_segments(self.common) as u16,
        }
    }
    /// Bytes queued and never sent.
    #[inline]
    pub fn not_sent_bytes(self) -> u32 {
        self.sender.not_sent_bytes(self.common)
    }
    /// Bytes that [`Connection::send`] would take now, memory permitting.
    #[inline]
    pub fn writable_bytes(self) -> usize {
        self.sender.writable_bytes(self.common)
    }
    /// Bytes in the send queue, sent or not, that the peer has not acknowledged.
    pub fn unacknowledged_bytes(self) -> usize {
        self.sender.queued_bytes() as usize
    }
    /// When the peer last acknowledged data, or when data began to wait for that.
    pub fn progress_at(self) -> Instant {
        self.sender.timer.progress_at
    }
    /// The smoothed round trip, once measured.
    pub fn smoothed_round_trip(self) -> Option<Duration> {
        self.common.round_trip.smoothed()
    }
    /// Whether the peer's window has been closed for several probes while something waits to be sent.
    pub fn waits_behind_closed_window(self) -> bool {
        let is_closed = self.sender.space.window == 0 && self.sender.queued_bytes() > 0;
        is_closed && self.common.round_trip.backoff >= PROBES_OF_A_CLOSED_WINDOW
    }
    /// Bytes of queued data that the SYN, which was not sent yet, will bear.
    pub fn syn_data_room(self) -> usize {
        self.sender.syn_data_room(self.common)
    }
    /// Whether the application may write although the handshake is not done.
    pub fn is_early(self) -> bool {
        self.common.is_early()
    }
    /// Whether the application holds small segments back.
    pub fn is_corked(self) -> bool {
        self.sender.flags.contains(SenderFlags::CORKED)
    }
    /// Whether `sequence` was sent and is not acknowledged: an ICMP error that quotes any other is ignored (RFC 5927
    /// §4.1).
    pub fn is_in_flight(self, sequence: Sequence) -> bool {
        let at = self.sender.space.offset(sequence);
        // That of our SYN says that the data of the caller's was taken, which the caller has not acknowledged yet.
        at.within(self.sender.space.unacknowledged(), self.sender.space.outstanding_bytes())
            || (self.common.is_early() && at + 1 == self.sender.space.unacknowledged())
    }
    /// Whether the latest segments include one of `sequence`, which may be a bare acknowledgment.
    pub fn was_sent_lately(self, sequence: Sequence) -> bool {
        self.is_in_flight(sequence) || sequence == self.sender.space.sequence(self.sender.space.next())
    }
}
