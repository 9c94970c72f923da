//! Error types, one for each operation.

use inhost_datagram::SocketError;
use inhost_ip::RouteError;
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

impl From<inhost_tcp::StreamError> for StreamError {
    fn from(why: inhost_tcp::StreamError) -> Self {
        match why {
            inhost_tcp::StreamError::WouldBlock => StreamError::WouldBlock,
            inhost_tcp::StreamError::Closed => StreamError::Shutdown,
            inhost_tcp::StreamError::Connection(why) => StreamError::Connection(why),
        }
    }
}
