//! Storage of files: one small trait, and its implementation over a folder of the file system.
//!
//! Paths are those of TVFS (RFC 3659 §6): absolute, with slashes, resolved before they come here. All that may take its
//! time is a future; buffers go in and come back, so that a transfer has the same few from its beginning to its end.

mod facts;
mod folder;
mod name;
mod partial;
mod path;
mod plain;
mod quota;

use std::fmt;
use std::io;

pub use facts::{Facts, Kind, Permissions, UnixTime};
pub use folder::Folder;
pub use name::{name_octets, name_text};
pub use partial::{fits_name, is_partial};
pub use path::VirtualPath;
pub use quota::{Quota, Quotas};

pub use crate::future::LocalFuture;

/// Names that a listing gives at a time.
pub const LIST_BATCH: usize = 256;

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
    /// It is no directory, and one is wanted.
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

/// Modes of storing a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Store {
    /// A new one, in the place of an old one once it is whole.
    Replace,
    /// Its first octets are there already, of the file or of an upload that was broken off.
    At(u64),
    /// Behind what is there, or as [`Store::Replace`] goes on where it was broken off.
    Append,
    /// Under a name that nothing has, made of the one that is given.
    Unique,
}

/// A file that is being stored.
pub struct Storing {
    /// The sink of its octets.
    pub sink: Box<dyn Sink>,
    /// The place of the first one to come.
    pub position: u64,
    /// The last part of the name that it will have.
    pub name: String,
}

/// Some names of a directory with their facts.
pub type Names = Vec<(String, Facts)>;

/// A listing under way.
pub trait Listing: Send {
    /// The next names with their facts, at most [`LIST_BATCH`]; none at the end. In no order.
    fn next(self: Box<Self>) -> LocalFuture<(Box<dyn Listing>, StorageResult<Names>)>;
}

/// A file that is read.
pub trait Source: Send {
    /// Octets of the whole file, when it was opened.
    fn size_bytes(&self) -> u64;
    /// Fills `buffer` to its length with what stands at `position`; fewer octets only at the end of the file.
    fn read_at(&self, position: u64, buffer: Vec<u8>) -> LocalFuture<(Vec<u8>, StorageResult<usize>)>;
}

/// A file that is written. Dropped before [`Sink::commit`] it keeps what it has for a later [`Store::At`], under its
/// own name.
pub trait Sink: Send {
    /// Writes all of `buffer` to `position`, and gives it back.
    fn write_at(&self, position: u64, buffer: Vec<u8>) -> LocalFuture<(Vec<u8>, StorageResult<()>)>;
    /// The written data, to be read back.
    fn read_back(&self) -> Box<dyn Source>;
    /// The file is whole and so long: it gets its name.
    fn commit(self: Box<Self>, size_bytes: u64) -> LocalFuture<StorageResult<()>>;
    /// Writes all of `last` to `position`, where the file ends behind it, and commits: one change of threads for both.
    fn commit_behind(self: Box<Self>, position: u64, last: Vec<u8>) -> LocalFuture<StorageResult<()>>;
    /// Nobody will go on with it: nothing of what was written is kept.
    fn discard(self: Box<Self>) -> LocalFuture<()>;
}

/// Files, as one user has them.
pub trait Storage {
    /// Facts of a name.
    fn facts(&self, path: &VirtualPath) -> LocalFuture<StorageResult<Facts>>;
    /// The octets of a file; of an upload that was broken off those that are there, so that it can be gone on with.
    fn size(&self, path: &VirtualPath) -> LocalFuture<StorageResult<u64>>;
    /// Lists a directory.
    fn list(&self, path: &VirtualPath) -> LocalFuture<StorageResult<Box<dyn Listing>>>;
    /// Opens a file to read it.
    fn retrieve(&self, path: &VirtualPath) -> LocalFuture<StorageResult<Box<dyn Source>>>;
    /// Opens a file to write it, with the permission bits that `umask` leaves.
    fn store(&self, path: &VirtualPath, how: Store, umask: u32) -> LocalFuture<StorageResult<Storing>>;
    /// Makes a directory.
    fn make_directory(&self, path: &VirtualPath, umask: u32) -> LocalFuture<StorageResult<()>>;
    /// Removes an empty directory.
    fn remove_directory(&self, path: &VirtualPath) -> LocalFuture<StorageResult<()>>;
    /// Removes a file; of an upload that was broken off what is there, under either name.
    fn remove(&self, path: &VirtualPath) -> LocalFuture<StorageResult<()>>;
    /// Gives another name, in the place of a file that had it.
    fn rename(&self, from: &VirtualPath, to: &VirtualPath) -> LocalFuture<StorageResult<()>>;
    /// Sets the time of the last change.
    fn set_modified(&self, path: &VirtualPath, time: UnixTime) -> LocalFuture<StorageResult<()>>;
    /// Sets permission bits.
    fn set_mode(&self, path: &VirtualPath, mode: u32) -> LocalFuture<StorageResult<()>>;
}
