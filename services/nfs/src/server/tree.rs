//! The storage trait of NFS: files are named by keys that survive renames and restarts.
//!
//! It adds what the path-based storage of the other services does not have: persistent keys, stable directory cookies,
//! single attributes, hard and symbolic links, writes in place, and fsync.

use crate::codec::nfs::{Attributes, FileType, SetAttributes, Stable, Statistics, Status, Time, Verifier};

/// Octets of a [`FileKey`].
pub const KEY_BYTES: usize = 43;

/// The identity of a file in a tree; only the tree understands its octets, at most [`KEY_BYTES`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileKey(pub Vec<u8>);

/// Result of an operation.
pub type TreeResult<T> = Result<T, Status>;

/// A file with its attributes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// Its key.
    pub key: FileKey,
    /// Its attributes.
    pub attributes: Attributes,
}

/// What is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Make<'a> {
    /// A plain file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link with its target.
    Link(&'a [u8]),
    /// A socket or a named pipe.
    Node(FileType),
}

/// An entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeEntry {
    /// Number of the file.
    pub fileid: u64,
    /// The name.
    pub name: Vec<u8>,
    /// The place behind it.
    pub cookie: u64,
}

/// Some entries of a directory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TreeEntries {
    /// In the order of the cookies.
    pub entries: Vec<TreeEntry>,
    /// Whether these are the last.
    pub is_end: bool,
}

/// Files below one directory. Names are one part of a path, neither `.` nor `..`, without slash and NUL. Operations
/// may wait for the disk. The server has checked the caller's permissions.
pub trait Tree: Send + Sync {
    /// The directory that is exported.
    fn root(&self) -> TreeResult<Known>;
    /// The user and group that files belong to which are made here, unless they are given to somebody.
    fn owner(&self) -> (u32, u32);
    /// Whether files can be given to other users.
    fn gives_away(&self) -> bool;
    /// Attributes of a file. STALE if it is gone.
    fn attributes(&self, file: &FileKey) -> TreeResult<Attributes>;
    /// The file of a name; a symbolic link is not followed.
    fn lookup(&self, directory: &FileKey, name: &[u8]) -> TreeResult<Known>;
    /// The directory above; of the root the root.
    fn parent(&self, directory: &FileKey) -> TreeResult<Known>;
    /// Sets attributes, and puts them on the disk.
    fn set_attributes(&self, file: &FileKey, attributes: &SetAttributes) -> TreeResult<()>;
    /// Where a symbolic link leads.
    fn read_link(&self, file: &FileKey) -> TreeResult<Vec<u8>>;
    /// At most `count` octets from `offset`, fewer only at the end; and the attributes after.
    fn read(&self, file: &FileKey, offset: u64, count: usize) -> TreeResult<(Vec<u8>, Attributes)>;
    /// Writes all of `octets`; gives how safe they are, which is at least what `stable` asks.
    fn write(&self, file: &FileKey, offset: u64, octets: &[u8], stable: Stable) -> TreeResult<Stable>;
    /// Puts on the disk what was written to a file.
    fn commit(&self, file: &FileKey) -> TreeResult<()>;
    /// Makes a file under a name that is free, with permission bits `mode`; EXIST if it is not free. The file belongs to
    /// `owner`, if it can be given away. All is on the disk when this returns.
    fn make(
        &self,
        directory: &FileKey,
        name: &[u8],
        make: Make<'_>,
        mode: u32,
        owner: (u32, u32),
    ) -> TreeResult<Known>;
    /// Removes a name: a directory's if `is_directory`, else anything else's.
    fn remove(&self, directory: &FileKey, name: &[u8], is_directory: bool) -> TreeResult<()>;
    /// Gives another name, in the place of a file that has it.
    fn rename(&self, from: (&FileKey, &[u8]), to: (&FileKey, &[u8])) -> TreeResult<()>;
    /// Gives one more name.
    fn link(&self, file: &FileKey, directory: &FileKey, name: &[u8]) -> TreeResult<()>;
    /// Entries behind `cookie`, zero for the first, `.` and `..` among them: as many as fit into about `bytes`, and
    /// one at least.
    fn entries(&self, directory: &FileKey, cookie: u64, bytes: usize) -> TreeResult<TreeEntries>;
    /// The verifier of a directory's cookies.
    fn cookie_verifier(&self, directory: &FileKey) -> TreeResult<Verifier>;
    /// What is used and free; without attributes.
    fn statistics(&self) -> TreeResult<Statistics>;
    /// Resolution of times.
    fn time_step(&self) -> Time {
        Time { seconds: 0, nanoseconds: 1 }
    }
}
