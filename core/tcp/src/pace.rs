//! When the next data may leave, so that a window goes out over its round trip (RFC 9002 §7.7 says why).

use crate::marks::SendMarks;
use crate::{Connection, RecoveryState};
use inhost_base::{Duration, Instant};
use inhost_congestion::PacingGains;

impl Connection {
    fn is_paced(&self) -> bool {
        self.common.config.pacing || self.common.config.max_pacing_rate_bytes_per_second.is_some()
    }
    /// The pace of the window as it stands.
    #[inline]
    pub(crate) fn set_pace(&mut self) {
        if !self.is_paced() {
            return;
        }
        let in_flight = self.in_flight_bytes();
        let smoothed = self.sender.round_trip.smoothed();
        let Some(buffers) = &mut self.sender.buffers else { return };
        if let (true, Some(smoothed)) = (self.common.config.pacing, smoothed) {
            buffers.pacer.pace(self.sender.congestion.pace(&PacingGains::default(), in_flight, smoothed));
        }
    }
    /// `bytes` left: from when on the next may.
    #[inline]
    pub(crate) fn paced(&mut self, bytes: u32, now: Instant) {
        if !self.is_paced() {
            return;
        }
        let segment = self.segment_bytes();
        let Some(buffers) = &mut self.sender.buffers else { return };
        buffers.pacer.limit(self.common.config.max_pacing_rate_bytes_per_second.unwrap_or(u64::MAX));
        if buffers.pacer.rate_bytes_per_s() == u64::MAX {
            return;
        }
        buffers.pacer.sent(bytes, segment, now);
        if let Some(at) = buffers.pacer.holds_until(segment, now) {
            buffers.pace_at = at;
            self.sender.marks.set(SendMarks::PACED);
        }
    }
    /// The time has come.
    pub(crate) fn fire_pace(&mut self) {
        if let Some(buffers) = &mut self.sender.buffers {
            buffers.pace_at = Instant::FAR_FUTURE;
        }
        self.sender.marks.clear(SendMarks::PACED);
    }
    /// The pace in force; 0 for none.
    pub(crate) fn pacing_rate(&self) -> u64 {
        let rate = self.sender.buffers.as_ref().map_or(u64::MAX, |buffers| buffers.pacer.rate_bytes_per_s());
        if rate == u64::MAX { 0 } else { rate }
    }
    /// What an acknowledgment showed of the rate of delivery.
    #[inline]
    pub(crate) fn sample_rate(
        &mut self,
        builder: inhost_congestion::SampleBuilder,
        now: Instant,
    ) -> Option<inhost_congestion::RateSample> {
        let buffers = self.sender.buffers.as_deref_mut()?;
        let least = buffers.flight.rack.least_round_trip().unwrap_or(Duration::ZERO);
        let sample = buffers.flight.rates.sample(builder, least, now)?;
        // An application that had too little to send shows at least so much.
        let tells = !sample.application_limited
            || buffers.rate.is_none_or(|known| sample.bytes_per_s() >= known.bytes_per_s());
        if tells {
            buffers.rate = Some(sample);
        }
        Some(sample)
    }
    /// Everything there is to send was sent, and the window would take more.
    #[inline]
    pub(crate) fn note_application_limit(&mut self) {
        let in_flight = self.in_flight_bytes();
        if in_flight < self.sender.congestion.window.window_bytes
            && self.sender.recovery.state == RecoveryState::Open
            && let Some(buffers) = &mut self.sender.buffers
        {
            buffers.flight.rates.application_limited(in_flight);
        }
    }
}
