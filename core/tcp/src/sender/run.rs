//! Segments that leave together: a run of full ones is decided on once. In the flight each stands for itself, so that a loss
//! of one is a loss of one.

use super::Sender;
use crate::common::Common;
use crate::flags::SenderFlags;
use crate::policy::PushPlacement;
use crate::sender::next::{Data, Next};
use crate::state::Allows;
use inhost_base::{Instant, Sequence};

impl Sender {
    /// `next`, and as many full segments behind it as would be let go one after another, at most `segments` in all and
    /// `most_bytes` of payload.
    #[inline]
    pub fn widened(
        &self,
        common: &Common,
        sack_bytes: u32,
        next: Next,
        segments: u32,
        most_bytes: u32,
        now: Instant,
    ) -> Next {
        let Next::Data(data) = next else { return next };
        let step = self.payload_limit(sack_bytes);
        if data.length != step || data.again.is_some() || data.fin {
            return next;
        }
        let most = segments.min(most_bytes / step);
        if most < 2 || !self.may_run(common) {
            return next;
        }
        let (length, fin) = self.run_length(common, sack_bytes, data, step, most, now);
        if length == step { next } else { Next::Data(Data { length, fin, step, ..data }) }
    }
    /// Bytes of the run that begins with `data`, and whether the FIN goes with them. Every limit is that of
    /// `sendable_bytes`, for each segment in its turn.
    fn run_length(
        &self,
        common: &Common,
        sack_bytes: u32,
        data: Data,
        step: u32,
        most: u32,
        now: Instant,
    ) -> (u32, bool) {
        let unsent = self.stream_end().since(data.start);
        let window = match common.config.policy.congestion_window_counts_segments {
            true => self.room_in_segments().saturating_mul(step),
            false => self.congestion.window.window_bytes.saturating_sub(self.in_flight_bytes()),
        };
        let mut room = self.send_edge().since(data.start).min(window);
        if let Some(buffers) = &self.buffers {
            if let Some(end) = buffers.record_end_after(data.start) {
                room = room.min(end.since(data.start));
            }
            // The last segment may exceed the pace, as any does that leaves alone.
            let paced = u32::try_from(buffers.pacer.room_bytes(step, now)).unwrap_or(u32::MAX);
            room = room.min(paced.div_ceil(step).saturating_mul(step));
        }
        if common.config.policy.push == PushPlacement::WritesAndHalfWindows {
            room = room.min(
                self.burst_of(common, sack_bytes, data.start, data.start + data.length).end.since(data.start),
            );
        }
        let full = (unsent.min(room) / step).clamp(1, most) * step;
        // A rest that is followed by the FIN goes with it.
        let ends = common.state.has_fin_outstanding() && unsent <= room && unsent <= most * step;
        if ends { (unsent, true) } else { (full, false) }
    }
    /// New data left for the first time, with `in_flight` bytes before it.
    #[inline(always)]
    pub fn left_first(&mut self, common: &Common, sack_bytes: u32, data: Data, in_flight: u32, now: Instant) {
        let step = if data.step > 0 { data.step } else { data.length };
        let (mut start, mut rest) = (data.start, data.length);
        while rest > step {
            self.segment_left(
                common,
                sack_bytes,
                (start, start + step, start + step),
                in_flight + start.since(data.start),
                now,
            );
            (start, rest) = (start + step, rest - step);
        }
        self.segment_left(
            common,
            sack_bytes,
            (start, start + rest, data.end()),
            in_flight + start.since(data.start),
            now,
        );
        let full = if data.step > 0 { data.step } else { self.payload_limit(sack_bytes) };
        if rest < full
            && let Some(buffers) = &mut self.buffers
            && !buffers.tail_probe.persists
        {
            buffers.last_small = Some(start + rest);
        }
        self.search_probe_left(common, start, start + rest);
    }
    #[inline(always)]
    fn segment_left(
        &mut self,
        common: &Common,
        sack_bytes: u32,
        (start, end, record_end): (Sequence, Sequence, Sequence),
        in_flight: u32,
        now: Instant,
    ) {
        if common.config.policy.push == PushPlacement::WritesAndHalfWindows {
            self.burst_leaves(common, sack_bytes, start, end);
            self.buffers_mut().flight.sent(start, record_end, in_flight, now);
            self.burst_left(end);
        } else {
            self.buffers_mut().flight.sent(start, record_end, in_flight, now);
        }
    }
    /// Whether nothing asks for one segment in particular.
    fn may_run(&self, common: &Common) -> bool {
        !common.state.opens()
            && !self.recovery.forward
            && !self.flags.has(SenderFlags::PROBE)
            && !self.flags.has(SenderFlags::TAIL_PROBE)
            // The urgent pointer is each segment's own.
            && !self.space.next.precedes(self.space.urgent)
    }
}
