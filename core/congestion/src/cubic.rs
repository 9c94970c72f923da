//! CUBIC (RFC 9438): after a loss the window grows along a cubic of time, slowly near where the loss was and
//! boldly beyond, and never slower than NewReno would.
//!
//! All in integers, so that a run repeats to the bit on any machine: windows in bytes, time in ticks of 2^-16 s.

use crate::prior::Prior;
use crate::{Acknowledged, CongestionWindow};
use inhost_base::{Duration, Instant};

/// `beta_cubic`: what a loss leaves, in percent (RFC 9438 §4.6).
const LOSS_LEAVES_PERCENT: u32 = 70;
/// What a mark leaves, in percent (RFC 8511 §3): a marking queue is short, so less is needed to empty it.
const MARK_LEAVES_PERCENT: u32 = 85;
/// Where fast convergence puts the plateau, in percent of the window: `(1 + beta_cubic) / 2` (RFC 9438 §4.7).
const CONVERGED_PERCENT: u64 = 85;
/// `C` is 0.4 segments per second cubed (RFC 9438 §5.1), as a fraction.
// spec: RFC9438 5.1-1
const C_DIVIDEND: i64 = 2;
const C_DIVISOR: i64 = 5;
/// `alpha_cubic`, `3 * (1 - beta) / (1 + beta)`, is 9/17 (RFC 9438 §4.3).
const ALPHA_DIVIDEND: u64 = 9;
const ALPHA_DIVISOR: u64 = 17;
/// Ticks in a second, as a power of two.
const TICK_SHIFT: u32 = 16;
/// Longest time from the plateau that is told apart: 256 s, when the curve is far beyond any window.
const MOST_TICKS: i64 = 256 << TICK_SHIFT;

/// The whole state, made when slow start ends.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Cubic {
    prior: Prior,
    curve: Curve,
    /// The curve before the last reduction (RFC 9438 §4.9).
    prior_curve: Curve,
}

#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Curve {
    /// `W_max`: where the plateau is; 0 when no loss has told (RFC 9438 §4.8, §4.10).
    plateau_bytes: u32,
    /// `cwnd_prior`: the window before the latest reduction; 0 when there was none.
    before_bytes: u32,
    stage: Option<Stage>,
}

/// A stretch of congestion avoidance.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Stage {
    /// `t_epoch`, later by the time during which the application set the pace.
    start: Instant,
    /// Since when it does.
    paused_at: Option<Instant>,
    /// `K`: from the start until the window is at the plateau.
    to_plateau_ticks: i64,
    /// `W_est`: the window that NewReno would have.
    estimate_bytes: u32,
    /// What of the estimate is not yet a byte.
    estimate_remainder: u64,
    /// What of the growth is not yet a byte.
    growth_remainder: u64,
}

impl Cubic {
    /// `bytes` were acknowledged in congestion avoidance.
    // spec: RFC9438 4.2-2, 4.3-1, 4.4-1, 4.5-1
    pub fn acknowledged(&mut self, window: &mut CongestionWindow, acknowledged: &Acknowledged) {
        let Acknowledged { bytes, smoothed_round_trip: round_trip, least_round_trip: least, now, .. } =
            *acknowledged;
        let cwnd = window.window_bytes;
        let curve = &mut self.curve;
        let stage = match &mut curve.stage {
            Some(stage) => stage,
            None => {
                // spec: RFC9438 4.10-3
                // RFC 9438 §4.8, §4.10: without a loss to aim at, or beyond it, the curve begins at its plateau.
                curve.plateau_bytes = curve.plateau_bytes.max(cwnd);
                curve.stage.insert(Stage::new(curve.plateau_bytes, window, now))
            }
        };
        stage.resume(now);
        let plateau = i64::from(curve.plateau_bytes);
        // RFC 9438 §4.3: alpha is 1 once the estimate has come to where the loss was. Not where data waits as long as
        // it travels: nothing is left to take there, and a longer queue only delays the next repair.
        let probing = stage.estimate_bytes >= curve.before_bytes && round_trip <= least.times(2);
        stage.estimate(bytes, window, if probing { ALPHA_DIVISOR } else { ALPHA_DIVIDEND });
        let elapsed = ticks(now.since(stage.start)) - stage.to_plateau_ticks;
        if plateau + cubic(elapsed, window.segment_bytes) < i64::from(stage.estimate_bytes) {
            // RFC 9438 §4.3: NewReno's region.
            window.window_bytes = cwnd.max(stage.estimate_bytes);
            return;
        }
        // RFC 9438 §4.2: where the curve will be a round trip from now, within half as much again. §4.4, §4.5: the
        // window gets there in one window's worth of acknowledgments.
        let ahead = plateau + cubic(elapsed + ticks(round_trip), window.segment_bytes);
        let target = ahead.clamp(i64::from(cwnd), i64::from(cwnd) + i64::from(cwnd) / 2) as u64;
        let growth = (target - u64::from(cwnd)) * u64::from(bytes) + stage.growth_remainder;
        let divisor = u64::from(cwnd.max(1));
        stage.growth_remainder = growth % divisor;
        window.window_bytes = cwnd.saturating_add((growth / divisor) as u32);
    }
    /// The application sets the pace now: time stands still (RFC 9438 §4.2, §5.8).
    // spec: RFC9438 4.2-1
    pub fn pause(&mut self, now: Instant) {
        if let Some(stage) = &mut self.curve.stage {
            stage.paused_at.get_or_insert(now);
        }
    }
    /// After idleness something is sent again.
    pub fn resume(&mut self, now: Instant) {
        if let Some(stage) = &mut self.curve.stage {
            stage.resume(now);
        }
    }
    /// A loss (RFC 9438 §4.6). Lowered from the window, not from what is in flight: a peer whose window was closed for
    /// a moment leaves little in flight, and that says nothing of the path. Usage keeps a window that is not in use
    /// from growing, as §4.6 then asks.
    // spec: RFC9438 4.6-2
    pub fn lost(&mut self, window: &mut CongestionWindow) {
        self.reduce(window);
        window.threshold_bytes = window.threshold_of(window.window_bytes, LOSS_LEAVES_PERCENT).0;
    }
    /// A mark. True when the window is to be less than two segments.
    pub fn marked(&mut self, window: &mut CongestionWindow) -> bool {
        self.reduce(window);
        let (threshold_bytes, is_less) = window.threshold_of(window.window_bytes, MARK_LEAVES_PERCENT);
        window.threshold_bytes = threshold_bytes;
        is_less
    }
    /// RFC 9438 §4.8: the next stage begins at its plateau, wherever slow start ends.
    // spec: RFC9438 4.8-1
    pub fn timed_out(&mut self) {
        self.curve.plateau_bytes = 0;
        self.curve.stage = None;
    }
    /// RFC 9438 §4.9: the curve is what it was.
    // spec: RFC9438 4.9-1
    pub fn undo(&mut self) {
        self.curve = self.prior_curve;
    }
    /// What the last reduction replaced.
    pub fn prior(&mut self) -> &mut Prior {
        &mut self.prior
    }
    /// Segments are of another size, in which the curve is counted, or the window begins small again: the next stage
    /// aims at the same plateau.
    pub fn end_stage(&mut self) {
        self.curve.stage = None;
    }
    // spec: RFC9438 4.7-1
    fn reduce(&mut self, window: &CongestionWindow) {
        let cwnd = window.window_bytes;
        self.prior_curve = self.curve;
        // RFC 9438 §4.7, fast convergence: a window that shrinks makes room for a newcomer.
        let shrinks = cwnd < self.curve.plateau_bytes;
        let converged = (u64::from(cwnd) * CONVERGED_PERCENT / 100) as u32;
        let plateau_bytes = if shrinks { converged } else { cwnd };
        self.curve = Curve { plateau_bytes, before_bytes: cwnd, stage: None };
    }
}

