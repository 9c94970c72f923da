//! HyStart++ (RFC 9406): the first slow start ends when the round trip grows, before the queue overflows; and goes on
//! when that proves to have been jitter.

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
pub(crate) struct HyStart {
    /// The round is over when so many bytes of the stream are acknowledged.
    round_end_bytes: u64,
    /// Least round trip of the round before, and of this.
    last_least: Duration,
    least: Duration,
    /// Least round trip when conservative slow start began, while it lasts.
    baseline: Option<Duration>,
    samples: u8,
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
            rounds: 0,
        }
    }
    /// Grows the window, and sets the threshold where slow start ends. `bursts`: what it frees leaves at once.
    pub fn acknowledged(&mut self, window: &mut CongestionWindow, acknowledged: &Acknowledged, bursts: bool) {
        // What is past the end of the round was sent in the next one, which lasts for all that is sent by now.
        if acknowledged.acknowledged_bytes > self.round_end_bytes {
            self.next_round(window, acknowledged.sent_bytes);
        }
        if let Some(round_trip) = acknowledged.latest_round_trip {
            self.least = self.least.min(round_trip);
            self.samples = self.samples.saturating_add(1);
        }
        let divisor = if self.baseline.is_some() { CONSERVATIVE_DIVISOR } else { 1 };
        let most = if bursts { MOST_BURST_SEGMENTS * window.segment_bytes } else { u32::MAX };
        window.slow_start(acknowledged.bytes.min(most) / divisor);
        if self.samples >= LEAST_SAMPLES {
            self.judge();
        }
    }
    /// Enough was measured in this round to judge it.
    fn judge(&mut self) {
        match self.baseline {
            None if self.last_least < Duration::MAX => {
                let growth = self.last_least.divided_by(GROWTH_DIVISOR).clamp(LEAST_GROWTH, MOST_GROWTH);
                if self.least >= self.last_least + growth {
                    // RFC 9406 §4.2: on to conservative slow start.
                    self.baseline = Some(self.least);
                    self.rounds = 0;
                }
            }
            // RFC 9406 §4.2: it was jitter; slow start goes on.
            Some(baseline) if self.least < baseline => self.baseline = None,
            _ => {}
        }
    }
    fn next_round(&mut self, window: &mut CongestionWindow, sent_bytes: u64) {
        self.round_end_bytes = sent_bytes;
        self.last_least = self.least;
        self.least = Duration::MAX;
        self.samples = 0;
        if self.baseline.is_some() {
            self.rounds += 1;
            if self.rounds >= CONSERVATIVE_ROUNDS {
                // RFC 9406 §4.2: congestion avoidance from here.
                window.threshold_bytes = window.window_bytes;
            }
        }
    }
}
