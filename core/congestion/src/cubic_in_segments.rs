//! CUBIC computed in whole segments and whole milliseconds, as Linux computes it: for the `linux` profile.
//!
//! What a peer, or a test that reads the window, can tell from RFC 9438 as `cubic` has it:
//!
//! - The window counts segments. In congestion avoidance it grows by one for so many acknowledged, and that count is
//!   reckoned anew at most once a millisecond; it is never below two, so the window grows by half each round at most,
//!   and at most 20 while no loss has told where the plateau is.
//! - The curve looks ahead by the least round trip rather than the smoothed one.
//! - A reduction counts from the window, not from what is in flight, and a mark costs as much as a loss.
//! - A time-out forgets the curve, so that the next plateau is where slow start ends; an undone reduction does not
//!   bring the curve back.
//! - Slow start ends by the older HyStart: when the least round trip of eight has grown by an eighth (4 to 16 ms), or
//!   when a train of closely spaced acknowledgments lasts for half the least round trip; from 16 segments on, at
//!   once, without a conservative state. It is armed again by a time-out.
//! - Idleness halves the window for each retransmission time-out, down to the initial window.

use crate::prior::Prior;
use crate::{Acknowledged, CongestionWindow};
use inhost_base::{Duration, Instant};

/// What a reduction leaves, in 1024ths.
const BETA: u64 = 717;
const ONE: u64 = 1024;
/// `C`, in 1024ths of a segment per second cubed.
const C: u64 = 410;
/// HyStart's least window, in segments.
const HYSTART_LEAST_SEGMENTS: u32 = 16;
const HYSTART_SAMPLES: u8 = 8;
const HYSTART_LEAST_GROWTH: Duration = Duration::from_millis(4);
const HYSTART_MOST_GROWTH: Duration = Duration::from_millis(16);
/// Acknowledgments so close belong to one train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// What aggregation may add to a train: so many bytes' time at the pace of slow start, at most a millisecond.
const AGGREGATE_BYTES: u64 = 4 * 65_536;
const MOST_AGGREGATE: Duration = Duration::from_millis(1);
/// Round trips right after a reduction are not a measure of the path.
const UNSETTLED: Duration = Duration::from_secs(1);
/// Segments acknowledged for each that the window grows, at least; and at most while no loss is known.
const LEAST_PER_SEGMENT: u32 = 2;
const MOST_PER_SEGMENT_UNTRIED: u32 = 20;
/// How long a reckoning holds while the window stays.
const HOLDS_MS: u64 = 31;

/// The whole state.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct CubicInSegments {
    prior: Prior,
    curve: Curve,
    /// Segments acknowledged since the window last grew.
    counted: u32,
    hystart: HyStart,
}

/// What a time-out forgets.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Curve {
    /// Window before the latest reduction, after fast convergence; 0 when none is known.
    plateau: u32,
    /// Segments to be acknowledged for each that the window grows.
    per_segment: u32,
    /// Window and millisecond of the latest reckoning.
    reckoned_window: u32,
    reckoned_ms: u64,
    /// Least round trip since the last time-out.
    least_round_trip: Option<Duration>,
    stage: Option<Stage>,
}

/// A stretch of congestion avoidance.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Stage {
    start_ms: u64,
    /// Where the curve is flat, and when, in 1024ths of a second from the start.
    origin: u32,
    to_origin: u64,
    /// Segments acknowledged that have not moved the estimate.
    acknowledged: u32,
    /// The window that Reno would have.
    estimate: u32,
}

#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct HyStart {
    found: bool,
    samples: u8,
    least: Duration,
    round_start: Instant,
    latest: Instant,
    round_end_bytes: u64,
}

impl Default for HyStart {
    fn default() -> Self {
        HyStart {
            found: false,
            samples: 0,
            least: Duration::MAX,
            round_start: Instant::ZERO,
            latest: Instant::ZERO,
            round_end_bytes: 0,
        }
    }
}

