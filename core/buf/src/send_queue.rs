//! Bytes of a stream that wait to be sent or to be acknowledged.

mod chunk;

use crate::{Packet, Pool, Slices};
use bytes::Bytes;
use chunk::{Chunk, Grid};
use std::collections::VecDeque;

/// Chunks are of this size once a stream has shown that it carries bulk.
const BULK_CHUNK_BYTES: usize = 16 * 1024;
/// The size of the chunk that a quiet stream starts with.
const FIRST_CHUNK_BYTES: usize = 512;
/// The size of chunks for segments of which few would fit an ordinary one.
const LARGE_CHUNK_BYTES: usize = 64 * 1024;
/// So much at least goes into one of them at once.
const MOST_OF_LARGE_BYTES: usize = LARGE_CHUNK_BYTES / 2;

/// A stream's bytes from the first unacknowledged one on, in chunks that stay where they are until acknowledged, so
/// that a segment is lent to the device without a copy. What is written is copied once, and its checksum made in the
/// same pass; it is kept in pieces as long as segments, so that no byte is touched again, however often it is sent.
#[derive(Debug, Default)]
pub struct SendQueue {
    chunks: VecDeque<Chunk>,
    /// Bytes ever discarded: the place of the first byte in the stream.
    first: u64,
    bytes: usize,
    capacity_bytes: usize,
    /// The chunk that was looked at last: the next place is mostly there, or in the one behind it.
    last: usize,
}

/// Where the segments of what is written will probably begin and end: so that they lie in one piece, and for their sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cells {
    /// Bytes in the queue before the next segment that was never sent.
    pub origin: usize,
    /// Payload of a full segment in bytes; 0 when it is no matter.
    pub segment_bytes: u32,
    /// Whether sums are kept.
    pub summed: bool,
}

impl Cells {
    /// It is no matter.
    pub const NONE: Cells = Cells { origin: 0, segment_bytes: 0, summed: false };
}

/// Where a payload begins that lies in memory which others may keep.
#[derive(Clone, Copy, Debug)]
pub struct Shareable<'a> {
    queue: &'a SendQueue,
    /// The chunk.
    index: usize,
    /// The place in the stream.
    at: u64,
}

