//! The receiving half of a connection, to be read.

use super::Receiver;
use crate::common::Common;
use crate::flags::ConnectionFlags;
use crate::{Header, Info, StreamError};
use inhost_base::Instant;
use inhost_event::TcpState;
use inhost_wire::tcp::Flags;

impl Receiver {
    /// Writes the receiver's figures into `info`, as they stand at `now`.
    pub fn tell(&self, common: &Common, info: &mut Info, now: Instant) {
        let space = &self.space;
        info.receive_next = space.next_sequence();
        info.receive_window_bytes = space.window();
        info.receive_window_scale = space.scale();
        info.receive_segment_bytes = space.segment_bytes();
        info.received_bytes = space.received_bytes();
        info.receive_buffer_bytes = self.receive_buffer_bytes(common);
        info.receive_round_trip = self.measured_round_trip();
        info.since_data_received = self.ack_timing.since_data(now);
        if let Some(buffers) = &self.buffers {
            info.receive_queue_bytes = buffers.receive.len();
            info.receive_queue_capacity_bytes = buffers.receive.capacity_bytes();
            info.reassembly_pieces = buffers.reassembly.pieces();
            info.reassembly_bytes = buffers.reassembly.bytes();
        }
    }
}

/// The receiving half, to be read: what arrived and waits for the application. From [`crate::Connection::receiver`].
#[derive(Clone, Copy)]
pub struct ReceiveView<'a> {
    common: &'a Common,
    receiver: &'a Receiver,
}

impl<'a> ReceiveView<'a> {
    /// A view of `receiver`.
    pub(crate) fn new(common: &'a Common, receiver: &'a Receiver) -> Self {
        ReceiveView { common, receiver }
    }
    /// Bytes that wait to be read.
    pub fn readable_bytes(self) -> usize {
        self.receiver.buffers.as_ref().map_or(0, |buffers| buffers.receive.len())
    }
    /// Whether all data of the peer was read and no more will arrive.
    pub fn is_at_end(self) -> bool {
        self.readable_bytes() == 0
            && (self.common.has(ConnectionFlags::RECEIVE_CLOSED)
                || self.common.peer_has_closed()
                || self.common.state() == TcpState::Closed)
    }
    /// The first bytes that wait, as far as they lie in one piece before the urgent mark; take them by
    /// [`Connection::consume`](crate::Connection::consume).
    pub fn front(self) -> &'a [u8] {
        let front = self.receiver.buffers.as_ref().map_or(&[][..], |buffers| buffers.receive.front());
        let most = self.urgent_ahead().unwrap_or(usize::MAX).min(front.len());
        front.get(..most).unwrap_or(front)
    }
    /// Copies bytes without taking them; otherwise as [`Connection::read`](crate::Connection::read).
    ///
    /// # Errors
    /// As [`Connection::read`](crate::Connection::read).
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
        let ahead = self.receiver.space.urgent().since(self.receiver.read_position(self.common));
        (ahead > 0).then_some(ahead as usize)
    }
    /// Whether something is urgent, and its last byte is here, be it ahead of a gap.
    pub(crate) fn urgent_has_come(self) -> bool {
        let Some(buffers) = self.receiver.buffers.as_ref().filter(|_| self.urgent_ahead().is_some()) else {
            return false;
        };
        let last = self.receiver.space.urgent().back(1);
        last < self.receiver.space.next() || buffers.reassembly.holds(last)
    }
    /// How many of `most` bytes a read may give now.
    #[inline]
    pub(crate) fn readable_to_mark(self, most: usize) -> Result<usize, StreamError> {
        let readable = self.readable_bytes();
        if readable == 0 {
            return match self.common.error() {
                Some(error) => Err(StreamError::Connection(error)),
                None if self.is_at_end() || most == 0 => Ok(0),
                None => Err(StreamError::WouldBlock),
            };
        }
        Ok(most.min(readable).min(self.urgent_ahead().unwrap_or(usize::MAX)))
    }
    /// Whether `header`, a SYN for a connection in TIME-WAIT, may begin a new one in its place (RFC 9293 §3.10.7.4,
    /// RFC 6191), which begins at [`SendView::successor`](crate::SendView::successor) or beyond.
    // spec: RFC9293 SHLD-4
    pub fn yields_to(self, header: &Header) -> bool {
        let flags = header.flags & (Flags::SYN | Flags::ACK | Flags::RST | Flags::FIN);
        if self.common.state() != TcpState::TimeWait || flags != Flags::SYN {
            return false;
        }
        let newer_number = self.receiver.space.next() < self.receiver.space.offset(header.sequence);
        match header.options.timestamps {
            Some((value, _)) if self.common.has(ConnectionFlags::TIMESTAMPS) => {
                let ahead = value.wrapping_sub(self.receiver.timestamp_recent) as i32;
                ahead > 0 || (ahead == 0 && newer_number)
            }
            _ => newer_number,
        }
    }
    /// Bytes of the peer's stream that arrived in order.
    pub fn received_bytes(self) -> u64 {
        self.receiver.space.received_bytes()
    }
    /// Whether the window that was offered has room for `payload_bytes` more.
    pub fn has_room_for(self, payload_bytes: usize) -> bool {
        payload_bytes as u32 <= self.receiver.space.window()
    }
    /// Whether segments that differ from one with `payload_bytes` in nothing but their place may follow it by
    /// [`Connection::receive_following`](crate::Connection::receive_following): full ones, of a stream without a hole.
    #[inline]
    pub fn may_be_followed(self, payload_bytes: usize) -> bool {
        payload_bytes > 0
            && payload_bytes >= usize::from(self.receiver.space.segment_bytes())
            && !self.common.acks_adapt()
            && self.receiver.buffers.as_ref().is_none_or(|buffers| buffers.reassembly.is_empty())
    }
}
