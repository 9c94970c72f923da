//! One contiguous chunk of a send queue, with the checksums of its blocks.

use crate::packet::shared::Shared;
use crate::{Packet, Pool, join_sums};
use alloc::sync::Arc;
use bytes::Bytes;

/// Most checksums kept for one chunk.
const SUMS: usize = 32;

/// Chunks shorter than this are copied, not shared.
const LEAST_SHARED_BYTES: usize = 4096;

/// The division of a chunk into checksum blocks, one for each segment that it will probably be sent as.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct ChecksumBlocks {
    /// Length of a block; 0 when no checksums are kept.
    block_bytes: u32,
    /// Bytes missing from the first block, because its segment begins before the chunk.
    missing_bytes: u32,
}

impl ChecksumBlocks {
    /// Blocks of a chunk that begins `ahead` bytes into a segment.
    pub(super) fn new(segment_bytes: u32, ahead: usize) -> ChecksumBlocks {
        let missing_bytes = if segment_bytes == 0 { 0 } else { (ahead % segment_bytes as usize) as u32 };
        ChecksumBlocks { block_bytes: segment_bytes, missing_bytes }
    }
    /// The part of `most` bytes that whole blocks fill. Where that is less than half, no checksums are kept.
    fn fit(&mut self, most: usize) -> usize {
        let (block, missing) = (self.block_bytes as usize, self.missing_bytes as usize);
        if block == 0 {
            return most;
        }
        if SUMS * block < most / 2 {
            self.block_bytes = 0;
            return most;
        }
        match ((most + missing) / block).min(SUMS) * block {
            // An incomplete block has a checksum, too.
            0 => most,
            whole => (whole - missing).min(most),
        }
    }
    /// The part of `most` bytes that one chunk kept by reference takes.
    pub(super) fn span_bytes(mut self, most: usize) -> usize {
        self.fit(most).clamp(1, most)
    }
    /// The block that holds a byte, and the offset of the byte in it.
    #[inline]
    fn block_of(&self, at: usize) -> (usize, usize) {
        let place = at as u32 + self.missing_bytes;
        ((place / self.block_bytes) as usize, (place % self.block_bytes) as usize)
    }
}

#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
enum Data {
    Owned(Packet),
    Lent(#[cfg_attr(feature = "freeze", serde(with = "crate::packet::shared::lent"))] Bytes),
    /// Memory that devices and receivers read, too, and the number of its first bytes that are released.
    Shared(
        #[cfg_attr(feature = "freeze", serde(with = "crate::packet::shared::unshared"))] Arc<Shared>,
        usize,
    ),
}

#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Chunk {
    /// The offset in the stream of its first byte, released bytes included.
    base: u64,
    /// Bytes released.
    forgotten: usize,
    /// Most bytes that it may hold.
    limit: usize,
    /// Bytes, from `base` on, whose checksums are kept.
    summed: usize,
    blocks: ChecksumBlocks,
    /// The sum of each block, as if it began at an even offset.
    sums: [u16; SUMS],
    data: Data,
}

