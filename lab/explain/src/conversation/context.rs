//! What a direction is told with each frame: the legs of the path as measured so far.

use super::leg::Leg;
use super::outstanding::Budget;

/// A queue that stands on the path, when a round trip is longer than the least one by this, and by a quarter.
const STANDING_QUEUE_NS: u64 = 1_000_000;

/// What each direction is told with a frame.
pub(crate) struct Context<'a> {
    pub(crate) budget: &'a mut Budget,
    /// From the capture to this direction's sender and back.
    pub(crate) near: &'a Leg,
    /// From the capture to its receiver and back.
    pub(crate) far: &'a Leg,
}

impl Context<'_> {
    pub(super) fn least_rtt_ns(&self) -> u64 {
        self.near.least_ns().unwrap_or(0) + self.far.least_ns().unwrap_or(0)
    }
    pub(super) fn rtt_ns(&self) -> u64 {
        self.near.current_ns() + self.far.current_ns()
    }
    /// A queue between the sender and the capture, which hides what is in flight there.
    pub(super) fn has_queue_at_sender(&self) -> bool {
        let more = self.near.current_ns().saturating_sub(self.near.least_ns().unwrap_or(0));
        more > (self.least_rtt_ns() / 4).max(STANDING_QUEUE_NS)
    }
    pub(super) fn has_standing_queue(&self, is_at_peak: bool) -> bool {
        let more = self.rtt_ns().saturating_sub(self.least_rtt_ns());
        // A smaller queue counts while data arrives as fast as it ever did.
        let part = if is_at_peak { 20 } else { 4 };
        self.far.samples() >= 4 && more > (self.least_rtt_ns() / part).max(STANDING_QUEUE_NS)
    }
}
