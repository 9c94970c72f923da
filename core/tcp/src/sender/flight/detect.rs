//! Loss detection: by time (RFC 8985 §6.2, step 5) or by count (RFC 6675 §4, RFC 6582).

use super::{Flight, Record, State};
use inhost_base::{Duration, Instant};

impl Flight {
    /// Marks losses by time. Returns when to check again, while an overtaken segment may still arrive.
    // spec: RFC8985 6.2-3
    pub fn mark_lost_by_time(&mut self, window: Duration, now: Instant) -> Option<Instant> {
        let mut waits = false;
        let mut index = self.index_of(self.scan_from);
        while let Some(record) = self.records.get(index) {
            if record.state == State::InFlight && !record.retransmitted {
                if !self.rack.was_overtaken(record) {
                    break;
                }
                if self.rack.lost_at(record, window) > now {
                    waits = true;
                    break;
                }
            }
            self.scan_from = record.end;
            if record.state == State::InFlight && !record.retransmitted {
                self.mark_lost(index);
            }
            index += 1;
        }
        while let Some(&(sent_at, start)) = self.retransmissions.front() {
            let index = self.index_of(start);
            let current = self
                .records
                .get(index)
                .filter(|record| record.state == State::InFlight && record.sent_at == sent_at);
            if let Some(record) = current {
                if !self.rack.was_overtaken(record) {
                    break;
                }
                if self.rack.lost_at(record, window) > now {
                    waits = true;
                    break;
                }
                self.mark_lost(index);
            }
            self.retransmissions.pop_front();
        }
        self.advance_first_lost();
        waits.then(|| self.rack.last_lost_at(window))
    }
    /// By count: what more than `segments` segments have overtaken (`IsLost` of RFC 6675 §4).
    pub fn mark_lost_by_count(&mut self, segments: u32, segment_bytes: u32) {
        let enough = segments.saturating_sub(1).saturating_mul(segment_bytes);
        let Some(highest) = self.highest_sacked() else { return };
        // What lies below so much that the peer has is lost.
        let (mut above, mut below) = (0, self.index_of(highest));
        while above <= enough && below > 0 {
            below -= 1;
            let sacked = self.records.get(below).filter(|record| record.state == State::Sacked);
            above += sacked.map_or(0, Record::bytes);
        }
        for index in self.index_of(self.scan_from)..below {
            let Some(record) = self.records.get(index) else { break };
            self.scan_from = record.end;
            if record.state == State::InFlight && !record.retransmitted {
                self.mark_lost(index);
            }
        }
        self.advance_first_lost();
    }
    /// Marks the oldest segment lost: without SACK, duplicate and partial acknowledgments report no other (RFC 6582
    /// §3.2).
    pub fn mark_first_lost(&mut self) {
        if self.records.front().is_some_and(|record| record.state == State::InFlight) {
            self.mark_lost(0);
        }
        self.advance_first_lost();
    }
    /// After a timeout: marks the oldest segment lost, whatever its state, and all that were sent longer ago than a round
    /// trip and `window` (RFC 8985 §6.3). Without `by_time`, marks everything lost.
    // spec: RFC2018 5-3; RFC8985 6.3-1
    pub fn mark_lost_by_timer(&mut self, by_time: bool, window: Duration, now: Instant) {
        let rack = self.rack;
        let first = self.records.front().map(|record| record.start);
        self.mark_lost_where(|record| {
            !by_time || Some(record.start) == first || rack.lost_at(record, window) <= now
        });
        self.refused = false;
    }
    /// How many segments overtook what starts at `start`, at least.
    pub fn overtaken_by(&self, start: crate::offset::Offset, segment_bytes: u32) -> u32 {
        self.highest_sacked.since(start).div_ceil(segment_bytes.max(1))
    }
}
