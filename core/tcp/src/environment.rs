//! What a connection is lent for one call, and what it is born with.

use inhost_base::{Instant, Key, Random, Sequence};
use inhost_buf::Pool;
use inhost_event::{Event, Layer, Mask, Sink};

/// Lent to a [`Connection`](crate::Connection) for one call.
pub struct Environment<'a> {
    /// The time of the call. It does not go back; when it does, no time is taken to have passed.
    pub now: Instant,
    /// The connection's socket, for the events.
    pub socket: Key,
    /// Where buffers come from and go to.
    pub pool: &'a mut Pool,
    /// The host's randomness.
    pub random: &'a mut Random,
    /// The event sink.
    pub sink: &'a mut dyn Sink,
    /// Whether the sink is told the layers of the call ([`Mask::LAYER`]).
    pub marks_layers: bool,
}

impl Environment<'_> {
    /// Tells the sink, when it wants to know.
    pub(crate) fn emit(&mut self, kind: Mask, build: impl FnOnce() -> Event) {
        self.sink.emit(kind, self.now, build);
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
#[derive(Clone, Copy, Debug)]
pub struct Open {
    /// The first sequence number: clock-driven and keyed (RFC 9293 §3.4.1), the stack's to make.
    pub initial_sequence: Sequence,
    /// Added to milliseconds of the host's time to give timestamps (RFC 7323 §5.4); unpredictable for each peer.
    pub timestamp_offset: u32,
    /// The largest payload that fits the path without options: its MTU less the IP header and 20 bytes.
    pub path_mtu_mss: u16,
    /// What the peer takes when it names no maximum: 536 for IPv4, 1220 for IPv6 (RFC 9293 §3.7.1).
    pub default_mss: u16,
}
