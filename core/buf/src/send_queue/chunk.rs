//! Bytes that lie in one piece, and the sums of their parts.

use crate::shared::Shared;
use crate::{Packet, Pool, join_sums};
use bytes::Bytes;
use std::sync::Arc;

/// Most sums that a chunk keeps.
const SUMS: usize = 32;

/// Chunks with fewer bytes are copied, and not shared.
const LEAST_SHARED_BYTES: usize = 4096;

/// How a chunk is divided into cells, one for each segment that it will probably leave as.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    /// Bytes of a cell; 0 when no sums are kept.
    cell_bytes: u32,
    /// Bytes that the first cell lacks, because its segment begins before the chunk.
    lack_bytes: u32,
}

impl Grid {
    /// For what begins `ahead` bytes after some segment's beginning.
    pub(super) fn new(segment_bytes: u32, ahead: usize) -> Grid {
        let lack_bytes = if segment_bytes == 0 { 0 } else { (ahead % segment_bytes as usize) as u32 };
        Grid { cell_bytes: segment_bytes, lack_bytes }
    }
    /// As many of `most` bytes as whole cells hold, if that is a good part of them; else no sums are kept.
    fn fit(&mut self, most: usize) -> usize {
        let (cell, lack) = (self.cell_bytes as usize, self.lack_bytes as usize);
        if cell == 0 {
            return most;
        }
        if SUMS * cell < most / 2 {
            self.cell_bytes = 0;
            return most;
        }
        match ((most + lack) / cell).min(SUMS) * cell {
            // Less than a cell has one sum, too.
            0 => most,
            whole => (whole - lack).min(most),
        }
    }
    /// As many of `most` bytes as one chunk of lent bytes takes.
    pub(super) fn span_bytes(mut self, most: usize) -> usize {
        self.fit(most).clamp(1, most)
    }
    /// The cell in which a byte lies, and how far.
    #[inline]
    fn cell_of(&self, at: usize) -> (usize, usize) {
        let place = at as u32 + self.lack_bytes;
        ((place / self.cell_bytes) as usize, (place % self.cell_bytes) as usize)
    }
}

#[derive(Debug)]
enum Data {
    Owned(Packet),
    Lent(Bytes),
    /// What devices and receivers read, too; so many of its first bytes are forgotten.
    Shared(Arc<Shared>, usize),
}

#[derive(Debug)]
pub(super) struct Chunk {
    /// The place of its first byte in the stream, those forgotten included.
    base: u64,
    /// Bytes forgotten.
    forgotten: usize,
    /// Bytes that it may hold in all.
    limit: usize,
    /// Bytes whose sums are kept, from the base on.
    summed: usize,
    grid: Grid,
    /// Of each cell, as if it began at an even offset.
    sums: [u16; SUMS],
    data: Data,
}

