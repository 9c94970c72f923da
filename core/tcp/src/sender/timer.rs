//! The sender's timers: the retransmission timer (RFC 6298), which is the persist timer while the peer's window holds
//! data back (RFC 9293 §3.8.6.1), and those of loss recovery, keep-alive and orphans; what they do when due, and how
//! long the peer may be silent.

use super::Sender;
use crate::common::{Common, slept_since};
use crate::flags::{ConnectionFlags, SenderFlags};
use crate::{Changes, ConnectionError, Environment, RecoveryState, SoftError};
use inhost_base::{Deadline, Duration, Instant, Offset};
use inhost_event::TcpState;

/// The data that an orphan still has to send must shrink by this fraction, or by a segment, in each period, so that
/// large and small remainders end alike.
const PART: u64 = 32;

/// A probe counts as unanswered after this number of maximum timeouts.
const SILENT_AFTER_TIMEOUTS: u64 = 2;

impl Sender {
    /// Restarts the retransmission timer. It never outlasts the user timeout.
    // spec: RFC6298 5-1
    #[inline]
    pub fn arm_timer(&mut self, common: &Common, now: Instant) {
        // The first of a SYN need not be doubled.
        let linear =
            if common.state() == TcpState::SynSent { common.config().syn_linear_timeouts } else { 0 };
        let doublings = common.round_trip().backoff().saturating_sub(linear);
        self.timer.set(now + common.round_trip().timeout_after(doublings, common.config()));
        let ends_at = self.progress_at + common.user_timeout();
        if ends_at > now {
            self.timer.bring_forward(ends_at);
        }
    }
    /// The next attempt is at `at`, or when the user time-out is over.
    pub fn retry_at(&mut self, common: &Common, at: Instant) {
        self.timer.set(at.min(self.progress_at + common.config().user_timeout));
    }
    /// Serves the timers that are due. Gives why the connection ends, if it does.
    pub fn fire(&mut self, common: &mut Common, env: &mut Environment<'_>) -> Option<ConnectionError> {
        let now = env.now();
        self.record_fin(common);
        let probes = self.buffers.as_ref().is_some_and(|buffers| buffers.tail_probe.deadline().has_come(now));
        if self.timer.has_come(now) && !probes {
            let end = self.fire_retransmission(common, env);
            if end.is_some() {
                return end;
            }
        }
        self.fire_recovery(common, env);
        if self.timer.has_come(now) {
            // RFC 8985 §7.3: after a probe the RTO restarts.
            self.arm_timer(common, now);
        }
        if let Some(buffers) = &mut self.buffers
            && buffers.aggregate_until.has_come(now)
        {
            // spec: RFC9293 MUST-60 (what was not pushed does not wait for ever)
            buffers.aggregate_until.stop();
            self.push_all();
            if self.flags.contains(SenderFlags::CORKED) {
                self.flags.insert(SenderFlags::OVERRIDE_SWS);
            }
        }
        None
    }
    /// The timers of loss recovery and pacing, besides the retransmission timer.
    fn fire_recovery(&mut self, common: &Common, env: &mut Environment<'_>) {
        let now = env.now();
        let Some(buffers) = &mut self.buffers else { return };
        let reorders = buffers.reorder_at.has_come(now);
        if buffers.pace_at.has_come(now) {
            buffers.pace_at.stop();
            self.flags.remove(SenderFlags::PACED);
        }
        let probes = buffers.tail_probe.deadline().has_come(now);
        if reorders {
            self.flags.remove(SenderFlags::LINK_REFUSED);
            self.fire_reordering(common, env);
        }
        if probes {
            self.fire_tail_probe(common, now);
        }
    }
    /// A tail loss probe is due: the next segment is one, unless none may be sent (RFC 8985 §7.3).
    fn fire_tail_probe(&mut self, common: &Common, now: Instant) {
        let Some(buffers) = &mut self.buffers else { return };
        buffers.tail_probe.stop();
        if !matches!(self.recovery.state, RecoveryState::Open | RecoveryState::WindowReduction) {
            // A recovery has begun: its losses are known without a probe.
            return;
        }
        self.flags.remove(SenderFlags::LINK_REFUSED);
        if buffers.tail_probe.may_leave() {
            self.flags.insert(SenderFlags::TAIL_PROBE);
        } else {
            // Without a probe, too, the RTO restarts.
            // spec: RFC8985 7.3-1
            self.arm_timer(common, now);
        }
    }
    /// The retransmission timer, or the persist timer, has expired. Gives why the connection ends, if it does.
    // spec: RFC6298 5-3; RFC9293 SHLD-9, SHLD-29, SHLD-30, SHLD-17
    fn fire_retransmission(
        &mut self,
        common: &mut Common,
        env: &mut Environment<'_>,
    ) -> Option<ConnectionError> {
        let now = env.now();
        self.progress_at += slept_since(self.timer.instant(), now);
        let refused = self.flags.contains(SenderFlags::LINK_REFUSED);
        self.flags.remove(SenderFlags::LINK_REFUSED);
        if refused && !self.space.has_outstanding() {
            return self.fire_refusal(common, now);
        }
        // spec: RFC9293 MUST-20 (R2 ends the connection)
        // spec: RFC9293 MUST-37 (not a window that stays closed while the peer answers: that is progress)
        if now.since(self.progress_at) >= common.user_timeout() || self.syn_is_given_up(common) {
            return Some(common.timed_out(ConnectionError::TimedOut));
        }
        if !refused {
            common.round_trip_mut().back_off();
        }
        self.least_echo = common.timestamp(now);
        if common.opens() {
            common.set(ConnectionFlags::SYN_DUE, true);
        } else if self.space.window() == 0
            && !(common.policy().window_probes_are_empty && self.space.has_outstanding())
            && (self.space.has_outstanding() || self.queued_bytes() > 0 || common.has_fin_outstanding())
        {
            // A zero-window probe: what it is, `probe` and `probes_empty` say.
            // spec: RFC9293 MUST-35 (by the one mechanism)
            self.flags.insert(SenderFlags::WINDOW_PROBE);
        } else if self.space.has_outstanding() {
            self.recover_by_timer(common, now);
        } else {
            self.flags.insert(SenderFlags::OVERRIDE_SWS);
        }
        // spec: RFC9293 MUST-20 (R1 advises routing)
        let probing = self.space.window() == 0 && !common.opens();
        if common.round_trip().backoff() == common.config().suspect_after_retransmissions && !probing {
            // An ICMP error is more specific.
            common.set_soft_error(common.soft_error().or(Some(SoftError::NotResponding)));
            env.changed(Changes::SUSPECT | Changes::ERROR);
        }
        self.arm_timer(common, now);
        None
    }
    /// Retries data that the link refused, with nothing in flight.
    fn fire_refusal(&mut self, common: &Common, now: Instant) -> Option<ConnectionError> {
        if now.since(self.progress_at) >= common.config().user_timeout {
            return Some(common.timed_out(ConnectionError::TimedOut));
        }
        self.keep_alive_probes = self.keep_alive_probes.saturating_add(1);
        self.timer.stop();
        self.flags.insert(SenderFlags::OVERRIDE_SWS);
        None
    }
    /// The application has closed the socket. Until our FIN is acknowledged, the orphan timer checks that the peer
    /// accepts the remaining data.
    pub fn orphaned(&mut self, common: &mut Common, now: Instant) {
        if common.has_fin_outstanding() {
            common.linger_until(now + common.config().orphan_timeout);
            let acknowledged_bytes = self.acknowledged_bytes();
            if let Some(buffers) = &mut self.buffers {
                buffers.orphan_from_bytes = acknowledged_bytes;
            }
        }
    }
    /// A segment of the peer's shows that it is there.
    #[inline]
    pub fn peer_answers(&mut self) {
        self.keep_alive_probes = 0;
        self.flags.remove(SenderFlags::CLEARED_ON_ARRIVAL);
    }
    /// Probes, of the window or of an idle peer, that the peer has not answered.
    pub fn unanswered_probes(&self, common: &Common) -> u8 {
        let probes_window = self.space.window() == 0 && !common.opens();
        if probes_window { common.round_trip().backoff() } else { self.keep_alive_probes }
    }
    /// The path is broken and not congested: the time-out need not have been doubled (RFC 6069).
    pub fn revert_back_off(&mut self, common: &mut Common, at: Offset, now: Instant) {
        let oldest = self.buffers.as_ref().and_then(|buffers| buffers.flight.records().front());
        let Some(oldest) = oldest.filter(|oldest| oldest.start == at && !common.opens()) else {
            return;
        };
        if common.round_trip().backoff() > 0 && at == self.space.unacknowledged() {
            common.round_trip_mut().revert_back_off();
            self.timer.set((oldest.sent_at + common.timeout()).max(now));
        }
    }
    /// The orphan timer expired: false if the connection ends. A peer may keep its window closed for as long as its
    /// application likes (RFC 9293 §3.8.6.1). Once the application has closed the socket, only the peer would decide
    /// how long memory is kept for it: RFC 6429 §4 lets the host end that, for a peer that answers but has accepted too
    /// little of the remaining data. The user timeout covers one that does not answer; its last segment came at
    /// `received_at`.
    pub fn may_linger(&mut self, common: &mut Common, received_at: Instant, now: Instant) -> bool {
        let silent_after = common.config().max_retransmission_timeout.times(SILENT_AFTER_TIMEOUTS);
        let is_silent = now.since(received_at) > silent_after;
        let slept = slept_since(common.linger_at().instant(), now) > Duration::ZERO;
        let may = self.is_orphan_served() || is_silent || slept;
        if may {
            self.orphaned(common, now);
        }
        may
    }
    /// Whether the peer has taken enough of an orphan's data since the orphan timer began.
    fn is_orphan_served(&self) -> bool {
        // Without queues nothing but the FIN is left.
        let Some(buffers) = &self.buffers else { return false };
        let taken_bytes = self.acknowledged_bytes() - buffers.orphan_from_bytes;
        let part_bytes = (u64::from(self.queued_bytes()) + taken_bytes) / PART;
        taken_bytes >= part_bytes.max(u64::from(self.segment_bytes()))
    }
    /// When the next keep-alive probe is due, where the latest segment came or left at `last`. One that the link does
    /// not take counts: a neighbour that is gone answers no question for its address either.
    // spec: RFC9293 MUST-24 (the application can ask for it)
    // spec: RFC9293 MUST-26 (only an idle connection is probed)
    #[inline]
    pub fn keep_alive_at(&self, common: &Common, last: Instant) -> Deadline {
        let Some(keep_alive) = common.config().keep_alive else { return Deadline::NEVER };
        let idle = matches!(common.state(), TcpState::Established | TcpState::CloseWait | TcpState::FinWait2)
            && !self.space.has_outstanding()
            && !self.timer.is_set();
        if !idle {
            return Deadline::NEVER;
        }
        Deadline::at(last + keep_alive.idle + keep_alive.interval.times(u64::from(self.keep_alive_probes)))
    }
    /// A probe of an idle peer is due: it is sent next, or else the connection ends because of the error given.
    // spec: RFC9293 MUST-29 (one answer that is missing proves nothing)
    pub fn probe_idle_peer(&mut self, common: &Common) -> Option<ConnectionError> {
        let keep_alive = common.config().keep_alive?;
        if self.keep_alive_probes >= keep_alive.probes {
            return Some(common.timed_out(ConnectionError::KeepAliveTimedOut));
        }
        self.keep_alive_probes += 1;
        self.flags.insert(SenderFlags::KEEP_ALIVE);
        None
    }
    /// Probes of an idle peer count from now on.
    pub fn probe_anew(&mut self) {
        self.keep_alive_probes = 0;
    }
}
