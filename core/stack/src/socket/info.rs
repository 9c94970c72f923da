//! Socket information for applications and instruments.

use crate::socket::id::{SocketId, TcpSocketId};
use inhost_base::{Duration, Endpoint, LinkId};
use inhost_event::TcpState;

/// A connection handed out by [`crate::TcpSockets::accept`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// Its socket.
    pub socket: TcpSocketId,
    /// Our end; on an any-address listener the end that the caller meant.
    pub local: Endpoint,
    /// The caller.
    pub remote: Endpoint,
    /// Whether its SYN is held: [`crate::TcpSockets::proceed`] or [`crate::TcpSockets::refuse`] decides.
    pub held: bool,
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

/// Socket information for instruments.
#[derive(Clone, Debug)]
pub struct SocketInfo {
    /// Its name.
    pub socket: SocketId,
    /// Its kind.
    pub kind: SocketKind,
    /// Local endpoint. Port 0 means every port; for an echo socket it is the identifier.
    pub local: Endpoint,
    /// The other end, where there is one.
    pub remote: Option<Endpoint>,
    /// The link that it uses or is bound to.
    pub link: Option<LinkId>,
    /// A connection's state; `None` for other kinds.
    pub state: Option<TcpState>,
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
