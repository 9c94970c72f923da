//! RST and SYN within the window: what RFC 9293 §3.10.7.4 says with the defences of RFC 5961.

use crate::arrival::Arrival;
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::outcome::{Outcome, ResetReply};
use crate::{Connection, ConnectionError, Environment};
use inhost_base::Duration;
use inhost_event::{Drop, TcpState};

/// See [`Connection::challenge_syn`].
pub(crate) const CHALLENGED_AS_CONNECTION: u8 = 2;

impl Connection {
    /// A reset counts when it bears exactly the next number; another one in the window asks for a challenge
    /// (RFC 5961 §3.2).
    // spec: RFC5961 3.2-1, 3.2-2, 4.2-2; RFC9293 SHLD-2
    pub(super) fn take_reset(
        &mut self,
        arrival: &Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        if self.common.state == TcpState::TimeWait {
            // RFC 1337 §3: a stray reset does not cut TIME-WAIT short.
            outcome.dropped = Some(Drop::NotCredible);
            return;
        }
        if arrival.header.sequence != self.receiver.space.next
            && !self.receiver.repeats_fin(&self.common, arrival.header)
        {
            return self.challenge(env, outcome);
        }
        let error = match self.common.state {
            TcpState::SynReceived
                if self.common.flags.has(ConnectionFlags::ACTIVE)
                    && !self.common.config.policy.answers_crossing_syn =>
            {
                Some(ConnectionError::Refused)
            }
            // All that was to be said was said (RFC 9293 §3.10.7.4, second step).
            TcpState::Closing | TcpState::LastAck => {
                self.common.config.policy.reset_after_fin_is_closed.then_some(ConnectionError::ResetAtEnd)
            }
            TcpState::CloseWait if self.common.config.policy.reset_after_fin_is_closed => {
                Some(ConnectionError::ResetAfterEnd)
            }
            _ => Some(ConnectionError::Reset),
        };
        self.finish(error, env, outcome);
    }
    /// Whether a segment for a handshake that a listener began is none of it: with another acknowledgment, or with a SYN in
    /// the window.
    pub(super) fn ends_bad_handshake(
        &mut self,
        arrival: &Arrival<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) -> bool {
        let header = arrival.header;
        if self.common.state != TcpState::SynReceived
            || self.common.flags.has(ConnectionFlags::ACTIVE)
            || self.is_early()
        {
            return false;
        }
        let expected = self.sender.syn_sequence(&self.common) + 1;
        if header.flags.ack() && header.acknowledgment != expected && !header.flags.rst() {
            outcome.dropped = Some(Drop::OutOfWindow);
            outcome.reset = ResetReply::to(header, arrival.payload.len());
            return true;
        }
        if self.common.config.policy.handshake_ack_needs_echo
            && !header.flags.rst()
            && !self.sender.echoes_answer(&self.common, arrival.header)
        {
            outcome.dropped = Some(Drop::OldTimestamp);
            if arrival.bears_stream() || self.may_challenge(env) {
                self.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
            }
            return true;
        }
        let ahead = header.sequence.since(self.receiver.space.next)
            < self.receiver.space.edge.since(self.receiver.space.next);
        let ends = header.flags.syn() && !header.flags.rst() && ahead;
        if ends {
            outcome.reset = ResetReply::to(header, arrival.payload.len());
            self.finish(Some(ConnectionError::Reset), env, outcome);
        }
        ends
    }
    /// Drops the segment and answers it, within the limit.
    // spec: RFC5961 1.1-1
    pub(super) fn challenge(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        outcome.dropped = Some(Drop::OutOfWindow);
        // What is discarded leaves nothing behind, no report of what came twice either.
        self.receiver.sack_told(&self.common, env.pool);
        if self.may_challenge(env) {
            self.receiver.flags.set(ReceiverFlags::ACKNOWLEDGE);
        } else {
            outcome.dropped = Some(Drop::RateLimited);
        }
    }
    /// The same for a SYN. One that comes again with our number acknowledged makes a connection of a listener's handshake on
    /// Linux, with a count of its own.
    pub(super) fn challenge_syn(&mut self, env: &mut Environment<'_>, outcome: &mut Outcome) {
        let begins = self.common.config.policy.challenge_interval.is_some()
            && self.common.state == TcpState::SynReceived
            && !self.common.flags.has(ConnectionFlags::ACTIVE);
        if begins {
            self.challenges = 0;
        }
        self.challenge(env, outcome);
        if begins {
            self.challenges = CHALLENGED_AS_CONNECTION;
        }
    }
    /// Counts one challenge; false when this second's are spent (RFC 5961 §7).
    // spec: RFC5961 7-1
    pub(super) fn may_challenge(&mut self, env: &Environment<'_>) -> bool {
        if let Some(interval) = self.common.config.policy.challenge_interval {
            let at = env.now.as_millis() as u32;
            let passed = Duration::from_millis(u64::from(at.wrapping_sub(self.challenged_at)));
            let may = self.challenges == 0 || passed >= interval;
            if may {
                (self.challenged_at, self.challenges) = (at, 1);
            }
            return may;
        }
        let second = (env.now.as_nanos() / 1_000_000_000) as u32;
        if second != self.challenged_at {
            self.challenged_at = second;
            self.challenges = 0;
        }
        let may = self.challenges < self.common.config.challenge_limit_per_second;
        self.challenges += u8::from(may);
        may
    }
}
