//! Files, as those see them who serve them: what can be done with a name, with a file that is read, and with one that is
//! written.

use super::{Facts, StorageResult, UnixTime, VirtualPath};
use crate::future::LocalFuture;

/// Names that a listing gives at a time.
pub const LIST_BATCH: usize = 256;

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
