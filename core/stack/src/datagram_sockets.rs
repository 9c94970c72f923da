//! Rules shared by UDP, echo and probe sockets: the limit on their number, and closing.

use crate::parts::Parts;
use crate::sockets::{Socket, SocketId};

impl Parts {
    /// Whether there may be one more datagram socket. At the limit the oldest that is closing gives way.
    pub(crate) fn has_room_for_datagram_socket(&mut self) -> bool {
        if self.sockets.datagram_sockets() >= self.config.datagram_socket_limit
            && let Some(oldest) =
                self.schedule.oldest_closing_udp().and_then(|place| self.sockets.at_place(place))
        {
            self.remove_datagram_socket(oldest);
        }
        self.sockets.datagram_sockets() < self.config.datagram_socket_limit
    }
    /// Removes a UDP, echo or probe socket with all that it holds.
    pub(crate) fn remove_datagram_socket(&mut self, socket: SocketId) {
        self.delist_datagram_socket(socket);
        if let Some(socket) = self.sockets.remove(socket) {
            self.discard_datagram_socket(socket);
        }
    }
    /// Takes a datagram socket out of everything that refers to it.
    pub(crate) fn delist_datagram_socket(&mut self, socket: SocketId) {
        let place = socket.0.index();
        self.demux.unbind(&self.sockets, socket);
        self.demux.unlist_udp(&self.sockets, socket);
        self.schedule.forget(place);
        self.memory.forget(place);
    }
    fn discard_datagram_socket(&mut self, socket: Socket) {
        match socket {
            Socket::Udp(udp) => udp.clear(self.memory.pool_mut()),
            Socket::Echo(echo) => echo.clear(self.memory.pool_mut()),
            Socket::Probe(prober) => prober.clear(self.memory.pool_mut()),
            Socket::Tcp(_) | Socket::Listener(_) => {}
        }
    }
}
