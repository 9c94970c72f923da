//! Where a segment ends before it is full, and which bear PSH.
//!
//! With [`Policy::pushes_writes_and_bursts`](crate::Policy::pushes_writes_and_bursts) new data leaves in bursts of several
//! segments: as much as leaves within a millisecond at the pacing rate, two segments at least. The last of a burst of more
//! than one has PSH, so that a receiver that joins segments knows where to stop; besides, the end of a write has it, and the
//! end of a record: no segment crosses that.

use super::{SendBuffers, Sender};
use crate::common::Common;
use crate::flags::SenderFlags;
use core::ops::Range;
use inhost_base::{Instant, Offset};

/// Ends of bursts and records that may wait to be acknowledged; beyond it what follows is joined.
const MOST_SEALS: usize = 256;

/// What ends at a position in the queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum WriteBoundary {
    /// A burst.
    Burst,
    /// A burst, and PSH says so.
    Push,
    /// A record.
    Record,
}

impl SendBuffers {
    /// What was queued up to `end` ends there.
    pub fn add_boundary(&mut self, end: Offset, boundary: WriteBoundary, unacknowledged: Offset) {
        while self.boundaries.front().is_some_and(|&(first, _)| first <= unacknowledged) {
            self.boundaries.pop_front();
        }
        if let Some((last, what)) = self.boundaries.back_mut()
            && *last == end
        {
            *what = boundary.max(*what);
        } else if self.boundaries.len() < MOST_SEALS {
            self.boundaries.push_back((end, boundary));
        }
    }
    /// The first boundary after `start` that is at least `boundary`.
    fn boundary_after(&self, start: Offset, boundary: WriteBoundary) -> Option<Offset> {
        let index = self.boundaries.partition_point(|&(end, _)| end <= start);
        self.boundaries.range(index..).find(|(_, what)| *what >= boundary).map(|&(end, _)| end)
    }
    fn has_boundary_at(&self, end: Offset, boundary: WriteBoundary) -> bool {
        self.boundary_after(end.back(1), boundary) == Some(end)
    }
    /// Up to where a segment from `start` may reach, when a record ends after it.
    pub fn record_end_after(&self, start: Offset) -> Option<Offset> {
        if self.boundaries.is_empty() { None } else { self.boundary_after(start, WriteBoundary::Record) }
    }
    /// Whether the data from `start` to `end` is the last part of the burst that is leaving, and not its first.
    pub fn ends_burst(&self, start: Offset, end: Offset) -> bool {
        self.burst.start < start && start < self.burst.end && end == self.burst.end
    }
    /// A segment of `burst` was sent, from `start` to `end`, with [`crate::Policy::pushes_writes_and_bursts`].
    #[inline(never)]
    pub fn burst_segment_sent(
        &mut self,
        burst: Range<Offset>,
        (start, end, record_end): (Offset, Offset, Offset),
        in_flight: u32,
        now: Instant,
    ) {
        self.flight.sent(start, record_end, in_flight, now);
        self.flight.ended(end == burst.end, self.has_boundary_at(end, WriteBoundary::Record));
        self.burst = burst;
    }
}

/// The most bytes of one burst.
const LARGEST_BURST_BYTES: u64 = 65_535 - 320;
/// A burst is the data of a second at the pacing rate, shifted right by this.
const PACING_SHIFT: u32 = 10;
/// On short paths bursts are larger, by an amount that is halved for each 512 µs of the round trip; this is its binary
/// logarithm.
const ROUND_TRIP_SHIFT: u32 = 9;

