//! Segments that came in one batch and follow each other climb as one: what a device does for received large frames,
//! for those that do not. Payloads are copied together while their checksums are made, so that no byte is read twice.

use crate::stack::Stack;
use inhost_base::LinkId;
use inhost_buf::{Batch, Checksum, Packet, copy_and_sum};
use inhost_wire::checksum::Sum;
use inhost_wire::train::Train;

/// Fewer than so many segments are not worth the copy.
const LEAST_SEGMENTS: usize = 3;

impl Stack {
    /// `packet` together with those behind it in the batch that continue it, or alone.
    #[inline]
    pub(crate) fn coalesced(&mut self, link: LinkId, packet: Packet, batch: &mut Batch) -> Packet {
        let Some(network) = self.ip.plain_offset(link, packet.bytes()) else { return packet };
        let Some(first) = Train::begin(packet.bytes(), network).filter(|_| packet.segment_bytes == 0) else {
            return packet;
        };
        let (mut train, mut count) = (first, 1);
        while let Some(next) = batch.get(count - 1)
            && next.segment_bytes == 0
            && train.takes(packet.bytes(), next.bytes())
        {
            count += 1;
        }
        if count < LEAST_SEGMENTS {
            return packet;
        }
        match self.pool.take(train.bytes()) {
            Some(joined) => self.join(link, first, (packet, joined), count, batch),
            None => packet,
        }
    }
    /// Copies `count` segments together, the first of which is `first`; one whose checksum is wrong ends it, and is left
    /// in the batch, as is all behind it.
    fn join(
        &mut self,
        link: LinkId,
        mut train: Train,
        (first, mut joined): (Packet, Packet),
        count: usize,
        batch: &mut Batch,
    ) -> Packet {
        let header_bytes = train.header_bytes();
        joined.append(first.bytes().get(..header_bytes).unwrap_or(&[]));
        if !add(&train, &first, &mut joined) {
            self.pool.give(joined);
            return first;
        }
        let mut others = 0;
        while others + 1 < count {
            let Some(next) = batch.get(0) else { break };
            let before = train;
            if !train.takes(first.bytes(), next.bytes()) || !add(&train, next, &mut joined) {
                train = before;
                break;
            }
            self.pool.give(batch.pop().unwrap_or_default());
            others += 1;
        }
        train.finish(joined.bytes_mut());
        joined.checksum = Checksum::Verified;
        joined.segment_bytes = train.segment_bytes();
        self.pool.give(first);
        // The large one is counted as a frame with all its bytes when it goes on.
        if let Some(link) = self.links.get_mut(usize::from(link.0)) {
            link.counters.received_frames += others as u64;
            link.counters.received_bytes += (others * header_bytes) as u64;
        }
        joined
    }
}

/// Adds the payload of `packet`, if its checksum is right.
fn add(train: &Train, packet: &Packet, joined: &mut Packet) -> bool {
    let Some((header, payload)) = packet.bytes().split_at_checked(train.header_bytes()) else { return false };
    let before = joined.len();
    let Some(place) = joined.extend(payload.len()) else { return false };
    if packet.checksum.is_good() {
        inhost_buf::copy(place, payload);
        return true;
    }
    let sum = copy_and_sum(place, payload);
    let is_intact = train.is_intact(header, payload.len(), Sum::from_folded(sum));
    if !is_intact {
        joined.truncate(before);
    }
    is_intact
}
