//! Timers that are due (RFC 9293 §3.8): retransmission, keep-alive, loss recovery, TIME-WAIT, and the wait for an orphan's peer.
//!
//! A peer may keep its window closed for as long as its application likes (RFC 9293 §3.8.6.1). Once the application has
//! closed the socket, only the peer would decide how long memory is kept for it: RFC 6429 §4 lets the host end that.

use crate::connection::timers::SHRINK_AFTER;
use crate::flags::{ConnectionFlags, ReceiverFlags, SenderFlags};
use crate::outcome::{Changes, Outcome};
use crate::state::Allows;
use crate::{Connection, ConnectionError, Environment, RecoveryState, SoftError};
use inhost_base::{Duration, Instant};

/// A timer that is served later than this was not late: the clock jumped, because the host slept. In that time no segment
/// could be sent or received, so that it does not count as waiting.
const CLOCK_JUMP: Duration = Duration::from_secs(5);

/// A probe counts as unanswered after this number of maximum timeouts.
const SILENT_AFTER_TIMEOUTS: u64 = 2;

/// The remaining data must shrink by this fraction, or by a segment, in each period, so that large and small remainders
/// end alike.
const PART: u64 = 32;

/// The processing of timers that are due.
pub(super) struct Expiry<'a, 'e> {
    pub tcb: &'a mut Connection,
    pub env: &'a mut Environment<'e>,
    pub outcome: &'a mut Outcome,
}

