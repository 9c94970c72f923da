//! ReassemblyQueue queue: data and the FIN, received out of order.

#[cfg(feature = "freeze")]
use crate::packet::freeze::ThawPacket;
use crate::{COPY_BELOW_BYTES, Packet, Pool, ReceiveQueue};
use alloc::collections::VecDeque;
#[cfg(feature = "freeze")]
use inhost_base::freeze::{Invalid, require};
use inhost_base::{Bounded, Offset};

/// Blocks remembered as the most recent: as many as a SACK option holds.
const RECENT: usize = 4;

/// Memory allowed beyond what is proportional to the data: enough for some fifty single bytes.
const MOST_WASTE_BYTES: usize = 32 << 10;
/// An empty list with a larger capacity than this is freed.
const KEPT_PLACES: usize = 32;

/// Out-of-order data as runs, each contiguous, in order of sequence number. A SACK block is a run with the FIN next to it.
/// Limits count the memory held and the runs.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct ReassemblyQueue {
    #[cfg_attr(feature = "freeze", serde(with = "inhost_base::freeze::with_capacity"))]
    runs: VecDeque<Run>,
    /// Total capacity of the packet lists of all runs.
    places: usize,
    capacity_bytes: usize,
    bytes: usize,
    /// A sequence number within each block that grew most recently, newest first (RFC 2018 §4).
    recent: Bounded<Offset, RECENT>,
    /// A duplicate that is not reported yet (D-SACK, RFC 2883 §4).
    duplicate: Option<(Offset, Offset)>,
    /// The FIN that was received out of order: of several, which no correct peer sends, the first in the stream.
    fin: Option<Offset>,
}

/// Contiguous data.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Run {
    start: Offset,
    end: Offset,
    #[cfg_attr(feature = "freeze", serde(with = "inhost_base::freeze::with_capacity"))]
    packets: VecDeque<Packet>,
}

