//! ICMP errors about our segments (RFC 9293 §3.9.2.2, RFC 5927).

use super::Input;
use crate::common::Common;
use crate::flags::ConnectionFlags;
use crate::outcome::{Changes, Outcome};
use crate::state::Allows;
use crate::{ConnectionError, NetworkError, NetworkErrorKind, SoftError};
use inhost_event::{Drop, TcpState};

impl Input<'_, '_> {
    /// Takes an ICMP error about a segment of this connection. It counts only while that segment is in flight.
    // spec: RFC9293 MUST-54 (errors are acted on)
    pub fn network_error(&mut self, error: NetworkError) {
        if self.tcb.common.state == TcpState::Closed || !self.tcb.sender().is_in_flight(error.sequence) {
            self.outcome.dropped = Some(Drop::NotCredible);
            return;
        }
        match error.kind {
            kind if self.tcb.common.is_handshake_of_a_listener()
                && self.tcb.common.config.policy.soft_errors_end_handshakes =>
            {
                if self.tcb.common.forgets_caller(kind) {
                    self.tcb.finish(Some(ConnectionError::Unreachable), self.env, self.outcome);
                }
            }
            // spec: RFC9293 MUST-56 (soft errors never abort)
            NetworkErrorKind::Soft(soft) => {
                self.tcb.common.note(soft, self.outcome);
                let reverts = matches!(soft, SoftError::Unreachable | SoftError::NetworkUnreachable);
                if reverts && self.tcb.common.config.policy.icmp_reverts_back_off {
                    let at = self.tcb.sender.space.offset(error.sequence);
                    self.tcb.sender.revert_back_off(&mut self.tcb.common, at, self.env.now);
                }
            }
            NetworkErrorKind::Hard(hard)
                if self.tcb.common.state.opens() && !self.tcb.sender.ended_before_open(&self.tcb.common) =>
            {
                self.tcb.finish(Some(hard), self.env, self.outcome);
            }
            // RFC 5927 §5.2: with a synchronised peer the claim is not worth more than a hint.
            NetworkErrorKind::Hard(ConnectionError::Refused) => {
                self.tcb.common.note(SoftError::Refused, self.outcome);
            }
            NetworkErrorKind::Hard(_) => self.tcb.common.note(SoftError::ProtocolUnreachable, self.outcome),
            NetworkErrorKind::TooBig { path_mtu_mss } => {
                self.tcb.sender.path_shrank(&mut self.tcb.common, path_mtu_mss, self.env);
                if self.tcb.common.state == TcpState::SynSent && self.tcb.sender().unacknowledged_bytes() > 0
                {
                    // It was the data with the SYN that did not fit.
                    self.tcb.common.flags.insert(ConnectionFlags::SYN_DUE);
                }
            }
        }
        self.tcb.update(self.env);
    }
}

impl Common {
    /// Whether this error ends a half-open connection, as in Linux: over IPv4 where the destination is unreachable
    /// (tcp_req_err), over IPv6 where icmpv6_err_convert makes it fatal.
    fn forgets_caller(&self, kind: NetworkErrorKind) -> bool {
        match (kind, self.flags.contains(ConnectionFlags::IPV6)) {
            (NetworkErrorKind::Soft(soft), false) => soft != SoftError::Prohibited,
            (NetworkErrorKind::Soft(soft), true) => {
                matches!(soft, SoftError::Prohibited | SoftError::ParameterProblem)
            }
            (NetworkErrorKind::Hard(_), is_ipv6) => is_ipv6,
            (NetworkErrorKind::TooBig { .. }, _) => false,
        }
    }
    fn note(&mut self, soft: SoftError, outcome: &mut Outcome) {
        self.soft_error = Some(soft);
        outcome.changes |= Changes::ERROR;
    }
}
