//! What the application does: send, read, close, abort, and set options (RFC 9293 §3.9.1).

use super::Sender;
use crate::common::Common;
use crate::marks::Marks;
use crate::phase::Allows;
use inhost_base::{Instant, Sequence};
use inhost_buf::Cells;

/// Segments of this length or more are written so that each lies in one piece, whoever makes their checksums.
const LONG_SEGMENT_BYTES: u32 = 16 << 10;

impl Sender {
    /// Where the next segments will probably begin and end.
    #[inline]
    pub fn cells(&self, common: &Common) -> Cells {
        let (summed, segment_bytes) = (!common.marks.has(Marks::UNSUMMED), self.segment_bytes());
        if !summed && segment_bytes < LONG_SEGMENT_BYTES {
            // They leave many in a frame, or are few bytes.
            return Cells::NONE;
        }
        let origin = if common.phase.opens() { 0 } else { self.space.next.since(self.space.unacknowledged) };
        Cells { origin: origin as usize, segment_bytes, summed }
    }
    /// Starts the time for which unpushed bytes are held back, unless it runs.
    // spec: RFC9293 SHLD-27
    pub fn aggregate(&mut self, common: &Common, now: Instant) {
        let delay = match common.config.policy.cork_lasts_rto {
            true => self.round_trip.base_timeout(&common.config),
            false => common.config.aggregation_delay,
        };
        let until = now + delay;
        let buffers = self.buffers_mut();
        buffers.aggregate_until = buffers.aggregate_until.min(until);
    }
    /// After the last queued byte, handshake or not.
    pub fn end_of_queue(&self, common: &Common) -> Sequence {
        self.stream_end() + u32::from(common.phase.opens() && !common.marks.has(Marks::EARLY))
    }
}
