//! The retransmission timer (RFC 6298); while the peer's window holds data back, the persist timer (RFC 9293 §3.8.6.1).

use super::Sender;
use crate::common::Common;
use inhost_base::Instant;
use inhost_event::TcpState;

impl Sender {
    /// Restarts the retransmission timer. It never outlasts the user timeout.
    // spec: RFC6298 5-1
    #[inline]
    pub fn arm_timer(&mut self, common: &Common, now: Instant) {
        // The first of a SYN need not be doubled.
        let linear =
            if common.state() == TcpState::SynSent { common.config().syn_linear_timeouts } else { 0 };
        let doublings = common.round_trip().backoff().saturating_sub(linear);
        self.timer.set(now + common.round_trip().timeout_after(doublings, common.config()));
        let ends_at = self.progress_at + common.user_timeout();
        if ends_at > now {
            self.timer.bring_forward(ends_at);
        }
    }
    /// The next attempt is at `at`, or when the user time-out is over.
    pub fn retry_at(&mut self, common: &Common, at: Instant) {
        self.timer.set(at.min(self.progress_at + common.config().user_timeout));
    }
}
