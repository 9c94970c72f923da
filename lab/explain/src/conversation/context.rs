//! What a direction is told with each frame: the legs of the path as measured so far.

use super::leg::Leg;
use super::outstanding::Budget;

/// Samples before a queue is believed in.
const LEAST_SAMPLES: u64 = 4;
/// A sender nearer than this is beside the capture.
const BESIDE_NS: u64 = 1_000_000;
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
    /// Whether what an acknowledgment releases passes the capture right behind it.
    pub(super) fn is_beside_sender(&self) -> bool {
        self.near.least_ns().is_some_and(|ns| ns < BESIDE_NS)
    }
    /// How much sooner than the least round trip so far an answer of the sender's may pass: beside it the whole of that trip,
    /// which is little. Far from it, a share of the trip would be many segments.
    pub(super) fn early_ns(&self) -> u64 {
        self.near.least_ns().filter(|ns| *ns < BESIDE_NS).unwrap_or(0)
    }
    /// How long data waits between the sender and the capture, when segments come in with such gaps: a pacer lets an
    /// acknowledgment wait for one gap at most.
    pub(super) fn queue_at_sender_ns(&self, gap_ns: u64) -> u64 {
        let more = self.near.current_ns().saturating_sub(self.near.least_ns().unwrap_or(0));
        if more > gap_ns { more } else { 0 }
    }
    /// A queue between the sender and the capture, which hides what is in flight there.
    pub(super) fn has_queue_at_sender(&self, gap_ns: u64) -> bool {
        self.queue_at_sender_ns(gap_ns) > (self.least_rtt_ns() / 4).max(STANDING_QUEUE_NS)
    }
    /// Whether round trips are longer than the least one by so much.
    pub(super) fn is_longer_by(&self, ns: u64, gap_ns: u64) -> bool {
        let far = self.far.current_ns().saturating_sub(self.far.least_ns().unwrap_or(0));
        let more = far + self.queue_at_sender_ns(gap_ns);
        self.far.samples() >= LEAST_SAMPLES && more > ns.max(STANDING_QUEUE_NS)
    }
}
