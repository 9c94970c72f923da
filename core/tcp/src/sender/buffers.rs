//! What a sender keeps only while it has data: one box, made when needed and freed when idle.

use super::Sender;
use crate::common::Common;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::offset::Offset;
use crate::sender::burst::{Burst, WriteBoundaries, WriteBoundary};
use crate::sender::flight::Flight;
use crate::sender::probe::TailProbe;
use crate::sender::reduction::{RateReduction, UndoState};
use alloc::boxed::Box;
use inhost_base::{Duration, Instant};
use inhost_buf::{BlockLayout, SendQueue};
use inhost_congestion::{Pacer, RateSample, SampleBuilder};
use inhost_wire::tcp::FastOpenCookie;

/// Segments of this length or more are written so that each lies in one piece, with hardware checksums or without.
const LONG_SEGMENT_BYTES: u32 = 16 << 10;

/// The send queue, and the state of the data in flight.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SendBuffers {
    /// From the first unacknowledged byte on.
    pub send: SendQueue,
    /// When bytes that were held back to fill a segment go as they are.
    pub aggregate_until: Instant,
    /// While the connection opens fast.
    pub fast_open: Option<Box<FastOpen>>,
    /// Ends of bursts and records in the queue.
    pub boundaries: WriteBoundaries,
    /// Data up to here may be sent although it was not pushed.
    pub released: Option<Offset>,
    /// The burst of new data that was sent last.
    pub burst: Burst,
    /// The burst that was retransmitted last.
    pub retransmitted_burst: Burst,
    /// The end of the last segment that was not full.
    pub last_small: Option<Offset>,
    /// The data in flight.
    pub flight: Flight,
    pub tail_probe: TailProbe,
    pub reduction: RateReduction,
    pub undo: UndoState,
    /// When the reordering timer expires and overtaken segments count as lost.
    pub reorder_at: Instant,
    /// Segments that have overtaken another on this path, which arrived after all.
    pub reordering: u16,
    pub pacer: Pacer,
    /// When the pace lets the next data go.
    pub pace_at: Instant,
    /// The latest sample of the rate of delivery.
    pub rate: Option<RateSample>,
    /// Bytes that were acknowledged when the wait for an orphan's peer began.
    pub orphan_from_bytes: u64,
    /// The next retransmission is sent regardless of the congestion window.
    pub force: bool,
}

/// Kept while a connection opens, beside its queues.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct FastOpen {
    /// The option of our first SYN, or SYN and ACK, and whether it goes in the form of the experiment.
    pub option: Option<(FastOpenCookie, bool)>,
    /// Payload that our SYN may bear; 0 for none.
    pub most_data: u16,
    /// Payload that it bore.
    pub sent: u32,
    /// The data of the peer's SYN was taken: we may answer before the handshake is done.
    pub accepted: bool,
    /// The same from the answer to our SYN.
    pub learned: Option<(FastOpenCookie, bool)>,
}

impl Default for SendBuffers {
    fn default() -> Self {
        SendBuffers {
            send: SendQueue::default(),
            aggregate_until: Instant::FAR_FUTURE,
            fast_open: None,
            boundaries: WriteBoundaries::default(),
            released: None,
            burst: Burst::default(),
            retransmitted_burst: Burst::default(),
            last_small: None,
            flight: Flight::default(),
            tail_probe: TailProbe::default(),
            reduction: RateReduction::default(),
            undo: UndoState::default(),
            reorder_at: Instant::FAR_FUTURE,
            reordering: 0,
            pacer: Pacer::default(),
            pace_at: Instant::FAR_FUTURE,
            rate: None,
            orphan_from_bytes: 0,
            force: false,
        }
    }
}

