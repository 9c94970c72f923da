//! Names of sockets, what they are ready for, and what instruments show of them.

use core::fmt;
use inhost_base::{Duration, Endpoint, Key, LinkId};
use inhost_event::TcpPhase;

/// Names a socket of any kind. A closed socket's name finds nothing, ever.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SocketId(pub Key);

impl fmt::Display for SocketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.index())
    }
}

/// What a socket is ready for: a set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Readiness(u8);

impl Readiness {
    /// Nothing.
    pub const NONE: Readiness = Readiness(0);
    /// Data, the end of the stream, a datagram or an error can be received without waiting.
    pub const READABLE: Readiness = Readiness(1);
    /// Data can be sent, or an error be learnt, without waiting.
    pub const WRITABLE: Readiness = Readiness(1 << 1);
    /// A listener has a connection to accept.
    pub const ACCEPTABLE: Readiness = Readiness(1 << 2);
    /// The handshake is done.
    pub const CONNECTED: Readiness = Readiness(1 << 3);
    /// The peer has closed its side; what it sent before can still be read.
    pub const PEER_CLOSED: Readiness = Readiness(1 << 4);
    /// Urgent data is ahead in the stream.
    // spec: RFC9293 MUST-32
    pub const URGENT: Readiness = Readiness(1 << 5);
    /// There is an error to learn.
    pub const ERROR: Readiness = Readiness(1 << 6);
    /// The connection is over.
    pub const CLOSED: Readiness = Readiness(1 << 7);

    /// Whether all of `other` is in this set.
    pub const fn contains(self, other: Readiness) -> bool {
        self.0 & other.0 == other.0
    }
    /// Whether any of `other` is in this set.
    pub const fn intersects(self, other: Readiness) -> bool {
        self.0 & other.0 != 0
    }
    /// Whether it is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Both sets.
    #[must_use]
    pub const fn with(self, other: Readiness) -> Readiness {
        Readiness(self.0 | other.0)
    }
    /// `other` added when `holds`.
    #[must_use]
    pub const fn with_if(self, other: Readiness, holds: bool) -> Readiness {
        if holds { self.with(other) } else { self }
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 8] =
            ["readable", "writable", "acceptable", "connected", "peer closed", "urgent", "error", "closed"];
        let present = NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        f.debug_set().entries(present.map(|(_, name)| name)).finish()
    }
}

/// A connection handed out by [`crate::Stack::accept`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// Its socket.
    pub socket: SocketId,
    /// Our end; on an any-address listener the end that the caller meant.
    pub local: Endpoint,
    /// The caller.
    pub remote: Endpoint,
    /// Whether its SYN is held: [`crate::Stack::proceed`] or [`crate::Stack::refuse`] decides.
    pub held: bool,
}

/// What arrived with a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramInfo {
    /// Its length in bytes; more than were copied when the place was too small, and the rest is lost.
    pub length_bytes: usize,
    /// The sender.
    pub from: Endpoint,
    /// Where it was sent to: our address, a group, a broadcast address, or any address at a gateway.
    pub to: Endpoint,
    /// Where it came in.
    pub link: LinkId,
    /// The hops it had left.
    pub hop_limit: u8,
}

/// What arrived in answer to an echo request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EchoInfo {
    /// Bytes of data; more than were copied when the place was too small.
    pub length_bytes: usize,
    /// Who answered.
    pub from: inhost_base::IpAddr,
    /// The number of the request.
    pub sequence: u16,
    /// The hops it had left.
    pub hop_limit: u8,
}

/// The kinds of sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketKind {
    /// A TCP connection.
    Connection,
    /// A TCP listener.
    Listener,
    /// A UDP socket.
    Udp,
    /// An echo socket.
    Echo,
    /// A probe socket.
    Probe,
}

/// What instruments show of a socket.
#[derive(Clone, Debug)]
pub struct SocketInfo {
    /// Its name.
    pub socket: SocketId,
    /// Its kind.
    pub kind: SocketKind,
    /// Our end; port 0 stands for every port, an echo socket's identifier stands in its place.
    pub local: Endpoint,
    /// The other end, where there is one.
    pub remote: Option<Endpoint>,
    /// The link that it uses or is bound to.
    pub link: Option<LinkId>,
    /// A connection's phase; `None` for other kinds.
    pub phase: Option<TcpPhase>,
    /// Whether the application still holds it.
    pub is_held: bool,
    /// How long it has existed.
    pub age: Duration,
    /// Bytes (connections, UDP) or connections (listeners) that wait for the application.
    pub receive_queue: usize,
    /// Bytes that wait to be sent or acknowledged, or handshakes in progress at a listener.
    pub send_queue: usize,
    /// Everything of a connection: windows, times, losses, both ledgers.
    pub tcp: Option<inhost_tcp::Info>,
}
