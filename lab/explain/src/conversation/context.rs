//! What a direction is told with each frame: the legs of the path as measured so far.

use super::leg::Leg;
use super::outstanding::Budget;

/// Samples before a queue is believed in.
const LEAST_SAMPLES: u64 = 4;
/// A shorter queue is not told from noise.
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
    /// Whether round trips are longer than the least one by so much.
    pub(super) fn is_longer_by(&self, ns: u64) -> bool {
        let more = self.rtt_ns().saturating_sub(self.least_rtt_ns());
        self.far.samples() >= LEAST_SAMPLES && more > ns.max(STANDING_QUEUE_NS)
    }
}
