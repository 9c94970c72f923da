//! A sender whose flight stays the same round after round without a loss. A congestion window that limits would grow.
//! Spread over the round trip, its segments follow a pacer; in one piece, they wait for something else that is full.

use super::latest::Latest;
use crate::cause::Cause;

/// Rounds after which a flight is steady, without losses before and with some: a window that was reduced grows slowly.
const STEADY_ROUNDS: [u32; 2] = [8, 24];
/// Segments nearer to each other left together.
const TOGETHER_NS: u64 = 100_000;
/// Segments are spread when no gap takes more of a round trip, in per cent.
const SPREAD_PER_CENT: u64 = 80;

/// What the time of a window that never limited was taken for.
pub(super) const WINDOW: [Cause; 3] = [Cause::SlowStart, Cause::SlowStartRestart, Cause::CongestionWindow];

/// Time of each of these, in nanoseconds.
pub(super) type WindowTimes = [u64; WINDOW.len()];

/// The flights of the last rounds, and the gaps between segments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steady {
    peak: i64,
    rounds: u32,
    has_losses: bool,
    /// The times when the first of these rounds began.
    since_ns: WindowTimes,
    gaps_ns: Latest,
    is_spread: bool,
}

impl Steady {
    /// New data leaves so long after the last, while some is in flight or not.
    pub(super) fn sends(&mut self, gap_ns: u64, rtt_ns: u64, has_flight: bool) {
        if (TOGETHER_NS..rtt_ns).contains(&gap_ns) {
            self.gaps_ns.add(gap_ns);
        }
        self.is_spread &= !has_flight || gap_ns <= rtt_ns / 100 * SPREAD_PER_CENT;
    }
    /// The longest of the last gaps within a round trip.
    pub(super) fn gap_ns(&self) -> u64 {
        self.gaps_ns.largest()
    }
    /// What comes is compared with itself.
    pub(super) fn begins_anew(&mut self, since_ns: WindowTimes) {
        *self = Steady { since_ns, is_spread: true, peak: 0, rounds: 0, ..*self };
    }
    /// Something was lost.
    pub(super) fn loses(&mut self, since_ns: WindowTimes) {
        self.has_losses = true;
        self.begins_anew(since_ns);
    }
    fn needed(&self) -> u32 {
        STEADY_ROUNDS[usize::from(self.has_losses)]
    }
    /// A round ends with this peak in flight; whether the flight is found to be a pacer's, and how much of these times
    /// is its.
    pub(super) fn round(&mut self, peak: i64, mss: i64, now_ns: WindowTimes) -> Option<WindowTimes> {
        if peak >= self.peak + mss || peak < self.peak / 4 * 3 {
            let since_ns = self.since_ns;
            let has_grown = peak > self.peak + self.peak / 5;
            self.begins_anew(now_ns);
            if !has_grown {
                // Slow start was over before.
                let [slow_start, restart, _] = since_ns;
                [self.since_ns[0], self.since_ns[1]] = [slow_start, restart];
            }
            self.peak = peak;
            return None;
        }
        self.rounds = self.rounds.saturating_add(1);
        let since_ns = std::array::from_fn(|of| now_ns[of].saturating_sub(self.since_ns[of]));
        (self.rounds == self.needed() && self.is_spread).then_some(since_ns)
    }
    /// Whether a pacer spreads the segments.
    pub(super) fn is_paced(&self) -> bool {
        self.rounds >= self.needed() && self.is_spread
    }
}
