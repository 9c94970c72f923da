//! Closing a UDP socket: what is queued still leaves.

use crate::parts::Parts;
use crate::sockets::{Socket, SocketId, UdpSocketId};
use crate::udp::Udp;
use inhost_base::{Duration, Instant};

/// How long the datagrams of a closed socket wait for a neighbour or for a full device. An unanswered neighbour is given
/// up before that.
const CLOSING_LIMIT: Duration = Duration::from_secs(10);

impl Parts {
    /// Closes a UDP socket. Its port is free and its identifier is dead at once. Its queued datagrams leave from an
    /// entry that no application holds.
    pub(crate) fn close_udp(&mut self, key: UdpSocketId, now: Instant) {
        let link = match self.sockets.udp(key) {
            Some(udp) if !udp.is_closed() => udp.outgoing.front().map(|first| first.path.link),
            _ => None,
        };
        let Some(link) = link else { return self.remove_datagram_socket(key.into()) };
        self.delist_datagram_socket(key.into());
        if let Some(udp) = self.sockets.udp_mut(key) {
            udp.close(self.memory.pool_mut());
        }
        let Some(closing) = self.sockets.renew_udp(key) else { return };
        let place = closing.place();
        self.schedule.add_closing_udp(place);
        self.schedule.arm(place, now + CLOSING_LIMIT);
        self.schedule.make_ready(link, place);
    }
    /// Whether there may be one more datagram socket. At the limit the oldest that is closing gives way.
    pub(crate) fn has_room_for_datagram_socket(&mut self) -> bool {
        if self.population.datagram_sockets >= self.config.datagram_socket_limit
            && let Some(oldest) =
                self.schedule.oldest_closing_udp().and_then(|place| self.sockets.at_place(place))
        {
            self.remove_datagram_socket(oldest);
        }
        self.population.datagram_sockets < self.config.datagram_socket_limit
    }
    /// The time of a closed socket is over.
    pub(crate) fn closing_expired(&mut self, key: UdpSocketId) {
        if self.sockets.udp(key).is_some_and(Udp::is_closed) {
            self.remove_datagram_socket(key.into());
        }
    }
    /// Removes a UDP, echo or probe socket with all that it holds.
    pub(crate) fn remove_datagram_socket(&mut self, socket: SocketId) {
        self.delist_datagram_socket(socket);
        if let Some(socket) = self.sockets.remove(socket) {
            self.discard_datagram_socket(socket);
        }
    }
    /// Takes a datagram socket out of everything that refers to it.
    fn delist_datagram_socket(&mut self, socket: SocketId) {
        let place = socket.0.index();
        self.unbind(socket);
        self.demux.unlist_udp(&self.sockets, socket);
        self.schedule.forget(place);
        self.memory.forget(place);
    }
    fn discard_datagram_socket(&mut self, socket: Socket) {
        match socket {
            Socket::Udp(udp) => udp.clear(self.memory.pool_mut()),
            Socket::Echo(echo) => echo.clear(self.memory.pool_mut()),
            Socket::Probe(prober) => prober.clear(self.memory.pool_mut()),
            Socket::Tcp(_) | Socket::Listener(_) => return,
        }
        self.population.datagram_sockets -= 1;
    }
}

impl Udp {
    /// Lets go of what came in. It has no name any more, so nothing else comes.
    fn close(&mut self, pool: &mut inhost_buf::Pool) {
        self.closed = true;
        self.discard_incoming(pool);
    }
    /// Whether no application holds it.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }
}
