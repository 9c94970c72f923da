//! What happens when time passes: one deadline, the least of a handful.

use crate::flags::{ConnectionFlags, ReceiverFlags, SenderFlags};
use crate::outcome::{Changes, Outcome};
use crate::state::Allows;
use crate::{Connection, ConnectionError, Environment, RecoveryState, SoftError};
use inhost_base::{Duration, Instant};
use inhost_event::TcpState;

/// The queues' box is freed after so long without data and without a segment.
pub(crate) const TIDY_AFTER: Duration = Duration::from_secs(1);
/// A timer that is served later than this was not late: the clock jumped, because the host slept. In that time nobody
/// could be tried or heard, so that it does not count as waiting.
const CLOCK_JUMP: Duration = Duration::from_secs(5);
/// The longest that an acknowledgment may wait (RFC 9293 §3.8.6.3).
// spec: RFC9293 MUST-40; RFC5681 4.2-2
const MOST_ACKNOWLEDGMENT_DELAY: Duration = Duration::from_millis(500);

impl Connection {
    #[inline(always)]
    pub(crate) fn next_deadline(&self) -> Instant {
        self.sender
            .retransmit_at
            .min(self.receiver.acknowledge_at)
            .min(self.linger_at)
            .min(self.keep_alive_at())
            .min(self.buffers_deadline())
    }
    #[inline(always)]
    fn buffers_deadline(&self) -> Instant {
        match (&self.sender.buffers, &self.receiver.buffers) {
            (Some(buffers), _) if !buffers.are_empty() => buffers.deadline(),
            (sending, Some(buffers)) if !buffers.are_empty() => {
                sending.as_ref().map_or(Instant::FAR_FUTURE, |buffers| buffers.deadline())
            }
            (None, None) => Instant::FAR_FUTURE,
            _ => self.receiver.received_at.max(self.sender.sent_at) + TIDY_AFTER,
        }
    }
    /// When the next keep-alive probe is due.
    // spec: RFC9293 MUST-24 (the application can ask for it)
    // spec: RFC9293 MUST-26 (only an idle connection is probed)
    #[inline]
    fn keep_alive_at(&self) -> Instant {
        let Some(keep_alive) = &self.common.config.keep_alive else { return Instant::FAR_FUTURE };
        let idle =
            matches!(self.common.state, TcpState::Established | TcpState::CloseWait | TcpState::FinWait2)
                && !self.sender.has_outstanding()
                && self.sender.retransmit_at == Instant::FAR_FUTURE
                && !self.sender.flags.has(SenderFlags::KEEP_ALIVE);
        if !idle {
            return Instant::FAR_FUTURE;
        }
        let probes = keep_alive.interval.times(u64::from(self.sender.keep_alive_probes));
        self.receiver.received_at.max(self.sender.sent_at) + keep_alive.idle + probes
    }
    pub(crate) fn stop_timers(&mut self) {
        self.sender.retransmit_at = Instant::FAR_FUTURE;
        self.receiver.acknowledge_at = Instant::FAR_FUTURE;
        self.linger_at = Instant::FAR_FUTURE;
    }
    /// Data came: its acknowledgment is due now, or waits a little for company (MIT §3.3, RFC 9293 §3.8.6.3).
    // spec: RFC9293 MUST-58 (acknowledgments are aggregated: this only takes note; `transmit` sends one)
    // spec: RFC9293 MUST-59 (after all segments of the round are processed), SHLD-18, SHLD-19; RFC5681 4.2-1, 4.2-3
    #[inline]
    pub(crate) fn schedule_acknowledgment(&mut self, now: Instant) {
        self.receiver.flags.set(ReceiverFlags::SCHEDULED);
        if self.common.acks_adapt() {
            return self.receiver.schedule_adaptive(&self.common, &self.sender.round_trip, now);
        }
        let waiting = self.receiver.space.next.since(self.receiver.space.acknowledged);
        let delay = self.common.config.acknowledgment_delay.min(MOST_ACKNOWLEDGMENT_DELAY);
        if waiting >= 2 * u32::from(self.receiver.receive_mss)
            || delay == Duration::ZERO
            || self.receiver.ack_timing.is_quick()
        {
            self.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
        } else if self.receiver.acknowledge_at == Instant::FAR_FUTURE {
            self.receiver.acknowledge_at = now + delay;
        }
    }

