//! The environment of a call: time, memory, randomness, events.

use inhost_base::{Instant, Random};
use inhost_buf::Pool;
use inhost_event::Sink;

/// The environment that calls on packets borrow.
pub struct IpEnvironment<'a> {
    /// The time.
    pub now: Instant,
    /// The pool of packet memory.
    pub pool: &'a mut Pool,
    /// The host's randomness.
    pub random: &'a mut Random,
    /// The sink of events.
    pub sink: &'a mut dyn Sink,
}