impl Expiry<'_, '_> {
    /// Serves the timers that are due.
    pub fn fire(&mut self) {
        let now = self.env.now;
        if self.tcb.linger_at <= now && self.tcb.common.state.has_fin_outstanding() {
            self.judge_orphan();
        } else if self.tcb.linger_at <= now {
            // spec: RFC9293 MUST-13 (TIME-WAIT has lasted twice the segment lifetime)
            self.tcb.finish(None, self.env, self.outcome);
            if self.tcb.holds_nothing() {
                // The time to free the queues may have come in the same tick; no other timer covers this case.
                self.tcb.clear(self.env.pool);
            }
            return;
        }
        if self.tcb.receiver.acknowledge_at <= now {
            self.tcb.receiver.acknowledge_at = Instant::FAR_FUTURE;
            self.tcb.receiver.delayed_ack_expired(&self.tcb.common, &self.tcb.sender.timer.round_trip);
            self.tcb.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
        }
        if self.tcb.keep_alive_at() <= now {
            self.fire_keep_alive();
        }
        let probes = self.tcb.sender.buffers.as_ref().is_some_and(|buffers| buffers.tail_probe.at <= now);
        if self.tcb.sender.timer.at <= now && !probes {
            self.fire_retransmission();
        }
        self.fire_recovery();
        if self.tcb.sender.timer.at <= now {
            // RFC 8985 §7.3: after a probe the RTO restarts.
            self.tcb.sender.timer.arm(&self.tcb.common, now);
        }
        if let Some(buffers) = &mut self.tcb.sender.buffers
            && buffers.aggregate_until <= now
        {
            // spec: RFC9293 MUST-60 (what was not pushed does not wait for ever)
            buffers.aggregate_until = Instant::FAR_FUTURE;
            self.tcb.sender.flags.clear(SenderFlags::BLOCKED);
            self.tcb.sender.space.push_to(self.tcb.sender.stream_end());
            if self.tcb.common.config.policy.cork_lasts_rto {
                self.override_small();
            } else if self.tcb.sender.flags.has(SenderFlags::CORKED) {
                self.tcb.sender.flags.set(SenderFlags::OVERRIDE_SWS);
            }
        }
        if self.tcb.has_buffers()
            && self.tcb.holds_nothing()
            && self.tcb.receiver.received_at.max(self.tcb.sender.sent_at) + SHRINK_AFTER <= now
        {
            self.tcb.clear(self.env.pool);
        }
    }
    /// The timers of loss recovery and pacing, besides the retransmission timer.
    fn fire_recovery(&mut self) {
        let Some(buffers) = &self.tcb.sender.buffers else { return };
        let (reorder_at, probe_at, pace_at) = (buffers.reorder_at, buffers.tail_probe.at, buffers.pace_at);
        if pace_at <= self.env.now {
            if let Some(buffers) = &mut self.tcb.sender.buffers {
                buffers.pace_at = Instant::FAR_FUTURE;
            }
            self.tcb.sender.flags.clear(SenderFlags::PACED);
        }
        if reorder_at <= self.env.now {
            self.tcb.sender.flags.clear(SenderFlags::BLOCKED);
            self.tcb.sender.loss_recovery(&self.tcb.common, self.env).fire_reordering();
        }
        if probe_at > self.env.now {
            return;
        }
        if matches!(self.tcb.sender.recovery.state, RecoveryState::Open | RecoveryState::WindowReduction) {
            self.tcb.sender.flags.clear(SenderFlags::BLOCKED);
            self.fire_tail_probe();
        } else if let Some(buffers) = &mut self.tcb.sender.buffers {
            // A recovery has begun: its losses are known without a probe.
            buffers.tail_probe.at = Instant::FAR_FUTURE;
        }
    }
    /// A tail loss probe is due: the next segment is one, unless none may be sent (RFC 8985 §7.3).
    fn fire_tail_probe(&mut self) {
        let sack_bytes = self.tcb.receiver.sack_bytes(&self.tcb.common);
        let (common, sender, now) = (&self.tcb.common, &mut self.tcb.sender, self.env.now);
        let whole = common.config.policy.tail_probes_are_full_segments;
        let may_leave = sender.buffers.as_mut().is_none_or(|buffers| {
            buffers.tail_probe.at = Instant::FAR_FUTURE;
            buffers.tail_probe.may_leave()
        });
        let planner = sender.planner(common, sack_bytes);
        if may_leave && !(whole && planner.tail_probe(sender.stream_end()).is_none()) {
            sender.flags.set(SenderFlags::TAIL_PROBE);
        }
        if sender.flags.has(SenderFlags::TAIL_PROBE) {
            return;
        }
        // Without a probe, too, the RTO restarts, or counts from the transmission of the oldest segment.
        // spec: RFC8985 7.3-1
        sender.timer.arm(common, now);
        if let Some(at) = sender.timeout_of_oldest(common).filter(|_| whole) {
            let soonest = now + common.config.recovery_timer_slack;
            sender.timer.at = sender.timer.at.min(at.max(soonest));
        }
    }
    /// The persist timer overrides silly-window avoidance.
    fn override_small(&mut self) {
        self.tcb.sender.flags.set(SenderFlags::OVERRIDE_SWS);
        if let Some(buffers) = &mut self.tcb.sender.buffers {
            buffers.tail_probe.persists = self.tcb.common.config.policy.tail_probes_are_full_segments;
        }
    }
    fn fire_keep_alive(&mut self) {
        let Some(keep_alive) = self.tcb.common.config.keep_alive else { return };
        let slept = slept_since(self.tcb.keep_alive_at(), self.env.now);
        if slept > Duration::ZERO {
            self.tcb.receiver.received_at =
                self.tcb.receiver.received_at.max(self.tcb.sender.sent_at) + slept;
        }
        // spec: RFC9293 MUST-29 (one answer that is missing proves nothing)
        if self.tcb.sender.keep_alive_probes >= keep_alive.probes {
            return self.time_out(ConnectionError::KeepAliveTimedOut);
        }
        self.tcb.sender.keep_alive_probes += 1;
        self.tcb.sender.flags.set(SenderFlags::KEEP_ALIVE);
    }
    /// Ends the connection with `timed_out`, or with the ICMP error before it where the policy says so.
    fn time_out(&mut self, timed_out: ConnectionError) {
        let said = self.tcb.soft_error.filter(|_| self.tcb.common.config.policy.soft_errors_name_timeouts);
        let error = match said {
            Some(SoftError::Unreachable | SoftError::Prohibited | SoftError::TimeExceeded) => {
                ConnectionError::Unreachable
            }
            Some(SoftError::NetworkUnreachable) => ConnectionError::NetworkUnreachable,
            Some(SoftError::ProtocolUnreachable) => ConnectionError::ProtocolUnreachable,
            Some(SoftError::Refused) => ConnectionError::Refused,
            Some(SoftError::ParameterProblem) => ConnectionError::ParameterProblem,
            Some(SoftError::NotResponding) | None => timed_out,
        };
        self.tcb.finish(Some(error), self.env, self.outcome);
    }
    // spec: RFC6298 5-3; RFC9293 SHLD-9, SHLD-29, SHLD-30, SHLD-17
    fn fire_retransmission(&mut self) {
        let now = self.env.now;
        self.tcb.sender.timer.progress_at += slept_since(self.tcb.sender.timer.at, now);
        let refused = self.tcb.sender.flags.has(SenderFlags::LINK_REFUSED);
        self.tcb.sender.flags.clear(SenderFlags::BLOCKED);
        if refused && !self.tcb.sender.space.has_outstanding() {
            return self.fire_refusal();
        }
        if self.tcb.common.config.policy.user_timeout_from_retransmission
            && self.tcb.sender.timer.round_trip.backoff == 0
            && !self.tcb.common.state.opens()
        {
            self.tcb.sender.timer.progress_at = now;
        }
        // spec: RFC9293 MUST-20 (R2 ends the connection)
        // spec: RFC9293 MUST-37 (not a window that stays closed while the peer answers: that is progress)
        if now.since(self.tcb.sender.timer.progress_at) >= self.tcb.common.user_timeout()
            || self.tcb.handshake().syn_is_given_up()
        {
            return self.time_out(ConnectionError::TimedOut);
        }
        if !refused {
            self.tcb.sender.timer.round_trip.back_off();
        }
        self.tcb.sender.least_echo = self.tcb.common.timestamp(now);
        if self.tcb.common.state.opens() {
            self.tcb.common.flags.set(ConnectionFlags::SYN_DUE);
        } else if self.tcb.sender.space.window == 0
            && !(self.tcb.common.config.policy.window_probes_are_empty
                && self.tcb.sender.space.has_outstanding())
            && (self.tcb.sender.space.has_outstanding()
                || self.tcb.sender.queued_bytes() > 0
                || self.tcb.common.state.has_fin_outstanding())
        {
            // spec: RFC9293 MUST-35 (by the one mechanism)
            self.tcb.sender.flags.set(SenderFlags::WINDOW_PROBE);
            let is_urgent = self.tcb.sender.space.next() < self.tcb.sender.space.urgent();
            if self.tcb.common.config.policy.window_probes_are_empty
                && self.tcb.common.config.policy.urgent_goes_with_data
                && is_urgent
            {
                self.tcb.sender.flags.set(SenderFlags::ANNOUNCE_URGENT);
            }
        } else if self.tcb.sender.space.has_outstanding() {
            self.tcb.sender.loss_recovery(&self.tcb.common, self.env).recover_by_timer();
        } else {
            self.override_small();
        }
        // spec: RFC9293 MUST-20 (R1 advises routing)
        let probing = self.tcb.sender.space.window == 0 && !self.tcb.common.state.opens();
        if self.tcb.sender.timer.round_trip.backoff == self.tcb.common.config.suspect_after_retransmissions
            && !probing
        {
            // An ICMP error is more specific.
            self.tcb.soft_error = self.tcb.soft_error.or(Some(SoftError::NotResponding));
            self.outcome.changes |= Changes::SUSPECT | Changes::ERROR;
        }
        self.tcb.sender.timer.arm(&self.tcb.common, now);
        self.tcb.sender.timer.bound_by_user_timeout(&self.tcb.common, now);
    }
    /// Retries data that the link refused, with nothing in flight.
    fn fire_refusal(&mut self) {
        if self.env.now.since(self.tcb.sender.timer.progress_at) >= self.tcb.common.config.user_timeout {
            return self.time_out(ConnectionError::TimedOut);
        }
        self.tcb.sender.keep_alive_probes = self.tcb.sender.keep_alive_probes.saturating_add(1);
        self.tcb.sender.timer.stop();
        self.tcb.sender.flags.set(SenderFlags::OVERRIDE_SWS);
    }
    /// The orphan timer expired. A peer that answers but has accepted too little of the remaining data gets a reset. The user
    /// timeout covers a peer that does not answer.
    fn judge_orphan(&mut self) {
        let now = self.env.now;
        let from_bytes = self.tcb.sender.buffers.as_ref().map_or(0, |buffers| buffers.orphan_from_bytes);
        let taken_bytes = self.tcb.sender.acknowledged_bytes() - from_bytes;
        let part_bytes = (u64::from(self.tcb.sender.queued_bytes()) + taken_bytes) / PART;
        let takes = taken_bytes >= part_bytes.max(u64::from(self.tcb.sender.segment_bytes()));
        let silent_after = self.tcb.common.config.max_retransmission_timeout.times(SILENT_AFTER_TIMEOUTS);
        let is_silent = now.since(self.tcb.receiver.received_at) > silent_after;
        let slept = slept_since(self.tcb.linger_at, now) > Duration::ZERO;
        if takes || is_silent || slept {
            return self.tcb.orphaned(now);
        }
        self.outcome.reset = Some(self.tcb.outgoing().active_reset(now));
        self.tcb.finish(Some(ConnectionError::TimedOut), self.env, self.outcome);
    }
}

/// How long the host slept, when a timer that was due at `due` is served `now`.
fn slept_since(due: Instant, now: Instant) -> Duration {
    let late = now.since(due);
    if late > CLOCK_JUMP { late } else { Duration::ZERO }
}
