//! A bounded batch of received packets, and scattered frames in one packet.

use crate::{Packet, Pool, Slices};
use alloc::collections::VecDeque;

/// A batch of received packets, at most [`Batch::LIMIT`].
///
/// ```
/// use inhost_buf::{Batch, Pool};
/// let mut pool = Pool::new(1 << 20);
/// let mut batch = Batch::new();
/// batch.push(pool.take(1500).unwrap()).unwrap();
/// while let Some(packet) = batch.pop_whole(&mut pool) {
///     pool.give(packet);
/// }
/// assert!(batch.is_empty());
/// ```
#[derive(Debug, Default)]
pub struct Batch {
    packets: VecDeque<Packet>,
}

impl Batch {
    /// Most packets in a batch.
    pub const LIMIT: usize = 64;

    /// An empty batch. It keeps its memory between rounds.
    pub fn new() -> Self {
        Batch::default()
    }
    /// Packets held.
    pub fn len(&self) -> usize {
        self.packets.len()
    }
    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
    /// Whether the limit is reached.
    pub fn is_full(&self) -> bool {
        self.packets.len() >= Batch::LIMIT
    }
    /// Adds a packet, or returns it when the batch is full.
    pub fn push(&mut self, packet: Packet) -> Result<(), Packet> {
        if self.is_full() {
            return Err(packet);
        }
        self.packets.push_back(packet);
        Ok(())
    }
    /// Whether one more frame fits, scattered over several packets or not.
    pub fn has_room(&self) -> bool {
        self.packets.len() + Slices::MOST < Batch::LIMIT
    }
    /// The packets, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter()
    }
    /// The oldest packet. It may hold the headers of a frame whose payload is in the next [`Packet::pieces`] packets.
    pub fn pop(&mut self) -> Option<Packet> {
        self.packets.pop_front()
    }
    /// The oldest frame in one packet. A scattered frame is copied into a buffer of `pool`, and dropped when the pool has no
    /// memory.
    pub fn pop_whole(&mut self, pool: &mut Pool) -> Option<Packet> {
        while let Some(packet) = self.pop() {
            if packet.pieces() == 0 {
                return Some(packet);
            }
            let pieces = packet.pieces().min(self.packets.len());
            let whole = packet.joined(self.packets.range(..pieces), pool);
            self.packets.drain(..pieces);
            pool.give(packet);
            if whole.is_some() {
                return whole;
            }
        }
        None
    }
}

impl Packet {
    /// One packet with a copy of these headers and of the payload in `pieces`; `None` when `pool` has no memory.
    pub fn joined<'a>(
        &self,
        pieces: impl Iterator<Item = &'a Packet> + Clone,
        pool: &mut Pool,
    ) -> Option<Packet> {
        let mut whole = pool.take(self.len() + pieces.clone().map(Packet::len).sum::<usize>())?;
        whole.set_checksum(self.checksum());
        whole.set_segment_bytes(self.segment_bytes());
        whole.append(self.bytes());
        for piece in pieces {
            whole.append(piece.bytes());
        }
        Some(whole)
    }
}
