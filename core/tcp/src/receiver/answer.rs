//! Answers to segments that are not acceptable (RFC 9293 §3.10.7.4, RFC 5961).

use super::Receiver;
use crate::Environment;
use crate::arrival::Arrival;
use crate::common::Common;
use crate::flags::ReceiverFlags;
use crate::outcome::Outcome;
use inhost_base::{Duration, Instant};
use inhost_event::Drop;

impl Receiver {
    /// An acknowledgment informs the peer of our state. A segment without data may be the answer to one of ours, so
    /// answers to it are limited, to prevent an endless exchange of acknowledgments; so are answers to a SYN, with data
    /// or without (RFC 5961 §4.2, §7).
    pub fn answer_unacceptable(&mut self, common: &mut Common, arrival: &Arrival<'_>, now: Instant) {
        if arrival.bears_stream() || common.may_challenge(now) {
            self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        }
    }
    /// Drops the segment and answers it, within the limit.
    // spec: RFC5961 1.1-1
    pub fn challenge(&mut self, common: &mut Common, env: &mut Environment<'_>, outcome: &mut Outcome) {
        outcome.dropped = Some(Drop::OutOfWindow);
        // A discarded segment leaves no state, not even a D-SACK report.
        self.sack_sent(common, env.pool);
        if common.may_challenge(env.now) {
            self.flags.insert(ReceiverFlags::ACKNOWLEDGE);
        } else {
            outcome.dropped = Some(Drop::RateLimited);
        }
    }
}

impl Common {
    /// Counts a challenge acknowledgment; false when this second's are spent.
    // spec: RFC5961 7-1
    pub fn may_challenge(&mut self, now: Instant) -> bool {
        if let Some(interval) = self.config.policy.challenge_interval {
            let at = now.as_millis() as u32;
            let passed = Duration::from_millis(u64::from(at.wrapping_sub(self.challenged_at)));
            let may = self.challenges == 0 || passed >= interval;
            if may {
                (self.challenged_at, self.challenges) = (at, 1);
            }
            return may;
        }
        let second = (now.as_nanos() / 1_000_000_000) as u32;
        if second != self.challenged_at {
            (self.challenged_at, self.challenges) = (second, 0);
        }
        let may = self.challenges < self.config.challenge_limit_per_second;
        self.challenges += u8::from(may);
        may
    }
}
