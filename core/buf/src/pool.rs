//! The buffer pool of one shard: the memory of every packet and every queued byte.

use crate::packet::shared::Shared;
use crate::packet::{Packet, Storage};
use crate::size_class::{CLASSES_BYTES, HEADROOM_BYTES, LEAST_BUFFER_BYTES};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Upper bound of the memory reserved from all senders: a batch of packets. So much may be received beyond what is in use
/// while that is more than the limit.
pub const MOST_RESERVE_BYTES: usize = 64 * 4 * LEAST_BUFFER_BYTES;
/// The fraction of the limit reserved from senders that already hold memory: one part in this many.
const RECEIVING_PART: usize = 4;

/// Most memory of idle buffers kept for reuse, for each class.
const KEPT_BYTES: usize = 8 << 20;

/// The memory pressure of a pool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Pressure {
    /// Enough is left: queues may grow.
    Plenty,
    /// Less than an eighth of the limit is left: queues do not grow.
    Short,
    /// Less than a sixteenth is left: data that peers will retransmit is dropped.
    Scarce,
    /// What is left is for packets that are given back at once: nothing more is kept.
    Full,
}

/// A pool of buffers with one limit on the memory in use: the host's memory limit.
///
/// Buffers are recycled, so a steady state allocates nothing. Return every packet with [`Pool::give`]; a packet that is
/// only dropped stays counted.
///
/// ```
/// use inhost_buf::Pool;
/// let mut pool = Pool::new(4096);
/// let packet = pool.take(1500).unwrap();
/// assert!(pool.take(1500).is_none(), "the limit counts whole buffers");
/// pool.give(packet);
/// assert!(pool.take(1500).is_some());
/// ```
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Pool {
    // Idle memory: a thawed pool allocates anew.
    #[cfg_attr(feature = "freeze", serde(skip))]
    free: [Vec<Box<[u8]>>; CLASSES_BYTES.len()],
    outstanding_bytes: usize,
    // Of others, who are not frozen.
    #[cfg_attr(feature = "freeze", serde(skip))]
    outside_bytes: usize,
    limit_bytes: usize,
    /// Packets are received up to here while more is in use than the limit allows.
    ceiling_bytes: usize,
    refused: u64,
}

