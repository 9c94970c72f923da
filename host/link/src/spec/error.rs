//! Errors of a SPEC.

use core::fmt;

/// Every key of a SPEC. One that is not listed here is refused.
pub(super) const KEYS: &[&str] = &[
    "address",
    "gateway",
    "mtu",
    "forward",
    "per-caller",
    "host",
    "offload",
    "gso",
    "gro",
    "loopback",
    "baud",
    "framing",
    "offer",
    "noise",
    "loss",
    "delay",
    "corrupt",
    "duplicate",
    "reorder",
    "seed",
];

/// A parse error of a SPEC: the text found, and the values allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SpecError {
    /// The kind is unknown.
    Kind(String),
    /// The kind needs a device after a colon, or has none.
    Device {
        /// The kind's name.
        kind: &'static str,
        /// An example of how to write it.
        example: &'static str,
    },
    /// A part is not `key=value`.
    NotAPair(String),
    /// A key is unknown.
    Key(String),
    /// A key does not go with the kind.
    Misplaced {
        /// The key.
        key: String,
        /// The kind's name.
        kind: &'static str,
    },
    /// A value cannot be read.
    Value {
        /// The key.
        key: String,
        /// The text found.
        value: String,
        /// The values allowed.
        allowed: &'static str,
    },
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecError::Kind(kind) => {
                write!(f, "link kind {kind:?} is unknown: use user, tap, tun, serial or memory")
            }
            SpecError::Device { kind, example } => write!(f, "link kind {kind}: write {example}"),
            SpecError::NotAPair(part) => write!(f, "{part:?} in a link is not key=value"),
            SpecError::Key(key) => {
                write!(f, "link key {key:?} is unknown: the keys are {}", KEYS.join(", "))
            }
            SpecError::Misplaced { key, kind } => write!(f, "link key {key:?} does not go with kind {kind}"),
            SpecError::Value { key, value, allowed } => write!(f, "link key {key}={value:?}: give {allowed}"),
        }
    }
}
impl core::error::Error for SpecError {}
