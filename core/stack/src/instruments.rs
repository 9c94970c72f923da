//! What instruments see.

use crate::counters::{Counters, LinkCounters};
use crate::entry::{Marks, NOWHERE, Socket};
use crate::socket::{SocketId, SocketInfo, SocketKind};
use crate::stack::Stack;
use inhost_base::{Duration, Endpoint, Instant, Key, LinkId};
use inhost_event::TcpPhase;

/// What waits in a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Queued {
    /// Bytes in order that the application has not read.
    pub readable_bytes: usize,
    /// Bytes written and never sent.
    pub not_sent_bytes: usize,
    /// Bytes written that the peer has not acknowledged, sent or not.
    pub unacknowledged_bytes: usize,
}

impl Stack {
    /// Everything about one socket.
    pub fn info(&self, socket: SocketId, now: Instant) -> Option<SocketInfo> {
        self.sockets.at(socket.0).map(|entry| self.describe(socket.0, entry, now))
    }
    /// What waits in a connection, cheaply: for applications that look after each read or write.
    pub fn queued(&self, socket: SocketId) -> Option<Queued> {
        let connection = &self.flow(socket.0)?.connection;
        let unacknowledged_bytes = connection.unacknowledged_bytes();
        Some(Queued {
            readable_bytes: connection.readable_bytes(),
            not_sent_bytes: connection.not_sent_bytes() as usize,
            unacknowledged_bytes,
        })
    }
    /// Bytes that a connection would take to send now, memory permitting, cheaply; 0 where there is none.
    pub fn writable_bytes(&self, socket: SocketId) -> usize {
        self.flow(socket.0).map_or(0, |flow| flow.connection.writable_bytes())
    }
    /// The state of a connection, cheaply.
    pub fn phase(&self, socket: SocketId) -> Option<TcpPhase> {
        Some(self.flow(socket.0)?.connection.phase())
    }
    /// Everything about every socket, those included that nobody holds any more, in order of their places.
    pub fn sockets(&self, now: Instant) -> impl Iterator<Item = SocketInfo> + '_ {
        self.sockets.iter().map(move |(key, entry)| self.describe(key, entry, now))
    }
    /// Places in the table of sockets, taken or free; [`Stack::socket_at`] takes those below it.
    pub fn socket_places(&self) -> usize {
        self.sockets.places()
    }
    /// Everything about the socket at a place of the table, for who looks at all of them in turns.
    pub fn socket_at(&self, place: usize, now: Instant) -> Option<SocketInfo> {
        self.info(SocketId(self.sockets.key_at(place)?), now)
    }
    /// What kind each socket is of, cheaply: for counting.
    pub fn socket_kinds(&self) -> impl Iterator<Item = SocketKind> + '_ {
        self.sockets.iter().map(|(_, entry)| kind(entry))
    }
    /// Every socket with its kind and, of a connection, its state, cheaply: for closing and for counting.
    pub fn socket_states(&self) -> impl Iterator<Item = (SocketId, SocketKind, Option<TcpPhase>)> + '_ {
        self.sockets.iter().map(|(key, entry)| {
            let phase = match entry {
                Socket::Flow(flow) => Some(flow.connection.phase()),
                _ => None,
            };
            (SocketId(key), kind(entry), phase)
        })
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

    /// For tests of the whole host: moves the sequence numbers of a connection on, as though so many bytes had been sent
    /// and received, with no event since; see [`inhost_tcp::Connection::jump_send_sequence`] for what the caller has to
    /// translate. What did jump: the send space, the receive space.
    #[doc(hidden)]
    pub fn jump_sequence(&mut self, socket: SocketId, send_by: u64, receive_by: u64) -> (bool, bool) {
        let Some(Socket::Flow(flow)) = self.sockets.at_mut(socket.0) else { return (false, false) };
        (flow.connection.jump_send_sequence(send_by), flow.connection.jump_receive_sequence(receive_by))
    }
    /// For tests of the whole host: a connection with a sequence number that has fallen too far behind its window.
    #[doc(hidden)]
    pub fn stale_sequence(&mut self) -> Option<(SocketId, &'static str)> {
        (0..self.sockets.places()).find_map(|place| {
            let key = self.sockets.key_at(place)?;
            match self.sockets.at_mut(key)? {
                Socket::Flow(flow) => Some((SocketId(key), flow.connection.stale_sequence()?)),
                _ => None,
            }
        })
    }

    fn describe(&self, key: Key, entry: &Socket, now: Instant) -> SocketInfo {
        let mut info = SocketInfo {
            socket: SocketId(key),
            kind: kind(entry),
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
                info.local = listener.local;
                info.link = listener.options.link;
                info.age = now.since(listener.opened);
                info.receive_queue = self.acceptable(key);
                info.send_queue = self.embryos(key);
            }
            Socket::Udp(udp) => {
                info.local = udp.local;
                info.remote = udp.remote;
                info.link = udp.options.link;
                info.is_held = !udp.is_closed();
                info.age = now.since(udp.opened);
                (info.receive_queue, info.send_queue) = udp.queued_bytes();
            }
            Socket::Echo(echo) => {
                info.local = Endpoint { port: echo.identifier, ..NOWHERE };
                info.age = now.since(echo.opened);
                (info.receive_queue, info.send_queue) = echo.queued_bytes();
            }
            Socket::Probe(prober) => {
                info.local = Endpoint { port: prober.port, ..NOWHERE };
                info.age = now.since(prober.opened);
                (info.receive_queue, info.send_queue) = prober.queued();
            }
        }
        info
    }
}

fn kind(entry: &Socket) -> SocketKind {
    match entry {
        Socket::Flow(_) => SocketKind::Connection,
        Socket::Listener(_) => SocketKind::Listener,
        Socket::Udp(_) => SocketKind::Udp,
        Socket::Echo(_) => SocketKind::Echo,
        Socket::Probe(_) => SocketKind::Probe,
    }
}
