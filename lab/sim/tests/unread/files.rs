//! Files without end, kept nowhere: a directory of a million names, and each of them a terabyte long.

use inhost_common::LocalFuture;
use inhost_common::storage::{
    LIST_BATCH, Listing, Names, Source, Storage, StorageError, StorageResult, Store, Storing, VirtualPath,
};
use inhost_ftp::codec::{Facts, Kind, Permissions, UnixTime};

/// Names of the directory.
const NAMES: u64 = 1_000_000;
/// Octets of each file.
const FILE_BYTES: u64 = 1 << 40;

pub struct Endless;

fn facts(kind: Kind) -> Facts {
    Facts {
        kind,
        size_bytes: FILE_BYTES,
        modified: None,
        mode: Some(0o755),
        unique: None,
        permissions: Permissions { read: true, ..Permissions::default() },
    }
}

fn ready<T: 'static>(outcome: T) -> LocalFuture<T> {
    Box::pin(std::future::ready(outcome))
}

fn denied<T: 'static>() -> LocalFuture<StorageResult<T>> {
    ready(Err(StorageError::Denied))
}

struct Million(u64);

impl Listing for Million {
    fn next(mut self: Box<Self>) -> LocalFuture<(Box<dyn Listing>, StorageResult<Names>)> {
        let end = NAMES.min(self.0 + LIST_BATCH as u64);
        let names = (self.0..end).map(|number| (format!("name-{number}"), facts(Kind::File))).collect();
        self.0 = end;
        ready((self, Ok(names)))
    }
}

impl Source for Endless {
    fn size_bytes(&self) -> u64 {
        FILE_BYTES
    }
    fn read_at(&self, _: u64, mut buffer: Vec<u8>) -> LocalFuture<(Vec<u8>, StorageResult<usize>)> {
        buffer.fill(b'#');
        let count = buffer.len();
        ready((buffer, Ok(count)))
    }
}

impl Storage for Endless {
    fn facts(&self, path: &VirtualPath) -> LocalFuture<StorageResult<Facts>> {
        let kind = if path.to_string() == "/" { Kind::Directory } else { Kind::File };
        ready(Ok(facts(kind)))
    }
    fn size(&self, _: &VirtualPath) -> LocalFuture<StorageResult<u64>> {
        ready(Ok(FILE_BYTES))
    }
    fn list(&self, _: &VirtualPath) -> LocalFuture<StorageResult<Box<dyn Listing>>> {
        ready(Ok(Box::new(Million(0))))
    }
    fn retrieve(&self, _: &VirtualPath) -> LocalFuture<StorageResult<Box<dyn Source>>> {
        ready(Ok(Box::new(Endless)))
    }
    fn store(&self, _: &VirtualPath, _: Store, _: u32) -> LocalFuture<StorageResult<Storing>> {
        denied()
    }
    fn make_directory(&self, _: &VirtualPath, _: u32) -> LocalFuture<StorageResult<()>> {
        denied()
    }
    fn remove_directory(&self, _: &VirtualPath) -> LocalFuture<StorageResult<()>> {
        denied()
    }
    fn remove(&self, _: &VirtualPath) -> LocalFuture<StorageResult<()>> {
        denied()
    }
    fn rename(&self, _: &VirtualPath, _: &VirtualPath) -> LocalFuture<StorageResult<()>> {
        denied()
    }
    fn set_modified(&self, _: &VirtualPath, _: UnixTime) -> LocalFuture<StorageResult<()>> {
        denied()
    }
    fn set_mode(&self, _: &VirtualPath, _: u32) -> LocalFuture<StorageResult<()>> {
        denied()
    }
}
