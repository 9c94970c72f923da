//! Classic results of computer networking, on a TCP that is in use and in virtual time.
//!
//! Each [`Setup`] is a small network of [`inhost_sim`] whose hosts have the stack of production, and one of the results that
//! courses teach: congestion collapse without the mechanisms of 1988, unfairness by round trip, bufferbloat, Nagle's
//! algorithm beside delayed acknowledgments, incast, reordering, a fast network before a slow line, and the laws of loss
//! and window. [`run`] gives plain numbers whose names end with their units. The same setup with the same seed gives the
//! same numbers, to the bit.
//!
//! What is the stack's own: segments, acknowledgments, windows, timers, recovery. What is made up: links, queues and
//! programs. Where a setup turns a mechanism off, its documentation says which switch of the stack does so.
//!
//! ```
//! let setup: inhost_classic::Setup = toml::from_str(
//!     r#"
//!     kind = "window-law"
//!     window_segments = 8
//!     round_trip_ms = 40
//!     "#,
//! )?;
//! let measured = inhost_classic::run(&setup, 1)?;
//! // Eight segments of 1,448 bytes in 40 ms.
//! assert!((measured["throughput_mbps"] / measured["law_mbps"] - 1.0).abs() < 0.03);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod bufferbloat;
mod common;
mod gateway;
mod incast;
mod loss_law;
mod mechanisms;
mod nagle;
mod reordering;
mod rtt_unfairness;
mod star;
mod window_law;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use bufferbloat::Bufferbloat;
pub use common::{CongestionControl, QueueDiscipline};
pub use gateway::{Gateway, GatewaySender};
pub use incast::{Incast, Recovery};
pub use inhost_sim::setup::SetupError;
pub use loss_law::LossLaw;
pub use mechanisms::Mechanisms;
pub use nagle::Nagle;
pub use reordering::Reordering;
pub use rtt_unfairness::RttUnfairness;
pub use window_law::WindowLaw;

/// What was measured, by name with its unit.
pub type Measured = BTreeMap<String, f64>;

/// One of the results, with its parameters; all of them have defaults.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Setup {
    /// Congestion collapse, and what prevents it.
    Mechanisms(Mechanisms),
    /// Flows of different round trips at one bottleneck.
    RttUnfairness(RttUnfairness),
    /// The delay of small requests beside a bulk transfer.
    Bufferbloat(Bufferbloat),
    /// Small writes, Nagle's algorithm and delayed acknowledgments.
    Nagle(Nagle),
    /// Many servers that answer at once.
    Incast(Incast),
    /// A link that changes the order of packets.
    Reordering(Reordering),
    /// A fast network before a slow line.
    Gateway(Gateway),
    /// Throughput by loss.
    LossLaw(LossLaw),
    /// Throughput by window.
    WindowLaw(WindowLaw),
}

/// Runs a setup. The numbers' names end with their units.
///
/// # Errors
/// A number of the setup is out of its range, or the run did not come to its end.
pub fn run(setup: &Setup, seed: u64) -> Result<Measured, SetupError> {
    match setup {
        Setup::Mechanisms(setup) => setup.run(seed),
        Setup::RttUnfairness(setup) => setup.run(seed),
        Setup::Bufferbloat(setup) => setup.run(seed),
        Setup::Nagle(setup) => setup.run(seed),
        Setup::Incast(setup) => setup.run(seed),
        Setup::Reordering(setup) => setup.run(seed),
        Setup::Gateway(setup) => setup.run(seed),
        Setup::LossLaw(setup) => setup.run(seed),
        Setup::WindowLaw(setup) => setup.run(seed),
    }
}

/// Names and values as [`Measured`].
fn measured<const COUNT: usize>(values: [(&str, f64); COUNT]) -> Measured {
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
