//! Generic segmentation offload (GSO): one decision lets several full segments leave together. The flight keeps a record of
//! each segment, so that each is acknowledged or lost by itself.

use super::Sender;
use crate::common::Common;
use crate::flags::SenderFlags;
use crate::outcome::SegmentOutput;
use crate::sender::next::{Data, Next};
use crate::{Ecn, Header};
use inhost_base::Instant;
use inhost_buf::{Full, SendQueue, Slices};
use inhost_wire::tcp::Flags;

impl Sender {
    /// The payload of a single segment.
    #[inline]
    pub fn payload(&mut self, next: Next, wants_sums: bool) -> Slices<'_> {
        match (next, &mut self.buffers) {
            (Next::Data(data), Some(buffers)) => {
                let offset = data.start.after(self.space.unacknowledged()) as usize;
                buffers.send.segment(offset, data.length as usize, wants_sums)
            }
            _ => Slices::EMPTY,
        }
    }
    /// Gives any segment, or run of segments, to `out`: how much payload it was lent, and how much of that it took. Where the data
    /// lies in more buffers than can be lent at once, the rest is sent next, and with it what `header` says of its end.
    pub fn lend_segment<O: SegmentOutput + ?Sized>(
        &mut self,
        common: &Common,
        next: Next,
        header: &mut Header,
        ecn: Ecn,
        (wants_sums, shares): (bool, bool),
        out: &mut O,
    ) -> (u32, Result<u32, Full>) {
        let syn_data_bytes = self.syn_data_bytes(common) as usize;
        let (payload, shareable) = match (next, &mut self.buffers) {
            (Next::Data(data), Some(buffers)) => {
                let offset = data.start.after(self.space.unacknowledged()) as usize;
                if data.gso_size > 0 {
                    return lend_run(data, header, (&mut buffers.send, offset), ecn, out);
                }
                match shares {
                    true => buffers.send.shareable(offset, data.length as usize),
                    false => (buffers.send.segment(offset, data.length as usize, wants_sums), None),
                }
            }
            (Next::Synchronise, Some(buffers)) => (buffers.send.slices(0, syn_data_bytes), None),
            _ => (Slices::EMPTY, None),
        };
        let lent = payload.len() as u32;
        if let Next::Data(data) = next
            && lent < data.length
        {
            header.flags.remove(ENDS);
        }
        let taken = match shareable {
            Some(shareable) => out.shared(header, payload, shareable, ecn),
            None => out.segment(header, payload, ecn),
        };
        (lent, taken.map(|()| lent))
    }
    /// `next`, extended by the full segments that may follow it at once: at most `segments` in all, and `most_bytes` of
    /// payload.
    #[inline]
    pub fn with_gso(
        &self,
        common: &Common,
        full_bytes: u32,
        next: Next,
        segments: u32,
        most_bytes: u32,
        now: Instant,
    ) -> Next {
        let Next::Data(data) = next else { return next };
        if data.length != full_bytes || data.retransmission.is_some() || data.fin {
            return next;
        }
        let most = segments.min(most_bytes / full_bytes);
        if most < 2 || !self.may_run(common) {
            return next;
        }
        let (length, fin) = self.run_length(common, full_bytes, data, most, now);
        if length == full_bytes {
            next
        } else {
            Next::Data(Data { length, fin, gso_size: full_bytes, ..data })
        }
    }
    /// Bytes of the segments that begin with `data`, and whether the FIN is sent with them. Every limit is that of
    /// `sendable_bytes`, for each segment in turn.
    fn run_length(
        &self,
        common: &Common,
        full_bytes: u32,
        data: Data,
        most: u32,
        now: Instant,
    ) -> (u32, bool) {
        let unsent = self.stream_end().since(data.start);
        let window = self.congestion.window().window_bytes.saturating_sub(self.in_flight_bytes());
        let mut room = self.space.edge().since(data.start).min(window);
        if let Some(buffers) = &self.buffers {
            if let Some(end) = buffers.record_end_after(data.start) {
                room = room.min(end.since(data.start));
            }
            // The last segment may exceed the pacing rate, as any single segment may.
            let paced = u32::try_from(buffers.pacer.room_bytes(full_bytes, now)).unwrap_or(u32::MAX);
            room = room.min(paced.div_ceil(full_bytes).saturating_mul(full_bytes));
        }
        if common.policy().pushes_writes_and_bursts {
            room = room.min(
                self.burst_of(common, full_bytes, data.start, data.start + data.length).end.since(data.start),
            );
        }
        let full = (unsent.min(room) / full_bytes).clamp(1, most) * full_bytes;
        // The remaining data before the FIN is sent with it.
        let ends = common.has_fin_outstanding() && unsent <= room && unsent <= most * full_bytes;
        if ends { (unsent, true) } else { (full, false) }
    }
    /// Whether nothing asks for one segment in particular.
    fn may_run(&self, common: &Common) -> bool {
        !common.opens()
            && !self.recovery.forward
            && !self.flags.contains(SenderFlags::WINDOW_PROBE)
            && !self.flags.contains(SenderFlags::TAIL_PROBE)
            // The urgent pointer is each segment's own.
            && self.space.next() >= self.space.urgent()
    }
}

/// Maximum number of segments whose payload sums are looked up; further sums are computed.
const SUMS: usize = 48;

/// What a segment says of the data's end.
const ENDS: Flags = Flags::FIN.union(Flags::PSH);

/// Gives `data`, which begins `offset` bytes into the queue, to the device. Returns the bytes that it was lent, and those that it
/// took.
#[inline(never)]
fn lend_run<O: SegmentOutput + ?Sized>(
    data: Data,
    header: &mut Header,
    (send, offset): (&mut SendQueue, usize),
    ecn: Ecn,
    out: &mut O,
) -> (u32, Result<u32, Full>) {
    let mut sums = [None; SUMS];
    let mut known = 0;
    if out.wants_sums() {
        known = (Next::Data(data).segments() as usize).min(SUMS);
        let places = sums.get_mut(..known).unwrap_or_default();
        send.sums(offset, data.length as usize, data.gso_size, places);
    }
    let sums = sums.get(..known).unwrap_or(&[]);
    let payload = send.slices(offset, data.length as usize);
    let lent = payload.len() as u32;
    if lent == data.length {
        return (lent, out.large(header, payload, data.gso_size as u16, sums, ecn));
    }
    header.flags.remove(ENDS);
    let taken = match lent / data.gso_size {
        0 => out.segment(header, payload, ecn).map(|()| lent),
        whole => {
            let bytes = whole * data.gso_size;
            out.large(header, payload.part(0, bytes as usize), data.gso_size as u16, sums, ecn)
        }
    };
    (lent, taken)
}
