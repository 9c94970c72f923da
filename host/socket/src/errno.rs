//! Error numbers of Linux, for the sockets' error types.
//!
//! Errors of the sockets become `std::io::Error`s that keep the typed error inside; [`number`] gives the number of
//! either. The numbers are those of Linux.

use std::io;

use inhost_ip::{ErrorKind, RouteError};
use inhost_stack as stack;

use crate::error::{
    AcceptError, BindError, ConnectError, ConnectionError, DatagramError, Gone, ListenError, StreamError,
};

#[allow(missing_docs)] // The names are the system's own.
mod numbers {
    pub const EIO: i32 = 5;
    pub const EBADF: i32 = 9;
    pub const EAGAIN: i32 = 11;
    pub const EACCES: i32 = 13;
    pub const EINVAL: i32 = 22;
    pub const ENFILE: i32 = 23;
    pub const EPIPE: i32 = 32;
    pub const EDESTADDRREQ: i32 = 89;
    pub const EMSGSIZE: i32 = 90;
    pub const EPROTO: i32 = 71;
    pub const ENOPROTOOPT: i32 = 92;
    pub const EOPNOTSUPP: i32 = 95;
    pub const EADDRINUSE: i32 = 98;
    pub const EADDRNOTAVAIL: i32 = 99;
    pub const ENETDOWN: i32 = 100;
    pub const ENETUNREACH: i32 = 101;
    pub const ECONNABORTED: i32 = 103;
    pub const ECONNRESET: i32 = 104;
    pub const ENOTCONN: i32 = 107;
    pub const ETIMEDOUT: i32 = 110;
    pub const ECONNREFUSED: i32 = 111;
    pub const EHOSTUNREACH: i32 = 113;
}
pub use numbers::*;

/// An error that has a number.
pub trait Errno: core::error::Error + Send + Sync + Copy + 'static {
    /// The system's number for it.
    fn errno(&self) -> i32;

    /// The error as `std::io` knows it; the kind follows the number, and the error itself is kept inside.
    fn into_io(self) -> io::Error {
        io::Error::new(kind(self.errno()), self)
    }
}

/// The kind for a number: always one that can be matched, also where the standard library has none.
fn kind(number: i32) -> io::ErrorKind {
    match number {
        EBADF | EDESTADDRREQ => io::ErrorKind::NotConnected,
        EMSGSIZE => io::ErrorKind::InvalidInput,
        ENFILE => io::ErrorKind::QuotaExceeded,
        EPROTO => io::ErrorKind::InvalidData,
        ENOPROTOOPT => io::ErrorKind::Unsupported,
        EIO => io::ErrorKind::Other,
        number => io::Error::from_raw_os_error(number).kind(),
    }
}

/// The number of an `io::Error` of this crate or of the system.
pub fn number(error: &io::Error) -> i32 {
    if let Some(number) = error.raw_os_error() {
        return number;
    }
    let inner = error.get_ref();
    let known = inner.and_then(|inner| {
        let stream = inner.downcast_ref::<StreamError>().map(Errno::errno);
        let connect = || inner.downcast_ref::<ConnectError>().map(Errno::errno);
        let listen = || inner.downcast_ref::<ListenError>().map(Errno::errno);
        let accept = || inner.downcast_ref::<AcceptError>().map(Errno::errno);
        let datagram = || inner.downcast_ref::<DatagramError>().map(Errno::errno);
        let socket = || inner.downcast_ref::<stack::SocketError>().map(Errno::errno);
        let gone = || inner.downcast_ref::<Gone>().map(Errno::errno);
        stream
            .or_else(connect)
            .or_else(listen)
            .or_else(accept)
            .or_else(datagram)
            .or_else(socket)
            .or_else(gone)
    });
    known.unwrap_or(match error.kind() {
        io::ErrorKind::WouldBlock => EAGAIN,
        io::ErrorKind::TimedOut => ETIMEDOUT,
        io::ErrorKind::InvalidInput => EINVAL,
        io::ErrorKind::NotConnected => ENOTCONN,
        io::ErrorKind::BrokenPipe => EPIPE,
        _ => EIO,
    })
}

impl Errno for ConnectionError {
    fn errno(&self) -> i32 {
        match self {
            ConnectionError::Refused => ECONNREFUSED,
            ConnectionError::Reset => ECONNRESET,
            ConnectionError::TimedOut | ConnectionError::KeepAliveTimedOut => ETIMEDOUT,
            ConnectionError::Unreachable => EHOSTUNREACH,
            ConnectionError::NetworkUnreachable => ENETUNREACH,
            ConnectionError::ProtocolUnreachable => ENOPROTOOPT,
            ConnectionError::ParameterProblem => EPROTO,
            ConnectionError::Aborted => ECONNABORTED,
            _ => EIO,
        }
    }
}

impl Errno for RouteError {
    fn errno(&self) -> i32 {
        match self {
            RouteError::NoRoute => ENETUNREACH,
            RouteError::NoSource | RouteError::Tentative | RouteError::NotOurs => EADDRNOTAVAIL,
            RouteError::NoLink => ENETDOWN,
            RouteError::BadDestination | RouteError::Ambiguous => EINVAL,
            _ => EIO,
        }
    }
}

