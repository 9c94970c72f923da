//! The system calls of the table, by purpose.

pub(crate) mod control;
pub(crate) mod opening;
pub(crate) mod pipes;
pub(crate) mod readiness;
pub(crate) mod receiving;
pub(crate) mod sending;

use crate::socket::{Socket, State};
use crate::world::World;
use inhost_socket::errno::Errno;
use inhost_stack::{ConnectionError, Stack, StreamError, TcpSocketId};
use libc::{EAGAIN, EBADF, EINVAL, EPIPE};

/// The number of what a stream call of the stack refused.
pub(crate) fn stream_errno(why: StreamError) -> i32 {
    match why {
        StreamError::WouldBlock => EAGAIN,
        StreamError::Shutdown => EPIPE,
        StreamError::Connection(why) => why.errno(),
        StreamError::Socket(inhost_stack::SocketError::NoSocket) => EBADF,
        _ => EINVAL,
    }
}

impl World {
    /// The error of a socket that was not told yet. It is told once.
    pub fn take_error(&mut self, fd: i32) -> Result<Option<i32>, i32> {
        if let Some(number) = self.socket_mut(fd)?.error.take() {
            return Ok(Some(number));
        }
        let Some(number) = unreported_error(self.stack(), self.socket(fd)?) else { return Ok(None) };
        self.socket_mut(fd)?.error_told = true;
        Ok(Some(number))
    }
}

/// The error that ended a socket's connection, when it was not told yet.
pub(crate) fn unreported_error(stack: &Stack, socket: &Socket) -> Option<i32> {
    if socket.error_told {
        return None;
    }
    let State::Connection(connection) = socket.state else { return None };
    Some(connection_error(stack, connection)?.errno())
}

/// Why a connection ended.
pub(crate) fn connection_error(stack: &Stack, name: TcpSocketId) -> Option<ConnectionError> {
    stack.instruments().connection(name)?.error()
}

/// How many bytes may still go with the SYN; 0 without a connection.
pub(crate) fn syn_data_room(stack: &Stack, name: TcpSocketId) -> usize {
    stack.instruments().connection(name).map_or(0, |connection| connection.sender().syn_data_room())
}
