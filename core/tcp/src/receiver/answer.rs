//! Answers to segments that are not acceptable (RFC 9293 §3.10.7.4, RFC 5961).

use super::Receiver;
use crate::Environment;
use crate::arrival::Arrival;
use crate::common::Common;
use crate::flags::ReceiverFlags;
use inhost_base::Instant;
use inhost_event::{Drop, TcpState};

impl Receiver {
    /// An acknowledgment informs the peer of our state. A segment without data may be the answer to one of ours, so
    /// answers to it are limited, to prevent an endless exchange of acknowledgments; so are answers to a SYN, with data
    /// or without (RFC 5961 §4.2, §7).
    pub(super) fn answer_unacceptable(&mut self, common: &mut Common, arrival: &Arrival<'_>, now: Instant) {
        if arrival.bears_stream() || common.may_challenge(now) {
            self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        }
    }
    /// A reset counts when it bears exactly the next number; another one in the window asks for a challenge
    /// (RFC 5961 §3.2).
    // spec: RFC5961 3.2-1, 3.2-2, 4.2-2; RFC9293 SHLD-2
    pub fn believes_reset(
        &mut self,
        common: &mut Common,
        arrival: &Arrival<'_>,
        env: &mut Environment<'_>,
    ) -> bool {
        if common.state() == TcpState::TimeWait {
            // RFC 1337 §3: a stray reset does not cut TIME-WAIT short.
            env.discarded(Drop::NotCredible);
            return false;
        }
        let is_next = arrival.first == self.space.next() || self.repeats_fin(common, arrival);
        if !is_next {
            self.challenge(common, env);
        }
        is_next
    }
    /// Drops the segment and answers it, within the limit.
    // spec: RFC5961 1.1-1
    pub fn challenge(&mut self, common: &mut Common, env: &mut Environment<'_>) {
        env.discarded(Drop::OutOfWindow);
        // A discarded segment leaves no state, not even a D-SACK report.
        self.sack_sent(common, env.pool());
        if common.may_challenge(env.now()) {
            self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        } else {
            env.discarded(Drop::RateLimited);
        }
    }
}
