//! The TCP stream for local tasks.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use inhost_base::{Duration, Endpoint};
use inhost_stack::{self as stack, ConnectOptions, Readiness, SocketInfo, TcpSocketId};
use inhost_tcp::{Info, KeepAlive, SendHow};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::errno::Errno;
use crate::error::{ConnectError, ConnectionError, StreamError};
use crate::host::{Host, tcp};
use crate::stream_socket::{StreamSocket, poll_read};
use crate::waiters::Wait;

/// A connection.
///
/// It implements tokio's `AsyncRead` and `AsyncWrite`. Shutdown ends the sending half; the peer can still send. Every
/// write is a push: it leaves in this round as far as windows and Nagle's rule let it, and there is nothing to flush.
/// `&Stream` reads and writes too, so that one task may do both at once, without a lock. Dropping the stream closes it:
/// the host still delivers written data in the background. With unread received data the peer gets a reset, because it
/// must know that data was lost.
///
/// ```
/// use inhost_base::{Endpoint, Instant, Ipv4Addr};
/// use inhost_socket::Host;
/// use inhost_stack::{ListenOptions, Stack, StackConfig};
///
/// let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
/// let here = Endpoint::new(Ipv4Addr::LOCALHOST, 80);
/// let listener = host.listen(here, ListenOptions::default())?;
/// host.run_alone(async {
///     let stream = host.connect(here).await.unwrap();
///     stream.send(b"hello", Default::default()).await.unwrap();
///     let accepted = listener.accept().await.unwrap();
///     let mut place = [0; 16];
///     let length = accepted.receive(&mut place).await.unwrap();
///     assert_eq!(&place[..length], b"hello");
///     assert_eq!(accepted.remote(), stream.local());
/// });
/// # Ok::<(), inhost_socket::ListenError>(())
/// ```
#[derive(Debug)]
pub struct Stream {
    connection: StreamSocket,
    local: Endpoint,
    remote: Endpoint,
}

impl Stream {
    pub(crate) fn new(host: &Host, socket: TcpSocketId, local: Endpoint, remote: Endpoint) -> Stream {
        Stream { connection: StreamSocket::new(host.clone(), socket), local, remote }
    }

    pub(crate) async fn connect(
        host: &Host,
        remote: Endpoint,
        options: ConnectOptions,
        settings: &[stack::SocketOption],
    ) -> Result<Stream, ConnectError> {
        host.executor().operation();
        if host.is_draining() {
            return Err(ConnectError::Stopped);
        }
        let socket = host.core(|core| tcp(core).connect(remote, options))?;
        let local = host.core(|core| core.stack.endpoints(socket)).map_or(remote, |(local, _)| local);
        let stream = Stream::new(host, socket, local, remote);
        settings.iter().for_each(|option| stream.set(option.clone()));
        poll_fn(|context| stream.poll_connected(context)).await?;
        Ok(stream)
    }

    pub(crate) fn poll_connected(&self, context: &Context<'_>) -> Poll<Result<(), ConnectError>> {
        let readiness = self.host().readiness(self.socket());
        if readiness.intersects(Readiness::ERROR.union(Readiness::CLOSED)) {
            let why = self.error().unwrap_or(ConnectionError::Aborted);
            return Poll::Ready(Err(ConnectError::Connection(why)));
        }
        if readiness.contains(Readiness::CONNECTED) {
            return Poll::Ready(Ok(()));
        }
        self.host().register(self.socket(), Wait::Write, context);
        Poll::Pending
    }

    /// Our end.
    pub fn local(&self) -> Endpoint {
        self.local
    }
    /// The other end.
    pub fn remote(&self) -> Endpoint {
        self.remote
    }
    /// The socket's name, for [`Host::with_stack`].
    pub fn socket(&self) -> TcpSocketId {
        self.connection.socket()
    }
    /// The host it belongs to.
    pub fn host(&self) -> &Host {
        self.connection.host()
    }

