//! The TCP calls of applications: connections and listeners.

use crate::error::{BindError, ConnectError, ListenError, SocketError, StreamError};
use crate::listen::Listener;
use crate::options::{ConnectOptions, FastOpenCall, ListenOptions};
use crate::parts::{Parts, ip_environment, tcp_environment};
use crate::quote;
use crate::sockets::{Accepted, ListenerId, Socket, SocketId, TcpSocket, TcpSocketFlags, TcpSocketId};
use crate::tcp::can_talk;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use inhost_base::{Endpoint, Instant, IpAddr, LinkId};
use inhost_buf::Packet;
use inhost_event::Sink;
use inhost_ip::Unreachable;
use inhost_tcp::{Connection, Environment, SendError, SendHow};
use inhost_wire::protocol;
use inhost_wire::tcp::{self, Flags, TcpHeader};

/// Calls on TCP connections and listeners: see [`crate::Stack::tcp`].
///
/// ```
/// use inhost_base::{Instant, Ipv4Addr};
/// use inhost_event::Ignore;
/// use inhost_stack::{ConnectOptions, Endpoint, ListenOptions, Stack, StackConfig};
///
/// let now = Instant::ZERO;
/// let mut host = Stack::new(StackConfig::default(), [7; 32], now);
/// let here = Endpoint::new(Ipv4Addr::LOCALHOST, 7);
/// let listener = host.tcp().listen(here, ListenOptions::default(), now).unwrap();
/// host.tcp().connect(here, ConnectOptions::default(), now, &mut Ignore).unwrap();
/// host.timeout(now, &mut Ignore); // The handshake, over the loopback.
/// assert!(host.tcp().accept(listener, now).unwrap().is_some());
/// ```
#[derive(Debug)]
pub struct TcpSockets<'a> {
    parts: &'a mut Parts,
}

impl<'a> TcpSockets<'a> {
    pub(crate) fn new(parts: &'a mut Parts) -> TcpSockets<'a> {
        TcpSockets { parts }
    }
    /// The same calls, for a step of another call.
    fn again(&mut self) -> TcpSockets<'_> {
        TcpSockets { parts: self.parts }
    }

