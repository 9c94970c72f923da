//! What is out: one record for each transmission, from the first unacknowledged byte to the last sent, and what is
//! thought of each (RFC 6675 §3's scoreboard, RFC 8985 §5).
//!
//! Records lie in order of sequence number without gaps. Those sent once are so in order of time as well; those sent
//! again have a queue of their own, in order of time, so that nothing is ever searched through.

mod delivery;
mod detect;
mod scoreboard;

pub(crate) use delivery::AckSample;

use alloc::collections::VecDeque;
use core::ops::{AddAssign, SubAssign};
use detect::Rack;
use inhost_base::{Instant, Offset};
use inhost_congestion::{RateMark, RateSampler};
use inhost_wire::tcp::SackBlocks;

/// The state of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum State {
    /// In the network.
    InFlight,
    /// The peer has it, ahead of a hole.
    Sacked,
    /// Lost, and to be retransmitted.
    Lost,
}

#[cfg(feature = "detail")]
impl State {
    /// Its name in words.
    pub const fn text(self) -> &'static str {
        match self {
            State::InFlight => "in flight",
            State::Sacked => "sacked",
            State::Lost => "lost",
        }
    }
}

/// One transmission.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Record {
    pub start: Offset,
    pub end: Offset,
    /// Time of the latest transmission.
    pub sent_at: Instant,
    pub mark: RateMark,
    pub state: State,
    /// It was retransmitted.
    pub retransmitted: bool,
    /// It was the last segment of a burst.
    pub ends_burst: bool,
    /// A record ends with it: it is not joined with what follows.
    pub closed: bool,
}

impl Record {
    pub fn bytes(&self) -> u32 {
        self.end.after(self.start)
    }
    /// Changes `sums` by what it counts for in them.
    #[inline]
    fn count(&self, sums: &mut Sums, change: impl Fn(&mut u32, u32)) {
        if self.ends_burst {
            change(&mut sums.bursts, 1);
        }
        match self.state {
            State::InFlight if self.retransmitted => change(&mut sums.resent_bytes, self.bytes()),
            State::InFlight => {}
            State::Sacked => change(&mut sums.sacked_bytes, self.bytes()),
            State::Lost => change(&mut sums.lost_bytes, self.bytes()),
        }
    }
}

fn sums_of(records: &VecDeque<Record>) -> Sums {
    let mut sums = Sums::default();
    records.iter().for_each(|record| record.count(&mut sums, u32::add_assign));
    sums
}

/// Sums over the records of a flight, kept as each changes, so that nobody has to look at all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Sums {
    /// What the peer has ahead of a hole.
    pub sacked_bytes: u32,
    /// What is lost and not sent again yet.
    pub lost_bytes: u32,
    /// Records that end a burst, as Linux counts.
    pub bursts: u32,
    /// Bytes of retransmissions that are in the network.
    pub resent_bytes: u32,
}

/// All data in flight.
// spec: RFC6675 4-1; RFC8985 4-1
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Flight {
    #[cfg_attr(feature = "freeze", serde(with = "inhost_base::freeze::with_capacity"))]
    records: VecDeque<Record>,
    /// When and where those were sent that were sent again, in order of time, until they are acknowledged or marked lost.
    #[cfg_attr(feature = "freeze", serde(with = "inhost_base::freeze::with_capacity"))]
    retransmissions: VecDeque<(Instant, Offset)>,
    sums: Sums,
    /// No lost record starts before this.
    first_lost: Offset,
    /// The search for losses begins here: no record before it is in flight and was sent once.
    scan_from: Offset,
    /// The end of the highest record that the peer has ahead of a hole; means something while any is known.
    highest_sacked: Offset,
    /// The blocks of the last SACK option, so that repeated blocks are skipped.
    seen: SackBlocks<Offset>,
    rack: Rack,
    rates: RateSampler,
    /// Transmissions that the peer has got, as far as known. It wraps.
    delivered_segments: u32,
    /// The data marked lost was refused by a closed window, or was too large for the path: there was no congestion.
    refused: bool,
}