impl Sender {
    /// Whether new data from `start` to `end` has PSH at its end. With GSO, its first segment ends at `first_end`.
    #[inline]
    pub fn pushes(
        &self,
        common: &Common,
        full_bytes: u32,
        start: Offset,
        first_end: Offset,
        end: Offset,
    ) -> bool {
        if common.policy().pushes_writes_and_bursts {
            let burst = self.burst_of(common, full_bytes, start, first_end);
            let follows = burst.start < start || first_end < end;
            return (end == burst.end && follows) || self.ends_write(end);
        }
        // spec: RFC9293 MUST-61 (the last segment of what is queued is pushed)
        let pushed = start < self.space.push() && self.space.push() <= end;
        pushed || end == self.stream_end()
    }
    /// The burst that new data from `start` to `end` belongs to: the one that is leaving, or a new one.
    pub fn burst_of(&self, common: &Common, full_bytes: u32, start: Offset, end: Offset) -> Range<Offset> {
        let Some(buffers) = &self.buffers else { return start..end };
        let leaving = &buffers.burst;
        if leaving.start < start && start < leaving.end {
            return leaving.clone();
        }
        let segment = full_bytes.max(1);
        // While urgent data is in flight, each segment is a burst of its own.
        let single = self.space.unacknowledged() < self.space.urgent();
        let most = if single { segment } else { self.burst_room(common, segment) * segment };
        let edge = self.space.edge();
        let mut rest = self.stream_end().since(start).min(edge.since(start));
        if let Some(boundary) = buffers.boundary_after(start, WriteBoundary::Burst) {
            rest = rest.min(boundary.since(start));
        }
        let mut length = rest.min(most);
        let odd = length % segment;
        if rest <= most && odd > 0 && length > segment && !self.may_send_small(common, odd, odd) {
            length -= odd;
        }
        start..end.max(start + length)
    }
    /// The burst that a retransmission from `start` belongs to: the lost segments of a burst are retransmitted together.
    pub fn retransmitted_burst(&self, full_bytes: u32, start: Offset, end: Offset) -> Range<Offset> {
        let Some(buffers) = &self.buffers else { return start..end };
        let leaving = &buffers.retransmitted_burst;
        if leaving.start < start && start < leaving.end {
            return leaving.clone();
        }
        let segment = full_bytes.max(1);
        let window = self.congestion.window().window_bytes;
        let room = (window.saturating_sub(self.in_flight_bytes()) / segment).max(1) * segment;
        start..buffers.flight.lost_of_burst(start, room).unwrap_or(end).max(end)
    }
    /// Whether a retransmission from `start` to `end` has PSH.
    pub fn pushes_retransmission(&self, full_bytes: u32, start: Offset, end: Offset) -> bool {
        let burst = self.retransmitted_burst(full_bytes, start, end);
        (end == burst.end && burst.start < start) || self.ends_write(end)
    }
    fn ends_write(&self, end: Offset) -> bool {
        end == self.space.push()
            || self.buffers.as_ref().is_some_and(|b| b.has_boundary_at(end, WriteBoundary::Push))
    }
    /// Segments of the next burst: what the congestion window has room for, half of it at most, so that two are on
    /// their way.
    fn burst_room(&self, common: &Common, segment: u32) -> u32 {
        let window = self.congestion.window().window_bytes;
        let room = window.saturating_sub(self.in_flight_bytes()) / segment;
        room.min(window / segment / 2).clamp(1, self.burst_segments(common, segment))
    }
    /// Segments in a burst (Linux's TSO autosizing).
    fn burst_segments(&self, common: &Common, segment: u32) -> u32 {
        let bytes = self.rate_bytes_per_second(common, segment) >> PACING_SHIFT;
        let least = self.buffers.as_ref().and_then(|buffers| buffers.flight.rack().least_round_trip());
        let halvings = least.map_or(u64::MAX, |least| least.as_micros() >> ROUND_TRIP_SHIFT);
        let near = if halvings < 32 { 65_536_u64 >> halvings } else { 0 };
        let bytes = bytes.saturating_add(near).min(LARGEST_BURST_BYTES);
        ((bytes / u64::from(segment)) as u32).max(u32::from(common.config().least_burst_segments)).max(1)
    }
    /// The pacing rate as Linux reckons it: a window a round trip, and more of it while the window is to grow.
    fn rate_bytes_per_second(&self, common: &Common, segment: u32) -> u64 {
        let Some(smoothed) = common.round_trip().smoothed() else { return u64::MAX };
        let window = *self.congestion.window();
        let percent = if window.window_bytes < window.threshold_bytes / 2 { 200 } else { 120 };
        let bytes = u64::from(window.window_bytes.max(self.in_flight_bytes()).max(segment));
        bytes.saturating_mul(percent) / 100 * 1_000_000 / smoothed.as_micros().max(1)
    }
    /// What Nagle's algorithm asks of a small segment (RFC 9293 §3.7.4), in Minshall's form (appendix A.3): that no small
    /// one is outstanding. So the last bytes of a long write do not wait for the peer's delayed acknowledgment of the
    /// first, and of many small writes all but one wait.
    pub fn nagle_lets_go(&self, common: &Common) -> bool {
        if !common.config().nagle || !self.space.has_outstanding() {
            return true;
        }
        let small = self.buffers.as_ref().and_then(|buffers| buffers.last_small);
        small.is_none_or(|end| end <= self.space.unacknowledged())
    }
    /// Linux holds back data with MSG_MORE only during that call: the next acknowledgment sends it.
    #[inline]
    pub fn release_held_writes(&mut self, common: &Common) {
        if common.policy().pushes_writes_and_bursts && !self.flags.contains(SenderFlags::CORKED) {
            let end = self.stream_end();
            if let Some(buffers) = &mut self.buffers {
                buffers.released = Some(end);
            }
        }
    }
}
