//! Errors of a service's configuration and start.

use std::fmt;

/// Errors of a service's configuration and start.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Problem {
    /// A key of the configuration has a value that cannot be acted on.
    Setting {
        /// The key behind its section's name, as `ftp.rights`.
        key: String,
        /// The value.
        value: String,
        /// The expected form.
        expected: String,
    },
    /// The configuration asks for something that cannot be done.
    Usage(String),
    /// The system refused something.
    Operation(String),
}

impl Problem {
    /// `key` has a `value` that cannot be acted on; `expected` says what to give instead.
    pub fn setting(key: &str, value: impl fmt::Display, expected: impl fmt::Display) -> Problem {
        Problem::Setting { key: key.to_owned(), value: value.to_string(), expected: expected.to_string() }
    }
    /// The configuration asks for something that cannot be done.
    pub fn usage(message: impl Into<String>) -> Problem {
        Problem::Usage(message.into())
    }
    /// The system refused something.
    pub fn operation(message: impl Into<String>) -> Problem {
        Problem::Operation(message.into())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Setting { key, value, expected } => write!(f, "{key} = {value:?}: {expected}"),
            Problem::Usage(message) | Problem::Operation(message) => f.write_str(message),
        }
    }
}
impl std::error::Error for Problem {}
