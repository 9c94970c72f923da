//! What applications do with connections and listeners.

use crate::apply::is_over;
use crate::entry::{Flow, Marks, Socket};
use crate::error::{BindError, ConnectError, ListenError, SocketError, StreamError};
use crate::fast_open::{FastOpenCall, Pending};
use crate::input::can_talk;
use crate::listener::{Listener, acceptable_of, embryos_of};
use crate::options::{ConnectOptions, ListenOptions};
use crate::socket::{Accepted, Readiness, SocketId};
use crate::socket_options::Inherited;
use crate::stack::{Stack, ip_environment, tcp_environment};
use crate::table::{Name, NameHash};
use bytes::Bytes;
use inhost_base::{Endpoint, Instant, IpAddr, Key, LinkId};
use inhost_buf::Packet;
use inhost_event::{Sink, TcpPhase};
use inhost_ip::Path;
use inhost_tcp::{Connection, Environment, SendError, SendHow, SoftError};
use inhost_wire::ipv4::{self, Ipv4Header};
use inhost_wire::ipv6::{self, Ipv6Header};
use inhost_wire::protocol;
use inhost_wire::tcp::{self, Flags, TcpHeader};
use std::sync::Arc;

impl Stack {
    /// Opens a connection to `remote`. Its SYN leaves with the next [`Stack::transmit`];
    /// [`Readiness::CONNECTED`] or [`Readiness::ERROR`] tells how it ended.
    pub fn connect(
        &mut self,
        remote: Endpoint,
        options: ConnectOptions,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<SocketId, ConnectError> {
        self.tick(now);
        let ConnectOptions { local, link, source_route, tcp, fast_open, fast_open_without_cookie } = options;
        // spec: RFC9293 MUST-46
        if !can_talk(remote.address) || remote.port == 0 {
            return Err(ConnectError::BadRemote);
        }
        // spec: RFC9293 MUST-43
        // spec: RFC9293 MUST-44
        let path = match &source_route {
            Some(route) => self.way_by(route, local.address, remote, link, now)?,
            None => self.ip.route(remote.address, local.address, link, now)?,
        };
        if self.is_broadcast(&path, remote.address) {
            return Err(ConnectError::BadRemote);
        }
        if self.sockets.is_full() {
            return Err(ConnectError::TooManySockets);
        }
        let asked = local.port;
        let (port, name_hash) = match asked {
            0 => self.choose_port(&path, remote).map(|(port, hash)| (port, Some(hash))),
            port => Some((port, None)),
        }
        .ok_or(ConnectError::NoPort)?;
        let local = Endpoint { address: path.source, port };
        // What a host sends to itself no device brings to another shard.
        let comes_by_device = path.link != LinkId(0);
        if self.config.share.is_some_and(|share| comes_by_device && !share.has(local, remote)) {
            return Err(ConnectError::NoPort);
        }
        if local == remote || !(asked == 0 || self.makes_way(local, remote, now)) {
            return Err(ConnectError::InUse);
        }
        let own = tcp.map(Arc::new);
        let open = self.open(&path, local, remote, now);
        let key = self.sockets.next_key().ok_or(ConnectError::TooManySockets)?;
        let config = own.as_ref().unwrap_or(&self.tcp_config);
        let mut connection = Connection::connect(config, open, &mut tcp_environment!(self, now, key, sink));
        let bound = if link.is_some() { Marks::BOUND } else { Marks::default() };
        let mut marks = Marks::ACTIVE.and(bound);
        if fast_open != FastOpenCall::Off {
            let without = fast_open_without_cookie;
            let can_wait =
                self.offer_fast_open(&mut connection, remote.address, without, open.default_mss, now);
            if can_wait && fast_open == FastOpenCall::OnFirstSend {
                connection.hold();
                marks.set(Marks::DEFERRED);
            }
        }
        let flow = Flow::new(connection, &path, local.port, remote.port, key, marks);
        let key = self.add_flow(flow, name_hash).ok_or(ConnectError::TooManySockets)?;
        self.source_routes.insert(key, source_route);
        self.counters.connections_opened += 1;
        self.follow(key, now);
        Ok(SocketId(key))
    }

    /// Opens a connection and sends as many of `bytes` as there is room for, as one step: the socket, and how many. With
    /// [`ConnectOptions::fast_open`] and a cookie the first of them go with the SYN.
    pub fn connect_with(
        &mut self,
        remote: Endpoint,
        options: ConnectOptions,
        bytes: &[u8],
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(SocketId, usize), ConnectError> {
        let socket = self.connect(remote, options, now, sink)?;
        Ok((socket, self.send(socket, bytes, now, sink).unwrap_or(0)))
    }
    /// With [`inhost_tcp::PushPlacement::Linux`]: what was sent so far is one burst with nothing that follows, and when
    /// it was `pushed`, PSH says so.
    pub fn end_burst(&mut self, socket: SocketId, pushed: bool) {
        if let Some(flow) = self.flow_mut(socket.0) {
            flow.connection.end_burst(pushed);
        }
    }
    /// Bytes that a SYN which has not left will bear of what is sent before it does: none without fast open, or without
    /// a cookie.
    pub fn syn_data_room(&self, socket: SocketId) -> usize {
        self.flow(socket.0).map_or(0, |flow| flow.connection.syn_data_room())
    }
    /// Lets the SYN go that waited for the first data.
    fn undefer(&mut self, key: Key, now: Instant, sink: &mut dyn Sink) {
        let Some(Socket::Flow(flow)) = self.sockets.at_mut(key) else { return };
        flow.marks.clear(Marks::DEFERRED);
        flow.connection.release(&mut tcp_environment!(self, now, key, sink));
    }
    /// Whether `address` is a broadcast address on the link that leads there.
    pub(crate) fn is_broadcast(&self, path: &Path, address: IpAddr) -> bool {
        self.ip.is_broadcast(path.link, address)
    }
    /// A free port, and the hash of the two ends with it.
    fn choose_port(&mut self, path: &Path, remote: Endpoint) -> Option<(u16, NameHash)> {
        let Stack { identity, config, flows, bindings, sockets, random, .. } = self;
        let range = (config.ephemeral_ports_first, config.ephemeral_ports_last);
        let address = path.source;
        let mut hash = None;
        let is_free = |port| {
            let local = Endpoint { address, port };
            let name = Name { protocol: protocol::TCP, local, remote };
            let name_hash = flows.hash(&name);
            hash = Some(name_hash);
            let is_it = |key| sockets.at(key).and_then(Socket::flow_name) == Some(name);
            config.share.is_none_or(|share| share.gives_out(port))
                && flows.find_hashed(sockets, name_hash, is_it).is_none()
                && !crate::bind::is_bound(bindings, sockets, protocol::TCP, local)
        };
        let selection = config.port_selection;
        let port = identity.ephemeral_port(selection, range, Some(address), remote, random, is_free)?;
        hash.map(|hash| (port, hash))
    }
    /// A connection in TIME-WAIT that nobody holds makes way for a call of our own with the same ends, which only
    /// happens when the application insists on its port: our clock has moved on since, so that sequence numbers of
    /// old segments do not fit (RFC 9293 §3.4.3). Whether there is none any more.
    fn makes_way(&mut self, local: Endpoint, remote: Endpoint, now: Instant) -> bool {
        let name = Name { protocol: protocol::TCP, local, remote };
        let Some(key) = self.flows.find(&self.sockets, &name) else { return true };
        let Some(flow) = self.flow(key) else { return true };
        let next = flow.connection.info(now).send_next;
        let (initial, _) = self.identity.initial_sequence(local, remote, now);
        let safe = next.precedes(initial) && flow.marks.any(Marks::ORPHAN);
        let gives_way = safe && flow.connection.phase() == TcpPhase::TimeWait;
        if gives_way {
            self.counters.time_wait_reused += 1;
            self.reap(key);
        }
        gives_way
    }

    /// Listens for connections to `local`. An unspecified address stands for every address of ours: `0.0.0.0` for IPv4,
    /// `::` for both families. An address that is still tested for a double can be listened at; callers come when the test
    /// has passed.
    // spec: RFC9293 MUST-41
    // spec: RFC9293 MUST-42
    pub fn listen(
        &mut self,
        local: Endpoint,
        options: ListenOptions,
        now: Instant,
    ) -> Result<SocketId, ListenError> {
        self.tick(now);
        if local.port == 0 && !options.any_address {
            return Err(BindError::NoPort);
        }
        let is_ours = local.address.is_unspecified() || self.ip.is_local_or_tentative(local.address);
        if !is_ours && !options.any_address {
            return Err(BindError::NotOurs);
        }
        let tcp = options.tcp.clone().map_or_else(|| self.tcp_config.clone(), Arc::new);
        let listener = Listener {
            local,
            options,
            tcp,
            inherited: Inherited::default(),
            opened: now,
            overflows: 0,
            cookies_until: now,
            fast_open: Pending::default(),
        };
        let key = self.bind(Socket::Listener(Box::new(listener)))?;
        Ok(SocketId(key))
    }

    /// Takes a connection from a listener, or `None` when none waits. With [`ListenOptions::hold_syn`] its SYN is not
    /// answered yet.
    pub fn accept(&mut self, listener: SocketId, now: Instant) -> Result<Option<Accepted>, SocketError> {
        self.tick(now);
        match self.sockets.at(listener.0).ok_or(SocketError::NoSocket)? {
            Socket::Listener(_) => {}
            _ => return Err(SocketError::WrongKind),
        }
        while let Some(place) = self.queues.pop_front(acceptable_of(listener.0.index())) {
            let Some(key) = self.sockets.key_at(place) else { continue };
            let Some(flow) = self.flow_mut(key) else { continue };
            flow.marks.clear(Marks::UNCLAIMED);
            let held = flow.marks.any(Marks::HELD);
            let accepted =
                Accepted { socket: SocketId(key), local: flow.local(), remote: flow.remote(), held };
            self.tell(key);
            return Ok(Some(accepted));
        }
        Ok(None)
    }
    /// Answers the held SYN of an accepted connection; [`Readiness::CONNECTED`] follows.
    pub fn proceed(
        &mut self,
        socket: SocketId,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), SocketError> {
        self.tick(now);
        let flow = self.held_flow(socket)?;
        flow.marks.clear(Marks::HELD);
        let Some(Socket::Flow(flow)) = self.sockets.at_mut(socket.0) else {
            return Err(SocketError::NoSocket);
        };
        flow.connection.release(&mut tcp_environment!(self, now, socket.0, sink));
        self.follow(socket.0, now);
        Ok(())
    }
    /// Ends a connection whose SYN is held. The socket is gone.
    pub fn refuse(
        &mut self,
        socket: SocketId,
        refusal: Refusal,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), SocketError> {
        self.tick(now);
        let flow = self.held_flow(socket)?;
        let (link, quoted) = (flow.link(), quoted_syn(flow, now));
        match refusal {
            Refusal::Reset => return self.abort(socket, now, sink),
            Refusal::Silence => {}
            Refusal::Unreachable => {
                let mut environment = ip_environment!(self, now, sink);
                self.ip.host_unreachable(link, &quoted, &mut environment);
            }
        }
        self.reap(socket.0);
        Ok(())
    }
    fn held_flow(&mut self, socket: SocketId) -> Result<&mut Flow, SocketError> {
        match self.sockets.at_mut(socket.0).ok_or(SocketError::NoSocket)? {
            Socket::Flow(flow) if flow.marks.any(Marks::HELD) && !flow.marks.any(Marks::SILENT) => Ok(flow),
            _ => Err(SocketError::WrongKind),
        }
    }

    /// Takes as many of `bytes` as there is room for, pushed. An `Ok` is never 0 unless `bytes` is empty.
    pub fn send(
        &mut self,
        socket: SocketId,
        bytes: &[u8],
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<usize, StreamError> {
        self.send_with(socket, bytes, SendHow::default(), now, sink)
    }
    /// As [`Stack::send`], and says how.
    pub fn send_with(
        &mut self,
        socket: SocketId,
        bytes: &[u8],
        how: SendHow,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<usize, StreamError> {
        let length = bytes.len();
        self.add_to_stream(socket, length, now, sink, |connection, env| connection.send(bytes, how, env))
    }
    /// As [`Stack::send`], without a copy: what is taken is split from the front of `bytes`, and kept as it lies until the
    /// peer has acknowledged it. The sum of each segment is made once, when it first leaves by a device that wants it.
    pub fn lend(
        &mut self,
        socket: SocketId,
        bytes: &mut Bytes,
        how: SendHow,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<usize, StreamError> {
        let length = bytes.len();
        self.add_to_stream(socket, length, now, sink, |connection, env| connection.lend(bytes, how, env))
    }
    #[inline]
    fn add_to_stream(
        &mut self,
        socket: SocketId,
        length: usize,
        now: Instant,
        sink: &mut dyn Sink,
        add: impl FnOnce(&mut Connection, &mut Environment<'_>) -> Result<usize, SendError>,
    ) -> Result<usize, StreamError> {
        self.tick(now);
        if self.pool.is_short_to_send() {
            claimed(self.sockets.at_mut(socket.0))?;
            if self.sends_more_than_its_share(socket.0, now, sink) {
                self.starve(socket.0, now);
                return Err(StreamError::WouldBlock);
            }
        }
        let flow = claimed(self.sockets.at_mut(socket.0))?;
        let mut environment = tcp_environment!(self, now, socket.0, sink);
        let sent = add(&mut flow.connection, &mut environment);
        let lacks_memory = sent == Err(SendError::WouldBlock) && flow.connection.writable_bytes() > 0;
        if flow.marks.any(Marks::DEFERRED) {
            self.undefer(socket.0, now, sink);
        }
        self.follow(socket.0, now);
        if lacks_memory {
            self.starve(socket.0, now);
        }
        match sent {
            Ok(0) if length > 0 => Err(StreamError::WouldBlock),
            other => other.map_err(StreamError::from),
        }
    }
    /// Takes the packet with the first bytes that wait, to be read where they lie: an empty one at the end of the stream.
    /// Its memory is the host's; [`Stack::give_back`] releases it.
    pub fn borrow(
        &mut self,
        socket: SocketId,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<Packet, StreamError> {
        self.tick(now);
        let flow = claimed(self.sockets.at_mut(socket.0))?;
        let borrowed = flow.connection.borrow(&mut tcp_environment!(self, now, socket.0, sink));
        if flow.marks.any(Marks::DEFERRED) {
            self.undefer(socket.0, now, sink);
        }
        self.follow(socket.0, now);
        borrowed.map_err(StreamError::from)
    }
    /// Takes back what [`Stack::borrow`] gave.
    pub fn give_back(&mut self, packet: Packet) {
        self.pool.give(packet);
    }
    /// Moves bytes that arrived in order into `into`: `Ok(0)` (for a place that is not empty) at the end of the
    /// stream.
    pub fn read(
        &mut self,
        socket: SocketId,
        into: &mut [u8],
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<usize, StreamError> {
        self.tick(now);
        let flow = claimed(self.sockets.at_mut(socket.0))?;
        let mut environment = tcp_environment!(self, now, socket.0, sink);
        let read = flow.connection.read(into, &mut environment);
        if flow.marks.any(Marks::DEFERRED) {
            // Whoever reads first has nothing to send with the SYN.
            self.undefer(socket.0, now, sink);
        }
        self.follow(socket.0, now);
        read.map_err(StreamError::from)
    }
    /// The first bytes that wait, as far as they lie in one piece; [`Stack::consume`] takes them.
    pub fn front(&self, socket: SocketId) -> Result<&[u8], SocketError> {
        Ok(claimed_ref(self.sockets.at(socket.0))?.connection.front())
    }
    /// Drops up to `bytes` from the front of what waits.
    pub fn consume(
        &mut self,
        socket: SocketId,
        bytes: usize,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), SocketError> {
        self.tick(now);
        let flow = claimed(self.sockets.at_mut(socket.0))?;
        flow.connection.consume(bytes, &mut tcp_environment!(self, now, socket.0, sink));
        self.follow(socket.0, now);
        Ok(())
    }
    /// Copies bytes that arrived in order without taking them.
    pub fn peek(&self, socket: SocketId, into: &mut [u8]) -> Result<usize, StreamError> {
        claimed_ref(self.sockets.at(socket.0))?.connection.peek(into).map_err(StreamError::from)
    }
    /// Bytes in the stream before the urgent mark and with it, or `None` when nothing is urgent.
    // spec: RFC9293 MUST-33
    pub fn urgent_ahead(&self, socket: SocketId) -> Option<usize> {
        self.flow(socket.0)?.connection.urgent_ahead()
    }
    /// Closes our side: what was sent before still goes, then a FIN. The other side can still be read.
    pub fn shutdown(
        &mut self,
        socket: SocketId,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), SocketError> {
        self.tick(now);
        let flow = claimed(self.sockets.at_mut(socket.0))?;
        let outcome = flow.connection.close(&mut tcp_environment!(self, now, socket.0, sink));
        self.apply(socket.0, outcome, now, sink);
        Ok(())
    }
    /// Resets the connection. The socket is gone; for other kinds this is [`Stack::close`].
    pub fn abort(&mut self, socket: SocketId, now: Instant, sink: &mut dyn Sink) -> Result<(), SocketError> {
        self.tick(now);
        match self.sockets.at_mut(socket.0).ok_or(SocketError::NoSocket)? {
            Socket::Flow(flow) if flow.marks.any(Marks::SILENT) => Err(SocketError::NoSocket),
            Socket::Flow(flow) if flow.connection.outlives_abort() => self.close(socket, now, sink),
            Socket::Flow(_) => {
                self.abort_flow(socket.0, now, sink);
                Ok(())
            }
            _ => self.close(socket, now, sink),
        }
    }
    /// Lets go of the socket, whatever it is. A connection finishes by itself: what was sent still goes and is sent
    /// again as long as it takes, the FIN follows, TIME-WAIT is kept. Where received data was not read it is reset
    /// instead, so that the peer knows that data was lost. Where too many connections are closing, one of them ends: a
    /// TIME-WAIT, or else one whose peer takes nothing. A listener takes the connections with it that nobody accepted. The datagrams that a UDP socket has queued still leave, within ten
    /// seconds.
    pub fn close(&mut self, socket: SocketId, now: Instant, sink: &mut dyn Sink) -> Result<(), SocketError> {
        self.tick(now);
        let key = socket.0;
        match self.sockets.at(key).ok_or(SocketError::NoSocket)? {
            Socket::Flow(flow) if flow.marks.any(Marks::SILENT) => return Err(SocketError::NoSocket),
            Socket::Flow(_) => self.close_flow(key, now, sink),
            Socket::Listener(_) => self.close_listener(key, now, sink),
            Socket::Udp(_) => self.close_udp(key, now),
            // Nobody is left to hear the answers.
            Socket::Echo(_) | Socket::Probe(_) => self.remove_datagram_socket(key),
        }
        Ok(())
    }
    fn close_flow(&mut self, key: Key, now: Instant, sink: &mut dyn Sink) {
        self.queues.remove(key.index());
        let Some(flow) = self.flow(key) else { return };
        if is_over(flow) {
            return self.reap(key);
        }
        if flow.marks.any(Marks::HELD) || self.closes_by_reset(key) {
            return self.abort_flow(key, now, sink);
        }
        self.add_orphan(key, now, sink);
        let Some(flow) = self.flow(key) else { return };
        if flow.marks.any(Marks::EXTRAS) {
            self.linger(key, now);
        }
        let Some(Socket::Flow(flow)) = self.sockets.at_mut(key) else { return };
        // spec: RFC9293 SHLD-3
        let outcome = flow.connection.detach(&mut tcp_environment!(self, now, key, sink));
        self.apply(key, outcome, now, sink);
    }
    fn close_listener(&mut self, key: Key, now: Instant, sink: &mut dyn Sink) {
        for list in [embryos_of(key.index()), acceptable_of(key.index())] {
            while let Some(place) = self.queues.pop_front(list) {
                if let Some(flow) = self.sockets.key_at(place) {
                    self.abort_flow(flow, now, sink);
                }
            }
        }
        self.unbind(key);
        self.sockets.remove(key);
    }

    /// What a socket is ready for.
    pub fn readiness(&self, socket: SocketId) -> Readiness {
        match self.sockets.at(socket.0) {
            None => Readiness::NONE,
            Some(Socket::Flow(flow)) if flow.marks.any(Marks::SILENT) => Readiness::NONE,
            Some(Socket::Flow(flow)) => flow_readiness(flow),
            Some(Socket::Listener(_)) => {
                Readiness::NONE.with_if(Readiness::ACCEPTABLE, self.acceptable(socket.0) > 0)
            }
            Some(Socket::Udp(udp)) => udp.readiness(),
            Some(Socket::Echo(echo)) => echo.readiness(),
            Some(Socket::Probe(prober)) => prober.readiness(),
        }
    }
    /// The two ends of a connection, or of a connected UDP socket.
    pub fn endpoints(&self, socket: SocketId) -> Option<(Endpoint, Option<Endpoint>)> {
        match self.sockets.at(socket.0)? {
            Socket::Flow(flow) => Some((flow.local(), Some(flow.remote()))),
            Socket::Listener(listener) => Some((listener.local, None)),
            Socket::Udp(udp) => Some((udp.local, udp.remote)),
            Socket::Echo(_) | Socket::Probe(_) => None,
        }
    }
    /// The trouble of a connection that did not end it.
    // spec: RFC9293 MUST-47
    pub fn soft_error(&self, socket: SocketId) -> Option<SoftError> {
        self.flow(socket.0)?.connection.soft_error()
    }
    /// Why a connection ended, when it did not end by both sides closing.
    pub fn connection_error(&self, socket: SocketId) -> Option<inhost_tcp::ConnectionError> {
        self.flow(socket.0)?.connection.error()
    }
}

/// How a caller is refused whose SYN was held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Refusal {
    /// As if nobody listened.
    #[default]
    Reset,
    /// As if its SYN was lost: it tries again, and is held again.
    Silence,
    /// As a router says it that cannot reach the host (ICMP host unreachable).
    Unreachable,
}

/// What an ICMP error quotes of a held SYN: an IP header and that of the segment, as long as they say.
fn quoted_syn(flow: &Flow, now: Instant) -> Vec<u8> {
    let (caller, called) = (flow.remote(), flow.local());
    let sequence = flow.connection.info(now).receive_next.back(1);
    let mut packet = match (caller.address, called.address) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut bytes = vec![0; ipv6::LENGTH];
            Ipv6Header::new(source, destination, protocol::TCP, tcp::LENGTH as u16).emit(&mut bytes);
            bytes
        }
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut bytes = vec![0; ipv4::LENGTH];
            Ipv4Header::new(source, destination, protocol::TCP, tcp::LENGTH as u16).emit(&mut bytes);
            bytes
        }
        // Two ends of one connection are of one family.
        _ => Vec::new(),
    };
    let mut header = [0; tcp::LENGTH];
    let syn = TcpHeader {
        source_port: caller.port,
        destination_port: called.port,
        sequence,
        flags: Flags::SYN,
        ..TcpHeader::default()
    };
    syn.emit(&mut header);
    packet.extend_from_slice(&header);
    packet
}

fn flow_readiness(flow: &Flow) -> Readiness {
    let connection = &flow.connection;
    let phase = connection.phase();
    let closed = phase == TcpPhase::Closed;
    let peer_closed = matches!(
        phase,
        TcpPhase::CloseWait | TcpPhase::Closing | TcpPhase::LastAck | TcpPhase::TimeWait | TcpPhase::Closed
    );
    let readable = connection.readable_bytes() > 0 || peer_closed;
    let is_early = connection.is_early() || flow.marks.any(Marks::DEFERRED);
    let sendable = is_early || matches!(phase, TcpPhase::Established | TcpPhase::CloseWait);
    let failed = connection.error().is_some();
    Readiness::NONE
        .with_if(Readiness::READABLE, readable)
        .with_if(Readiness::WRITABLE, closed || (sendable && connection.writable_bytes() > 0))
        .with_if(Readiness::CONNECTED, (is_early || !flow.is_opening()) && !failed)
        .with_if(Readiness::PEER_CLOSED, peer_closed)
        .with_if(Readiness::URGENT, connection.urgent_ahead().is_some())
        .with_if(Readiness::ERROR, failed)
        .with_if(Readiness::CLOSED, closed)
}

/// The flow in `entry`, while the application holds it.
pub(crate) fn claimed(entry: Option<&mut Socket>) -> Result<&mut Flow, SocketError> {
    match entry.ok_or(SocketError::NoSocket)? {
        Socket::Flow(flow) if flow.marks.any(Marks::SILENT) => Err(SocketError::NoSocket),
        Socket::Flow(flow) => Ok(flow),
        _ => Err(SocketError::WrongKind),
    }
}
fn claimed_ref(entry: Option<&Socket>) -> Result<&Flow, SocketError> {
    match entry.ok_or(SocketError::NoSocket)? {
        Socket::Flow(flow) if flow.marks.any(Marks::SILENT) => Err(SocketError::NoSocket),
        Socket::Flow(flow) => Ok(flow),
        _ => Err(SocketError::WrongKind),
    }
}