impl Flight {
    /// Checks a thawed flight: its records follow one another, and its counts are true.
    #[cfg(feature = "freeze")]
    pub fn check(&self) -> Result<(), inhost_base::freeze::Invalid> {
        use inhost_base::freeze::require;
        let mut next = self.records.front().map(|first| first.start);
        let mut total = 0_u64;
        for record in &self.records {
            require(next == Some(record.start) && record.start < record.end, "a transmission")?;
            self.rates.check(&record.mark)?;
            next = Some(record.end);
            total += u64::from(record.bytes());
        }
        require(total < 1 << 31 && self.sums == sums_of(&self.records), "the sums of a flight")
    }
    /// What time tells of losses.
    pub fn rack(&self) -> &Rack {
        &self.rack
    }
    pub fn rack_mut(&mut self) -> &mut Rack {
        &mut self.rack
    }
    /// The rate of delivery, as it is sampled.
    pub fn rates_mut(&mut self) -> &mut RateSampler {
        &mut self.rates
    }
    /// Transmissions that the peer has got, as far as known. It wraps.
    pub fn delivered_segments(&self) -> u32 {
        self.delivered_segments
    }
    /// Whether the data marked lost was refused by a closed window, or was too large for the path.
    pub fn is_refused(&self) -> bool {
        self.refused
    }
    /// The data marked lost was refused.
    pub fn refuse(&mut self) {
        self.refused = true;
    }
    /// Bytes of all records.
    pub fn record_bytes(&self) -> u32 {
        (self.records.len() * size_of::<Record>()) as u32
    }
    /// Memory that the lists take.
    pub fn capacity_bytes(&self) -> usize {
        self.records.capacity() * size_of::<Record>()
            + self.retransmissions.capacity() * size_of::<(Instant, Offset)>()
    }
    /// The end of the highest that the peer has ahead of a hole.
    pub fn highest_sacked(&self) -> Option<Offset> {
        (self.sums.sacked_bytes > 0).then_some(self.highest_sacked)
    }
    /// Divides the first burst anew from its beginning into segments of `segment` bytes, if it has not changed since it
    /// was sent.
    pub fn recut(&mut self, segment: u32) {
        let Some(&first) = self.records.front() else { return };
        let alike = |record: &Record| {
            (record.state, record.retransmitted, record.sent_at) == (first.state, false, first.sent_at)
        };
        let mut count = 0;
        let mut last = first;
        for record in self.records.iter().take_while(|record| alike(record)) {
            (count, last) = (count + 1, *record);
            if record.ends_burst {
                break;
            }
        }
        if count == 0 || segment == 0 {
            return;
        }
        let fewer = last.end.since(first.start).div_ceil(segment) as usize;
        for _ in fewer..count {
            self.pop_first();
        }
        let mut start = first.start;
        for index in 0..fewer.min(count) {
            let end = if index + 1 == fewer { last.end } else { start + segment };
            self.change(index, |record| (record.start, record.end) = (start, end));
            start = end;
        }
    }
    /// All transmissions, the oldest first.
    pub fn records(&self) -> &VecDeque<Record> {
        &self.records
    }
    pub fn sums(&self) -> Sums {
        self.sums
    }
    /// Clears the flight.
    pub fn clear(&mut self) {
        self.records.clear();
        self.retransmissions.clear();
        self.sums = Sums::default();
        self.seen.clear();
        self.refused = false;
    }