impl Chunk {
    /// An empty chunk for whole blocks. `summed` says whether checksums are kept.
    #[inline]
    pub(super) fn owned(base: u64, packet: Packet, mut blocks: ChecksumBlocks, summed: bool) -> Chunk {
        let limit = blocks.fit(packet.tailroom());
        if !summed {
            blocks.block_bytes = 0;
        }
        Chunk { base, forgotten: 0, limit, summed: 0, blocks, sums: [0; SUMS], data: Data::Owned(packet) }
    }
    pub(super) fn lent(base: u64, bytes: Bytes, blocks: ChecksumBlocks) -> Chunk {
        let limit = bytes.len();
        Chunk { base, forgotten: 0, limit, summed: 0, blocks, sums: [0; SUMS], data: Data::Lent(bytes) }
    }
    /// The offset in the stream of the first byte held.
    pub(super) fn start(&self) -> u64 {
        self.base + self.forgotten as u64
    }
    /// The offset in the stream after the last byte.
    pub(super) fn end(&self) -> u64 {
        self.start() + self.len() as u64
    }
    /// `length` bytes from stream offset `at` on, if it has them all.
    #[inline]
    pub(super) fn piece(&self, at: u64, length: usize) -> Option<&[u8]> {
        let skip = at.checked_sub(self.start())? as usize;
        self.bytes().get(skip..skip + length)
    }
    /// Whether it has the byte at stream offset `at`.
    #[inline]
    pub(super) fn holds(&self, at: u64) -> bool {
        at.wrapping_sub(self.start()) < self.len() as u64
    }
    /// Bytes held.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match &self.data {
            Data::Owned(packet) => packet.len(),
            Data::Lent(bytes) => bytes.len(),
            Data::Shared(held, from) => held.bytes().len() - from,
        }
    }
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::Owned(packet) => packet.bytes(),
            Data::Lent(bytes) => bytes,
            Data::Shared(held, from) => held.bytes().get(*from..).unwrap_or(&[]),
        }
    }
    /// Moves the bytes to shared memory; nothing can be appended afterwards. False, with nothing changed, when the chunk is
    /// short, or `may_grow` and has most of its room left.
    pub(super) fn make_shareable(&mut self, may_grow: bool) -> bool {
        let held = match &mut self.data {
            Data::Shared(..) => return true,
            Data::Owned(packet) if may_grow && packet.tailroom() > packet.capacity() / 2 => return false,
            Data::Owned(packet) if packet.len() >= LEAST_SHARED_BYTES => Shared::Written(packet.take()),
            Data::Lent(bytes) if bytes.len() >= LEAST_SHARED_BYTES => Shared::Lent(core::mem::take(bytes)),
            Data::Owned(_) | Data::Lent(_) => return false,
        };
        self.data = Data::Shared(Arc::new(held), 0);
        true
    }
    /// Up to `length` bytes from stream offset `at` on, by reference; `None` unless [`Chunk::make_shareable`] succeeded.
    pub(super) fn shared(&self, at: u64, length: usize) -> Option<Packet> {
        let Data::Shared(held, from) = &self.data else { return None };
        let skip = (at - self.start()) as usize;
        let length = length.min(self.len().saturating_sub(skip));
        Some(Packet::shared(held.clone(), from + skip, length))
    }
    /// Appends as much of `bytes` as fits, and returns how much.
    #[inline]
    pub(super) fn append(&mut self, bytes: &[u8]) -> usize {
        let Data::Owned(packet) = &mut self.data else { return 0 };
        let mut at = self.forgotten + packet.len();
        let fits = bytes.len().min(self.limit - at);
        let mut rest = &bytes[..fits];
        if self.blocks.block_bytes == 0 {
            return packet.append(rest);
        }
        while !rest.is_empty() {
            let (block, within) = self.blocks.block_of(at);
            let Some(sum) = self.sums.get_mut(block) else {
                packet.append(rest);
                break;
            };
            // A block that begins before the chunk is counted from the chunk's first byte.
            let before = within.min(at);
            let (piece, others) = rest.split_at(rest.len().min(self.blocks.block_bytes as usize - within));
            *sum = join_sums(*sum, packet.append_and_sum(piece), before % 2 == 1);
            at += piece.len();
            self.summed = at;
            rest = others;
        }
        fits
    }
    /// The sum of `bytes` bytes from stream offset `at` on, when they are a whole block or all that the block holds.
    #[inline]
    pub(super) fn sum(&mut self, at: u64, bytes: usize) -> Option<u16> {
        if self.blocks.block_bytes == 0 {
            return None;
        }
        let from = (at - self.base) as usize;
        let (block, within) = self.blocks.block_of(from);
        let begins = within == 0 || from == 0;
        let held = self.forgotten + self.len();
        let whole = (self.blocks.block_bytes as usize - within).min(held - from);
        if !begins || bytes != whole {
            return None;
        }
        if self.summed < from + bytes {
            self.sum_by_reference();
        }
        self.sums.get(block).copied().filter(|_| self.summed >= from + bytes)
    }
    /// The sums of the whole blocks among `bytes` bytes from stream offset `at` on, if a block of `segment_bytes` begins there.
    pub(super) fn whole_sums(&mut self, at: u64, bytes: usize, segment_bytes: u32) -> &[u16] {
        if self.blocks.block_bytes != segment_bytes || segment_bytes == 0 {
            return &[];
        }
        let from = (at - self.base) as usize;
        let (block, within) = self.blocks.block_of(from);
        if within != 0 {
            return &[];
        }
        let held = self.forgotten + self.len();
        if self.summed < held {
            self.sum_by_reference();
        }
        let known = bytes.min(held - from).min(self.summed.saturating_sub(from));
        self.sums.get(block..block + known / segment_bytes as usize).unwrap_or(&[])
    }
    /// Computes the checksums of a chunk kept by reference, which is complete from the start.
    fn sum_by_reference(&mut self) {
        let bytes = match &self.data {
            Data::Owned(_) => return,
            Data::Lent(bytes) => &bytes[..],
            Data::Shared(held, from) => held.bytes().get(*from..).unwrap_or(&[]),
        };
        // Released bytes are not asked for again; a block without its first bytes is never whole.
        let mut at = self.forgotten;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (block, within) = self.blocks.block_of(at);
            let (piece, others) = rest.split_at(rest.len().min(self.blocks.block_bytes as usize - within));
            let Some(sum) = self.sums.get_mut(block) else { break };
            *sum = crate::sum(piece);
            at += piece.len();
            self.summed = at;
            rest = others;
        }
    }
    /// Releases the first `bytes`, and returns the memory that this frees.
    #[inline]
    pub(super) fn trim_front(&mut self, bytes: usize) -> usize {
        self.forgotten += bytes;
        match &mut self.data {
            Data::Owned(packet) => {
                packet.trim_front(bytes);
                0
            }
            Data::Lent(lent) => {
                let _ = lent.split_to(bytes.min(lent.len()));
                bytes
            }
            Data::Shared(_, from) => {
                *from += bytes;
                0
            }
        }
    }
    /// Empties the chunk for reuse at stream offset `base`. False when it owns no memory, holds more than about
    /// `most_bytes`, or keeps checksums.
    #[inline]
    pub(super) fn restart(&mut self, base: u64, most_bytes: usize) -> bool {
        let Data::Owned(packet) = &mut self.data else { return false };
        if packet.capacity() >= 2 * most_bytes || self.blocks.block_bytes != 0 {
            return false;
        }
        packet.restart();
        (self.base, self.forgotten, self.summed) = (base, 0, 0);
        true
    }
    /// Calls `act` with the packet of a thawed chunk, if it is one, and checks the chunk.
    #[cfg(feature = "freeze")]
    pub(super) fn thaw(
        &mut self,
        act: crate::freeze::ThawPacket<'_>,
    ) -> Result<(), inhost_base::freeze::Invalid> {
        use inhost_base::freeze::require;
        match &mut self.data {
            Data::Owned(packet) => {
                act(packet)?;
                require(!packet.is_shared(), "a chunk in shared memory")?;
            }
            Data::Lent(_) => {}
            Data::Shared(held, from) => match Arc::get_mut(held) {
                Some(Shared::Written(packet)) => {
                    act(packet)?;
                    require(*from <= packet.len(), "the released bytes of a chunk")?;
                }
                Some(Shared::Lent(bytes)) => require(*from <= bytes.len(), "the released bytes of a chunk")?,
                None => return Err(inhost_base::freeze::Invalid("a chunk that is shared")),
            },
        }
        let held = self.forgotten.checked_add(self.len());
        let is_in_bounds = held.is_some_and(|held| held <= u32::MAX as usize / 2 && self.summed <= held);
        require(is_in_bounds && self.base <= u64::MAX / 2, "the bounds of a chunk")?;
        let ChecksumBlocks { block_bytes, missing_bytes } = self.blocks;
        require(missing_bytes == 0 || missing_bytes < block_bytes || block_bytes == 0, "a checksum block")?;
        let Data::Owned(packet) = &self.data else { return Ok(()) };
        let fits =
            held.is_some_and(|held| held <= self.limit) && self.limit - self.forgotten <= packet.capacity();
        require(fits, "the room of a chunk")
    }
    /// Memory that the chunk pins.
    #[cfg(feature = "freeze")]
    pub(super) fn capacity(&self) -> usize {
        match &self.data {
            Data::Owned(packet) => packet.capacity(),
            Data::Lent(bytes) => bytes.len(),
            Data::Shared(held, _) => held.capacity(),
        }
    }
    /// Returns the memory to `pool`, and how much it was.
    #[inline]
    pub(super) fn release(&mut self, pool: &mut Pool) -> usize {
        match core::mem::replace(&mut self.data, Data::Lent(Bytes::new())) {
            Data::Owned(packet) => {
                let capacity = packet.capacity();
                pool.give(packet);
                capacity
            }
            Data::Lent(bytes) => bytes.len(),
            Data::Shared(held, _) => {
                let capacity = held.capacity();
                pool.give_shared(held);
                capacity
            }
        }
    }
}
