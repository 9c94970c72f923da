//! When something is sent again, and when it is given up. RFC 1123 §4.2.3.2: time-outs follow the round trips and back
//! off, unless one was agreed on.

use inhost_base::{Duration, Instant};

/// The time-out before any round trip is known.
pub const FIRST_TIMEOUT: Duration = Duration::from_millis(1000);
/// The shortest: the other end may have to write to a disk.
pub const LEAST_TIMEOUT: Duration = Duration::from_millis(200);
/// The longest, after backing off.
pub const LONGEST_TIMEOUT: Duration = Duration::from_millis(8000);
/// Times that something is sent again at least before it is given up.
const LEAST_TRIES: u32 = 3;

/// One end's timer.
#[derive(Clone, Debug)]
pub(crate) struct Timer {
    /// The negotiated parameters.
    agreed: Option<Duration>,
    /// Timeout without any packet.
    give_up_after: Duration,
    smoothed: Option<Duration>,
    variation: Duration,
    /// Times that it ran out since something came.
    tries: u32,
    moved_at: Instant,
    due: Option<Instant>,
}

/// Nothing came for too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GaveUp;

impl Timer {
    pub(crate) fn new(give_up_after: Duration, now: Instant) -> Timer {
        Timer {
            agreed: None,
            give_up_after,
            smoothed: None,
            variation: Duration::ZERO,
            tries: 0,
            moved_at: now,
            due: None,
        }
    }
    /// A time-out was agreed on (RFC 2349), or none.
    pub(crate) fn agree(&mut self, agreed: Option<Duration>) {
        self.agreed = agreed;
    }
    /// The other end is who it says: it may take its time from now on.
    pub(crate) fn trust(&mut self, give_up_after: Duration) {
        self.give_up_after = give_up_after;
    }
    /// Whether it ran out since something came.
    pub(crate) fn is_again(&self) -> bool {
        self.tries > 0
    }
    /// Runs for `time`, in which the other end may ask again.
    pub(crate) fn dally(&mut self, time: Duration, now: Instant) {
        self.due = Some(now + time);
    }
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.due
    }
    /// The other end shows that it is there and something moves.
    pub(crate) fn progress(&mut self, now: Instant) {
        (self.moved_at, self.tries) = (now, 0);
    }
    /// A round trip, of something that was sent once (RFC 6298 §2 and Karn's rule).
    pub(crate) fn sample(&mut self, round_trip: Duration) {
        match self.smoothed {
            None => (self.smoothed, self.variation) = (Some(round_trip), round_trip.divided_by(2)),
            Some(smoothed) => {
                let apart = smoothed.max(round_trip) - smoothed.min(round_trip);
                self.variation = (self.variation.times(3) + apart).divided_by(4);
                self.smoothed = Some((smoothed.times(7) + round_trip).divided_by(8));
            }
        }
    }
    /// Runs from now on, `factor` times as long as it would.
    pub(crate) fn arm(&mut self, factor: u64, now: Instant) {
        self.due = Some(now + self.timeout().times(factor));
    }
    pub(crate) fn stop(&mut self) {
        self.due = None;
    }
    /// Whether it has run out; then it counts, and stands still until it is armed again.
    pub(crate) fn expire(&mut self, now: Instant) -> Result<bool, GaveUp> {
        if self.due.is_none_or(|due| now < due) {
            return Ok(false);
        }
        self.due = None;
        if now.since(self.moved_at) >= self.give_up_after && self.tries >= LEAST_TRIES {
            return Err(GaveUp);
        }
        self.tries += 1;
        Ok(true)
    }
    fn timeout(&self) -> Duration {
        if let Some(agreed) = self.agreed {
            return agreed;
        }
        let base = match self.smoothed {
            None => FIRST_TIMEOUT,
            Some(smoothed) => (smoothed + self.variation.times(4)).max(LEAST_TIMEOUT),
        };
        base.times(1 << self.tries.min(10)).min(LONGEST_TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVE_UP_AFTER: Duration = Duration::from_secs(30);

    /// The times at which it runs out when nothing ever comes.
    fn silence(mut timer: Timer) -> Vec<u64> {
        let mut times = Vec::new();
        let mut now = Instant::ZERO;
        loop {
            timer.arm(1, now);
            now = timer.deadline().unwrap();
            times.push(now.as_millis());
            if timer.expire(now) == Err(GaveUp) {
                return times;
            }
        }
    }

    #[test]
    fn backs_off_and_gives_up() {
        let fresh = Timer::new(GIVE_UP_AFTER, Instant::ZERO);
        assert_eq!(silence(fresh.clone()), [1_000, 3_000, 7_000, 15_000, 23_000, 31_000]);
        let mut near = fresh.clone();
        near.sample(Duration::from_millis(2));
        assert_eq!(silence(near)[..4], [200, 600, 1_400, 3_000]);
        let mut agreed = fresh;
        agreed.agree(Some(Duration::from_secs(20)));
        assert_eq!(silence(agreed), [20_000, 40_000, 60_000, 80_000], "three tries at least");
    }

    #[test]
    fn follows_the_round_trips() {
        let mut timer = Timer::new(GIVE_UP_AFTER, Instant::ZERO);
        timer.sample(Duration::from_millis(400));
        timer.arm(1, Instant::ZERO);
        assert_eq!(timer.deadline(), Some(Instant::from_millis(1_200)));
        for _ in 0..100 {
            timer.sample(Duration::from_millis(400));
        }
        timer.arm(1, Instant::ZERO);
        assert_eq!(timer.deadline(), Some(Instant::from_millis(400)));
        assert_eq!(timer.expire(Instant::from_millis(399)), Ok(false));
        assert_eq!(timer.expire(Instant::from_millis(400)), Ok(true));
        timer.progress(Instant::from_millis(500));
        timer.arm(2, Instant::from_millis(500));
        assert_eq!(timer.deadline(), Some(Instant::from_millis(1_300)));
    }
}
