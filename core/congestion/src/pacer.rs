//! When the next data may leave, so that a window goes out evenly and not as a burst.

use crate::CongestionWindow;
use inhost_base::{Duration, Instant};

const NANOS_PER_S: u64 = 1_000_000_000;
/// What may leave together: so much time's worth, or a number of segments. A timer for each segment would cost more
/// than the queue that a short burst makes.
const BURST: Duration = Duration::from_millis(1);
/// The least that may leave together: what an acknowledgment of two segments lets slow start send. One by one they would
/// reach a receiver that has little to do with as many pauses between them.
const BURST_SEGMENTS: u8 = 4;
/// While the window doubles: what any path has to take at once anyway, as the first window (RFC 6928). In smaller pieces
/// the first rounds over a long path would be all pauses.
const DOUBLING_BURST_SEGMENTS: u8 = 10;
/// Shortest round trip that a rate is made from.
const LEAST_ROUND_TRIP: Duration = Duration::from_micros(1);

/// By how much the pace exceeds one window a round trip, in percent. More than 100, so that the window stays the
/// limit and a late timer is made good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacingGains {
    /// While the window doubles each round trip. Default 200, as Linux.
    pub slow_start_percent: u16,
    /// In congestion avoidance, and near the threshold. Default 120, as Linux.
    pub avoidance_percent: u16,
}

impl Default for PacingGains {
    fn default() -> Self {
        PacingGains { slow_start_percent: 200, avoidance_percent: 120 }
    }
}

/// How fast data leaves, and how much of it together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Pace {
    /// The rate; `u64::MAX` is none.
    pub bytes_per_s: u64,
    /// Segments that may leave together, where a millisecond's worth is less.
    pub burst_segments: u8,
}

impl Pace {
    /// A rate with short bursts; `u64::MAX` for none.
    pub const fn of(bytes_per_s: u64) -> Pace {
        Pace { bytes_per_s, burst_segments: BURST_SEGMENTS }
    }
}

impl PacingGains {
    /// The pace of `window` over a path of `round_trip`.
    pub(crate) fn pace(&self, window: &CongestionWindow, in_flight_bytes: u32, round_trip: Duration) -> Pace {
        // Well below the threshold only: the last round of slow start need not overshoot it.
        let doubling = window.window_bytes < window.threshold_bytes / 2;
        let (percent, burst_segments) = match doubling {
            true => (self.slow_start_percent, DOUBLING_BURST_SEGMENTS),
            false => (self.avoidance_percent, BURST_SEGMENTS),
        };
        // Below 2^30 bytes, 2^30 nanoseconds a second, and 2^16 percent over 100 it stays below 2^64 in two steps.
        let bytes = u64::from(window.window_bytes.max(in_flight_bytes));
        let per_percent = bytes * (NANOS_PER_S / 100) / round_trip.max(LEAST_ROUND_TRIP).as_nanos();
        Pace { bytes_per_s: (per_percent * u64::from(percent)).max(1), burst_segments }
    }
}

/// The pace of one sender. It holds when all that was sent will have left at the pace; a sender may be ahead of that
/// by a burst, and makes good a short burst's worth of what it missed. So within any time it sends what the rate gives,
/// and at most two bursts and a segment more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Pacer {
    /// When all that was sent has left at the pace.
    sent_until: Instant,
    pace: Pace,
    /// What the application allows at most, in bytes a second.
    most_bytes_per_s: u64,
}

impl Default for Pacer {
    fn default() -> Self {
        Pacer { sent_until: Instant::ZERO, pace: Pace::of(u64::MAX), most_bytes_per_s: u64::MAX }
    }
}

impl Pacer {
    /// Checks a thawed pacer.
    #[cfg(feature = "freeze")]
    pub fn check(&self) -> Result<(), inhost_base::freeze::Invalid> {
        inhost_base::freeze::require(self.rate_bytes_per_s() > 0, "a pace")
    }
    /// Sets what the application allows at most, in bytes a second; `u64::MAX` is no limit.
    pub fn limit(&mut self, most_bytes_per_s: u64) {
        self.most_bytes_per_s = most_bytes_per_s.max(1);
    }
    /// The path's pace from now on. Without a rate, the first window leaves as a burst, as RFC 6928 has it.
    pub fn pace(&mut self, pace: Pace) {
        self.pace = Pace { bytes_per_s: pace.bytes_per_s.max(1), ..pace };
    }
    /// The pace in force, in bytes a second; `u64::MAX` when there is none.
    pub fn rate_bytes_per_s(&self) -> u64 {
        self.pace.bytes_per_s.min(self.most_bytes_per_s)
    }
    /// When the next data may leave, or `None` if it may now. `segment_bytes` is a full segment.
    pub fn holds_until(&self, segment_bytes: u32, now: Instant) -> Option<Instant> {
        // Blocked, it waits until it is even, and then sends a whole burst.
        let ahead = self.sent_until.since(now);
        (ahead > Duration::ZERO && ahead >= self.most_ahead(segment_bytes)).then_some(self.sent_until)
    }
    /// How many bytes may leave now, if they leave in segments: the last of these may begin when only a byte of it may.
    /// 0 when nothing may.
    pub fn room_bytes(&self, segment_bytes: u32, now: Instant) -> u64 {
        let rate = self.rate_bytes_per_s();
        if rate == u64::MAX {
            return u64::MAX;
        }
        let from = self.sent_until.max(now - self.burst(BURST_SEGMENTS, segment_bytes));
        let ahead = (now + self.most_ahead(segment_bytes)).since(from).as_nanos();
        rate.saturating_mul(ahead).div_ceil(NANOS_PER_S)
    }
    /// `bytes` left.
    pub fn sent(&mut self, bytes: u32, segment_bytes: u32, now: Instant) {
        let rate = self.rate_bytes_per_s();
        if rate == u64::MAX {
            return;
        }
        // What was missed by less than a short burst is made good.
        let from = self.sent_until.max(now - self.burst(BURST_SEGMENTS, segment_bytes));
        self.sent_until = from + Duration::from_nanos(u64::from(bytes) * NANOS_PER_S / rate);
    }
    /// By how much a sender may be ahead. An application's own limit asks for evenness, whatever the path would take.
    fn most_ahead(&self, segment_bytes: u32) -> Duration {
        let is_limited = self.most_bytes_per_s < self.pace.bytes_per_s;
        self.burst(if is_limited { BURST_SEGMENTS } else { self.pace.burst_segments }, segment_bytes)
    }
    fn burst(&self, segments: u8, segment_bytes: u32) -> Duration {
        let bytes = u64::from(segments) * u64::from(segment_bytes);
        let rate = self.rate_bytes_per_s();
        // So many segments in less than the burst's time: the division is for slow senders only.
        if rate / 1000 >= bytes * (1_000_000 / BURST.as_nanos()) {
            return BURST;
        }
        Duration::from_nanos(bytes * NANOS_PER_S / rate)
    }
}
