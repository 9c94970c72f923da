//! The environment of a call: time, memory, randomness, events.

use inhost_base::{Instant, Random};
use inhost_buf::Pool;
use inhost_event::{Event, Mask, Sink};

/// The environment that calls on packets borrow.
pub struct IpEnvironment<'a> {
    now: Instant,
    pool: &'a mut Pool,
    random: &'a mut Random,
    sink: &'a mut dyn Sink,
}

impl<'a> IpEnvironment<'a> {
    /// For a call at `now`. Packet memory comes from `pool` and goes there. `random` is the host's randomness, and `sink` is
    /// told the events.
    #[inline]
    pub fn new(now: Instant, pool: &'a mut Pool, random: &'a mut Random, sink: &'a mut dyn Sink) -> Self {
        IpEnvironment { now, pool, random, sink }
    }
    /// The time of the call.
    #[inline]
    pub fn now(&self) -> Instant {
        self.now
    }
    /// The pool of packet memory.
    #[inline]
    pub fn pool(&mut self) -> &mut Pool {
        self.pool
    }
    /// The host's randomness.
    #[inline]
    pub fn random(&mut self) -> &mut Random {
        self.random
    }
    /// Tells the sink, if it wants to know.
    #[inline]
    pub(crate) fn emit(&mut self, kind: Mask, build: impl FnOnce() -> Event) {
        self.sink.emit(kind, self.now, build);
    }
}
