//! What a sender has in flight, and what the place of the capture has not seen of it.

use std::collections::VecDeque;

/// Segments of one direction that are remembered.
pub(crate) const MAX_SENT: usize = 8192;
/// Segments that a direction may remember whatever the others do.
const LEAST_SENT: usize = 64;
/// Segments remembered in all.
const MAX_SENT_IN_ALL: usize = 600_000;
/// Holes of one direction.
const MAX_HOLES: usize = 64;

/// What all directions hold together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget {
    used: usize,
    /// Frames that are held back until their receiver has them.
    pub(super) waiting: usize,
    /// Segments that were forgotten for want of room.
    pub(crate) forgotten: u64,
}

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) last_ns: u64,
    pub(crate) frame: u64,
    /// Its timestamp when it was last sent; 0 without.
    pub(crate) stamp: u32,
    pub(crate) copies: u16,
    pub(crate) is_sacked: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Outstanding {
    sent: VecDeque<Sent>,
    holes: Vec<Hole>,
}

/// Sequence numbers that passed unseen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) since_ns: u64,
}

/// What was known of data that is sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    pub(crate) is_sacked: bool,
    pub(crate) copies: u16,
    pub(crate) frame: u64,
    /// Bytes of the first segment.
    pub(crate) bytes: i64,
}

impl Outstanding {
    pub(crate) fn push(&mut self, sent: Sent, budget: &mut Budget) {
        let is_full = self.sent.len() >= MAX_SENT;
        if is_full || self.sent.len() >= LEAST_SENT && budget.used >= MAX_SENT_IN_ALL {
            self.sent.pop_front();
            budget.forgotten += 1;
        } else {
            budget.used += 1;
        }
        self.sent.push_back(sent);
    }
    pub(crate) fn hole(&mut self, hole: Hole) {
        if self.holes.len() < MAX_HOLES {
            self.holes.push(hole);
        }
    }
    /// Takes a range out of the holes; since when it was one, when all of it was.
    pub(crate) fn fill(&mut self, start: i64, end: i64) -> Option<u64> {
        let at = self.holes.iter().position(|hole| hole.start <= start && start < hole.end)?;
        let hole = self.holes[at];
        let rest = [(hole.start, start), (end, hole.end)];
        self.holes.swap_remove(at);
        for (start, end) in rest.into_iter().filter(|(start, end)| start < end) {
            self.hole(Hole { start, end, since_ns: hole.since_ns });
        }
        (end <= hole.end).then_some(hole.since_ns)
    }
    /// Acknowledged holes: data that the capture does not have. How many.
    pub(crate) fn drop_holes(&mut self, acknowledged: i64) -> u64 {
        let count = self.holes.len();
        self.holes.retain(|hole| hole.end > acknowledged);
        (count - self.holes.len()) as u64
    }
    fn from(&self, start: i64) -> usize {
        self.sent.partition_point(|sent| sent.end <= start)
    }
    /// Data is sent again.
    pub(crate) fn again(&mut self, start: i64, end: i64, now_ns: u64, stamp: u32) -> Option<Before> {
        let mut before: Option<Before> = None;
        for sent in self.sent.range_mut(self.from(start)..).take_while(|sent| sent.start < end) {
            let so_far = before.get_or_insert(Before {
                is_sacked: true,
                copies: sent.copies,
                frame: sent.frame,
                bytes: sent.end - sent.start,
            });
            so_far.is_sacked &= sent.is_sacked;
            sent.copies = sent.copies.saturating_add(1);
            (sent.last_ns, sent.stamp) = (now_ns, stamp);
        }
        before
    }
    /// Marks what a SACK block covers; whether anything is new.
    pub(crate) fn sacked(&mut self, start: i64, end: i64) -> bool {
        let mut is_news = false;
        let from = self.sent.partition_point(|sent| sent.start < start);
        for sent in self.sent.range_mut(from..).take_while(|sent| sent.end <= end) {
            is_news |= !sent.is_sacked;
            sent.is_sacked = true;
        }
        is_news
    }
    /// Takes what is acknowledged, and gives each to `each`.
    pub(crate) fn acknowledged(&mut self, until: i64, budget: &mut Budget, mut each: impl FnMut(&Sent)) {
        while let Some(first) = self.sent.front()
            && first.end <= until
        {
            each(first);
            self.sent.pop_front();
            budget.used = budget.used.saturating_sub(1);
        }
        shrink(&mut self.sent);
    }
    /// When the segment that ends at `end` was sent, and whether it was sent once.
    pub(crate) fn sent_at(&self, end: i64) -> Option<(u64, bool)> {
        let sent = self.sent.get(self.from(end - 1))?;
        (sent.start < end).then_some((sent.last_ns, sent.copies == 1))
    }
    /// Forgets all.
    pub(crate) fn clear(&mut self, budget: &mut Budget) {
        budget.used = budget.used.saturating_sub(self.sent.len());
        self.sent = VecDeque::new();
        self.holes = Vec::new();
    }
}

/// Gives back memory that a queue no longer needs.
pub(super) fn shrink<T>(queue: &mut VecDeque<T>) {
    if queue.capacity() > 4 * queue.len().max(LEAST_SENT) {
        queue.shrink_to(2 * queue.len());
    }
}
