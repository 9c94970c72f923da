//! The round trip between the place of the capture and one end of a connection.

use std::collections::VecDeque;

/// Timestamps whose echo is awaited.
const MAX_STAMPS: usize = 64;

/// Samples of half a round at least.
const HALF_SAMPLES: u64 = 3;
/// A longer round trip is held to be this long.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Samples of one leg, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leg {
    least_ns: Option<u64>,
    /// The least of this half of a round trip and of the two before: a queue stands only if no sample of a whole one is
    /// short, and acknowledgments that were delayed on purpose do not count.
    halves: [Option<u64>; 3],
    half_samples: u64,
    half_from_ns: u64,
    current_ns: u64,
    /// When it was measured.
    current_at_ns: u64,
    largest_ns: u64,
    samples: u64,
    /// Timestamps sent toward this end, and when each was first seen.
    stamps: VecDeque<(u32, u64)>,
}

impl Leg {
    pub(crate) fn least_ns(&self) -> Option<u64> {
        self.least_ns
    }
    pub(crate) fn current_ns(&self) -> u64 {
        self.current_ns
    }
    /// The round trip that a segment sent at this time is expected to have. A queue that was measured drains since then.
    pub(crate) fn expected_ns(&self, at_ns: u64) -> Option<u64> {
        let least_ns = self.least_ns?;
        let drained_ns = at_ns.saturating_sub(self.current_at_ns);
        Some(self.current_ns.saturating_sub(drained_ns).max(least_ns))
    }
    pub(crate) fn largest_ns(&self) -> u64 {
        self.largest_ns
    }
    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }
    /// A sample. One that may hold a delay of acknowledgment counts for the least alone. `rtt_ns` is the whole path's.
    pub(crate) fn sample(&mut self, ns: u64, is_prompt: bool, now_ns: u64, rtt_ns: u64) {
        let ns = ns.min(LONGEST_NS);
        self.least_ns = Some(self.least_ns.map_or(ns, |least| least.min(ns)));
        if is_prompt || self.samples == 0 {
            if self.half_samples >= HALF_SAMPLES && now_ns.saturating_sub(self.half_from_ns) >= rtt_ns / 2 {
                self.halves = [None, self.halves[0], self.halves[1]];
                (self.half_samples, self.half_from_ns) = (0, now_ns);
            }
            self.halves[0] = Some(self.halves[0].map_or(ns, |least| least.min(ns)));
            self.half_samples += 1;
            self.samples += 1;
            self.current_ns = self.halves.iter().flatten().copied().min().unwrap_or(ns);
            self.current_at_ns = now_ns;
            self.largest_ns = self.largest_ns.max(self.current_ns);
        }
    }
    /// A segment with this timestamp goes toward this end.
    pub(crate) fn stamped(&mut self, value: u32, now_ns: u64) {
        if self.stamps.back().is_none_or(|&(last, _)| (value.wrapping_sub(last) as i32) > 0) {
            // A longer path gives as many samples, of fewer of its segments.
            if self.stamps.len() < MAX_STAMPS {
                self.stamps.push_back((value, now_ns));
            }
        }
    }
    /// This end echoes a timestamp; the age of the first segment that had it, once for each.
    pub(crate) fn echoed(&mut self, echo: u32, now_ns: u64) -> Option<u64> {
        while let Some(&(value, at)) = self.stamps.front()
            && (echo.wrapping_sub(value) as i32) >= 0
        {
            self.stamps.pop_front();
            if value == echo {
                return Some(now_ns.saturating_sub(at));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_queue_that_is_not_measured_drains() {
        let mut leg = Leg::default();
        assert_eq!(leg.expected_ns(0), None);
        leg.sample(20 * MS, true, 20 * MS, 20 * MS);
        // Several rounds of 100 ms.
        for index in 1..40 {
            leg.sample(100 * MS, true, (20 + 20 * index) * MS, 100 * MS);
        }
        let last_ns = 800 * MS;
        assert_eq!(leg.expected_ns(last_ns), Some(100 * MS));
        assert_eq!(leg.expected_ns(last_ns + 30 * MS), Some(70 * MS));
        assert_eq!(leg.expected_ns(last_ns + 500 * MS), Some(20 * MS));
    }
}
