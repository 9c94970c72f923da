//! What the link refuses, where that is a loss within the host: what Linux calls local congestion
//! ([`Config::refusal_retry`](crate::Config::refusal_retry)).

use super::Sender;
use crate::RecoveryState;
use crate::common::Common;
use crate::sender::recovery::Heard;
use inhost_base::Instant;

impl Sender {
    pub fn retry_at(&mut self, common: &Common, at: Instant) {
        self.retransmit_at = at.min(self.progress_at + common.config.user_timeout);
    }
    /// Too much for the host itself is congestion, once for each window.
    pub fn reduce_by_refusal(&mut self, common: &Common, now: Instant) {
        if matches!(self.recovery.state, RecoveryState::Open | RecoveryState::Disorder) {
            let heard = Heard::nothing(self);
            self.begin_window_reduction(common, &heard, now);
        }
    }
}
