//! The round trip: measured, smoothed, and turned into the retransmission time-out (RFC 6298).

use crate::Config;
use crate::numbers::Visit;
use inhost_base::{Duration, Sequence};

/// Longest back-off by doubling; the largest time-out is reached long before.
const MOST_DOUBLINGS: u8 = 16;

/// The time-out that data begins with after a lost SYN, unless the round trip is measured (RFC 6298 §5.7).
const AFTER_LOST_SYN: Duration = Duration::from_secs(3);

/// What is known of the path's round trip.
#[derive(Debug, Default)]
pub(crate) struct RoundTrip {
    smoothed: Duration,
    variation: Duration,
    /// What had been sent when it was last measured: acknowledging more ends a round (RFC 7323 appendix G: one
    /// measurement a round, so that the gains mean what they say).
    until: Sequence,
    /// One measurement was made, as a rule of the handshake.
    measured_once: bool,
    /// A SYN was lost, and nothing is measured since.
    syn_was_lost: bool,
    /// How often the time-out was doubled.
    pub backoff: u8,
}

impl RoundTrip {
    /// The smoothed round trip, once measured.
    pub fn smoothed(&self) -> Option<Duration> {
        (self.smoothed > Duration::ZERO).then_some(self.smoothed)
    }
    /// The only measurement so far, where there was one.
    pub fn only_measurement(&self) -> Option<Duration> {
        self.measured_once.then_some(self.smoothed)
    }
    /// The mean deviation.
    pub fn variation(&self) -> Duration {
        self.variation
    }
    /// Everything before `acknowledgment` is acknowledged, and everything before `next` was sent. `measured` is the
    /// round trip of something that left once (Karn's algorithm); `echoed` is that by the timestamps, which counts
    /// where nothing else was measured, as after a retransmission (RFC 7323 §4.1). The back-off stays until something
    /// is measured (RFC 6298 §5.7): were it less, a path that has become slower than the time-out would never be.
    // spec: RFC9293 MUST-18 (Karn's algorithm); RFC6298 3-1, 3-2; RFC7323 4.2-1
    pub fn acknowledged(
        &mut self,
        acknowledgment: Sequence,
        next: Sequence,
        measured: Option<Duration>,
        echoed: Option<Duration>,
    ) {
        let ends_round = self.until.precedes(acknowledgment) || self.backoff > 0;
        if let Some(sample) = measured.or(echoed)
            && (ends_round || self.smoothed == Duration::ZERO)
        {
            self.until = next;
            self.sample(sample);
        }
    }
    /// See [`crate::numbers`].
    pub fn numbers(&mut self, visit: Visit<'_>) {
        let RoundTrip { smoothed: _, variation: _, until, measured_once: _, syn_was_lost: _, backoff: _ } =
            self;
        visit("the end of the measured round", until);
    }
    /// The connection begins: nothing before `initial` was sent.
    pub fn begin(&mut self, initial: Sequence) {
        self.until = initial.back(1);
    }
    // spec: RFC6298 2.2-1, 2.3-1, 2.3-2
    fn sample(&mut self, sample: Duration) {
        let sample = sample.max(Duration::from_nanos(1));
        self.backoff = 0;
        self.measured_once = self.smoothed == Duration::ZERO;
        if self.measured_once {
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
    // spec: RFC6298 2.1-1, 4-1
    pub fn base_timeout(&self, config: &Config) -> Duration {
        if self.smoothed == Duration::ZERO {
            let initial = config.initial_retransmission_timeout;
            return if self.syn_was_lost { initial.max(AFTER_LOST_SYN) } else { initial };
        }
        // The floor is on the margin rather than on the sum, so that it covers a delayed acknowledgment on paths
        // of any length.
        let margin = self.variation.times(4).max(config.min_retransmission_timeout);
        (self.smoothed + margin).min(config.max_retransmission_timeout)
    }
    /// The time-out as it stands (RFC 6298 §5.5).
    // spec: RFC9293 MUST-19 (exponential back-off); RFC6298 1-1, 2.5-1
    pub fn timeout(&self, config: &Config) -> Duration {
        self.timeout_after(self.backoff, config)
    }
    /// The time-out after so many doublings.
    pub fn timeout_after(&self, doublings: u8, config: &Config) -> Duration {
        let doubled = self.base_timeout(config).times(1 << doublings.min(MOST_DOUBLINGS));
        doubled.min(config.max_retransmission_timeout)
    }
    /// The handshake is done, and its SYN was lost: data begins with a longer time-out (RFC 6298 §5.7).
    // spec: RFC6298 5-5
    pub fn after_lost_syn(&mut self) {
        self.syn_was_lost = true;
        self.backoff = 0;
    }
    /// The timer expired.
    // spec: RFC6298 5-4
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MOST_DOUBLINGS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: RFC6298 2.1-1, 2.2-1, 2.3-1; RFC7323 4.2-1
    #[test]
    fn it_follows_rfc_6298() {
        let config = Config::default();
        let ms = Duration::from_millis;
        let mut round_trip = RoundTrip::default();
        round_trip.begin(Sequence(100));
        assert_eq!(round_trip.timeout(&config), Duration::from_secs(1));
        round_trip.acknowledged(Sequence(200), Sequence(300), Some(ms(100)), None);
        assert_eq!(round_trip.smoothed(), Some(ms(100)));
        assert_eq!(round_trip.timeout(&config), ms(300), "100 + max(4 * 50, 200)");
        round_trip.acknowledged(Sequence(300), Sequence(400), Some(ms(900)), None);
        assert_eq!(round_trip.smoothed(), Some(ms(100)), "still the same round");
        round_trip.acknowledged(Sequence(400), Sequence(400), Some(ms(180)), None);
        assert_eq!(round_trip.smoothed(), Some(ms(110)));
        assert_eq!(round_trip.variation(), Duration::from_micros(57_500));
    }

    // spec: RFC9293 MUST-18
    #[test]
    fn the_back_off_stays_until_something_is_measured() {
        let config = Config::default();
        let mut round_trip = RoundTrip::default();
        round_trip.back_off();
        round_trip.acknowledged(Sequence(1), Sequence(2), None, None);
        assert_eq!((round_trip.smoothed(), round_trip.backoff), (None, 1));
        assert_eq!(round_trip.timeout(&config), Duration::from_secs(2));
        round_trip.acknowledged(Sequence(2), Sequence(2), None, Some(Duration::from_millis(100)));
        assert_eq!(round_trip.backoff, 0);
    }
}
