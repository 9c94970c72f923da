//! What a call on a socket may say instead of its result.

use inhost_ip::{ErrorKind, RouteError, SendDatagramError};

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
