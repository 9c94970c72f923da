//! RST and SYN within the window: what RFC 9293 §3.10.7.4 says with the defences of RFC 5961.

use super::Input;
use crate::ConnectionError;
use crate::arrival::Arrival;
use crate::flags::ConnectionFlags;
use crate::offset::Offset;
use crate::outcome::ResetReply;
use inhost_event::{Drop, TcpState};

impl Input<'_, '_> {
    /// A reset counts when it bears exactly the next number; another one in the window asks for a challenge
    /// (RFC 5961 §3.2).
    // spec: RFC5961 3.2-1, 3.2-2, 4.2-2; RFC9293 SHLD-2
    pub(super) fn take_reset(&mut self, arrival: &Arrival<'_>) {
        if self.tcb.common.state == TcpState::TimeWait {
            // RFC 1337 §3: a stray reset does not cut TIME-WAIT short.
            self.outcome.dropped = Some(Drop::NotCredible);
            return;
        }
        if arrival.first != self.tcb.receiver.space.next()
            && !self.tcb.receiver.repeats_fin(&self.tcb.common, arrival)
        {
            return self.tcb.receiver.challenge(&mut self.tcb.common, self.env, self.outcome);
        }
        let error = match self.tcb.common.state {
            TcpState::SynReceived
                if self.tcb.common.flags.has(ConnectionFlags::ACTIVE_OPEN)
                    && !self.tcb.common.config.policy.answers_crossing_syn =>
            {
                Some(ConnectionError::Refused)
            }
            // All that was to be said was said (RFC 9293 §3.10.7.4, second step).
            TcpState::Closing | TcpState::LastAck => {
                self.tcb.common.config.policy.reset_after_fin_is_closed.then_some(ConnectionError::ResetAtEnd)
            }
            TcpState::CloseWait if self.tcb.common.config.policy.reset_after_fin_is_closed => {
                Some(ConnectionError::ResetAfterEnd)
            }
            _ => Some(ConnectionError::Reset),
        };
        self.tcb.finish(error, self.env, self.outcome);
    }
    /// Whether a segment for a handshake that a listener began is none of it: with another acknowledgment, or with a SYN in
    /// the window.
    pub(super) fn ends_bad_handshake(&mut self, arrival: &Arrival<'_>) -> bool {
        let header = arrival.header;
        if self.tcb.common.state != TcpState::SynReceived
            || self.tcb.common.flags.has(ConnectionFlags::ACTIVE_OPEN)
            || self.tcb.common.is_early()
        {
            return false;
        }
        if header.flags.ack() && arrival.acknowledgment != Offset::SYN + 1 && !header.flags.rst() {
            self.outcome.dropped = Some(Drop::OutOfWindow);
            self.outcome.reset = ResetReply::to(header, arrival.payload.len());
            return true;
        }
        if self.tcb.common.config.policy.handshake_ack_needs_echo
            && !header.flags.rst()
            && !self.tcb.sender.echoes_answer(&self.tcb.common, arrival.header)
        {
            self.outcome.dropped = Some(Drop::OldTimestamp);
            self.tcb.receiver.answer_unacceptable(&mut self.tcb.common, arrival, self.env.now);
            return true;
        }
        let ahead =
            self.tcb.receiver.space.next() <= arrival.first && arrival.first < self.tcb.receiver.space.edge();
        let ends = header.flags.syn() && !header.flags.rst() && ahead;
        if ends {
            self.outcome.reset = ResetReply::to(header, arrival.payload.len());
            self.tcb.finish(Some(ConnectionError::Reset), self.env, self.outcome);
        }
        ends
    }
    /// Challenges a SYN. In Linux, a repeated SYN that acknowledges our sequence number makes a listener's handshake
    /// count as a connection, with a challenge count of its own.
    pub(super) fn challenge_syn(&mut self) {
        let begins = self.tcb.common.config.policy.challenge_interval.is_some()
            && self.tcb.common.state == TcpState::SynReceived
            && !self.tcb.common.flags.has(ConnectionFlags::ACTIVE_OPEN);
        if begins {
            self.tcb.common.forget_challenges();
        }
        self.tcb.receiver.challenge(&mut self.tcb.common, self.env, self.outcome);
        if begins {
            self.tcb.common.challenge_as_connection();
        }
    }
}
