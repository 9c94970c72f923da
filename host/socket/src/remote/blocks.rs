//! Much that is written at once goes to the connection in blocks, which it sends as they lie: their writer copies them, and
//! nobody copies them again.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

use bytes::Bytes;

use super::locked::Locked;
use crate::memory::{Allowance, Taken};

/// From so many bytes on a write goes in blocks: less is copied faster than handed over.
pub(super) const BLOCKS_FROM_BYTES: usize = 32 << 10;
/// Memory of a block.
const BLOCK_BYTES: usize = 64 << 10;
/// Blocks of a stream that nobody uses are kept for the next burst: so many.
const KEPT: usize = 8;
/// All blocks together: one part of so many of what rings and packets may hold.
const PART: usize = 2;

/// Blocks in the order of the stream. Most streams have none, and then it is one pointer.
#[derive(Default)]
#[expect(clippy::box_collection, reason = "an idle stream has two of them")]
pub(super) struct Blocks(Option<Box<VecDeque<Bytes>>>);

impl Blocks {
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|blocks| blocks.is_empty())
    }
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().flat_map(|blocks| blocks.iter()).map(Bytes::len).sum()
    }
    pub(super) fn push(&mut self, block: Bytes) {
        self.0.get_or_insert_default().push_back(block);
    }
    /// The oldest one, and whether others follow.
    pub(super) fn front(&mut self) -> Option<(&mut Bytes, bool)> {
        let blocks = self.0.as_mut()?;
        let others = blocks.len() > 1;
        blocks.front_mut().map(|block| (block, others))
    }
    /// Forgets the oldest one if nothing is left of it.
    pub(super) fn pop_empty(&mut self) {
        if let Some(blocks) = &mut self.0 {
            blocks.pop_front_if(|block| block.is_empty());
        }
    }
}

/// The memory of a stream's blocks. It is used again when the peer has acknowledged what was in it.
pub(super) struct Memory {
    allowance: Arc<Allowance>,
    state: Locked<State>,
}

#[derive(Default)]
struct State {
    spare: Vec<Buffer>,
    /// Blocks that are not spare.
    used: usize,
    /// Some were used since [`Memory::release_unused`].
    is_wanted: bool,
}

struct Buffer {
    bytes: Vec<u8>,
    /// What counts it as memory of the host.
    _taken: Taken,
}

/// A block that is in use.
struct Block {
    buffer: Option<Buffer>,
    of: Arc<Memory>,
}

impl Memory {
    pub(super) fn new(allowance: &Arc<Allowance>) -> Arc<Memory> {
        Arc::new(Memory { allowance: allowance.clone(), state: Locked::default() })
    }
    /// Copies what stands `at` so many bytes in `pieces` into a block, as much as it holds; `None` when there is no memory.
    pub(super) fn copy(self: &Arc<Memory>, pieces: &[IoSlice<'_>], mut at: usize) -> Option<Bytes> {
        let mut buffer = self.take()?;
        buffer.bytes.clear();
        for piece in pieces {
            let rest = piece.get(at..).unwrap_or_default();
            at = at.saturating_sub(piece.len());
            let room = BLOCK_BYTES - buffer.bytes.len();
            buffer.bytes.extend_from_slice(&rest[..rest.len().min(room)]);
        }
        Some(Bytes::from_owner(Block { buffer: Some(buffer), of: self.clone() }))
    }
    fn take(&self) -> Option<Buffer> {
        let mut state = self.state.lock();
        let buffer = match state.spare.pop() {
            Some(buffer) => buffer,
            None => {
                let taken = self.allowance.take_of(BLOCK_BYTES, PART)?;
                Buffer { bytes: Vec::with_capacity(BLOCK_BYTES), _taken: taken }
            }
        };
        state.used += 1;
        state.is_wanted = true;
        Some(buffer)
    }
    /// Whether there is memory that may be given back in a moment.
    pub(super) fn is_held(&self) -> bool {
        let state = self.state.lock();
        state.used > 0 || !state.spare.is_empty()
    }
    /// Gives spare memory back, unless some was used since the last call.
    pub(super) fn release_unused(&self) {
        let mut state = self.state.lock();
        if !std::mem::take(&mut state.is_wanted) {
            state.spare = Vec::new();
        }
    }
    /// Keeps no memory from now on that nobody uses.
    pub(super) fn release(&self) {
        self.state.lock().spare = Vec::new();
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], |buffer| &buffer.bytes)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let mut state = self.of.state.lock();
        state.used -= 1;
        if state.spare.len() < KEPT {
            state.spare.extend(self.buffer.take());
        }
    }
}
