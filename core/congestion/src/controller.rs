//! What a congestion control is told, and the face that somebody's own has.

use crate::{CongestionWindow, RateSample};
use alloc::boxed::Box;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use inhost_base::{Duration, Instant};

/// One acknowledgment of something new, as a congestion control sees it.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// Bytes that it acknowledged.
    pub bytes: u32,
    /// Bytes of the stream acknowledged since the connection opened, these included: `SND.UNA` that does not wrap.
    pub acknowledged_bytes: u64,
    /// Bytes of the stream ever sent, each counted once: `SND.NXT` that does not wrap. A round of the path ends when
    /// `acknowledged_bytes` passes what this was at its start.
    pub sent_bytes: u64,
    /// The round trip that this acknowledgment measured, if it did.
    pub latest_round_trip: Option<Duration>,
    /// The smoothed round trip (RFC 6298); zero when there is none yet.
    pub smoothed_round_trip: Duration,
    /// The least round trip of the last minutes; zero when there is none yet.
    pub least_round_trip: Duration,
    /// Bytes that were in flight before it came.
    pub in_flight_before_bytes: u32,
    /// Whether fast recovery is under way and moves the window: the house's own algorithms then hold still. Repair
    /// after a time-out does not count; it grows by slow start.
    pub recovering: bool,
    /// The delivery rate that it shows, where that is measured.
    pub rate: Option<RateSample>,
    /// When it came.
    pub now: Instant,
}

/// A congestion control algorithm of one's own with its parameters, for
/// [`CongestionChoice::Custom`](crate::CongestionChoice::Custom). A closure does as well:
/// [`CongestionChoice::custom`](crate::CongestionChoice::custom).
///
/// It lies in the configuration that connections share. What one connection learns is in the [`CongestionController`] that
/// it starts. The bounds are those that a configuration has without it.
pub trait CongestionAlgorithm: fmt::Debug + Send + Sync + UnwindSafe + RefUnwindSafe {
    /// The state of a new connection.
    fn start(&self) -> Box<dyn CongestionController>;
}

/// An algorithm that is the closure that makes its state.
pub(crate) struct Made<F>(pub F);

impl<C, F> CongestionAlgorithm for Made<F>
where
    C: CongestionController + 'static,
    F: Fn() -> C + Send + Sync + UnwindSafe + RefUnwindSafe,
{
    fn start(&self) -> Box<dyn CongestionController> {
        Box::new(self.0())
    }
}

impl<F> fmt::Debug for Made<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("closure")
    }
}

/// The state of one's own congestion control of one connection.
pub trait CongestionController: fmt::Debug + Send {
    /// Its name, as instruments print it.
    fn name(&self) -> &'static str;
    /// The connection opens, or goes on by this algorithm. By default with the initial window (RFC 6928), or with the window
    /// that there is.
    fn opened(&mut self, _window: &mut CongestionWindow) {}
    /// Something new was acknowledged. `window_limited` tells whether the window was in use: if it was not, its size
    /// proves nothing, and it should not grow (RFC 9438 §5.8).
    fn acknowledged(
        &mut self,
        window: &mut CongestionWindow,
        acknowledged: &Acknowledged,
        window_limited: bool,
    );
    /// A loss was found with `in_flight_bytes` outstanding: sets the threshold; recovery moves the window.
    fn lost(&mut self, window: &mut CongestionWindow, in_flight_bytes: u32, now: Instant);
    /// The peer saw a congestion mark (RFC 3168): sets the threshold. By default as a loss.
    fn marked(&mut self, window: &mut CongestionWindow, in_flight_bytes: u32, now: Instant) {
        self.lost(window, in_flight_bytes, now);
    }
    /// The retransmission timer expired for the first time on this data: sets the threshold. By default as a loss.
    /// The window is one segment afterwards, whatever this did to it.
    fn timed_out(&mut self, window: &mut CongestionWindow, in_flight_bytes: u32, now: Instant) {
        self.lost(window, in_flight_bytes, now);
    }
    /// Recovery is over. By default the window is the threshold.
    fn recovered(&mut self, window: &mut CongestionWindow, _now: Instant) {
        window.window_bytes = window.threshold_bytes;
    }
    /// The last reduction was a mistake; window and threshold are what they were before it.
    fn undone(&mut self, _window: &mut CongestionWindow, _now: Instant) {}
    /// The sender was idle for a retransmission time-out: what was learned about time is stale. The window is at most the
    /// initial one (RFC 5681 §4.1), unless this sets it.
    fn restarted(&mut self, _window: &mut CongestionWindow) {}
    /// The rate that data shall leave at, for a control that thinks in rates. By default that of the window.
    fn pacing_rate_bytes_per_s(&self) -> Option<u64> {
        None
    }
}
