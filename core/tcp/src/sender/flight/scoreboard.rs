//! The SACK option, read (RFC 2018 §5, RFC 2883 §4).

use super::{DeliveryInfo, Flight, State};
use inhost_base::{Instant, Sequence};
use inhost_wire::tcp::{MAX_SACK_BLOCKS, SackBlocks};

/// What the option is read against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The acknowledgment number of the same segment.
    pub acknowledgment: Sequence,
    /// SND.UNA before the segment arrived.
    pub unacknowledged: Sequence,
    pub next: Sequence,
    /// Payload of a full segment, at whose multiples large transmissions are cut.
    pub segment_bytes: u32,
    /// Largest window that the peer ever offered: nothing it reports lies further back.
    pub largest_window: u32,
}

impl Flight {
    /// Takes what the peer says it has beyond its acknowledgment.
    // spec: RFC6675 5-1; RFC2018 5-1
    pub fn take_sack(
        &mut self,
        blocks: &SackBlocks,
        bounds: Bounds,
        now: Instant,
        delivery: &mut DeliveryInfo,
    ) {
        let mut rest = 0;
        if let Some(&first) = blocks.first()
            && is_duplicate(first, blocks.get(1).copied(), bounds)
        {
            delivery.duplicate = Some(first);
            rest = 1;
        }
        let mut kept = SackBlocks::new();
        for &(start, end) in blocks.iter().skip(rest) {
            // A block beyond SND.NXT or below SND.UNA is ignored.
            if !start.precedes(end)
                || !end.at_or_before(bounds.next)
                || !bounds.unacknowledged.precedes(end)
                || !bounds.unacknowledged.at_or_before(start)
            {
                continue;
            }
            kept.push((start, end));
        }
        // The option has the newest block first. In that order, older blocks would seem to have been overtaken by those
        // of the same acknowledgment.
        let mut rising = [(Sequence(0), Sequence(0)); MAX_SACK_BLOCKS];
        let rising = &mut rising[..kept.len()];
        rising.copy_from_slice(&kept);
        rising.sort_unstable_by_key(|(start, _)| start.since(bounds.unacknowledged));
        for &(start, end) in rising.iter() {
            self.take_block(start, end, bounds.segment_bytes, now, delivery);
        }
        self.seen = kept;
    }
    fn take_block(
        &mut self,
        start: Sequence,
        end: Sequence,
        segment_bytes: u32,
        now: Instant,
        delivery: &mut DeliveryInfo,
    ) {
        let mut from = start;
        let mut until = end;
        for &(seen_start, seen_end) in self.seen.iter() {
            if seen_start.at_or_before(start) && start.precedes(seen_end) {
                if end.at_or_before(seen_end) {
                    return;
                }
                from = from.later(seen_end);
            } else if start.precedes(seen_start) && seen_start.precedes(end) && end.at_or_before(seen_end) {
                until = seen_start;
            }
        }
        // A record on whose middle the known part ends belongs to the new part.
        let mut index = self.index_of(from);
        if let Some(record) = self.records.get(index)
            && record.start.precedes(start)
        {
            index = self.cut_up(index, start, segment_bytes) + 1;
        }
        while let Some(record) = self.records.get(index) {
            if !record.start.precedes(until) {
                break;
            }
            if end.precedes(record.end) {
                let into = end.since(record.start) / segment_bytes * segment_bytes;
                if into == 0 {
                    break;
                }
                let at = record.start + into;
                self.split(index, at);
                continue;
            }
            self.sack(index, now, delivery);
            index += 1;
        }
    }
    /// Cuts a large transmission at the first multiple of a segment from `at` on; the index of the first part.
    fn cut_up(&mut self, index: usize, at: Sequence, segment_bytes: u32) -> usize {
        if let Some(record) = self.records.get(index) {
            let into = at.since(record.start).div_ceil(segment_bytes.max(1)) * segment_bytes;
            if into < record.bytes() {
                let at = record.start + into;
                self.split(index, at);
            }
        }
        index
    }
    fn sack(&mut self, index: usize, now: Instant, delivery: &mut DeliveryInfo) {
        let Some(&piece) = self.records.get(index) else { return };
        if piece.state == State::Sacked {
            return;
        }
        self.highest_sacked = self.highest_sacked().map_or(piece.end, |highest| highest.later(piece.end));
        self.change(index, |record| record.state = State::Sacked);
        delivery.sacked_bytes += piece.bytes();
        self.deliver(&piece, now, delivery);
    }
}

/// RFC 2883 §4: the first block lies before the acknowledgment, or within the second.
fn is_duplicate(first: (Sequence, Sequence), second: Option<(Sequence, Sequence)>, bounds: Bounds) -> bool {
    let (start, end) = first;
    if !start.precedes(end) || bounds.next.precedes(end) {
        return false;
    }
    if start.precedes(bounds.acknowledgment) {
        // So far back nothing of ours can have been under way.
        return bounds.acknowledgment.since(start) <= bounds.largest_window.saturating_mul(2);
    }
    second.is_some_and(|(outer_start, outer_end)| {
        outer_start.at_or_before(start) && end.at_or_before(outer_end)
    })
}
