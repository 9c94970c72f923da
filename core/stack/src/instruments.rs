//! What instruments see, and the options of sockets.

use crate::counters::{Counters, LinkCounters};
use crate::entry::{Marks, NOWHERE, Socket};
use crate::error::SocketError;
use crate::socket::{SocketId, SocketInfo, SocketKind};
use crate::stack::{Stack, tcp_environment};
use crate::stream::claimed;
use inhost_base::{Duration, Endpoint, Instant, Key, LinkId};
use inhost_event::Sink;
use inhost_tcp::KeepAlive;

/// An option of a socket, with its new value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketOption {
    /// Connections: hold small segments back while data is unacknowledged.
    // spec: RFC9293 MUST-17
    Nagle(bool),
    /// Connections: probe an idle peer.
    // spec: RFC9293 MUST-24
    KeepAlive(Option<KeepAlive>),
    /// Connections: how long data may stay unacknowledged.
    // spec: RFC9293 MUST-21
    UserTimeout(Duration),
    /// Connections, UDP: the limit on what waits to be sent.
    SendBufferLimit(usize),
    /// Connections, UDP: the limit on what waits to be received.
    ReceiveBufferLimit(usize),
    /// Connections: the longest wait before data is acknowledged.
    AcknowledgmentDelay(Duration),
    /// Connections, UDP: differentiated services, six bits; it may change at any time.
    // spec: RFC9293 MUST-48
    // spec: RFC9293 SHLD-21
    DifferentiatedServices(u8),
    /// Connections, UDP: hops that packets may take, or the path's own.
    HopLimit(Option<u8>),
    /// UDP: whether broadcast destinations are allowed.
    Broadcast(bool),
    /// UDP: whether ICMP errors are reported while not connected.
    ReportUnconnectedErrors(bool),
    /// UDP: whether datagrams are kept from being fragmented.
    DontFragment(bool),
}

impl Stack {
    /// Changes an option.
    pub fn set_option(
        &mut self,
        socket: SocketId,
        option: SocketOption,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), SocketError> {
        self.tick(now);
        if let SocketOption::DifferentiatedServices(64..) | SocketOption::HopLimit(Some(0)) = option {
            return Err(SocketError::Invalid);
        }
        if let Some(Socket::Udp(_)) = self.sockets.at(socket.0) {
            return self.set_udp_option(socket, option);
        }
        let flow = claimed(self.sockets.at_mut(socket.0))?;
        let mut environment = tcp_environment!(self, now, socket.0, sink);
        let (connection, environment) = (&mut flow.connection, &mut environment);
        match option {
            SocketOption::Nagle(on) => connection.set_nagle(on, environment),
            SocketOption::KeepAlive(when) => connection.set_keep_alive(when, environment),
            SocketOption::UserTimeout(limit) => connection.set_user_timeout(limit, environment),
            SocketOption::SendBufferLimit(bytes) => connection.set_send_buffer_limit(bytes, environment),
            SocketOption::ReceiveBufferLimit(bytes) => {
                connection.set_receive_buffer_limit(bytes, environment);
            }
            SocketOption::AcknowledgmentDelay(delay) => {
                connection.set_acknowledgment_delay(delay, environment);
            }
            SocketOption::DifferentiatedServices(bits) => flow.traffic_class = bits << 2,
            SocketOption::HopLimit(limit) => flow.hop_limit = limit,
            SocketOption::Broadcast(_)
            | SocketOption::ReportUnconnectedErrors(_)
            | SocketOption::DontFragment(_) => return Err(SocketError::WrongKind),
        }
        self.follow(socket.0, now);
        Ok(())
    }
    fn set_udp_option(&mut self, socket: SocketId, option: SocketOption) -> Result<(), SocketError> {
        let options = &mut self.udp_mut(socket)?.options;
        match option {
            SocketOption::SendBufferLimit(bytes) => options.send_limit_bytes = bytes,
            SocketOption::ReceiveBufferLimit(bytes) => options.receive_limit_bytes = bytes,
            SocketOption::DifferentiatedServices(bits) => options.differentiated_services = bits,
            SocketOption::HopLimit(limit) => options.hop_limit = limit,
            SocketOption::Broadcast(on) => options.broadcast = on,
            SocketOption::ReportUnconnectedErrors(on) => options.report_unconnected_errors = on,
            SocketOption::DontFragment(on) => options.dont_fragment = on,
            SocketOption::Nagle(_)
            | SocketOption::KeepAlive(_)
            | SocketOption::UserTimeout(_)
            | SocketOption::AcknowledgmentDelay(_) => return Err(SocketError::WrongKind),
        }
        Ok(())
    }

    /// Everything about one socket.
    pub fn info(&self, socket: SocketId, now: Instant) -> Option<SocketInfo> {
        self.sockets.at(socket.0).map(|entry| self.describe(socket.0, entry, now))
    }
    /// Everything about every socket, those included that nobody holds any more, in order of their places.
    pub fn sockets(&self, now: Instant) -> impl Iterator<Item = SocketInfo> + '_ {
        self.sockets.iter().map(move |(key, entry)| self.describe(key, entry, now))
    }
    /// Sockets of all kinds, closing connections included.
    pub fn socket_count(&self) -> usize {
        self.sockets.len()
    }
    /// What was counted on the whole host.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
    /// What was counted on a link.
    pub fn link_counters(&self, link: LinkId) -> Option<&LinkCounters> {
        self.links.get(usize::from(link.0)).map(|link| &link.counters)
    }

    fn describe(&self, key: Key, entry: &Socket, now: Instant) -> SocketInfo {
        let mut info = SocketInfo {
            socket: SocketId(key),
            kind: SocketKind::Connection,
            local: NOWHERE,
            remote: None,
            link: None,
            phase: None,
            is_held: true,
            age: Duration::ZERO,
            receive_queue: 0,
            send_queue: 0,
            tcp: None,
        };
        match entry {
            Socket::Flow(flow) => {
                let tcp = flow.connection.info(now);
                info.local = flow.local();
                info.remote = Some(flow.remote());
                info.link = Some(flow.link());
                info.phase = Some(tcp.phase);
                info.is_held = !flow.marks.any(Marks::SILENT);
                info.age = tcp.age;
                info.receive_queue = tcp.receive_queue_bytes;
                info.send_queue = tcp.send_queue_bytes;
                info.tcp = Some(tcp);
            }
            Socket::Listener(listener) => {
                info.kind = SocketKind::Listener;
                info.local = listener.local;
                info.link = listener.options.link;
                info.age = now.since(listener.opened);
                info.receive_queue = self.acceptable(key);
                info.send_queue = self.embryos(key);
            }
            Socket::Udp(udp) => {
                info.kind = SocketKind::Udp;
                info.local = udp.local;
                info.remote = udp.remote;
                info.link = udp.options.link;
                info.age = now.since(udp.opened);
                (info.receive_queue, info.send_queue) = udp.queued_bytes();
            }
            Socket::Echo(echo) => {
                info.kind = SocketKind::Echo;
                info.local = Endpoint { port: echo.identifier, ..NOWHERE };
                info.age = now.since(echo.opened);
                (info.receive_queue, info.send_queue) = echo.queued_bytes();
            }
        }
        info
    }
}