    pub(crate) fn fire(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        let now = env.now;
        if self.linger_at <= now && self.common.state.has_fin_outstanding() {
            self.judge_orphan(env, outcome);
        } else if self.linger_at <= now {
            // spec: RFC9293 MUST-13 (TIME-WAIT has lasted twice the segment lifetime)
            self.finish(None, env, outcome);
            if self.holds_nothing() {
                // Its time may have come at the same moment, and there is no other.
                self.clear(env.pool);
            }
            return;
        }
        if self.receiver.acknowledge_at <= now {
            self.receiver.acknowledge_at = Instant::FAR_FUTURE;
            self.receiver.waited_in_vain(&self.common, &self.sender.round_trip);
            self.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
        }
        if self.keep_alive_at() <= now {
            self.fire_keep_alive(env, outcome);
        }
        let probes = self.sender.buffers.as_ref().is_some_and(|buffers| buffers.tail_probe.at <= now);
        if self.sender.retransmit_at <= now && !probes {
            self.fire_retransmission(env, outcome);
        }
        self.fire_recovery(env);
        if self.sender.retransmit_at <= now {
            // RFC 8985 §7.3: with a probe the time-out begins anew.
            self.sender.arm_retransmission(&self.common, now);
        }
        if let Some(buffers) = &mut self.sender.buffers
            && buffers.aggregate_until <= now
        {
            // spec: RFC9293 MUST-60 (what was not pushed does not wait for ever)
            buffers.aggregate_until = Instant::FAR_FUTURE;
            self.sender.flags.clear(SenderFlags::HELD_UP);
            self.sender.space.push = self.sender.stream_end();
            if self.common.config.policy.cork_lasts_rto {
                self.sender.override_small(&self.common);
            } else if self.sender.flags.has(SenderFlags::CORKED) {
                self.sender.flags.set(SenderFlags::OVERRIDE);
            }
        }
        if self.has_buffers()
            && self.holds_nothing()
            && self.receiver.received_at.max(self.sender.sent_at) + TIDY_AFTER <= now
        {
            self.clear(env.pool);
        }
    }
    /// The timers of what is in flight that are not the last resort.
    fn fire_recovery(&mut self, env: &mut Environment<'_>) {
        let Some(buffers) = &self.sender.buffers else { return };
        let (reorder_at, probe_at, pace_at) = (buffers.reorder_at, buffers.tail_probe.at, buffers.pace_at);
        if pace_at <= env.now {
            self.sender.fire_pace();
        }
        if reorder_at <= env.now {
            self.sender.flags.clear(SenderFlags::HELD_UP);
            self.sender.fire_reordering(&self.common, env);
        }
        if probe_at > env.now {
            return;
        }
        if matches!(self.sender.recovery.state, RecoveryState::Open | RecoveryState::WindowReduction) {
            self.sender.flags.clear(SenderFlags::HELD_UP);
            self.sender.fire_tail_probe(&self.common, self.receiver.sack_bytes(&self.common));
            if !self.sender.flags.has(SenderFlags::TAIL_PROBE) {
                // RFC 8985 §7.3: without a probe, too, the time-out begins anew.
                self.sender.skip_tail_probe(&self.common, env.now);
            }
        } else if let Some(buffers) = &mut self.sender.buffers {
            // What is lost is known now, without a probe.
            buffers.tail_probe.at = Instant::FAR_FUTURE;
        }
    }
    fn fire_keep_alive(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        let Some(keep_alive) = self.common.config.keep_alive else { return };
        let slept = slept_since(self.keep_alive_at(), env.now);
        if slept > Duration::ZERO {
            self.receiver.received_at = self.receiver.received_at.max(self.sender.sent_at) + slept;
        }
        // spec: RFC9293 MUST-29 (one answer that is missing proves nothing)
        if self.sender.keep_alive_probes >= keep_alive.probes {
            return self.time_out(ConnectionError::KeepAliveTimedOut, env, outcome);
        }
        self.sender.keep_alive_probes += 1;
        self.sender.flags.set(SenderFlags::KEEP_ALIVE);
    }
    /// The end by a timer: `timed_out`, or in Linux's way what the network said before.
    pub(crate) fn time_out(
        &mut self,
        timed_out: ConnectionError,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        let said = self.soft_error.filter(|_| self.common.config.policy.soft_errors_name_timeouts);
        let error = match said {
            Some(SoftError::Unreachable | SoftError::Prohibited | SoftError::TimeExceeded) => {
                ConnectionError::Unreachable
            }
            Some(SoftError::Refused) => ConnectionError::Refused,
            Some(SoftError::ParameterProblem) => ConnectionError::ParameterProblem,
            Some(SoftError::NotResponding) | None => timed_out,
        };
        self.finish(Some(error), env, outcome);
    }
    // spec: RFC6298 5-3; RFC9293 SHLD-9, SHLD-29, SHLD-30, SHLD-17
    fn fire_retransmission(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        let now = env.now;
        self.sender.progress_at += slept_since(self.sender.retransmit_at, now);
        let refused = self.sender.flags.has(SenderFlags::REFUSED);
        self.sender.flags.clear(SenderFlags::HELD_UP);
        if refused && !self.sender.has_outstanding() {
            return self.fire_refusal(env, outcome);
        }
        if self.common.config.policy.user_timeout_from_retransmission
            && self.sender.round_trip.backoff == 0
            && !self.common.state.opens()
        {
            self.sender.progress_at = now;
        }
        // spec: RFC9293 MUST-20 (R2 ends the connection)
        // spec: RFC9293 MUST-37 (not a window that stays closed while the peer answers: that is progress)
        if now.since(self.sender.progress_at) >= self.common.user_timeout()
            || self.sender.syn_is_given_up(&self.common)
        {
            return self.time_out(ConnectionError::TimedOut, env, outcome);
        }
        if !refused {
            self.sender.round_trip.back_off();
        }
        self.sender.least_echo = self.common.timestamp(now);
        if self.common.state.opens() {
            self.common.flags.set(ConnectionFlags::SYNCHRONISE);
        } else if self.sender.space.window == 0
            && !(self.common.config.policy.window_probes_are_empty && self.sender.has_outstanding())
            && (self.sender.has_outstanding()
                || self.sender.queued_bytes() > 0
                || self.common.state.has_fin_outstanding())
        {
            // spec: RFC9293 MUST-35 (by the one mechanism)
            self.sender.flags.set(SenderFlags::PROBE);
            let is_urgent = self.sender.space.next.precedes(self.sender.space.urgent);
            if self.common.config.policy.window_probes_are_empty
                && self.common.config.policy.urgent_goes_with_data
                && is_urgent
            {
                self.sender.flags.set(SenderFlags::ANNOUNCE_URGENT);
            }
        } else if self.sender.has_outstanding() {
            self.sender.recover_by_timer(&self.common, now);
        } else {
            self.sender.override_small(&self.common);
        }
        // spec: RFC9293 MUST-20 (R1 advises routing)
        let probing = self.sender.space.window == 0 && !self.common.state.opens();
        if self.sender.round_trip.backoff == self.common.config.suspect_after_retransmissions && !probing {
            // What the network said tells more.
            self.soft_error = self.soft_error.or(Some(SoftError::NotResponding));
            outcome.changes |= Changes::SUSPECT | Changes::ERROR;
        }
        self.sender.arm_retransmission(&self.common, now);
        self.sender.bound_by_user_timeout(&self.common, now);
    }
}

/// How long the host slept, when a timer that was due at `due` is served `now`.
pub(crate) fn slept_since(due: Instant, now: Instant) -> Duration {
    let late = now.since(due);
    if late > CLOCK_JUMP { late } else { Duration::ZERO }
}
