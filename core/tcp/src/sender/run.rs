//! Segments that leave together: a run of full ones is decided on once. In the flight each stands for itself, so that a loss
//! of one is a loss of one.

use crate::flags::SenderFlags;
use crate::policy::PushPlacement;
use crate::sender::next::{Data, Next};
use crate::sender::plan::Planner;
use crate::state::Allows;
use inhost_base::Instant;

impl Planner<'_> {
    /// `next`, and as many full segments behind it as would be let go one after another, at most `segments` in all and
    /// `most_bytes` of payload.
    #[inline]
    pub fn widened(self, next: Next, segments: u32, most_bytes: u32, now: Instant) -> Next {
        let Next::Data(data) = next else { return next };
        let step = self.payload_limit();
        if data.length != step || data.again.is_some() || data.fin {
            return next;
        }
        let most = segments.min(most_bytes / step);
        if most < 2 || !self.may_run() {
            return next;
        }
        let (length, fin) = self.run_length(data, step, most, now);
        if length == step { next } else { Next::Data(Data { length, fin, step, ..data }) }
    }
    /// Bytes of the run that begins with `data`, and whether the FIN goes with them. Every limit is that of
    /// `sendable_bytes`, for each segment in its turn.
    fn run_length(self, data: Data, step: u32, most: u32, now: Instant) -> (u32, bool) {
        let unsent = self.sender.stream_end().since(data.start);
        let window = match self.common.config.policy.congestion_window_counts_segments {
            true => self.room_in_segments().saturating_mul(step),
            false => self.sender.congestion.window.window_bytes.saturating_sub(self.sender.in_flight_bytes()),
        };
        let mut room = self.sender.space.edge().since(data.start).min(window);
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
        let ends = self.common.state.has_fin_outstanding() && unsent <= room && unsent <= most * step;
        if ends { (unsent, true) } else { (full, false) }
    }
    /// Whether nothing asks for one segment in particular.
    fn may_run(self) -> bool {
        !self.common.state.opens()
            && !self.sender.recovery.forward
            && !self.sender.flags.has(SenderFlags::PROBE)
            && !self.sender.flags.has(SenderFlags::TAIL_PROBE)
            // The urgent pointer is each segment's own.
            && !self.sender.space.next.precedes(self.sender.space.urgent)
    }
}
