//! The direction of a remote stream from the peer to its outer end.

use std::sync::Arc;

use super::lent::{Lent, LentPacket};
use crate::error::StreamError;
use crate::memory::{Allowance, REMOTE_RING_BYTES, Ring};

/// Most memory of packets that wait for a stream's reader. With as little as a ring has, a host waits more often for a reader
/// whose core is busy (docs/figures.md, net-receive).
const LENT_MOST_BYTES: usize = 4 * REMOTE_RING_BYTES;

/// What was handed up and no reader has taken.
pub(super) struct Up {
    ring: Ring,
    /// The same, newer than what is in the ring: packets as they came.
    lent: Lent,
    /// Packets that the shard gave and has not taken back.
    lent_count: usize,
    end: Option<Result<(), StreamError>>,
    /// Bytes that were handed up.
    bytes: u64,
    /// The end of the urgent data, as bytes that were handed up before it.
    mark: u64,
    /// The shard has more than there was room for.
    is_short: bool,
    /// The outer end reads from the connection itself: nothing is to be handed up.
    is_direct: bool,
    /// The outer end is gone: nothing will be read any more.
    is_abandoned: bool,
    /// The shard's task is gone: nothing will come any more, or be taken back.
    is_over: bool,
    /// The readers are to be woken.
    wakes_readers: bool,
}

/// Calls of the outer end. `reader` has the oldest unread packets; `read_bytes` were read of all.
impl Up {
    pub(super) fn new(ring_bytes: usize, allowance: &Arc<Allowance>) -> Up {
        Up {
            ring: Ring::new(ring_bytes, 1, allowance),
            lent: Lent::default(),
            lent_count: 0,
            end: None,
            bytes: 0,
            mark: 0,
            is_short: false,
            is_direct: false,
            is_abandoned: false,
            is_over: false,
            wakes_readers: false,
        }
    }
    /// Whether nothing waits here that a read from the connection itself would overtake.
    pub(super) fn is_drained(&mut self, reader: &mut Lent) -> bool {
        reader.move_used(&mut self.lent);
        let is_empty = reader.is_empty() && self.lent.is_empty() && self.ring.is_empty();
        is_empty && self.end.is_none() && !self.is_over
    }
    /// The outer end reads from the connection itself from now on, or no longer; whether it did before.
    pub(super) fn set_direct(&mut self, is_direct: bool) -> bool {
        std::mem::replace(&mut self.is_direct, is_direct)
    }
    pub(super) fn is_direct(&self) -> bool {
        self.is_direct
    }
    /// Moves bytes out, or packets into the empty `reader`; `None` when there are none.
    pub(super) fn read(&mut self, reader: &mut Lent, into: &mut [u8]) -> Option<usize> {
        reader.move_used(&mut self.lent);
        if self.is_over {
            // The host takes nothing back any more.
            drop(self.lent.take_used());
        }
        if !self.ring.is_empty() {
            let count = self.ring.read(into);
            if self.is_over {
                self.ring.release();
            }
            return Some(count);
        }
        if self.lent.is_empty() {
            return None;
        }
        reader.take_over(&mut self.lent);
        Some(0)
    }
    /// Whether the shard's task finds room again. It is told once for half of the room, not for every byte.
    pub(super) fn has_room_again(&mut self) -> bool {
        let has_room = self.is_short && self.ring.free() >= self.ring.len();
        self.is_short &= !has_room;
        has_room
    }
    /// Copies bytes without moving them out.
    pub(super) fn peek(&self, into: &mut [u8]) -> usize {
        let count = self.ring.peek(into);
        count + self.lent.peek(&mut into[count..])
    }
    /// How the stream ended, as far as the outer end was told.
    pub(super) fn end(&self) -> Option<Result<(), StreamError>> {
        self.end
    }
    pub(super) fn unread_bytes(&self, read_bytes: u64) -> usize {
        self.bytes.saturating_sub(read_bytes) as usize
    }
    /// Bytes to the end of urgent data, when some is ahead.
    pub(super) fn urgent_ahead(&self, read_bytes: u64) -> Option<usize> {
        Some(self.mark.saturating_sub(read_bytes) as usize).filter(|&bytes| bytes > 0)
    }
    pub(super) fn abandon(&mut self) {
        self.is_abandoned = true;
    }
}

