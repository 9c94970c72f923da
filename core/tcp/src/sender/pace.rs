//! Pacing: when the next data may be sent, so that a window is spread over its round trip (RFC 9002 §7.7).

use super::Sender;
use crate::common::Common;
use crate::flags::SenderFlags;
use inhost_base::Instant;
use inhost_congestion::PacingGains;

impl Sender {
    /// The pace of the window as it stands.
    #[inline]
    pub fn set_pace(&mut self, common: &Common) {
        if !common.is_paced() {
            return;
        }
        let in_flight = self.in_flight_bytes();
        let smoothed = common.round_trip().smoothed();
        let Some(buffers) = &mut self.buffers else { return };
        if let (true, Some(smoothed)) = (common.config().pacing, smoothed) {
            buffers.pacer.pace(self.congestion.pace(&PacingGains::default(), in_flight, smoothed));
        }
    }
    /// `bytes` were sent: sets when the next data may follow.
    #[inline]
    pub fn paced(&mut self, common: &Common, bytes: u32, now: Instant) {
        if !common.is_paced() {
            return;
        }
        let segment = self.segment_bytes();
        let Some(buffers) = &mut self.buffers else { return };
        buffers.pacer.limit(common.config().max_pacing_rate_bytes_per_second.unwrap_or(u64::MAX));
        if buffers.pacer.rate_bytes_per_s() == u64::MAX {
            return;
        }
        buffers.pacer.sent(bytes, segment, now);
        if let Some(at) = buffers.pacer.holds_until(segment, now) {
            buffers.pace_at.set(at);
            self.flags.insert(SenderFlags::PACED);
        }
    }
    /// After a time-out's worth of idleness the window says nothing about the path (RFC 5681 §4.1).
    // spec: RFC5681 4.1-1
    #[inline]
    pub fn restart_after_idle(&mut self, common: &Common, now: Instant) {
        if self.space.has_outstanding()
            || self.space.window() == 0
            || common.opens()
            || self.queued_bytes() == 0
        {
            return;
        }
        let idle = now.since(self.sent_at);
        self.congestion.resumed(idle, now);
        let timeout = common.base_timeout();
        if common.config().restart_after_idle && idle > timeout {
            self.congestion.restart(common.config().initial_window_segments, idle, timeout);
        }
    }
}
