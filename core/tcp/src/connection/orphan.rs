//! A connection that the application has let go of, while its last data or its FIN still waits to be taken.
//!
//! A peer may keep its window closed for as long as the application likes (RFC 9293 §3.8.6.1). Once nobody holds the
//! connection, only the peer would decide how long memory is kept for it: RFC 6429 §4 leaves it to the host to end that.

use crate::connection::timers::slept_since;
use crate::outcome::Outcome;
use crate::state::Allows;
use crate::{Connection, ConnectionError, Environment};
use inhost_base::{Duration, Instant};

/// An answer to a probe is missing for certain after so many of the longest time-outs.
const SILENT_AFTER_TIMEOUTS: u64 = 2;

/// What is left has to shrink by one part in so many, or by a segment, each time: so that much ends as surely as little.
const PART: u64 = 32;

impl Connection {
    /// The application has let go. While our FIN is not acknowledged the peer has to take what is left.
    pub(crate) fn orphaned(&mut self, now: Instant) {
        if self.common.state.has_fin_outstanding() {
            self.linger_at = now + self.common.config.orphan_timeout;
            let acknowledged_bytes = self.sender.acknowledged_bytes;
            self.sender.buffers_mut().orphan_from_bytes = acknowledged_bytes;
        }
    }
    /// The time is over in which the peer should have taken its part of what is left. A peer that is there and takes
    /// less gets a reset. One that is not heard is the user time-out's concern.
    pub(crate) fn judge_orphan(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        let now = env.now;
        let from_bytes = self.sender.buffers.as_ref().map_or(0, |buffers| buffers.orphan_from_bytes);
        let taken_bytes = self.sender.acknowledged_bytes - from_bytes;
        let part_bytes = (u64::from(self.sender.queued_bytes()) + taken_bytes) / PART;
        let takes = taken_bytes >= part_bytes.max(u64::from(self.sender.segment_bytes()));
        let silent_after = self.common.config.max_retransmission_timeout.times(SILENT_AFTER_TIMEOUTS);
        let is_silent = now.since(self.receiver.received_at) > silent_after;
        let slept = slept_since(self.linger_at, now) > Duration::ZERO;
        if takes || is_silent || slept {
            return self.orphaned(now);
        }
        outcome.reset = Some(self.last_word(now));
        self.finish(Some(ConnectionError::TimedOut), env, outcome);
    }
}
