//! What happens when time passes: one deadline, the least of a handful.

use crate::marks::Marks;
use crate::outcome::{Changes, Outcome};
use crate::phase::Allows;
use crate::{Connection, ConnectionError, Environment, RecoveryState, SoftError};
use inhost_base::{Duration, Instant};
use inhost_event::TcpPhase;

/// The queues' box is freed after so long without data and without a segment.
pub(crate) const TIDY_AFTER: Duration = Duration::from_secs(1);
/// A timer that is served later than this was not late: the clock jumped, because the host slept. In that time nobody
/// could be tried or heard, so that it does not count against anybody's patience.
const CLOCK_JUMP: Duration = Duration::from_secs(5);
/// The longest that an acknowledgment may wait (RFC 9293 §3.8.6.3).
// spec: RFC9293 MUST-40; RFC5681 4.2-2
const MOST_ACKNOWLEDGMENT_DELAY: Duration = Duration::from_millis(500);

impl Connection {
    #[inline]
    pub(crate) fn next_deadline(&self) -> Instant {
        self.retransmit_at
            .min(self.acknowledge_at)
            .min(self.linger_at)
            .min(self.keep_alive_at())
            .min(self.buffers_deadline())
    }
    #[inline]
    fn buffers_deadline(&self) -> Instant {
        match &self.buffers {
            Some(buffers) if buffers.are_empty() => self.received_at.max(self.sent_at) + TIDY_AFTER,
            Some(buffers) => buffers
                .aggregate_until
                .min(buffers.reorder_at)
                .min(buffers.tail_probe.at)
                .min(buffers.pace_at),
            None => Instant::FAR_FUTURE,
        }
    }
    /// When the next keep-alive probe is due.
    // spec: RFC9293 MUST-24 (the application can ask for it)
    // spec: RFC9293 MUST-26 (only an idle connection is probed)
    #[inline]
    fn keep_alive_at(&self) -> Instant {
        let Some(keep_alive) = &self.config.keep_alive else { return Instant::FAR_FUTURE };
        let idle = matches!(self.phase, TcpPhase::Established | TcpPhase::CloseWait | TcpPhase::FinWait2)
            && !self.has_outstanding()
            && self.retransmit_at == Instant::FAR_FUTURE
            && !self.marks.has(Marks::KEEP_ALIVE);
        if !idle {
            return Instant::FAR_FUTURE;
        }
        let probes = keep_alive.interval.times(u64::from(self.keep_alive_probes));
        self.received_at.max(self.sent_at) + keep_alive.idle + probes
    }
    /// Probes, of the window or of an idle peer, that the peer has not answered.
    pub(crate) fn unanswered_probes(&self) -> u8 {
        let probes_window = self.send.window == 0 && !self.phase.opens();
        if probes_window { self.round_trip.backoff } else { self.keep_alive_probes }
    }
    pub(crate) fn stop_timers(&mut self) {
        self.retransmit_at = Instant::FAR_FUTURE;
        self.acknowledge_at = Instant::FAR_FUTURE;
        self.linger_at = Instant::FAR_FUTURE;
    }
    /// Starts the retransmission timer anew; it never outlasts the user's patience.
    // spec: RFC6298 5-1
    #[inline]
    pub(crate) fn arm_retransmission(&mut self, now: Instant) {
        self.retransmit_at = now + self.patience_of_one();
        if self.phase.opens() || !self.config.policy.user_timeout_from_retransmission {
            self.bound_by_patience(now);
        }
    }
    /// The timer does not outlast the user's patience.
    #[inline]
    fn bound_by_patience(&mut self, now: Instant) {
        let patience = self.progress_at + self.patience();
        if patience > now {
            self.retransmit_at = self.retransmit_at.min(patience);
        }
    }
    /// The time-out as it stands. The first of a SYN need not be doubled.
    #[inline]
    fn patience_of_one(&self) -> Duration {
        let linear = if self.phase == TcpPhase::SynSent { self.config.syn_linear_timeouts } else { 0 };
        self.round_trip.timeout_after(self.round_trip.backoff.saturating_sub(linear), &self.config)
    }
    /// Whether a SYN was sent as often as it may be.
    fn syn_is_given_up(&self) -> bool {
        let most = match self.phase {
            TcpPhase::SynSent => self.config.syn_retries.saturating_add(self.config.syn_linear_timeouts),
            TcpPhase::SynReceived => self.config.syn_answer_retries,
            _ => return false,
        };
        self.round_trip.backoff >= most
    }
    /// R2, as time (RFC 9293 §3.8.3).
    // spec: RFC9293 MUST-21 (the application sets it)
    // spec: RFC9293 MUST-22 (SYNs are treated alike), SHLD-11
    fn patience(&self) -> Duration {
        let user = self.config.user_timeout;
        if self.phase.opens() { self.config.connect_timeout.min(user) } else { user }
    }
    /// Data came: its acknowledgment is due now, or waits a little for company (MIT §3.3, RFC 9293 §3.8.6.3).
    // spec: RFC9293 MUST-58 (acknowledgments are aggregated: this only takes note; `transmit` sends one)
    // spec: RFC9293 MUST-59 (after all segments of the round are processed), SHLD-18, SHLD-19; RFC5681 4.2-1, 4.2-3
    #[inline]
    pub(crate) fn schedule_acknowledgment(&mut self, now: Instant) {
        self.marks.set(Marks::SCHEDULED);
        if self.acks_adapt() {
            return self.schedule_adaptive(now);
        }
        let waiting = self.receive.next.since(self.receive.acknowledged);
        let delay = self.config.acknowledgment_delay.min(MOST_ACKNOWLEDGMENT_DELAY);
        if waiting >= 2 * u32::from(self.receive_mss) || delay == Duration::ZERO || self.promptness.is_quick()
        {
            self.marks.set(Marks::ACKNOWLEDGE);
        } else if self.acknowledge_at == Instant::FAR_FUTURE {
            self.acknowledge_at = now + delay;
        }
    }

