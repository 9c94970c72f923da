//! Memory of remote sockets' buffers, counted within the host's limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use inhost_base::Duration;
use inhost_buf::{ByteRing, Pool};

/// Bytes that each direction of a remote stream may hold beside the connection's own queues: 1 MiB. It begins with 4 KiB,
/// grows when that is full, and shrinks when it was not needed for a second or two. Much received data is not copied into it:
/// its packets wait as they came, up to four times as much. Much that is written at once goes in blocks, up to half of it. All
/// streams of a host share an eighth of its memory limit for that; beyond it each direction holds 4 KiB.
pub const REMOTE_RING_BYTES: usize = 1 << 20;

/// Memory that each direction of a stream may always hold.
pub(crate) const SMALL_RING_BYTES: usize = 4096;
/// What a ring grows to when that does not suffice; from there on it doubles, as long as half of the allowance is left to
/// other rings.
const MIDDLE_RING_BYTES: usize = 64 * 1024;
/// All rings of a host together: one part of so many of its memory limit. Small ones are not counted.
const PART: usize = 8;
/// How long memory that was needed for a burst is kept for the next.
pub(crate) const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Memory that the rings of a host may hold together beyond the small ones. Any thread takes of it; the host's own thread
/// counts what is taken as memory of the host.
#[derive(Debug)]
pub(crate) struct Allowance {
    limit_bytes: AtomicUsize,
    taken_bytes: AtomicUsize,
}

impl Allowance {
    /// For a host whose memory is limited to `limit_bytes`.
    pub(crate) fn new(limit_bytes: usize) -> Arc<Allowance> {
        Arc::new(Allowance { limit_bytes: (limit_bytes / PART).into(), taken_bytes: 0.into() })
    }
    /// Has `pool` count what is taken, and lowers the limit to what the pool has left.
    pub(crate) fn count_in(&self, pool: &mut Pool) {
        pool.set_outside_bytes(self.taken_bytes.load(Ordering::Relaxed));
        let limit_bytes = (pool.limit_bytes() / PART).min(pool.room_outside_bytes());
        self.limit_bytes.store(limit_bytes, Ordering::Relaxed);
    }
    #[cfg(test)]
    pub(crate) fn left_bytes(&self) -> usize {
        self.limit_bytes.load(Ordering::Relaxed) - self.taken_bytes.load(Ordering::Relaxed)
    }
    /// Takes a part, or nothing when that much is not left.
    pub(crate) fn take(self: &Arc<Allowance>, bytes: usize) -> Option<Taken> {
        self.take_of(bytes, 1)
    }
    /// Whether [`Allowance::take_of`] would give this now.
    pub(crate) fn has_part(&self, bytes: usize, part: usize) -> bool {
        self.taken_bytes.load(Ordering::Relaxed) + bytes <= self.limit_bytes.load(Ordering::Relaxed) / part
    }
    /// The same, if one part in `part` of the allowance suffices for all that is taken then.
    pub(crate) fn take_of(self: &Arc<Allowance>, bytes: usize, part: usize) -> Option<Taken> {
        let mut taken = Taken { of: self.clone(), bytes: 0 };
        taken.add(bytes, part).then_some(taken)
    }
}

/// A part of an allowance, given back when it is dropped.
pub(crate) struct Taken {
    of: Arc<Allowance>,
    bytes: usize,
}

impl Taken {
    /// Takes more, if one part in `part` of the allowance suffices for all that is taken then.
    fn add(&mut self, bytes: usize, part: usize) -> bool {
        let limit_bytes = self.of.limit_bytes.load(Ordering::Relaxed) / part;
        let more = |taken: usize| (taken + bytes <= limit_bytes).then_some(taken + bytes);
        let is_taken = self.of.taken_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if is_taken {
            self.bytes += bytes;
        }
        is_taken
    }
    /// Gives back all but `bytes`.
    pub(crate) fn keep(&mut self, bytes: usize) {
        let back = self.bytes.saturating_sub(bytes);
        self.of.taken_bytes.fetch_sub(back, Ordering::Relaxed);
        self.bytes -= back;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.keep(0);
    }
}

/// A ring that is small while little waits in it, and doubles when it is full, as long as there is an allowance for that.
/// It stays large until [`Ring::release_unused`] finds that it was not needed.
pub(crate) struct Ring {
    bytes: ByteRing,
    /// How many such buffers share the memory.
    buffers: usize,
    size_bytes: usize,
    most_bytes: usize,
    /// The most bytes that waited since memory was last looked at.
    peak_bytes: usize,
    taken: Taken,
}

