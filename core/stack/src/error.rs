//! Error types, one for each operation.

use inhost_ip::{ErrorKind, RouteError, SendDatagramError};
use inhost_tcp::ConnectionError;

/// Why a connection was not begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// There is no route to the remote address.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The remote end cannot be called: a group, a broadcast address, an unspecified address, or port 0.
    #[error("the remote end cannot be called")]
    BadRemote,
    /// The same two ends are connected already, or the local port asked for is a listener's own.
    #[error("the two ends are connected already")]
    InUse,
    /// No ephemeral port is free towards that remote endpoint, or the requested port belongs to another shard.
    #[error("every local port is taken")]
    NoPort,
    /// As many sockets as the host may have.
    #[error("too many sockets")]
    TooManySockets,
}

/// Why a local end was not bound: of a listener, a UDP or an echo socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another socket has the same local end.
    #[error("the local address and port are in use")]
    InUse,
    /// The address is none of ours.
    #[error("the address is not one of ours")]
    NotOurs,
    /// A port is needed; only an any-address socket may go without.
    #[error("no port is free")]
    NoPort,
    /// As many sockets as the host may have.
    #[error("too many sockets")]
    TooManySockets,
}

/// Why there is no listener: see [`BindError`].
pub type ListenError = BindError;

/// A call that this socket does not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum SocketError {
    /// The socket was closed, or never was.
    #[error("no such socket")]
    NoSocket,
    /// The socket is of another kind, or in the wrong state.
    #[error("not an operation for this socket")]
    WrongKind,
    /// The value is out of range.
    #[error("the value is out of range")]
    Invalid,
}

/// Why stream bytes were not taken or not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// Not now: readiness will tell.
    #[error("not ready now")]
    WouldBlock,
    /// Our side was closed for sending.
    #[error("closed for sending")]
    Shutdown,
    /// The connection is over, and this is why.
    #[error(transparent)]
    Connection(ConnectionError),
    /// Not a socket for this.
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// Why a datagram was not sent or not received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum DatagramError {
    /// Not now: readiness will tell.
    #[error("not ready now")]
    WouldBlock,
    /// There is no route to the destination.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The socket is not connected, and no destination was given.
    #[error("no destination")]
    NoDestination,
    /// The destination is a broadcast address, and the socket was not allowed that.
    #[error("the socket may not send to a broadcast address")]
    Broadcast,
    /// Longer than a datagram can be, or than the path takes in one piece where fragments are forbidden.
    #[error("the datagram is too long")]
    TooLong,
    /// The address to send from is not the socket's.
    #[error("the source is not the socket's")]
    NotOurs,
    /// An earlier datagram was lost or refused, and a router or the other end reported it. Reported once.
    #[error("{}", words_of(*.0))]
    Unreachable(ErrorKind),
    /// The neighbour that leads there did not answer to an earlier datagram. Reported once.
    #[error("the next hop does not answer")]
    NoNeighbour,
    /// The socket is connected already, or there is no free port.
    #[error("the local end is in use")]
    InUse,
    /// Not a socket for this.
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// What an error about an earlier datagram says.
fn words_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::PortUnreachable => "nobody listens at the port",
        ErrorKind::PacketTooBig => "the datagram is too long for the path",
        _ => "the destination is unreachable",
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
