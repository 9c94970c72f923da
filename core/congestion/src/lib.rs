//! How much may be in flight, and how fast it may leave: the congestion window, and the algorithms that move it.
//!
//! A [`Congestion`] knows no segment, no sequence number and no timer: it is told what was acknowledged, lost and
//! marked, in bytes, and moves the window of [`CongestionWindow`]. So somebody's own algorithm, a
//! [`CongestionController`], needs this crate alone, and each is tried against its RFC without a connection.
//!
//! ```
//! use inhost_base::{Duration, Instant};
//! use inhost_congestion::{Congestion, CongestionChoice};
//!
//! let mut congestion = Congestion::new(CongestionChoice::Cubic);
//! congestion.open(10, 1448);
//! congestion.acknowledged(1448, Duration::from_millis(20), Instant::ZERO);
//! assert_eq!(congestion.window.window_bytes, 11 * 1448);
//! ```
#![forbid(unsafe_code)]

mod cubic;
mod new_reno;

use core::fmt;
use cubic::Cubic;
use inhost_base::{Duration, Instant};
use new_reno::NewReno;

/// The figures that every algorithm moves, in bytes of payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CongestionWindow {
    /// `cwnd`: what may be in flight.
    pub window_bytes: u32,
    /// `ssthresh`: below it slow start, from it on congestion avoidance.
    pub threshold_bytes: u32,
    /// `SMSS`: payload of a full segment.
    pub segment_bytes: u32,
}

impl CongestionWindow {
    /// Whether the window doubles each round trip.
    pub fn in_slow_start(&self) -> bool {
        self.window_bytes < self.threshold_bytes
    }
    /// The least threshold after a loss (RFC 5681 §3.1): two segments.
    pub fn least_bytes(&self) -> u32 {
        2 * self.segment_bytes
    }
}

/// Which congestion control a connection uses.
#[derive(Clone, Copy, Debug, Default)]
pub enum CongestionChoice {
    /// RFC 9438.
    #[default]
    Cubic,
    /// RFC 5681's window with RFC 6582's recovery.
    NewReno,
    /// Somebody's own, made for each connection.
    Custom(fn() -> Box<dyn CongestionController>),
}

/// A congestion control of one's own, for [`CongestionChoice::Custom`].
pub trait CongestionController: fmt::Debug + Send {
    /// Its name, as instruments print it.
    fn name(&self) -> &'static str;
    /// `acknowledged_bytes` new bytes were acknowledged outside recovery while the window was in use.
    fn acknowledged(
        &mut self,
        window: &mut CongestionWindow,
        acknowledged_bytes: u32,
        smoothed_round_trip: Duration,
        now: Instant,
    );
    /// A loss was found with `in_flight_bytes` outstanding: sets the threshold; recovery moves the window.
    fn lost(&mut self, window: &mut CongestionWindow, in_flight_bytes: u32, now: Instant);
    /// The retransmission timer expired for the first time on this data: sets the threshold.
    fn timed_out(&mut self, window: &mut CongestionWindow, in_flight_bytes: u32, now: Instant) {
        self.lost(window, in_flight_bytes, now);
    }
    /// The sender was idle for a retransmission time-out: what was learned about time is stale.
    fn restarted(&mut self) {}
}

/// A connection's congestion control. Its larger state is boxed, and made at the first loss.
#[derive(Debug)]
pub struct Congestion {
    /// The figures that the algorithm moves, and loss recovery too.
    pub window: CongestionWindow,
    algorithm: Algorithm,
}

#[derive(Debug)]
enum Algorithm {
    NewReno(NewReno),
    Cubic(Option<Box<Cubic>>),
    Custom(Box<dyn CongestionController>),
}

/// Largest congestion window: no window of the peer's can be larger (RFC 7323 §2.3).
const MOST_BYTES: u32 = 1 << 30;