    /// Sends as much of `bytes` as there is room for; waits while there is none.
    pub async fn send(&self, bytes: &[u8], how: SendHow) -> Result<usize, StreamError> {
        poll_fn(|context| self.poll_send(context, bytes, how)).await
    }
    /// One step of [`Stream::send`].
    pub fn poll_send(
        &self,
        context: &Context<'_>,
        bytes: &[u8],
        how: SendHow,
    ) -> Poll<Result<usize, StreamError>> {
        self.connection.poll_send(context, bytes, how)
    }
    /// Sends the front of `bytes` without a copy, and takes it off there.
    pub(crate) fn poll_lend(
        &self,
        context: &Context<'_>,
        bytes: &mut Bytes,
        how: SendHow,
    ) -> Poll<Result<usize, StreamError>> {
        self.connection.poll_lend(context, bytes, how)
    }
    /// Sends from several buffers as far as there is room, as one push.
    pub fn poll_send_vectored(
        &self,
        context: &Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<Result<usize, StreamError>> {
        self.connection.poll_send_vectored(context, pieces, SendHow::default())
    }
    /// Sends all of `bytes`, the last of which is urgent (TCP's urgent pointer; Telnet's Synch).
    pub async fn send_urgent(&self, mut bytes: &[u8]) -> Result<(), StreamError> {
        let how = SendHow { urgent: true, ..SendHow::default() };
        while !bytes.is_empty() {
            // A piece that is not the last moves the mark on when the next one follows.
            let count = self.send(bytes, how).await?;
            bytes = &bytes[count.min(bytes.len())..];
        }
        Ok(())
    }
    /// Receives available data into `into`; waits while there is none. 0 is the end of the stream.
    pub async fn receive(&self, into: &mut [u8]) -> Result<usize, StreamError> {
        poll_fn(|context| self.poll_receive(context, into)).await
    }
    /// One step of [`Stream::receive`].
    pub fn poll_receive(&self, context: &Context<'_>, into: &mut [u8]) -> Poll<Result<usize, StreamError>> {
        self.connection.poll_receive(context, into)
    }
    /// Copies available data into `into` without consuming it; waits while there is none.
    pub async fn peek(&self, into: &mut [u8]) -> Result<usize, StreamError> {
        poll_fn(|context| {
            let seen = self.host().core(|core| tcp(core).peek(self.socket(), into));
            self.connection.or_wait(seen, Wait::Read, context)
        })
        .await
    }
    /// Bytes from the next one to be received up to and including the urgent mark, when it is ahead.
    pub fn urgent_ahead(&self) -> Option<usize> {
        self.connection.ask(|connection| connection.receiver().urgent_ahead())?
    }

    /// Waits until there is something to receive, the end of the stream, or an error.
    pub async fn readable(&self) {
        poll_fn(|context| self.poll_ready(Wait::Read, context)).await;
    }
    /// Waits until there is room to send, or an error.
    pub async fn writable(&self) {
        poll_fn(|context| self.poll_ready(Wait::Write, context)).await;
    }
    /// Waits until urgent data is ahead; also wakes when none can come any more.
    pub async fn urgent(&self) {
        poll_fn(|context| self.poll_ready(Wait::Urgent, context)).await;
    }
    /// [`Stream::readable`] for a future of one's own.
    pub fn poll_readable(&self, context: &Context<'_>) -> Poll<()> {
        self.poll_ready(Wait::Read, context)
    }
    /// [`Stream::writable`] for a future of one's own.
    pub fn poll_writable(&self, context: &Context<'_>) -> Poll<()> {
        self.poll_ready(Wait::Write, context)
    }
    /// [`Stream::urgent`] for a future of one's own.
    pub fn poll_urgent(&self, context: &Context<'_>) -> Poll<()> {
        self.poll_ready(Wait::Urgent, context)
    }
    /// Waits until the connection is over on both sides, whatever ended it.
    pub async fn closed(&self) -> Result<(), ConnectionError> {
        let over = Readiness::CLOSED.union(Readiness::ERROR);
        poll_fn(|context| {
            if self.host().readiness(self.socket()).intersects(over) || !self.exists() {
                return Poll::Ready(());
            }
            self.host().register(self.socket(), Wait::Urgent, context);
            Poll::Pending
        })
        .await;
        self.error().map_or(Ok(()), Err)
    }

    /// Ends the sending half after the written data.
    pub fn shutdown(&self) {
        let _ = self.host().core(|core| tcp(core).shutdown(self.socket()));
    }
    /// Ends the connection at once; the peer gets a reset, and undelivered data is lost.
    pub fn abort(&self) {
        let _ = self.host().core(|core| tcp(core).abort(self.socket()));
        self.host().forget(self.socket().into());
    }
    /// Why the connection ended, when it did not end well.
    pub fn error(&self) -> Option<ConnectionError> {
        self.connection.ask(stack::Connection::error)?
    }
    /// Every figure of the connection, while it lives.
    pub fn info(&self) -> Option<Info> {
        self.socket_info().and_then(|info| info.tcp)
    }
    /// Socket information, while it lives.
    pub fn socket_info(&self) -> Option<SocketInfo> {
        self.host().core(|core| core.stack.instruments().info(self.socket(), core.now))
    }

    /// Whether small segments are held while data is unacknowledged. Default: as configured.
    pub fn set_nagle(&self, on: bool) {
        self.set(stack::SocketOption::Tcp(stack::ConnectionOption::Nagle(on)));
    }
    /// Whether, and how, an idle peer is probed.
    pub fn set_keep_alive(&self, keep_alive: Option<KeepAlive>) {
        self.set(stack::SocketOption::Tcp(stack::ConnectionOption::KeepAlive(keep_alive)));
    }
    /// How long sent data may stay unacknowledged.
    pub fn set_user_timeout(&self, timeout: Duration) {
        self.set(stack::SocketOption::Tcp(stack::ConnectionOption::UserTimeout(timeout)));
    }
    /// `SO_SNDBUF` as Linux counts it, in buffers and not bytes: from now on writes are taken in units of half the
    /// peer's largest window, up to about twice `bytes`, and a waiting writer is woken when a third is free. Exact in
    /// the `linux` profile, where the stack counts data in flight the same way. For a plain number of bytes see
    /// [`Stream::set_send_buffer_limit`].
    pub fn set_send_buffer(&self, bytes: usize) -> Result<(), stack::SocketError> {
        self.connection.set_send_buffer(bytes)
    }
    /// Bytes that may wait to be sent or acknowledged.
    pub fn set_send_buffer_limit(&self, limit_bytes: usize) {
        self.set(stack::SocketOption::SendBufferLimit(limit_bytes));
    }
    /// Memory that received data may pin.
    pub fn set_receive_buffer_limit(&self, limit_bytes: usize) {
        self.set(stack::SocketOption::ReceiveBufferLimit(limit_bytes));
    }

    /// Whether what does not fill a segment is held back, until this is off again or 200 ms are over.
    pub fn set_cork(&self, on: bool) {
        self.set(stack::SocketOption::Tcp(stack::ConnectionOption::Cork(on)));
    }
    /// Linger time (`SO_LINGER`), for which unsent data outlives the stream: `None` as long as needed, or a time after
    /// which the peer gets a reset. With zero, dropping the stream resets it.
    pub fn set_linger(&self, linger: Option<Duration>) {
        self.set(stack::SocketOption::Linger(linger));
    }
    /// The congestion control algorithm.
    pub fn set_congestion(&self, choice: stack::CongestionChoice) {
        self.set(stack::SocketOption::Tcp(stack::ConnectionOption::Congestion(choice)));
    }
    /// No segment leaves faster than this many bytes a second.
    pub fn set_max_pacing_rate(&self, bytes_per_second: Option<u64>) {
        self.set(stack::SocketOption::Tcp(stack::ConnectionOption::MaxPacingRate(bytes_per_second)));
    }
    /// The stream is writable only while fewer bytes than this wait that were never sent.
    pub fn set_not_sent_low_water(&self, bytes: Option<usize>) {
        self.set(stack::SocketOption::Tcp(stack::ConnectionOption::NotSentLowWater(bytes)));
    }
    /// The options as they stand, while the connection lives.
    pub fn options(&self) -> Result<stack::ConnectionOptions, stack::SocketError> {
        self.host().core(|core| core.stack.instruments().options(self.socket()))
    }
    /// Bytes that wait to be read, sent and acknowledged, while the connection lives.
    pub fn queued(&self) -> Option<stack::Queued> {
        self.connection.queued()
    }
    /// Bytes that the connection would take to send now, memory permitting; 0 when it is over.
    pub fn writable_bytes(&self) -> usize {
        self.connection.ask(|connection| connection.sender().writable_bytes()).unwrap_or(0)
    }
    /// Sets any option of the stack; those above are the common ones.
    pub fn set_option(&self, option: stack::SocketOption) -> Result<(), stack::SocketError> {
        self.connection.set_option(option)
    }

    fn set(&self, option: stack::SocketOption) {
        // A closed connection has no options; the error is ignored.
        let _ = self.set_option(option);
    }
    fn exists(&self) -> bool {
        self.host().core(|core| core.stack.endpoints(self.socket())).is_some()
    }
    fn poll_ready(&self, wait: Wait, context: &Context<'_>) -> Poll<()> {
        self.host().executor().operation();
        let over = Readiness::ERROR.union(Readiness::CLOSED);
        let wanted = match wait {
            Wait::Read => Readiness::READABLE.union(Readiness::PEER_CLOSED),
            Wait::Write => Readiness::WRITABLE,
            Wait::Urgent => Readiness::URGENT.union(Readiness::PEER_CLOSED),
        };
        let wanted = match wait {
            Wait::Write if self.connection.is_send_buffer_full() => over,
            _ => wanted.union(over),
        };
        if self.host().readiness(self.socket()).intersects(wanted) || !self.exists() {
            return Poll::Ready(());
        }
        self.host().register(self.socket(), wait, context);
        Poll::Pending
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.host().close(self.socket());
    }
}

impl AsyncRead for &Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        poll_read(into, |place| self.poll_receive(context, place))
    }
}

impl AsyncWrite for &Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_send(context, bytes, SendHow::default()).map_err(Errno::into_io)
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

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut &*self).poll_read(context, into)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_write(context, bytes)
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_write_vectored(context, pieces)
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
