//! Error types, one for each operation. The stack's errors are passed on; the sockets add only their own.

use core::fmt;

use inhost_stack as stack;
pub use inhost_stack::BindError;
pub use inhost_tcp::ConnectionError;

/// Why a connection was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The connection was not begun.
    Begin(stack::ConnectError),
    /// The connection failed.
    Connection(ConnectionError),
    /// The host is stopping.
    Stopped,
}

/// Why there is no listener or no datagram socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ListenError {
    /// The local end was not bound.
    Bind(BindError),
    /// The host is stopping.
    Stopped,
}

/// Why no connection was accepted, and none will be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AcceptError {
    /// The listener is gone.
    Closed,
    /// The host is stopping and takes no new connections.
    Stopped,
}

/// Why bytes of a stream were not sent or not received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StreamError {
    /// The connection is over, and this is why.
    Connection(ConnectionError),
    /// Our sending half was closed.
    SendingEnded,
    /// The socket is closed.
    Closed,
    /// The host was stopped.
    Stopped,
}

/// Why a datagram was not sent or not received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DatagramError {
    /// An error of the stack; never `WouldBlock`.
    Stack(stack::DatagramError),
    /// The host was stopped.
    Stopped,
}

/// The host was stopped before it answered, or it runs in the process that this one was forked from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone;

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Begin(why) => why.fmt(f),
            ConnectError::Connection(why) => why.fmt(f),
            ConnectError::Stopped => f.write_str(STOPPED),
        }
    }
}
impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::Bind(why) => why.fmt(f),
            ListenError::Stopped => f.write_str(STOPPED),
        }
    }
}
impl fmt::Display for AcceptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AcceptError::Closed => "the listener is closed",
            AcceptError::Stopped => STOPPED,
        })
    }
}
impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Connection(why) => why.fmt(f),
            StreamError::SendingEnded => f.write_str("closed for sending"),
            StreamError::Closed => f.write_str("the socket is closed"),
            StreamError::Stopped => f.write_str(STOPPED),
        }
    }
}
impl fmt::Display for DatagramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatagramError::Stack(why) => why.fmt(f),
            DatagramError::Stopped => f.write_str(STOPPED),
        }
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the host was stopped, or runs in another process")
    }
}

const STOPPED: &str = "the host is stopping";

impl core::error::Error for ConnectError {}
impl core::error::Error for ListenError {}
impl core::error::Error for AcceptError {}
impl core::error::Error for StreamError {}
impl core::error::Error for DatagramError {}
impl core::error::Error for Gone {}

impl From<stack::ConnectError> for ConnectError {
    fn from(why: stack::ConnectError) -> Self {
        ConnectError::Begin(why)
    }
}
impl From<BindError> for ListenError {
    fn from(why: BindError) -> Self {
        ListenError::Bind(why)
    }
}
impl From<stack::DatagramError> for DatagramError {
    fn from(why: stack::DatagramError) -> Self {
        DatagramError::Stack(why)
    }
}
