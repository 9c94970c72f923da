//! A rate limit: a token bucket, whose tokens are time that was saved up.

use crate::{Duration, Instant, Random};

/// What an admission costs at most, in prices, where the cost is random. An attacker who counts admissions of a limit that
/// all peers share cannot infer those of other hosts then, and so cannot detect a connection of theirs (the side channel of
/// a shared counter: CVE-2016-5696 and RFC 5961 §7, SAD DNS).
const MOST_PRICES: u32 = 3;

/// A token bucket. Time fills it up to a limit, and admissions empty it.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct RateLimit {
    price: Duration,
    most: Duration,
    saved: Duration,
    at: Instant,
}

impl RateLimit {
    /// A full bucket that admits one after each `price`, and `burst` at once.
    pub fn new(price: Duration, burst: u32, now: Instant) -> Self {
        let most = price.times(burst.into());
        RateLimit { price, most, saved: most, at: now }
    }
    /// A full bucket of a second's worth that admits `per_second` on average by [`RateLimit::admit_blurred`]; with none at
    /// all nothing is admitted.
    pub fn per_second(per_second: u32, now: Instant) -> Self {
        let second = Duration::from_secs(1);
        let prices = u64::from(per_second) * u64::from(1 + MOST_PRICES) / 2;
        let price = if per_second == 0 { Duration::MAX } else { second.divided_by(prices) };
        RateLimit { price, most: second, saved: second, at: now }
    }
    /// When an admission was asked for last.
    pub fn asked_at(&self) -> Instant {
        self.at
    }
    /// Pays the price of one admission, if that is there.
    pub fn admit(&mut self, now: Instant) -> bool {
        self.admit_for(now, || 1)
    }
    /// Pays for one admission, if the price is there; what it costs beyond that is random.
    pub fn admit_blurred(&mut self, now: Instant, random: &mut Random) -> bool {
        self.admit_for(now, || 1 + random.private_below(MOST_PRICES))
    }
    fn admit_for(&mut self, now: Instant, prices: impl FnOnce() -> u32) -> bool {
        self.saved = (self.saved + now.since(self.at)).min(self.most);
        self.at = now;
        let is_admitted = self.saved >= self.price;
        if is_admitted {
            self.saved -= self.price.times(prices().into()).min(self.saved);
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_admits_about_its_worth() {
        let mut random = Random::from_number(3);
        let mut now = Instant::from_millis(5);
        let mut limit = RateLimit::per_second(100, now);
        let mut burst =
            |limit: &mut RateLimit, now| (0..500).filter(|_| limit.admit_blurred(now, &mut random)).count();
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
        let mut closed = RateLimit::per_second(0, now);
        assert_eq!(burst(&mut closed, now + Duration::from_secs(9)), 0);
    }
}
