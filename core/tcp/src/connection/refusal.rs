//! What the link refuses, where that is a loss within the host: what Linux calls local congestion
//! ([`Config::refusal_retry`](crate::Config::refusal_retry)).

use crate::connection::transmit::EmittedSegment;
use crate::flags::SenderFlags;
use crate::sender::next::Next;
use crate::state::Allows;
use crate::{Connection, Environment, RecoveryState};
use inhost_base::Duration;

impl Connection {
    /// The link refused `next`. What bears no data left and was lost; data never left, and waits for an occasion: a
    /// segment that arrives, a write, or a timer.
    pub(crate) fn refused_by_link(
        &mut self,
        next: Next,
        left: &EmittedSegment,
        lent: u32,
        retry: Duration,
        env: &mut Environment<'_>,
    ) {
        let now = env.now;
        if !self.common.state.opens() {
            self.sender.loss_recovery(&self.common, env).reduce_by_refusal();
        }
        if !matches!(next, Next::Data(_)) {
            self.committed(next, left, lent, env);
            if next == Next::KeepAlive && self.sender.space.window == 0 {
                self.sender.timer.retry_at(&self.common, now + retry);
            }
            return;
        }
        self.receiver.acknowledgment_left(&self.common, next, left.window);
        self.sender.flags.set(SenderFlags::REFUSED);
        self.sender.flags.clear(SenderFlags::TAIL_PROBE);
        if self.sender.space.has_outstanding() {
            if self.sender.recovery.state == RecoveryState::Loss {
                self.sender.timer.retry_at(&self.common, now + retry);
            }
        } else if !self.sender.timer.is_running() && self.sender.keep_alive_probes > 0 {
            self.sender.timer.retry_at(&self.common, now + retry);
        } else if !self.sender.timer.is_running() {
            // The first wait is a time-out's, and the user time-out counts from its end.
            self.sender.timer.progress_at =
                now + self.sender.timer.round_trip.base_timeout(&self.common.config);
            self.sender.timer.at = self.sender.timer.progress_at;
        }
    }
}
