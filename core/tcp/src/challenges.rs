//! The limit on challenge acknowledgments (RFC 5961 §7).

use crate::common::Common;
use inhost_base::{Duration, Instant};

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