    pub(crate) fn fire(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        let now = env.now;
        if self.linger_at <= now && self.phase.has_fin_outstanding() {
            self.judge_orphan(env, outcome);
        } else if self.linger_at <= now {
            // spec: RFC9293 MUST-13 (TIME-WAIT has lasted twice the segment lifetime)
            self.finish(None, env, outcome);
            if self.buffers.as_ref().is_some_and(|buffers| buffers.are_empty()) {
                // Its time may have come at the same moment, and there is no other.
                self.clear(env.pool);
            }
            return;
        }
        if self.acknowledge_at <= now {
            self.acknowledge_at = Instant::FAR_FUTURE;
            self.waited_in_vain();
            self.marks.set(Marks::ACKNOWLEDGE);
        }
        if self.keep_alive_at() <= now {
            self.fire_keep_alive(env, outcome);
        }
        let probes = self.buffers.as_ref().is_some_and(|buffers| buffers.tail_probe.at <= now);
        if self.retransmit_at <= now && !probes {
            self.fire_retransmission(env, outcome);
        }
        self.fire_recovery(env);
        if self.retransmit_at <= now {
            // RFC 8985 §7.3: with a probe the time-out begins anew.
            self.arm_retransmission(now);
        }
        if let Some(buffers) = &mut self.buffers
            && buffers.aggregate_until <= now
        {
            // spec: RFC9293 MUST-60 (what was not pushed does not wait for ever)
            buffers.aggregate_until = Instant::FAR_FUTURE;
            self.marks.clear(Marks::HELD_UP);
            self.send.push = self.stream_end();
            if self.config.policy.cork_lasts_rto {
                self.override_small();
            } else if self.marks.has(Marks::CORKED) {
                self.marks.set(Marks::OVERRIDE);
            }
        }
        if let Some(buffers) = &self.buffers
            && buffers.are_empty()
            && self.received_at.max(self.sent_at) + TIDY_AFTER <= now
        {
            self.clear(env.pool);
        }
    }
    /// The persist timer lets go what silly-window avoidance holds back.
    fn override_small(&mut self) {
        self.marks.set(Marks::OVERRIDE);
        if let Some(buffers) = &mut self.buffers {
            buffers.tail_probe.persists = self.config.policy.tail_probes_are_full_segments;
        }
    }
    /// The timers of what is in flight that are not the last resort.
    fn fire_recovery(&mut self, env: &mut Environment<'_>) {
        let Some(buffers) = &self.buffers else { return };
        let (reorder_at, probe_at, pace_at) = (buffers.reorder_at, buffers.tail_probe.at, buffers.pace_at);
        if pace_at <= env.now {
            self.fire_pace();
        }
        if reorder_at <= env.now {
            self.marks.clear(Marks::HELD_UP);
            self.fire_reordering(env);
        }
        if probe_at > env.now {
            return;
        }
        if matches!(self.recovery.state, RecoveryState::Open | RecoveryState::WindowReduction) {
            self.marks.clear(Marks::HELD_UP);
            self.fire_tail_probe();
            if !self.marks.has(Marks::TAIL_PROBE) {
                // RFC 8985 §7.3: without a probe, too, the time-out begins anew.
                self.skip_tail_probe(env.now);
            }
        } else if let Some(buffers) = &mut self.buffers {
            // What is lost is known now, without a probe.
            buffers.tail_probe.at = Instant::FAR_FUTURE;
        }
    }
    fn fire_keep_alive(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        let Some(keep_alive) = self.config.keep_alive else { return };
        let slept = slept_since(self.keep_alive_at(), env.now);
        if slept > Duration::ZERO {
            self.received_at = self.received_at.max(self.sent_at) + slept;
        }
        // spec: RFC9293 MUST-29 (one answer that is missing proves nothing)
        if self.keep_alive_probes >= keep_alive.probes {
            return self.time_out(ConnectionError::KeepAliveTimedOut, env, outcome);
        }
        self.keep_alive_probes += 1;
        self.marks.set(Marks::KEEP_ALIVE);
    }
    /// The end by a timer: `timed_out`, or in Linux's way what the network said before.
    pub(crate) fn time_out(
        &mut self,
        timed_out: ConnectionError,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        let said = self.soft_error.filter(|_| self.config.policy.soft_errors_name_timeouts);
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
        self.progress_at += slept_since(self.retransmit_at, now);
        let refused = self.marks.has(Marks::REFUSED);
        self.marks.clear(Marks::HELD_UP);
        if refused && !self.has_outstanding() {
            return self.fire_refusal(env, outcome);
        }
        if self.config.policy.user_timeout_from_retransmission
            && self.round_trip.backoff == 0
            && !self.phase.opens()
        {
            self.progress_at = now;
        }
        // spec: RFC9293 MUST-20 (R2 ends the connection)
        // spec: RFC9293 MUST-37 (not a window that stays closed while the peer answers: that is progress)
        if now.since(self.progress_at) >= self.patience() || self.syn_is_given_up() {
            return self.time_out(ConnectionError::TimedOut, env, outcome);
        }
        if !refused {
            self.round_trip.back_off();
        }
        self.timestamps.least_echo = self.timestamp(now);
        if self.phase.opens() {
            self.marks.set(Marks::SYNCHRONISE);
        } else if self.send.window == 0
            && !(self.config.policy.window_probes_are_empty && self.has_outstanding())
            && (self.has_outstanding() || self.queued_bytes() > 0 || self.phase.has_fin_outstanding())
        {
            // spec: RFC9293 MUST-35 (by the one mechanism)
            self.marks.set(Marks::PROBE);
            let is_urgent = self.send.next.precedes(self.send.urgent);
            if self.config.policy.window_probes_are_empty
                && self.config.policy.urgent_goes_with_data
                && is_urgent
            {
                self.marks.set(Marks::ANNOUNCE_URGENT);
            }
        } else if self.has_outstanding() {
            self.recover_by_timer(now);
        } else {
            self.override_small();
        }
        // spec: RFC9293 MUST-20 (R1 advises routing)
        let probing = self.send.window == 0 && !self.phase.opens();
        if self.round_trip.backoff == self.config.suspect_after_retransmissions && !probing {
            // What the network said tells more.
            self.soft_error = self.soft_error.or(Some(SoftError::NotResponding));
            outcome.changes |= Changes::SUSPECT | Changes::ERROR;
        }
        self.arm_retransmission(now);
        self.bound_by_patience(now);
    }
}

/// How long the host slept, when a timer that was due at `due` is served `now`.
pub(crate) fn slept_since(due: Instant, now: Instant) -> Duration {
    let late = now.since(due);
    if late > CLOCK_JUMP { late } else { Duration::ZERO }
}
