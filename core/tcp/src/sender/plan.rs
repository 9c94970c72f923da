//! What the decision about the next segment reads. The decision itself is in `next.rs`, runs of segments in `run.rs`, the
//! boundaries of bursts in `burst.rs`.

use super::Sender;
use crate::Header;
use crate::common::Common;
use crate::flags::SenderFlags;
use crate::offset::Offset;
use inhost_wire::tcp::Flags;

impl Sender {
    /// Payload of a full segment with a SACK option of `sack_bytes`, which takes space from the data (RFC 9293 §3.7.1).
    #[inline]
    pub fn payload_limit(&self, sack_bytes: u32) -> u32 {
        let segment = self.segment_bytes();
        if sack_bytes == 0 { segment } else { segment.saturating_sub(sack_bytes).max(1) }
    }
    /// Sets URG and the pointer while urgent data lies ahead of the segment's first byte.
    // spec: RFC9293 MUST-30 (the mechanism is there)
    // spec: RFC9293 MUST-31 (urgent data of any length: what the pointer cannot reach, later segments tell)
    // spec: RFC9293 MUST-62 (to the first byte that is not urgent)
    pub fn announce_urgent(&self, common: &Common, first: Offset, header: &mut Header) {
        let urgent = self.space.urgent();
        let outstanding = self.space.unacknowledged() < urgent && !common.opens();
        if outstanding && first < urgent {
            header.flags |= Flags::URG;
            header.urgent_pointer = urgent.since(first).min(0xffff) as u16;
        }
    }
    /// Whether an empty window probe with an old sequence number is due.
    pub fn probes_empty(&self, common: &Common) -> bool {
        common.config.policy.window_probes_are_empty
            && self.flags.contains(SenderFlags::WINDOW_PROBE)
            && self.space.window == 0
            && !self.space.has_outstanding()
    }
}
