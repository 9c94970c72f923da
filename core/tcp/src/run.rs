//! Segments that leave together: a run of full ones is decided on, and given to the device, once. In the flight each
//! stands for itself, so that a loss of one is a loss of one.

use crate::marks::SendMarks;
use crate::outcome::Blocked;
use crate::phase::Allows;
use crate::policy::PushPlacement;
use crate::transmit::{Data, Next};
use crate::{Connection, Ecn, Header, SegmentOutput};
use inhost_base::{Instant, Sequence};
use inhost_buf::SendQueue;
use inhost_wire::tcp::Flags;

impl Next {
    /// How many segments it is.
    pub fn segments(&self) -> u32 {
        match self {
            Next::Data(data) if data.step > 0 => data.length.div_ceil(data.step).max(1),
            _ => 1,
        }
    }
}

impl Connection {
    /// `next`, and as many full segments behind it as would be let go one after another, at most `segments` in all and
    /// `most_bytes` of payload.
    #[inline]
    pub(crate) fn widened(&self, next: Next, segments: u32, most_bytes: u32, now: Instant) -> Next {
        let Next::Data(data) = next else { return next };
        let step = self.payload_limit();
        let most = segments.min(most_bytes / step);
        if most < 2 || data.length != step || data.again.is_some() || data.fin || !self.may_run() {
            return next;
        }
        let (length, fin) = self.run_length(data, step, most, now);
        if length == step { next } else { Next::Data(Data { length, fin, step, ..data }) }
    }
    /// Whether nothing asks for one segment in particular.
    fn may_run(&self) -> bool {
        !self.common.phase.opens()
            && !self.sender.recovery.forward
            && !self.sender.marks.has(SendMarks::PROBE)
            && !self.sender.marks.has(SendMarks::TAIL_PROBE)
            // The urgent pointer is each segment's own.
            && !self.sender.space.next.precedes(self.sender.space.urgent)
    }
    /// Bytes of the run that begins with `data`, and whether the FIN goes with them. Every limit is that of
    /// `sendable_bytes`, for each segment in its turn.
    fn run_length(&self, data: Data, step: u32, most: u32, now: Instant) -> (u32, bool) {
        let unsent = self.stream_end().since(data.start);
        let window = match self.common.config.policy.congestion_window_counts_segments {
            true => self.room_in_segments().saturating_mul(step),
            false => self.sender.congestion.window.window_bytes.saturating_sub(self.in_flight_bytes()),
        };
        let mut room = self.send_edge().since(data.start).min(window);
        if let Some(buffers) = &self.sender.buffers {
            if let Some(end) = buffers.record_end_after(data.start) {
                room = room.min(end.since(data.start));
            }
            // The last segment may exceed the pace, as any does that leaves alone.
            let paced = u32::try_from(buffers.pacer.room_bytes(step, now)).unwrap_or(u32::MAX);
            room = room.min(paced.div_ceil(step).saturating_mul(step));
        }
        if self.common.config.policy.push == PushPlacement::WritesAndHalfWindows {
            room = room.min(self.burst_of(data.start, data.start + data.length).end.since(data.start));
        }
        let full = (unsent.min(room) / step).clamp(1, most) * step;
        // A rest that is followed by the FIN goes with it.
        let ends = self.common.phase.has_fin_outstanding() && unsent <= room && unsent <= most * step;
        if ends { (unsent, true) } else { (full, false) }
    }
    /// New data left for the first time, with `in_flight` bytes before it.
    #[inline]
    pub(crate) fn left_first(&mut self, data: Data, in_flight: u32, now: Instant) {
        let step = if data.step > 0 { data.step } else { data.length };
        let (mut start, mut rest) = (data.start, data.length);
        while rest > step {
            self.segment_left(start, start + step, start + step, in_flight + start.since(data.start), now);
            (start, rest) = (start + step, rest - step);
        }
        self.segment_left(start, start + rest, data.end(), in_flight + start.since(data.start), now);
        let full = if data.step > 0 { data.step } else { self.payload_limit() };
        if rest < full
            && let Some(buffers) = &mut self.sender.buffers
            && !buffers.tail_probe.persists
        {
            buffers.last_small = Some(start + rest);
        }
        self.search_probe_left(start, start + rest);
    }
    #[inline(always)]
    fn segment_left(
        &mut self,
        start: Sequence,
        end: Sequence,
        record_end: Sequence,
        in_flight: u32,
        now: Instant,
    ) {
        if self.common.config.policy.push == PushPlacement::WritesAndHalfWindows {
            self.burst_leaves(start, end);
            self.sender.buffers_mut().flight.sent(start, record_end, in_flight, now);
            self.burst_left(end);
        } else {
            self.sender.buffers_mut().flight.sent(start, record_end, in_flight, now);
        }
    }
}

/// Most segments of a run whose payload's sums are looked up; of others they are made.
const SUMS: usize = 48;

/// Gives a run, which lies `offset` bytes from the beginning of the queue, to the device; the bytes that it took. How many
/// were offered goes to `offered`.
#[inline(never)]
pub(crate) fn lend_run<O: SegmentOutput + ?Sized>(
    data: Data,
    header: &Header,
    (send, offset): (&mut SendQueue, usize),
    ecn: Ecn,
    offered: &mut u32,
    out: &mut O,
) -> Result<u32, Blocked> {
    let mut sums = [None; SUMS];
    let mut known = 0;
    if out.wants_sums() {
        known = (Next::Data(data).segments() as usize).min(SUMS);
        let places = sums.get_mut(..known).unwrap_or_default();
        send.sums(offset, data.length as usize, data.step, places);
    }
    let sums = sums.get(..known).unwrap_or(&[]);
    let payload = send.slices(offset, data.length as usize);
    let lent = payload.len() as u32;
    *offered = lent;
    if lent == data.length {
        return out.large(header, payload, data.step as u16, sums, ecn);
    }
    // It lies in more pieces than can be lent at once: what follows goes next.
    let header = Header { flags: header.flags.without(Flags::FIN | Flags::PSH), ..*header };
    match lent / data.step {
        0 => out.segment(&header, payload, ecn).map(|()| lent),
        whole => {
            let bytes = whole * data.step;
            out.large(&header, payload.part(0, bytes as usize), data.step as u16, sums, ecn)
        }
    }
}
