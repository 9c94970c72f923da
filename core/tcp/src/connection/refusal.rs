//! What the link refuses, where that is a loss within the host: what Linux calls local congestion
//! ([`Config::refusal_retry`](crate::Config::refusal_retry)).

use crate::RecoveryState;
use crate::connection::transmit::Departure;
use crate::flags::SenderFlags;
use crate::sender::next::Next;
use crate::state::Allows;
use inhost_base::Duration;

impl Departure<'_, '_> {
    /// The link refused `next`. A segment without data counts as sent and lost. Data counts as not sent, and is retried
    /// when a segment arrives, at a write, or by a timer.
    pub(super) fn refused_by_link(mut self, lent: u32, retry: Duration) {
        let (now, next, segment) = (self.env.now, self.next, self.segment);
        if !self.tcb.common.state.opens() {
            self.tcb.sender.loss_recovery(&self.tcb.common, self.env).reduce_by_refusal();
        }
        if !matches!(next, Next::Data(_)) {
            self.committed(lent);
            if next == Next::KeepAlive && self.tcb.sender.space.window == 0 {
                self.tcb.sender.timer.retry_at(&self.tcb.common, now + retry);
            }
            return;
        }
        self.tcb.receiver.acknowledgment_sent(&self.tcb.common, next, segment.window);
        self.tcb.sender.flags.set(SenderFlags::LINK_REFUSED);
        self.tcb.sender.flags.clear(SenderFlags::TAIL_PROBE);
        if self.tcb.sender.space.has_outstanding() {
            if self.tcb.sender.recovery.state == RecoveryState::Loss {
                self.tcb.sender.timer.retry_at(&self.tcb.common, now + retry);
            }
        } else if !self.tcb.sender.timer.is_running() && self.tcb.sender.keep_alive_probes > 0 {
            self.tcb.sender.timer.retry_at(&self.tcb.common, now + retry);
        } else if !self.tcb.sender.timer.is_running() {
            // The first wait is a time-out's, and the user time-out counts from its end.
            self.tcb.sender.timer.progress_at =
                now + self.tcb.sender.timer.round_trip.base_timeout(&self.tcb.common.config);
            self.tcb.sender.timer.at = self.tcb.sender.timer.progress_at;
        }
    }
}
