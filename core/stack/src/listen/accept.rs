//! The accept queue: connections between the end of the handshake and `accept`.

use crate::parts::{Parts, tcp_environment};
use crate::sockets::{Inherited, ListenerId, TcpSocket, TcpSocketFlags, TcpSocketId};
use inhost_base::Instant;
use inhost_buf::Packet;
use inhost_event::{Sink, TcpState};
use inhost_tcp::Header;

impl Parts {
    /// Gives a connection what its listener was asked for.
    pub(crate) fn inherit(&mut self, key: TcpSocketId, listener: ListenerId) {
        let Some(held) = self.sockets.listener(listener) else { return };
        let Inherited { linger, traffic_class, hop_limit, fragments } = held.inherited();
        if let Some(flow) = self.sockets.tcp_mut(key) {
            flow.set_traffic_class(traffic_class);
            flow.set_hop_limit(hop_limit);
            flow.put(TcpSocketFlags::FRAGMENTS, fragments);
        }
        if linger.is_some() {
            self.optional.set_linger(&mut self.sockets, key, linger);
        }
    }
    /// Takes the data of a SYN: the connection can be accepted before its handshake is done (RFC 7413 §4.2.2).
    pub(crate) fn take_fast_open(
        &mut self,
        listener: ListenerId,
        key: TcpSocketId,
        syn: &Header,
        packet: &mut Packet,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        let Some(flow) = self.sockets.tcp_mut(key) else { return };
        let mut environment = tcp_environment!(self, now, key, sink);
        let outcome = flow.connection_mut().opening().take_syn_data(syn, packet, &mut environment);
        self.listening.add_acceptable(listener, key);
        self.notify(listener.into());
        self.apply(key, outcome, now, sink);
    }
    /// The handshake of a connection that was opened fast is done, or the connection is over.
    pub(crate) fn update_fast_open(&mut self, key: TcpSocketId, was_reset: bool, now: Instant) {
        let Some(flow) = self.sockets.tcp_mut(key) else { return };
        if !flow.has(TcpSocketFlags::FAST_OPEN) {
            return;
        }
        flow.clear(TcpSocketFlags::FAST_OPEN);
        let Some(listener) = flow.listener() else { return };
        if let Some(held) = self.sockets.listener_mut(listener) {
            held.end_fast_open(was_reset, now);
        }
    }

    /// A connection whose handshake is done waits among the handshakes until it has data, when its listener wants it
    /// so: true when it does.
    pub(crate) fn defers_accept(&mut self, key: TcpSocketId, listener: ListenerId, now: Instant) -> bool {
        let Some(held) = self.sockets.listener(listener) else { return false };
        let Some(timeout) = held.options().defer_accept else { return false };
        let Some(flow) = self.sockets.tcp_mut(key) else { return false };
        if flow.connection().receiver().readable_bytes() > 0
            || flow.connection().state() != TcpState::Established
        {
            return false;
        }
        flow.set(TcpSocketFlags::AWAITS_DATA.and(TcpSocketFlags::HALF_OPEN));
        self.listening.add_half_open(listener, key);
        self.look_at(key, now + timeout);
        true
    }
    /// The wait for the first data is over.
    pub(crate) fn offer_to_accept(&mut self, key: TcpSocketId) {
        let Some(flow) = self.sockets.tcp_mut(key) else { return };
        flow.clear(TcpSocketFlags::AWAITS_DATA.and(TcpSocketFlags::HALF_OPEN));
        let Some(listener) = flow.listener() else { return };
        self.optional.set_until(&mut self.sockets, key, None);
        self.listening.add_acceptable(listener, key);
        self.notify(listener.into());
    }

    /// Whether a connection that is over before it was accepted stays in its listener's queue.
    pub(crate) fn is_given_out_all_the_same(&self, key: TcpSocketId) -> bool {
        let Some(listener) = self.sockets.tcp(key).and_then(TcpSocket::listener) else { return false };
        let waits = self.listening.is_acceptable(listener, key);
        let wanted = self.sockets.listener(listener).is_some_and(|held| held.options().gives_out_reset);
        waits && wanted
    }
    /// Closes a listener, and resets the connections in its queues, unless the half-open ones are to end in silence.
    pub(crate) fn close_listener(&mut self, id: ListenerId, now: Instant, sink: &mut dyn Sink) {
        while let Some(place) = self.listening.pop_any(id) {
            if let Some(flow) = self.sockets.tcp_at_place(place) {
                self.abort_flow(flow, now, sink);
            }
        }
        self.demux.unbind(&self.sockets, id.into());
        self.schedule.cancel_notice(id.place());
        self.sockets.remove(id.into());
    }
}
