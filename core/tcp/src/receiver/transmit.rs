//! What leaves: one decision, asked until it says why not. The answer that ends the asking is the cause in the
//! send ledger.

use super::Receiver;
use crate::common::Common;
use crate::marks::{Marks, ReceiveMarks};
use crate::transmit::Next;
use inhost_base::Instant;

impl Receiver {
    /// Whether so much beyond the peer's edge may be what its window's unit rounds off.
    pub fn is_rounded(&self, common: &Common, beyond_bytes: u32) -> bool {
        let scales =
            common.config.policy.sequence_may_pass_rounded_window && common.marks.has(Marks::SCALING);
        scales && beyond_bytes < 1 << self.scale
    }
    /// With `next` an acknowledgment left, and a window.
    #[inline]
    pub fn acknowledgment_left(&mut self, common: &Common, next: Next, window_field: u16) {
        self.promptness.acknowledged(self.marks.has(ReceiveMarks::SCHEDULED));
        self.marks.clear(ReceiveMarks::SCHEDULED);
        let is_duplicate = next == Next::Acknowledge && self.space.acknowledged == self.space.next;
        self.promptness.duplicates_due =
            self.promptness.duplicates_due.saturating_sub(u8::from(is_duplicate));
        self.marks.put(ReceiveMarks::ACKNOWLEDGE, self.promptness.duplicates_due > 0);
        self.acknowledge_at = Instant::FAR_FUTURE;
        self.space.acknowledged = self.space.next;
        let offered = match next {
            Next::Synchronise if common.config.policy.syn_advertises_whole_window => {
                self.window_space(common)
            }
            Next::Synchronise => u32::from(window_field),
            _ => u32::from(window_field) << self.scale,
        };
        self.space.edge = self.space.edge.later(self.space.next + offered);
    }
}
