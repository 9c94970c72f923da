//! A bounded queue of datagrams in one buffer.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::memory::{Allowance, Taken};

/// Memory that each direction of a socket may always hold.
pub(super) const SMALL_RING_BYTES: usize = 4096;
/// One datagram is counted as so many bytes at least, so that empty ones are bounded too.
const LEAST_BYTES: usize = 256;
/// Room in the list of datagrams, at least.
const LEAST_ENTRIES: usize = SMALL_RING_BYTES / LEAST_BYTES;
/// Datagrams begin at multiples of this. Each takes up some place, or a full ring would look like an empty one.
const ALIGNMENT_BYTES: usize = 16;

/// A first-in, first-out queue of datagrams, each with an `A` about it. The bytes of each are contiguous.
///
/// The buffer is allocated when it is first needed, and doubles up to a limit as long as there is an allowance for that.
/// An empty ring takes one datagram of any length. Nothing is allocated for a datagram while the size stays the same;
/// [`DatagramRing::release_unused`] gives memory back.
pub(super) struct DatagramRing<A> {
    bytes: Vec<u8>,
    entries: VecDeque<Entry<A>>,
    /// Bytes that the entries take up, without what is skipped at the end of the buffer.
    used_bytes: usize,
    /// The most of them since memory was last looked at.
    peak_bytes: usize,
    /// Whether anything was put in or taken out since then.
    is_active: bool,
    limit_bytes: usize,
    taken: Option<Taken>,
    allowance: Arc<Allowance>,
}

struct Entry<A> {
    start: usize,
    length: usize,
    about: A,
}

impl<A> Entry<A> {
    /// Where the next one may begin.
    fn end(&self) -> usize {
        self.start + place_bytes(self.length)
    }
}

/// The place that a datagram takes up.
fn place_bytes(length: usize) -> usize {
    length.max(1).next_multiple_of(ALIGNMENT_BYTES)
}

