//! The direction of a remote stream from its outer end to the peer.

use std::io::IoSlice;
use std::sync::Arc;

use bytes::Bytes;
use inhost_buf::ByteRing;
use inhost_tcp::SendHow;

use super::blocks::{BLOCKS_FROM_BYTES, Blocks};
use crate::error::StreamError;
use crate::memory::{Allowance, REMOTE_RING_BYTES, Ring};

/// Most bytes in blocks that the shard's task has not taken in hand.
pub(super) const BLOCKS_MOST_BYTES: usize = REMOTE_RING_BYTES / 2;

/// How far the outer end has gone with its sending half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sending {
    /// More may come.
    Open,
    /// The ring holds the last bytes.
    Finished,
    /// The connection is to be reset.
    Aborted,
}

/// What the shard's task has taken from the outer end to send. It is sent without the lock, while the next bytes are written.
pub(super) struct Hand {
    blocks: Blocks,
    /// The same, newer than the blocks.
    bytes: ByteRing,
    /// Bytes at the front that are urgent, up to the mark.
    urgent: usize,
    /// More follows at once.
    more: bool,
}

impl Hand {
    pub(super) fn new() -> Hand {
        Hand { blocks: Blocks::default(), bytes: ByteRing::new(0), urgent: 0, more: false }
    }
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.bytes.is_empty()
    }
    /// The first block, to be sent before [`Hand::front`], and how.
    pub(super) fn block(&mut self) -> Option<(&mut Bytes, SendHow)> {
        let follows = !self.bytes.is_empty() || self.more;
        let (block, others) = self.blocks.front()?;
        Some((block, SendHow { more: others || follows, ..SendHow::default() }))
    }
    /// Forgets the first block if the connection took all of it.
    pub(super) fn sent_of_block(&mut self) {
        self.blocks.pop_empty();
    }
    /// The first bytes to send, and how: whether they end at an urgent mark, and whether more follows at once, because
    /// it was written already or its writer was cut short.
    pub(super) fn front(&self) -> (&[u8], SendHow) {
        let front = self.bytes.front();
        let (bytes, urgent) = match self.urgent {
            0 => (front, false),
            mark => (&front[..mark.min(front.len())], mark <= front.len()),
        };
        let more = bytes.len() < self.bytes.len() || self.more;
        (bytes, SendHow { urgent, more, ..SendHow::default() })
    }
    /// Forgets bytes that the connection took.
    pub(super) fn sent(&mut self, count: usize) {
        self.bytes.discard(count);
        self.urgent = self.urgent.saturating_sub(count);
    }
    /// Forgets all, and gives the memory back.
    pub(super) fn clear(&mut self) {
        *self = Hand::new();
    }
}

/// What was written and is not in hand.
pub(super) struct Down {
    blocks: Blocks,
    /// The same, newer than the blocks.
    ring: Ring,
    /// Bytes at the front of the ring that are urgent, up to the mark.
    urgent: usize,
    /// The last write was cut short: its rest comes as soon as its writer looks again.
    is_cut: bool,
    sending: Sending,
    /// The error of the sending half; received data may still be read.
    error: Option<StreamError>,
    /// The shard's task may have bytes in hand that are not sent.
    is_in_hand: bool,
    /// The shard's task is gone.
    is_over: bool,
    /// The writers are to be woken.
    wakes_writers: bool,
}