impl ReassemblyQueue {
    /// Calls `act` with each packet of a thawed queue, and checks the queue.
    #[cfg(feature = "freeze")]
    pub fn thaw(&mut self, act: ThawPacket<'_>) -> Result<(), Invalid> {
        let (mut bytes, mut capacity_bytes, mut places) = (0, 0, 0);
        let mut before: Option<Offset> = None;
        for run in &mut self.runs {
            let mut length = 0;
            for packet in &mut run.packets {
                act(packet)?;
                length += packet.len();
                capacity_bytes += packet.capacity();
            }
            require(length as u64 == u64::from(run.end.since(run.start)), "the length of a run")?;
            require(run.start < run.end, "the order of a run")?;
            require(before.is_none_or(|before| before < run.start), "the order of runs")?;
            before = Some(run.end);
            bytes += length;
            places += run.packets.capacity();
        }
        let is_true = (bytes, capacity_bytes, places) == (self.bytes, self.capacity_bytes, self.places);
        require(is_true, "the counts of a reassembly queue")
    }
    /// Whether nothing waits: no data, and no FIN.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.fin.is_none()
    }
    /// The blocks held, in order.
    pub fn blocks(&self) -> impl Iterator<Item = (Offset, Offset)> + '_ {
        self.runs.iter().map(|run| (run.start, run.end))
    }
    /// Number of runs.
    pub fn pieces(&self) -> usize {
        self.runs.len()
    }
    /// Bytes of data that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Capacity of the packet buffers held, which counts against the window.
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }
    /// All memory: packet buffers and lists.
    pub fn held_bytes(&self) -> usize {
        let lists = self.runs.capacity() * size_of::<Run>() + self.places * size_of::<Packet>();
        self.capacity_bytes + lists
    }
    /// A duplicate that is not reported yet.
    pub fn duplicate(&self) -> Option<(Offset, Offset)> {
        self.duplicate
    }
    /// The data from `start` to `end` came again.
    pub fn note_duplicate(&mut self, start: Offset, end: Offset) {
        self.duplicate = Some((start, end));
    }
    /// The duplicate is reported, or not to be.
    pub fn forget_duplicate(&mut self) {
        self.duplicate = None;
    }
    /// Whether a SACK option has something to report.
    pub fn has_news(&self) -> bool {
        !self.is_empty() || self.duplicate.is_some()
    }
    /// SACK blocks, the most recent first, each with the FIN in it or next to it.
    // spec: RFC2018 4-7, 8-2
    pub fn recent(&self) -> impl Iterator<Item = (Offset, Offset)> + '_ {
        self.recent.iter().filter_map(|&at| self.block_at(at))
    }
    /// The contiguous block around `at`, the FIN counted.
    fn block_at(&self, at: Offset) -> Option<(Offset, Offset)> {
        let fin = || self.ends_by(at).then(|| (at, at + 1));
        let (mut start, mut end) = self.run_at(at).or_else(fin)?;
        if self.fin.is_some() {
            // It joins what lies before and behind it.
            end = end + u32::from(self.ends_by(end));
            end = self.run_at(end).map_or(end, |(_, run_end)| run_end);
            start = start.back(u32::from(self.ends_by(start.back(1))));
            start = self.run_at(start.back(1)).map_or(start, |(run_start, _)| run_start);
        }
        Some((start, end))
    }
    /// Whether the byte `at` is held.
    pub fn holds(&self, at: Offset) -> bool {
        self.run_at(at).is_some()
    }
    fn run_at(&self, at: Offset) -> Option<(Offset, Offset)> {
        let run = self.runs.get(self.runs.partition_point(|run| run.end <= at))?;
        (run.start <= at).then_some((run.start, run.end))
    }
    /// Keeps a FIN at `at`, the end of a segment that began at `start`. False if the whole segment was held already.
    pub fn insert_fin(&mut self, start: Offset, at: Offset) -> bool {
        if self.block_at(start).is_some_and(|(_, end)| at < end) {
            self.duplicate = Some((start, at + 1));
            self.touch(start);
            return false;
        }
        if let Some(known) = self.fin.filter(|fin| start <= *fin && *fin <= at) {
            self.duplicate = Some((known, known + 1));
        }
        self.fin = self.fin.filter(|fin| *fin < start).or(Some(at));
        self.touch(at);
        true
    }
    /// Extends the duplicate that ends at `at` by a FIN there, if the FIN was a duplicate, too.
    pub fn repeat_fin(&mut self, at: Offset, came_before: bool) {
        if let Some((start, end)) = self.duplicate
            && end == at
            && (came_before || self.run_at(at).is_some())
        {
            self.duplicate = Some((start, at + 1));
        }
    }
    /// Keeps the part of `packet`, whose first byte is `start`, that is not held yet. False if the limit on runs, or on the
    /// capacity of buffers, is reached; then the data is dropped, and the peer retransmits it.
    // spec: RFC9293 SHLD-31
    pub fn insert(
        &mut self,
        start: Offset,
        packet: Packet,
        room_bytes: usize,
        most_runs: usize,
        pool: &mut Pool,
    ) -> bool {
        let (from, to) = (start, start + packet.len() as u32);
        // Data in place of a FIN takes it back.
        let gone = self.fin.take_if(|fin| from <= *fin && *fin < to);
        let kept = self.insert_data(start, packet, room_bytes, most_runs, pool);
        if let Some((start, end)) = self.duplicate
            && end < to
            && self.ends_by(end)
        {
            self.duplicate = Some((start, end + 1));
        }
        if let Some(at) = gone {
            match self.duplicate {
                Some((start, end)) if end == at => self.duplicate = Some((start, at + 1)),
                None => self.duplicate = Some((at, at + 1)),
                Some(_) => {}
            }
        }
        kept
    }
    /// The same without the FIN. Runs that lie wholly within the packet are replaced by it. Of what was held already the first part
    /// is a duplicate (RFC 2883 §4.2.3).
    fn insert_data(
        &mut self,
        start: Offset,
        mut packet: Packet,
        room_bytes: usize,
        most_runs: usize,
        pool: &mut Pool,
    ) -> bool {
        let end = start + packet.len() as u32;
        let index = self.runs.partition_point(|run| run.end < start);
        let (mut at, mut duplicate) = (start, None);
        let before = self.runs.get(index).filter(|run| run.start <= start);
        if let Some(run) = before {
            at = run.end.min(end);
            duplicate = (start < at).then_some((start, at));
            packet.trim_front(at.since(start) as usize);
        }
        let next = index + usize::from(before.is_some());
        let covered = self.runs.range(next..).take_while(|run| run.end <= end).count();
        duplicate = duplicate.or(self
            .runs
            .get(next)
            .filter(|run| run.start < end)
            .map(|run| (run.start, run.end.min(end))));
        self.duplicate = duplicate.or(self.duplicate);
        let after = self.runs.get(next + covered).filter(|run| run.start <= end);
        if let Some(run) = after {
            packet.truncate(run.start.since(at) as usize);
        }
        if packet.is_empty() {
            pool.give(packet);
            self.touch(start);
            return true;
        }
        pool.tighten(&mut packet);
        let fills_a_neighbour = match (before, after) {
            (Some(run), _) => run.packets.back().is_some_and(|last| takes(last, &packet)),
            (None, Some(run)) => run.packets.front().is_some_and(|first| takes(&packet, first)),
            (None, None) => false,
        };
        let joins = before.or(after).is_some();
        if !fills_a_neighbour && self.is_full(&packet, joins, room_bytes, most_runs) {
            pool.give(packet);
            return false;
        }
        for run in self.runs.drain(next..next + covered) {
            self.bytes -= run.end.since(run.start) as usize;
            self.places -= run.packets.capacity();
            for packet in run.packets {
                self.capacity_bytes -= packet.capacity();
                pool.give(packet);
            }
        }
        let length = packet.len() as u32;
        self.bytes += packet.len();
        self.capacity_bytes += packet.capacity();
        match self.runs.get_mut(index).filter(|_| joins) {
            Some(run) => {
                self.places -= run.packets.capacity();
                if run.start <= start {
                    run.end = run.end + length;
                    self.capacity_bytes -= append(&mut run.packets, packet, pool);
                } else {
                    run.start = at;
                    self.capacity_bytes -= prepend(&mut run.packets, packet, pool);
                }
                self.places += run.packets.capacity();
                self.join(index, pool);
            }
            None => {
                let run = Run { start: at, end: at + length, packets: VecDeque::from([packet]) };
                self.places += run.packets.capacity();
                self.runs.insert(index, run);
            }
        }
        self.touch(at);
        true
    }
    /// Whether there is no room for another packet. Besides both limits, memory must stay proportional to data:
    /// otherwise a peer that sends single bytes with gaps between them would take five hundred times the memory.
    fn is_full(&self, packet: &Packet, joins: bool, room_bytes: usize, most_runs: usize) -> bool {
        let list_bytes = size_of::<Packet>() + if joins { 0 } else { size_of::<Run>() };
        let added_bytes = packet.capacity() + list_bytes;
        let is_small = added_bytes > in_proportion(packet.len());
        let most_bytes = in_proportion(self.bytes + packet.len()) + MOST_WASTE_BYTES;
        (!joins && self.runs.len() >= most_runs)
            || self.capacity_bytes + packet.capacity() > room_bytes
            || (is_small && self.held_bytes() + added_bytes > most_bytes)
    }
    /// Joins a run with the next if they are adjacent. The shorter list moves.
    fn join(&mut self, index: usize, pool: &mut Pool) {
        let meets = match (self.runs.get(index), self.runs.get(index + 1)) {
            (Some(run), Some(next)) => run.end == next.start,
            _ => false,
        };
        if !meets {
            return;
        }
        let Some(mut next) = self.runs.remove(index + 1) else { return };
        let Some(run) = self.runs.get_mut(index) else { return };
        self.places -= run.packets.capacity() + next.packets.capacity();
        run.end = next.end;
        if let Some(first) = next.packets.pop_front() {
            self.capacity_bytes -= append(&mut run.packets, first, pool);
        }
        if next.packets.len() <= run.packets.len() {
            run.packets.append(&mut next.packets);
        } else {
            while let Some(packet) = run.packets.pop_back() {
                next.packets.push_front(packet);
            }
            run.packets = next.packets;
        }
        self.places += run.packets.capacity();
    }
    /// Makes the block that holds `at` the most recent.
    fn touch(&mut self, at: Offset) {
        let Some((start, end)) = self.block_at(at) else { return };
        let others = self.recent.iter().copied().filter(|&other| other < start || end <= other);
        self.recent = core::iter::once(at).chain(others).collect();
    }
    /// Data in order reaches to `next`: the first part of it that was held already is a duplicate (RFC 2883 §4.2.3).
    pub fn note_overlap(&mut self, next: Offset) {
        let first = self.runs.front().map(|run| run.start).into_iter().chain(self.fin).min();
        if self.duplicate.is_none()
            && let Some((start, end)) = first.and_then(|at| self.block_at(at))
            && start < next
        {
            self.duplicate = Some((start, end.min(next)));
        }
    }
    /// Moves the data that follows `next` without a gap into `queue`, up to a FIN. Returns the number of bytes moved.
    pub fn drain_into(&mut self, mut next: Offset, queue: &mut ReceiveQueue, pool: &mut Pool) -> u32 {
        let first = next;
        // A FIN that data in order has passed did not end the stream.
        self.fin.take_if(|fin| *fin < next);
        let ends = self.fin.map(|fin| fin.since(first));
        while self.runs.front().is_some_and(|run| run.start <= next) {
            let Some(run) = self.runs.pop_front() else { break };
            self.places -= run.packets.capacity();
            let mut start = run.start;
            for mut packet in run.packets {
                self.capacity_bytes -= packet.capacity();
                self.bytes -= packet.len();
                let end = start + packet.len() as u32;
                if start < next {
                    packet.trim_front(next.since(start) as usize);
                }
                if let Some(bytes) = ends {
                    packet.truncate(bytes.saturating_sub(next.since(first)) as usize);
                }
                next = next + packet.len() as u32;
                if packet.is_empty() {
                    pool.give(packet)
                } else {
                    queue.push(packet, pool)
                }
                start = end;
            }
        }
        self.recent = self.recent.iter().copied().filter(|at| next <= *at).collect();
        self.free_empty_list();
        next.since(first)
    }
    /// Whether an out-of-order FIN is reached at `next`. Data sent in place of a FIN revokes it.
    pub fn ends_by(&self, next: Offset) -> bool {
        self.fin == Some(next)
    }
    /// Releases all data to the pool, and keeps the FIN.
    pub fn shrink(&mut self, pool: &mut Pool) {
        let fin = self.fin;
        self.clear(pool);
        self.fin = fin;
    }
    /// Releases all memory to the pool.
    pub fn clear(&mut self, pool: &mut Pool) {
        self.runs.drain(..).flat_map(|run| run.packets).for_each(|packet| pool.give(packet));
        (self.bytes, self.capacity_bytes, self.places) = (0, 0, 0);
        self.free_empty_list();
        self.recent.clear();
        (self.fin, self.duplicate) = (None, None);
    }
    /// The stream is complete: what lay ahead of a hole is given up. What came twice is still told (RFC 2883 §4).
    pub fn end(&mut self, pool: &mut Pool) {
        let duplicate = self.duplicate;
        self.clear(pool);
        self.duplicate = duplicate;
    }
    fn free_empty_list(&mut self) {
        if self.runs.is_empty() && self.runs.capacity() > KEPT_PLACES {
            self.runs = VecDeque::new();
        }
    }
}

