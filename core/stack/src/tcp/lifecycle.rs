//! Life cycle of connections: opening, closing, and calls that any kind of socket has.

//! Calls of applications on TCP connections and listeners.

use crate::error::SocketError;
use crate::memory::Holders;
use crate::parts::{Parts, tcp_environment};
use crate::sockets::{
    AnySocketId, ListenerId, Readiness, Socket, SocketId, TcpSocket, TcpSocketFlags, TcpSocketId,
};
use crate::udp::UdpSockets;
use inhost_base::{Duration, Endpoint, Instant};
use inhost_event::{Sink, TcpState};

impl Parts {
    /// Lets the SYN go that waited for the first data.
    pub(crate) fn end_defer_accept(&mut self, key: TcpSocketId, now: Instant, sink: &mut dyn Sink) {
        let Some(flow) = self.sockets.tcp_mut(key) else { return };
        flow.clear(TcpSocketFlags::DEFERRED);
        flow.connection_mut().opening().release(&mut tcp_environment!(self, now, key, sink));
    }
    /// Ends an orphan in TIME-WAIT in favour of an active open with the same endpoints, which happens only when the
    /// application chose its port. The initial sequence number has moved on since, so that old segments do not fit (RFC
    /// 9293 §3.4.3). True when the endpoints are free.
    pub(crate) fn replace_time_wait(&mut self, local: Endpoint, remote: Endpoint, now: Instant) -> bool {
        let Some(key) = self.demux.search_tcp(&self.sockets, local, remote) else { return true };
        let Some(flow) = self.sockets.tcp(key) else { return true };
        let next = flow.connection().info(now).send_next;
        let (initial, _) = self.demux.initial_sequence(local, remote, now);
        let safe = next.precedes(initial) && flow.has(TcpSocketFlags::ORPHAN);
        let gives_way = safe && flow.connection().state() == TcpState::TimeWait;
        if gives_way {
            self.counters.time_wait_reused += 1;
            self.reap(key);
        }
        gives_way
    }
    pub(crate) fn held_flow(&mut self, socket: TcpSocketId) -> Result<&mut TcpSocket, SocketError> {
        let flow = self.sockets.tcp_mut(socket).ok_or(SocketError::NoSocket)?;
        let is_held = flow.has(TcpSocketFlags::HELD) && !flow.has(TcpSocketFlags::SILENT);
        if is_held { Ok(flow) } else { Err(SocketError::WrongKind) }
    }
    pub(crate) fn close_flow(&mut self, key: TcpSocketId, now: Instant, sink: &mut dyn Sink) {
        self.schedule.cancel_notice(key.place());
        let Some(flow) = self.sockets.tcp(key) else { return };
        if flow.is_over() {
            return self.reap(key);
        }
        if flow.has(TcpSocketFlags::HELD) || self.optional.linger(key) == Some(Duration::ZERO) {
            return self.abort_flow(key, now, sink);
        }
        self.add_orphan(key, now, sink);
        let Some(flow) = self.sockets.tcp(key) else { return };
        if flow.has(TcpSocketFlags::OPTIONAL_STATE)
            && let Some(linger) = self.optional.linger(key)
        {
            // Data not delivered by then is lost, and the peer gets a reset.
            self.look_at(key, now + linger);
        }
        let Some(flow) = self.sockets.tcp_mut(key) else { return };
        // spec: RFC9293 SHLD-3
        let outcome = flow.connection_mut().detach(&mut tcp_environment!(self, now, key, sink));
        self.apply(key, outcome, now, sink);
    }
    pub(crate) fn close(
        &mut self,
        socket: SocketId,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), SocketError> {
        match self.sockets.typed(socket).ok_or(SocketError::NoSocket)? {
            AnySocketId::Tcp(id) => {
                self.sockets.held_tcp(id)?;
                self.close_flow(id, now, sink);
            }
            AnySocketId::Listener(id) => self.close_listener(id, now, sink),
            AnySocketId::Udp(id) => UdpSockets::new(self).close(id, now),
            // Nobody is left to receive the answers.
            AnySocketId::Echo(_) | AnySocketId::Probe(_) => self.remove_datagram_socket(socket),
        }
        Ok(())
    }
    pub(crate) fn readiness(&self, socket: SocketId) -> Readiness {
        match self.sockets.any(socket) {
            None => Readiness::NONE,
            Some(Socket::Tcp(flow)) => flow.readiness(),
            Some(Socket::Listener(_)) => {
                let waits = self.listening.acceptable(ListenerId::of(socket.0)) > 0;
                Readiness::NONE.with_if(Readiness::ACCEPTABLE, waits)
            }
            Some(Socket::Udp(udp)) => udp.readiness(),
            Some(Socket::Echo(echo)) => echo.readiness(),
            Some(Socket::Probe(prober)) => prober.readiness(),
        }
    }
    pub(crate) fn endpoints(&self, socket: SocketId) -> Option<(Endpoint, Option<Endpoint>)> {
        match self.sockets.any(socket)? {
            Socket::Tcp(flow) => Some((flow.local(), Some(flow.remote()))),
            Socket::Listener(listener) => Some((listener.local(), None)),
            Socket::Udp(udp) => Some((udp.local(), udp.remote())),
            Socket::Echo(_) | Socket::Probe(_) => None,
        }
    }
    /// Whether a connection that receives holds more than its share while memory is short.
    #[cold]
    pub(crate) fn takes_more_than_its_share(
        &mut self,
        key: TcpSocketId,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> bool {
        self.check_holders(now, sink);
        let share_bytes = self.memory.share_bytes(&self.sockets);
        let flow = self.sockets.tcp(key);
        share_bytes == 0 || flow.is_some_and(|flow| flow.connection().held_bytes() > share_bytes)
    }
    /// Whether a connection that sends holds more than its share while memory is short.
    #[cold]
    pub(crate) fn sends_more_than_its_share(
        &mut self,
        key: TcpSocketId,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> bool {
        self.check_holders(now, sink);
        let share_bytes = self.memory.send_share_bytes(&self.sockets);
        self.sockets.tcp(key).map(TcpSocket::connection).is_some_and(|connection| {
            connection.held_bytes() > share_bytes || connection.sender().waits_behind_closed_window()
        })
    }
    /// Looks at a few sockets while memory is short, and resets one whose peer takes nothing: what waits for it is the
    /// memory of others.
    fn check_holders(&mut self, now: Instant, sink: &mut dyn Sink) {
        let Parts { memory, sockets, schedule, random, counters, .. } = self;
        let mut holders = Holders::new(sockets, schedule, random, counters);
        let Some(key) = memory.check_some(&mut holders, now, sink) else { return };
        let Some(flow) = self.sockets.tcp_mut(key) else { return };
        let outcome = flow.connection_mut().abort(&mut tcp_environment!(self, now, key, sink));
        self.counters.closed_windows_reset += 1;
        self.apply(key, outcome, now, sink);
    }
}
