//! ICMP errors, the path MTU, and local errors about our segments (RFC 9293 §3.9.2.2, RFC 5927).

use crate::common::Common;
use crate::flags::ConnectionFlags;
use crate::{Changes, Connection, ConnectionError, Environment, NetworkError, Outcome, SoftError};
use inhost_base::Sequence;
use inhost_event::{Drop, TcpState};

impl Connection {
    /// Takes an ICMP error that quotes a header with `sequence`. It counts only while that is in flight (RFC 5927 §4.1).
    // spec: RFC9293 MUST-54 (errors are acted on)
    pub fn unreachable(
        &mut self,
        sequence: Sequence,
        error: NetworkError,
        env: &mut Environment<'_>,
    ) -> Outcome {
        if self.common.state() == TcpState::Closed || !self.sender().is_in_flight(sequence) {
            env.discarded(Drop::NotCredible);
            return env.take_outcome();
        }
        match error {
            _ if self.common.is_handshake_of_a_listener()
                && self.common.policy().soft_errors_end_handshakes =>
            {
                if self.common.forgets_caller(error) {
                    self.finish(Some(ConnectionError::Unreachable), env);
                }
            }
            // spec: RFC9293 MUST-56 (soft errors never abort)
            NetworkError::Soft(soft) => {
                self.common.note(soft, env);
                let reverts = matches!(soft, SoftError::Unreachable | SoftError::NetworkUnreachable);
                if reverts && self.common.policy().icmp_reverts_back_off {
                    let at = self.sender.space().offset(sequence);
                    self.sender.revert_back_off(&mut self.common, at, env.now());
                }
            }
            NetworkError::Hard(hard)
                if self.common.opens() && !self.sender.ended_before_open(&self.common) =>
            {
                self.finish(Some(hard), env);
            }
            // RFC 5927 §5.2: with a synchronised peer the claim is not worth more than a hint.
            NetworkError::Hard(ConnectionError::Refused) => {
                self.common.note(SoftError::Refused, env);
            }
            NetworkError::Hard(_) => self.common.note(SoftError::ProtocolUnreachable, env),
            NetworkError::TooBig { path_mtu_mss } => {
                self.sender.path_shrank(&mut self.common, path_mtu_mss, env);
                if self.common.state() == TcpState::SynSent && self.sender().unacknowledged_bytes() > 0 {
                    // It was the data with the SYN that did not fit.
                    self.common.set(ConnectionFlags::SYN_DUE, true);
                }
            }
        }
        self.update(env);
        env.take_outcome()
    }
    /// The host cannot send to the peer: the route is gone, or the first hop does not answer. In SYN-SENT this ends the
    /// connection. After any segment of the peer it is a soft error: the path may recover before the user timeout.
    pub fn cannot_leave(&mut self, what: SoftError, env: &mut Environment<'_>) -> Outcome {
        if self.common.state() == TcpState::SynSent {
            let error = match what {
                SoftError::NetworkUnreachable => ConnectionError::NetworkUnreachable,
                _ => ConnectionError::Unreachable,
            };
            self.finish(Some(error), env);
        } else if self.common.state() != TcpState::Closed && self.common.soft_error() != Some(what) {
            self.common.note(what, env);
        }
        if self.common.state() == TcpState::SynReceived && !self.sender.timer().is_set() {
            // A SYN-ACK that was never sent has no timer yet. Without one the handshake would never end.
            self.sender.arm_timer(&self.common, env.now());
        }
        self.update(env);
        env.take_outcome()
    }
    /// The path's largest payload has changed, as routing knows: its MTU less the IP header and 20 bytes.
    // spec: RFC7323 5.7-1
    pub fn set_path_mtu_mss(&mut self, path_mtu_mss: u16, env: &mut Environment<'_>) {
        if path_mtu_mss < self.common.path_mss() {
            self.sender.path_shrank(&mut self.common, path_mtu_mss, env);
        } else {
            self.common.set_path_mss(path_mtu_mss.min(self.common.config().mss_limit_bytes));
            self.sender.path_grew(&self.common);
        }
        self.update(env);
    }
}

impl Common {
    /// Whether this error ends a half-open connection, as in Linux: over IPv4 where the destination is unreachable
    /// (tcp_req_err), over IPv6 where icmpv6_err_convert makes it fatal.
    fn forgets_caller(&self, error: NetworkError) -> bool {
        match (error, self.has(ConnectionFlags::IPV6)) {
            (NetworkError::Soft(soft), false) => soft != SoftError::Prohibited,
            (NetworkError::Soft(soft), true) => {
                matches!(soft, SoftError::Prohibited | SoftError::ParameterProblem)
            }
            (NetworkError::Hard(_), is_ipv6) => is_ipv6,
            (NetworkError::TooBig { .. }, _) => false,
        }
    }
    fn note(&mut self, soft: SoftError, env: &mut Environment<'_>) {
        self.set_soft_error(Some(soft));
        env.changed(Changes::ERROR);
    }
}
