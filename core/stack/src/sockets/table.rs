//! The socket table: each socket by the identifier of its kind.

use crate::listen::Listener;
use crate::socket::{
    AnySocketId, EchoSocketId, ListenerId, ProbeSocketId, SocketId, TcpSocketId, UdpSocketId,
};
use crate::sockets::{Socket, Sockets};
use crate::tcp::{TcpSocket, TcpSocketFlags};
use inhost_datagram::{EchoSocket, ProbeSocket, SocketError, UdpSocket};
use inhost_event::Readiness;

/// Access to the sockets of one kind.
macro_rules! typed_access {
    ($kind:ident, $id:ty, $socket:ty, $at_mut:ident $(, $at:ident)?) => {
        $(#[inline]
        pub(crate) fn $at(&self, id: $id) -> Option<&$socket> {
            match self.slab.at(id.key())? {
                Socket::$kind(socket) => Some(socket),
                _ => None,
            }
        })?
        #[inline]
        pub(crate) fn $at_mut(&mut self, id: $id) -> Option<&mut $socket> {
            match self.slab.at_mut(id.key())? {
                Socket::$kind(socket) => Some(socket),
                _ => None,
            }
        }
    };
}

impl Sockets {
    /// All sockets, to change, in order of their places.
    #[cfg(feature = "freeze")]
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Socket> {
        self.slab.iter_mut().map(|(_, socket)| socket)
    }
    typed_access!(Tcp, TcpSocketId, TcpSocket, tcp_mut, tcp);
    typed_access!(Listener, ListenerId, Listener, listener_mut, listener);
    typed_access!(Udp, UdpSocketId, UdpSocket, udp_mut, udp);
    typed_access!(Echo, EchoSocketId, EchoSocket, echo_mut);
    typed_access!(Probe, ProbeSocketId, ProbeSocket, probe_mut);

    /// A connection that the application holds.
    #[inline]
    pub(crate) fn held_tcp(&self, id: TcpSocketId) -> Result<&TcpSocket, SocketError> {
        self.tcp(id).filter(|flow| !flow.has(TcpSocketFlags::SILENT)).ok_or(SocketError::NoSocket)
    }
    /// A connection that the application holds, to change.
    #[inline]
    pub(crate) fn held_tcp_mut(&mut self, id: TcpSocketId) -> Result<&mut TcpSocket, SocketError> {
        self.tcp_mut(id).filter(|flow| !flow.has(TcpSocketFlags::SILENT)).ok_or(SocketError::NoSocket)
    }

    /// A UDP socket that the application holds.
    pub(crate) fn held_udp(&self, id: UdpSocketId) -> Result<&UdpSocket, SocketError> {
        self.udp(id).filter(|udp| !udp.is_closed()).ok_or(SocketError::NoSocket)
    }
    /// A UDP socket that the application holds, to change.
    pub(crate) fn held_udp_mut(&mut self, id: UdpSocketId) -> Result<&mut UdpSocket, SocketError> {
        self.udp_mut(id).filter(|udp| !udp.is_closed()).ok_or(SocketError::NoSocket)
    }

    /// The typed identifier of a socket of any kind.
    #[inline]
    pub(crate) fn typed(&self, socket: SocketId) -> Option<AnySocketId> {
        let key = socket.0;
        Some(match self.slab.at(key)? {
            Socket::Tcp(_) => AnySocketId::Tcp(TcpSocketId::of(key)),
            Socket::Listener(_) => AnySocketId::Listener(ListenerId::of(key)),
            Socket::Udp(_) => AnySocketId::Udp(UdpSocketId::of(key)),
            Socket::Echo(_) => AnySocketId::Echo(EchoSocketId::of(key)),
            Socket::Probe(_) => AnySocketId::Probe(ProbeSocketId::of(key)),
        })
    }
    /// The socket at a place of the table.
    #[inline]
    pub(crate) fn at_place(&self, place: usize) -> Option<SocketId> {
        self.slab.key_at(place).map(SocketId)
    }
    /// The typed identifier of the socket at a place of the table.
    #[inline]
    pub(crate) fn typed_at(&self, place: usize) -> Option<AnySocketId> {
        self.typed(self.at_place(place)?)
    }
    /// The connection at a place of the table.
    pub(crate) fn tcp_at_place(&self, place: usize) -> Option<TcpSocketId> {
        self.typed_at(place)?.tcp()
    }
    /// A socket of any kind.
    #[inline]
    pub(crate) fn any(&self, socket: SocketId) -> Option<&Socket> {
        self.slab.at(socket.0)
    }
    #[inline]
    pub(crate) fn any_mut(&mut self, socket: SocketId) -> Option<&mut Socket> {
        self.slab.at_mut(socket.0)
    }

