//! The programs of the papers, over the host's own sockets.

mod echo;

use crate::error::SetupError;
use crate::measured::Measured;
use crate::setup::{Program, Setup};

/// Runs the program of a setup.
pub(crate) fn run(setup: &Setup, seed: u64) -> Result<Measured, SetupError> {
    match setup.program {
        Program::Echo { count } => echo::run(setup, seed, count),
    }
}

/// An error when a number is not in its range.
fn within(name: &'static str, value: u32, range: std::ops::RangeInclusive<u32>) -> Result<(), SetupError> {
    match range.contains(&value) {
        true => Ok(()),
        false => {
            let allowed = format!("{} to {}", range.start(), range.end());
            Err(SetupError::OutOfRange { name, allowed })
        }
    }
}
