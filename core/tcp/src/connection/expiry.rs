//! Timers that are due (RFC 9293 §3.8): retransmission, keep-alive, loss recovery, TIME-WAIT, and the wait for an orphan's peer.
//!
//! A peer may keep its window closed for as long as its application likes (RFC 9293 §3.8.6.1). Once the application has
//! closed the socket, only the peer would decide how long memory is kept for it: RFC 6429 §4 lets the host end that.

use crate::common::slept_since;
use crate::connection::timers::SHRINK_AFTER;
use crate::outcome::Outcome;
use crate::{Connection, ConnectionError, Environment};
use inhost_base::Duration;

/// A probe counts as unanswered after this number of maximum timeouts.
const SILENT_AFTER_TIMEOUTS: u64 = 2;

impl Connection {
    /// Serves the timers that are due.
    pub(super) fn fire(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        let now = env.now;
        if self.common.linger_at <= now && self.common.has_fin_outstanding() {
            self.judge_orphan(env, outcome);
        } else if self.common.linger_at <= now {
            // spec: RFC9293 MUST-13 (TIME-WAIT has lasted twice the segment lifetime)
            self.finish(None, env, outcome);
            if self.holds_nothing() {
                // The time to free the queues may have come in the same tick; no other timer covers this case.
                self.clear(env.pool);
            }
            return;
        }
        self.receiver.fire(&self.common, now);
        if self.keep_alive_at() <= now {
            self.fire_keep_alive(env, outcome);
        }
        if let Some(error) = self.sender.fire(&mut self.common, &mut outcome.changes, env) {
            self.finish(Some(error), env, outcome);
        }
        if self.has_buffers() && self.holds_nothing() && self.last_segment_at() + SHRINK_AFTER <= now {
            self.clear(env.pool);
        }
    }
    fn fire_keep_alive(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        let Some(keep_alive) = self.common.config.keep_alive else { return };
        let slept = slept_since(self.keep_alive_at(), env.now);
        if slept > Duration::ZERO {
            self.receiver.silent_from(self.last_segment_at() + slept);
        }
        // spec: RFC9293 MUST-29 (one answer that is missing proves nothing)
        if self.sender.keep_alive_probes() >= keep_alive.probes {
            let error = self.common.timed_out(ConnectionError::KeepAliveTimedOut);
            return self.finish(Some(error), env, outcome);
        }
        self.sender.probe_idle_peer();
    }
    /// The orphan timer expired. A peer that answers but has accepted too little of the remaining data gets a reset. The user
    /// timeout covers a peer that does not answer.
    fn judge_orphan(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        let now = env.now;
        let silent_after = self.common.config.max_retransmission_timeout.times(SILENT_AFTER_TIMEOUTS);
        let is_silent = now.since(self.receiver.received_at()) > silent_after;
        let slept = slept_since(self.common.linger_at, now) > Duration::ZERO;
        if self.sender.is_orphan_served() || is_silent || slept {
            return self.sender.orphaned(&mut self.common, now);
        }
        outcome.reset = Some(self.active_reset(now));
        self.finish(Some(ConnectionError::TimedOut), env, outcome);
    }
}
