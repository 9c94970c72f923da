//! How fast the path delivers, measured by each acknowledgment: for controls that think in rates, and for
//! instruments (draft-cheng-iccrg-delivery-rate-estimation).
//!
//! Each transmission carries a [`RateMark`]: what had been delivered when it left. Its acknowledgment then tells how
//! much was delivered in between, over the longer of the times that sending and acknowledging it took.

use inhost_base::{Duration, Instant};

/// Nanoseconds of a tick as a power of two: 64 ns, so that 31 bits hold 137 seconds.
const TICK_SHIFT: u32 = 6;
const TICKS: u32 = (1 << 31) - 1;

/// What a transmission remembers, in 12 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct RateMark {
    /// Low half of the bytes delivered when it left.
    delivered: u32,
    /// Ticks between the latest delivery and its leaving.
    since_delivery: u32,
    /// Ticks between the first transmission of its flight and its leaving; the top bit tells that the application
    /// had too little to send.
    since_first: u32,
}

const APPLICATION_LIMITED: u32 = 1 << 31;

/// A connection's account of deliveries.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct RateSampler {
    /// Bytes delivered, by acknowledgment or selective acknowledgment, each once.
    delivered_bytes: u64,
    /// When that last grew.
    delivered_at: Instant,
    /// When the transmission left that was delivered last.
    first_sent_at: Instant,
    /// The application had too little to send until so many bytes are delivered; 0 when it had enough.
    limited_until_bytes: u64,
}

/// What one acknowledgment delivered so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct SampleBuilder {
    latest: Option<Latest>,
    bytes: u32,
}

/// The transmission that left last among those that the acknowledgment delivered.
#[derive(Clone, Copy, Debug)]
struct Latest {
    mark: RateMark,
    sent_at: Instant,
}

/// The rate that one acknowledgment shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct RateSample {
    /// Bytes delivered within `interval`.
    pub delivered_bytes: u32,
    /// The longer of the time that it took to send them and the time that it took to acknowledge them.
    pub interval: Duration,
    /// Bytes delivered since the connection opened, when what was acknowledged left.
    pub prior_delivered_bytes: u64,
    /// Whether the application had too little to send, so that the path may be faster.
    pub application_limited: bool,
}

impl RateSample {
    /// The rate, in bytes a second.
    pub fn bytes_per_s(&self) -> u64 {
        u64::from(self.delivered_bytes) * 1_000_000_000 / self.interval.as_nanos().max(1)
    }
}

fn ticks(time: Duration) -> u32 {
    (time.as_nanos() >> TICK_SHIFT).min(u64::from(TICKS)) as u32
}
fn time(ticks: u32) -> Duration {
    Duration::from_nanos(u64::from(ticks & TICKS) << TICK_SHIFT)
}

impl RateSampler {
    /// Bytes delivered since the connection opened.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }
    /// Checks a thawed sampler with the mark of something that has left.
    #[cfg(feature = "freeze")]
    pub fn check(&self, mark: &RateMark) -> Result<(), inhost_base::freeze::Invalid> {
        let since = (self.delivered_bytes as u32).wrapping_sub(mark.delivered);
        let is_in_range = u64::from(since) <= self.delivered_bytes && self.delivered_bytes < 1 << 63;
        inhost_base::freeze::require(is_in_range, "the bytes delivered")
    }
    /// Something leaves, for the first time or again, with `in_flight_bytes` before it: what its record carries.
    pub fn sent(&mut self, in_flight_bytes: u32, now: Instant) -> RateMark {
        if in_flight_bytes == 0 {
            // A new flight: idle time is not a part of anybody's interval.
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        let limited = if self.limited_until_bytes > 0 { APPLICATION_LIMITED } else { 0 };
        RateMark {
            delivered: self.delivered_bytes as u32,
            since_delivery: ticks(now.since(self.delivered_at)),
            since_first: ticks(now.since(self.first_sent_at)) | limited,
        }
    }
    /// The window has room and the application has nothing to send, with `in_flight_bytes` outstanding.
    pub fn application_limited(&mut self, in_flight_bytes: u32) {
        self.limited_until_bytes = (self.delivered_bytes + u64::from(in_flight_bytes)).max(1);
    }
    /// `bytes` that left at `sent_at` with `mark` are delivered, by the acknowledgment that `builder` stands for.
    pub fn delivered(
        &mut self,
        builder: &mut SampleBuilder,
        mark: RateMark,
        sent_at: Instant,
        bytes: u32,
        now: Instant,
    ) {
        self.delivered_bytes += u64::from(bytes);
        self.delivered_at = now;
        builder.bytes = builder.bytes.saturating_add(bytes);
        let later = |latest: &Latest| {
            let newer = mark.delivered.wrapping_sub(latest.mark.delivered);
            sent_at > latest.sent_at || (sent_at == latest.sent_at && newer < 1 << 31)
        };
        if builder.latest.as_ref().is_none_or(later) {
            builder.latest = Some(Latest { mark, sent_at });
            self.first_sent_at = sent_at;
        }
    }
    /// All that the acknowledgment delivers is known: its sample, unless it delivered nothing or its interval is
    /// shorter than `least_round_trip`, which only a retransmission taken for the original gives.
    pub fn sample(
        &mut self,
        builder: &SampleBuilder,
        least_round_trip: Duration,
        now: Instant,
    ) -> Option<RateSample> {
        if self.limited_until_bytes > 0 && self.delivered_bytes > self.limited_until_bytes {
            self.limited_until_bytes = 0;
        }
        let Latest { mark, sent_at } = builder.latest?;
        let delivered_bytes = (self.delivered_bytes as u32).wrapping_sub(mark.delivered);
        let acknowledging = now.since(sent_at) + time(mark.since_delivery);
        let interval = time(mark.since_first).max(acknowledging);
        let whole = interval >= least_round_trip && interval > Duration::ZERO;
        (whole && delivered_bytes > 0).then_some(RateSample {
            delivered_bytes,
            interval,
            prior_delivered_bytes: self.delivered_bytes - u64::from(delivered_bytes),
            application_limited: mark.since_first & APPLICATION_LIMITED != 0,
        })
    }
}
