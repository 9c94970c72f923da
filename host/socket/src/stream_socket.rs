//! A TCP connection of a host, as local streams and those of other threads reach it on the host's own thread.

use std::io;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use inhost_event::Layer;
use inhost_stack::{self as stack, Queued, SocketError, SocketOption, TcpSocketId};
use inhost_tcp::SendHow;
use tokio::io::ReadBuf;

use crate::errno::Errno;
use crate::error::StreamError;
use crate::host::{Host, tcp};
use crate::send_buffer::{SendBuffer, UNCOUNTED_BYTES};
use crate::waiters::Wait;

/// A connection by its host and its name there. It is open as long as a stream has it.
#[derive(Debug)]
pub(crate) struct StreamSocket {
    host: Host,
    socket: TcpSocketId,
}

impl StreamSocket {
    pub(crate) fn new(host: Host, socket: TcpSocketId) -> StreamSocket {
        StreamSocket { host, socket }
    }
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }
    pub(crate) fn socket(&self) -> TcpSocketId {
        self.socket
    }
    pub(crate) fn set_option(&self, option: SocketOption) -> Result<(), SocketError> {
        self.host.core(|core| core.stack.set_option(self.socket, option, core.now, &mut *core.sink))
    }
    /// Asks the connection something, while the stack has it.
    pub(crate) fn ask<R>(&self, ask: impl FnOnce(&stack::Connection) -> R) -> Option<R> {
        self.host.core(|core| core.stack.instruments().connection(self.socket).map(ask))
    }
    pub(crate) fn queued(&self) -> Option<Queued> {
        self.host.core(|core| core.stack.instruments().queued(self.socket))
    }
    /// Reckons the room to send of a connection as Linux does from now on, with `SO_SNDBUF` at `bytes`.
    pub(crate) fn set_send_buffer(&self, bytes: usize) -> Result<(), SocketError> {
        self.set_option(SocketOption::SendBufferLimit(UNCOUNTED_BYTES))?;
        let limit_bytes = SendBuffer::limit_of_option(bytes);
        let mut buffers = self.host.send_buffers().borrow_mut();
        let buffer = buffers.entry(self.socket.into()).or_insert_with(|| {
            let queued = self.queued().unwrap_or_default();
            let mut buffer = SendBuffer::new(limit_bytes, limit_bytes, true);
            buffer.wrote(queued.unacknowledged_bytes);
            buffer
        });
        buffer.fix(limit_bytes);
        Ok(())
    }
    /// Sends as much of `bytes` as the send buffer has room for.
    fn send(&self, bytes: &[u8], how: SendHow) -> Result<usize, stack::StreamError> {
        let (host, socket) = (&self.host, self.socket);
        let mut buffers = host.send_buffers().borrow_mut();
        let Some(buffer) = buffers.get_mut(&socket.into()) else {
            return host.within(Layer::Tcp, || host.core(|core| tcp(core).send_with(socket, bytes, how)));
        };
        let end = |all| if all { how } else { SendHow { push: false, ..SendHow::default() } };
        let mut sent = 0;
        loop {
            // A task that came back too early waits on.
            let mut was_full = true;
            let taken = host.core(|core| {
                let on = (&mut core.stack, socket, usize::MAX);
                buffer.write(on, &bytes[sent..], &mut was_full, end, (core.now, &mut *core.sink))
            });
            match taken {
                Ok(taken) => sent += taken.bytes,
                Err(stack::StreamError::WouldBlock) if sent > 0 => return Ok(sent),
                Err(error) => return Err(error),
            }
            if sent == bytes.len() {
                return Ok(sent);
            }
        }
    }
    /// Sends the front of `bytes` without a copy, and takes it off there; how much. Where the room to send is reckoned as Linux
    /// does, it is copied.
    pub(crate) fn poll_lend(
        &self,
        context: &Context<'_>,
        bytes: &mut Bytes,
        how: SendHow,
    ) -> Poll<Result<usize, StreamError>> {
        let (host, socket) = (&self.host, self.socket);
        if host.send_buffers().borrow().contains_key(&socket.into()) {
            return self.poll_send(context, bytes, how).map_ok(|count| {
                bytes.advance(count);
                count
            });
        }
        let lent = host.within(Layer::Tcp, || host.core(|core| tcp(core).lend(socket, bytes, how)));
        self.or_wait(lent, Wait::Write, context)
    }
    /// Whether a writer waits for room.
    pub(crate) fn is_send_buffer_full(&self) -> bool {
        self.host.send_buffers().borrow().get(&self.socket.into()).is_some_and(SendBuffer::is_wanted)
    }
    pub(crate) fn poll_send(
        &self,
        context: &Context<'_>,
        bytes: &[u8],
        how: SendHow,
    ) -> Poll<Result<usize, StreamError>> {
        self.or_wait(self.send(bytes, how), Wait::Write, context)
    }
    /// `how` is that of the last buffer.
    pub(crate) fn poll_send_vectored(
        &self,
        context: &Context<'_>,
        pieces: &[io::IoSlice<'_>],
        how: SendHow,
    ) -> Poll<Result<usize, StreamError>> {
        let mut total = 0;
        let last = pieces.iter().rposition(|piece| !piece.is_empty());
        for (index, piece) in pieces.iter().enumerate().filter(|(_, piece)| !piece.is_empty()) {
            let how = if last == Some(index) { how } else { SendHow { more: true, ..SendHow::default() } };
            match self.poll_send(context, piece, how) {
                Poll::Ready(Ok(count)) => {
                    total += count;
                    if count < piece.len() {
                        break;
                    }
                }
                // The bytes already taken are returned first; the next call finds the error.
                Poll::Pending | Poll::Ready(Err(_)) if total > 0 => break,
                other => return other,
            }
        }
        Poll::Ready(Ok(total))
    }
    pub(crate) fn poll_receive(
        &self,
        context: &Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<usize, StreamError>> {
        let StreamSocket { host, socket } = self;
        let received = host.within(Layer::Tcp, || host.core(|core| tcp(core).read(*socket, into)));
        self.or_wait(received, Wait::Read, context)
    }
    /// The result of an attempt, or a wait for another one.
    pub(crate) fn or_wait<T>(
        &self,
        result: Result<T, stack::StreamError>,
        wait: Wait,
        context: &Context<'_>,
    ) -> Poll<Result<T, StreamError>> {
        self.host.executor().operation();
        Poll::Ready(match result {
            Ok(value) => Ok(value),
            Err(stack::StreamError::WouldBlock) => {
                self.host.register(self.socket, wait, context);
                return Poll::Pending;
            }
            Err(stack::StreamError::Shutdown) => Err(StreamError::SendingEnded),
            Err(stack::StreamError::Connection(why)) => Err(StreamError::Connection(why)),
            Err(_) => Err(StreamError::Closed),
        })
    }
}

/// What tokio's traits ask for of a stream whose bytes `receive` gives.
pub(crate) fn poll_read(
    into: &mut ReadBuf<'_>,
    receive: impl FnOnce(&mut [u8]) -> Poll<Result<usize, StreamError>>,
) -> Poll<io::Result<()>> {
    if into.remaining() == 0 {
        return Poll::Ready(Ok(()));
    }
    receive(into.initialize_unfilled()).map_ok(|count| into.advance(count)).map_err(Errno::into_io)
}