    /// The data from `start` to `end` was sent for the first time, with `in_flight_bytes` in the network before it.
    // spec: RFC8985 4-2
    #[inline]
    pub fn sent(&mut self, start: Offset, end: Offset, in_flight_bytes: u32, now: Instant) {
        if self.records.is_empty() {
            (self.first_lost, self.scan_from) = (start, start);
            self.seen.clear();
        }
        let mark = self.rates.sent(in_flight_bytes, now);
        // In the network and sent once: no sum counts it.
        self.records.push_back(Record {
            start,
            end,
            sent_at: now,
            mark,
            state: State::InFlight,
            retransmitted: false,
            ends_burst: false,
            closed: false,
        });
    }
    /// The last segment sent ended a burst, or a record, which ends a burst, too.
    pub fn ended(&mut self, burst: bool, record: bool) {
        let last = self.records.len().wrapping_sub(1);
        self.change(last, |last| (last.ends_burst, last.closed) = (burst || record, record));
    }
    /// The end of the contiguous lost data of one burst from `start`, at most `most` bytes.
    pub fn lost_of_burst(&self, start: Offset, most: u32) -> Option<Offset> {
        let mut end = None;
        for record in self.records.range(self.index_of(start)..) {
            if record.state != State::Lost || record.end.since(start) > most {
                break;
            }
            end = Some(record.end);
            if record.ends_burst {
                break;
            }
        }
        end
    }
    /// The data from `start` to `end` was retransmitted in one segment: one transmission from now on.
    pub fn retransmitted(&mut self, start: Offset, end: Offset, in_flight_bytes: u32, now: Instant) {
        let mut index = self.index_of(start);
        let Some(record) = self.records.get(index) else { return };
        if record.start != start {
            self.split(index, start);
            index += 1;
        }
        while self.records.get(index).is_some_and(|record| record.end < end) && self.join_next(index) {}
        if self.records.get(index).is_some_and(|record| end < record.end) {
            self.split(index, end);
        }
        let mark = self.rates.sent(in_flight_bytes, now);
        let Some(record) = self.records.get(index) else { return };
        if record.state == State::Sacked {
            return;
        }
        let start = record.start;
        self.change(index, |record| {
            // The last may take new data with it.
            record.end = record.end.max(end);
            (record.state, record.retransmitted) = (State::InFlight, true);
            (record.sent_at, record.mark) = (now, mark);
        });
        // The latest of all, so the queue stays in order of time.
        self.retransmissions.push_back((now, start));
        self.advance_first_lost();
    }
    /// Makes one of a record and the next, which are of one state; false when there is none.
    fn join_next(&mut self, index: usize) -> bool {
        let Some(next) = self.records.remove(index + 1) else { return false };
        next.count(&mut self.sums, u32::sub_assign);
        self.change(index, |record| {
            record.end = next.end;
            (record.ends_burst, record.closed) = (next.ends_burst, next.closed);
        });
        true
    }
    /// The contiguous lost data from the first lost byte on, at most `most` bytes: whole transmissions, unless data
    /// refused for its size, or with `recuts` a burst, is divided anew.
    // spec: RFC6675 4-4
    pub fn lost_run(&self, most: u32, recuts: bool) -> Option<(Offset, Offset)> {
        let from = self.records.partition_point(|record| record.start < self.first_lost);
        let mut run: Option<(Offset, Offset)> = None;
        let mut may_cut = self.refused || recuts;
        let mut retransmitted = None;
        for record in self.records.range(from..) {
            match run {
                None if record.state != State::Lost => {}
                None => run = Some((record.start, record.end)),
                Some((start, _))
                    if record.state == State::Lost && (may_cut || record.end.since(start) <= most) =>
                {
                    run = Some((start, record.end));
                }
                Some(_) => break,
            }
            // Data of another burst is joined only as a whole.
            may_cut &= run.is_none()
                || (!record.ends_burst
                    && *retransmitted.get_or_insert(record.retransmitted) == record.retransmitted);
            if record.closed && run.is_some() || run.is_some_and(|(start, end)| end.since(start) >= most) {
                break;
            }
        }
        run.map(|(start, end)| if end.since(start) > most { (start, start + most) } else { (start, end) })
    }
    /// Part of the oldest segment was retransmitted as a window probe.
    pub fn probed(&mut self) {
        self.change(0, |record| record.retransmitted = true);
    }
    /// Marks all data in the network that `which` selects for retransmission.
    pub fn mark_lost_where(&mut self, which: impl Fn(&Record) -> bool) {
        for index in 0..self.records.len() {
            if self.records.get(index).is_some_and(|r| r.state == State::InFlight && which(r)) {
                self.mark_lost(index);
            }
        }
        self.advance_first_lost();
    }
    /// Nothing was lost after all: data marked lost counts as in the network.
    pub fn clear_lost(&mut self) {
        for record in self.records.iter_mut().filter(|record| record.state == State::Lost) {
            record.state = State::InFlight;
        }
        self.sums = sums_of(&self.records);
        let again =
            self.records.iter().filter(|record| record.retransmitted && record.state == State::InFlight);
        self.retransmissions.clear();
        self.retransmissions.extend(again.map(|record| (record.sent_at, record.start)));
        self.retransmissions.make_contiguous().sort_by_key(|(sent_at, _)| *sent_at);
        if let Some(first) = self.records.front() {
            self.scan_from = first.start;
        }
    }
    /// The peer has reneged: it discarded data that it had reported by SACK (RFC 2018 §8).
    pub fn renege(&mut self) {
        for record in &mut self.records {
            if record.state == State::Sacked {
                (record.state, record.retransmitted) = (State::InFlight, true);
            }
        }
        self.sums = sums_of(&self.records);
        self.seen = Default::default();
        if let Some(first) = self.records.front() {
            self.scan_from = first.start;
        }
    }
    /// Whether the first data in flight was reported by SACK and is still not acknowledged: a sign of reneging.
    pub fn is_reneged(&self) -> bool {
        self.records.front().is_some_and(|record| record.state == State::Sacked)
    }

