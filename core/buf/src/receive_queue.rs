//! The receive queue of a stream: bytes in order that the application has not read.

use crate::size_class::LEAST_BUFFER_BYTES;
use crate::{Packet, Pool};
use alloc::collections::VecDeque;

/// Payloads shorter than this, half of the smallest buffer, are merged by copying, so that each does not pin a large
/// buffer.
pub const COPY_BELOW_BYTES: usize = LEAST_BUFFER_BYTES / 2;

/// Received payload, kept in the packets that carried it. Limits count [`ReceiveQueue::capacity_bytes`].
///
/// ```
/// use inhost_buf::{Pool, ReceiveQueue};
/// let mut pool = Pool::new(1 << 20);
/// let mut queue = ReceiveQueue::default();
/// for text in [b"hello, ", b"world! "] {
///     let mut packet = pool.take(1500).unwrap();
///     packet.append(text);
///     queue.push(packet, &mut pool);
/// }
/// let mut into = [0; 12];
/// assert_eq!(queue.read(&mut into, &mut pool), 12);
/// assert_eq!(&into, b"hello, world");
/// assert_eq!(queue.len(), 2);
/// queue.clear(&mut pool);
/// assert_eq!(pool.outstanding_bytes(), 0);
/// ```
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct ReceiveQueue {
    packets: VecDeque<Packet>,
    bytes: usize,
    capacity_bytes: usize,
}

impl ReceiveQueue {
    /// Unread bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }
    /// Whether there are no unread bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
    /// Memory that the unread bytes pin.
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }
    /// Adds the visible bytes of `payload` at the end. Small ones are copied and their buffer returned to `pool`; a kept
    /// buffer is at least half full, if the pool has such ([`Pool::tighten`]).
    #[inline]
    pub fn push(&mut self, mut payload: Packet, pool: &mut Pool) {
        let length = payload.len();
        if length == 0 {
            return pool.give(payload);
        }
        self.bytes += length;
        if length < COPY_BELOW_BYTES
            && let Some(last) = self.packets.back_mut().filter(|last| last.tailroom() >= length)
        {
            last.append(payload.bytes());
            return pool.give(payload);
        }
        pool.tighten(&mut payload);
        self.keep(payload);
    }
    /// Moves bytes from the front into `into`, and returns their number.
    #[inline]
    pub fn read(&mut self, into: &mut [u8], pool: &mut Pool) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(front) = self.packets.front_mut() else { break };
            let n = front.len().min(into.len() - done);
            crate::copy(&mut into[done..done + n], &front.bytes()[..n]);
            done += n;
            self.discard_front(n, pool);
        }
        done
    }
    /// Removes the first packet with its unread bytes. The caller returns it to the pool.
    pub fn take(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.len();
        self.capacity_bytes -= packet.capacity();
        Some(packet)
    }
    /// The first contiguous bytes; empty when there are none.
    pub fn front(&self) -> &[u8] {
        self.packets.front().map_or(&[], Packet::bytes)
    }
    /// Copies bytes from the front and leaves them in the queue.
    pub fn peek(&self, into: &mut [u8]) -> usize {
        let mut done = 0;
        for packet in &self.packets {
            let n = packet.len().min(into.len() - done);
            crate::copy(&mut into[done..done + n], &packet.bytes()[..n]);
            done += n;
        }
        done
    }
    /// Drops up to `bytes` from the front.
    pub fn discard(&mut self, bytes: usize, pool: &mut Pool) {
        let mut left = bytes;
        while left > 0 {
            let Some(front) = self.packets.front() else { return };
            let n = front.len().min(left);
            left -= n;
            self.discard_front(n, pool);
        }
    }
    /// Calls `act` with each packet of a thawed queue, and checks the queue.
    #[cfg(feature = "freeze")]
    pub fn thaw(&mut self, act: crate::freeze::ThawPacket<'_>) -> Result<(), inhost_base::freeze::Invalid> {
        let (mut bytes, mut capacity_bytes) = (0, 0);
        for packet in &mut self.packets {
            act(packet)?;
            bytes += packet.len();
            capacity_bytes += packet.capacity();
        }
        let is_true = (bytes, capacity_bytes) == (self.bytes, self.capacity_bytes);
        inhost_base::freeze::require(is_true, "the counts of a receive queue")
    }
    /// Returns all memory to `pool`.
    pub fn clear(&mut self, pool: &mut Pool) {
        while let Some(packet) = self.packets.pop_front() {
            pool.give(packet);
        }
        (self.bytes, self.capacity_bytes) = (0, 0);
    }

    #[inline]
    fn keep(&mut self, packet: Packet) {
        self.capacity_bytes += packet.capacity();
        self.packets.push_back(packet);
    }
    #[inline]
    fn discard_front(&mut self, bytes: usize, pool: &mut Pool) {
        let Some(front) = self.packets.front_mut() else { return };
        front.trim_front(bytes);
        self.bytes -= bytes;
        if front.is_empty()
            && let Some(empty) = self.packets.pop_front()
        {
            self.capacity_bytes -= empty.capacity();
            pool.give(empty);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_payloads_share_a_buffer_and_all_memory_returns() {
        let mut pool = Pool::new(1 << 20);
        let mut queue = ReceiveQueue::default();
        let mut sent = Vec::new();
        for n in [10usize, 1400, 3, 4, 255, 256, 1] {
            let mut packet = pool.take(1500).unwrap();
            let bytes: Vec<u8> = (0..n).map(|i| (i + n) as u8).collect();
            packet.append(&bytes);
            sent.extend_from_slice(&bytes);
            queue.push(packet, &mut pool);
        }
        assert_eq!(queue.capacity_bytes(), pool.outstanding_bytes());
        let mut peeked = vec![0; sent.len()];
        assert_eq!(queue.peek(&mut peeked), sent.len());
        assert_eq!(peeked, sent);
        let mut got = Vec::new();
        let mut piece = [0; 77];
        while !queue.is_empty() {
            let n = queue.read(&mut piece, &mut pool);
            got.extend_from_slice(&piece[..n]);
        }
        assert_eq!(got, sent);
        assert_eq!((pool.outstanding_bytes(), queue.capacity_bytes()), (0, 0));
    }
}