impl Shareable<'_> {
    /// Gives `length` bytes in packets that share their memory.
    pub(crate) fn share(self, length: usize, mut to: impl FnMut(Packet)) {
        let Shareable { queue, index, mut at } = self;
        let end = at + length as u64;
        for chunk in queue.chunks.range(index..) {
            let Some(packet) = chunk.shared(at, (end - at) as usize) else { return };
            at += packet.len() as u64;
            to(packet);
            if at >= end {
                return;
            }
        }
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
    /// Memory that the bytes pin. Of what was lent, the bytes themselves.
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }
    /// Copies `bytes` in at the end, up to what `pool` has memory for; gives the number taken.
    #[inline]
    pub fn write(&mut self, bytes: &[u8], cells: Cells, pool: &mut Pool) -> usize {
        let mut done = self.chunks.back_mut().map_or(0, |back| back.append(bytes));
        self.bytes += done;
        while done < bytes.len() {
            let rest = &bytes[done..];
            let size = match rest.len() {
                0..=FIRST_CHUNK_BYTES if self.chunks.is_empty() => FIRST_CHUNK_BYTES,
                BULK_CHUNK_BYTES.. if cells.segment_bytes as usize > BULK_CHUNK_BYTES / 4 => {
                    LARGE_CHUNK_BYTES
                }
                // A device that makes the checksums mostly takes large frames, the fewer pieces the better.
                MOST_OF_LARGE_BYTES.. if !cells.summed => LARGE_CHUNK_BYTES,
                _ => BULK_CHUNK_BYTES,
            };
            let packet = match self.chunks.is_empty() {
                true => pool.take_first_to_send(size),
                false => pool.take_to_send(size),
            };
            let Some(packet) = packet else { break };
            self.capacity_bytes += packet.capacity();
            // What is so short is summed faster than its sum is kept.
            let grid = self.grid(if size == FIRST_CHUNK_BYTES { Cells::NONE } else { cells });
            let mut chunk = Chunk::owned(self.end(), packet, grid, cells.summed);
            let taken = chunk.append(rest);
            self.bytes += taken;
            done += taken;
            self.chunks.push_back(chunk);
        }
        done
    }
    /// Takes `bytes` in at the end as they lie, and keeps them until they are acknowledged. Nothing is copied; sums are
    /// made when they are first asked for, and kept.
    pub fn lend(&mut self, mut bytes: Bytes, cells: Cells) {
        let cells = if cells.summed { cells } else { Cells::NONE };
        while !bytes.is_empty() {
            let grid = self.grid(cells);
            let part = bytes.split_to(grid.span_bytes(bytes.len()));
            self.capacity_bytes += part.len();
            let start = self.end();
            self.bytes += part.len();
            self.chunks.push_back(Chunk::lent(start, part, grid));
        }
    }
    /// The place after the last byte.
    fn end(&self) -> u64 {
        self.first + self.bytes as u64
    }
    /// How a chunk that begins at the end is divided.
    #[inline]
    fn grid(&self, cells: Cells) -> Grid {
        Grid::new(cells.segment_bytes, self.bytes.saturating_sub(cells.origin))
    }
    /// Lends up to `length` bytes from `offset` on; fewer where they end or lie in too many pieces.
    pub fn slices(&self, offset: usize, length: usize) -> Slices<'_> {
        let at = self.first + offset as u64;
        self.slices_from(self.index_of(at), at, length)
    }
    /// The same from the place `at` on, which lies in the chunk `index`.
    fn slices_from(&self, index: usize, at: u64, length: usize) -> Slices<'_> {
        let mut slices: Slices<'_> = Slices::EMPTY;
        let mut skip = self.chunks.get(index).map_or(0, |chunk| (at - chunk.start()) as usize);
        let mut left = length;
        for chunk in self.chunks.range(index..) {
            if left == 0 {
                break;
            }
            let bytes = chunk.bytes();
            let piece = bytes.get(skip..bytes.len().min(skip.saturating_add(left))).unwrap_or(&[]);
            skip = 0;
            if !slices.push(piece) {
                break;
            }
            left -= piece.len();
        }
        slices
    }
    /// As [`SendQueue::slices`], for one segment, which mostly lies in one piece; with its sum where that is wanted and kept.
    #[inline]
    pub fn segment(&mut self, offset: usize, length: usize, wants_sum: bool) -> Slices<'_> {
        let at = self.first + offset as u64;
        let index = self.find(at);
        let Some(chunk) = self.chunks.get_mut(index) else { return Slices::EMPTY };
        let sum = if wants_sum { chunk.sum(at, length) } else { None };
        let skip = (at - chunk.start()) as usize;
        if chunk.len() < skip + length {
            return self.slices(offset, length).with_sum(sum);
        }
        // Asked for once more, so that the borrow ends where the other road is taken.
        let bytes = self.chunks.get(index).map_or(&[][..], Chunk::bytes);
        Slices::one_of(bytes.get(skip..skip + length).unwrap_or(&[]), sum)
    }
    /// As [`SendQueue::slices`], for a device that [keeps payloads by reference](crate::Offers::sharing): they can be
    /// [shared](crate::Frame::share) if all lie in long pieces.
    pub fn shareable(&mut self, offset: usize, length: usize) -> (Slices<'_>, Option<Shareable<'_>>) {
        let at = self.first + offset as u64;
        let end = at + length as u64;
        let index = self.find(at);
        let last = self.end();
        let mut chunks = self.chunks.range_mut(index..).take(Slices::MOST);
        let all = chunks.all(|chunk| chunk.start() >= end || chunk.make_shareable(chunk.end() == last));
        let slices = self.slices_from(index, at, length);
        let is_shareable = all && !slices.is_empty();
        (slices, is_shareable.then_some(Shareable { queue: self, index, at }))
    }
    /// The sums of `length` bytes from `offset` on, cut into segments of `segment_bytes`: those that are kept go to
    /// the front of `into`, and the others become `None`. Each begins as if at an even offset.
    pub fn sums(&mut self, offset: usize, length: usize, segment_bytes: u32, into: &mut [Option<u16>]) {
        let mut at = self.first + offset as u64;
        let end = at + length as u64;
        let mut index = self.find(at);
        let mut places = into.iter_mut();
        while at < end {
            while self.chunks.get(index).is_some_and(|chunk| chunk.end() <= at) {
                index += 1;
            }
            let Some(chunk) = self.chunks.get_mut(index) else { break };
            let whole = chunk.whole_sums(at, (end - at) as usize, segment_bytes);
            at += whole.len() as u64 * u64::from(segment_bytes);
            for (sum, place) in whole.iter().zip(&mut places) {
                *place = Some(*sum);
            }
            if whole.is_empty() {
                let bytes = u64::from(segment_bytes).min(end - at);
                let Some(place) = places.next() else { break };
                *place = chunk.sum(at, bytes as usize);
                at += bytes;
            }
        }
        places.for_each(|place| *place = None);
    }
    /// As [`SendQueue::index_of`], and remembers it.
    #[inline]
    fn find(&mut self, at: u64) -> usize {
        let holds = |index: &usize| {
            self.chunks.get(*index).is_some_and(|chunk| chunk.start() <= at && at < chunk.end())
        };
        let near = [self.last, self.last + 1].into_iter().find(holds);
        self.last = near.unwrap_or_else(|| self.index_of(at));
        self.last
    }
    /// The chunk in which a place lies. It is mostly the first; with a long window out it is looked up.
    #[inline]
    fn index_of(&self, at: u64) -> usize {
        match self.chunks.front() {
            Some(front) if at >= front.end() => self.chunks.partition_point(|chunk| chunk.end() <= at),
            _ => 0,
        }
    }
    /// Forgets the first `bytes`, which were acknowledged.
    #[inline]
    pub fn discard(&mut self, bytes: usize, pool: &mut Pool) {
        let mut left = bytes.min(self.bytes);
        self.bytes -= left;
        self.first += left as u64;
        while left > 0 {
            let only = self.chunks.len() == 1;
            let Some(front) = self.chunks.front_mut() else { return };
            let n = front.len().min(left);
            let released = front.trim_front(n);
            self.capacity_bytes -= released;
            left -= n;
            // A quiet stream's only chunk stays for what it says next; no other is kept without bytes that wait.
            let stays = front.len() > 0 || only && front.restart(self.first, FIRST_CHUNK_BYTES);
            if !stays {
                self.capacity_bytes -= front.release(pool);
                self.chunks.pop_front();
                self.last = self.last.saturating_sub(1);
            }
        }
    }
    /// Gives all memory back.
    pub fn clear(&mut self, pool: &mut Pool) {
        self.first += self.bytes as u64;
        for mut chunk in self.chunks.drain(..) {
            chunk.release(pool);
        }
        (self.bytes, self.capacity_bytes) = (0, 0);
    }
}

#[cfg(test)]
mod tests;