/// Calls of the outer end.
impl Down {
    pub(super) fn new(ring_bytes: usize, allowance: &Arc<Allowance>) -> Down {
        Down {
            blocks: Blocks::default(),
            ring: Ring::new(ring_bytes, 2, allowance),
            urgent: 0,
            is_cut: false,
            sending: Sending::Open,
            error: None,
            is_in_hand: false,
            is_over: false,
            wakes_writers: false,
        }
    }
    pub(super) fn is_open(&self) -> bool {
        self.sending == Sending::Open
    }
    /// Whether nothing waits here that a write to the connection itself would overtake.
    pub(super) fn may_write_directly(&self) -> bool {
        let is_empty = self.blocks.is_empty() && self.ring.is_empty() && !self.is_in_hand;
        is_empty && self.is_open() && !self.is_over
    }
    pub(super) fn end_sending(&mut self, how: Sending) {
        if self.is_open() || how == Sending::Aborted {
            self.sending = how;
        }
    }
    pub(super) fn error(&self) -> Option<StreamError> {
        self.error
    }
    /// Whether a write takes anything.
    pub(super) fn has_room(&mut self) -> bool {
        !self.are_blocks_full() && self.ring.room(1) > 0
    }
    fn are_blocks_full(&self) -> bool {
        self.blocks.bytes() >= BLOCKS_MOST_BYTES
    }
    /// Whether a block may be written. What is urgent stays in the ring, and what follows it.
    pub(super) fn takes_block(&self) -> bool {
        let is_short = self.urgent == 0 && self.ring.len() <= BLOCKS_FROM_BYTES;
        is_short && self.is_open() && !self.are_blocks_full()
    }
    /// Adds a block, and before it what little is in the ring.
    pub(super) fn push_block(&mut self, block: Bytes, is_cut: bool) {
        if !self.ring.is_empty() {
            let mut before = vec![0; self.ring.len()];
            self.ring.read(&mut before);
            self.blocks.push(before.into());
        }
        self.blocks.push(block);
        self.is_cut = is_cut;
    }
    /// Writes what stands `at` so many bytes in `pieces` into the ring; `None` when there is no room.
    pub(super) fn write(&mut self, pieces: &[IoSlice<'_>], mut at: usize, urgent: bool) -> Option<usize> {
        let wanted = pieces.iter().map(|piece| piece.len()).sum::<usize>() - at;
        let mut count = 0;
        if !self.are_blocks_full() {
            self.ring.room(wanted);
            for piece in pieces {
                count += self.ring.write(piece.get(at..).unwrap_or_default());
                at = at.saturating_sub(piece.len());
            }
        }
        self.is_cut = count < wanted;
        if count == 0 && wanted > 0 {
            return None;
        }
        if urgent {
            self.urgent = self.ring.len();
        }
        Some(count)
    }
}

/// Calls of the shard's task.
impl Down {
    /// Takes in hand what was written, when all from before was sent.
    pub(super) fn take(&mut self, hand: &mut Hand) {
        self.is_in_hand = !hand.is_empty();
        if self.is_in_hand || self.blocks.is_empty() && self.ring.is_empty() {
            return;
        }
        self.is_in_hand = true;
        hand.blocks = std::mem::take(&mut self.blocks);
        self.ring.swap(&mut hand.bytes);
        hand.urgent = std::mem::take(&mut self.urgent);
        hand.more = self.is_cut && self.is_open();
        self.wake_writers();
    }
    /// Nothing can be sent any more; received data is still passed on.
    pub(super) fn fail(&mut self, error: StreamError) {
        self.error.get_or_insert(error);
        self.ring.discard(usize::MAX);
        drop(std::mem::take(&mut self.blocks));
        self.wake_writers();
    }
    /// How far the outer end has gone.
    pub(super) fn sending(&self) -> Sending {
        self.sending
    }
    pub(super) fn wake_writers(&mut self) {
        self.wakes_writers = true;
    }
    /// Whether they are to be woken now.
    pub(super) fn takes_wake(&mut self) -> bool {
        std::mem::take(&mut self.wakes_writers)
    }
    /// Whether the ring holds more memory than every ring may.
    pub(super) fn is_large(&self) -> bool {
        self.ring.is_large()
    }
    /// Gives back memory that was not needed since the last call.
    pub(super) fn release_unused(&mut self) {
        self.ring.release_unused();
    }
    /// The shard's task is gone.
    pub(super) fn end_of_shard(&mut self) {
        self.is_over = true;
        self.ring.release();
        drop(std::mem::take(&mut self.blocks));
    }
}
