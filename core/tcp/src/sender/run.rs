//! Generic segmentation offload (GSO): one decision lets several full segments leave together. The flight keeps a record of
//! each segment, so that each is acknowledged or lost by itself.

use crate::flags::SenderFlags;
use crate::policy::PushPlacement;
use crate::sender::next::{Data, Next};
use crate::sender::plan::Planner;
use crate::state::Allows;
use inhost_base::Instant;

impl Planner<'_> {
    /// `next`, extended by the full segments that may follow it at once: at most `segments` in all, and `most_bytes` of
    /// payload.
    #[inline]
    pub fn with_gso(self, next: Next, segments: u32, most_bytes: u32, now: Instant) -> Next {
        let Next::Data(data) = next else { return next };
        let gso_size = self.payload_limit();
        if data.length != gso_size || data.retransmission.is_some() || data.fin {
            return next;
        }
        let most = segments.min(most_bytes / gso_size);
        if most < 2 || !self.may_run() {
            return next;
        }
        let (length, fin) = self.run_length(data, gso_size, most, now);
        if length == gso_size { next } else { Next::Data(Data { length, fin, gso_size, ..data }) }
    }
    /// Bytes of the segments that begin with `data`, and whether the FIN is sent with them. Every limit is that of
    /// `sendable_bytes`, for each segment in turn.
    fn run_length(self, data: Data, gso_size: u32, most: u32, now: Instant) -> (u32, bool) {
        let unsent = self.sender.stream_end().since(data.start);
        let window = self.sender.congestion.window.window_bytes.saturating_sub(self.sender.in_flight_bytes());
        let mut room = self.sender.space.edge().since(data.start).min(window);
        if let Some(buffers) = &self.sender.buffers {
            if let Some(end) = buffers.record_end_after(data.start) {
                room = room.min(end.since(data.start));
            }
            // The last segment may exceed the pacing rate, as any single segment may.
            let paced = u32::try_from(buffers.pacer.room_bytes(gso_size, now)).unwrap_or(u32::MAX);
            room = room.min(paced.div_ceil(gso_size).saturating_mul(gso_size));
        }
        if self.common.config.policy.push == PushPlacement::WritesAndBursts {
            room = room.min(self.burst_of(data.start, data.start + data.length).end.since(data.start));
        }
        let full = (unsent.min(room) / gso_size).clamp(1, most) * gso_size;
        // The remaining data before the FIN is sent with it.
        let ends = self.common.state.has_fin_outstanding() && unsent <= room && unsent <= most * gso_size;
        if ends { (unsent, true) } else { (full, false) }
    }
    /// Whether nothing asks for one segment in particular.
    fn may_run(self) -> bool {
        !self.common.state.opens()
            && !self.sender.recovery.forward
            && !self.sender.flags.contains(SenderFlags::WINDOW_PROBE)
            && !self.sender.flags.contains(SenderFlags::TAIL_PROBE)
            // The urgent pointer is each segment's own.
            && self.sender.space.next() >= self.sender.space.urgent()
    }
}
