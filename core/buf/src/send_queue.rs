//! Bytes of a stream that wait to be sent or to be acknowledged.

use crate::{Packet, Pool, Slices};
use std::collections::VecDeque;

/// Chunks are of this size once a stream has shown that it carries bulk.
const BULK_CHUNK_BYTES: usize = 16 * 1024;
/// The size of the chunk that a quiet stream starts with.
const FIRST_CHUNK_BYTES: usize = 512;

/// A stream's bytes from the first unacknowledged one on, in chunks that stay where they are until acknowledged,
/// so that a segment is lent to the device without a copy.
#[derive(Debug, Default)]
pub struct SendQueue {
    chunks: VecDeque<Chunk>,
    /// Bytes ever discarded: the place of the first byte in the stream.
    first: u64,
    bytes: usize,
    capacity_bytes: usize,
}

#[derive(Debug)]
struct Chunk {
    /// The place of its first byte in the stream.
    start: u64,
    packet: Packet,
}

impl Chunk {
    fn end(&self) -> u64 {
        self.start + self.packet.len() as u64
    }
}

impl SendQueue {
    /// Bytes held, sent or not.
    pub fn len(&self) -> usize {
        self.bytes
    }
    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
    /// Memory that the bytes pin.
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }
    /// Copies `bytes` in at the end, up to what `pool` has memory for; gives the number taken.
    pub fn write(&mut self, bytes: &[u8], pool: &mut Pool) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let rest = &bytes[done..];
            let n = match self.chunks.back_mut().filter(|chunk| chunk.packet.tailroom() > 0) {
                Some(chunk) => chunk.packet.append(rest),
                None => {
                    let small = self.chunks.is_empty() && rest.len() <= FIRST_CHUNK_BYTES;
                    let size = if small { FIRST_CHUNK_BYTES } else { BULK_CHUNK_BYTES };
                    let Some(packet) = pool.take_bare(size) else { break };
                    self.capacity_bytes += packet.capacity();
                    let start = self.first + (self.bytes + done) as u64;
                    self.chunks.push_back(Chunk { start, packet });
                    0
                }
            };
            done += n;
        }
        self.bytes += done;
        done
    }
    /// Lends up to `length` bytes from `offset` on; fewer where they end or lie in too many pieces.
    pub fn slices(&self, offset: usize, length: usize) -> Slices<'_> {
        let mut slices: Slices<'_> = Slices::EMPTY;
        let at = self.first + offset as u64;
        // The chunk is mostly the first; with a long window out it is looked up.
        let index = match self.chunks.front() {
            Some(front) if at >= front.end() => self.chunks.partition_point(|chunk| chunk.end() <= at),
            _ => 0,
        };
        let mut skip = self.chunks.get(index).map_or(0, |chunk| (at - chunk.start) as usize);
        let mut left = length;
        for chunk in self.chunks.range(index..) {
            if left == 0 {
                break;
            }
            let bytes = chunk.packet.bytes();
            let piece = bytes.get(skip..bytes.len().min(skip.saturating_add(left))).unwrap_or(&[]);
            skip = 0;
            if !slices.push(piece) {
                break;
            }
            left -= piece.len();
        }
        slices
    }
    /// Forgets the first `bytes`, which were acknowledged.
    pub fn discard(&mut self, bytes: usize, pool: &mut Pool) {
        let mut left = bytes.min(self.bytes);
        self.bytes -= left;
        self.first += left as u64;
        while left > 0 {
            let Some(front) = self.chunks.front_mut() else { return };
            let n = front.packet.len().min(left);
            front.packet.trim_front(n);
            front.start += n as u64;
            left -= n;
            // A chunk with room left is kept only while bytes in it wait.
            if front.packet.is_empty()
                && let Some(empty) = self.chunks.pop_front()
            {
                self.capacity_bytes -= empty.packet.capacity();
                pool.give(empty.packet);
            }
        }
    }
    /// Gives all memory back.
    pub fn clear(&mut self, pool: &mut Pool) {
        self.first += self.bytes as u64;
        self.chunks.drain(..).for_each(|chunk| pool.give(chunk.packet));
        (self.bytes, self.capacity_bytes) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_is_what_was_written() {
        let mut pool = Pool::new(1 << 20);
        let mut queue = SendQueue::default();
        let bytes: Vec<u8> = (0..50_000u32).map(|i| (i % 251) as u8).collect();
        assert_eq!(queue.write(&bytes[..100], &mut pool), 100);
        assert_eq!(queue.write(&bytes[100..], &mut pool), bytes.len() - 100);
        queue.discard(33, &mut pool);
        for offset in [0, 400, 16_000, 49_000, 49_966] {
            let lent = queue.slices(offset, 1460);
            let flat: Vec<u8> = lent.iter().flatten().copied().collect();
            let end = bytes.len().min(33 + offset + 1460);
            assert_eq!(flat, &bytes[33 + offset..end]);
        }
        assert!(queue.slices(60_000, 10).is_empty());
        queue.discard(usize::MAX, &mut pool);
        assert_eq!((queue.len(), pool.outstanding_bytes()), (0, 0));
        let mut tight = Pool::new(1000);
        assert_eq!(SendQueue::default().write(&bytes, &mut tight), 0);
    }
}