impl Stage {
    fn new(plateau_bytes: u32, window: &CongestionWindow, now: Instant) -> Self {
        Stage {
            start: now,
            paused_at: None,
            to_plateau_ticks: to_plateau(plateau_bytes - window.window_bytes, window.segment_bytes),
            estimate_bytes: window.window_bytes,
            estimate_remainder: 0,
            growth_remainder: 0,
        }
    }
    fn resume(&mut self, now: Instant) {
        if let Some(paused_at) = self.paused_at.take() {
            self.start += now.since(paused_at);
        }
    }
    /// RFC 9438 §4.3, equation 4, by bytes: `alpha_17ths` of a segment for each window acknowledged.
    // spec: RFC9438 4.3-2
    fn estimate(&mut self, bytes: u32, window: &CongestionWindow, alpha_17ths: u64) {
        let divisor = ALPHA_DIVISOR * u64::from(window.window_bytes.max(1));
        let growth =
            alpha_17ths * u64::from(bytes) * u64::from(window.segment_bytes) + self.estimate_remainder;
        self.estimate_remainder = growth % divisor;
        self.estimate_bytes = self.estimate_bytes.saturating_add((growth / divisor) as u32);
    }
}

fn ticks(time: Duration) -> i64 {
    // 2^16 / 10^9, in lowest terms
    ((time.as_nanos().min(1 << 40) * 128) / 1_953_125) as i64
}

/// `C * t^3` in bytes, for `t` in ticks from the plateau.
fn cubic(t: i64, segment_bytes: u32) -> i64 {
    let t = t.clamp(-MOST_TICKS, MOST_TICKS);
    // Shifted twice, so that 64 bits hold it; what is cut off is less than a hundredth of a byte a step.
    let cubed = (((t * t) >> TICK_SHIFT) * t) >> TICK_SHIFT;
    (cubed * i64::from(segment_bytes) * C_DIVIDEND / C_DIVISOR) >> TICK_SHIFT
}

/// `K`: the ticks in which the curve climbs `bytes` to its plateau (RFC 9438 §4.2, equation 2).
fn to_plateau(bytes: u32, segment_bytes: u32) -> i64 {
    let (c, per_c) = (C_DIVIDEND as u128, C_DIVISOR as u128);
    let cube = ((u128::from(bytes) * per_c) << (3 * TICK_SHIFT)) / (c * u128::from(segment_bytes.max(1)));
    // The largest number whose cube is no more, bit by bit.
    let mut root: u128 = 0;
    for bit in (0..=24).rev() {
        let larger = root | 1 << bit;
        if larger * larger * larger <= cube {
            root = larger;
        }
    }
    root as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_integers_are_those_of_the_formula() {
        for segments in [1, 10, 1000, 100_000, 700_000] {
            let ticks = to_plateau(segments * 1460, 1460);
            let exact_s = (f64::from(segments) / 0.4).cbrt();
            let seconds = ticks as f64 / 65536.0;
            assert!((seconds - exact_s).abs() < 0.0001, "{segments}: {seconds} for {exact_s}");
            let climbs = cubic(ticks, 1460);
            let bytes = i64::from(segments) * 1460;
            assert!((climbs - bytes).abs() <= 30 + bytes / 50_000, "{segments}: {climbs} for {bytes}");
            assert!((cubic(-ticks, 1460) + climbs).abs() <= 1);
        }
        assert_eq!(ticks(Duration::from_secs(10)), 10 << 16);
    }
}
