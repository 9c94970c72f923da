//! The sending half of a connection, to be read.

use super::Sender;
use crate::common::Common;
use crate::flags::SenderFlags;
use crate::{FastOpenState, Info};
use inhost_base::{Instant, Sequence};

/// Probes after which a closed window is not a short pause of the application behind it.
const PROBES_OF_A_CLOSED_WINDOW: u8 = 3;

impl Sender {
    /// Writes the sender's figures into `info`.
    pub fn tell(&self, common: &Common, info: &mut Info) {
        let (space, history, window) = (&self.space, self.history(), self.congestion.window());
        info.send_unacknowledged = space.sequence(space.unacknowledged());
        info.send_next = space.sequence(space.next());
        info.send_window_bytes = space.window();
        info.send_window_scale = self.scale;
        info.send_segment_bytes = self.segment_bytes() as u16;
        info.send_queue_bytes = self.queued_bytes() as usize;
        info.in_flight_bytes = self.in_flight_bytes();
        info.not_sent_bytes = self.not_sent_bytes(common) as usize;
        info.send_buffer_bytes = self.send_buffer_bytes(common);
        info.unanswered_probes = self.unanswered_probes(common);
        info.sent_bytes = self.acknowledged_bytes();
        info.delivered_bytes = self.acknowledged_bytes() + u64::from(self.sums().sacked_bytes);
        info.sacked_bytes = self.sums().sacked_bytes;
        info.recovery = self.recovery.state;
        info.reordering_segments = self.reordering_segments(common) as u16;
        info.retransmitted_segments = history.retransmitted_segments;
        info.retransmitted_bytes = history.retransmitted_bytes;
        info.timeouts = history.timeouts;
        info.reorderings = history.reorderings;
        info.duplicate_sacks = history.duplicate_sacks;
        info.congestion_marks = history.congestion_marks;
        info.congestion_control = self.congestion.name();
        info.congestion_window_bytes = window.window_bytes;
        info.slow_start_threshold_bytes = window.threshold_bytes;
        let Some(buffers) = &self.buffers else { return };
        info.send_queue_capacity_bytes = buffers.send.capacity_bytes();
        info.lost_bytes = buffers.flight.sums().lost_bytes;
        info.bursts_in_flight = buffers.flight.sums().bursts as usize;
        info.retransmitted_in_flight_bytes = buffers.flight.sums().resent_bytes;
        info.delivered_segments = info.delivered_segments.wrapping_add(buffers.flight.delivered_segments());
        info.min_round_trip = buffers.flight.rack().least_round_trip();
        info.pacing_rate_bytes_per_second = buffers.pacing_rate();
        if let Some(rate) = buffers.rate {
            info.delivery_rate_bytes_per_second = rate.bytes_per_s();
            info.delivery_rate_is_application_limited = rate.application_limited;
        }
    }
}

/// A view of the sending half: data queued or not acknowledged. From [`Connection::sender`](crate::Connection::sender).
#[derive(Clone, Copy)]
pub struct SendView<'a> {
    common: &'a Common,
    sender: &'a Sender,
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

impl<'a> SendView<'a> {
    /// A view of `sender`.
    pub(crate) fn new(common: &'a Common, sender: &'a Sender) -> Self {
        SendView { common, sender }
    }
    /// The queue, cheaply.
    pub fn queue(self) -> SendQueue {
        SendQueue {
            unacknowledged_bytes: self.unacknowledged_bytes(),
            not_sent_bytes: self.not_sent_bytes() as usize,
            bursts_in_flight: self.sender.sums().bursts as usize,
            window_bytes: self.sender.space.window(),
            congestion_window_bytes: self.sender.congestion.window().window_bytes,
            segment_bytes: self.sender.segment_bytes() as u16,
            peer_segment_bytes: self.common.peer_mss(),
            reordering_segments: self.sender.reordering_segments(self.common) as u16,
        }
    }
    /// Bytes queued and never sent.
    pub fn not_sent_bytes(self) -> u32 {
        self.sender.not_sent_bytes(self.common)
    }
    /// Bytes that [`Connection::send`](crate::Connection::send) would take now, memory permitting.
    pub fn writable_bytes(self) -> usize {
        self.sender.writable_bytes(self.common)
    }
    /// Bytes in the send queue, sent or not, that the peer has not acknowledged.
    pub fn unacknowledged_bytes(self) -> usize {
        self.sender.queued_bytes() as usize
    }
    /// When the peer last acknowledged data, or when data began to wait for that.
    pub fn progress_at(self) -> Instant {
        self.sender.progress_at
    }
    /// Whether the peer's window has been closed for several probes while something waits to be sent.
    pub fn waits_behind_closed_window(self) -> bool {
        let is_closed = self.sender.space.window() == 0 && self.sender.queued_bytes() > 0;
        is_closed && self.common.round_trip().backoff() >= PROBES_OF_A_CLOSED_WINDOW
    }
    /// Bytes of queued data that the SYN, which was not sent yet, will bear.
    pub fn syn_data_room(self) -> usize {
        self.sender.syn_data_room(self.common)
    }
    /// The least initial sequence number of a connection that takes this one's place: no segment of ours bridges the distance.
    pub fn successor(self) -> Sequence {
        let distance = self.sender.space.largest_window().max(0xffff);
        self.sender.space.sequence(self.sender.space.next() + distance)
    }
    /// How the connection opened, as far as data came with the SYNs.
    pub fn fast_open(self) -> FastOpenState {
        self.common.fast_open()
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