impl SendBuffers {
    /// Up to where a segment from `start` may reach, when a record ends after it.
    pub fn record_end_after(&self, start: Offset) -> Option<Offset> {
        if self.boundaries.is_empty() { None } else { self.boundaries.after(start, WriteBoundary::Record) }
    }
    /// Whether nothing is held.
    pub fn are_empty(&self) -> bool {
        self.send.is_empty() && self.fast_open.is_none() && self.flight.is_empty()
    }
    /// The earliest timer of data queued or in flight.
    pub fn deadline(&self) -> Instant {
        self.aggregate_until.min(self.reorder_at).min(self.tail_probe.at).min(self.pace_at)
    }
    /// All memory that is held, by capacity.
    pub fn held_bytes(&self) -> usize {
        let lists = self.flight.capacity_bytes() + self.boundaries.capacity_bytes();
        let opening = self.fast_open.as_ref().map_or(0, |_| size_of::<FastOpen>());
        size_of::<SendBuffers>() + opening + self.send.capacity_bytes() + lists
    }
    /// A segment of `burst` was sent, from `start` to `end`, with [`crate::PushPlacement::WritesAndBursts`].
    #[inline(never)]
    pub fn burst_segment_sent(
        &mut self,
        burst: Burst,
        (start, end, record_end): (Offset, Offset, Offset),
        in_flight: u32,
        now: Instant,
    ) {
        self.burst = burst;
        self.flight.sent(start, record_end, in_flight, now);
        self.flight.ended(end == burst.end, self.boundaries.is_at(end, WriteBoundary::Record));
    }
    /// The pace in force, in bytes a second; 0 for none.
    pub fn pacing_rate(&self) -> u64 {
        let rate = self.pacer.rate_bytes_per_s();
        if rate == u64::MAX { 0 } else { rate }
    }
    /// What an acknowledgment showed of the rate of delivery.
    #[inline]
    pub fn sample_rate(&mut self, builder: &SampleBuilder, now: Instant) -> Option<RateSample> {
        let least = self.flight.rack.least_round_trip().unwrap_or(Duration::ZERO);
        let sample = self.flight.rates.sample(builder, least, now)?;
        // An application that had too little to send shows at least so much.
        let tells = !sample.application_limited
            || self.rate.is_none_or(|known| sample.bytes_per_s() >= known.bytes_per_s());
        if tells {
            self.rate = Some(sample);
        }
        Some(sample)
    }
}

impl Sender {
    /// Where the next segments will probably begin and end.
    #[inline]
    pub fn block_layout(&self, common: &Common) -> BlockLayout {
        let (summed, segment_bytes) = (!common.has(ConnectionFlags::CHECKSUM_OFFLOAD), self.segment_bytes());
        if !summed && segment_bytes < LONG_SEGMENT_BYTES {
            // Such segments are combined by GSO, or have few bytes.
            return BlockLayout::NONE;
        }
        let origin = if common.opens() { 0 } else { self.space.outstanding_bytes() };
        BlockLayout { origin: origin as usize, segment_bytes, summed }
    }
    /// After the last queued byte, handshake or not.
    pub fn end_of_queue(&self, common: &Common) -> Offset {
        self.stream_end() + u32::from(common.opens() && !common.has(ConnectionFlags::EARLY_DATA))
    }
    /// The current limit of the send buffer: twice the congestion window, so that a window of data waits while one is in
    /// flight.
    #[inline]
    pub fn send_buffer_bytes(&self, common: &Common) -> usize {
        let limit = common.config().send_buffer_limit_bytes;
        let wanted = 2 * self.congestion.window.window_bytes as usize;
        wanted.max(common.config().send_buffer_initial_bytes).min(limit)
    }
    /// Bytes queued and never sent.
    #[inline]
    pub fn not_sent_bytes(&self, common: &Common) -> u32 {
        let (next, end) = (self.space.next(), self.stream_end());
        match () {
            () if common.opens() && !common.has(ConnectionFlags::EARLY_DATA) => self.queued_bytes(),
            () if next < end => end.since(next),
            () => 0,
        }
    }
    /// Whether a writer that found the buffer full is to know of room: once a third of the buffer is free.
    #[inline]
    pub fn wakes_writer(&mut self, common: &Common) -> bool {
        if !self.flags.contains(SenderFlags::WRITER_WAITS) {
            return false;
        }
        let limit = self.send_buffer_bytes(common);
        let low_water = common.config().not_sent_low_water_bytes;
        let fresh = low_water == usize::MAX || (self.not_sent_bytes(common) as usize) < low_water.div_ceil(2);
        let wakes = fresh && self.queued_bytes() as usize <= limit - limit / 3;
        if wakes {
            self.flags.remove(SenderFlags::WRITER_WAITS);
        }
        wakes
    }
}