impl Pool {
    /// A pool with at most `limit_bytes` in use at a time.
    pub fn new(limit_bytes: usize) -> Self {
        Pool {
            free: Default::default(),
            outstanding_bytes: 0,
            outside_bytes: 0,
            limit_bytes,
            ceiling_bytes: usize::MAX,
            refused: 0,
        }
    }
    /// An empty packet with [`HEADROOM_BYTES`] before it and room for at least `bytes`, or `None` when the limit
    /// is reached or no class is so large.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Option<Packet> {
        let most_bytes = self.most_bytes();
        self.take_storage(bytes.checked_add(HEADROOM_BYTES)?, most_bytes)
            .map(|storage| Packet::from_storage(storage, HEADROOM_BYTES))
    }
    /// A buffer without headroom, for bytes that are kept. A sixteenth of the limit, or a batch of packets where that is
    /// less, is left for receiving acknowledgments.
    #[inline]
    pub fn take_bare(&mut self, bytes: usize) -> Option<Packet> {
        let most_bytes = self.limit_bytes - self.reserve_bytes();
        self.take_storage(bytes, most_bytes).map(|storage| Packet::from_storage(storage, 0))
    }
    /// [`Pool::take_bare`] for a send queue that is not empty. A quarter of the limit is left to receivers: peers decide
    /// when sent data is released, and their segments must be received meanwhile.
    #[inline]
    pub fn take_to_send(&mut self, bytes: usize) -> Option<Packet> {
        let most_bytes = self.limit_bytes - self.limit_bytes / RECEIVING_PART;
        self.take_storage(bytes, most_bytes).map(|storage| Packet::from_storage(storage, 0))
    }
    /// Returns a buffer to the pool. A packet without memory is accepted, too.
    #[inline(always)]
    pub fn give(&mut self, packet: Packet) {
        let capacity = packet.capacity();
        let Storage::Own(storage) = packet.into_storage() else { return self.uncharge(capacity) };
        self.outstanding_bytes = self.outstanding_bytes.saturating_sub(storage.len());
        // The class is the number of doublings from the smallest size.
        let class = (storage.len() / LEAST_BUFFER_BYTES).trailing_zeros() as usize;
        let kept = (KEPT_BYTES / LEAST_BUFFER_BYTES) >> class.min(CLASSES_BYTES.len());
        if CLASSES_BYTES.get(class) == Some(&storage.len()) && self.free[class].len() < kept {
            self.free[class].push(storage);
        }
    }
    /// Lets a packet lie in a buffer that is at least half full, or bare and the smallest there is: else its bytes move to such
    /// a one, if there is memory.
    #[inline]
    pub fn tighten(&mut self, packet: &mut Packet) {
        let is_least = || packet.headroom() == 0 && packet.capacity() <= LEAST_BUFFER_BYTES;
        if packet.len() * 2 < packet.capacity() && !is_least() {
            self.move_to_least(packet);
        }
    }
    #[inline(never)]
    fn move_to_least(&mut self, packet: &mut Packet) {
        if let Some(mut small) = self.take_bare(packet.len()) {
            small.append(packet.bytes());
            self.give(core::mem::replace(packet, small));
        }
    }
    /// Counts a packet in another pool's memory as taken from this pool. False when the limit is reached.
    pub fn adopt(&mut self, packet: &Packet) -> bool {
        let fits = self.in_use_bytes() + packet.capacity() <= self.most_bytes();
        if fits {
            self.outstanding_bytes += packet.capacity();
        } else {
            self.refused += 1;
        }
        fits
    }
    /// Stops counting a packet, whose memory is counted elsewhere from now on. [`Pool::adopt`] counts it again.
    pub fn let_go(&mut self, packet: &Packet) {
        self.uncharge(packet.capacity());
    }
    /// Returns a sender's reference to shared memory. A buffer of the pool comes back with the last reference; one that
    /// others still read is no longer counted.
    pub(crate) fn give_shared(&mut self, held: Arc<Shared>) {
        match Arc::try_unwrap(held) {
            Ok(Shared::Written(packet)) => self.give(packet),
            Ok(Shared::Lent(_)) => {}
            Err(still_read) => {
                if let Shared::Written(packet) = &*still_read {
                    self.let_go(packet);
                }
            }
        }
    }
    /// Stops counting `bytes` of a buffer that another holder will free.
    fn uncharge(&mut self, bytes: usize) {
        self.outstanding_bytes = self.outstanding_bytes.saturating_sub(bytes);
    }
    /// Counts `bytes` of memory that is not of the pool within its limit, in place of what was counted so before.
    pub fn set_outside_bytes(&mut self, bytes: usize) {
        self.outside_bytes = bytes;
    }
    /// What [`Pool::set_outside_bytes`] said last.
    pub fn outside_bytes(&self) -> usize {
        self.outside_bytes
    }
    /// All that the limit counts: buffers, and what [`Pool::set_outside_bytes`] said.
    #[inline]
    fn in_use_bytes(&self) -> usize {
        self.outstanding_bytes + self.outside_bytes
    }
    /// Memory that may be used outside of the pool now, so that a quarter of the limit is left to receivers.
    pub fn room_outside_bytes(&self) -> usize {
        (self.limit_bytes - self.limit_bytes / RECEIVING_PART).saturating_sub(self.outstanding_bytes)
    }
    /// Capacity of all buffers in use.
    pub fn outstanding_bytes(&self) -> usize {
        self.outstanding_bytes
    }
    /// Memory kept for reuse: idle buffers and their lists.
    pub fn idle_bytes(&self) -> usize {
        let lists: usize = self.free.iter().map(|list| list.capacity() * size_of::<Box<[u8]>>()).sum();
        lists + self.free.iter().flatten().map(|buffer| buffer.len()).sum::<usize>()
    }
    /// The limit on memory in use.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }
    /// Changes the limit. Buffers in use are not reclaimed. While they exceed it, a batch of packets can be received
    /// nevertheless: what peers acknowledge is how they become free.
    pub fn set_limit_bytes(&mut self, limit_bytes: usize) {
        self.limit_bytes = limit_bytes;
        self.ceiling_bytes = usize::MAX;
    }
    /// Whether less than an eighth of the limit is left, so that buffers must not grow.
    pub fn is_under_pressure(&self) -> bool {
        self.in_use_bytes() > self.limit_bytes / 8 * 7
    }
    /// Whether senders must keep to their share. This holds well before allocations for sending fail.
    pub fn is_short_to_send(&self) -> bool {
        self.in_use_bytes() > self.limit_bytes / 8 * 5
    }
    /// Whether more is in use than senders may take, so that their memory is missing to receivers.
    pub fn is_full_to_send(&self) -> bool {
        self.in_use_bytes() > self.limit_bytes - self.limit_bytes / RECEIVING_PART
    }
    /// The memory pressure now.
    pub fn pressure(&self) -> Pressure {
        match () {
            () if self.in_use_bytes() + self.full_bytes() > self.limit_bytes => Pressure::Full,
            () if self.in_use_bytes() > self.limit_bytes / 16 * 15 => Pressure::Scarce,
            () if self.is_under_pressure() => Pressure::Short,
            () => Pressure::Plenty,
        }
    }
    /// After [`Packet::thaw`] of all packets: counts those alone as in use, and not what drivers held when the pool was
    /// frozen.
    #[cfg(feature = "freeze")]
    pub fn thaw(&mut self, outstanding_bytes: usize) {
        self.outstanding_bytes = outstanding_bytes;
    }
    /// Requests refused so far because the limit was reached.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// What is left to packets that are given back at once.
    #[inline]
    fn reserve_bytes(&self) -> usize {
        (self.limit_bytes / 16).min(MOST_RESERVE_BYTES)
    }
    /// How much is left at most when nothing more is kept: half of that, or one frame.
    #[inline]
    fn full_bytes(&self) -> usize {
        (self.reserve_bytes() / 2).max(4 * LEAST_BUFFER_BYTES)
    }
    /// The most that may be in use with the next packet.
    #[inline]
    fn most_bytes(&mut self) -> usize {
        match self.in_use_bytes() > self.limit_bytes {
            true => self.lowered_ceiling_bytes(),
            false => {
                self.ceiling_bytes = usize::MAX;
                self.limit_bytes
            }
        }
    }
    /// The ceiling falls with what is in use, and does not rise with it until that is within the limit.
    #[cold]
    fn lowered_ceiling_bytes(&mut self) -> usize {
        self.ceiling_bytes = self.ceiling_bytes.min(self.in_use_bytes() + MOST_RESERVE_BYTES);
        self.ceiling_bytes
    }
    /// A buffer for `bytes`, if no more than `most_bytes` are in use with it.
    #[inline]
    fn take_storage(&mut self, bytes: usize, most_bytes: usize) -> Option<Box<[u8]>> {
        let class = CLASSES_BYTES.iter().position(|&size| size >= bytes)?;
        let size = CLASSES_BYTES[class];
        if self.in_use_bytes() + size > most_bytes {
            self.refused += 1;
            return None;
        }
        self.outstanding_bytes += size;
        match self.free[class].pop() {
            Some(storage) => Some(storage),
            None => Some(self.allocate(size)),
        }
    }
    /// A new buffer. Idle buffers of other classes are freed first, so that used and idle buffers together stay within the
    /// limit.
    #[cold]
    fn allocate(&mut self, size: usize) -> Box<[u8]> {
        let idle_bytes: usize =
            self.free.iter().zip(CLASSES_BYTES).map(|(list, each)| list.len() * each).sum();
        let mut excess_bytes = (self.in_use_bytes() + idle_bytes).saturating_sub(self.limit_bytes);
        for (list, each) in self.free.iter_mut().zip(CLASSES_BYTES).rev() {
            while excess_bytes > 0 && list.pop().is_some() {
                excess_bytes = excess_bytes.saturating_sub(each);
            }
        }
        vec![0; size].into_boxed_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_fills_half_a_buffer_of_its_class() {
        let mut pool = Pool::new(1 << 20);
        for bytes in crate::COPY_BELOW_BYTES..=65_536 + HEADROOM_BYTES {
            let packet = pool.take_bare(bytes).unwrap();
            assert!(packet.capacity() <= 2 * bytes, "{bytes} bytes in {}", packet.capacity());
            pool.give(packet);
        }
    }

    #[test]
    fn senders_leave_room_to_receive_and_the_first_bytes_of_others_room_for_acknowledgments() {
        for limit_bytes in [128 << 10, 1 << 20, 64 << 20] {
            let mut pool = Pool::new(limit_bytes);
            let queued: Vec<Packet> = core::iter::from_fn(|| pool.take_to_send(16 << 10)).collect();
            let left_bytes = limit_bytes - pool.outstanding_bytes();
            assert!((limit_bytes / 4..limit_bytes / 4 + (18 << 10)).contains(&left_bytes));
            assert!(pool.is_short_to_send() && !pool.is_under_pressure() && !queued.is_empty());
            let first: Vec<Packet> = core::iter::from_fn(|| pool.take_bare(16 << 10)).collect();
            let left_bytes = limit_bytes - pool.outstanding_bytes();
            assert!(left_bytes >= (limit_bytes / 16).min(MOST_RESERVE_BYTES) && !first.is_empty());
            assert!(pool.take(1500).is_some() && pool.take_bare(16 << 10).is_none());
        }
    }

    #[test]
    fn what_is_kept_for_reuse_makes_way_for_what_is_out() {
        let mut pool = Pool::new(1 << 20);
        for bytes in CLASSES_BYTES.into_iter().chain(CLASSES_BYTES.into_iter().rev()) {
            let all: Vec<Packet> = core::iter::from_fn(|| pool.take_bare(bytes)).collect();
            assert!(!all.is_empty());
            let idle: usize = pool.free.iter().flatten().map(|buffer| buffer.len()).sum();
            assert!(pool.outstanding_bytes() + idle <= 1 << 20, "{bytes}");
            all.into_iter().for_each(|packet| pool.give(packet));
        }
    }

    #[test]
    fn memory_outside_of_the_pool_counts_within_its_limit() {
        let mut pool = Pool::new(64 << 10);
        assert_eq!(pool.room_outside_bytes(), 48 << 10);
        pool.set_outside_bytes(40 << 10);
        let packet = pool.take_bare(16 << 10).unwrap();
        assert!(pool.take_bare(16 << 10).is_none());
        assert_eq!(pool.room_outside_bytes(), (48 << 10) - packet.capacity());
        pool.set_outside_bytes(0);
        assert!(pool.take_bare(16 << 10).is_some());
    }

    #[test]
    fn a_batch_is_received_above_a_limit_each_time_that_it_is_exceeded() {
        let mut pool = Pool::new(1 << 20);
        for _ in 0..2 {
            let queued: Vec<Packet> = core::iter::from_fn(|| pool.take_to_send(16 << 10)).collect();
            pool.set_outside_bytes(512 << 10);
            let received: Vec<Packet> = core::iter::from_fn(|| pool.take(1500)).collect();
            assert!((60..=64).contains(&received.len()), "{}", received.len());
            assert!(pool.take_bare(1500).is_none());
            queued.into_iter().chain(received).for_each(|packet| pool.give(packet));
            pool.set_outside_bytes(0);
            let within = pool.take(1500).unwrap();
            pool.give(within);
        }
    }

    #[test]
    fn the_limit_counts_capacity_and_buffers_come_round() {
        let mut pool = Pool::new(4096);
        let a = pool.take(1500).unwrap();
        assert_eq!(pool.outstanding_bytes(), a.capacity());
        assert!(pool.take(2000).is_none() && pool.refused() == 1);
        let capacity = a.capacity();
        pool.give(a);
        assert_eq!(pool.outstanding_bytes(), 0);
        assert!(pool.idle_bytes() > capacity);
        assert!(pool.take(2000).is_some());
        assert!(pool.take(1 << 20).is_none());
        pool.give(Packet::default());
    }
}
