//! When the next data may leave, so that a window goes out over its round trip (RFC 9002 §7.7 says why).

use super::Sender;
use crate::RecoveryState;
use crate::common::Common;
use crate::flags::SenderFlags;
use crate::state::Allows;
use inhost_base::{Duration, Instant};
use inhost_congestion::PacingGains;

impl Sender {
    /// The pace of the window as it stands.
    #[inline]
    pub fn set_pace(&mut self, common: &Common) {
        if !common.is_paced() {
            return;
        }
        let in_flight = self.in_flight_bytes();
        let smoothed = self.timer.round_trip.smoothed();
        let Some(buffers) = &mut self.buffers else { return };
        if let (true, Some(smoothed)) = (common.config.pacing, smoothed) {
            buffers.pacer.pace(self.congestion.pace(&PacingGains::default(), in_flight, smoothed));
        }
    }
    /// `bytes` left: from when on the next may.
    #[inline]
    pub fn paced(&mut self, common: &Common, bytes: u32, now: Instant) {
        if !common.is_paced() {
            return;
        }
        let segment = self.segment_bytes();
        let Some(buffers) = &mut self.buffers else { return };
        buffers.pacer.limit(common.config.max_pacing_rate_bytes_per_second.unwrap_or(u64::MAX));
        if buffers.pacer.rate_bytes_per_s() == u64::MAX {
            return;
        }
        buffers.pacer.sent(bytes, segment, now);
        if let Some(at) = buffers.pacer.holds_until(segment, now) {
            buffers.pace_at = at;
            self.flags.set(SenderFlags::PACED);
        }
    }
    /// The time has come.
    pub fn fire_pace(&mut self) {
        if let Some(buffers) = &mut self.buffers {
            buffers.pace_at = Instant::FAR_FUTURE;
        }
        self.flags.clear(SenderFlags::PACED);
    }
    /// The pace in force; 0 for none.
    pub fn pacing_rate(&self) -> u64 {
        let rate = self.buffers.as_ref().map_or(u64::MAX, |buffers| buffers.pacer.rate_bytes_per_s());
        if rate == u64::MAX { 0 } else { rate }
    }
    /// What an acknowledgment showed of the rate of delivery.
    #[inline]
    pub fn sample_rate(
        &mut self,
        builder: inhost_congestion::SampleBuilder,
        now: Instant,
    ) -> Option<inhost_congestion::RateSample> {
        let buffers = self.buffers.as_deref_mut()?;
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
    pub fn note_application_limit(&mut self) {
        let in_flight = self.in_flight_bytes();
        if in_flight < self.congestion.window.window_bytes
            && self.recovery.state == RecoveryState::Open
            && let Some(buffers) = &mut self.buffers
        {
            buffers.flight.rates.application_limited(in_flight);
        }
    }
    /// After a time-out's worth of idleness the window says nothing about the path (RFC 5681 §4.1).
    // spec: RFC5681 4.1-1
    #[inline]
    pub fn restart_after_idle(&mut self, common: &Common, now: Instant) {
        if self.space.has_outstanding()
            || self.space.window == 0
            || common.state.opens()
            || self.queued_bytes() == 0
        {
            return;
        }
        let idle = now.since(self.sent_at);
        self.congestion.resumed(idle, now);
        let timeout = self.timer.round_trip.base_timeout(&common.config);
        if common.config.restart_after_idle && idle > timeout {
            self.congestion.restart(common.config.initial_window_segments, idle, timeout);
        }
    }
}
