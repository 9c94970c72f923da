//! Memory of remote sockets' buffers, beside the host's own pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use inhost_buf::ByteRing;

/// Memory that each direction of a stream may always hold.
pub(super) const SMALL_RING_BYTES: usize = 4096;
/// All large rings of a host together: one part of so many of its memory limit, beside that.
const PART: usize = 8;

/// Memory that the rings of a host may hold together beyond the small ones.
#[derive(Debug)]
pub(crate) struct Allowance {
    left_bytes: AtomicUsize,
}

impl Allowance {
    /// For a host whose memory is limited to `limit_bytes`.
    pub(crate) fn new(limit_bytes: usize) -> Arc<Allowance> {
        Arc::new(Allowance { left_bytes: AtomicUsize::new(limit_bytes / PART) })
    }
    /// Takes a part, or nothing when that much is not left.
    pub(super) fn take(self: &Arc<Allowance>, bytes: usize) -> Option<Taken> {
        let less = |left: usize| left.checked_sub(bytes);
        let taken = self.left_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.ok().map(|_| Taken { of: self.clone(), bytes })
    }
    #[cfg(test)]
    pub(super) fn left_bytes(&self) -> usize {
        self.left_bytes.load(Ordering::Relaxed)
    }
}

/// A part of an allowance, given back when it is dropped.
pub(super) struct Taken {
    of: Arc<Allowance>,
    bytes: usize,
}
impl Drop for Taken {
    fn drop(&mut self) {
        self.of.left_bytes.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// A ring that is small while little waits in it, and large as long as there is an allowance for that. An empty one holds
/// next to no memory.
pub(super) struct Ring {
    bytes: ByteRing,
    large_bytes: usize,
    taken: Option<Taken>,
    allowance: Arc<Allowance>,
}

impl Ring {
    pub(super) fn new(large_bytes: usize, allowance: &Arc<Allowance>) -> Ring {
        let bytes = ByteRing::new(large_bytes.min(SMALL_RING_BYTES));
        Ring { bytes, large_bytes, taken: None, allowance: allowance.clone() }
    }
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
    /// Bytes that fit as it is.
    pub(super) fn free(&self) -> usize {
        self.bytes.free()
    }
    /// Room for `wanted` bytes, or for as many as it can be.
    pub(super) fn room(&mut self, wanted: usize) -> usize {
        if wanted > self.bytes.free() && self.taken.is_none() && self.large_bytes > SMALL_RING_BYTES {
            self.taken = self.allowance.take(self.large_bytes);
            if self.taken.is_some() {
                self.bytes.set_limit(self.large_bytes);
            }
        }
        self.bytes.free()
    }
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        self.bytes.write(bytes)
    }
    pub(super) fn front(&self) -> &[u8] {
        self.bytes.front()
    }
    pub(super) fn peek(&self, into: &mut [u8]) -> usize {
        self.bytes.peek(into)
    }
    pub(super) fn read(&mut self, into: &mut [u8]) -> usize {
        let count = self.bytes.read(into);
        self.update();
        count
    }
    pub(super) fn discard(&mut self, bytes: usize) {
        self.bytes.discard(bytes);
        self.update();
    }
    /// Releases unused memory of an empty ring.
    pub(super) fn update(&mut self) {
        if self.bytes.is_empty() && self.taken.take().is_some() {
            self.bytes.set_limit(SMALL_RING_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_large_within_the_allowance_and_small_beyond_it() {
        let allowance = Allowance::new(8 * 150_000);
        let mut rings: Vec<_> = (0..4).map(|_| Ring::new(65_536, &allowance)).collect();
        let written: Vec<_> = rings
            .iter_mut()
            .map(|ring| {
                ring.room(100_000);
                ring.write(&[1; 100_000])
            })
            .collect();
        assert_eq!(written, [65_536, 65_536, 4096, 4096]);
        // Released memory makes room for others.
        assert_eq!(rings[0].read(&mut [0; 70_000]), 65_536);
        assert_eq!((rings[0].free(), rings[2].room(1)), (4096, 65_536 - 4096));
        rings.clear();
        assert_eq!(allowance.left_bytes.load(Ordering::Relaxed), 150_000);
    }
}
