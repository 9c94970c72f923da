//! A rate limit with random cost.

use inhost_base::{Duration, Instant, Random};

/// Each admission takes one token and, at random, up to this many more. An attacker who counts admissions then cannot
/// infer those of other hosts, and so cannot detect a connection of theirs (the side channel of a shared counter,
/// CVE-2016-5696; RFC 5961 §7).
const BLUR: u32 = 2;

/// A token bucket that holds one second's worth, shared by all peers, whose state cannot be read from outside.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct RateLimit {
    price: Duration,
    credit: Duration,
    last: Instant,
}

impl RateLimit {
    /// A full bucket that admits `per_second` on average; with none at all nothing is admitted.
    pub(crate) fn new(per_second: u32, now: Instant) -> Self {
        let second = Duration::from_secs(1);
        // An admission costs 1 + BLUR / 2 tokens on average.
        let tokens = u64::from(per_second) * u64::from(2 + BLUR) / 2;
        let price = if per_second == 0 { Duration::MAX } else { second.divided_by(tokens) };
        RateLimit { price, credit: second, last: now }
    }
    /// Pays for one admission, if there is a token.
    pub(crate) fn admit(&mut self, now: Instant, random: &mut Random) -> bool {
        self.credit = (self.credit + now.since(self.last)).min(Duration::from_secs(1));
        self.last = now;
        if self.credit < self.price {
            return false;
        }
        let cost = self.price.times(u64::from(1 + random.private_below(BLUR + 1)));
        self.credit -= cost.min(self.credit);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_admits_about_its_worth() {
        let mut random = Random::from_number(3);
        let mut now = Instant::from_millis(5);
        let mut limit = RateLimit::new(100, now);
        let mut burst =
            |limit: &mut RateLimit, now| (0..500).filter(|_| limit.admit(now, &mut random)).count();
        let bursts: Vec<usize> = (0..20)
            .map(|_| {
                now += Duration::from_secs(3600);
                burst(&mut limit, now)
            })
            .collect();
        assert!(bursts.iter().all(|count| (80..120).contains(count)), "{bursts:?}");
        assert!(bursts.iter().any(|&count| count != bursts[0]), "the edge is blurred: {bursts:?}");
        now += Duration::from_millis(250);
        assert!((15..35).contains(&burst(&mut limit, now)));
        let mut closed = RateLimit::new(0, now);
        assert_eq!(burst(&mut closed, now + Duration::from_secs(9)), 0);
    }
}
