//! Pacing of a serial line at its baud rate, because a pty accepts everything at once.

use inhost_base::{Duration, Instant};

/// An octet on an asynchronous line: start bit, eight data bits, stop bit.
pub(super) const BITS_PER_OCTET: u64 = 10;
/// How late the driver may be called and still make up for it; after more, time that has passed is lost.
const CATCH_UP: Duration = Duration::from_millis(100);
/// On lines faster than an octet in this time several octets go at once, so that the line does not cost a wake-up
/// for each.
const QUANTUM: Duration = Duration::from_millis(1);

/// The octet that is on the line, and when the line is free again.
#[derive(Debug)]
pub(super) struct Pace {
    baud: u64,
    /// Remainder of the octet times in whole nanoseconds, in 1/`baud` ns.
    remainder: u64,
    shifting: Option<(u8, Instant)>,
    /// When the octet before left the line, while no time has passed since that another could have used.
    free_since: Option<Instant>,
    octets: u64,
}

impl Pace {
    pub(super) fn new(baud: u32) -> Self {
        Pace { baud: u64::from(baud.max(1)), remainder: 0, shifting: None, free_since: None, octets: 0 }
    }
    /// The octet that has left the line by `now`.
    pub(super) fn finish(&mut self, now: Instant) -> Option<u8> {
        let (octet, end) = self.shifting.filter(|(_, end)| *end <= now)?;
        self.shifting = None;
        self.free_since = Some(end);
        Some(octet)
    }
    /// Whether the next octet may begin.
    pub(super) fn is_free(&self) -> bool {
        self.shifting.is_none()
    }
    /// When the octet that is begun now begins: right behind the one before, where that has just left.
    pub(super) fn begins_at(&self, now: Instant) -> Instant {
        self.free_since.map_or(now, |free| free.max(now - CATCH_UP)).min(now)
    }
    /// Puts an octet on the line.
    pub(super) fn begin(&mut self, octet: u8, now: Instant) {
        let total_ns = BITS_PER_OCTET * 1_000_000_000 + self.remainder;
        self.remainder = total_ns % self.baud;
        let end = self.begins_at(now) + Duration::from_nanos(total_ns / self.baud);
        self.shifting = Some((octet, end));
        self.octets += 1;
    }
    /// There is nothing to send: the line's time passes unused.
    pub(super) fn rest(&mut self) {
        self.free_since = None;
    }
    /// When to be called again: at the end of the octet on the line, or a little later on a fast line when `more`
    /// octets follow.
    pub(super) fn deadline(&self, more: usize) -> Option<Instant> {
        let (_, end) = self.shifting?;
        let rest = self.time(more as u64).min(QUANTUM);
        Some(if self.time(1) < QUANTUM { end + rest } else { end })
    }
    /// How long `octets` take.
    pub(super) fn time(&self, octets: u64) -> Duration {
        let total_ns = u128::from(octets) * u128::from(BITS_PER_OCTET) * 1_000_000_000;
        Duration::from_nanos(u64::try_from(total_ns / u128::from(self.baud)).unwrap_or(u64::MAX))
    }
    /// Octets put on the line so far.
    pub(super) fn octets(&self) -> u64 {
        self.octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When the last of `octets` leaves a line of `baud` that is looked at every `step`.
    fn last_leaves(baud: u32, octets: u32, step: Duration) -> Instant {
        let (mut pace, mut now, mut begun, mut left) = (Pace::new(baud), Instant::ZERO, 0, 0);
        loop {
            loop {
                left += u32::from(pace.finish(now).is_some());
                if !pace.is_free() || begun == octets {
                    break;
                }
                pace.begin(0, now);
                begun += 1;
            }
            if left == octets {
                return now;
            }
            now += step;
        }
    }

    #[test]
    fn the_rate_is_kept_however_often_the_line_is_looked_at() {
        for (baud, octets) in [(9600, 960), (300, 30), (115_200, 11_520), (1_000_000, 100_000)] {
            for step_us in [100, 1_000, 7_000] {
                let end = last_leaves(baud, octets, Duration::from_micros(step_us)).as_micros();
                assert!((1_000_000..1_000_000 + 2 * step_us).contains(&end), "{baud}: {end} us");
            }
        }
    }

    #[test]
    fn idle_time_is_not_saved_up_and_a_long_stop_is_not_made_up_for() {
        let mut pace = Pace::new(9600);
        pace.begin(1, Instant::ZERO);
        assert_eq!(pace.finish(Instant::from_millis(1)), None);
        assert_eq!(pace.finish(Instant::from_millis(2)), Some(1));
        pace.rest();
        assert_eq!(pace.begins_at(Instant::from_millis(50)), Instant::from_millis(50));
        pace.begin(2, Instant::from_millis(50));
        let late = Instant::from_millis(60_000);
        assert_eq!(pace.finish(late), Some(2));
        assert_eq!(pace.begins_at(late), late - CATCH_UP);
    }
}
