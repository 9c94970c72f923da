//! The round trip between the place of the capture and one end of a connection.

use std::collections::VecDeque;

/// Timestamps whose echo is awaited.
const MAX_STAMPS: usize = 64;

/// Samples of which the least is the current round trip.
const WINDOW: usize = 8;
/// A longer round trip is held to be this long.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Samples of one leg, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leg {
    least_ns: Option<u64>,
    /// The last samples, and the least of these: acknowledgments that were delayed on purpose do not count.
    window: [u64; WINDOW],
    current_ns: u64,
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
    pub(crate) fn largest_ns(&self) -> u64 {
        self.largest_ns
    }
    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }
    /// A sample. One that may hold a delay of acknowledgment counts for the least alone.
    pub(crate) fn sample(&mut self, ns: u64, is_prompt: bool) {
        let ns = ns.min(LONGEST_NS);
        self.least_ns = Some(self.least_ns.map_or(ns, |least| least.min(ns)));
        if is_prompt || self.samples == 0 {
            self.window[self.samples as usize % WINDOW] = ns;
            self.samples += 1;
            let filled = self.window.iter().take(self.samples.min(WINDOW as u64) as usize);
            self.current_ns = filled.copied().min().unwrap_or(ns);
            self.largest_ns = self.largest_ns.max(self.current_ns);
        }
    }
    /// A segment with this timestamp goes toward this end.
    pub(crate) fn stamped(&mut self, value: u32, now_ns: u64) {
        if self.stamps.back().is_none_or(|&(last, _)| (value.wrapping_sub(last) as i32) > 0) {
            if self.stamps.len() == MAX_STAMPS {
                self.stamps.pop_front();
            }
            self.stamps.push_back((value, now_ns));
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