    fn mark_lost(&mut self, index: usize) {
        let Some(start) = self.records.get(index).map(|record| record.start) else { return };
        if self.sums.lost_bytes == 0 || start < self.first_lost {
            self.first_lost = start;
        }
        self.change(index, |record| record.state = State::Lost);
    }
    /// Brings `first_lost` to where the first lost record starts.
    fn advance_first_lost(&mut self) {
        if self.sums.lost_bytes == 0 {
            return;
        }
        let from = self.records.partition_point(|record| record.start < self.first_lost);
        if let Some(record) = self.records.range(from..).find(|record| record.state == State::Lost) {
            self.first_lost = record.start;
        }
    }
    /// Where the record lies that holds `at`; after the last when none does.
    fn index_of(&self, at: Offset) -> usize {
        match self.records.front() {
            Some(first) if at < first.end => 0,
            _ => self.records.partition_point(|record| record.end <= at),
        }
    }
    /// Makes two of a record.
    fn split(&mut self, index: usize, at: Offset) {
        let Some(&record) = self.records.get(index) else { return };
        self.change(index, |record| {
            record.end = at;
            (record.ends_burst, record.closed) = (false, false);
        });
        let rest = Record { start: at, ..record };
        rest.count(&mut self.sums, u32::add_assign);
        self.records.insert(index + 1, rest);
        if rest.retransmitted && rest.state == State::InFlight {
            // Its place in the queue of time went with the first half.
            let behind = self.retransmissions.partition_point(|(sent_at, _)| *sent_at <= rest.sent_at);
            self.retransmissions.insert(behind, (rest.sent_at, at));
        }
    }
    /// Changes a record; the sums follow.
    #[inline]
    fn change(&mut self, index: usize, change: impl FnOnce(&mut Record)) {
        if let Some(record) = self.records.get_mut(index) {
            record.count(&mut self.sums, u32::sub_assign);
            change(record);
            record.count(&mut self.sums, u32::add_assign);
        }
    }
    #[inline]
    fn pop_first(&mut self) {
        if let Some(record) = self.records.pop_front() {
            record.count(&mut self.sums, u32::sub_assign);
        }
    }
}
