//! What the network says about our segments (RFC 9293 §3.9.2.2, RFC 5927).

use super::Sender;
use crate::common::Common;
use crate::phase::Allows;
use inhost_base::{Instant, Sequence};

impl Sender {
    /// The path is broken and not congested: the time-out need not have been doubled (RFC 6069).
    pub fn revert_back_off(&mut self, common: &Common, sequence: Sequence, now: Instant) {
        let oldest = self.buffers.as_ref().and_then(|buffers| buffers.flight.first());
        let Some(oldest) = oldest.filter(|oldest| oldest.start == sequence && !common.phase.opens()) else {
            return;
        };
        if self.round_trip.backoff > 0 && sequence == self.space.unacknowledged {
            self.round_trip.backoff -= 1;
            self.retransmit_at = (oldest.sent_at + self.round_trip.timeout(&common.config)).max(now);
        }
    }
}
