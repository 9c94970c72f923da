//! Data that came ahead of what is missing.

use crate::window::tighten;
use inhost_base::Sequence;
use inhost_buf::{Packet, Pool, ReceiveQueue};
use std::collections::VecDeque;

/// Pieces that do not overlap, in order of sequence number. "Is the next byte here?" is one comparison with the
/// front. Limits count memory pinned and pieces.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    pieces: VecDeque<Piece>,
    capacity_bytes: usize,
    bytes: usize,
    /// Where the peer's stream ends, when its FIN came ahead.
    pub fin: Option<Sequence>,
}

#[derive(Debug)]
struct Piece {
    start: Sequence,
    packet: Packet,
}

impl Piece {
    fn end(&self) -> Sequence {
        self.start + self.packet.len() as u32
    }
}

impl Reassembly {
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }
    /// Keeps what of `packet`, whose first byte is `start`, is not here yet. False when the limit on pieces or on
    /// memory is reached; then it is not kept, and what it covered may be gone too: both come again. A packet that
    /// reaches into a later piece is cut where that begins.
    pub fn insert(&mut self, mut start: Sequence, mut packet: Packet, room: Room, pool: &mut Pool) -> bool {
        // The search goes from the back: what comes late mostly belongs there.
        let mut place = self.pieces.len();
        while place > 0 && self.pieces.get(place - 1).is_some_and(|piece| start.precedes(piece.start)) {
            place -= 1;
        }
        if let Some(before) = place.checked_sub(1).and_then(|at| self.pieces.get(at))
            && start.precedes(before.end())
        {
            let overlap = before.end().since(start);
            packet.trim_front(overlap as usize);
            start += overlap;
        }
        // Pieces that the new one covers whole go; one that it reaches into cuts it short.
        while let Some(after) = self.pieces.get(place) {
            let end = start + packet.len() as u32;
            if packet.is_empty() || end.at_or_before(after.start) {
                break;
            }
            if end.precedes(after.end()) {
                packet.truncate(after.start.since(start) as usize);
                break;
            }
            if let Some(covered) = self.pieces.remove(place) {
                self.forget(&covered.packet);
                pool.give(covered.packet);
            }
        }
        if packet.is_empty() {
            pool.give(packet);
            return true;
        }
        let packet = tighten(packet, pool);
        if self.pieces.len() >= room.pieces || self.capacity_bytes + packet.capacity() > room.capacity_bytes {
            pool.give(packet);
            return false;
        }
        self.capacity_bytes += packet.capacity();
        self.bytes += packet.len();
        self.pieces.insert(place, Piece { start, packet });
        true
    }
    /// Moves what follows `next` without a gap into `queue`; gives the bytes moved.
    pub fn drain_into(&mut self, mut next: Sequence, queue: &mut ReceiveQueue, pool: &mut Pool) -> u32 {
        let first = next;
        while self.pieces.front().is_some_and(|piece| piece.start.at_or_before(next)) {
            let Some(Piece { start, mut packet }) = self.pieces.pop_front() else { break };
            self.forget(&packet);
            packet.trim_front(next.since(start) as usize);
            next += packet.len() as u32;
            queue.push(packet, pool);
        }
        next.since(first)
    }
    /// Gives all memory back.
    pub fn clear(&mut self, pool: &mut Pool) {
        self.pieces.drain(..).for_each(|piece| pool.give(piece.packet));
        (self.bytes, self.capacity_bytes) = (0, 0);
        self.fin = None;
    }
    fn forget(&mut self, packet: &Packet) {
        self.capacity_bytes -= packet.capacity();
        self.bytes -= packet.len();
    }
}

/// What reassembly may hold in all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub capacity_bytes: usize,
    pub pieces: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::Random;

    const ROOM: Room = Room { capacity_bytes: 1 << 20, pieces: 1024 };

    fn packet(pool: &mut Pool, from: u32, length: u32) -> Packet {
        let mut packet = pool.take(1500).unwrap();
        packet.append(&(from..from + length).map(|i| (i % 251) as u8).collect::<Vec<_>>());
        packet
    }

    #[test]
    fn any_order_and_overlap_gives_the_stream_back() {
        for seed in 0..200 {
            let mut random = Random::from_number(seed);
            let mut pool = Pool::new(16 << 20);
            let (mut reassembly, mut queue) = (Reassembly::default(), ReceiveQueue::default());
            let base = u32::MAX - 5000;
            let mut next = 0u32;
            let mut steps = 0;
            while next < 20_000 {
                let ahead = if random.public_chance(0.1) { 0 } else { random.public_below(3000) };
                let from = next.saturating_sub(ahead % 100 + 1) + ahead;
                let length = 1 + random.public_below(1400);
                let mut piece = packet(&mut pool, from, length);
                if from <= next && next < from + length {
                    piece.trim_front((next - from) as usize);
                    next += piece.len() as u32;
                    queue.push(piece, &mut pool);
                } else if from > next {
                    reassembly.insert(Sequence(base.wrapping_add(from)), piece, ROOM, &mut pool);
                } else {
                    pool.give(piece);
                }
                next += reassembly.drain_into(Sequence(base.wrapping_add(next)), &mut queue, &mut pool);
                assert_eq!(pool.outstanding_bytes(), reassembly.capacity_bytes() + queue.capacity_bytes());
                steps += 1;
                assert!(steps < 10_000, "seed {seed}");
            }
            let mut bytes = vec![0; queue.len()];
            queue.read(&mut bytes, &mut pool);
            assert!(bytes.iter().enumerate().all(|(i, &b)| b == (i % 251) as u8), "seed {seed}");
            reassembly.clear(&mut pool);
            assert_eq!(pool.outstanding_bytes(), 0);
        }
    }

    #[test]
    fn its_limits_hold() {
        let mut pool = Pool::new(16 << 20);
        let mut reassembly = Reassembly::default();
        let room = Room { capacity_bytes: 1 << 20, pieces: 3 };
        for i in 0..5 {
            let piece = packet(&mut pool, i * 10, 4);
            assert_eq!(reassembly.insert(Sequence(i * 10), piece, room, &mut pool), i < 3);
        }
        let room = Room { capacity_bytes: reassembly.capacity_bytes() + 100, pieces: 10 };
        let piece = packet(&mut pool, 1000, 1000);
        assert!(!reassembly.insert(Sequence(1000), piece, room, &mut pool));
        reassembly.clear(&mut pool);
        assert_eq!((pool.outstanding_bytes(), reassembly.bytes()), (0, 0));
    }
}