impl CubicInSegments {
    /// What the last reduction replaced.
    pub fn prior(&mut self) -> &mut Prior {
        &mut self.prior
    }
    /// An acknowledgment, in recovery or not: what its round trip tells.
    pub fn measured(&mut self, window: &mut CongestionWindow, acknowledged: &Acknowledged) {
        let Some(round_trip) = acknowledged.latest_round_trip else { return };
        let now = acknowledged.now;
        if let Some(stage) = &self.curve.stage
            && now.as_millis().saturating_sub(stage.start_ms) < UNSETTLED.as_millis()
        {
            return;
        }
        let round_trip = round_trip.max(Duration::from_micros(1));
        let least = self.curve.least_round_trip.map_or(round_trip, |least| least.min(round_trip));
        self.curve.least_round_trip = Some(least);
        if !self.hystart.found && window.in_slow_start() {
            self.hystart.measured(window, round_trip, least, acknowledged);
        }
    }
    /// `bytes` were acknowledged outside recovery by a window in use.
    pub fn acknowledged(&mut self, window: &mut CongestionWindow, bytes: u32, now: Instant) {
        let mut segments = bytes.div_ceil(window.segment_bytes.max(1));
        let mut cwnd = window.segments();
        if window.in_slow_start() {
            let threshold = window.threshold_bytes / window.segment_bytes.max(1);
            let grown = cwnd.saturating_add(segments).min(threshold);
            segments -= grown - cwnd.min(grown);
            cwnd = grown;
        }
        if segments > 0 {
            self.curve.reckon(cwnd, segments, now);
            cwnd = self.count(cwnd, segments);
        }
        window.window_bytes = cwnd.saturating_mul(window.segment_bytes);
    }
    /// The window after `segments` more were acknowledged.
    fn count(&mut self, mut cwnd: u32, segments: u32) -> u32 {
        let needed = self.curve.per_segment.max(1);
        if self.counted >= needed {
            self.counted = 0;
            cwnd += 1;
        }
        self.counted += segments;
        let grows = self.counted / needed;
        self.counted -= grows * needed;
        cwnd + grows
    }
    /// A loss or a mark.
    pub fn lost(&mut self, window: &mut CongestionWindow) {
        let cwnd = u64::from(window.segments());
        self.curve.stage = None;
        let shrinks = cwnd < u64::from(self.curve.plateau);
        self.curve.plateau = if shrinks { cwnd * (ONE + BETA) / (2 * ONE) } else { cwnd } as u32;
        let left = ((cwnd * BETA / ONE) as u32).max(2);
        window.threshold_bytes = left * window.segment_bytes;
    }
    /// After [`lost`](CubicInSegments::lost): a time-out forgets all.
    pub fn timed_out(&mut self) {
        self.curve = Curve::default();
        self.hystart = HyStart::default();
        self.counted = 0;
    }
    /// Data leaves after `idle` without any: the curve has waited.
    pub fn resumed(&mut self, idle: Duration, now: Instant) {
        if let Some(stage) = &mut self.curve.stage {
            stage.start_ms = (stage.start_ms + idle.as_millis()).min(now.as_millis());
        }
    }
}

impl Curve {
    /// How many acknowledged segments the next one of the window costs.
    fn reckon(&mut self, cwnd: u32, segments: u32, now: Instant) {
        let now_ms = now.as_millis();
        if let Some(stage) = &mut self.stage {
            stage.acknowledged += segments;
            let stale_ms = now_ms.saturating_sub(self.reckoned_ms);
            if self.reckoned_window == cwnd && stale_ms <= HOLDS_MS {
                return;
            }
            if stale_ms > 0 {
                self.follow_the_curve(cwnd, now_ms);
            }
        } else {
            self.stage = Some(Stage::new(self.plateau, cwnd, segments, now_ms));
            self.follow_the_curve(cwnd, now_ms);
        }
        if let Some(stage) = &mut self.stage {
            stage.follow_reno(cwnd);
            if stage.estimate > cwnd {
                self.per_segment = self.per_segment.min(cwnd / (stage.estimate - cwnd));
            }
        }
        self.per_segment = self.per_segment.max(LEAST_PER_SEGMENT);
    }
    fn follow_the_curve(&mut self, cwnd: u32, now_ms: u64) {
        let Some(stage) = &self.stage else { return };
        (self.reckoned_window, self.reckoned_ms) = (cwnd, now_ms);
        let ahead_ms = self.least_round_trip.map_or(0, Duration::as_millis);
        let target = stage.target(now_ms, ahead_ms);
        self.per_segment =
            if target > u64::from(cwnd) { cwnd / (target - u64::from(cwnd)) as u32 } else { 100 * cwnd };
        if self.plateau == 0 {
            self.per_segment = self.per_segment.min(MOST_PER_SEGMENT_UNTRIED);
        }
    }
}

