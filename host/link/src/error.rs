//! Errors of opening a link.

use crate::spec::Kind;
use core::fmt;
use std::io;

/// Why a link could not be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The system refused a step.
    Device {
        /// The device.
        device: String,
        /// The operation that failed.
        step: &'static str,
        /// The error of the system.
        error: io::Error,
    },
    /// The kind has no device: a memory link is created as a pair.
    NoDevice(Kind),
}

impl OpenError {
    pub(crate) fn device(device: &str, step: &'static str, error: io::Error) -> Self {
        OpenError::Device { device: device.to_owned(), step, error }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Device { device, step, error } => {
                write!(f, "{device}: {step}: {error}")?;
                f.write_str(match error.kind() {
                    io::ErrorKind::PermissionDenied => {
                        "; run as root, or use --link user, which needs no privilege"
                    }
                    io::ErrorKind::NotFound => "; is the device there? --link user needs none",
                    io::ErrorKind::ResourceBusy => "; is another program using it?",
                    _ => "",
                })
            }
            OpenError::NoDevice(kind) => write!(f, "a link of kind {kind:?} is not opened from a device"),
        }
    }
}
impl core::error::Error for OpenError {}
