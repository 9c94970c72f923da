//! The send queue of a stream: bytes that are unsent or unacknowledged.

mod chunk;

use crate::{Packet, Pool, Slices};
use alloc::collections::VecDeque;
use bytes::Bytes;
use chunk::{ChecksumBlocks, Chunk};

/// Chunk size of a stream that carries bulk data.
const BULK_CHUNK_BYTES: usize = 16 * 1024;
/// Size of the first chunk, which is enough for an interactive stream.
const FIRST_CHUNK_BYTES: usize = 512;
/// Chunk size for large segments, of which a bulk chunk would hold only a few.
const LARGE_CHUNK_BYTES: usize = 64 * 1024;
/// Shortest write that gets a large chunk where no checksums are kept.
const MOST_OF_LARGE_BYTES: usize = LARGE_CHUNK_BYTES / 2;

/// A stream's bytes from the first unacknowledged one on. They lie in chunks that do not move until they are
/// acknowledged, so a segment is lent to the device without a copy. A write is copied once, and its checksums are
/// computed in the same pass. There is one checksum for each block as long as a segment, so that a retransmission reads
/// no byte again.
///
/// ```
/// use inhost_buf::{BlockLayout, Pool, SendQueue};
/// let mut pool = Pool::new(1 << 20);
/// let mut queue = SendQueue::default();
/// assert_eq!(queue.write(b"hello, world", BlockLayout::NONE, &mut pool), 12);
///
/// // Bytes 7 to 12 are lent for sending; they stay in the queue until they are acknowledged.
/// assert_eq!(queue.slices(7, 5).as_one(), Some(&b"world"[..]));
/// queue.discard(12, &mut pool);
/// assert!(queue.is_empty());
///
/// queue.clear(&mut pool);
/// assert_eq!(pool.outstanding_bytes(), 0);
/// ```
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct SendQueue {
    chunks: VecDeque<Chunk>,
    /// Bytes discarded so far: the offset of the first byte in the stream.
    first: u64,
    bytes: usize,
    capacity_bytes: usize,
    /// The chunk of the last look-up. The next look-up mostly finds its byte there or in the next chunk.
    last: usize,
}

/// The checksum blocks of a write: where its segments will probably begin and end. Chunks are divided accordingly, so
/// that a segment is contiguous and its checksum is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockLayout {
    /// Bytes in the queue before the next segment that was never sent.
    pub origin: usize,
    /// Payload of a full segment in bytes; 0 for no blocks.
    pub segment_bytes: u32,
    /// Whether checksums are kept.
    pub summed: bool,
}

impl BlockLayout {
    /// No blocks.
    pub const NONE: BlockLayout = BlockLayout { origin: 0, segment_bytes: 0, summed: false };
}

/// The start of a payload in memory that can be shared by reference.
#[derive(Clone, Copy, Debug)]
pub struct Shareable<'a> {
    queue: &'a SendQueue,
    /// The chunk.
    index: usize,
    /// The offset in the stream.
    at: u64,
}

