//! Loss detection: by time, a segment is lost if one sent sufficiently later was delivered (RACK, RFC 8985 §6); or by
//! count (RFC 6675 §4, RFC 6582).

use super::{Flight, Record, State};
use crate::round_trip::RoundTrip;
use inhost_base::{Duration, Instant, Offset};

impl Flight {
    /// Marks losses by time. Returns when to check again, while an overtaken segment may still arrive.
    // spec: RFC8985 6.2-3
    pub fn mark_lost_by_time(&mut self, window: Duration, now: Instant) -> Option<Instant> {
        let mut waits = false;
        let mut index = self.index_of(self.scan_from);
        while let Some(record) = self.records.get(index) {
            if record.state == State::InFlight && !record.retransmitted {
                let Some(at) = self.rack.lost_at(record, window) else { break };
                if at > now {
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
                let Some(at) = self.rack.lost_at(record, window) else { break };
                if at > now {
                    waits = true;
                    break;
                }
                self.mark_lost(index);
            }
            self.retransmissions.pop_front();
        }
        self.advance_first_lost();
        waits.then(|| self.rack.lost_after(self.rack.sent_at, window))
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
            !by_time || Some(record.start) == first || rack.lost_after(record.sent_at, window) <= now
        });
        self.refused = false;
    }
    /// How many segments overtook what starts at `start`, at least.
    pub fn overtaken_by(&self, start: inhost_base::Offset, segment_bytes: u32) -> u32 {
        self.highest_sacked.since(start).div_ceil(segment_bytes.max(1))
    }
}

/// Recoveries for which a wider reordering window is kept (RFC 8985 §6.2, step 4).
const PERSIST: u8 = 16;
/// Minimum time for which the least round trip counts; it counts for at most twice as long.
const LEAST_FOR: Duration = Duration::from_secs(150);

/// What RFC 8985 §5.2 keeps for a connection.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Rack {
    /// `RACK.xmit_ts`: the latest transmission time among the delivered segments.
    sent_at: Instant,
    /// `RACK.end_seq`
    end: Offset,
    /// `RACK.rtt`; zero before anything was delivered.
    round_trip: Duration,
    /// Something overtook something else on this path.
    reordering_seen: bool,
    /// `RACK.reo_wnd_mult`, less 1.
    widened: u8,
    /// `RACK.reo_wnd_persist`
    persist: u8,
    /// `RACK.dsack_round`: until this is acknowledged, one duplicate has widened the window.
    widened_until: Option<Offset>,
    /// The least round trip of this period and of the one before.
    least: [Option<Duration>; 2],
    least_since: Instant,
}

impl Rack {
    /// The least round trip of the last minutes.
    pub fn least_round_trip(&self) -> Option<Duration> {
        let [of_this, before] = self.least;
        of_this.map(|least| before.map_or(least, |other| least.min(other))).or(before)
    }
    /// A round trip was measured, by data. Before the first one the handshake's is known.
    // spec: RFC8985 6.2-1
    #[inline]
    pub fn measured(&mut self, sample: Duration, known: &RoundTrip, now: Instant) {
        if now.since(self.least_since) > LEAST_FOR || self.least[0].is_none_or(|least| sample < least) {
            self.least_may_change(sample, known, now);
        }
    }
    fn least_may_change(&mut self, sample: Duration, known: &RoundTrip, now: Instant) {
        let is_first = self.least == [None; 2];
        let sample = known.only_measurement().filter(|_| is_first).map_or(sample, |known| known.min(sample));
        if now.since(self.least_since) > LEAST_FOR {
            let fresh = now.since(self.least_since) < LEAST_FOR.times(2);
            self.least = [Some(sample), self.least[0].filter(|_| fresh)];
            self.least_since = now;
        } else if self.least[0].is_none_or(|least| sample < least) {
            self.least[0] = Some(sample);
        }
    }
    /// RFC 8985 §6.2, step 2: the latest transmission that arrived.
    // spec: RFC8985 6.2-2
    pub fn delivered(&mut self, piece: &Record, echo_at_most: Option<Instant>, now: Instant) {
        let round_trip = now.since(piece.sent_at);
        if piece.retransmitted {
            // It may be the first copy that arrived.
            let earlier_copy = echo_at_most.is_some_and(|at| at < piece.sent_at);
            let too_soon = self.least_round_trip().is_some_and(|least| round_trip < least);
            if earlier_copy || too_soon {
                return;
            }
        }
        self.round_trip = round_trip.max(Duration::from_nanos(1));
        if (self.sent_at, self.end) < (piece.sent_at, piece.end) {
            (self.sent_at, self.end) = (piece.sent_at, piece.end);
        }
    }
    /// When `record` is lost if it has not arrived by then, where a segment was delivered that was sent after it.
    pub fn lost_at(&self, record: &Record, window: Duration) -> Option<Instant> {
        let overtaken =
            self.round_trip > Duration::ZERO && (record.sent_at, record.end) < (self.sent_at, self.end);
        overtaken.then(|| self.lost_after(record.sent_at, window))
    }
    /// When a segment sent at `sent_at` is lost.
    fn lost_after(&self, sent_at: Instant, window: Duration) -> Instant {
        sent_at + self.round_trip + window
    }
    /// RFC 8985 §6.2, step 4: the reordering window, in which an overtaken segment may still arrive. `recovering`: a
    /// recovery is under way, or DupThresh segments are selectively acknowledged.
    // spec: RFC8985 3.3.2-1, 3.3.2-2, 3.3.2-4
    pub fn reordering_window(&self, recovering: bool, smoothed: Duration) -> Duration {
        if !self.reordering_seen && recovering {
            return Duration::ZERO;
        }
        let least = self.least_round_trip().unwrap_or(Duration::ZERO);
        least.divided_by(4).times(1 + u64::from(self.widened)).min(smoothed)
    }
    /// Something overtook something else on this path.
    pub fn saw_reordering(&mut self) {
        self.reordering_seen = true;
    }
    /// Whether something ever did.
    #[cfg(feature = "detail")]
    pub fn has_seen_reordering(&self) -> bool {
        self.reordering_seen
    }
    /// The peer got something twice, with everything before `next` sent: a retransmission was a mistake, so that the
    /// window widens, once a round trip.
    // spec: RFC8985 3.3.2-3, 4-3
    pub fn widen(&mut self, unacknowledged: Offset, next: Offset) {
        self.reordering_seen = true;
        if self.widened_until.is_some_and(|until| unacknowledged < until) {
            return;
        }
        self.widened_until = Some(next);
        self.widened = self.widened.saturating_add(1);
        self.persist = PERSIST;
    }
    /// A recovery ended. After enough of them without a spurious retransmission the reordering window returns to its
    /// minimum.
    pub fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.widened = 0;
        }
    }
}
