//! Time limits of a connection: what it waits for, since when.

use std::cell::Cell;
use std::rc::Rc;

use inhost_base::Instant;
use inhost_common::Clock;

use crate::Config;

/// What a connection waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// A request.
    Idle,
    /// The rest of a request's head.
    Head,
    /// The rest of a request's body.
    Body,
    /// The site, and the end of the response.
    Response,
}

/// The phase of a connection, and whether its client reads. HTTP, the stream and bodies share it.
pub(crate) struct Watch {
    clock: Rc<dyn Clock>,
    phase: Cell<(Phase, Instant)>,
    stalled_since: Cell<Option<Instant>>,
    ending: Cell<bool>,
}

impl Watch {
    pub(crate) fn new(clock: Rc<dyn Clock>) -> Rc<Watch> {
        let phase = Cell::new((Phase::Idle, clock.now()));
        Rc::new(Watch { clock, phase, stalled_since: Cell::new(None), ending: Cell::new(false) })
    }
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.set((phase, self.clock.now()));
    }
    /// Bytes came from the client.
    pub(crate) fn received(&self) {
        if self.phase.get().0 == Phase::Idle {
            self.enter(Phase::Head);
        }
    }
    /// The stream took bytes, or did not.
    pub(crate) fn sent(&self, is_blocked: bool) {
        let since = self.stalled_since.get();
        self.stalled_since.set(is_blocked.then(|| since.unwrap_or_else(|| self.clock.now())));
    }
    /// The host goes down: responses without end come to theirs.
    pub(crate) fn end(&self) {
        self.ending.set(true);
    }
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.get()
    }
    /// When the connection is to be given up.
    pub(crate) fn deadline(&self, config: &Config) -> Option<Instant> {
        let (phase, since) = self.phase.get();
        let limit = match phase {
            Phase::Idle => Some(config.idle_time),
            Phase::Head => Some(config.head_time),
            Phase::Body => Some(config.body_time),
            Phase::Response => None,
        };
        let stalled = self.stalled_since.get().map(|since| since + config.stall_time);
        limit.map(|limit| since + limit).into_iter().chain(stalled).min()
    }
}
