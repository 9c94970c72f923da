//! Idle time limit of a transfer.

use std::task::Context;

use inhost_base::{Duration, Instant};
use inhost_common::{Alarm, Clock};

/// Watches that something moves.
pub(super) struct Stall<'a, C> {
    clock: &'a C,
    limit: Duration,
    last: Instant,
    alarm: Alarm,
}

impl<'a, C: Clock> Stall<'a, C> {
    pub(super) fn new(clock: &'a C, limit: Duration) -> Stall<'a, C> {
        Stall { clock, limit, last: clock.now(), alarm: Alarm::default() }
    }
    /// Something moved.
    pub(super) fn moved(&mut self) {
        self.last = self.clock.now();
    }
    /// Whether nothing has moved for too long; if not, the task is woken to look again.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        self.alarm.poll(self.clock, Some(self.last + self.limit), cx)
    }
}