/// Memory that `bytes` of data may take: buffers are at least half full, and lists take little.
fn in_proportion(bytes: usize) -> usize {
    bytes * 5 / 2
}
/// Whether the data of `second` is small and fits behind the data of `first`.
fn takes(first: &Packet, second: &Packet) -> bool {
    second.len() < COPY_BELOW_BYTES && first.tailroom() >= second.len()
}
/// Appends a packet, or copies its bytes into the last one. Returns the capacity released.
fn append(packets: &mut VecDeque<Packet>, packet: Packet, pool: &mut Pool) -> usize {
    if let Some(last) = packets.back_mut().filter(|last| takes(last, &packet)) {
        last.append(packet.bytes());
        let capacity = packet.capacity();
        pool.give(packet);
        return capacity;
    }
    packets.push_back(packet);
    0
}
/// Prepends a packet, and copies the bytes of the first one into it if they are few. Returns the capacity released.
fn prepend(packets: &mut VecDeque<Packet>, mut packet: Packet, pool: &mut Pool) -> usize {
    let mut capacity = 0;
    if packets.front().is_some_and(|first| takes(&packet, first))
        && let Some(first) = packets.pop_front()
    {
        packet.append(first.bytes());
        capacity = first.capacity();
        pool.give(first);
    }
    packets.push_front(packet);
    capacity
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::Random;

    const ROOM_BYTES: usize = 1 << 20;
    const MOST_RUNS: usize = 1024;

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
            let (mut reassembly, mut queue) = (ReassemblyQueue::default(), ReceiveQueue::default());
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
                    reassembly.insert(Offset::SYN + base + from, piece, ROOM_BYTES, MOST_RUNS, &mut pool);
                } else {
                    pool.give(piece);
                }
                next += reassembly.drain_into(Offset::SYN + base + next, &mut queue, &mut pool);
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
        let mut reassembly = ReassemblyQueue::default();
        for i in 0..5 {
            let piece = packet(&mut pool, i * 10, 4);
            assert_eq!(reassembly.insert(Offset::SYN + i * 10, piece, ROOM_BYTES, 3, &mut pool), i < 3);
        }
        // A piece of 1,000 bytes is kept in a buffer of 1,088.
        let before = reassembly.capacity_bytes();
        for (room_bytes, fits) in [(100, false), (1087, false), (1088, true)] {
            let piece = packet(&mut pool, 1000, 1000);
            assert_eq!(
                reassembly.insert(Offset::SYN + 1000, piece, before + room_bytes, 10, &mut pool),
                fits,
                "{room_bytes}"
            );
        }
        assert_eq!(reassembly.capacity_bytes(), before + 1088);
        reassembly.clear(&mut pool);
        assert_eq!((pool.outstanding_bytes(), reassembly.bytes()), (0, 0));
    }

    /// The sum of all memory held.
    fn held(reassembly: &ReassemblyQueue) -> usize {
        let packets = reassembly.runs.iter().flat_map(|run| &run.packets).map(Packet::capacity);
        let places = reassembly.runs.iter().map(|run| run.packets.capacity() * size_of::<Packet>());
        packets.sum::<usize>() + places.sum::<usize>() + reassembly.runs.capacity() * size_of::<Run>()
    }

    #[test]
    fn single_bytes_pin_little_more_than_the_limit_however_they_come() {
        let orders: [fn(u32) -> u32; 4] = [
            |i| 2 * i,
            |i| 60_000 - i,
            // Every second byte first, then those between.
            |i| if i < 15_000 { 2 * i } else { 2 * (i - 15_000) + 1 },
            |i| (i * 7919) % 30_011,
        ];
        for order in orders {
            let mut pool = Pool::new(16 << 20);
            let mut reassembly = ReassemblyQueue::default();
            for i in 0..30_000 {
                let piece = packet(&mut pool, order(i), 1);
                reassembly.insert(Offset::SYN + 1000 + order(i), piece, ROOM_BYTES, MOST_RUNS, &mut pool);
                assert_eq!(reassembly.held_bytes(), held(&reassembly));
                assert!(reassembly.held_bytes() <= MOST_WASTE_BYTES + in_proportion(reassembly.bytes()));
            }
            reassembly.clear(&mut pool);
            assert_eq!(pool.outstanding_bytes(), 0);
            assert!(held(&reassembly) <= KEPT_PLACES * size_of::<Run>());
        }
    }

    #[test]
    fn neighbouring_bytes_share_a_buffer_whichever_came_first() {
        for backwards in [false, true] {
            let mut pool = Pool::new(16 << 20);
            let mut reassembly = ReassemblyQueue::default();
            for i in 0..20_000 {
                let at = if backwards { 20_000 - i } else { i };
                let piece = packet(&mut pool, at, 1);
                assert!(reassembly.insert(Offset::SYN + at, piece, ROOM_BYTES, MOST_RUNS, &mut pool), "{i}");
            }
            assert_eq!((reassembly.bytes(), reassembly.pieces()), (20_000, 1));
            assert!(reassembly.held_bytes() < in_proportion(20_000) + 1000);
            let mut queue = ReceiveQueue::default();
            let first = Offset::SYN + u32::from(backwards);
            assert_eq!(reassembly.drain_into(first, &mut queue, &mut pool), 20_000);
            let mut bytes = vec![0; 20_000];
            queue.read(&mut bytes, &mut pool);
            assert!(bytes.iter().enumerate().all(|(i, &b)| b == ((i + usize::from(backwards)) % 251) as u8));
        }
    }
}
