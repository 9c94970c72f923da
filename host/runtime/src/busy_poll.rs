//! When a runtime looks again instead of sleeping.

use inhost_base::{Duration, Instant};

/// From how many received bytes a millisecond on a runtime sleeps at once (1 Gbit/s): what comes during the sleep and the waking
/// is then worked off together, and other threads get the core.
const BULK_BYTES_A_MS: u64 = 125_000;

/// Looks again for a while after something happened, if that is likely to find something.
pub(crate) struct BusyPoll {
    /// For how long after something happened.
    limit: Duration,
    /// When something happened last, as far as the clock was read.
    active_at: Instant,
    /// It has slept since.
    has_slept: bool,
    /// What ended the last sleep would have come within the limit: so may the next.
    is_hot: bool,
    /// Rounds without a look at readiness.
    spins: u32,
    /// Bytes that were received, and since when.
    received: (u64, Instant),
    /// So many that it sleeps at once.
    is_bulk: bool,
}

impl BusyPoll {
    /// It sleeps at once, until it has a limit.
    pub(crate) fn off(now: Instant) -> BusyPoll {
        BusyPoll {
            limit: Duration::ZERO,
            active_at: now,
            has_slept: false,
            is_hot: false,
            spins: 0,
            received: (0, now),
            is_bulk: false,
        }
    }
    pub(crate) fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }
    /// Rounds since the runtime last looked at readiness or slept.
    pub(crate) fn spins(&self) -> u32 {
        self.spins
    }
    /// Something happened, and so many bytes were received with it.
    pub(crate) fn note_activity(&mut self, now: Instant, received_bytes: u64) {
        let (bytes, since) = (self.received.0 + received_bytes, self.received.1);
        self.received = match bytes.checked_div(now.since(since).as_millis()) {
            Some(rate) => {
                self.is_bulk = rate >= BULK_BYTES_A_MS;
                (0, now)
            }
            None => (bytes, since),
        };
        if std::mem::take(&mut self.has_slept) {
            self.is_hot = now.since(self.active_at) <= self.limit;
        }
        self.active_at = now;
    }
    /// The runtime sleeps now.
    pub(crate) fn note_sleep(&mut self) {
        self.has_slept = true;
    }
    /// Counts a spin, unless it is time to sleep.
    pub(crate) fn goes_on(&mut self, now: impl FnOnce() -> Instant) -> bool {
        let may = self.limit > Duration::ZERO && self.is_hot && !self.is_bulk;
        let goes_on = may && now().since(self.active_at) < self.limit;
        self.spins = if goes_on { self.spins.wrapping_add(1) } else { 0 };
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_micros(50);

    /// Frames of so many bytes, one every `every`, for 5 ms; whether it looks again in the end.
    fn looks_again(bytes: u64, every: Duration) -> bool {
        let mut now = Instant::ZERO;
        let mut poll = BusyPoll::off(now);
        poll.set_limit(LIMIT);
        while now < Instant::from_millis(5) {
            if !poll.goes_on(|| now) {
                poll.note_sleep();
            }
            now += every;
            poll.note_activity(now, bytes);
        }
        poll.goes_on(|| now)
    }

    #[test]
    fn it_looks_again_while_little_comes_often() {
        let often = Duration::from_micros(20);
        assert!(looks_again(40, often));
        assert!(!looks_again(40, Duration::from_micros(60)));
        assert!(looks_again(1500, often));
        assert!(!looks_again(65_536, often), "bulk data");
    }
    #[test]
    fn a_while_without_data_ends_what_was_bulk() {
        let mut poll = BusyPoll::off(Instant::ZERO);
        poll.set_limit(LIMIT);
        poll.note_activity(Instant::from_millis(1), 1 << 20);
        assert!(poll.is_bulk);
        poll.note_activity(Instant::from_millis(100), 40);
        assert!(!poll.is_bulk);
    }
    #[test]
    fn it_stops_at_the_limit_and_without_one() {
        let mut poll = BusyPoll::off(Instant::ZERO);
        poll.is_hot = true;
        assert!(!poll.goes_on(|| Instant::ZERO));
        poll.set_limit(LIMIT);
        assert!(poll.goes_on(|| Instant::ZERO) && poll.spins() == 1);
        assert!(!poll.goes_on(|| Instant::ZERO + LIMIT) && poll.spins() == 0);
    }
}
