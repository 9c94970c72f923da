//! How much may be in flight, and how fast it may leave: the congestion window, the algorithms that move it, the
//! pacer, and the samples of delivery rate.
//!
//! A [`Congestion`] knows no segment, no sequence number and no timer: it is told what was acknowledged, lost and
//! marked, in bytes, and moves the window of [`CongestionWindow`]. So somebody's own algorithm, a
//! [`CongestionAlgorithm`] and its [`CongestionController`], needs this crate alone, and each is tried against its RFC without a connection.
//!
//! How TCP drives it:
//!
//! - [`open`](Congestion::open) once, with the first window;
//! - [`transmitted`](Congestion::transmitted) after each batch that left, so that only a window in use grows;
//! - [`acknowledged`](Congestion::acknowledged) for each acknowledgment of something new;
//! - at a loss or mark, once for each window of data: [`lost`](Congestion::lost) or [`marked`](Congestion::marked),
//!   which set the threshold; recovery then moves `window.window_bytes` as it sees fit (PRR), and
//!   [`recovered`](Congestion::recovered) ends it at the threshold;
//! - [`timed_out`](Congestion::timed_out), which leaves one segment;
//! - [`undo`](Congestion::undo) when the reduction proves to have been a mistake.
//!
//! ```
//! use inhost_base::{Duration, Instant};
//! use inhost_congestion::{Acknowledged, Congestion, CongestionChoice};
//!
//! let mut congestion = Congestion::new(&CongestionChoice::Cubic);
//! congestion.open(10, 1448);
//! congestion.transmitted(14_480, true, 0, 14_480);
//! congestion.acknowledged(&Acknowledged {
//!     bytes: 1448,
//!     acknowledged_bytes: 1448,
//!     sent_bytes: 14_480,
//!     latest_round_trip: Some(Duration::from_millis(20)),
//!     smoothed_round_trip: Duration::from_millis(20),
//!     least_round_trip: Duration::from_millis(20),
//!     in_flight_before_bytes: 14_480,
//!     recovering: false,
//!     rate: None,
//!     now: Instant::ZERO,
//! });
//! assert_eq!(congestion.window().window_bytes, 11 * 1448);
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod congestion;
mod controller;
mod cubic;
mod cubic_in_segments;
mod first_window;
mod hystart;
mod new_reno;
mod pacer;
mod prior;
mod rate;
mod usage;
mod window;

pub use congestion::{Congestion, CongestionChoice};
pub use controller::{Acknowledged, CongestionAlgorithm, CongestionController};
pub use pacer::{Pace, Pacer, PacingGains};
pub use rate::{RateMark, RateSample, RateSampler, SampleBuilder};
pub use window::CongestionWindow;

#[cfg(test)]
mod tests;
