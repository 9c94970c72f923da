//! Timers that are due (RFC 9293 §3.8): retransmission, keep-alive, loss recovery, TIME-WAIT, and the wait for an orphan's peer.
//!
//! A peer may keep its window closed for as long as its application likes (RFC 9293 §3.8.6.1). Once the application has
//! closed the socket, only the peer would decide how long memory is kept for it: RFC 6429 §4 lets the host end that.

use crate::common::slept_since;
use crate::connection::timers::SHRINK_AFTER;
use crate::flags::SenderFlags;
use crate::outcome::Outcome;
use crate::{Connection, ConnectionError, Environment};
use inhost_base::{Duration, Instant};

/// A probe counts as unanswered after this number of maximum timeouts.
const SILENT_AFTER_TIMEOUTS: u64 = 2;

/// The remaining data must shrink by this fraction, or by a segment, in each period, so that large and small remainders
/// end alike.
const PART: u64 = 32;

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
        let probes = self.sender.buffers.as_ref().is_some_and(|buffers| buffers.tail_probe.at <= now);
        if self.sender.timer.at <= now && !probes {
            let end = self.sender.fire_retransmission(&mut self.common, &mut outcome.changes, env);
            if let Some(error) = end {
                self.finish(Some(error), env, outcome);
            }
        }
        self.sender.fire_recovery(&self.common, env);
        if self.sender.timer.at <= now {
            // RFC 8985 §7.3: after a probe the RTO restarts.
            self.sender.timer.arm(&self.common, now);
        }
        if let Some(buffers) = &mut self.sender.buffers
            && buffers.aggregate_until <= now
        {
            // spec: RFC9293 MUST-60 (what was not pushed does not wait for ever)
            buffers.aggregate_until = Instant::FAR_FUTURE;
            self.sender.flags.remove(SenderFlags::BLOCKED);
            self.sender.space.push_to(self.sender.stream_end());
            if self.sender.flags.contains(SenderFlags::CORKED) {
                self.sender.flags.insert(SenderFlags::OVERRIDE_SWS);
            }
        }
        if self.has_buffers() && self.holds_nothing() && self.last_segment_at() + SHRINK_AFTER <= now {
            self.clear(env.pool);
        }
    }
    fn fire_keep_alive(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        let Some(keep_alive) = self.common.config.keep_alive else { return };
        let slept = slept_since(self.keep_alive_at(), env.now);
        if slept > Duration::ZERO {
            self.receiver.slept_until(self.last_segment_at() + slept);
        }
        // spec: RFC9293 MUST-29 (one answer that is missing proves nothing)
        if self.sender.keep_alive_probes >= keep_alive.probes {
            let error = self.common.timed_out(ConnectionError::KeepAliveTimedOut);
            return self.finish(Some(error), env, outcome);
        }
        self.sender.keep_alive_probes += 1;
        self.sender.flags.insert(SenderFlags::KEEP_ALIVE);
    }
    /// The orphan timer expired. A peer that answers but has accepted too little of the remaining data gets a reset. The user
    /// timeout covers a peer that does not answer.
    fn judge_orphan(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        let now = env.now;
        let from_bytes = self.sender.buffers.as_ref().map_or(0, |buffers| buffers.orphan_from_bytes);
        let taken_bytes = self.sender.acknowledged_bytes() - from_bytes;
        let part_bytes = (u64::from(self.sender.queued_bytes()) + taken_bytes) / PART;
        let takes = taken_bytes >= part_bytes.max(u64::from(self.sender.segment_bytes()));
        let silent_after = self.common.config.max_retransmission_timeout.times(SILENT_AFTER_TIMEOUTS);
        let is_silent = now.since(self.receiver.received_at()) > silent_after;
        let slept = slept_since(self.common.linger_at, now) > Duration::ZERO;
        if takes || is_silent || slept {
            return self.sender.orphaned(&mut self.common, now);
        }
        outcome.reset = Some(self.active_reset(now));
        self.finish(Some(ConnectionError::TimedOut), env, outcome);
    }
}
