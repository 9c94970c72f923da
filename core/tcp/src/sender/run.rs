//! Generic segmentation offload (GSO): one decision lets several full segments leave together. The flight keeps a record of
//! each segment, so that each is acknowledged or lost by itself.

use super::Sender;
use crate::common::Common;
use crate::flags::SenderFlags;
use crate::policy::PushPlacement;
use crate::sender::next::{Data, Next};
use inhost_base::Instant;

impl Sender {
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
        let window = self.congestion.window.window_bytes.saturating_sub(self.in_flight_bytes());
        let mut room = self.space.edge().since(data.start).min(window);
        if let Some(buffers) = &self.buffers {
            if let Some(end) = buffers.record_end_after(data.start) {
                room = room.min(end.since(data.start));
            }
            // The last segment may exceed the pacing rate, as any single segment may.
            let paced = u32::try_from(buffers.pacer.room_bytes(full_bytes, now)).unwrap_or(u32::MAX);
            room = room.min(paced.div_ceil(full_bytes).saturating_mul(full_bytes));
        }
        if common.config.policy.push == PushPlacement::WritesAndBursts {
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
