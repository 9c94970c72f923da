//! What the network says about our segments (RFC 9293 §3.9.2.2, RFC 5927).

use crate::flags::{ConnectionFlags, SenderFlags};
use crate::outcome::{Changes, Outcome};
use crate::state::Allows;
use crate::{Connection, ConnectionError, Environment, NetworkError, NetworkErrorKind, SoftError};
use inhost_base::{Instant, Sequence};
use inhost_event::{Drop, TcpState};

/// Least payload that a path can be said to allow: IPv4's least MTU of 68 less its headers.
const LEAST_PATH_MSS: u16 = 28;

impl Connection {
    /// Whether Linux forgets a caller of which it hears that: over IPv4 where the way is gone (tcp_req_err), over IPv6
    /// where what icmpv6_err_convert makes of it is fatal.
    fn forgets_caller(&self, kind: NetworkErrorKind) -> bool {
        match (kind, self.common.flags.has(ConnectionFlags::IPV6)) {
            (NetworkErrorKind::Soft(soft), false) => soft != SoftError::Prohibited,
            (NetworkErrorKind::Soft(soft), true) => {
                matches!(soft, SoftError::Prohibited | SoftError::ParameterProblem)
            }
            (NetworkErrorKind::Hard(_), is_ipv6) => is_ipv6,
            (NetworkErrorKind::TooBig { .. }, _) => false,
        }
    }
    /// Takes an ICMP error about a segment of this connection. It counts only while that segment is in flight.
    // spec: RFC9293 MUST-54 (errors are acted on)
    pub fn unreachable(&mut self, error: NetworkError, env: &mut Environment<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        if self.common.state == TcpState::Closed || !self.is_in_flight(error.sequence) {
            outcome.dropped = Some(Drop::NotCredible);
            return outcome;
        }
        match error.kind {
            kind if self.handshake().is_handshake_of_a_listener()
                && self.common.config.policy.soft_errors_end_handshakes =>
            {
                if self.forgets_caller(kind) {
                    self.finish(Some(ConnectionError::Unreachable), env, &mut outcome);
                }
            }
            // spec: RFC9293 MUST-56 (soft errors never abort)
            NetworkErrorKind::Soft(soft) => {
                self.note(soft, &mut outcome);
                if soft == SoftError::Unreachable && self.common.config.policy.icmp_reverts_back_off {
                    self.revert_back_off(error.sequence, env.now);
                }
            }
            NetworkErrorKind::Hard(hard)
                if self.common.state.opens() && !self.handshake().ended_before_open() =>
            {
                self.finish(Some(hard), env, &mut outcome);
            }
            // RFC 5927 §5.2: with a synchronised peer the claim is not worth more than a hint.
            NetworkErrorKind::Hard(ConnectionError::Refused) => {
                self.note(SoftError::Refused, &mut outcome);
            }
            NetworkErrorKind::Hard(_) => self.note(SoftError::Unreachable, &mut outcome),
            NetworkErrorKind::TooBig { path_mtu_mss } => {
                self.path_shrank(path_mtu_mss, env);
                if self.common.state == TcpState::SynSent && self.sender().unacknowledged_bytes() > 0 {
                    // It was the data with the SYN that did not fit.
                    self.common.flags.set(ConnectionFlags::SYNCHRONISE);
                }
            }
        }
        self.settle(env);
        outcome
    }
    /// Whether `sequence` was sent and nothing has acknowledged it yet: only then an error that quotes it is believed
    /// (RFC 5927 §4.1).
    pub fn is_in_flight(&self, sequence: Sequence) -> bool {
        let next = self.common.config.policy.icmp_may_quote_snd_nxt
            && !self.handshake().is_handshake_of_a_listener();
        let in_flight = self.sender.space.outstanding_bytes() + u32::from(next);
        sequence.within(self.sender.space.unacknowledged, in_flight)
            || self.handshake().is_answer_to_early_data(sequence)
    }
    /// Whether the latest segments include one of `sequence`, which may be a bare acknowledgment.
    pub fn was_sent_lately(&self, sequence: Sequence) -> bool {
        self.is_in_flight(sequence) || sequence == self.sender.space.next
    }
    /// The host itself knows that nothing can leave: there is no route any more, or the first hop does not answer. That
    /// ends an attempt to call. Once the peer was heard, a handshake included, it is a soft error: the way may come
    /// back before the retransmissions end.
    pub fn cannot_leave(&mut self, env: &mut Environment<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        if self.common.state == TcpState::SynSent {
            self.finish(Some(ConnectionError::Unreachable), env, &mut outcome);
        } else if self.common.state != TcpState::Closed && self.soft_error != Some(SoftError::Unreachable) {
            self.soft_error = Some(SoftError::Unreachable);
            outcome.changes |= Changes::ERROR;
        }
        if self.common.state == TcpState::SynReceived && !self.sender.timer.is_running() {
            // An answer that never left has no timer yet; without one the handshake would rest for ever.
            self.sender.timer.arm(&self.common, env.now);
        }
        self.settle(env);
        outcome
    }
    /// The path's largest payload has changed, as routing knows: its MTU less the IP header and 20 bytes.
    // spec: RFC7323 5.7-1
    pub fn set_path_mtu_mss(&mut self, path_mtu_mss: u16, env: &mut Environment<'_>) {
        if path_mtu_mss < self.common.path_mss {
            self.path_shrank(path_mtu_mss, env);
        } else {
            self.common.path_mss = path_mtu_mss.min(self.common.config.mss_limit_bytes);
            self.sender.congestion.resize(self.sender.effective_mss(&self.common));
        }
        self.settle(env);
    }
    fn note(&mut self, soft: SoftError, outcome: &mut Outcome) {
        self.soft_error = Some(soft);
        outcome.changes |= Changes::ERROR;
    }
    /// Smaller segments from now on, and what is in flight again in them (RFC 1191 §6.5): not a sign of congestion.
    fn path_shrank(&mut self, path_mtu_mss: u16, env: &mut Environment<'_>) {
        if path_mtu_mss >= self.common.path_mss {
            return;
        }
        self.common.path_mss = path_mtu_mss.max(LEAST_PATH_MSS);
        if self.common.state.opens() {
            self.sender.congestion.window.segment_bytes = self.sender.effective_mss(&self.common);
            return;
        }
        self.sender.congestion.resize(self.sender.effective_mss(&self.common));
        if self.sender.space.has_outstanding() {
            if self.common.config.policy.smaller_mtu_is_loss {
                self.sender.flags.set(SenderFlags::REPAIRS_ONLY);
            }
            let longest = self.sender.segment_bytes();
            self.sender.send_refused_again(&self.common, longest);
            if self.common.config.policy.smaller_mtu_is_loss
                && !self.sender.loss_recovery(&self.common, env).recover_by_path()
            {
                return;
            }
            self.sender.timer.arm(&self.common, env.now);
        }
    }
    /// The path is broken and not congested: the time-out need not have been doubled (RFC 6069).
    fn revert_back_off(&mut self, sequence: Sequence, now: Instant) {
        let oldest = self.sender.buffers.as_ref().and_then(|buffers| buffers.flight.first());
        let Some(oldest) = oldest.filter(|oldest| oldest.start == sequence && !self.common.state.opens())
        else {
            return;
        };
        if self.sender.timer.round_trip.backoff > 0 && sequence == self.sender.space.unacknowledged {
            self.sender.timer.round_trip.backoff -= 1;
            self.sender.timer.at =
                (oldest.sent_at + self.sender.timer.round_trip.timeout(&self.common.config)).max(now);
        }
    }
}
