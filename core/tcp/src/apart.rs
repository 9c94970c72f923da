//! What Linux sends by itself, and at once, though other segments are due that could bear it: the acknowledgment of a FIN
//! that meets ours, and a FIN that waited until our SYN was acknowledged.

use crate::Connection;
use crate::marks::Marks;
use crate::phase::Allows;
use crate::transmit::Next;
use inhost_base::Instant;

impl Connection {
    /// The segment that goes before all others, where [`Marks::APART`] is set.
    pub(crate) fn goes_apart(&self) -> Option<Next> {
        if self.ends_apart()
            && let Ok(data) = self.new_data()
        {
            return Some(Next::Data(data));
        }
        self.marks.has(Marks::ACKNOWLEDGE).then_some(Next::Acknowledge)
    }
    /// Whether the FIN that is next waited for the acknowledgment of our SYN, and leaves as if nothing had come with that.
    pub(crate) fn ends_apart(&self) -> bool {
        self.marks.has(Marks::APART)
            && self.marks.has(Marks::ACTIVE)
            && (self.marks.has(Marks::SCHEDULED) || self.marks.has(Marks::ACKNOWLEDGE))
            && self.phase.has_fin_outstanding()
            && !self.has_outstanding()
            && self.queued_bytes() == 0
            && self.acknowledged_bytes == 0
    }
    /// Our FIN left; data had left `before`.
    #[cold]
    pub(crate) fn fin_left(&mut self, before: Instant) {
        if self.phase.opens() && self.marks.has(Marks::ACTIVE) {
            // The FIN of a crossing call: what is measured is still our SYN.
            self.sent_at = before;
        }
        if self.marks.has(Marks::APART)
            && (self.marks.has(Marks::SCHEDULED) || self.marks.has(Marks::ACKNOWLEDGE))
        {
            // It has told nothing of what came.
            self.duplicates_due = 1;
        }
        self.marks.clear(Marks::APART);
    }
}