    /// Adds a connection that holds no memory yet; `None` when the table is full.
    #[inline(always)]
    pub(super) fn insert_tcp(&mut self, flow: TcpSocket) -> Option<TcpSocketId> {
        let key = self.slab.insert(Socket::Tcp(flow)).ok()?;
        self.connections += 1;
        Some(TcpSocketId::of(key))
    }
    /// Adds a socket of another kind that holds no memory yet; `None` when the table is full.
    pub(super) fn insert(&mut self, socket: Socket) -> Option<SocketId> {
        let takes_datagrams = socket.datagrams().is_some();
        let key = self.slab.insert(socket).ok()?;
        self.datagram_sockets += usize::from(takes_datagrams);
        Some(SocketId(key))
    }
    /// Gives a UDP socket another identifier: that which the application has finds nothing any more.
    pub(crate) fn renew_udp(&mut self, id: UdpSocketId) -> Option<UdpSocketId> {
        let socket = self.slab.remove(id.key())?;
        self.slab.insert(socket).ok().map(UdpSocketId::of)
    }
    /// The identifier that the next socket gets, a connection; `None` when the table is full.
    pub(crate) fn next_tcp_id(&self) -> Option<TcpSocketId> {
        self.slab.next_key().map(TcpSocketId::of)
    }
    /// Takes a socket out.
    pub(super) fn remove(&mut self, socket: SocketId) -> Option<Socket> {
        let removed = self.slab.remove(socket.0);
        self.datagram_sockets -= usize::from(removed.as_ref().and_then(Socket::datagrams).is_some());
        removed
    }
    /// Drops a connection in place.
    pub(super) fn discard_tcp(&mut self, id: TcpSocketId) {
        self.connections -= usize::from(self.slab.discard(id.key()));
    }

    /// Number of connections, orphans included.
    pub(crate) fn connections(&self) -> usize {
        self.connections
    }
    /// What a socket is ready for. While it waits for memory to send it is not writable: a task that writes whenever it may
    /// would find none each time.
    pub(crate) fn readiness(&self, socket: SocketId) -> Readiness {
        let readiness = match self.any(socket) {
            None => Readiness::empty(),
            Some(Socket::Tcp(flow)) => flow.readiness(),
            Some(Socket::Listener(_)) => {
                let waits = self.listening.acceptable(ListenerId::of(socket.0)) > 0;
                Readiness::empty().with_if(Readiness::ACCEPTABLE, waits)
            }
            Some(Socket::Udp(udp)) => udp.readiness(),
            Some(Socket::Echo(echo)) => echo.readiness(),
            Some(Socket::Probe(prober)) => prober.readiness(),
        };
        let is_over = readiness.intersects(Readiness::CLOSED | Readiness::ERROR);
        match self.schedule.waits_for_memory(socket.0.index()) && !is_over {
            true => readiness.difference(Readiness::WRITABLE),
            false => readiness,
        }
    }
    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }
    /// Places of the table, taken or free.
    pub(crate) fn places(&self) -> usize {
        self.slab.places()
    }
    /// All sockets, in order of their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SocketId, &Socket)> {
        self.slab.iter().map(|(key, socket)| (SocketId(key), socket))
    }
}
