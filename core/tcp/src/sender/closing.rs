//! The acknowledgment of our FIN, when nothing else is out: nothing is sent any more, so that neither the window nor the
//! pace nor what is lost is anybody's concern.

use super::Sender;
use super::acknowledgment::Report;
use crate::RecoveryState;
use crate::common::Common;
use crate::phase::Allows;

impl Sender {
    /// Whether this is it, and the only thing that is said.
    #[inline]
    pub fn is_last_acknowledgment(&self, common: &Common, report: &Report<'_>) -> bool {
        common.phase.has_fin_outstanding()
            && self.space.unacknowledged + 1 == self.space.next
            && report.acknowledgment == self.space.next
            && self.queued_bytes() == 0
            && self.recovery.state == RecoveryState::Open
            && report.sack.is_none()
            && !report.congestion
            && self.buffers.as_ref().is_some_and(|buffers| buffers.flight.lost_bytes() == 0)
    }
}