impl Shareable<'_> {
    /// Passes `length` bytes to `to`, in packets that share their memory.
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
    /// Bytes held, both sent and unsent.
    pub fn len(&self) -> usize {
        self.bytes
    }
    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
    /// Memory that the bytes pin: whole buffers for copied bytes, the bytes alone for those kept by reference.
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }
    /// Appends a copy of as much of `bytes` as `pool` has memory for, and returns how much.
    #[inline]
    pub fn write(&mut self, bytes: &[u8], layout: BlockLayout, pool: &mut Pool) -> usize {
        let mut done = self.chunks.back_mut().map_or(0, |back| back.append(bytes));
        self.bytes += done;
        while done < bytes.len() {
            let rest = &bytes[done..];
            let size = match rest.len() {
                0..=FIRST_CHUNK_BYTES if self.chunks.is_empty() => FIRST_CHUNK_BYTES,
                BULK_CHUNK_BYTES.. if layout.segment_bytes as usize > BULK_CHUNK_BYTES / 4 => {
                    LARGE_CHUNK_BYTES
                }
                // A device that computes checksums mostly takes large frames, and is faster with fewer slices.
                MOST_OF_LARGE_BYTES.. if !layout.summed => LARGE_CHUNK_BYTES,
                _ => BULK_CHUNK_BYTES,
            };
            let packet = match self.chunks.is_empty() {
                true => pool.take_bare(size),
                false => pool.take_to_send(size),
            };
            let Some(packet) = packet else { break };
            self.capacity_bytes += packet.capacity();
            // So short a chunk is summed faster than its checksums are kept.
            let blocks = self.blocks(if size == FIRST_CHUNK_BYTES { BlockLayout::NONE } else { layout });
            let mut chunk = Chunk::owned(self.end(), packet, blocks, layout.summed);
            let taken = chunk.append(rest);
            self.bytes += taken;
            done += taken;
            self.chunks.push_back(chunk);
        }
        done
    }
    /// Appends `bytes` by reference and keeps them until they are acknowledged. Nothing is copied. Checksums are computed
    /// when they are first needed, and kept.
    pub fn lend(&mut self, mut bytes: Bytes, layout: BlockLayout) {
        let layout = if layout.summed { layout } else { BlockLayout::NONE };
        while !bytes.is_empty() {
            let blocks = self.blocks(layout);
            let part = bytes.split_to(blocks.span_bytes(bytes.len()));
            self.capacity_bytes += part.len();
            let start = self.end();
            self.bytes += part.len();
            self.chunks.push_back(Chunk::lent(start, part, blocks));
        }
    }
    /// The offset in the stream after the last byte.
    fn end(&self) -> u64 {
        self.first + self.bytes as u64
    }
    /// The checksum blocks of a chunk that begins at the end.
    #[inline]
    fn blocks(&self, layout: BlockLayout) -> ChecksumBlocks {
        ChecksumBlocks::new(layout.segment_bytes, self.bytes.saturating_sub(layout.origin))
    }
    /// Lends up to `length` bytes from `offset` on; fewer at the end of the queue, or when they lie in too many chunks.
    pub fn slices(&self, offset: usize, length: usize) -> Slices<'_> {
        let at = self.first + offset as u64;
        self.slices_from(self.index_of(at), at, length)
    }
    /// [`SendQueue::slices`] from stream offset `at` on, which is in the chunk `index`.
    fn slices_from(&self, index: usize, at: u64, length: usize) -> Slices<'_> {
        let skip = self.chunks.get(index).map_or(0, |chunk| (at - chunk.start()) as usize);
        Slices::cut(self.chunks.range(index..).map(Chunk::bytes), skip, length)
    }
    /// [`SendQueue::slices`] for one segment, with its checksum where that is wanted and kept. Most segments are contiguous.
    #[inline]
    pub fn segment(&mut self, offset: usize, length: usize, wants_sum: bool) -> Slices<'_> {
        let at = self.first + offset as u64;
        let index = self.find(at);
        let chunk = self.chunks.get_mut(index).filter(|_| wants_sum);
        let sum = chunk.and_then(|chunk| chunk.sum(at, length));
        match self.chunks.get(index).and_then(|chunk| chunk.piece(at, length)) {
            Some(piece) => Slices::one_of(piece, sum),
            None => self.slices_from(index, at, length).with_sum(sum),
        }
    }
    /// [`SendQueue::slices`] for a device that [keeps payloads by reference](crate::Offers::sharing). The payload can be
    /// [shared](crate::Frame::share) if all its chunks are long.
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
    /// The checksums of `length` bytes from `offset` on, split into segments of `segment_bytes`. They go to the front of
    /// `into`; an unknown one is `None`. Each is computed as if its segment began at an even offset.
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
    /// [`SendQueue::index_of`], remembered for the next look-up.
    #[inline]
    fn find(&mut self, at: u64) -> usize {
        if !self.chunks.get(self.last).is_some_and(|chunk| chunk.holds(at)) {
            let is_next = self.chunks.get(self.last + 1).is_some_and(|chunk| chunk.holds(at));
            self.last = if is_next { self.last + 1 } else { self.index_of(at) };
        }
        self.last
    }
    /// The chunk that holds stream offset `at`: mostly the first, found by binary search in a long flight.
    #[inline]
    fn index_of(&self, at: u64) -> usize {
        match self.chunks.front() {
            Some(front) if at >= front.end() => self.chunks.partition_point(|chunk| chunk.end() <= at),
            _ => 0,
        }
    }
    /// Releases the first `bytes`, which are acknowledged.
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
            // The only chunk of an interactive stream is kept for its next write; other empty chunks are released.
            let stays = front.len() > 0 || only && front.restart(self.first, FIRST_CHUNK_BYTES);
            if !stays {
                self.capacity_bytes -= front.release(pool);
                self.chunks.pop_front();
                self.last = self.last.saturating_sub(1);
            }
        }
    }
    /// Calls `act` with each packet of a thawed queue, and checks the queue.
    #[cfg(feature = "freeze")]
    pub fn thaw(&mut self, act: crate::freeze::ThawPacket<'_>) -> Result<(), inhost_base::freeze::Invalid> {
        use inhost_base::freeze::require;
        let (mut bytes, mut capacity_bytes) = (0_usize, 0_usize);
        for chunk in &mut self.chunks {
            chunk.thaw(act)?;
            require(chunk.start().checked_sub(self.first) == Some(bytes as u64), "the place of a chunk")?;
            bytes += chunk.len();
            capacity_bytes += chunk.capacity();
        }
        require((bytes, capacity_bytes) == (self.bytes, self.capacity_bytes), "the counts of a send queue")
    }
    /// Returns all memory to `pool`.
    pub fn clear(&mut self, pool: &mut Pool) {
        self.first += self.bytes as u64;
        while let Some(mut chunk) = self.chunks.pop_front() {
            chunk.release(pool);
        }
        (self.bytes, self.capacity_bytes) = (0, 0);
    }
}

#[cfg(test)]
mod tests;
