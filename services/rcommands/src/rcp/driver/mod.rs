//! Drivers: the machines of rcp between a stream and files.

mod fetch;
mod send;

pub use fetch::fetch;
pub use send::send;

use core::fmt;
use std::io;

/// What came of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Files that are whole.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Things that were left out, each of which was told.
    pub left_out: u64,
}

impl Report {
    /// With another's.
    pub fn and(self, other: Report) -> Report {
        Report {
            files: self.files + other.files,
            bytes: self.bytes + other.bytes,
            left_out: self.left_out + other.left_out,
        }
    }
}

/// Why a copy did not go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failed {
    /// The connection failed.
    Io(io::Error),
    /// The other end ended it, or is none.
    Other(String),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Io(error) => error.fmt(f),
            Failed::Other(why) => f.write_str(why),
        }
    }
}
impl std::error::Error for Failed {}
impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Io(error)
    }
}
