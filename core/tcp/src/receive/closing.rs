//! The acknowledgment of our FIN, when nothing else is out: nothing is sent any more, so that neither the window nor the
//! pace nor what is lost is anybody's concern.

use super::acknowledgment::Report;
use crate::outcome::{Changes, Outcome};
use crate::phase::Allows;
use crate::{Connection, Environment, RecoveryState};

impl Connection {
    /// Whether this is it, and the only thing that is said.
    #[inline]
    pub(super) fn is_last_acknowledgment(&self, report: &Report<'_>) -> bool {
        self.common.phase.has_fin_outstanding()
            && self.sender.space.unacknowledged + 1 == self.sender.space.next
            && report.acknowledgment == self.sender.space.next
            && self.queued_bytes() == 0
            && self.sender.recovery.state == RecoveryState::Open
            && report.sack.is_none()
            && !report.congestion
            && self.sender.buffers.as_ref().is_some_and(|buffers| buffers.flight.lost_bytes() == 0)
    }
    /// Takes it.
    pub(super) fn take_last_acknowledgment(
        &mut self,
        report: &Report<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        let (now, acknowledgment) = (env.now, report.acknowledgment);
        let delivery = self.deliver(report, acknowledgment, now);
        let echoed = report.echo.and_then(|echo| self.echoed_round_trip(echo, now));
        let (next, measured) = (self.sender.space.next, delivery.oldest_round_trip);
        self.sender.round_trip.acknowledged(acknowledgment, next, measured, echoed, &self.common.config);
        self.discard_acknowledged(acknowledgment, 1, env);
        self.sender.recovery.duplicates = 0;
        self.restart_timers(true, true, now);
        outcome.changes |= Changes::REACHED;
        self.soft_error = None;
        self.tell_writer(outcome);
        self.fin_acknowledged(env, outcome);
    }
}
