//! The highest rate at which data was acknowledged: a lower bound of the path's.

/// Bytes over which a rate is measured.
const LEAST_BYTES: u64 = 30_000;
/// A shorter time, or less than half a round trip, measures bursts.
const LEAST_NS: u64 = 1_000_000;

/// In bytes a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeakRate {
    since_ns: u64,
    bytes: u64,
    best: u64,
    last: u64,
}

impl PeakRate {
    pub(crate) fn acknowledged(&mut self, bytes: u64, now_ns: u64, least_rtt_ns: u64) {
        if self.since_ns == 0 {
            self.since_ns = now_ns;
            return;
        }
        self.bytes += bytes;
        let passed = now_ns.saturating_sub(self.since_ns);
        if passed >= LEAST_NS.max(least_rtt_ns / 2) && self.bytes >= LEAST_BYTES {
            let rate = u128::from(self.bytes) * 1_000_000_000 / u128::from(passed);
            let rate = u64::try_from(rate).unwrap_or(u64::MAX);
            // Two in a row, so that a burst of acknowledgments does not count.
            self.best = self.best.max(rate.min(std::mem::replace(&mut self.last, rate)));
            (self.since_ns, self.bytes) = (now_ns, 0);
        }
    }
    /// What is acknowledged at once when a hole closes had arrived before.
    pub(crate) fn begins_anew(&mut self) {
        (self.since_ns, self.bytes) = (0, 0);
    }
    /// Whether the last rate is nearly the highest.
    pub(crate) fn is_at_peak(&self) -> bool {
        self.best > 0 && self.last >= self.best / 4 * 3
    }
    /// How long so many bytes take at the last rate; 0 where there is none.
    pub(crate) fn time_ns(&self, bytes: u64) -> u64 {
        match self.last {
            0 => 0,
            rate => (u128::from(bytes) * 1_000_000_000 / u128::from(rate)).min(u128::from(u32::MAX)) as u64,
        }
    }
    pub(crate) fn best(&self) -> u64 {
        self.best
    }
}