impl Stage {
    fn new(plateau: u32, cwnd: u32, segments: u32, now_ms: u64) -> Self {
        let climbs = u64::from(plateau.saturating_sub(cwnd));
        Stage {
            start_ms: now_ms,
            origin: plateau.max(cwnd),
            to_origin: cube_root((u128::from(climbs) << 40) / u128::from(C)),
            acknowledged: segments,
            estimate: cwnd,
        }
    }
    /// The curve's window a least round trip from now.
    fn target(&self, now_ms: u64, ahead_ms: u64) -> u64 {
        let at = (now_ms.saturating_sub(self.start_ms) + ahead_ms) * 1024 / 1000;
        let from_origin = u128::from(at.abs_diff(self.to_origin));
        let moved = ((u128::from(C) * from_origin * from_origin * from_origin) >> 40) as u64;
        let origin = u64::from(self.origin);
        let moved = moved.min(u64::from(u32::MAX));
        if at < self.to_origin { origin.saturating_sub(moved) } else { origin + moved }
    }
    /// Reno with the same reduction gains a segment for each `8 (1 + beta) / 3 (1 - beta)` eighths of the window.
    fn follow_reno(&mut self, cwnd: u32) {
        let eighths = 8 * (ONE + BETA) / 3 / (ONE - BETA);
        let costs = ((u64::from(cwnd) * eighths) >> 3).max(1) as u32;
        // A window's worth of acknowledgments is a few steps; the count starts again with each stage.
        let steps = self.acknowledged.saturating_sub(1) / costs;
        self.acknowledged -= steps * costs;
        self.estimate += steps;
    }
}

impl HyStart {
    fn measured(
        &mut self,
        window: &mut CongestionWindow,
        round_trip: Duration,
        least_ever: Duration,
        acknowledged: &Acknowledged,
    ) {
        let now = acknowledged.now;
        if acknowledged.acknowledged_bytes > self.round_end_bytes {
            (self.round_start, self.latest) = (now, now);
            self.round_end_bytes = acknowledged.sent_bytes;
            self.least = Duration::MAX;
            self.samples = 0;
        }
        if window.segments() < HYSTART_LEAST_SEGMENTS {
            return;
        }
        if now.since(self.latest) <= TRAIN_GAP {
            self.latest = now;
            let pace = 2 * u64::from(window.window_bytes) * 1_000_000_000
                / acknowledged.smoothed_round_trip.as_nanos().max(1);
            let aggregate = Duration::from_nanos(AGGREGATE_BYTES * 1_000_000_000 / pace.max(1));
            let lasts = (least_ever + aggregate.min(MOST_AGGREGATE)).divided_by(2);
            self.found |= now.since(self.round_start) > lasts;
        }
        self.least = self.least.min(round_trip);
        if self.samples < HYSTART_SAMPLES {
            self.samples += 1;
        } else {
            let growth = least_ever.divided_by(8).clamp(HYSTART_LEAST_GROWTH, HYSTART_MOST_GROWTH);
            self.found |= self.least > least_ever + growth;
        }
        if self.found {
            window.threshold_bytes = window.segments() * window.segment_bytes;
        }
    }
}

/// The cube root, rounded down, of a number below 2^75.
fn cube_root(cube: u128) -> u64 {
    let mut root: u128 = 0;
    for bit in (0..25).rev() {
        let larger = root | 1 << bit;
        if larger * larger * larger <= cube {
            root = larger;
        }
    }
    root as u64
}

/// Idleness of `idle` with a time-out of `timeout`: the window halves for each, down to `initial_bytes`.
pub(crate) fn restart(window: &mut CongestionWindow, initial_bytes: u32, idle: Duration, timeout: Duration) {
    window.threshold_bytes = window.threshold_kept_bytes();
    let least = initial_bytes.min(window.window_bytes);
    let mut segments = window.segments();
    let mut left = idle;
    while left > timeout && segments * window.segment_bytes > least {
        left -= timeout;
        segments /= 2;
    }
    window.window_bytes = (segments * window.segment_bytes).max(least);
}
