//! How many ICMP errors we send: a token bucket (RFC 1812 §4.3.2.8, RFC 4443 §2.4 (f)).

use inhost_base::{Duration, Instant, Random};

/// Errors that may follow each other at once.
const BURST: u32 = 50;
/// One more is allowed after so long.
const INTERVAL: Duration = Duration::from_millis(10);
/// Up to so many tokens vanish with each error sent, so that the state of the bucket, which all peers share, cannot be
/// read by counting (the SAD DNS attack).
const BLUR: u32 = 3;

/// The bucket of a host.
#[derive(Debug)]
pub(crate) struct ErrorLimit {
    tokens: u32,
    filled_at: Instant,
}

impl Default for ErrorLimit {
    fn default() -> Self {
        ErrorLimit { tokens: BURST, filled_at: Instant::ZERO }
    }
}

impl ErrorLimit {
    /// Whether one more error may be sent; it is counted.
    // spec: RFC4443 2.4, RFC1812 4.3.2.8
    pub fn allows(&mut self, now: Instant, random: &mut Random) -> bool {
        let intervals = now.since(self.filled_at).as_nanos() / INTERVAL.as_nanos();
        if intervals > 0 {
            let room = BURST - self.tokens.min(BURST);
            self.tokens += u32::try_from(intervals).unwrap_or(u32::MAX).min(room);
            self.filled_at += INTERVAL.times(intervals);
        }
        if self.tokens == 0 {
            return false;
        }
        self.tokens = self.tokens.saturating_sub(1 + random.private_below(BLUR));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: RFC4443 2.4
    #[test]
    fn a_flood_is_answered_at_the_rate_of_the_bucket() {
        let mut limit = ErrorLimit::default();
        let mut random = Random::from_number(1);
        let mut sent = 0;
        for i in 0..1_000_000u64 {
            sent += u32::from(limit.allows(Instant::from_nanos(i * 10_000), &mut random));
        }
        // Ten seconds: a burst, and at most one each 10 ms.
        assert!((300..=1_050).contains(&sent), "{sent}");
        assert!(limit.allows(Instant::from_millis(20_000), &mut random), "and it recovers");
    }
}
