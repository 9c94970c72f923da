//! How much a user may keep.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A limit with what is used of it; clones are the same. What is used is counted once from the files that are there,
/// and then kept with each change.
#[derive(Clone, Debug)]
pub struct Quota {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    limit_bytes: u64,
    used_bytes: AtomicU64,
    counted: AtomicBool,
}

impl Quota {
    /// So many octets.
    pub fn new(limit_bytes: u64) -> Quota {
        let inner = Inner { limit_bytes, used_bytes: AtomicU64::new(0), counted: AtomicBool::new(false) };
        Quota { inner: Arc::new(inner) }
    }
    /// Sets what is used, the first time; `count` may take long.
    pub(super) fn ensure_counted(&self, count: impl FnOnce() -> u64) {
        if !self.inner.counted.swap(true, Ordering::AcqRel) {
            self.inner.used_bytes.fetch_add(count(), Ordering::AcqRel);
        }
    }
    /// Takes so many more octets, if they are there to be had.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let limit = self.inner.limit_bytes;
        let more = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= limit);
        self.inner.used_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }
    /// Gives octets back.
    pub(super) fn release(&self, bytes: u64) {
        let less = |used: u64| Some(used.saturating_sub(bytes));
        let _ = self.inner.used_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }
    /// Octets used, as far as they were counted.
    pub fn used_bytes(&self) -> u64 {
        self.inner.used_bytes.load(Ordering::Acquire)
    }
}
