//! CUBIC (RFC 9438): after a loss the window grows along a cubic of time, slowly near where the loss was and
//! boldly beyond, and never slower than NewReno would.

use crate::CongestionWindow;
use crate::congestion::Prior;
use inhost_base::{Duration, Instant};

/// How much of the window a loss leaves (RFC 9438 §4.6).
const BETA: f64 = 0.7;
/// How steep the cubic is, in segments per second cubed (RFC 9438 §5.1).
const C: f64 = 0.4;
/// Growth that is fair to NewReno before the old window is reached again (RFC 9438 §4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

#[derive(Debug, Default)]
pub(crate) struct Cubic {
    /// For undoing it.
    pub prior: Prior,
    /// Window before the latest reduction, in segments, after fast convergence.
    largest: f64,
    /// Window before the latest reduction, in segments.
    before: f64,
    epoch: Option<Epoch>,
    /// Growth not yet worth a byte.
    fraction_bytes: f64,
}

/// One stretch of congestion avoidance.
#[derive(Debug)]
struct Epoch {
    start: Instant,
    /// Seconds from the start until the window is the largest again.
    to_plateau_s: f64,
    /// What NewReno would have, in segments.
    estimate: f64,
}

impl Cubic {
    pub fn acknowledged(
        &mut self,
        window: &mut CongestionWindow,
        bytes: u32,
        smoothed: Duration,
        now: Instant,
    ) {
        let segment = f64::from(window.segment_bytes);
        let current = f64::from(window.window_bytes) / segment;
        let acknowledged = f64::from(bytes) / segment;
        if self.largest < current {
            self.largest = current;
        }
        let largest = self.largest;
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            start: now,
            to_plateau_s: ((largest - current) / C).cbrt(),
            estimate: current,
        });
        let alpha = if epoch.estimate < self.before { ALPHA } else { 1.0 };
        epoch.estimate += alpha * acknowledged / current;
        let elapsed_s = now.since(epoch.start).as_secs_f64();
        let cubic = |at_s: f64| largest + C * (at_s - epoch.to_plateau_s).powi(3);
        if cubic(elapsed_s) < epoch.estimate {
            // NewReno's region (RFC 9438 §4.3).
            let grown = epoch.estimate.max(current) - current;
            return self.grow(window, grown * segment);
        }
        // RFC 9438 §4.2: where the cubic will be a round trip from now, within half as much again.
        let target = cubic(elapsed_s + smoothed.as_secs_f64()).clamp(current, 1.5 * current);
        self.grow(window, (target - current) / current * acknowledged * segment);
    }

    pub fn lost(&mut self, window: &mut CongestionWindow, in_flight_bytes: u32) {
        let segment = f64::from(window.segment_bytes);
        let current = f64::from(window.window_bytes) / segment;
        // Fast convergence (RFC 9438 §4.7): a window that shrinks makes room for a newcomer.
        self.largest = if current < self.largest { current * (1.0 + BETA) / 2.0 } else { current };
        self.before = current;
        self.epoch = None;
        self.fraction_bytes = 0.0;
        let left = (f64::from(in_flight_bytes) * BETA) as u32;
        window.threshold_bytes = left.max(window.least_bytes());
    }

    fn grow(&mut self, window: &mut CongestionWindow, bytes: f64) {
        self.fraction_bytes += bytes;
        let whole = self.fraction_bytes as u32;
        self.fraction_bytes -= f64::from(whole);
        window.window_bytes = window.window_bytes.saturating_add(whole);
    }
}
