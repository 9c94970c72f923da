//! The connection's hot state and what its caller may do with it.

use super::Receiver;
use crate::common::Common;
use crate::marks::Marks;
use crate::phase::Allows;
use inhost_base::Instant;
use inhost_event::TcpPhase;

impl Receiver {
    /// The timestamps of a segment that leaves at `now`, where they were agreed on.
    pub fn timestamps_to_send(&self, common: &Common, now: Instant) -> Option<(u32, u32)> {
        common.marks.has(Marks::TIMESTAMPS).then(|| (common.timestamp(now), self.timestamp_recent))
    }
    #[inline]
    pub fn receive_cause(&self, common: &Common) -> inhost_event::ReceiveCause {
        use inhost_event::ReceiveCause;
        if common.phase.opens() {
            return ReceiveCause::Opening;
        }
        if let Some(buffers) = &self.buffers {
            if !buffers.receive.is_empty() {
                let closed = self.space.edge == self.space.next && common.phase.expects_data();
                return if closed { ReceiveCause::WindowClosed } else { ReceiveCause::ApplicationSlow };
            }
            if !buffers.reassembly.is_empty() {
                return ReceiveCause::Hole;
            }
        }
        if common.phase.peer_has_closed() || common.phase == TcpPhase::Closed {
            ReceiveCause::Closed
        } else {
            ReceiveCause::AwaitingData
        }
    }
}
