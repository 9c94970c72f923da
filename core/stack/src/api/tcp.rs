//! The TCP calls of applications: connections and listeners.

use crate::api::{Calls, TcpSockets};
use crate::demux::Name;
use crate::error::{BindError, ConnectError, ListenError, StreamError};
use crate::flows::{abort_flow, apply, sends_more_than_its_share};
use crate::listen::Listener;
use crate::options::{ConnectOptions, FastOpenCall, ListenOptions};
use crate::quote;
use crate::socket::{Accepted, ListenerId, Refusal, SocketId, TcpSocketId};
use crate::sockets::Socket;
use crate::tcp::{TcpSocket, TcpSocketFlags, can_talk};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use inhost_base::{Endpoint, Instant, LinkId};
use inhost_buf::Packet;
use inhost_datagram::SocketError;
use inhost_ip::Unreachable;
use inhost_tcp::{Connection, SendHow};
use inhost_wire::protocol;
use inhost_wire::tcp::{self, Flags, TcpHeader};

impl<'a> TcpSockets<'a> {
    /// Opens a connection to `remote`. Its SYN leaves with the next [`crate::Stack::transmit`];
    /// [`crate::Readiness::CONNECTED`] or [`crate::Readiness::ERROR`] reports the result.
    pub fn connect(
        &mut self,
        remote: Endpoint,
        options: ConnectOptions,
    ) -> Result<TcpSocketId, ConnectError> {
        let Calls { sockets, env, .. } = self;
        let now = env.now();
        let ConnectOptions { local, link, source_route, tcp, fast_open, fast_open_without_cookie } = options;
        // spec: RFC9293 MUST-46
        if !can_talk(remote.address) || remote.port == 0 {
            return Err(ConnectError::BadRemote);
        }
        // spec: RFC9293 MUST-43
        // spec: RFC9293 MUST-44
        let path = match &source_route {
            Some(route) => {
                let ends = (local.address, remote.address);
                sockets.optional().path_by(env.paths_mut(), route, ends, link, now)?
            }
            None => env.route(remote.address, local.address, link)?,
        };
        if env.paths().is_broadcast(path.link, remote.address) {
            return Err(ConnectError::BadRemote);
        }
        if sockets.next_tcp_id().is_none() {
            return Err(ConnectError::TooManySockets);
        }
        let asked = local.port;
        let chosen = match asked {
            0 => {
                let chosen = sockets.choose_tcp_port(path.source, remote, env.random());
                chosen.map(|(port, hash)| (port, Some(hash)))
            }
            port => Some((port, None)),
        };
        let (port, name_hash) = chosen.ok_or(ConnectError::NoPort)?;
        let local = Endpoint { address: path.source, port };
        let name = &Name::tcp(local, remote);
        // Loopback traffic never crosses to another shard.
        if path.link != LinkId(0) && !sockets.shares(name) {
            return Err(ConnectError::NoPort);
        }
        if local == remote || !(asked == 0 || sockets.replace_time_wait(name, now, env.resources())) {
            return Err(ConnectError::InUse);
        }
        let own = tcp.map(Arc::new);
        let mut open = sockets.open(&path, name, now);
        let key = sockets.next_tcp_id().ok_or(ConnectError::TooManySockets)?;
        let mut flags = if link.is_some() { TcpSocketFlags::BOUND } else { TcpSocketFlags::default() };
        if fast_open != FastOpenCall::Off {
            let calls = sockets.listening_mut().fast_open();
            calls.prepare(&mut open, remote.address, fast_open_without_cookie, now);
            // What bears data may wait for it.
            open.hold_syn = open.syn_data_mss > 0 && fast_open == FastOpenCall::OnFirstSend;
            flags = if open.hold_syn { flags.union(TcpSocketFlags::DEFERRED) } else { flags };
        }
        let config = own.as_ref().unwrap_or(sockets.tcp_config());
        let connection = Connection::connect(config, open, &mut env.tcp(key.key()));
        let flow = TcpSocket::new(connection, &path, local.port, remote.port, None, flags);
        let key = sockets.add_flow(flow, name_hash).ok_or(ConnectError::TooManySockets)?;
        sockets.set_route(key, source_route);
        env.counters().connections_opened += 1;
        sockets.reschedule(key, now);
        Ok(key)
    }
    /// With [`inhost_tcp::Policy::pushes_writes_and_bursts`]: the data sent so far ends a burst; if `pushed`, its
    /// last segment has PSH.
    pub fn end_burst(&mut self, socket: TcpSocketId, pushed: bool) {
        if let Some(flow) = self.sockets.tcp_mut(socket) {
            flow.connection_mut().end_burst(pushed);
        }
    }

