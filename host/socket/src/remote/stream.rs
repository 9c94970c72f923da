//! TCP connections for other threads.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use inhost_base::Endpoint;
use inhost_stack::{ConnectionOptions, SocketError, SocketOption, TcpSocketId};
use inhost_tcp::{Info, SendHow};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::down::Sending;
use super::host::RemoteHost;
use super::pipe::Pipe;
use super::pump::Pump;
use super::readiness::StreamReadiness;
use crate::errno::Errno;
use crate::error::StreamError;
use crate::host::Host;
use crate::memory::REMOTE_RING_BYTES;
use crate::stream::Stream;
use crate::stream_socket::{StreamSocket, poll_read};

/// A connection that is `Send`: two bounded byte rings, which a task of the host fills and empties. Much received data
/// passes by in its packets. On the host's own thread it reads from the connection itself and writes to it, as [`Stream`] does.
///
/// It reads and writes as tokio's traits say, on any executor; [`crate::blocking::TcpStream`] is its blocking form.
/// Clones are the same stream; when the last is dropped, written data is still delivered. A successful write puts data
/// into the ring; a later error is returned by the next call.
#[derive(Clone)]
pub struct RemoteStream {
    outer: Arc<Outer>,
    local: Endpoint,
    remote: Endpoint,
    host: RemoteHost,
    socket: TcpSocketId,
}

struct Outer {
    pipe: Arc<Pipe>,
    /// The options when the stream was handed over.
    options: Option<ConnectionOptions>,
}

impl Drop for Outer {
    fn drop(&mut self) {
        self.pipe.abandon();
    }
}

impl Stream {
    /// Hands the connection to another thread; a task of the host serves it from now on.
    pub fn into_remote(self) -> RemoteStream {
        let pipe = Pipe::new(REMOTE_RING_BYTES, self.host().remote_memory());
        let (local, remote) = (self.local(), self.remote());
        let (host, socket) = (self.host().clone(), self.socket());
        let options = self.options().ok();
        host.spawn(Pump::new(self, pipe.clone())).detach();
        let outer = Arc::new(Outer { pipe, options });
        RemoteStream { outer, local, remote, host: host.remote(), socket }
    }
}

