//! Error types, one for each operation.

use core::fmt;
use inhost_ip::{ErrorKind, RouteError, SendDatagramError};
use inhost_tcp::ConnectionError;

/// Why a connection was not begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// There is no route to the remote address.
    Route(RouteError),
    /// The remote end cannot be called: a group, a broadcast address, an unspecified address, or port 0.
    BadRemote,
    /// The same two ends are connected already, or the local port asked for is a listener's own.
    InUse,
    /// No ephemeral port is free towards that remote endpoint, or the requested port belongs to another shard.
    NoPort,
    /// As many sockets as the host may have.
    TooManySockets,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Route(why) => why.fmt(f),
            ConnectError::BadRemote => f.write_str("the remote end cannot be called"),
            ConnectError::InUse => f.write_str("the two ends are connected already"),
            ConnectError::NoPort => f.write_str("every local port is taken"),
            ConnectError::TooManySockets => f.write_str("too many sockets"),
        }
    }
}
impl core::error::Error for ConnectError {}
impl From<RouteError> for ConnectError {
    fn from(why: RouteError) -> Self {
        ConnectError::Route(why)
    }
}

/// Why a local end was not bound: of a listener, a UDP or an echo socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BindError {
    /// Another socket has the same local end.
    InUse,
    /// The address is none of ours.
    NotOurs,
    /// A port is needed; only an any-address socket may go without.
    NoPort,
    /// As many sockets as the host may have.
    TooManySockets,
}

/// Why there is no listener: see [`BindError`].
pub type ListenError = BindError;

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BindError::InUse => "the local address and port are in use",
            BindError::NotOurs => "the address is not one of ours",
            BindError::NoPort => "no port is free",
            BindError::TooManySockets => "too many sockets",
        })
    }
}
impl core::error::Error for BindError {}

/// A call that this socket does not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum SocketError {
    /// The socket was closed, or never was.
    NoSocket,
    /// The socket is of another kind, or in the wrong state.
    WrongKind,
    /// The value is out of range.
    Invalid,
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SocketError::NoSocket => "no such socket",
            SocketError::WrongKind => "not an operation for this socket",
            SocketError::Invalid => "the value is out of range",
        })
    }
}
impl core::error::Error for SocketError {}

/// Why stream bytes were not taken or not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StreamError {
    /// Not now: readiness will tell.
    WouldBlock,
    /// Our side was closed for sending.
    Shutdown,
    /// The connection is over, and this is why.
    Connection(ConnectionError),
    /// Not a socket for this.
    Socket(SocketError),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::WouldBlock => f.write_str("not ready now"),
            StreamError::Shutdown => f.write_str("closed for sending"),
            StreamError::Connection(why) => why.fmt(f),
            StreamError::Socket(why) => why.fmt(f),
        }
    }
}
impl core::error::Error for StreamError {}
impl From<SocketError> for StreamError {
    fn from(why: SocketError) -> Self {
        StreamError::Socket(why)
    }
}

/// Why a datagram was not sent or not received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum DatagramError {
    /// Not now: readiness will tell.
    WouldBlock,
    /// There is no route to the destination.
    Route(RouteError),
    /// The socket is not connected, and no destination was given.
    NoDestination,
    /// The destination is a broadcast address, and the socket was not allowed that.
    Broadcast,
    /// Longer than a datagram can be, or than the path takes in one piece where fragments are forbidden.
    TooLong,
    /// The address to send from is not the socket's.
    NotOurs,
    /// An earlier datagram was lost or refused, and a router or the other end reported it. Reported once.
    Unreachable(ErrorKind),
    /// The neighbour that leads there did not answer to an earlier datagram. Reported once.
    NoNeighbour,
    /// The socket is connected already, or there is no free port.
    InUse,
    /// Not a socket for this.
    Socket(SocketError),
}

impl fmt::Display for DatagramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DatagramError::WouldBlock => "not ready now",
            DatagramError::Route(why) => return why.fmt(f),
            DatagramError::NoDestination => "no destination",
            DatagramError::Broadcast => "the socket may not send to a broadcast address",
            DatagramError::TooLong => "the datagram is too long",
            DatagramError::NotOurs => "the source is not the socket's",
            DatagramError::Unreachable(ErrorKind::PortUnreachable) => "nobody listens at the port",
            DatagramError::Unreachable(ErrorKind::PacketTooBig) => "the datagram is too long for the path",
            DatagramError::Unreachable(_) => "the destination is unreachable",
            DatagramError::NoNeighbour => "the next hop does not answer",
            DatagramError::InUse => "the local end is in use",
            DatagramError::Socket(why) => return why.fmt(f),
        })
    }
}
impl core::error::Error for DatagramError {}
impl From<SocketError> for DatagramError {
    fn from(why: SocketError) -> Self {
        DatagramError::Socket(why)
    }
}
impl From<RouteError> for DatagramError {
    fn from(why: RouteError) -> Self {
        DatagramError::Route(why)
    }
}
impl From<inhost_tcp::StreamError> for StreamError {
    fn from(why: inhost_tcp::StreamError) -> Self {
        match why {
            inhost_tcp::StreamError::WouldBlock => StreamError::WouldBlock,
            inhost_tcp::StreamError::Closed => StreamError::Shutdown,
            inhost_tcp::StreamError::Connection(why) => StreamError::Connection(why),
        }
    }
}
impl From<SendDatagramError> for DatagramError {
    fn from(why: SendDatagramError) -> Self {
        match why {
            SendDatagramError::Pending | SendDatagramError::Full | SendDatagramError::NoMemory => {
                DatagramError::WouldBlock
            }
            SendDatagramError::Unreachable => DatagramError::NoNeighbour,
            SendDatagramError::TooLong | SendDatagramError::WouldFragment { .. } => DatagramError::TooLong,
        }
    }
}