impl<A> DatagramRing<A> {
    /// An empty ring of about `limit_bytes`.
    pub(super) fn new(limit_bytes: usize, allowance: &Arc<Allowance>) -> Self {
        DatagramRing {
            bytes: Vec::new(),
            entries: VecDeque::new(),
            used_bytes: 0,
            peak_bytes: 0,
            is_active: false,
            limit_bytes: limit_bytes.max(SMALL_RING_BYTES),
            taken: None,
            allowance: allowance.clone(),
        }
    }
    /// Changes the limit. What is held stays.
    pub(super) fn set_limit(&mut self, limit_bytes: usize) {
        self.limit_bytes = limit_bytes.max(SMALL_RING_BYTES);
    }
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Whether it is at most half full.
    pub(super) fn is_half_empty(&self) -> bool {
        self.used_bytes <= self.bytes.len() / 2 && self.entries.len() <= entries_of(self.bytes.len()) / 2
    }
    /// Whether it holds more memory than every ring may.
    pub(super) fn is_large(&self) -> bool {
        self.bytes.len() > SMALL_RING_BYTES
    }
    /// Sees to it that a datagram of `length` bytes fits; false when there is no room for it now.
    pub(super) fn make_room(&mut self, length: usize) -> bool {
        if self.place_for(length).is_some() {
            return true;
        }
        let wanted = self.used_bytes + place_bytes(length);
        if self.entries.is_empty() && wanted > self.limit_bytes {
            return self.resize(wanted, true);
        }
        let mut capacity = self.bytes.len().max(SMALL_RING_BYTES / 2);
        loop {
            if capacity >= self.limit_bytes {
                return false;
            }
            capacity = (capacity * 2).min(self.limit_bytes);
            if capacity >= wanted && entries_of(capacity) > self.entries.len() {
                return self.resize(capacity, false)
                    || (self.entries.is_empty() && self.resize(wanted, true));
            }
        }
    }
    /// Appends a datagram whose bytes `fill` writes. False when there is no room for it.
    pub(super) fn push(&mut self, length: usize, about: A, fill: impl FnOnce(&mut [u8])) -> bool {
        if !self.make_room(length) {
            return false;
        }
        let Some(start) = self.place_for(length) else { return false };
        let Some(place) = self.bytes.get_mut(start..start + length) else { return false };
        fill(place);
        self.entries.push_back(Entry { start, length, about });
        self.used_bytes += place_bytes(length);
        self.peak_bytes = self.peak_bytes.max(self.used_bytes);
        self.is_active = true;
        true
    }
    /// The first datagram, which stays.
    pub(super) fn front(&self) -> Option<(&A, &[u8])> {
        let Entry { start, length, about } = self.entries.front()?;
        Some((about, self.bytes.get(*start..start + length)?))
    }
    /// Drops the first datagram.
    pub(super) fn pop(&mut self) {
        let Some(entry) = self.entries.pop_front() else { return };
        self.used_bytes -= place_bytes(entry.length);
        self.is_active = true;
        // Beyond the allowance memory is held only while it is used.
        if self.entries.is_empty() && self.taken.is_none() && self.is_large() {
            self.release();
        }
    }
    /// Drops every datagram, and gives all memory back.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.used_bytes = 0;
        self.release();
    }
    /// Gives memory back when little of it was used since the last call. Whether it is to be called again.
    pub(super) fn release_unused(&mut self) -> bool {
        let peak_bytes = std::mem::replace(&mut self.peak_bytes, self.used_bytes);
        let was_active = std::mem::take(&mut self.is_active);
        if self.entries.is_empty() && peak_bytes <= SMALL_RING_BYTES {
            self.release();
        }
        self.is_large() && (was_active || self.entries.is_empty())
    }

    /// Where a datagram of `length` bytes goes, if there is room.
    fn place_for(&self, length: usize) -> Option<usize> {
        let (wanted, capacity) = (place_bytes(length), self.bytes.len());
        let (Some(first), Some(last)) = (self.entries.front(), self.entries.back()) else {
            return (wanted <= capacity).then_some(0);
        };
        let end = last.end();
        if self.entries.len() >= entries_of(capacity) {
            None
        } else if last.start < first.start {
            (end + wanted <= first.start).then_some(end)
        } else if end + wanted <= capacity {
            Some(end)
        } else {
            (wanted <= first.start).then_some(0)
        }
    }
    /// Moves everything to a buffer of another size, which may exceed the allowance if `anyway`.
    fn resize(&mut self, capacity: usize, anyway: bool) -> bool {
        let small_bytes = memory_bytes::<A>(SMALL_RING_BYTES);
        let taken = match memory_bytes::<A>(capacity).saturating_sub(small_bytes) {
            0 => None,
            beyond_bytes => match self.allowance.take(beyond_bytes) {
                None if !anyway => return false,
                taken => taken,
            },
        };
        let mut bytes = vec![0; capacity];
        let mut start = 0;
        for entry in &mut self.entries {
            let from = entry.start..entry.start + entry.length;
            if let (Some(from), Some(to)) = (self.bytes.get(from), bytes.get_mut(start..start + entry.length))
            {
                to.copy_from_slice(from);
            }
            entry.start = start;
            start = entry.end();
        }
        self.bytes = bytes;
        self.entries.reserve_exact(entries_of(capacity).saturating_sub(self.entries.len()));
        self.taken = taken;
        true
    }
    fn release(&mut self) {
        self.bytes = Vec::new();
        self.entries = VecDeque::new();
        self.taken = None;
    }
}

