//! A limit on the rate of something.

use inhost_base::{Duration, Instant};

/// A token bucket that holds one second's worth.
#[derive(Debug)]
pub(crate) struct RateLimit {
    price: Duration,
    credit: Duration,
    last: Instant,
}

impl RateLimit {
    /// A full bucket of `per_second` tokens; with none at all nothing is admitted.
    pub(crate) fn new(per_second: u32, now: Instant) -> Self {
        let second = Duration::from_secs(1);
        let price = if per_second == 0 { Duration::MAX } else { second.divided_by(u64::from(per_second)) };
        RateLimit { price, credit: second, last: now }
    }
    /// Takes a token, if there is one.
    pub(crate) fn admit(&mut self, now: Instant) -> bool {
        self.credit = (self.credit + now.since(self.last)).min(Duration::from_secs(1));
        self.last = now;
        let admitted = self.credit >= self.price;
        if admitted {
            self.credit -= self.price;
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_admits_its_worth() {
        let mut now = Instant::from_millis(5);
        let mut limit = RateLimit::new(10, now);
        assert_eq!((0..50).filter(|_| limit.admit(now)).count(), 10);
        now += Duration::from_millis(250);
        assert_eq!((0..50).filter(|_| limit.admit(now)).count(), 2);
        now += Duration::from_secs(3600);
        assert_eq!((0..50).filter(|_| limit.admit(now)).count(), 10);
        assert!(!RateLimit::new(0, now).admit(now));
    }
}
