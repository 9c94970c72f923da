//! The retransmission timer, the persist timer, and how long the peer may be silent (RFC 6298, RFC 9293 §3.8).

use super::Sender;
use crate::common::Common;
use crate::flags::SenderFlags;
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
}
