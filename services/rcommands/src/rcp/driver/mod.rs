//! Drivers: the machines of rcp between a stream and files.

mod fetch;
mod send;

pub use fetch::fetch;
pub use send::send;

use core::fmt;
use std::io;

/// The result of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CopySummary {
    /// Files copied whole.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files and folders left out; each was reported.
    pub left_out: u64,
}

impl CopySummary {
    /// The sum of two results.
    pub fn and(self, other: CopySummary) -> CopySummary {
        CopySummary {
            files: self.files + other.files,
            bytes: self.bytes + other.bytes,
            left_out: self.left_out + other.left_out,
        }
    }
}

/// Why a copy was ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum CopyError {
    /// The connection failed.
    Io(io::Error),
    /// The other end ended it, or does not speak rcp.
    Other(String),
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CopyError::Io(error) => error.fmt(f),
            CopyError::Other(why) => f.write_str(why),
        }
    }
}
impl std::error::Error for CopyError {}
impl From<io::Error> for CopyError {
    fn from(error: io::Error) -> CopyError {
        CopyError::Io(error)
    }
}