impl Errno for ConnectError {
    fn errno(&self) -> i32 {
        match self {
            ConnectError::Begin(stack::ConnectError::Route(why)) => why.errno(),
            ConnectError::Begin(stack::ConnectError::BadRemote) => EINVAL,
            ConnectError::Begin(stack::ConnectError::InUse) => EADDRINUSE,
            ConnectError::Begin(stack::ConnectError::NoPort) => EADDRNOTAVAIL,
            ConnectError::Begin(stack::ConnectError::TooManySockets) => ENFILE,
            ConnectError::Begin(_) => EIO,
            ConnectError::Connection(why) => why.errno(),
            ConnectError::Stopped => ENETDOWN,
        }
    }
}

impl Errno for BindError {
    fn errno(&self) -> i32 {
        match self {
            BindError::InUse => EADDRINUSE,
            BindError::NotOurs => EADDRNOTAVAIL,
            BindError::NoPort => EINVAL,
            BindError::TooManySockets => ENFILE,
            _ => EIO,
        }
    }
}

impl Errno for ListenError {
    fn errno(&self) -> i32 {
        match self {
            ListenError::Bind(why) => why.errno(),
            ListenError::Stopped => ENETDOWN,
        }
    }
}

impl Errno for AcceptError {
    fn errno(&self) -> i32 {
        match self {
            AcceptError::Closed => EBADF,
            AcceptError::Stopped => ENETDOWN,
        }
    }
}

impl Errno for StreamError {
    fn errno(&self) -> i32 {
        match self {
            StreamError::Connection(why) => why.errno(),
            StreamError::SendingEnded => EPIPE,
            StreamError::Closed => EBADF,
            StreamError::Stopped => ENETDOWN,
        }
    }
}

impl Errno for stack::SocketError {
    fn errno(&self) -> i32 {
        match self {
            stack::SocketError::NoSocket => EBADF,
            stack::SocketError::WrongKind => EOPNOTSUPP,
            stack::SocketError::Invalid => EINVAL,
            _ => EIO,
        }
    }
}

impl Errno for Gone {
    fn errno(&self) -> i32 {
        ENETDOWN
    }
}

impl Errno for DatagramError {
    fn errno(&self) -> i32 {
        match self {
            DatagramError::Stack(why) => datagram(why),
            DatagramError::Stopped => ENETDOWN,
        }
    }
}

fn datagram(why: &stack::DatagramError) -> i32 {
    match why {
        stack::DatagramError::WouldBlock => EAGAIN,
        stack::DatagramError::Route(why) => why.errno(),
        stack::DatagramError::NoDestination => EDESTADDRREQ,
        stack::DatagramError::Broadcast => EACCES,
        stack::DatagramError::TooLong => EMSGSIZE,
        stack::DatagramError::NotOurs => EADDRNOTAVAIL,
        stack::DatagramError::Unreachable(kind) => match kind {
            ErrorKind::PortUnreachable => ECONNREFUSED,
            ErrorKind::PacketTooBig => EMSGSIZE,
            ErrorKind::NetworkUnreachable => ENETUNREACH,
            ErrorKind::ParameterProblem => EPROTO,
            _ => EHOSTUNREACH,
        },
        stack::DatagramError::NoNeighbour => EHOSTUNREACH,
        stack::DatagramError::InUse => EADDRINUSE,
        stack::DatagramError::Socket(why) => why.errno(),
        _ => EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_can_be_matched() {
        let numbers = [
            EIO,
            EBADF,
            EAGAIN,
            EACCES,
            EINVAL,
            ENFILE,
            EPIPE,
            EDESTADDRREQ,
            EMSGSIZE,
            EPROTO,
            ENOPROTOOPT,
            EOPNOTSUPP,
            EADDRINUSE,
            EADDRNOTAVAIL,
            ENETDOWN,
            ENETUNREACH,
            ECONNABORTED,
            ECONNRESET,
            ENOTCONN,
            ETIMEDOUT,
            ECONNREFUSED,
            EHOSTUNREACH,
        ];
        for number in numbers {
            // The standard library's own kind for what it does not know cannot be named.
            assert_ne!(format!("{:?}", kind(number)), "Uncategorized", "{number}");
        }
    }

    #[test]
    fn a_typed_error_keeps_its_number_and_its_kind() {
        let error = ConnectError::Connection(ConnectionError::Refused).into_io();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(number(&error), ECONNREFUSED);
        assert_eq!(error.to_string(), "connection refused");
        let error = StreamError::SendingEnded.into_io();
        assert_eq!((error.kind(), number(&error)), (io::ErrorKind::BrokenPipe, EPIPE));
        assert_eq!(number(&io::Error::from_raw_os_error(EMSGSIZE)), EMSGSIZE);
        let error = StreamError::Closed.into_io();
        assert_eq!((error.kind(), number(&error)), (io::ErrorKind::NotConnected, EBADF));
        assert_eq!(number(&io::ErrorKind::WouldBlock.into()), EAGAIN);
        let error = ConnectError::Begin(stack::ConnectError::Route(RouteError::NoRoute)).into_io();
        assert_eq!((error.kind(), number(&error)), (io::ErrorKind::NetworkUnreachable, ENETUNREACH));
    }
}
