//! The box of queues: what is in it, and how much more it takes.

use super::{SendBuffers, Sender};
use crate::common::Common;
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::sender::burst::WriteBoundary;
use inhost_base::{Deadline, Duration, Instant, Offset};
use inhost_buf::BlockLayout;
use inhost_congestion::{RateSample, SampleBuilder};
use inhost_wire::tcp::FastOpenCookie;

/// Segments of this length or more are written so that each lies in one piece, with hardware checksums or without.
const LONG_SEGMENT_BYTES: u32 = 16 << 10;

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

impl SendBuffers {
    /// Whether nothing is held.
    pub fn are_empty(&self) -> bool {
        self.send.is_empty() && self.fast_open.is_none() && self.flight.records().is_empty()
    }
    /// The earliest timer of data queued or in flight.
    pub fn deadline(&self) -> Deadline {
        self.aggregate_until.min(self.reorder_at).min(self.tail_probe.deadline()).min(self.pace_at)
    }
    /// All memory that is held, by capacity.
    pub fn held_bytes(&self) -> usize {
        let boundaries = self.boundaries.capacity() * size_of::<(Offset, WriteBoundary)>();
        let lists = self.flight.capacity_bytes() + boundaries;
        let opening = self.fast_open.as_ref().map_or(0, |_| size_of::<FastOpen>());
        size_of::<SendBuffers>() + opening + self.send.capacity_bytes() + lists
    }
    /// The pace in force, in bytes a second; 0 for none.
    pub fn pacing_rate(&self) -> u64 {
        let rate = self.pacer.rate_bytes_per_s();
        if rate == u64::MAX { 0 } else { rate }
    }
    /// What an acknowledgment showed of the rate of delivery.
    #[inline]
    pub fn sample_rate(&mut self, builder: &SampleBuilder, now: Instant) -> Option<RateSample> {
        let least = self.flight.rack().least_round_trip().unwrap_or(Duration::ZERO);
        let sample = self.flight.rates_mut().sample(builder, least, now)?;
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
        let wanted = 2 * self.congestion.window().window_bytes as usize;
        wanted.max(common.config().send_buffer_initial_bytes).min(limit)
    }
    /// Bytes queued and never sent.
    #[inline]
    pub fn not_sent_bytes(&self, common: &Common) -> u32 {
        let opens = common.opens() && !common.has(ConnectionFlags::EARLY_DATA);
        if opens { self.queued_bytes() } else { self.stream_end().since(self.space.next()) }
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