/// Calls of the shard's task.
impl Up {
    /// Room for bytes from the peer: some, unless there is no memory to grow. None while packets wait that would be
    /// overtaken.
    pub(super) fn room(&mut self) -> usize {
        let room = if self.lent.is_empty() { self.ring.room(1) } else { 0 };
        self.is_short = room == 0;
        room
    }
    /// The memory of packets that may be handed up as they are; 0 when there is room for none, or no memory.
    pub(super) fn room_to_lend(&mut self, has_memory: bool) -> usize {
        let most_bytes = if has_memory { LENT_MOST_BYTES } else { 0 };
        let room = most_bytes.saturating_sub(self.lent.waiting_bytes() + self.ring.len());
        self.is_short = room == 0;
        room
    }
    /// Whether packets wait for the reader.
    pub(super) fn has_lent(&self) -> bool {
        !self.lent.is_empty()
    }
    /// Hands up bytes of the peer, of which [`Up::room`] says how many fit; `urgent_ahead` as the connection said before they
    /// were read.
    pub(super) fn put(&mut self, bytes: &[u8], urgent_ahead: Option<usize>) {
        self.set_urgent(urgent_ahead);
        self.ring.write(bytes);
        self.bytes += bytes.len() as u64;
        self.wake_readers();
    }
    /// Hands up packets of the peer. The readers are woken once for all of a round: on the host's core they would run before the
    /// next ones are there.
    pub(super) fn lend(&mut self, packets: Vec<LentPacket>) {
        self.lent_count += packets.len();
        for lent in packets {
            self.bytes += lent.packet().len() as u64;
            self.lent.push(lent);
        }
    }
    /// Packets that were read.
    pub(super) fn take_used(&mut self) -> Vec<LentPacket> {
        let used = self.lent.take_used();
        self.lent_count -= used.len();
        used
    }
    /// Takes note of urgent data that the connection announces beyond what was handed up.
    pub(super) fn set_urgent(&mut self, urgent_ahead: Option<usize>) {
        if let Some(ahead) = urgent_ahead {
            self.mark = self.bytes + ahead as u64;
            self.wake_readers();
        }
    }
    /// No more will come from the peer.
    pub(super) fn finish(&mut self, how: Result<(), StreamError>) {
        self.end.get_or_insert(how);
        self.wake_readers();
    }
    pub(super) fn is_abandoned(&self) -> bool {
        self.is_abandoned
    }
    pub(super) fn wake_readers(&mut self) {
        self.wakes_readers = true;
    }
    /// Whether they are to be woken now.
    pub(super) fn takes_wake(&mut self) -> bool {
        std::mem::take(&mut self.wakes_readers)
    }
    /// Whether packets are away that are to be taken back.
    pub(super) fn awaits_packets(&self) -> bool {
        self.lent_count > 0
    }
    /// Whether there is memory that is to be looked at in a moment.
    pub(super) fn is_large(&self) -> bool {
        self.ring.is_large() || self.awaits_packets()
    }
    /// Gives back memory that was not needed since the last call.
    pub(super) fn release_unused(&mut self, reader: &mut Lent) {
        self.ring.release_unused();
        reader.move_used(&mut self.lent);
        reader.release();
        if !self.awaits_packets() {
            self.lent.release();
        }
    }
    /// The shard's task is gone.
    pub(super) fn end_of_shard(&mut self) {
        self.is_over = true;
        self.ring.release();
        drop(self.lent.take_used());
    }
}