    /// Listens for connections to `local`; port 0 lets the host choose one. An unspecified address stands for every address of ours: `0.0.0.0` for IPv4,
    /// `::` for both families. A tentative address is allowed; callers can connect when duplicate address detection has
    /// passed.
    // spec: RFC9293 MUST-41
    // spec: RFC9293 MUST-42
    pub fn listen(&mut self, local: Endpoint, mut options: ListenOptions) -> Result<ListenerId, ListenError> {
        let paths = self.env.paths();
        let is_ours = local.address.is_unspecified() || paths.is_local_or_tentative(local.address);
        if !is_ours && !options.any_address {
            return Err(BindError::NotOurs);
        }
        let port = match local.port {
            0 if !options.any_address => {
                self.sockets.choose_bound_port(protocol::TCP, local.address, self.env.random())?
            }
            port => port,
        };
        let local = Endpoint { port, ..local };
        let tcp = options.tcp.take().map_or_else(|| self.sockets.tcp_config().clone(), Arc::new);
        let listener = Listener::new(local, options, tcp, self.env.now());
        let SocketId(key) = self.sockets.bind(Socket::Listener(Box::new(listener)))?;
        Ok(ListenerId::of(key))
    }

    /// Takes a connection from a listener, or `None` when none waits. With [`ListenOptions::hold_syn`] its SYN is not
    /// answered yet.
    pub fn accept(&mut self, listener: ListenerId) -> Result<Option<Accepted>, SocketError> {
        self.sockets.listener(listener).ok_or(SocketError::NoSocket)?;
        while let Some(place) = self.sockets.listening_mut().pop_acceptable(listener) {
            let Some(key) = self.sockets.tcp_at_place(place) else { continue };
            let Some(flow) = self.sockets.tcp_mut(key) else { continue };
            flow.set(TcpSocketFlags::UNCLAIMED, false);
            let held = flow.has(TcpSocketFlags::HELD);
            let accepted = Accepted { socket: key, local: flow.local(), remote: flow.remote(), held };
            self.sockets.notify(key.into());
            return Ok(Some(accepted));
        }
        Ok(None)
    }
    /// Answers the held SYN of an accepted connection; [`crate::Readiness::CONNECTED`] follows.
    pub fn proceed(&mut self, socket: TcpSocketId) -> Result<(), SocketError> {
        let flow = self.sockets.held_back_mut(socket)?;
        flow.set(TcpSocketFlags::HELD, false);
        flow.connection_mut().release_syn(&mut self.env.tcp(socket.key()));
        self.sockets.reschedule(socket, self.env.now());
        Ok(())
    }
    /// Ends a connection whose SYN is held. The socket is gone.
    pub fn refuse(&mut self, socket: TcpSocketId, refusal: Refusal) -> Result<(), SocketError> {
        let flow = self.sockets.held_back_mut(socket)?;
        let (link, quoted) = (flow.link(), quoted_syn(flow, self.env.now()));
        match refusal {
            Refusal::Reset => return self.abort(socket),
            Refusal::Silence => {}
            Refusal::Unreachable => {
                let (ip, mut environment) = self.env.ip();
                ip.unreachable(link, Unreachable::Host, &quoted, &mut environment);
            }
        }
        self.sockets.reap(socket, self.env.resources());
        Ok(())
    }