impl Chunk {
    /// An empty one for whole cells, of which sums are kept where that is said.
    #[inline]
    pub(super) fn owned(base: u64, packet: Packet, mut grid: Grid, summed: bool) -> Chunk {
        let limit = grid.fit(packet.tailroom());
        if !summed {
            grid.cell_bytes = 0;
        }
        Chunk { base, forgotten: 0, limit, summed: 0, grid, sums: [0; SUMS], data: Data::Owned(packet) }
    }
    pub(super) fn lent(base: u64, bytes: Bytes, grid: Grid) -> Chunk {
        let limit = bytes.len();
        Chunk { base, forgotten: 0, limit, summed: 0, grid, sums: [0; SUMS], data: Data::Lent(bytes) }
    }
    /// The place of the first byte held.
    pub(super) fn start(&self) -> u64 {
        self.base + self.forgotten as u64
    }
    /// The place after the last.
    pub(super) fn end(&self) -> u64 {
        self.start() + self.len() as u64
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
    /// Sees to it that what it holds may be shared, and nothing is added any more; false where that is not worth it, because
    /// it `may_grow` a good deal or is short.
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
    /// `length` bytes from the place `at` on, or what it has of them, shared; `None` where that was not seen to.
    pub(super) fn shared(&self, at: u64, length: usize) -> Option<Packet> {
        let Data::Shared(held, from) = &self.data else { return None };
        let skip = (at - self.start()) as usize;
        let length = length.min(self.len().saturating_sub(skip));
        Some(Packet::shared(held.clone(), from + skip, length))
    }
    /// Copies as much of `bytes` behind what it holds as there is room for, and says how much.
    #[inline]
    pub(super) fn append(&mut self, bytes: &[u8]) -> usize {
        let Data::Owned(packet) = &mut self.data else { return 0 };
        let mut at = self.forgotten + packet.len();
        let fits = bytes.len().min(self.limit - at);
        let mut rest = &bytes[..fits];
        if self.grid.cell_bytes == 0 {
            return packet.append(rest);
        }
        while !rest.is_empty() {
            let (cell, within) = self.grid.cell_of(at);
            let Some(sum) = self.sums.get_mut(cell) else {
                packet.append(rest);
                break;
            };
            // A cell that begins before the chunk is counted from the chunk's first byte.
            let before = within.min(at);
            let (piece, others) = rest.split_at(rest.len().min(self.grid.cell_bytes as usize - within));
            *sum = join_sums(*sum, packet.append_and_sum(piece), before % 2 == 1);
            at += piece.len();
            self.summed = at;
            rest = others;
        }
        fits
    }
    /// The sum of `bytes` bytes from the place `at` on, when they are a cell, or all that a cell has.
    #[inline]
    pub(super) fn sum(&mut self, at: u64, bytes: usize) -> Option<u16> {
        if self.grid.cell_bytes == 0 {
            return None;
        }
        let from = (at - self.base) as usize;
        let (cell, within) = self.grid.cell_of(from);
        let begins = within == 0 || from == 0;
        let held = self.forgotten + self.len();
        let whole = (self.grid.cell_bytes as usize - within).min(held - from);
        if !begins || bytes != whole {
            return None;
        }
        if self.summed < from + bytes {
            self.sum_lent();
        }
        self.sums.get(cell).copied().filter(|_| self.summed >= from + bytes)
    }
    /// The sums of the whole cells among `bytes` bytes from the place `at` on, if a cell of `segment_bytes` begins there.
    pub(super) fn whole_sums(&mut self, at: u64, bytes: usize, segment_bytes: u32) -> &[u16] {
        if self.grid.cell_bytes != segment_bytes || segment_bytes == 0 {
            return &[];
        }
        let from = (at - self.base) as usize;
        let (cell, within) = self.grid.cell_of(from);
        if within != 0 {
            return &[];
        }
        let held = self.forgotten + self.len();
        if self.summed < held {
            self.sum_lent();
        }
        let known = bytes.min(held - from).min(self.summed.saturating_sub(from));
        self.sums.get(cell..cell + known / segment_bytes as usize).unwrap_or(&[])
    }
    /// Makes the sums of lent bytes, all of which are there from the beginning.
    fn sum_lent(&mut self) {
        let bytes = match &self.data {
            Data::Owned(_) => return,
            Data::Lent(bytes) => &bytes[..],
            Data::Shared(held, from) => held.bytes().get(*from..).unwrap_or(&[]),
        };
        // What is forgotten is not asked for again; a cell that lacks its beginning is never whole.
        let mut at = self.forgotten;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (cell, within) = self.grid.cell_of(at);
            let (piece, others) = rest.split_at(rest.len().min(self.grid.cell_bytes as usize - within));
            let Some(sum) = self.sums.get_mut(cell) else { break };
            *sum = crate::sum(piece);
            at += piece.len();
            self.summed = at;
            rest = others;
        }
    }
    /// Forgets the first `bytes`; gives the memory that is free by that.
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
    /// Begins anew and empty at the place `base`, if it holds memory of its own, for no more than `most_bytes` and its
    /// like.
    #[inline]
    pub(super) fn restart(&mut self, base: u64, most_bytes: usize) -> bool {
        let Data::Owned(packet) = &mut self.data else { return false };
        if packet.capacity() >= 2 * most_bytes || self.grid.cell_bytes != 0 {
            return false;
        }
        packet.restart();
        (self.base, self.forgotten, self.summed) = (base, 0, 0);
        true
    }
    /// Gives the memory back, and says how much it was.
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
                Shared::release(held, pool);
                capacity
            }
        }
    }
}
