//! The timers of a connection (RFC 9293 §3.8): the earliest of them, and what those that are due do: retransmission,
//! keep-alive, loss recovery, TIME-WAIT, and the wait for an orphan's peer.

use crate::common::slept_since;
use crate::{Connection, ConnectionError, Environment, Outcome};
use inhost_base::{Deadline, Duration, Instant};
use inhost_event::TcpState;

/// The boxed queues are freed after this time without data and without a segment.
pub(crate) const SHRINK_AFTER: Duration = Duration::from_secs(1);

impl Connection {
    /// When [`Connection::timeout`] is due next; [`Instant::FAR_FUTURE`] for never.
    #[inline(always)]
    pub fn deadline(&self) -> Instant {
        let buffers = match (self.sender.buffers(), self.receiver.buffers()) {
            (Some(buffers), _) if !buffers.are_empty() => buffers.deadline(),
            (sending, Some(buffers)) if !buffers.are_empty() => {
                sending.map(|buffers| buffers.deadline()).unwrap_or_default()
            }
            (None, None) => Deadline::NEVER,
            _ => Deadline::at(self.last_segment_at() + SHRINK_AFTER),
        };
        self.sender
            .timer()
            .min(self.receiver.acknowledge_at())
            .min(self.common.linger_at())
            .min(self.sender.keep_alive_at(&self.common, self.last_segment_at()))
            .min(buffers)
            .instant()
    }
    /// When a segment came or left.
    pub(super) fn last_segment_at(&self) -> Instant {
        self.receiver.received_at().max(self.sender.sent_at())
    }
    /// Lets the timers that are due by `env.now()` fire.
    pub fn timeout(&mut self, env: &mut Environment<'_>) -> Outcome {
        let now = env.now();
        if self.common.linger_at().has_come(now) && self.common.has_fin_outstanding() {
            if !self.sender.may_linger(&mut self.common, self.receiver.received_at(), now) {
                env.reply(Some(self.active_reset(now)));
                self.finish(Some(ConnectionError::TimedOut), env);
            }
        } else if self.common.linger_at().has_come(now) {
            // spec: RFC9293 MUST-13 (TIME-WAIT has lasted twice the segment lifetime)
            self.finish(None, env);
        }
        self.receiver.fire(&self.common, now);
        let last = self.last_segment_at();
        let keep_alive_at = self.sender.keep_alive_at(&self.common, last);
        if keep_alive_at.has_come(now) {
            let slept = slept_since(keep_alive_at.instant(), now);
            if slept > Duration::ZERO {
                self.receiver.silent_from(last + slept);
            }
            if let Some(error) = self.sender.probe_idle_peer(&self.common) {
                self.finish(Some(error), env);
            }
        }
        if let Some(error) = self.sender.fire(&mut self.common, env) {
            self.finish(Some(error), env);
        }
        // The queues of a connection that is over are freed at once: no other timer covers the case.
        let free_at = self.last_segment_at() + SHRINK_AFTER;
        if self.holds_empty_buffers() && (free_at <= now || self.common.state() == TcpState::Closed) {
            self.clear(env.pool());
        }
        self.update(env);
        env.take_outcome()
    }
}
