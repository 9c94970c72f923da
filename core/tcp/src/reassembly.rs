//! Data that came ahead of what is missing.

use crate::window::tighten;
use inhost_base::Sequence;
use inhost_buf::{COPY_BELOW_BYTES, Packet, Pool, ReceiveQueue};
use std::collections::VecDeque;

/// Arrivals whose runs are remembered as the latest: as many as a SACK option holds blocks.
const RECENT: usize = inhost_wire::tcp::MAX_SACK_BLOCKS;

/// Runs of data without a gap, in order of sequence number. "Is the next byte here?" is one comparison with the
/// front. Limits count memory pinned and runs.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    runs: VecDeque<Run>,
    capacity_bytes: usize,
    bytes: usize,
    /// A number within each of the runs that grew last, the newest first (RFC 2018 §4).
    recent: inhost_wire::Bounded<Sequence, RECENT>,
    /// What came again and was not told yet (RFC 2883 §4).
    pub duplicate: Option<(Sequence, Sequence)>,
    /// Where the peer's stream ends, when its FIN came ahead.
    pub fin: Option<Sequence>,
}

#[derive(Debug)]
struct Run {
    start: Sequence,
    end: Sequence,
    packets: VecDeque<Packet>,
}

impl Reassembly {
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
    /// Runs held.
    pub fn pieces(&self) -> usize {
        self.runs.len()
    }
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }
    /// Whether a SACK option would say something.
    pub fn has_news(&self) -> bool {
        !self.runs.is_empty() || self.duplicate.is_some()
    }
    /// The runs that grew last, the newest first, each with its FIN.
    // spec: RFC2018 4-7, 8-2
    pub fn recent(&self) -> impl Iterator<Item = (Sequence, Sequence)> + '_ {
        self.recent.iter().filter_map(|&at| {
            let run = self.runs.get(self.runs.partition_point(|run| run.end.at_or_before(at)))?;
            let fin = u32::from(self.fin == Some(run.end));
            run.start.at_or_before(at).then_some((run.start, run.end + fin))
        })
    }
    /// Keeps what of `packet`, whose first byte is `start`, is not here yet. False when the limit on runs or on memory
    /// is reached; then it is not kept, and comes again. A packet that reaches into a later run is cut where that
    /// begins.
    // spec: RFC9293 SHLD-31
    pub fn insert(&mut self, start: Sequence, mut packet: Packet, room: Room, pool: &mut Pool) -> bool {
        let end = start + packet.len() as u32;
        let index = self.runs.partition_point(|run| run.end.precedes(start));
        let (mut at, mut joins_front, mut joins_back) = (start, false, false);
        if let Some(run) = self.runs.get(index) {
            if run.start.at_or_before(start) {
                let known = run.end.since(start).min(end.since(start));
                self.duplicate = if known > 0 { Some((start, start + known)) } else { self.duplicate };
                packet.trim_front(known as usize);
                at += known;
                joins_back = true;
            } else if run.start.at_or_before(end) {
                let known = end.since(run.start).min(run.end.since(run.start));
                self.duplicate =
                    if known > 0 { Some((run.start, run.start + known)) } else { self.duplicate };
                packet.truncate(run.start.since(start) as usize);
                joins_front = true;
            }
        }
        if joins_back
            && !packet.is_empty()
            && let Some(after) = self.runs.get(index + 1)
            && after.start.precedes(end)
        {
            self.duplicate = Some((after.start, if end.precedes(after.end) { end } else { after.end }));
            packet.truncate(after.start.since(at) as usize);
        }
        if packet.is_empty() {
            pool.give(packet);
            self.touch(start);
            return true;
        }
        let packet = tighten(packet, pool);
        let joins = joins_front || joins_back;
        let full = (!joins && self.runs.len() >= room.pieces)
            || self.capacity_bytes + packet.capacity() > room.capacity_bytes;
        if full {
            pool.give(packet);
            return false;
        }
        let length = packet.len() as u32;
        self.bytes += packet.len();
        match self.runs.get_mut(index).filter(|_| joins) {
            Some(run) if joins_back => {
                run.end += length;
                self.capacity_bytes += append(&mut run.packets, packet, pool);
                self.join(index);
            }
            Some(run) => {
                run.start = at;
                self.capacity_bytes += packet.capacity();
                run.packets.push_front(packet);
            }
            None => {
                self.capacity_bytes += packet.capacity();
                let run = Run { start: at, end: at + length, packets: VecDeque::from([packet]) };
                self.runs.insert(index, run);
            }
        }
        self.touch(at);
        true
    }
    /// Makes one of a run and the next where they meet. The shorter moves.
    fn join(&mut self, index: usize) {
        let meets = match (self.runs.get(index), self.runs.get(index + 1)) {
            (Some(run), Some(next)) => run.end == next.start,
            _ => false,
        };
        if !meets {
            return;
        }
        let Some(mut next) = self.runs.remove(index + 1) else { return };
        let Some(run) = self.runs.get_mut(index) else { return };
        run.end = next.end;
        if next.packets.len() <= run.packets.len() {
            run.packets.append(&mut next.packets);
        } else {
            while let Some(packet) = run.packets.pop_back() {
                next.packets.push_front(packet);
            }
            run.packets = next.packets;
        }
    }
    /// The run that holds `at` is the one that grew last.
    fn touch(&mut self, at: Sequence) {
        let Some(run) = self.runs.get(self.runs.partition_point(|run| run.end.at_or_before(at))) else {
            return;
        };
        let mut recent = inhost_wire::Bounded::new();
        recent.push(at);
        for &other in self.recent.iter() {
            if !(run.start.at_or_before(other) && other.precedes(run.end)) {
                recent.push(other);
            }
        }
        self.recent = recent;
    }
    /// What comes in order reaches to `next`: what of it had come before is to be told (RFC 2883 §4.2.3: the first).
    pub fn note_overlap(&mut self, next: Sequence) {
        if let Some(run) = self.runs.front()
            && run.start.precedes(next)
        {
            self.duplicate = Some((run.start, if next.precedes(run.end) { next } else { run.end }));
        }
    }
    /// Moves what follows `next` without a gap into `queue`; gives the bytes moved.
    pub fn drain_into(&mut self, mut next: Sequence, queue: &mut ReceiveQueue, pool: &mut Pool) -> u32 {
        let first = next;
        while self.runs.front().is_some_and(|run| run.start.at_or_before(next)) {
            let Some(run) = self.runs.pop_front() else { break };
            let mut start = run.start;
            for mut packet in run.packets {
                self.forget(&packet);
                let end = start + packet.len() as u32;
                if start.precedes(next) {
                    packet.trim_front(next.since(start) as usize);
                }
                next += packet.len() as u32;
                queue.push(packet, pool);
                start = end;
            }
        }
        next.since(first)
    }
    /// Gives all memory back.
    pub fn clear(&mut self, pool: &mut Pool) {
        self.runs.drain(..).flat_map(|run| run.packets).for_each(|packet| pool.give(packet));
        (self.bytes, self.capacity_bytes) = (0, 0);
        self.recent = inhost_wire::Bounded::new();
        (self.fin, self.duplicate) = (None, None);
    }
    fn forget(&mut self, packet: &Packet) {
        self.capacity_bytes -= packet.capacity();
        self.bytes -= packet.len();
    }
}

/// Adds a packet at the end, or its bytes to the last, when they are few; gives the memory that it pins more.
fn append(packets: &mut VecDeque<Packet>, packet: Packet, pool: &mut Pool) -> usize {
    if packet.len() < COPY_BELOW_BYTES
        && let Some(last) = packets.back_mut().filter(|last| last.tailroom() >= packet.len())
    {
        last.append(packet.bytes());
        pool.give(packet);
        return 0;
    }
    let capacity = packet.capacity();
    packets.push_back(packet);
    capacity
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
