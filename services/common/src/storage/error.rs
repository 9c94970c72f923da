//! Why something could not be done with a file.

use std::fmt;
use std::io;

use super::name::is_partial;

/// Why something could not be done with a file.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StorageError {
    /// There is no such file or directory.
    NotFound,
    /// It may not be done, or the path leads out of the root.
    Denied,
    /// There is such a name already.
    Exists,
    /// A directory has something in it: some of the names, as far as they are known.
    NotEmpty(Contents),
    /// It is a directory, and a file is wanted.
    IsDirectory,
    /// It is not a directory, and one is wanted.
    NotDirectory,
    /// It is neither file nor directory.
    NotFile,
    /// Somebody else is writing it.
    Busy,
    /// It would go beyond the user's quota.
    Quota,
    /// The device is full.
    Full,
    /// The system gives the process no more of it.
    DiskQuota,
    /// The name cannot be one.
    Name,
    /// The name is that of an unfinished upload, which has its name from the file that it will be.
    Unfinished,
    /// A restart point beyond the end.
    Position,
    /// Anything else, as the system says it.
    Other(String),
}

/// What a directory that is not empty holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Contents {
    /// The first names; none where they are not known.
    pub names: Vec<String>,
    /// Whether there are more.
    pub has_more: bool,
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.names.iter().enumerate() {
            let unfinished = if is_partial(name) { " (an unfinished upload)" } else { "" };
            write!(f, "{}{name}{unfinished}", if index == 0 { ": " } else { ", " })?;
        }
        f.write_str(if self.has_more { " and more" } else { "" })
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StorageError::NotFound => "No such file or directory",
            StorageError::Denied => "Permission denied",
            StorageError::Exists => "There is such a name already",
            StorageError::NotEmpty(contents) => return write!(f, "The directory is not empty{contents}"),
            StorageError::IsDirectory => "It is a directory",
            StorageError::NotDirectory => "It is not a directory",
            StorageError::NotFile => "It is not a plain file",
            StorageError::Busy => "Another session is storing to it",
            StorageError::Quota => "Your quota is used up",
            StorageError::Full => "No space is left on the disk",
            StorageError::DiskQuota => "The system's disk quota is used up",
            StorageError::Name => "That cannot be a file's name",
            StorageError::Unfinished => {
                "An unfinished upload has this name: store to the file's own name to resume it, or delete it"
            }
            StorageError::Position => "The restart point is beyond what is there",
            StorageError::Other(why) => why,
        })
    }
}
impl std::error::Error for StorageError {}

impl From<io::Error> for StorageError {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::NotFound => StorageError::NotFound,
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem => StorageError::Denied,
            Kind::AlreadyExists => StorageError::Exists,
            Kind::DirectoryNotEmpty => StorageError::NotEmpty(Contents::default()),
            Kind::IsADirectory => StorageError::IsDirectory,
            Kind::NotADirectory => StorageError::NotDirectory,
            Kind::StorageFull => StorageError::Full,
            Kind::QuotaExceeded => StorageError::DiskQuota,
            Kind::InvalidFilename | Kind::InvalidInput => StorageError::Name,
            Kind::WouldBlock => StorageError::Busy,
            _ => StorageError::Other(error.to_string()),
        }
    }
}

/// Result of a storage operation.
pub type StorageResult<T> = Result<T, StorageError>;
