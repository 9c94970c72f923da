//! Socket information for applications and instruments.

use crate::socket::id::{SocketId, TcpSocketId};
use inhost_base::{Duration, Endpoint, LinkId};
use inhost_event::TcpState;
use inhost_wire::Ecn;

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

/// Information received with a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
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
    /// The congestion mark it arrived with.
    pub ecn: Ecn,
}

/// How datagrams are sent by one call, for [`crate::UdpSockets::send_with`]. Begin with [`SendDatagrams::default`].
///
/// ```
/// use inhost_base::{Endpoint, Ipv4Addr};
/// use inhost_stack::{Ecn, SendDatagrams};
/// let mut how = SendDatagrams::to(Endpoint::new(Ipv4Addr::LOCALHOST, 443));
/// how.ecn = Ecn::Capable0;
/// how.segment_bytes = 1200;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SendDatagrams {
    /// The destination. Default: where the socket is connected.
    pub to: Option<Endpoint>,
    /// The source, where the socket's own end leaves that open. Default: as bound, or as the route says.
    pub from: Option<Endpoint>,
    /// GSO size: the payload of each datagram but the last, when the call sends several. Default: 0, one datagram.
    pub segment_bytes: u16,
    /// The congestion mark of each. Default: none.
    pub ecn: Ecn,
}

impl SendDatagrams {
    /// One datagram to `to`.
    pub fn to(to: Endpoint) -> SendDatagrams {
        SendDatagrams { to: Some(to), ..SendDatagrams::default() }
    }
}

/// An echo reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct EchoInfo {
    /// Bytes of data; more than were copied when the place was too small.
    pub length_bytes: usize,
    /// Source of the reply.
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
