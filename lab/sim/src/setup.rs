//! Why a setup of an experiment gave no measurement.

/// Why an experiment's setup was not run to its end: what the crates of experiments on this simulator give.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SetupError {
    /// The parts of the setup do not fit together.
    Unsupported {
        /// What does not fit what.
        why: String,
    },
    /// A number of the setup is out of its range.
    OutOfRange {
        /// Its name.
        name: &'static str,
        /// What it may be.
        allowed: String,
    },
    /// The run did not come to its end.
    Failed {
        /// How it ended.
        why: String,
    },
}

impl core::fmt::Display for SetupError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            SetupError::Unsupported { why } => f.write_str(why),
            SetupError::OutOfRange { name, allowed } => write!(f, "{name} is out of range: {allowed}"),
            SetupError::Failed { why } => write!(f, "the run failed: {why}"),
        }
    }
}
impl core::error::Error for SetupError {}

/// An error when a number is not in its range; NaN is in none.
///
/// # Errors
/// [`SetupError::OutOfRange`].
pub fn within<T: PartialOrd + core::fmt::Display>(
    name: &'static str,
    value: T,
    range: core::ops::RangeInclusive<T>,
) -> Result<(), SetupError> {
    match range.contains(&value) {
        true => Ok(()),
        false => {
            let allowed = format!("{} to {}", range.start(), range.end());
            Err(SetupError::OutOfRange { name, allowed })
        }
    }
}

/// The setup's error for any other.
pub fn failed(why: impl core::fmt::Display) -> SetupError {
    SetupError::Failed { why: why.to_string() }
}
