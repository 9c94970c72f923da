//! The round trip: measured, smoothed, and turned into the retransmission time-out (RFC 6298).

use crate::Config;
use inhost_base::Duration;

/// Longest back-off by doubling; the largest time-out is reached long before.
const MOST_DOUBLINGS: u8 = 16;

/// The time-out that data begins with after a lost SYN, unless the round trip is measured (RFC 6298 §5.7).
const AFTER_LOST_SYN: Duration = Duration::from_secs(3);

/// Round-trip estimates of the path.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct RoundTrip {
    smoothed: Duration,
    /// What the time-out is made of, in microseconds.
    variation: u32,
    /// What is still to be acknowledged before the round ends: more than had been sent when it was last measured
    /// (RFC 7323 appendix G: one measurement a round, so that the gains mean what they say).
    round_bytes: u32,
    /// It was measured once: as a rule that of the handshake.
    measured_once: bool,
    /// A SYN was lost.
    syn_was_lost: bool,
    /// How often the time-out was doubled.
    backoff: u8,
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
        Duration::from_micros(u64::from(self.variation))
    }
    /// `bytes` more are acknowledged, and `outstanding_bytes` are sent and not acknowledged. `measured` is the round
    /// trip of data sent once (Karn's algorithm); `echoed` is the sample by timestamps, which counts if there is no
    /// other, as after a retransmission (RFC 7323 §4.1). The back-off stays until there is a sample (RFC 6298 §5.7):
    /// otherwise a path that has become slower than the RTO would never be measured.
    // spec: RFC9293 MUST-18 (Karn's algorithm); RFC6298 3-1, 3-2; RFC7323 4.2-1
    pub fn acknowledged(
        &mut self,
        bytes: u32,
        outstanding_bytes: u32,
        measured: Option<Duration>,
        echoed: Option<Duration>,
        config: &Config,
    ) {
        self.round_bytes = self.round_bytes.saturating_sub(bytes);
        let Some(sample) = measured.or(echoed) else { return };
        let counts = self.round_bytes == 0 || self.backoff > 0 || self.smoothed == Duration::ZERO;
        if !counts && !config.policy.rtt_sample_for_each_ack {
            return;
        }
        self.round_bytes = outstanding_bytes.saturating_add(1);
        self.sample(sample);
    }
    /// Checks a thawed measurement.
    #[cfg(feature = "freeze")]
    pub fn check(&self) -> Result<(), inhost_base::freeze::Invalid> {
        inhost_base::freeze::require(self.backoff <= MOST_DOUBLINGS, "a back-off")
    }
    // spec: RFC6298 2.2-1, 2.3-1, 2.3-2
    fn sample(&mut self, sample: Duration) {
        let sample = sample.max(Duration::from_nanos(1));
        self.backoff = 0;
        if self.smoothed == Duration::ZERO {
            // RFC 6298 §2.2
            self.measured_once = true;
            self.smoothed = sample;
            self.variation = in_micros(sample) / 2;
            return;
        }
        self.measured_once = false;
        let error = sample.max(self.smoothed) - sample.min(self.smoothed);
        // RFC 6298 §2.3, with the gains 1/8 and 1/4
        self.variation = self.variation - self.variation / 4 + in_micros(error) / 4;
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
        let margin = self.variation().times(4).max(config.min_retransmission_timeout);
        (self.smoothed + margin).min(config.max_retransmission_timeout)
    }
    /// The time-out as it stands, with its back-off.
    // spec: RFC9293 MUST-19 (exponential back-off); RFC6298 1-1, 2.5-1
    pub fn timeout(&self, config: &Config) -> Duration {
        self.timeout_after(self.backoff, config)
    }
    /// The RTO after a number of doublings.
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
    /// How often the time-out was doubled.
    pub fn backoff(&self) -> u8 {
        self.backoff
    }
    /// The doubling ends.
    pub fn end_back_off(&mut self) {
        self.backoff = 0;
    }
    /// The time-out need not have been doubled the last time.
    pub fn revert_back_off(&mut self) {
        self.backoff -= 1;
    }
    /// The timer expired: the time-out doubles (RFC 6298 §5.5).
    // spec: RFC6298 5-4
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MOST_DOUBLINGS);
    }
}

fn in_micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
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
        assert_eq!(round_trip.timeout(&config), Duration::from_secs(1));
        round_trip.acknowledged(100, 100, Some(ms(100)), None, &config);
        assert_eq!(round_trip.smoothed(), Some(ms(100)));
        assert_eq!(round_trip.timeout(&config), ms(300), "100 + max(4 * 50, 200)");
        round_trip.acknowledged(100, 100, Some(ms(900)), None, &config);
        assert_eq!(round_trip.smoothed(), Some(ms(100)), "still the same round");
        round_trip.acknowledged(100, 0, Some(ms(180)), None, &config);
        assert_eq!(round_trip.smoothed(), Some(ms(110)));
        assert_eq!(round_trip.variation(), Duration::from_micros(57_500));
    }

    // spec: RFC9293 MUST-18
    #[test]
    fn the_back_off_stays_until_something_is_measured() {
        let config = Config::default();
        let mut round_trip = RoundTrip::default();
        round_trip.back_off();
        round_trip.acknowledged(1, 1, None, None, &config);
        assert_eq!((round_trip.smoothed(), round_trip.backoff), (None, 1));
        assert_eq!(round_trip.timeout(&config), Duration::from_secs(2));
        round_trip.acknowledged(1, 0, None, Some(Duration::from_millis(100)), &config);
        assert_eq!(round_trip.backoff, 0);
    }
}
