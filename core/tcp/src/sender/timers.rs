//! The retransmission timer, the persist timer, and how long the peer may be silent (RFC 6298, RFC 9293 §3.8).

use super::Sender;
use crate::common::Common;
use crate::flags::SenderFlags;
use crate::offset::Offset;
use crate::state::Allows;
use inhost_base::Instant;

impl Sender {
    /// Starts the time for which unpushed bytes are held back, unless it runs.
    // spec: RFC9293 SHLD-27
    pub fn aggregate(&mut self, common: &Common, now: Instant) {
        let delay = match common.config.policy.cork_lasts_rto {
            true => self.timer.round_trip.base_timeout(&common.config),
            false => common.config.aggregation_delay,
        };
        let until = now + delay;
        let buffers = self.buffers_mut();
        buffers.aggregate_until = buffers.aggregate_until.min(until);
    }
    /// A segment of the peer's shows that it is there.
    #[inline]
    pub fn peer_answers(&mut self) {
        self.keep_alive_probes = 0;
        self.flags.clear(SenderFlags::CLEARED_ON_ARRIVAL);
    }
    /// The path is broken and not congested: the time-out need not have been doubled (RFC 6069).
    pub fn revert_back_off(&mut self, common: &Common, at: Offset, now: Instant) {
        let oldest = self.buffers.as_ref().and_then(|buffers| buffers.flight.first());
        let Some(oldest) = oldest.filter(|oldest| oldest.start == at && !common.state.opens()) else {
            return;
        };
        if self.timer.round_trip.backoff > 0 && at == self.space.unacknowledged() {
            self.timer.round_trip.backoff -= 1;
            self.timer.at = (oldest.sent_at + self.timer.round_trip.timeout(&common.config)).max(now);
        }
    }
}