impl Congestion {
    /// One that is not open yet: its window is empty.
    pub fn new(choice: CongestionChoice) -> Self {
        let window = CongestionWindow { window_bytes: 0, threshold_bytes: MOST_BYTES, segment_bytes: 0 };
        let algorithm = match choice {
            CongestionChoice::NewReno => Algorithm::NewReno(NewReno::default()),
            CongestionChoice::Cubic => Algorithm::Cubic(None),
            CongestionChoice::Custom(make) => Algorithm::Custom(make()),
        };
        Congestion { window, algorithm }
    }
    /// Starts with `segments` of `segment_bytes`, at most ten of them or 14,600 bytes (RFC 6928 §2).
    pub fn open(&mut self, segments: u8, segment_bytes: u32) {
        self.window.segment_bytes = segment_bytes.max(1);
        self.window.window_bytes = initial_window_bytes(segments, segment_bytes);
    }
    /// The path's segments are of another size now.
    pub fn resize(&mut self, segment_bytes: u32) {
        self.window.segment_bytes = segment_bytes.max(1);
        self.window.window_bytes = self.window.window_bytes.max(segment_bytes);
    }
    /// The algorithm's name, as instruments print it.
    pub fn name(&self) -> &'static str {
        match &self.algorithm {
            Algorithm::NewReno(_) => "newreno",
            Algorithm::Cubic(_) => "cubic",
            Algorithm::Custom(own) => own.name(),
        }
    }
    /// New bytes were acknowledged outside recovery while the window was the limit.
    pub fn acknowledged(&mut self, bytes: u32, smoothed: Duration, now: Instant) {
        let window = &mut self.window;
        match &mut self.algorithm {
            Algorithm::Custom(own) => own.acknowledged(window, bytes, smoothed, now),
            _ if window.in_slow_start() => {
                // Receivers here acknowledge once a round, so the bytes count, not the segments (RFC 3465);
                // past the threshold the rest waits for the next acknowledgment.
                window.window_bytes += bytes.min(window.threshold_bytes - window.window_bytes);
            }
            Algorithm::NewReno(state) => state.acknowledged(window, bytes),
            Algorithm::Cubic(state) => {
                state.get_or_insert_default().acknowledged(window, bytes, smoothed, now)
            }
        }
        window.window_bytes = window.window_bytes.min(MOST_BYTES);
    }
    /// Duplicate acknowledgments told of a loss.
    pub fn lost(&mut self, in_flight_bytes: u32, now: Instant) {
        match &mut self.algorithm {
            Algorithm::NewReno(state) => state.lost(&mut self.window, in_flight_bytes),
            Algorithm::Cubic(state) => state.get_or_insert_default().lost(&mut self.window, in_flight_bytes),
            Algorithm::Custom(own) => own.lost(&mut self.window, in_flight_bytes, now),
        }
    }
    /// A duplicate acknowledgment during a repair: a segment has left the network (RFC 6582 §3.2, step 3).
    pub fn inflate(&mut self, bytes: u32) {
        self.window.window_bytes = self.window.window_bytes.saturating_add(bytes).min(MOST_BYTES);
    }
    /// The retransmission timer expired, for the first time on this data.
    pub fn timed_out(&mut self, in_flight_bytes: u32, now: Instant) {
        match &mut self.algorithm {
            Algorithm::Custom(own) => own.timed_out(&mut self.window, in_flight_bytes, now),
            _ => self.lost(in_flight_bytes, now),
        }
    }
    /// The sender was idle for a time-out: at most the initial window may burst out (RFC 5681 §4.1).
    pub fn restart(&mut self, segments: u8) {
        let initial = initial_window_bytes(segments, self.window.segment_bytes);
        self.window.window_bytes = self.window.window_bytes.min(initial);
        match &mut self.algorithm {
            Algorithm::NewReno(_) => {}
            Algorithm::Cubic(state) => *state = None,
            Algorithm::Custom(own) => own.restarted(),
        }
    }
}

fn initial_window_bytes(segments: u8, segment_bytes: u32) -> u32 {
    let asked = u32::from(segments.max(1)) * segment_bytes;
    asked.min((2 * segment_bytes).max(14_600)).max(segment_bytes)
}

#[cfg(test)]
mod tests;
