//! Machines and links of then, for the experiments of four papers with the TCP of this host.
//!
//! Each host of a run is a whole stack of production, on [`inhost_sim`]'s virtual time. The frames, windows and
//! acknowledgments are its own. What is modelled is time: what the work on a frame, a byte or a character costs on the
//! machine of a paper, and how its link carries frames. Each constant says from which table it is, or on which figures it
//! was fitted.
//!
//! A [`Setup`] names machine, link, program and parameters, as a value of serde. [`run`] gives what was measured, as plain
//! numbers whose names end with their units. The same setup with the same seed gives the same numbers, to the bit.
//!
//! ```
//! let setup: inhost_machines::Setup = toml::from_str(
//!     r#"
//!     machine = { kind = "ibm-pc" }
//!     link = { kind = "llp", bits_per_second = 9600 }
//!     program = { kind = "echo", count = 10 }
//!     "#,
//! )?;
//! let measured = inhost_machines::run(&setup, 1)?;
//! // MIT table 6-4: predicted 121.6 ms, measured 121.9 ms.
//! assert!((measured.of("echo_ms").unwrap() - 121.9).abs() < 1.5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod fuzz;
mod load;
mod measured;
mod models;
mod programs;
mod setup;
mod tally;
mod wiring;
mod world;

pub use inhost_sim::setup::SetupError;
pub use measured::Measured;
pub use setup::{Link, Machine, Parameters, Program, Setup};

/// Runs a setup. An error when its parts do not fit together, or when the run did not come to its end.
pub fn run(setup: &Setup, seed: u64) -> Result<Measured, SetupError> {
    programs::run(setup, seed)
}
