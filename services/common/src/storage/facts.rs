//! The facts of a file or directory.

use std::time::Duration;

/// Seconds and nanoseconds since the start of 1970, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct UnixTime {
    /// Whole seconds.
    pub seconds: i64,
    /// Nanoseconds beyond them.
    pub nanoseconds: u32,
}

impl UnixTime {
    /// So long after the start of 1970.
    pub fn since_1970(time: Duration) -> UnixTime {
        UnixTime { seconds: time.as_secs().cast_signed(), nanoseconds: time.subsec_nanos() }
    }
}

/// Kind of a directory entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// The directory that is listed.
    This,
    /// The directory above the one that is listed.
    Parent,
    /// A link whose end cannot be reached, a device, a socket.
    Other,
}

/// Permissions of the user on a file or directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Permissions {
    /// Retrieve a file, list a directory.
    pub read: bool,
    /// Store to it, make files in it.
    pub write: bool,
    /// Delete or rename it.
    pub delete: bool,
}

/// The facts of one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// What it is.
    pub kind: Kind,
    /// Octets, of a file.
    pub size_bytes: u64,
    /// When it was last changed.
    pub modified: Option<UnixTime>,
    /// Permission bits in the manner of Unix.
    pub mode: Option<u32>,
    /// Identity of the file, equal for all its names.
    pub unique: Option<String>,
    /// Permissions of the user.
    pub permissions: Permissions,
}
