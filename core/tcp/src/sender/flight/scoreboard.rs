//! The SACK option, read (RFC 2018 §5, RFC 2883 §4).

use super::{AckSample, Flight, State};
use crate::sender::space::SendSpace;
use inhost_base::{Instant, Offset};
use inhost_wire::tcp::{MAX_SACK_BLOCKS, SackBlocks};

impl Flight {
    /// Takes what the peer says it has beyond its acknowledgment, the acknowledgment number of the same segment. `space` is
    /// as it was before the segment arrived. Large transmissions are cut at multiples of `segment_bytes`.
    // spec: RFC6675 5-1; RFC2018 5-1
    pub fn take_sack(
        &mut self,
        sack: &SackBlocks,
        acknowledgment: Offset,
        space: &SendSpace,
        segment_bytes: u32,
        now: Instant,
        sample: &mut AckSample,
    ) {
        let blocks = space.blocks(sack);
        let mut rest = 0;
        if let Some(&first) = blocks.first()
            && is_duplicate(first, blocks.get(1).copied(), acknowledgment, space)
        {
            sample.repeated = Some(first);
            rest = 1;
        }
        // A block beyond SND.NXT or below SND.UNA is ignored.
        let counts = |&(start, end): &(Offset, Offset)| {
            start < end && end <= space.next() && space.unacknowledged() <= start
        };
        let kept: SackBlocks<Offset> = blocks.iter().copied().skip(rest).filter(counts).collect();
        // The option has the newest block first. In that order, older blocks would seem to have been overtaken by those
        // of the same acknowledgment.
        let mut rising = [(Offset::SYN, Offset::SYN); MAX_SACK_BLOCKS];
        let rising = &mut rising[..kept.len()];
        rising.copy_from_slice(&kept);
        rising.sort_unstable_by_key(|(start, _)| *start);
        for &(start, end) in rising.iter() {
            self.take_block(start, end, segment_bytes, now, sample);
        }
        self.seen = kept;
    }
    fn take_block(
        &mut self,
        start: Offset,
        end: Offset,
        segment_bytes: u32,
        now: Instant,
        sample: &mut AckSample,
    ) {
        let mut from = start;
        let mut until = end;
        for &(seen_start, seen_end) in self.seen.iter() {
            if seen_start <= start && start < seen_end {
                if end <= seen_end {
                    return;
                }
                from = from.max(seen_end);
            } else if start < seen_start && seen_start < end && end <= seen_end {
                until = seen_start;
            }
        }
        // A record on whose middle the known part ends belongs to the new part.
        let mut index = self.index_of(from);
        if let Some(record) = self.records.get(index)
            && record.start < start
        {
            // A large transmission is cut at the first multiple of a segment from there on.
            let into = start.since(record.start).div_ceil(segment_bytes.max(1)) * segment_bytes;
            if into < record.bytes() {
                let at = record.start + into;
                self.split(index, at);
            }
            index += 1;
        }
        while let Some(record) = self.records.get(index) {
            if record.start >= until {
                break;
            }
            if end < record.end {
                let into = end.since(record.start) / segment_bytes * segment_bytes;
                if into == 0 {
                    break;
                }
                let at = record.start + into;
                self.split(index, at);
                continue;
            }
            self.sack(index, now, sample);
            index += 1;
        }
    }
    fn sack(&mut self, index: usize, now: Instant, sample: &mut AckSample) {
        let Some(&piece) = self.records.get(index) else { return };
        if piece.state == State::Sacked {
            return;
        }
        self.highest_sacked = self.highest_sacked().map_or(piece.end, |highest| highest.max(piece.end));
        self.change(index, |record| record.state = State::Sacked);
        sample.sacked_bytes += piece.bytes();
        self.deliver(&piece, now, sample);
    }
}

/// RFC 2883 §4: the first block lies before the acknowledgment, or within the second.
fn is_duplicate(
    first: (Offset, Offset),
    second: Option<(Offset, Offset)>,
    acknowledgment: Offset,
    space: &SendSpace,
) -> bool {
    let (start, end) = first;
    if start >= end || space.next() < end {
        return false;
    }
    if start < acknowledgment {
        // So far back nothing of ours can have been under way: it lies beyond any window that the peer offered.
        return acknowledgment.since(start) <= space.largest_window().saturating_mul(2);
    }
    second.is_some_and(|(outer_start, outer_end)| outer_start <= start && end <= outer_end)
}