/// The most datagrams in a buffer of that size.
fn entries_of(capacity: usize) -> usize {
    (capacity / LEAST_BYTES).max(LEAST_ENTRIES)
}
/// The memory of a ring with a buffer of that size.
fn memory_bytes<A>(capacity: usize) -> usize {
    capacity + entries_of(capacity) * size_of::<Entry<A>>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(ring: &mut DatagramRing<u32>) -> Vec<(u32, Vec<u8>)> {
        let mut all = Vec::new();
        while let Some((&about, bytes)) = ring.front() {
            all.push((about, bytes.to_vec()));
            ring.pop();
        }
        all
    }
    fn put(ring: &mut DatagramRing<u32>, about: u32, length: usize) -> bool {
        ring.push(length, about, |place| place.fill(about as u8))
    }

    #[test]
    fn datagrams_of_all_lengths_come_out_as_they_went_in_whatever_the_ring_does() {
        let mut random = inhost_base::Random::from_number(11);
        for limit_bytes in [4096, 10_000, 70_000] {
            let mut ring = DatagramRing::new(limit_bytes, &Allowance::new(8 * 1_000_000));
            let mut expected = VecDeque::new();
            let mut number = 0;
            for _ in 0..20_000 {
                let longest = [1, 100, 3_000, 66_000][random.public_below(4) as usize];
                if random.public_below(2) == 0 {
                    let length = random.public_below(longest) as usize;
                    let was_empty = ring.is_empty();
                    if put(&mut ring, number, length) {
                        expected.push_back((number, vec![number as u8; length]));
                        number += 1;
                    } else {
                        assert!(!was_empty, "an empty ring takes anything");
                    }
                } else if let Some((&about, bytes)) = ring.front() {
                    assert_eq!(Some((about, bytes.to_vec())), expected.pop_front());
                    ring.pop();
                } else {
                    assert!(expected.is_empty());
                }
                // One datagram alone may be longer than the limit.
                let most_bytes = limit_bytes.max(66_016);
                assert!(ring.used_bytes <= ring.bytes.len() && ring.bytes.len() <= most_bytes);
                assert!(ring.entries.capacity() <= 2 * entries_of(most_bytes));
                if random.public_below(100) == 0 {
                    ring.release_unused();
                }
            }
            assert_eq!(contents(&mut ring), Vec::from(expected));
            assert_eq!((ring.used_bytes, ring.is_empty()), (0, true));
        }
    }

    #[test]
    fn memory_is_taken_from_the_allowance_and_given_back_when_it_is_not_used() {
        let allowance = Allowance::new(8 * 100_000);
        let mut ring = DatagramRing::<u32>::new(65_536, &allowance);
        while put(&mut ring, 1, 1000) {}
        let held_bytes = 100_000 - allowance.left_bytes();
        let small_bytes = memory_bytes::<u32>(SMALL_RING_BYTES);
        let memory = ring.bytes.capacity() + ring.entries.capacity() * size_of::<Entry<u32>>();
        assert!(memory <= held_bytes + small_bytes, "{memory} > {held_bytes} + {small_bytes}");
        // Another finds less, and still takes one datagram of any length, until that is read.
        let mut other = DatagramRing::<u32>::new(65_536, &allowance);
        assert!(put(&mut other, 1, 65_000) && !put(&mut other, 2, 65_000));
        assert_eq!(contents(&mut other).len(), 1);
        assert!(!other.is_large());
        assert!(contents(&mut ring).len() >= 32);
        // What was needed a moment ago may be needed again, and is kept.
        assert!(ring.release_unused() && ring.is_large());
        assert!(!ring.release_unused() && !ring.is_large());
        assert_eq!(allowance.left_bytes(), 100_000);
    }

    #[test]
    fn empty_datagrams_are_bounded_too() {
        let mut ring = DatagramRing::<u32>::new(65_536, &Allowance::new(8 << 20));
        let count = (0..1_000_000).take_while(|&number| put(&mut ring, number, 0)).count();
        assert_eq!(count, 65_536 / LEAST_BYTES);
        assert!(contents(&mut ring).into_iter().map(|(about, _)| about as usize).eq(0..count));
    }

    #[test]
    fn datagrams_that_nobody_reads_are_not_looked_at_for_ever() {
        let mut ring = DatagramRing::<u32>::new(65_536, &Allowance::new(8 << 20));
        while put(&mut ring, 1, 1000) {}
        assert!(ring.release_unused() && !ring.release_unused());
    }
}
