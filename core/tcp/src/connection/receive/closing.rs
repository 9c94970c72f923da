//! The acknowledgment of our FIN, when nothing else is out: nothing is sent any more, so that neither the window nor the
//! pace nor what is lost is anybody's concern.

use crate::outcome::{Changes, Outcome};
use crate::sender::acknowledgment::Report;
use crate::{Connection, Environment};

impl Connection {
    /// Takes it.
    pub(super) fn take_last_acknowledgment(
        &mut self,
        report: &Report<'_>,
        env: &mut Environment<'_>,
        outcome: &mut Outcome,
    ) {
        let (now, acknowledgment) = (env.now, report.acknowledgment);
        let delivery = self.sender.deliver(&self.common, report, acknowledgment, now);
        let echoed = report.echo.and_then(|echo| self.sender.echoed_round_trip(&self.common, echo, now));
        let (next, measured) = (self.sender.space.next, delivery.oldest_round_trip);
        self.sender.round_trip.acknowledged(acknowledgment, next, measured, echoed, &self.common.config);
        self.sender.discard_acknowledged(acknowledgment, 1, env);
        self.sender.recovery.duplicates = 0;
        self.sender.restart_timers(&self.common, true, true, now);
        outcome.changes |= Changes::REACHED;
        self.soft_error = None;
        self.tell_writer(outcome);
        self.fin_acknowledged(env, outcome);
    }
}