impl RemoteStream {
    /// Our end.
    pub fn local(&self) -> Endpoint {
        self.local
    }
    /// The other end.
    pub fn remote(&self) -> Endpoint {
        self.remote
    }
    /// Sets any option of the connection.
    pub async fn set_option(&self, option: SocketOption) -> Result<(), SocketError> {
        self.host.set_option(self.socket, option).await
    }
    /// Sets an option of the connection without waiting for the host: it counts for what is written from now on. An
    /// option that the connection refuses has no effect.
    pub fn queue_option(&self, option: SocketOption) {
        self.outer.pipe.set_option(option);
    }
    /// `SO_SNDBUF`; see [`Stream::set_send_buffer`].
    pub async fn set_send_buffer(&self, bytes: usize) -> Result<(), SocketError> {
        let socket = self.socket;
        let set =
            self.host.call(move |host| async move { StreamSocket::new(host, socket).set_send_buffer(bytes) });
        set.await.unwrap_or(Err(SocketError::NoSocket))
    }
    /// The options when the stream was handed to other threads; `None` if the connection was over by then.
    pub fn first_options(&self) -> Option<&ConnectionOptions> {
        self.outer.options.as_ref()
    }
    /// The options as they stand, while the connection lives.
    pub async fn options(&self) -> Result<ConnectionOptions, SocketError> {
        self.host.options(self.socket).await
    }
    /// Every figure of the connection, while it lives.
    pub async fn info(&self) -> Option<Info> {
        self.host.info(self.socket).await?.tcp
    }
    /// Reads available data; `None` when there is none yet, 0 at the end of the stream.
    pub fn try_read(&self, into: &mut [u8]) -> Option<Result<usize, StreamError>> {
        self.outer.pipe.try_read(into)
    }
    /// Writes as much as there is room for; `None` when there is none.
    pub fn try_write(&self, bytes: &[u8]) -> Option<Result<usize, StreamError>> {
        self.outer.pipe.try_write(&[io::IoSlice::new(bytes)], false)
    }
    /// Writes from several buffers as much as there is room for, as one write; `None` when there is none.
    pub fn try_write_vectored(&self, pieces: &[io::IoSlice<'_>]) -> Option<Result<usize, StreamError>> {
        self.outer.pipe.try_write(pieces, false)
    }
    /// Writing from several buffers, for a future of one's own.
    pub fn poll_send_vectored(
        &self,
        context: &Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<Result<usize, StreamError>> {
        self.write(context, pieces, false)
    }
    /// Reading for a future of one's own; takes `&self`, so that one task may read while another writes.
    pub fn poll_receive(&self, context: &Context<'_>, into: &mut [u8]) -> Poll<Result<usize, StreamError>> {
        let pipe = &self.outer.pipe;
        let here = self.here().filter(|_| !into.is_empty() && pipe.may_read_directly());
        let Some(connection) = here else { return pipe.poll_read(context, into) };
        let received = connection.poll_receive(context, into);
        match received {
            Poll::Ready(Ok(0)) => pipe.ended_directly(Ok(())),
            Poll::Ready(Err(error)) => pipe.ended_directly(Err(error)),
            Poll::Ready(Ok(_)) => connection.host().wants_round(),
            Poll::Pending => {}
        }
        received
    }
    /// Writing for a future of one's own; when `urgent`, the last of `bytes` is.
    pub fn poll_send(
        &self,
        context: &Context<'_>,
        bytes: &[u8],
        urgent: bool,
    ) -> Poll<Result<usize, StreamError>> {
        self.write(context, &[io::IoSlice::new(bytes)], urgent)
    }
    fn write(
        &self,
        context: &Context<'_>,
        pieces: &[io::IoSlice<'_>],
        urgent: bool,
    ) -> Poll<Result<usize, StreamError>> {
        let pipe = &self.outer.pipe;
        let here = self.here().and_then(|connection| Some((connection, pipe.may_write_directly()?)));
        let Some((connection, options)) = here else { return pipe.poll_write(context, pieces, urgent) };
        for option in options {
            // A connection that is over has no options.
            let _ = connection.set_option(option);
        }
        let how = SendHow { urgent, ..SendHow::default() };
        let sent = connection.poll_send_vectored(context, pieces, how);
        match sent {
            Poll::Ready(Ok(_)) => connection.host().wants_round(),
            Poll::Ready(Err(error)) => pipe.failed_directly(error),
            Poll::Pending => {}
        }
        sent
    }
    /// The connection, where its host lives on this thread and knows the time: then it is reached without a detour.
    fn here(&self) -> Option<StreamSocket> {
        let host = self.host.here().filter(Host::knows_time)?;
        Some(StreamSocket::new(host, self.socket))
    }
    /// Copies available data into `into` without consuming it, for a future of one's own.
    pub fn poll_peek(&self, context: &Context<'_>, into: &mut [u8]) -> Poll<Result<usize, StreamError>> {
        self.outer.pipe.poll_peek(context, into)
    }
    /// What can be done without waiting.
    pub fn readiness(&self) -> StreamReadiness {
        self.outer.pipe.readiness()
    }
    /// Waits until there is something to read, the end of the stream, or an error.
    pub fn poll_readable(&self, context: &Context<'_>) -> Poll<StreamReadiness> {
        self.poll_ready(context, |ready| ready.readable)
    }
    /// Waits until there is room to write, or an error.
    pub fn poll_writable(&self, context: &Context<'_>) -> Poll<StreamReadiness> {
        self.poll_ready(context, |ready| ready.writable)
    }
    /// Waits until something holds of what can be done, such as that the connection failed or that urgent data is ahead.
    pub fn poll_ready(
        &self,
        context: &Context<'_>,
        holds: impl Fn(StreamReadiness) -> bool,
    ) -> Poll<StreamReadiness> {
        self.outer.pipe.poll_ready(context, holds)
    }
    /// Why the connection or its sending half ended, when it did not end well.
    pub fn error(&self) -> Option<StreamError> {
        self.outer.pipe.error()
    }
    /// The host it belongs to.
    pub fn host(&self) -> &RemoteHost {
        &self.host
    }
    /// Bytes from the next one to be read up to and including the urgent mark, when it is ahead.
    pub fn urgent_ahead(&self) -> Option<usize> {
        match self.here().filter(|_| self.outer.pipe.reads_directly()) {
            Some(connection) => connection.ask(|connection| connection.receiver().urgent_ahead())?,
            None => self.outer.pipe.urgent_ahead(),
        }
    }
    /// Bytes that can be read at once.
    pub fn readable_bytes(&self) -> usize {
        match self.here().filter(|_| self.outer.pipe.reads_directly()) {
            Some(connection) => connection.queued().map_or(0, |queued| queued.readable_bytes),
            None => self.outer.pipe.readable_bytes(),
        }
    }
    /// Ends the sending half after the written data.
    pub fn shutdown(&self) {
        self.outer.pipe.end_sending(Sending::Finished);
    }
    /// Resets the connection; undelivered data is lost.
    pub fn abort(&self) {
        self.outer.pipe.end_sending(Sending::Aborted);
    }
}

impl core::fmt::Debug for RemoteStream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RemoteStream").field("local", &self.local).field("remote", &self.remote).finish()
    }
}

impl AsyncRead for RemoteStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        poll_read(into, |place| self.poll_receive(context, place))
    }
}

impl AsyncWrite for RemoteStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_send(context, bytes, false).map_err(Errno::into_io)
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send_vectored(context, pieces).map_err(Errno::into_io)
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shutdown();
        Poll::Ready(Ok(()))
    }
}