impl Ring {
    /// An empty ring that grows up to `most_bytes`, in one buffer, or in two that are swapped.
    pub(crate) fn new(most_bytes: usize, buffers: usize, allowance: &Arc<Allowance>) -> Ring {
        let size_bytes = most_bytes.min(SMALL_RING_BYTES);
        let taken = Taken { of: allowance.clone(), bytes: 0 };
        let bytes = ByteRing::new(size_bytes / buffers);
        Ring { bytes, buffers, size_bytes, most_bytes, peak_bytes: 0, taken }
    }
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
    /// Whether it holds more memory than every ring may.
    pub(crate) fn is_large(&self) -> bool {
        self.size_bytes > SMALL_RING_BYTES
    }
    /// Bytes that fit as it is.
    pub(crate) fn free(&self) -> usize {
        self.bytes.free()
    }
    /// Room for `wanted` bytes, or for as many as it can be.
    pub(crate) fn room(&mut self, wanted: usize) -> usize {
        while wanted > self.bytes.free() && self.grow() {}
        self.bytes.free()
    }
    fn grow(&mut self) -> bool {
        let size_bytes = (self.size_bytes * 2).max(MIDDLE_RING_BYTES).min(self.most_bytes);
        let part = if size_bytes > MIDDLE_RING_BYTES { 2 } else { 1 };
        let grows = size_bytes > self.size_bytes
            && self.taken.add(size_bytes - SMALL_RING_BYTES - self.taken.bytes, part);
        if grows {
            self.set_size(size_bytes);
        }
        grows
    }
    fn set_size(&mut self, size_bytes: usize) {
        self.size_bytes = size_bytes;
        self.bytes.set_limit(size_bytes / self.buffers);
    }
    pub(crate) fn write(&mut self, bytes: &[u8]) -> usize {
        let count = self.bytes.write(bytes);
        self.peak_bytes = self.peak_bytes.max(self.bytes.len() * self.buffers);
        count
    }
    /// Exchanges what waits for `other`, which is empty.
    pub(crate) fn swap(&mut self, other: &mut ByteRing) {
        std::mem::swap(&mut self.bytes, other);
        self.bytes.set_limit(self.size_bytes / self.buffers);
    }
    pub(crate) fn peek(&self, into: &mut [u8]) -> usize {
        self.bytes.peek(into)
    }
    pub(crate) fn read(&mut self, into: &mut [u8]) -> usize {
        self.bytes.read(into)
    }
    pub(crate) fn discard(&mut self, bytes: usize) {
        self.bytes.discard(bytes);
    }
    /// Shrinks an empty ring to what was needed since the last call.
    pub(crate) fn release_unused(&mut self) {
        let peak_bytes = std::mem::replace(&mut self.peak_bytes, self.bytes.len() * self.buffers);
        let needed_bytes = match peak_bytes {
            0..=SMALL_RING_BYTES => SMALL_RING_BYTES,
            _ => (peak_bytes * 2).next_power_of_two().max(MIDDLE_RING_BYTES),
        };
        if self.bytes.is_empty() && needed_bytes < self.size_bytes {
            self.set_size(needed_bytes);
            self.taken.keep(needed_bytes - SMALL_RING_BYTES);
        }
    }
    /// Shrinks an empty ring at once.
    pub(crate) fn release(&mut self) {
        self.peak_bytes = 0;
        self.release_unused();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken_bytes(allowance: &Allowance) -> usize {
        allowance.taken_bytes.load(Ordering::Relaxed)
    }

    fn fill(ring: &mut Ring) -> usize {
        ring.room(usize::MAX);
        ring.write(&vec![1; 4 << 20])
    }

    #[test]
    fn rings_grow_within_the_allowance_and_leave_a_part_of_it_to_others() {
        const MOST: usize = 1 << 20;
        let allowance = Allowance::new(PART * (8 << 20));
        let mut rings: Vec<_> = (0..100).map(|_| Ring::new(MOST, 1, &allowance)).collect();
        let written: Vec<_> = rings.iter_mut().map(fill).collect();
        let taken: usize = written.iter().map(|bytes| bytes - SMALL_RING_BYTES).sum();
        assert_eq!(taken, taken_bytes(&allowance));
        assert_eq!(written[..4], [MOST; 4]);
        let middle = written.iter().filter(|&&bytes| bytes == MIDDLE_RING_BYTES).count();
        assert!(taken <= 8 << 20 && middle >= 64, "{written:?}");
        // Of the last there are so many that nothing is left for them.
        assert_eq!(written[99], SMALL_RING_BYTES);
        // Released memory makes room for others.
        rings[0].discard(MOST);
        rings[0].release();
        assert_eq!(rings[0].free(), SMALL_RING_BYTES);
        assert_eq!(rings[99].room(usize::MAX), MIDDLE_RING_BYTES - SMALL_RING_BYTES);
        rings.clear();
        assert_eq!(taken_bytes(&allowance), 0);
    }

    #[test]
    fn a_ring_keeps_what_it_needs_and_gives_back_what_it_does_not() {
        let allowance = Allowance::new(1 << 30);
        let mut ring = Ring::new(1 << 20, 1, &allowance);
        assert_eq!(fill(&mut ring), 1 << 20);
        ring.release_unused();
        assert_eq!(ring.size_bytes, 1 << 20, "what waits stays");
        ring.discard(usize::MAX);
        ring.release_unused();
        assert_eq!(ring.size_bytes, 1 << 20, "it was full since the last look");
        ring.write(&[1; 50_000]);
        ring.discard(usize::MAX);
        ring.release_unused();
        assert_eq!(ring.size_bytes, 128 << 10);
        ring.release_unused();
        assert!(!ring.is_large() && taken_bytes(&allowance) == 0);
    }

    #[test]
    fn what_is_taken_is_memory_of_the_host() {
        let mut pool = Pool::new(16 << 20);
        let allowance = Allowance::new(pool.limit_bytes());
        let taken = allowance.take(1 << 20).unwrap();
        allowance.count_in(&mut pool);
        let packets: Vec<_> = std::iter::from_fn(|| pool.take_bare(65_536)).collect();
        let held: usize = packets.iter().map(|packet| packet.capacity()).sum();
        assert!(held + (1 << 20) <= pool.limit_bytes() && held + (2 << 20) > pool.limit_bytes());
        // While others hold the memory, no more is taken.
        allowance.count_in(&mut pool);
        assert!(allowance.take(1).is_none());
        packets.into_iter().for_each(|packet| pool.give(packet));
        allowance.count_in(&mut pool);
        assert!(allowance.take(1).is_some());
        drop(taken);
    }
}