    /// Takes as many of `bytes` as there is room for, pushed. An `Ok` is never 0 unless `bytes` is empty.
    pub fn send(&mut self, socket: TcpSocketId, bytes: &[u8]) -> Result<usize, StreamError> {
        self.send_with(socket, bytes, SendHow::default())
    }
    /// As [`TcpSockets::send`], and says how.
    pub fn send_with(
        &mut self,
        socket: TcpSocketId,
        bytes: &[u8],
        how: SendHow,
    ) -> Result<usize, StreamError> {
        self.add_to_stream(socket, |connection, env| connection.send(bytes, how, env))
    }
    /// As [`TcpSockets::send`], without a copy: accepted data is split from the front of `bytes` and kept until the
    /// peer has acknowledged it. The checksum of each segment is computed once, when it is first sent on a device that
    /// needs it.
    pub fn lend(
        &mut self,
        socket: TcpSocketId,
        bytes: &mut Bytes,
        how: SendHow,
    ) -> Result<usize, StreamError> {
        self.add_to_stream(socket, |connection, env| connection.lend(bytes, how, env))
    }
    #[inline]
    fn add_to_stream(
        &mut self,
        socket: TcpSocketId,
        add: impl FnOnce(
            &mut Connection,
            &mut inhost_tcp::Environment<'_>,
        ) -> Result<usize, inhost_tcp::StreamError>,
    ) -> Result<usize, StreamError> {
        let Calls { sockets, env, .. } = self;
        let now = env.now();
        if env.pool().is_short_to_send() {
            sockets.held_tcp(socket)?;
            if sends_more_than_its_share(sockets, socket, env) {
                sockets.schedule_mut().wait_for_memory(socket.place(), now);
                return Err(StreamError::WouldBlock);
            }
        }
        let env = &mut env.tcp(socket.key());
        let mut lacks_memory = false;
        let sent = sockets.call(socket, env, |connection, env| {
            let sent = add(connection, env).map_err(StreamError::from);
            lacks_memory = sent == Err(StreamError::WouldBlock) && connection.sender().writable_bytes() > 0;
            sent
        });
        if lacks_memory {
            sockets.schedule_mut().wait_for_memory(socket.place(), now);
        }
        sent
    }
    /// Lets the application take something from a connection.
    #[inline(always)]
    fn take<R>(
        &mut self,
        socket: TcpSocketId,
        take: impl FnOnce(&mut Connection, &mut inhost_tcp::Environment<'_>) -> Result<R, inhost_tcp::StreamError>,
    ) -> Result<R, StreamError> {
        self.sockets.call(socket, &mut self.env.tcp(socket.key()), |connection, env| {
            take(connection, env).map_err(StreamError::from)
        })
    }
    /// Takes the packet with the first bytes that wait, to be read where they lie: an empty one at the end of the stream.
    /// Its memory is the host's: give it back to [`crate::Stack::pool`].
    pub fn borrow(&mut self, socket: TcpSocketId) -> Result<Packet, StreamError> {
        self.take(socket, |connection, env| connection.borrow(env))
    }
    /// Moves bytes that arrived in order into `into`: `Ok(0)` (for a place that is not empty) at the end of the
    /// stream.
    pub fn read(&mut self, socket: TcpSocketId, into: &mut [u8]) -> Result<usize, StreamError> {
        self.take(socket, |connection, env| connection.read(into, env))
    }
    /// The first bytes that wait, as far as they lie in one piece; [`TcpSockets::consume`] takes them.
    pub fn front(self, socket: TcpSocketId) -> Result<&'a [u8], SocketError> {
        Ok(self.sockets.held_tcp(socket)?.connection().receiver().front())
    }
    /// Drops up to `bytes` from the front of what waits.
    pub fn consume(&mut self, socket: TcpSocketId, bytes: usize) -> Result<(), SocketError> {
        self.sockets.call(socket, &mut self.env.tcp(socket.key()), |connection, env| {
            connection.consume(bytes, env);
            Ok(())
        })
    }
    /// Copies bytes that arrived in order without taking them.
    pub fn peek(&self, socket: TcpSocketId, into: &mut [u8]) -> Result<usize, StreamError> {
        self.sockets.held_tcp(socket)?.connection().receiver().peek(into).map_err(StreamError::from)
    }
    /// Closes the sending side: queued data is still sent, then a FIN. The receiving side can still be read.
    pub fn shutdown(&mut self, socket: TcpSocketId) -> Result<(), SocketError> {
        let flow = self.sockets.held_tcp_mut(socket)?;
        let outcome = flow.connection_mut().close(&mut self.env.tcp(socket.key()));
        apply(self.sockets, socket, &outcome, &mut self.env);
        Ok(())
    }
    /// Resets the connection. The socket is gone.
    pub fn abort(&mut self, socket: TcpSocketId) -> Result<(), SocketError> {
        self.sockets.held_tcp(socket)?;
        abort_flow(self.sockets, socket, &mut self.env);
        Ok(())
    }
    /// Forgets every fast-open cookie that other hosts gave, and which of them do not take data with a SYN.
    pub fn forget_destinations(&mut self) {
        self.sockets.listening_mut().fast_open().forget_destinations();
    }
    /// Changes the key of the fast-open cookies that are given away. Cookies of `previous` hold, too, and no others.
    pub fn set_fast_open_keys(&mut self, key: [u8; 16], previous: Option<[u8; 16]>) {
        self.sockets.listening_mut().fast_open().set_keys(key, previous);
    }

    /// For tests of the whole host: moves the numbers of a connection on the wire; see
    /// [`inhost_tcp::Connection::renumber`]. Whether it did.
    #[doc(hidden)]
    pub fn renumber(&mut self, socket: TcpSocketId, send_by: u32, receive_by: u32) -> bool {
        let flow = self.sockets.tcp_mut(socket);
        flow.is_some_and(|flow| flow.connection_mut().renumber(send_by, receive_by))
    }
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
