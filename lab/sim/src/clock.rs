//! A host's own clock, which need not be right.

use inhost_base::{Duration, Instant};

const MILLION: i128 = 1_000_000;

/// Clock error of a host relative to network time. Begin with [`Clock::default`], a perfect one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clock {
    /// Offset from the network's time.
    pub ahead: Duration,
    /// By how much it is fast, in parts of a million; below zero it is slow. From -500,000 to 500,000.
    pub fast_per_million: i32,
}

impl Clock {
    /// The clock's reading at `now`.
    pub(crate) fn shows(&self, now: Instant) -> Instant {
        if *self == Clock::default() {
            return now;
        }
        let elapsed_ns = i128::from(now.as_nanos());
        let drift_ns = elapsed_ns * self.rate() / MILLION;
        Instant::from_nanos(drift_ns as u64) + self.ahead
    }
    /// When it first shows `at` or later.
    pub(crate) fn when(&self, at: Instant) -> Instant {
        if *self == Clock::default() || at == Instant::FAR_FUTURE {
            return at;
        }
        let shown_ns = i128::from(at.since(Instant::ZERO + self.ahead).as_nanos());
        let network_ns = (shown_ns * MILLION + self.rate() - 1) / self.rate();
        Instant::from_nanos(u64::try_from(network_ns).unwrap_or(u64::MAX))
    }
    fn rate(&self) -> i128 {
        MILLION + i128::from(self.fast_per_million.clamp(-500_000, 500_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_met_at_the_first_instant_at_which_the_clock_shows_it() {
        for fast_per_million in [-100_000, -37, 0, 1, 200, 333_333] {
            for ahead in [Duration::ZERO, Duration::from_millis(77)] {
                let clock = Clock { ahead, fast_per_million };
                for at_ns in [100_000_000, 1_234_567_891, 86_400_000_000_007] {
                    let at = Instant::from_nanos(at_ns);
                    let when = clock.when(at);
                    assert!(clock.shows(when) >= at, "{clock:?}");
                    assert!(clock.shows(Instant::from_nanos(when.as_nanos() - 1)) < at, "{clock:?}");
                }
            }
        }
        let fast = Clock { fast_per_million: 1000, ..Clock::default() };
        assert_eq!(fast.shows(Instant::from_millis(1000)), Instant::from_millis(1001));
    }
}