    /// Opens a connection to `remote`. Its SYN leaves with the next [`crate::Stack::transmit`];
    /// [`crate::Readiness::CONNECTED`] or [`crate::Readiness::ERROR`] reports the result.
    pub fn connect(
        self,
        remote: Endpoint,
        options: ConnectOptions,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<TcpSocketId, ConnectError> {
        self.parts.tick(now);
        let ConnectOptions { local, link, source_route, tcp, fast_open, fast_open_without_cookie } = options;
        // spec: RFC9293 MUST-46
        if !can_talk(remote.address) || remote.port == 0 {
            return Err(ConnectError::BadRemote);
        }
        // spec: RFC9293 MUST-43
        // spec: RFC9293 MUST-44
        let path = match &source_route {
            Some(route) => {
                let Parts { source_routes, ip, .. } = &mut *self.parts;
                source_routes.path_by(ip, route, (local.address, remote.address), link, now)?
            }
            None => self.parts.ip.paths_mut().route(remote.address, local.address, link, now)?,
        };
        if self.parts.ip.paths().is_broadcast(path.link, remote.address) {
            return Err(ConnectError::BadRemote);
        }
        if self.parts.sockets.is_full() {
            return Err(ConnectError::TooManySockets);
        }
        let asked = local.port;
        let (port, name_hash) = match asked {
            0 => {
                let Parts { demux, sockets, config, random, .. } = &mut *self.parts;
                let chosen = demux.choose_tcp_port(sockets, config, path.source, remote, random);
                chosen.map(|(port, hash)| (port, Some(hash)))
            }
            port => Some((port, None)),
        }
        .ok_or(ConnectError::NoPort)?;
        let local = Endpoint { address: path.source, port };
        // Loopback traffic never crosses to another shard.
        let comes_by_device = path.link != LinkId(0);
        if self.parts.config.share.is_some_and(|share| comes_by_device && !share.has(local, remote)) {
            return Err(ConnectError::NoPort);
        }
        if local == remote || !(asked == 0 || self.parts.replace_time_wait(local, remote, now)) {
            return Err(ConnectError::InUse);
        }
        let own = tcp.map(Arc::new);
        let open = self.parts.open(&path, local, remote, now);
        let key = self.parts.sockets.next_tcp_id().ok_or(ConnectError::TooManySockets)?;
        let config = own.as_ref().unwrap_or(&self.parts.tcp_config);
        let mut connection =
            Connection::connect(config, open, &mut tcp_environment!(self.parts, now, key, sink));
        let bound = if link.is_some() { TcpSocketFlags::BOUND } else { TcpSocketFlags::default() };
        let mut flags = bound;
        if fast_open != FastOpenCall::Off {
            let can_wait = self.parts.listening.fast_open().prepare(
                &mut connection,
                remote.address,
                fast_open_without_cookie,
                open.default_mss,
                &self.parts.config.fast_open,
                now,
            );
            if can_wait && fast_open == FastOpenCall::OnFirstSend {
                connection.opening().hold();
                flags = flags.and(TcpSocketFlags::DEFERRED);
            }
        }
        let flow = TcpSocket::new(connection, &path, local.port, remote.port, None, flags);
        let key = self.parts.add_flow(flow, name_hash).ok_or(ConnectError::TooManySockets)?;
        self.parts.source_routes.insert(key, source_route);
        self.parts.counters.connections_opened += 1;
        self.parts.reschedule(key, now);
        Ok(key)
    }

    /// Opens a connection and sends as many of `bytes` as there is room for, as one step: the socket, and how many. With
    /// [`ConnectOptions::fast_open`] and a cookie the first of them go with the SYN.
    pub fn connect_with(
        mut self,
        remote: Endpoint,
        options: ConnectOptions,
        bytes: &[u8],
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(TcpSocketId, usize), ConnectError> {
        let socket = self.again().connect(remote, options, now, sink)?;
        Ok((socket, self.send(socket, bytes, now, sink).unwrap_or(0)))
    }
    /// With [`inhost_tcp::PushPlacement::WritesAndHalfWindows`]: the data sent so far ends a burst; if `pushed`, its
    /// last segment has PSH.
    pub fn end_burst(self, socket: TcpSocketId, pushed: bool) {
        if let Some(flow) = self.parts.sockets.tcp_mut(socket) {
            flow.connection_mut().end_burst(pushed);
        }
    }

    /// Listens for connections to `local`; port 0 lets the host choose one. An unspecified address stands for every address of ours: `0.0.0.0` for IPv4,
    /// `::` for both families. A tentative address is allowed; callers can connect when duplicate address detection has
    /// passed.
    // spec: RFC9293 MUST-41
    // spec: RFC9293 MUST-42
    pub fn listen(
        mut self,
        local: Endpoint,
        options: ListenOptions,
        now: Instant,
    ) -> Result<ListenerId, ListenError> {
        self.parts.tick(now);
        let is_ours =
            local.address.is_unspecified() || self.parts.ip.paths().is_local_or_tentative(local.address);
        if !is_ours && !options.any_address {
            return Err(BindError::NotOurs);
        }
        let port = match local.port {
            0 if !options.any_address => self.choose_port(local.address).ok_or(BindError::NoPort)?,
            port => port,
        };
        let local = Endpoint { port, ..local };
        let tcp = options.tcp.clone().map_or_else(|| self.parts.tcp_config.clone(), Arc::new);
        let listener = Listener::new(local, options, tcp, now);
        let SocketId(key) =
            self.parts.demux.bind(&mut self.parts.sockets, Socket::Listener(Box::new(listener)))?;
        Ok(ListenerId::of(key))
    }

    /// A free port for a listener at `address`.
    fn choose_port(&mut self, address: IpAddr) -> Option<u16> {
        let Parts { demux, config, sockets, random, .. } = &mut *self.parts;
        demux.choose_bound_port(sockets, config, (protocol::TCP, address), random)
    }
    /// Takes a connection from a listener, or `None` when none waits. With [`ListenOptions::hold_syn`] its SYN is not
    /// answered yet.
    pub fn accept(self, listener: ListenerId, now: Instant) -> Result<Option<Accepted>, SocketError> {
        self.parts.tick(now);
        self.parts.sockets.listener(listener).ok_or(SocketError::NoSocket)?;
        while let Some(place) = self.parts.listening.pop_acceptable(listener) {
            let Some(key) = self.parts.sockets.tcp_at_place(place) else { continue };
            let Some(flow) = self.parts.sockets.tcp_mut(key) else { continue };
            flow.clear(TcpSocketFlags::UNCLAIMED);
            let held = flow.has(TcpSocketFlags::HELD);
            let accepted = Accepted { socket: key, local: flow.local(), remote: flow.remote(), held };
            self.parts.notify_tcp(key);
            return Ok(Some(accepted));
        }
        Ok(None)
    }
    /// Answers the held SYN of an accepted connection; [`crate::Readiness::CONNECTED`] follows.
    pub fn proceed(self, socket: TcpSocketId, now: Instant, sink: &mut dyn Sink) -> Result<(), SocketError> {
        self.parts.tick(now);
        let flow = self.parts.held_flow(socket)?;
        flow.clear(TcpSocketFlags::HELD);
        let Some(flow) = self.parts.sockets.tcp_mut(socket) else {
            return Err(SocketError::NoSocket);
        };
        flow.connection_mut().opening().release(&mut tcp_environment!(self.parts, now, socket, sink));
        self.parts.reschedule(socket, now);
        Ok(())
    }
    /// Ends a connection whose SYN is held. The socket is gone.
    pub fn refuse(
        self,
        socket: TcpSocketId,
        refusal: Refusal,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), SocketError> {
        self.parts.tick(now);
        let flow = self.parts.held_flow(socket)?;
        let (link, quoted) = (flow.link(), quoted_syn(flow, now));
        match refusal {
            Refusal::Reset => return self.abort(socket, now, sink),
            Refusal::Silence => {}
            Refusal::Unreachable => {
                let mut environment = ip_environment!(self.parts, now, sink);
                self.parts.ip.unreachable(link, Unreachable::Host, &quoted, &mut environment);
            }
        }
        self.parts.reap(socket);
        Ok(())
    }

    /// Takes as many of `bytes` as there is room for, pushed. An `Ok` is never 0 unless `bytes` is empty.
    pub fn send(
        self,
        socket: TcpSocketId,
        bytes: &[u8],
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<usize, StreamError> {
        self.send_with(socket, bytes, SendHow::default(), now, sink)
    }
    /// As [`TcpSockets::send`], and says how.
    pub fn send_with(
        self,
        socket: TcpSocketId,
        bytes: &[u8],
        how: SendHow,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<usize, StreamError> {
        self.add_to_stream(socket, now, sink, |connection, env| connection.send(bytes, how, env))
    }
    /// As [`TcpSockets::send`], without a copy: accepted data is split from the front of `bytes` and kept until the
    /// peer has acknowledged it. The checksum of each segment is computed once, when it is first sent on a device that
    /// needs it.
    pub fn lend(
        self,
        socket: TcpSocketId,
        bytes: &mut Bytes,
        how: SendHow,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<usize, StreamError> {
        self.add_to_stream(socket, now, sink, |connection, env| connection.lend(bytes, how, env))
    }
    #[inline]
    fn add_to_stream(
        self,
        socket: TcpSocketId,
        now: Instant,
        sink: &mut dyn Sink,
        add: impl FnOnce(&mut Connection, &mut Environment<'_>) -> Result<usize, SendError>,
    ) -> Result<usize, StreamError> {
        self.parts.tick(now);
        if self.parts.memory.pool().is_short_to_send() {
            self.parts.sockets.held_tcp_mut(socket)?;
            if self.parts.sends_more_than_its_share(socket, now, sink) {
                self.parts.memory.wait(socket.into(), now);
                return Err(StreamError::WouldBlock);
            }
        }
        let flow = self.parts.sockets.held_tcp_mut(socket)?;
        let mut environment = tcp_environment!(self.parts, now, socket, sink);
        let sent = add(flow.connection_mut(), &mut environment);
        let lacks_memory =
            sent == Err(SendError::WouldBlock) && flow.connection().sender().writable_bytes() > 0;
        if flow.has(TcpSocketFlags::DEFERRED) {
            self.parts.end_defer_accept(socket, now, sink);
        }
        self.parts.reschedule(socket, now);
        if lacks_memory {
            self.parts.memory.wait(socket.into(), now);
        }
        sent.map_err(StreamError::from)
    }
    /// Takes the packet with the first bytes that wait, to be read where they lie: an empty one at the end of the stream.
    /// Its memory is the host's; [`TcpSockets::give_back`] releases it.
    pub fn borrow(
        self,
        socket: TcpSocketId,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<Packet, StreamError> {
        self.parts.tick(now);
        let flow = self.parts.sockets.held_tcp_mut(socket)?;
        let borrowed = flow.connection_mut().borrow(&mut tcp_environment!(self.parts, now, socket, sink));
        if flow.has(TcpSocketFlags::DEFERRED) {
            self.parts.end_defer_accept(socket, now, sink);
        }
        self.parts.reschedule(socket, now);
        borrowed.map_err(StreamError::from)
    }
    /// Takes back what [`TcpSockets::borrow`] gave.
    pub fn give_back(self, packet: Packet) {
        self.parts.memory.pool_mut().give(packet);
    }
    /// Moves bytes that arrived in order into `into`: `Ok(0)` (for a place that is not empty) at the end of the
    /// stream.
    pub fn read(
        self,
        socket: TcpSocketId,
        into: &mut [u8],
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<usize, StreamError> {
        self.parts.tick(now);
        let flow = self.parts.sockets.held_tcp_mut(socket)?;
        let mut environment = tcp_environment!(self.parts, now, socket, sink);
        let read = flow.connection_mut().read(into, &mut environment);
        if flow.has(TcpSocketFlags::DEFERRED) {
            // An application that reads first has no data for the SYN.
            self.parts.end_defer_accept(socket, now, sink);
        }
        self.parts.reschedule(socket, now);
        read.map_err(StreamError::from)
    }
    /// The first bytes that wait, as far as they lie in one piece; [`TcpSockets::consume`] takes them.
    pub fn front(self, socket: TcpSocketId) -> Result<&'a [u8], SocketError> {
        Ok(self.parts.sockets.held_tcp(socket)?.connection().receiver().front())
    }
    /// Drops up to `bytes` from the front of what waits.
    pub fn consume(
        self,
        socket: TcpSocketId,
        bytes: usize,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), SocketError> {
        self.parts.tick(now);
        let flow = self.parts.sockets.held_tcp_mut(socket)?;
        flow.connection_mut().consume(bytes, &mut tcp_environment!(self.parts, now, socket, sink));
        self.parts.reschedule(socket, now);
        Ok(())
    }
    /// Copies bytes that arrived in order without taking them.
    pub fn peek(self, socket: TcpSocketId, into: &mut [u8]) -> Result<usize, StreamError> {
        self.parts.sockets.held_tcp(socket)?.connection().receiver().peek(into).map_err(StreamError::from)
    }
    /// Closes the sending side: queued data is still sent, then a FIN. The receiving side can still be read.
    pub fn shutdown(self, socket: TcpSocketId, now: Instant, sink: &mut dyn Sink) -> Result<(), SocketError> {
        self.parts.tick(now);
        let flow = self.parts.sockets.held_tcp_mut(socket)?;
        let outcome = flow.connection_mut().close(&mut tcp_environment!(self.parts, now, socket, sink));
        self.parts.apply(socket, outcome, now, sink);
        Ok(())
    }
    /// Resets the connection. The socket is gone.
    pub fn abort(self, socket: TcpSocketId, now: Instant, sink: &mut dyn Sink) -> Result<(), SocketError> {
        self.parts.tick(now);
        let flow = self.parts.sockets.held_tcp(socket)?;
        if flow.connection().outlives_abort() {
            self.parts.close_flow(socket, now, sink);
        } else {
            self.parts.abort_flow(socket, now, sink);
        }
        Ok(())
    }
    /// Forgets every fast-open cookie that other hosts gave, and which of them do not take data with a SYN.
    pub fn forget_destinations(self) {
        self.parts.listening.fast_open().forget_destinations();
    }
    /// Changes the key of the fast-open cookies that are given away. Cookies of `previous` hold, too, and no others.
    pub fn set_fast_open_keys(self, key: [u8; 16], previous: Option<[u8; 16]>) {
        self.parts.listening.fast_open().set_keys(key, previous);
    }

    /// For tests of the whole host: moves the numbers of a connection on the wire; see
    /// [`inhost_tcp::Connection::renumber`]. Whether it did.
    #[doc(hidden)]
    pub fn renumber(self, socket: TcpSocketId, send_by: u32, receive_by: u32) -> bool {
        let flow = self.parts.sockets.tcp_mut(socket);
        flow.is_some_and(|flow| flow.connection_mut().renumber(send_by, receive_by))
    }
}

/// How a caller is refused whose SYN was held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Refusal {
    /// As if no listener existed.
    #[default]
    Reset,
    /// As if its SYN was lost: it tries again, and is held again.
    Silence,
    /// As a router says it that cannot reach the host (ICMP host unreachable).
    Unreachable,
}

/// The packet of a held SYN for an ICMP error to quote: its IP header and TCP header, with their original lengths.
fn quoted_syn(flow: &TcpSocket, now: Instant) -> Vec<u8> {
    let (caller, called) = (flow.remote(), flow.local());
    let sequence = flow.connection().info(now).receive_next.back(1);
    let mut header = [0; tcp::LENGTH];
    let syn = TcpHeader {
        source_port: caller.port,
        destination_port: called.port,
        sequence,
        flags: Flags::SYN,
        ..TcpHeader::default()
    };
    syn.emit(&mut header);
    quote::packet(caller.address, called.address, protocol::TCP, &header)
}
