//! Read-only access for instruments such as netstat.

use crate::counters::{Counters, LinkCounters};
use crate::demux::NOWHERE;
use crate::listen::Listener;
use crate::network::Network;
use crate::resources::Resources;
use crate::socket::{ConnectionOptions, ListenerId, SocketId, SocketInfo, SocketKind, TcpSocketId};
use crate::sockets::{Socket, Sockets};
use crate::tcp::{TcpSocket, TcpSocketFlags};
use inhost_base::{Duration, Instant, LinkId};
use inhost_datagram::SocketError;
use inhost_event::TcpState;
use inhost_tcp::Connection;

/// Queued bytes of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Queued {
    /// Bytes in order that the application has not read.
    pub readable_bytes: usize,
    /// Bytes written and never sent.
    pub not_sent_bytes: usize,
    /// Bytes written that the peer has not acknowledged, sent or not.
    pub unacknowledged_bytes: usize,
}

/// Read-only access for instruments: see [`crate::Stack::instruments`].
///
/// ```
/// use inhost_base::Instant;
/// use inhost_stack::{Stack, StackConfig};
///
/// let host = Stack::new(StackConfig::default(), [7; 32], Instant::ZERO);
/// assert_eq!((host.instruments().socket_count(), host.instruments().counters().resets_sent), (0, 0));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Instruments<'a> {
    sockets: &'a Sockets,
    network: &'a Network,
    resources: &'a Resources,
}

impl<'a> Instruments<'a> {
    pub(crate) fn new(
        sockets: &'a Sockets,
        network: &'a Network,
        resources: &'a Resources,
    ) -> Instruments<'a> {
        Instruments { sockets, network, resources }
    }
    /// The instant of the latest call, from which time goes on when a stack is thawed.
    pub fn now(self) -> Instant {
        self.resources.now()
    }
    /// Everything about one socket.
    pub fn info(self, socket: impl Into<SocketId>, now: Instant) -> Option<SocketInfo> {
        let socket = socket.into();
        self.sockets.any(socket).map(|entry| self.describe(socket, entry, now))
    }
    /// The options of a connection or a listener.
    pub fn options(self, socket: impl Into<SocketId>) -> Result<ConnectionOptions, SocketError> {
        self.sockets.options(socket.into())
    }
    /// Queued bytes of a connection, cheaply: for applications that ask after each read or write.
    pub fn queued(self, socket: TcpSocketId) -> Option<Queued> {
        let connection = self.connection(socket)?;
        Some(Queued {
            readable_bytes: connection.receiver().readable_bytes(),
            not_sent_bytes: connection.sender().not_sent_bytes() as usize,
            unacknowledged_bytes: connection.sender().unacknowledged_bytes(),
        })
    }
    /// Connections that a listener holds for its application at most.
    pub fn backlog(self, socket: impl Into<SocketId>) -> Option<usize> {
        self.sockets.listener(ListenerId::of(socket.into().0)).map(Listener::backlog)
    }
    /// A connection, cheaply: its state, why it ended, the trouble that did not end it, what is queued, in flight and urgent.
    // spec: RFC9293 MUST-33, MUST-47
    pub fn connection(self, socket: impl Into<SocketId>) -> Option<&'a Connection> {
        self.sockets.tcp(TcpSocketId::of(socket.into().0)).map(TcpSocket::connection)
    }
    /// Information about every socket, orphans included, in table order.
    pub fn sockets(self, now: Instant) -> impl Iterator<Item = SocketInfo> + 'a {
        self.sockets.iter().map(move |(key, entry)| self.describe(key, entry, now))
    }
    /// Places in the table of sockets, taken or free; [`Instruments::socket_at`] takes those below it.
    pub fn socket_places(self) -> usize {
        self.sockets.places()
    }
    /// Information about the socket at a place of the table, for callers that scan the table in steps.
    pub fn socket_at(self, place: usize, now: Instant) -> Option<SocketInfo> {
        self.info(self.sockets.at_place(place)?, now)
    }
    /// Every socket with its kind and, of a connection, its state, cheaply: for closing and for counting.
    pub fn socket_states(self) -> impl Iterator<Item = (SocketId, SocketKind, Option<TcpState>)> + 'a {
        let state = move |socket| self.connection(socket).map(Connection::state);
        self.sockets.iter().map(move |(socket, entry)| (socket, kind(entry), state(socket)))
    }
    /// Sockets of all kinds, closing connections included.
    pub fn socket_count(self) -> usize {
        self.sockets.len()
    }
    /// Counters of the host.
    pub fn counters(self) -> &'a Counters {
        self.resources.counters()
    }
    /// Counters of a link.
    pub fn link_counters(self, link: LinkId) -> Option<&'a LinkCounters> {
        self.network.links().counters(link)
    }
    /// What the host waits for, for a debugger: instants on its clock, or null; its memory; and by link, of which 0 is the
    /// loopback, the sockets whose turn to send is to come.
    #[cfg(feature = "detail")]
    pub fn queues(self) -> serde_json::Value {
        crate::api::detail::queues(self.sockets, self.network, self.resources)
    }

    fn describe(self, key: SocketId, entry: &Socket, now: Instant) -> SocketInfo {
        let (local, remote) = entry.endpoints().unwrap_or((NOWHERE, None));
        let mut info = SocketInfo {
            socket: key,
            kind: kind(entry),
            local,
            remote,
            link: None,
            state: None,
            is_held: true,
            age: Duration::ZERO,
            receive_queue: 0,
            send_queue: 0,
            tcp: None,
        };
        if let Some(datagrams) = entry.datagrams() {
            info.age = now.since(datagrams.opened());
            (info.receive_queue, info.send_queue) = datagrams.queued_bytes();
        }
        match entry {
            Socket::Tcp(flow) => {
                let tcp = flow.connection().info(now);
                info.link = Some(flow.link());
                info.state = Some(tcp.state);
                info.is_held = !flow.has(TcpSocketFlags::SILENT);
                info.age = tcp.age;
                info.receive_queue = tcp.receive_queue_bytes;
                info.send_queue = tcp.send_queue_bytes;
                info.tcp = Some(tcp);
            }
            Socket::Listener(listener) => {
                info.link = listener.options().link;
                info.age = now.since(listener.opened());
                info.receive_queue = self.sockets.listening().acceptable(ListenerId::of(key.0));
                info.send_queue = self.sockets.listening().half_open(ListenerId::of(key.0));
            }
            Socket::Udp(udp) => {
                info.link = udp.options().link;
                info.is_held = !udp.is_closed();
            }
            Socket::Echo(echo) => info.local.port = echo.identifier(),
            Socket::Probe(prober) => {
                info.local.port = prober.port();
                info.receive_queue = prober.answers();
            }
        }
        info
    }
}

fn kind(entry: &Socket) -> SocketKind {
    match entry {
        Socket::Tcp(_) => SocketKind::Connection,
        Socket::Listener(_) => SocketKind::Listener,
        Socket::Udp(_) => SocketKind::Udp,
        Socket::Echo(_) => SocketKind::Echo,
        Socket::Probe(_) => SocketKind::Probe,
    }
}
