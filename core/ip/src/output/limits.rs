//! Rate limits of ICMP errors: token buckets (RFC 1812 §4.3.2.8, RFC 4443 §2.4 (f)).

use crate::config::ErrorPace;
use crate::table::{Keyed, Map};
use inhost_base::{Duration, Instant, IpAddr, Random, RateLimit};

/// Errors that may follow each other at once, to whomever.
const BURST: u32 = 50;
/// One more is allowed after so long.
const INTERVAL: Duration = Duration::from_millis(10);

/// Most destinations that are counted. At the limit the one with the oldest error is replaced.
pub(crate) const DESTINATION_LIMIT: usize = 1024;

/// The limit of the host, and that of each destination.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ErrorLimits {
    all: RateLimit,
    pace: Option<ErrorPace>,
    #[cfg_attr(feature = "freeze", serde(with = "crate::table::frozen"))]
    each: Map<IpAddr, RateLimit>,
}

impl ErrorLimits {
    pub fn new(pace: Option<ErrorPace>, keyed: Keyed) -> Self {
        ErrorLimits {
            all: RateLimit::new(INTERVAL, BURST, Instant::ZERO),
            pace,
            each: Map::with_hasher(keyed),
        }
    }
    /// Chooses a new key.
    #[cfg(feature = "freeze")]
    pub fn rekey(&mut self, keyed: Keyed) {
        crate::table::rekey(&mut self.each, keyed);
    }
    /// Whether the host may send one more, to whomever; it is counted. All peers share this limit.
    // spec: RFC4443 2.4, RFC1812 4.3.2.8
    pub fn allows(&mut self, now: Instant, random: &mut Random) -> bool {
        self.all.admit_blurred(now, random)
    }
    /// Whether `destination` may get one more error; it is counted.
    pub fn allows_to(&mut self, destination: IpAddr, now: Instant) -> bool {
        let Some(pace) = self.pace else { return true };
        let interval = if destination.is_ipv4() { pace.interval_v4 } else { pace.interval_v6 };
        if self.each.len() >= DESTINATION_LIMIT && !self.each.contains_key(&destination) {
            self.make_room();
        }
        let limit = self.each.entry(destination).or_insert_with(|| RateLimit::new(interval, pace.burst, now));
        limit.admit(now)
    }
    fn make_room(&mut self) {
        let oldest = self.each.iter().map(|(destination, limit)| (limit.asked_at(), *destination)).min();
        if let Some((_, oldest)) = oldest {
            self.each.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_destination_has_a_burst_and_an_interval_of_its_own_within_bounds() {
        let pace = ErrorPace {
            burst: 6,
            interval_v4: Duration::from_secs(1),
            interval_v6: Duration::from_millis(250),
        };
        let mut limits = ErrorLimits::new(Some(pace), Keyed::new(&mut Random::from_number(1)));
        let (v4, v6): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap());
        let start = Instant::from_millis(5_000);
        let mut count = |to: IpAddr, after: u64| {
            let now = start + Duration::from_millis(after);
            (0..100).filter(|_| limits.allows_to(to, now)).count()
        };
        assert_eq!((count(v4, 0), count(v6, 0)), (6, 6));
        assert_eq!((count(v4, 999), count(v6, 999)), (0, 3));
        assert_eq!((count(v4, 3_000), count(v6, 1_000)), (3, 1));
        assert_eq!(count(v4, 60_000), 6, "no more is saved than a burst");
        for i in 0..5_000u32 {
            assert!(limits.allows_to(IpAddr::V4(i.into()), start));
        }
        assert_eq!(limits.each.len(), DESTINATION_LIMIT);
        let mut none = ErrorLimits::new(None, Keyed::new(&mut Random::from_number(1)));
        assert!((0..1_000).all(|_| none.allows_to(v4, start)));
    }

    // spec: RFC4443 2.4
    #[test]
    fn a_flood_is_answered_at_the_rate_of_the_bucket() {
        let mut limits = ErrorLimits::new(None, Keyed::new(&mut Random::from_number(1)));
        let mut random = Random::from_number(1);
        let mut sent = 0;
        for i in 0..1_000_000u64 {
            sent += u32::from(limits.allows(Instant::from_nanos(i * 10_000), &mut random));
        }
        // Ten seconds: a burst, and at most one each 10 ms.
        assert!((300..=1_050).contains(&sent), "{sent}");
        assert!(limits.allows(Instant::from_millis(20_000), &mut random), "and it recovers");
    }
}
