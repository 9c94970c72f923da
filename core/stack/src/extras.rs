//! What only few connections have, kept beside them: how long they outlive their socket, and how long they wait for
//! data before anybody is told of them.

use crate::entry::{Marks, Socket};
use crate::listener::{acceptable_of, embryos_of};
use crate::stack::Stack;
use inhost_base::{Duration, Instant, Key};
use inhost_event::{Sink, TcpPhase};
use std::collections::BTreeMap;

/// By place; each entry's flow bears [`Marks::EXTRAS`].
pub(crate) type ExtrasByPlace = BTreeMap<usize, Extras>;

/// One connection's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extras {
    /// How long what was sent survives the socket.
    pub(crate) linger: Option<Duration>,
    /// When that, or the wait for the first data, is over.
    until: Option<Instant>,
}

impl Stack {
    pub(crate) fn extras(&self, key: Key) -> Extras {
        self.extras.get(&key.index()).copied().unwrap_or_default()
    }
    pub(crate) fn set_linger(&mut self, key: Key, linger: Option<Duration>) {
        self.extras_mut(key).linger = linger;
    }
    fn extras_mut(&mut self, key: Key) -> &mut Extras {
        if let Some(flow) = self.flow_mut(key) {
            flow.marks.set(Marks::EXTRAS);
        }
        self.extras.entry(key.index()).or_default()
    }
    /// Sets the instant at which [`Stack::extras_expired`] looks at the connection, if nothing clears it before.
    fn set_until(&mut self, key: Key, until: Instant) {
        self.extras_mut(key).until = Some(until);
        self.arm_extras(key);
    }
    /// Lets the connection's timer entry expire no later than that instant.
    pub(crate) fn arm_extras(&mut self, key: Key) {
        let (place, until) = (key.index(), self.extras_until(key));
        if until < self.timers.armed(place) {
            self.timers.arm(place, until);
        }
    }
    /// The instant that was set, for the connection's timer entry.
    pub(crate) fn extras_until(&self, key: Key) -> Instant {
        self.extras(key).until.unwrap_or(Instant::FAR_FUTURE)
    }

    /// A socket with a linger time was closed: what is not delivered by then is lost, and the peer is told so.
    pub(crate) fn linger(&mut self, key: Key, now: Instant) {
        if let Some(linger) = self.extras(key).linger {
            self.set_until(key, now + linger);
        }
    }
    /// Whether closing is resetting: the linger time is nothing.
    pub(crate) fn closes_by_reset(&self, key: Key) -> bool {
        self.extras(key).linger == Some(Duration::ZERO)
    }

    /// A connection whose handshake is done waits among the handshakes until it has data, when its listener wants it
    /// so: true when it does.
    pub(crate) fn defers_accept(&mut self, key: Key, listener: Key, now: Instant) -> bool {
        let Some(Socket::Listener(held)) = self.sockets.at(listener) else { return false };
        let Some(patience) = held.options.defer_accept else { return false };
        let Some(flow) = self.flow_mut(key) else { return false };
        if flow.connection.readable_bytes() > 0 || flow.connection.phase() != TcpPhase::Established {
            return false;
        }
        flow.marks.set(Marks::AWAITS_DATA.and(Marks::EMBRYO));
        self.queues.push_back(embryos_of(listener.index()), key.index());
        self.set_until(key, now + patience);
        true
    }
    /// The wait for the first data is over.
    pub(crate) fn offer_to_accept(&mut self, key: Key) {
        let Some(flow) = self.flow_mut(key) else { return };
        flow.marks.clear(Marks::AWAITS_DATA.and(Marks::EMBRYO));
        let Some(listener) = flow.listener() else { return };
        self.extras_mut(key).until = None;
        self.queues.push_back(acceptable_of(listener.index()), key.index());
        self.tell(listener);
    }

    /// The instant has come: true when the connection is gone.
    pub(crate) fn extras_expired(&mut self, key: Key, now: Instant, sink: &mut dyn Sink) -> bool {
        if now < self.extras_until(key) {
            return false;
        }
        self.extras_mut(key).until = None;
        let Some(flow) = self.flow(key) else { return true };
        let undelivered = matches!(
            flow.connection.phase(),
            TcpPhase::SynSent
                | TcpPhase::SynReceived
                | TcpPhase::FinWait1
                | TcpPhase::Closing
                | TcpPhase::LastAck
        );
        if flow.marks.any(Marks::AWAITS_DATA) {
            self.offer_to_accept(key);
        } else if flow.marks.any(Marks::ORPHAN) && undelivered {
            self.abort_flow(key, now, sink);
            return true;
        }
        false
    }
}
