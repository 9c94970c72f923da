//! HyStart++ (RFC 9406): the first slow start ends when the round trip grows, before the queue overflows; and goes on
//! when that proves to have been jitter.
//!
//! RFC 9406 judges the least round trip of a round, because a burst makes a queue by itself. A paced sender makes none,
//! so each few measurements tell of the path: it sees the queue grow within the round, which is a round trip earlier.

use crate::{Acknowledged, CongestionWindow};
use inhost_base::Duration;

/// Least and largest growth of the round trip that tells of a queue (RFC 9406 §4.3).
const LEAST_GROWTH: Duration = Duration::from_millis(4);
const MOST_GROWTH: Duration = Duration::from_millis(16);
/// Between them, this part of the round trip.
const GROWTH_DIVISOR: u64 = 8;
/// Measurements in a round before it tells anything.
const LEAST_SAMPLES: u8 = 8;
/// Segments by which one acknowledgment lets the window grow where they leave in one burst: `L` of RFC 9406 §4.2.
const MOST_BURST_SEGMENTS: u32 = 8;
/// By how much slower conservative slow start is.
const CONSERVATIVE_DIVISOR: u32 = 4;
/// Rounds of conservative slow start before congestion avoidance.
const CONSERVATIVE_ROUNDS: u8 = 5;

/// The first slow start.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct HyStart {
    /// The round is over when so many bytes of the stream are acknowledged.
    round_end_bytes: u64,
    /// Least round trip of the round before, and of this.
    last_least: Duration,
    least: Duration,
    /// Least round trip when conservative slow start began, while it lasts.
    baseline: Option<Duration>,
    samples: u8,
    /// Least round trip of the last few measurements, of which there are so many yet.
    recent: Duration,
    recent_samples: u8,
    /// Rounds of conservative slow start so far, the first of them perhaps a part of one.
    rounds: u8,
}

impl HyStart {
    /// Begins with the first acknowledgment.
    pub fn new(acknowledged: &Acknowledged) -> Self {
        HyStart {
            round_end_bytes: acknowledged.sent_bytes,
            last_least: Duration::MAX,
            least: Duration::MAX,
            baseline: None,
            samples: 0,
            recent: Duration::MAX,
            recent_samples: 0,
            rounds: 0,
        }
    }
    /// Grows the window, and sets the threshold where slow start ends. `bursts`: what it frees leaves at once.
    pub fn acknowledged(&mut self, window: &mut CongestionWindow, acknowledged: &Acknowledged, bursts: bool) {
        // What is past the end of the round was sent in the next one, which lasts for all that is sent by now.
        if acknowledged.acknowledged_bytes > self.round_end_bytes {
            self.next_round(window, acknowledged.sent_bytes);
        }
        let divisor = if self.baseline.is_some() { CONSERVATIVE_DIVISOR } else { 1 };
        let most = if bursts { MOST_BURST_SEGMENTS * window.segment_bytes } else { u32::MAX };
        window.window_bytes += window.slow_start_bytes(acknowledged.bytes.min(most) / divisor);
        if let Some(round_trip) = acknowledged.latest_round_trip
            && let Some(least) = self.measured(round_trip, bursts)
        {
            self.judge(least, window);
        }
    }
    /// Notes a measurement. The result is what is to be judged now, if anything.
    fn measured(&mut self, round_trip: Duration, bursts: bool) -> Option<Duration> {
        self.least = self.least.min(round_trip);
        self.samples = self.samples.saturating_add(1);
        self.recent = self.recent.min(round_trip);
        self.recent_samples += 1;
        if bursts {
            self.recent_samples = 0;
            return (self.samples >= LEAST_SAMPLES).then_some(self.least);
        }
        if self.recent_samples < LEAST_SAMPLES {
            return None;
        }
        self.recent_samples = 0;
        Some(core::mem::replace(&mut self.recent, Duration::MAX))
    }
    /// Judges the `least` round trip of enough measurements.
    fn judge(&mut self, least: Duration, window: &mut CongestionWindow) {
        match self.baseline {
            None if self.last_least < Duration::MAX && has_grown(self.last_least, least) => {
                // RFC 9406 §4.2: on to conservative slow start.
                self.baseline = Some(least);
                self.rounds = 0;
            }
            // RFC 9406 §4.2: it was jitter; slow start goes on.
            Some(baseline) if least < baseline => self.baseline = None,
            // A later round as much longer again: that is a queue, and what is left of its room would not last for all
            // the rounds that RFC 9406 gives jitter to show itself.
            Some(baseline) if self.rounds > 0 && has_grown(baseline, least) => {
                window.threshold_bytes = window.window_bytes;
            }
            _ => {}
        }
    }
    fn next_round(&mut self, window: &mut CongestionWindow, sent_bytes: u64) {
        self.round_end_bytes = sent_bytes;
        self.last_least = self.least;
        self.least = Duration::MAX;
        self.samples = 0;
        self.recent = Duration::MAX;
        self.recent_samples = 0;
        if self.baseline.is_some() {
            self.rounds += 1;
            if self.rounds >= CONSERVATIVE_ROUNDS {
                // RFC 9406 §4.2: congestion avoidance from here.
                window.threshold_bytes = window.window_bytes;
            }
        }
    }
}

/// Whether the round trip has grown by what tells of a queue (RFC 9406 §4.2).
fn has_grown(before: Duration, now: Duration) -> bool {
    now >= before + before.divided_by(GROWTH_DIVISOR).clamp(LEAST_GROWTH, MOST_GROWTH)
}
