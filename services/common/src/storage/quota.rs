//! Storage quotas.
//!
//! Usage belongs to a folder, not to a user: all who have the same root, and all their sessions, before and after a
//! reload, share one count. It is made from the files that are there when the first of them stores something, and
//! forgotten when the last of them has left.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{StorageError, StorageResult};

/// Identity of a file: device and inode number.
pub(super) type FileId = (u64, u64);

/// The counts of all folders in use. A clone is the same ones.
#[derive(Clone, Debug, Default)]
pub struct Quotas {
    folders: Arc<Mutex<BTreeMap<FileId, Weak<Used>>>>,
}

impl Quotas {
    /// So many octets for all that is below the folder `root`.
    pub(super) fn limit(&self, root: FileId, limit_bytes: u64) -> Quota {
        let mut folders = locked(&self.folders);
        folders.retain(|_, used| used.strong_count() > 0);
        let known = folders.get(&root).and_then(Weak::upgrade);
        let used = known.unwrap_or_default();
        folders.insert(root, Arc::downgrade(&used));
        Quota { used, limit_bytes }
    }
}

/// A limit with what is used of it; clones are the same.
#[derive(Clone, Debug)]
pub struct Quota {
    used: Arc<Used>,
    limit_bytes: u64,
}

#[derive(Debug, Default)]
struct Used {
    bytes: AtomicU64,
    files: Mutex<Files>,
}

/// State behind the mutex.
#[derive(Debug, Default)]
struct Files {
    counted: bool,
    /// Files with a name that are being added to, each with how many do.
    growing: BTreeMap<FileId, usize>,
}

impl Quota {
    /// So many octets, counted for nobody else.
    pub fn new(limit_bytes: u64) -> Quota {
        Quota { used: Arc::default(), limit_bytes }
    }
    /// Sets what is used, the first time; `count` may take long, and all who store wait for it.
    pub(super) fn ensure_counted(&self, count: impl FnOnce() -> StorageResult<u64>) -> StorageResult<()> {
        let mut files = locked(&self.used.files);
        if !files.counted {
            self.used.bytes.fetch_add(count()?, Ordering::AcqRel);
            files.counted = true;
        }
        Ok(())
    }
    /// Takes so many more octets, if they are there to be had.
    pub(super) fn take(&self, bytes: u64) -> StorageResult<()> {
        let more = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.limit_bytes);
        let taken = self.used.bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken.map(|_| ()).map_err(|_| StorageError::Quota)
    }
    /// Gives octets back.
    pub(super) fn release(&self, bytes: u64) {
        let less = |used: u64| Some(used.saturating_sub(bytes));
        let _ = self.used.bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }
    /// Does what frees a name: `work` gives the file that goes with it, if one does, with its length. Nobody else
    /// frees one meanwhile, so that none is given back twice.
    pub(super) fn freeing<T>(
        &self,
        work: impl FnOnce(&Growing<'_>) -> StorageResult<(T, u64)>,
    ) -> StorageResult<T> {
        let files = locked(&self.used.files);
        let (done, bytes) = work(&Growing(&files.growing))?;
        self.release(bytes);
        Ok(done)
    }
    /// A file that has a name already is being added to, until what comes of this is dropped.
    pub(super) fn grow(&self, file: FileId) -> Grows {
        *locked(&self.used.files).growing.entry(file).or_default() += 1;
        Grows { used: self.used.clone(), file }
    }
    /// Octets used, as far as they were counted.
    pub fn used_bytes(&self) -> u64 {
        self.used.bytes.load(Ordering::Acquire)
    }
}

/// Files that are being added to. Without its name such a file would take space that nobody counts.
pub(super) struct Growing<'a>(&'a BTreeMap<FileId, usize>);

impl Growing<'_> {
    /// Refuses to free a file that somebody adds to.
    pub(super) fn check(&self, file: FileId) -> StorageResult<()> {
        if self.0.contains_key(&file) { Err(StorageError::Busy) } else { Ok(()) }
    }
}

/// A file that is being added to.
#[derive(Debug)]
pub(super) struct Grows {
    used: Arc<Used>,
    file: FileId,
}

impl Drop for Grows {
    fn drop(&mut self) {
        let mut files = locked(&self.used.files);
        match files.growing.get_mut(&self.file) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(files.growing.remove(&self.file)),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
