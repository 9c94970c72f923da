//! Rate limits of ICMP errors: token buckets (RFC 1812 §4.3.2.8, RFC 4443 §2.4 (f)).

use crate::config::ErrorPace;
use crate::table::{Keyed, Map};
use inhost_base::{Duration, Instant, IpAddr, Random};

/// Errors that may follow each other at once.
const BURST: u32 = 50;
/// One more is allowed after so long.
const INTERVAL: Duration = Duration::from_millis(10);
/// Up to so many tokens vanish with each error sent, so that the state of the bucket, which all peers share, cannot be
/// read by counting (the SAD DNS attack).
const BLUR: u32 = 3;

/// The bucket of a host.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
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

/// Most destinations that are counted. At the limit the one with the oldest error is replaced.
pub(crate) const DESTINATION_LIMIT: usize = 1024;

/// Remaining tokens of each destination.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ErrorLimits {
    pace: Option<ErrorPace>,
    #[cfg_attr(feature = "freeze", serde(with = "crate::table::frozen"))]
    buckets: Map<IpAddr, Bucket>,
}

/// The time that a destination has saved up, of which each error takes an interval.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Bucket {
    saved: Duration,
    at: Instant,
}

impl ErrorLimits {
    pub fn new(pace: Option<ErrorPace>, keyed: Keyed) -> Self {
        ErrorLimits { pace, buckets: Map::with_hasher(keyed) }
    }
    /// Chooses a new key.
    #[cfg(feature = "freeze")]
    pub fn rekey(&mut self, keyed: Keyed) {
        crate::table::rekey(&mut self.buckets, keyed);
    }
    /// Whether `destination` may get one more error; it is counted.
    pub fn allows(&mut self, destination: IpAddr, now: Instant) -> bool {
        let Some(pace) = self.pace else { return true };
        let interval = if destination.is_ipv4() { pace.interval_v4 } else { pace.interval_v6 };
        let most = interval.times(u64::from(pace.burst));
        if self.buckets.len() >= DESTINATION_LIMIT && !self.buckets.contains_key(&destination) {
            self.make_room();
        }
        let bucket = self.buckets.entry(destination).or_insert(Bucket { saved: most, at: now });
        bucket.saved = (bucket.saved + now.since(bucket.at)).min(most);
        bucket.at = now;
        let is_allowed = bucket.saved >= interval;
        if is_allowed {
            bucket.saved -= interval;
        }
        is_allowed
    }
    fn make_room(&mut self) {
        let oldest = self.buckets.iter().map(|(destination, bucket)| (bucket.at, *destination)).min();
        if let Some((_, oldest)) = oldest {
            self.buckets.remove(&oldest);
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
            (0..100).filter(|_| limits.allows(to, now)).count()
        };
        assert_eq!((count(v4, 0), count(v6, 0)), (6, 6));
        assert_eq!((count(v4, 999), count(v6, 999)), (0, 3));
        assert_eq!((count(v4, 3_000), count(v6, 1_000)), (3, 1));
        assert_eq!(count(v4, 60_000), 6, "no more is saved than a burst");
        for i in 0..5_000u32 {
            assert!(limits.allows(IpAddr::V4(i.into()), start));
        }
        assert_eq!(limits.buckets.len(), DESTINATION_LIMIT);
        let mut none = ErrorLimits::new(None, Keyed::new(&mut Random::from_number(1)));
        assert!((0..1_000).all(|_| none.allows(v4, start)));
    }

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
