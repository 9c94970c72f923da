//! What only few connections have, kept beside them: how long they outlive their socket, and how long they wait for
//! data before anybody is told of them.

use crate::listener::{acceptable_of, embryos_of};
use crate::parts::Parts;
use crate::sockets::{ConnectionFlags, ListenerId, TcpSocketId};
use inhost_base::{Duration, Instant};
use inhost_event::{Sink, TcpPhase};
use std::collections::BTreeMap;

/// By place; each entry's flow bears [`ConnectionFlags::OPTIONAL_STATE`].
pub(crate) type ExtrasByPlace = BTreeMap<usize, Extras>;

/// One connection's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extras {
    /// How long what was sent survives the socket.
    pub(crate) linger: Option<Duration>,
    /// When that, or the wait for the first data, is over.
    until: Option<Instant>,
}

impl Parts {
    pub(crate) fn extras(&self, key: TcpSocketId) -> Extras {
        self.extras.get(&key.place()).copied().unwrap_or_default()
    }
    pub(crate) fn set_linger(&mut self, key: TcpSocketId, linger: Option<Duration>) {
        self.extras_mut(key).linger = linger;
    }
    fn extras_mut(&mut self, key: TcpSocketId) -> &mut Extras {
        if let Some(flow) = self.sockets.tcp_mut(key) {
            flow.set(ConnectionFlags::OPTIONAL_STATE);
        }
        self.extras.entry(key.place()).or_default()
    }
    /// Sets the instant at which [`Stack::extras_expired`] looks at the connection, if nothing clears it before.
    fn set_until(&mut self, key: TcpSocketId, until: Instant) {
        self.extras_mut(key).until = Some(until);
        self.arm_extras(key);
    }
    /// Lets the connection's timer entry expire no later than that instant.
    pub(crate) fn arm_extras(&mut self, key: TcpSocketId) {
        let (place, until) = (key.place(), self.extras_until(key));
        self.schedule.arm_no_later(place, until);
    }
    /// The instant that was set, for the connection's timer entry.
    pub(crate) fn extras_until(&self, key: TcpSocketId) -> Instant {
        self.extras(key).until.unwrap_or(Instant::FAR_FUTURE)
    }

    /// A socket with a linger time was closed: what is not delivered by then is lost, and the peer is told so.
    pub(crate) fn linger(&mut self, key: TcpSocketId, now: Instant) {
        if let Some(linger) = self.extras(key).linger {
            self.set_until(key, now + linger);
        }
    }
    /// Whether closing is resetting: the linger time is nothing.
    pub(crate) fn closes_by_reset(&self, key: TcpSocketId) -> bool {
        self.extras(key).linger == Some(Duration::ZERO)
    }

    /// A connection whose handshake is done waits among the handshakes until it has data, when its listener wants it
    /// so: true when it does.
    pub(crate) fn defers_accept(&mut self, key: TcpSocketId, listener: ListenerId, now: Instant) -> bool {
        let Some(held) = self.sockets.listener(listener) else { return false };
        let Some(patience) = held.options.defer_accept else { return false };
        let Some(flow) = self.sockets.tcp_mut(key) else { return false };
        if flow.connection().readable_bytes() > 0 || flow.connection().phase() != TcpPhase::Established {
            return false;
        }
        flow.set(ConnectionFlags::AWAITS_DATA.and(ConnectionFlags::HALF_OPEN));
        self.queues.push_back(embryos_of(listener.place()), key.place());
        self.set_until(key, now + patience);
        true
    }
    /// The wait for the first data is over.
    pub(crate) fn offer_to_accept(&mut self, key: TcpSocketId) {
        let Some(flow) = self.sockets.tcp_mut(key) else { return };
        flow.clear(ConnectionFlags::AWAITS_DATA.and(ConnectionFlags::HALF_OPEN));
        let Some(listener) = flow.listener() else { return };
        self.extras_mut(key).until = None;
        self.queues.push_back(acceptable_of(listener.place()), key.place());
        self.tell(listener.into());
    }

    /// The instant has come: true when the connection is gone.
    pub(crate) fn extras_expired(&mut self, key: TcpSocketId, now: Instant, sink: &mut dyn Sink) -> bool {
        if now < self.extras_until(key) {
            return false;
        }
        self.extras_mut(key).until = None;
        let Some(flow) = self.sockets.tcp(key) else { return true };
        let undelivered = matches!(
            flow.connection().phase(),
            TcpPhase::SynSent
                | TcpPhase::SynReceived
                | TcpPhase::FinWait1
                | TcpPhase::Closing
                | TcpPhase::LastAck
        );
        if flow.has(ConnectionFlags::AWAITS_DATA) {
            self.offer_to_accept(key);
        } else if flow.has(ConnectionFlags::ORPHAN) && undelivered {
            self.abort_flow(key, now, sink);
            return true;
        }
        false
    }
}
