//! What Linux sends by itself, and at once, though other segments are due that could bear it: the acknowledgment of a FIN
//! that meets ours, and a FIN that waited until our SYN was acknowledged.

use crate::Connection;
use crate::flags::{ConnectionFlags, ReceiverFlags};
use crate::sender::next::Next;
use crate::state::Allows;
use inhost_base::Instant;

impl Connection {
    /// The segment that goes before all others, where [`ConnectionFlags::APART`] is set.
    pub(crate) fn goes_apart(&self) -> Option<Next> {
        if self.ends_apart()
            && let Ok(data) =
                self.sender.planner(&self.common, self.receiver.sack_bytes(&self.common)).new_data()
        {
            return Some(Next::Data(data));
        }
        self.receiver.flags.has(ReceiverFlags::ACKNOWLEDGE).then_some(Next::Acknowledge)
    }
    /// Whether the FIN that is next waited for the acknowledgment of our SYN, and leaves as if nothing had come with that.
    pub(crate) fn ends_apart(&self) -> bool {
        self.common.flags.has(ConnectionFlags::APART)
            && self.common.flags.has(ConnectionFlags::ACTIVE)
            && (self.receiver.flags.has(ReceiverFlags::SCHEDULED)
                || self.receiver.flags.has(ReceiverFlags::ACKNOWLEDGE))
            && self.common.state.has_fin_outstanding()
            && !self.sender.space.has_outstanding()
            && self.sender.queued_bytes() == 0
            && self.sender.acknowledged_bytes == 0
    }
    /// Our FIN left; data had left `before`.
    #[cold]
    pub(crate) fn fin_left(&mut self, before: Instant) {
        if self.common.state.opens() && self.common.flags.has(ConnectionFlags::ACTIVE) {
            // The FIN of a crossing call: what is measured is still our SYN.
            self.sender.sent_at = before;
        }
        if self.common.flags.has(ConnectionFlags::APART)
            && (self.receiver.flags.has(ReceiverFlags::SCHEDULED)
                || self.receiver.flags.has(ReceiverFlags::ACKNOWLEDGE))
        {
            // It has told nothing of what came.
            self.receiver.ack_timing.duplicates_due = 1;
        }
        self.common.flags.clear(ConnectionFlags::APART);
    }
}
