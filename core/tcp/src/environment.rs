//! What a connection is lent for one call, and what it is born with.

use crate::{Changes, Outcome, ResetReply};
use inhost_base::{Instant, Key, Sequence};
use inhost_buf::Pool;
use inhost_event::{Drop, Event, Layer, Mask, Sink};
use inhost_wire::tcp::FastOpenCookie;

/// Lent to a [`Connection`](crate::Connection) for one call, and what comes of that.
pub struct Environment<'a> {
    now: Instant,
    socket: Key,
    pool: &'a mut Pool,
    sink: &'a mut dyn Sink,
    marks_layers: bool,
    outcome: Outcome,
}

impl<'a> Environment<'a> {
    /// For a call at `now`, which does not go back; when it does, no time is taken to have passed. Buffers come from `pool` and
    /// go there. `sink` is told the events, as `socket`'s, and with `marks_layers` the layers of the call ([`Mask::LAYER`]).
    #[inline(always)]
    pub fn new(
        now: Instant,
        socket: Key,
        pool: &'a mut Pool,
        sink: &'a mut dyn Sink,
        marks_layers: bool,
    ) -> Self {
        Environment { now, socket, pool, sink, marks_layers, outcome: Outcome::default() }
    }
    /// The time of the call.
    pub fn now(&self) -> Instant {
        self.now
    }
    pub(crate) fn socket(&self) -> Key {
        self.socket
    }
    /// Where buffers come from and go to.
    pub fn pool(&mut self) -> &mut Pool {
        self.pool
    }
    /// Tells the sink, when it wants to know.
    pub(crate) fn emit(&mut self, kind: Mask, build: impl FnOnce() -> Event) {
        self.sink.emit(kind, self.now, build);
    }
    /// What came of the call so far, which is forgotten here.
    pub(crate) fn take_outcome(&mut self) -> Outcome {
        core::mem::take(&mut self.outcome)
    }
    /// What has changed so far.
    pub fn changes(&self) -> Changes {
        self.outcome.changes
    }
    pub(crate) fn changed(&mut self, changes: Changes) {
        self.outcome.changes |= changes;
    }
    /// The segment goes no further.
    pub(crate) fn discarded(&mut self, why: Drop) {
        self.outcome.dropped = Some(why);
    }
    /// A reset answers the segment, or ends the connection.
    pub(crate) fn reply(&mut self, reset: Option<ResetReply>) {
        self.outcome.reset = reset;
    }
    /// What follows is done for `layer`, where the sink is told.
    #[inline(always)]
    pub(crate) fn begin_layer(&mut self, layer: Layer) {
        if self.marks_layers {
            self.sink.begin_layer(layer);
        }
    }
    /// The layer that began last is over.
    #[inline(always)]
    pub(crate) fn end_layer(&mut self) {
        if self.marks_layers {
            self.sink.end_layer();
        }
    }
}

/// What the host decides for a new connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open {
    /// The first sequence number: clock-driven and keyed (RFC 9293 §3.4.1), the stack's to make.
    pub initial_sequence: Sequence,
    /// Added to milliseconds of the host's time to give timestamps (RFC 7323 §5.4); unpredictable for each peer.
    pub timestamp_offset: u32,
    /// The largest payload that fits the path without options: its MTU less the IP header and 20 bytes.
    pub path_mtu_mss: u16,
    /// What the peer takes when it names no maximum: 536 for IPv4, 1220 for IPv6 (RFC 9293 §3.7.1).
    pub default_mss: u16,
    /// Our SYN is held back until [`Connection::release_syn`](crate::Connection::release_syn): data queued by then goes with
    /// it.
    pub hold_syn: bool,
    /// The SYN-ACK was sent before, as a stateless SYN cookie, and the peer's acknowledgment follows (RFC 4987 §3.6). It
    /// yields no round-trip sample, because the time of the transmission is not known.
    pub syn_was_sent: bool,
    /// The cookie of our first SYN, and whether it goes in the form of the experiment; an empty one asks for a cookie.
    pub fast_open: Option<(FastOpenCookie, bool)>,
    /// The data queued before our SYN leaves goes with it, up to this payload, which the peer is known to accept; 0 for
    /// none (RFC 7413 §4.1.2).
    pub syn_data_mss: u16,
}
