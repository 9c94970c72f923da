//! The round trip: measured, smoothed, and turned into the retransmission time-out (RFC 6298).

use crate::Config;
use inhost_base::{Duration, Instant, Sequence};

/// Longest back-off by doubling; the largest time-out is reached long before.
const MOST_DOUBLINGS: u8 = 16;

/// What is known of the path's round trip. At most one segment is timed at a time.
#[derive(Debug, Default)]
pub(crate) struct RoundTrip {
    smoothed: Duration,
    variation: Duration,
    /// When the timed segment left; origin's instant plus nothing means none is timed.
    timed_at: Option<TimedAt>,
    /// Acknowledging this ends the timing.
    timed_end: Sequence,
    /// How often the time-out was doubled.
    pub backoff: u8,
}

/// Nanoseconds plus one, so that `Option` costs nothing.
type TimedAt = core::num::NonZeroU64;

impl RoundTrip {
    /// The smoothed round trip, once measured.
    pub fn smoothed(&self) -> Option<Duration> {
        (self.smoothed > Duration::ZERO).then_some(self.smoothed)
    }
    /// The mean deviation.
    pub fn variation(&self) -> Duration {
        self.variation
    }
    /// A segment that ends before `end` leaves for the first time; it is timed unless another is.
    pub fn sent(&mut self, end: Sequence, now: Instant) {
        if self.timed_at.is_none() {
            self.timed_at = TimedAt::new(now.as_nanos().saturating_add(1));
            self.timed_end = end;
        }
    }
    /// Something was sent again: what was timed is ambiguous now.
    // spec: RFC9293 MUST-18 (Karn's algorithm)
    pub fn retransmitted(&mut self) {
        self.timed_at = None;
    }
    /// `acknowledgment` is new. `echoed` is the round trip by the timestamps, where there are any: it counts when
    /// no segment was timed, as after a retransmission (RFC 7323 §4.1). The back-off stays until something is
    /// measured (RFC 6298 §5.7): were it less, a path that has become slower than the time-out would never be measured.
    pub fn acknowledged(&mut self, acknowledgment: Sequence, echoed: Option<Duration>, now: Instant) {
        match self.timed_at {
            Some(at) if self.timed_end.at_or_before(acknowledgment) => {
                self.timed_at = None;
                self.sample(now.since(Instant::from_nanos(at.get() - 1)));
            }
            Some(_) => {}
            None => {
                if let Some(echoed) = echoed {
                    self.sample(echoed);
                }
            }
        }
    }
    fn sample(&mut self, sample: Duration) {
        let sample = sample.max(Duration::from_nanos(1));
        self.backoff = 0;
        if self.smoothed == Duration::ZERO {
            // RFC 6298 §2.2
            self.smoothed = sample;
            self.variation = sample.divided_by(2);
            return;
        }
        // RFC 6298 §2.3, with the gains 1/8 and 1/4
        let error = sample.max(self.smoothed) - sample.min(self.smoothed);
        self.variation = self.variation - self.variation.divided_by(4) + error.divided_by(4);
        self.smoothed = self.smoothed - self.smoothed.divided_by(8) + sample.divided_by(8);
        self.smoothed = self.smoothed.max(Duration::from_nanos(1));
    }
    /// The time-out before doubling.
    pub fn base_timeout(&self, config: &Config) -> Duration {
        if self.smoothed == Duration::ZERO {
            return config.initial_retransmission_timeout;
        }
        // The floor is on the margin rather than on the sum, so that it covers a delayed acknowledgment on paths
        // of any length.
        let margin = self.variation.times(4).max(config.min_retransmission_timeout);
        (self.smoothed + margin).min(config.max_retransmission_timeout)
    }
    /// The time-out as it stands (RFC 6298 §5.5).
    // spec: RFC9293 MUST-19 (exponential back-off)
    pub fn timeout(&self, config: &Config) -> Duration {
        let doubled = self.base_timeout(config).times(1 << self.backoff.min(MOST_DOUBLINGS));
        doubled.min(config.max_retransmission_timeout)
    }
    /// The timer expired.
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MOST_DOUBLINGS);
        self.timed_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_rfc_6298() {
        let config = Config::default();
        let mut round_trip = RoundTrip::default();
        assert_eq!(round_trip.timeout(&config), Duration::from_secs(1));
        round_trip.sent(Sequence(100), Instant::from_millis(0));
        round_trip.sent(Sequence(200), Instant::from_millis(90));
        round_trip.acknowledged(Sequence(50), None, Instant::from_millis(95));
        assert_eq!(round_trip.smoothed(), None, "the timed segment is not acknowledged yet");
        round_trip.acknowledged(Sequence(200), None, Instant::from_millis(100));
        assert_eq!(round_trip.smoothed(), Some(Duration::from_millis(100)));
        assert_eq!(round_trip.timeout(&config), Duration::from_millis(300), "100 + max(4 * 50, 200)");
        round_trip.sent(Sequence(300), Instant::from_millis(200));
        round_trip.acknowledged(Sequence(300), None, Instant::from_millis(380));
        assert_eq!(round_trip.smoothed(), Some(Duration::from_millis(110)));
        assert_eq!(round_trip.variation(), Duration::from_micros(57_500));
    }

    // spec: RFC9293 MUST-18
    #[test]
    fn a_retransmitted_segment_is_not_measured_and_the_back_off_stays() {
        let config = Config::default();
        let mut round_trip = RoundTrip::default();
        round_trip.sent(Sequence(1), Instant::ZERO);
        round_trip.back_off();
        round_trip.retransmitted();
        round_trip.acknowledged(Sequence(1), None, Instant::from_millis(1500));
        assert_eq!((round_trip.smoothed(), round_trip.backoff), (None, 1));
        assert_eq!(round_trip.timeout(&config), Duration::from_secs(2));
        round_trip.sent(Sequence(2), Instant::from_millis(1500));
        round_trip.acknowledged(Sequence(2), None, Instant::from_millis(1600));
        assert_eq!(round_trip.backoff, 0);
    }
}
