//! What one acknowledgment shows.

use super::{Flight, Record, State};
use inhost_base::{Duration, Instant, Offset};
use inhost_congestion::{RateSample, SampleBuilder};

/// What one acknowledgment shows: the data in flight that it delivers, and the connection as it was before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckSample {
    /// Everything before this has arrived.
    pub acknowledgment: Offset,
    /// It acknowledges something new.
    pub advanced_bytes: u32,
    /// It counts as a duplicate (RFC 5681 §2).
    pub is_duplicate: bool,
    /// Bytes of it that duplicates had stood for.
    pub counted_bytes: u32,
    pub in_flight_before_bytes: u32,
    pub sacked_before_bytes: u32,
    pub outstanding_before_bytes: u32,
    /// The rate of delivery that it showed.
    pub rate: Option<RateSample>,
    /// The peer saw a congestion mark.
    pub congestion: bool,
    /// How far the peer's window reaches.
    pub edge: Offset,
    /// The timestamp of ours that it echoes.
    pub echo: Option<u32>,
    /// Bytes that the peer has and that it was not known to have.
    pub bytes: u32,
    /// Of these, bytes ahead of a hole.
    pub sacked_bytes: u32,
    /// Round trip of the oldest newly acknowledged transmission, unless one of them was retransmitted.
    pub oldest_round_trip: Option<Duration>,
    /// Round trip of the newest newly delivered segment that was sent once.
    pub newest_round_trip: Option<Duration>,
    /// A retransmitted segment was delivered.
    pub retransmitted: bool,
    /// The highest end of the delivered segments that were sent once.
    pub original_end: Option<Offset>,
    /// The lowest start of the segments that were sent once and were overtaken by data delivered before.
    pub overtaken: Option<Offset>,
    /// The end of the highest that the peer had ahead of a hole before this acknowledgment.
    pub sacked_before: Option<Offset>,
    /// The peer got this twice (RFC 2883).
    pub repeated: Option<(Offset, Offset)>,
    /// Transmissions that were delivered, in whole or in part.
    pub segments: u32,
    /// How long a transmission was of which only the first part is acknowledged, as it was cut.
    pub cut: Option<u32>,
    /// The acknowledgment left as many transmissions in flight as before.
    pub within_segment: bool,
    /// The echoed timestamp belongs to a segment sent at this instant or before.
    pub echo_at_most: Option<Instant>,
    pub builder: SampleBuilder,
}

impl Flight {
    /// Counts an acknowledgment in whole segments, of `segment_bytes` each, where `before` transmissions were in flight.
    /// A burst is divided anew from where the acknowledgment ends within one of its segments; if as many are in flight as
    /// before, there is no round-trip sample.
    pub fn count_whole(&mut self, before: usize, segment_bytes: u32, sample: &mut AckSample) {
        if let Some(cut) = sample.cut {
            let natural = self.records.len();
            self.recut(cut);
            sample.segments = sample.segments.saturating_sub(1) + (natural - self.records.len()) as u32;
            sample.within_segment = self.records.len() == before;
            if sample.within_segment && sample.sacked_bytes == 0 {
                (sample.oldest_round_trip, sample.newest_round_trip) = (None, None);
                sample.original_end = None;
            }
        }
        sample.bytes = sample.segments * segment_bytes;
    }
    /// Everything before `to` is acknowledged.
    #[inline]
    pub fn acknowledge(&mut self, to: Offset, now: Instant, sample: &mut AckSample) {
        while let Some(record) = self.records.front() {
            if to <= record.start {
                break;
            }
            let whole = record.end <= to;
            let piece = if whole { *record } else { Record { end: to, ..*record } };
            if whole {
                self.pop_first();
            } else {
                sample.cut = Some(record.bytes());
                self.change(0, |record| record.start = to);
            }
            if piece.state == State::Sacked {
                continue;
            }
            if !piece.retransmitted && !sample.retransmitted && sample.oldest_round_trip.is_none() {
                sample.oldest_round_trip = Some(now.since(piece.sent_at));
            }
            self.deliver(&piece, now, sample);
        }
        if sample.retransmitted {
            // Karn: an acknowledgment of both is a measure of neither.
            sample.oldest_round_trip = None;
        }
        if self.records.is_empty() {
            return self.clear();
        }
        while self.retransmissions.front().is_some_and(|(_, start)| *start < to) {
            self.retransmissions.pop_front();
        }
    }
    /// The peer has `piece`, and was not known to.
    #[inline]
    pub(super) fn deliver(&mut self, piece: &Record, now: Instant, sample: &mut AckSample) {
        let bytes = piece.bytes();
        sample.bytes += bytes;
        sample.segments += 1;
        self.delivered_segments = self.delivered_segments.wrapping_add(1);
        self.rates.delivered(&mut sample.builder, piece.mark, piece.sent_at, bytes, now);
        if piece.retransmitted {
            sample.retransmitted = true;
        } else {
            sample.newest_round_trip = Some(now.since(piece.sent_at));
            sample.original_end = sample.original_end.max(Some(piece.end));
            if sample.sacked_before.is_some_and(|highest| piece.end < highest)
                && sample.overtaken.is_none_or(|start| piece.start < start)
            {
                sample.overtaken = Some(piece.start);
            }
        }
        self.rack.delivered(piece, sample.echo_at_most, now);
    }
}
