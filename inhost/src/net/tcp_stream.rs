//! The TCP connection.

use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BufMut;
use inhost_base::Endpoint;
use inhost_socket::errno::Errno;
use inhost_socket::{RemoteHost, RemoteStream, StreamError};
use inhost_stack::{ConnectOptions, ConnectionOption, KeepAlive, SocketOption, TcpInfo};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::ToSocketAddrs;
use super::addr::first_of;
use super::ready::{Interest, Ready, until_done};
use super::split::{self, OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};
use crate::current;
#[cfg(feature = "user")]
use crate::host::outer_caller;

/// Most bytes that one call of `try_read_buf` reads.
const READ_PIECE_BYTES: usize = 16 << 10;
/// Hops of a packet where nothing else was said.
pub(super) const DEFAULT_TTL: u8 = 64;

/// A TCP connection, as `tokio::net::TcpStream`.
///
/// Dropping it closes the connection: what was written is still delivered. When received data was not read, the peer gets
/// a reset, because it must know that data was lost.
///
/// ```
/// use inhost::{Host, net::{TcpListener, TcpStream}};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// let host = Host::builder().start()?;
/// host.block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let mut client = TcpStream::connect(listener.local_addr()?).await?;
///     let (server, _) = listener.accept().await?;
///     let (mut reader, mut writer) = server.into_split();
///     client.write_all(b"ping").await?;
///     let mut place = [0; 4];
///     reader.read_exact(&mut place).await?;
///     writer.write_all(&place).await?;
///     client.read_exact(&mut place).await?;
///     assert_eq!(&place, b"ping");
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
pub struct TcpStream {
    pub(super) remote: RemoteStream,
    pub(super) shown: Arc<Mutex<Shown>>,
}

/// Options as they were set last.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    nodelay: bool,
    quickack: bool,
    keepalive: Option<KeepAlive>,
    linger: Option<Duration>,
    ttl: u32,
}

impl TcpStream {
    pub(super) fn new(remote: RemoteStream) -> TcpStream {
        let options = remote.first_options();
        let shown = Shown {
            nodelay: options.is_some_and(|options| !options.tcp.nagle),
            quickack: false,
            keepalive: options.and_then(|options| options.tcp.keep_alive),
            linger: options.and_then(|options| options.linger).map(std),
            ttl: options.and_then(|options| options.hop_limit).map_or(DEFAULT_TTL.into(), u32::from),
        };
        TcpStream { remote, shown: Arc::new(Mutex::new(shown)) }
    }
    /// Connects to `addr` from the current host; tries each of its addresses in turn.
    ///
    /// # Errors
    /// When no address could be connected to, the last error; when no host is current, `NotConnected`.
    pub async fn connect<A: ToSocketAddrs>(addr: A) -> io::Result<TcpStream> {
        let host = current::host()?;
        first_of(addr, |address| connect(&host, address, ConnectOptions::default(), Vec::new())).await
    }
    /// Our end.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.remote.local().into())
    }
    /// The other end. Of a connection that came in by a forwarded port of a `user` link that is the gateway's address:
    /// `forwarded_from`, which the feature `user` brings, has the caller's.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.remote.remote().into())
    }
    /// The caller outside, when the connection came in by a forwarded port of a `user` link: the address that the system saw.
    /// `None` for every other connection, and for one that has ended. Other translators of addresses tell nobody whom they stand
    /// for.
    ///
    /// ```
    /// # let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    /// use inhost::Host;
    ///
    /// # let link = format!("user,forward={free}->80");
    /// # /*
    /// let link = "user,forward=127.0.0.1:8080->80";
    /// # */
    /// let host = Host::builder().link(link).start()?;
    /// let listener = host.block_on(host.listen("0.0.0.0:80"))?;
    /// # /*
    /// let caller = std::net::TcpStream::connect("127.0.0.1:8080")?;
    /// # */
    /// # let caller = std::net::TcpStream::connect(free)?;
    /// host.block_on(async {
    ///     let (stream, gateway) = listener.accept().await?;
    ///     assert_eq!(gateway.ip().to_string(), "10.0.2.2");
    ///     assert_eq!(stream.forwarded_from().await, Some(caller.local_addr()?));
    ///     std::io::Result::Ok(())
    /// })?;
    /// # std::io::Result::Ok(())
    /// ```
    #[cfg(feature = "user")]
    pub async fn forwarded_from(&self) -> Option<SocketAddr> {
        let peer = self.remote.remote();
        let outer = outer_caller(self.remote.host(), inhost_common::Transport::Tcp, peer).await;
        outer.map(SocketAddr::from)
    }
    /// Why the connection ended, when it did not end well.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.remote.error().map(Errno::into_io))
    }
    /// The connection's figures and ledgers, while it lives.
    pub async fn info(&self) -> Option<TcpInfo> {
        self.remote.info().await
    }

    /// Waits until something of `interest` can be done.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        let ready = poll_fn(|context| self.remote.poll_ready(context, |ready| interest.is_met(ready))).await;
        Ok(Ready::of(ready, interest))
    }
    /// Waits until there is something to read, the end of the stream, or an error.
    pub async fn readable(&self) -> io::Result<()> {
        poll_fn(|context| self.poll_read_ready(context)).await
    }
    /// Waits until there is room to write, or an error.
    pub async fn writable(&self) -> io::Result<()> {
        poll_fn(|context| self.poll_write_ready(context)).await
    }
    /// One step of [`TcpStream::readable`].
    pub fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.remote.poll_readable(context).map(|_| Ok(()))
    }
    /// One step of [`TcpStream::writable`].
    pub fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.remote.poll_writable(context).map(|_| Ok(()))
    }
    /// Reads what is there; `WouldBlock` when nothing is.
    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        now(self.remote.try_read(into))
    }
    /// Reads what is there into a buffer that grows or moves on; `WouldBlock` when nothing is.
    pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        let place = buf.chunk_mut();
        if place.len() == 0 {
            return Ok(0);
        }
        // What has to be written before it is read: the place may hold nothing yet.
        let mut piece = [0; READ_PIECE_BYTES];
        let room = place.len().min(READ_PIECE_BYTES);
        let count = self.try_read(&mut piece[..room])?;
        buf.put_slice(&piece[..count]);
        Ok(count)
    }
    /// Reads what is there into several buffers; `WouldBlock` when nothing is.
    pub fn try_read_vectored(&self, into: &mut [io::IoSliceMut<'_>]) -> io::Result<usize> {
        let mut count = 0;
        for place in into.iter_mut().filter(|place| !place.is_empty()) {
            match self.try_read(place) {
                Ok(read) => {
                    count += read;
                    if read < place.len() {
                        break;
                    }
                }
                Err(_) if count > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }
    /// Writes as much as there is room for; `WouldBlock` when there is none.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        now(self.remote.try_write(bytes))
    }
    /// Writes from several buffers as much as there is room for; `WouldBlock` when there is none.
    pub fn try_write_vectored(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        now(self.remote.try_write_vectored(bytes))
    }
    /// Runs `operation`, which reads or writes by [`TcpStream::try_read`] and its kind.
    pub fn try_io<R>(&self, interest: Interest, operation: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        match interest.is_met(self.remote.readiness()) {
            true => operation(),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
    /// Runs `operation` whenever something of `interest` can be done, until it does not say `WouldBlock`.
    pub async fn async_io<R>(
        &self,
        interest: Interest,
        operation: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        let ready = |context: &mut Context<'_>| {
            self.remote.poll_ready(context, |ready| interest.is_met(ready)).map(drop)
        };
        until_done(ready, operation).await
    }
    /// Reads without taking: the next read gives the same bytes.
    pub async fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        poll_fn(|context| self.remote.poll_peek(context, into)).await.map_err(Errno::into_io)
    }
    /// One step of [`TcpStream::peek`].
    pub fn poll_peek(&self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<usize>> {
        let place = into.initialize_unfilled();
        let count = ready!(self.remote.poll_peek(context, place)).map_err(Errno::into_io)?;
        into.advance(count);
        Poll::Ready(Ok(count))
    }

    /// Whether small segments leave at once (`TCP_NODELAY`).
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(self.shown().nodelay)
    }
    /// Has small segments leave at once, or wait for the acknowledgment of what is out (Nagle's rule, the default).
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.set(SocketOption::Tcp(ConnectionOption::Nagle(!nodelay)), |shown| shown.nodelay = nodelay)
    }
    /// Linger time (`SO_LINGER`).
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(self.shown().linger)
    }
    /// For how long written data outlives the stream: `None` as long as it takes; with zero, dropping the stream resets the
    /// connection. Dropping never blocks.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.set(SocketOption::Linger(linger.map(own)), |shown| shown.linger = linger)
    }
    /// Has the connection reset when the stream is dropped.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }
    /// Whether [`TcpStream::set_quickack`] was last called with true. It wears off, and that is not seen here.
    pub fn quickack(&self) -> io::Result<bool> {
        Ok(self.shown().quickack)
    }
    /// Acknowledges the next segments without delay (`TCP_QUICKACK`). It wears off.
    pub fn set_quickack(&self, quickack: bool) -> io::Result<()> {
        self.set(SocketOption::Tcp(ConnectionOption::QuickAcknowledgment(quickack)), |shown| {
            shown.quickack = quickack
        })
    }
    /// How an idle peer is probed; `None` if it is not. A method of its own, since there is no descriptor for `socket2`.
    pub fn keepalive(&self) -> io::Result<Option<KeepAlive>> {
        Ok(self.shown().keepalive)
    }
    /// Has an idle peer probed (`SO_KEEPALIVE`, `TCP_KEEPIDLE`, `TCP_KEEPINTVL`, `TCP_KEEPCNT`).
    pub fn set_keepalive(&self, keepalive: Option<KeepAlive>) -> io::Result<()> {
        self.set(SocketOption::Tcp(ConnectionOption::KeepAlive(keepalive)), |shown| {
            shown.keepalive = keepalive
        })
    }
    /// Hops that packets may take.
    pub fn ttl(&self) -> io::Result<u32> {
        Ok(self.shown().ttl)
    }
    /// Sets the hops that packets may take, 1 to 255.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hops = hops(ttl)?;
        self.set(SocketOption::HopLimit(Some(hops)), |shown| shown.ttl = ttl)
    }
    /// Sets any option of the stack.
    pub fn set_option(&self, option: SocketOption) {
        self.remote.queue_option(option);
    }

    /// The stream of the layer below.
    pub fn remote(&self) -> &RemoteStream {
        &self.remote
    }

    /// Both halves, borrowed; for one task that reads and writes at once.
    pub fn split<'a>(&'a mut self) -> (ReadHalf<'a>, WriteHalf<'a>) {
        split::split(self)
    }
    /// Both halves, owned. Dropping the writing half ends what we send.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        split::into_split(self)
    }

    fn shown(&self) -> Shown {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn set(&self, option: SocketOption, show: impl FnOnce(&mut Shown)) -> io::Result<()> {
        self.remote.queue_option(option);
        show(&mut self.shown.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
    pub(super) fn poll_read_by_ref(
        &self,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let place = into.initialize_unfilled();
        let count = ready!(self.remote.poll_receive(context, place)).map_err(Errno::into_io)?;
        into.advance(count);
        Poll::Ready(Ok(()))
    }
    pub(super) fn poll_write_by_ref(
        &self,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.remote.poll_send_vectored(context, bytes).map_err(Errno::into_io)
    }
    pub(super) fn shutdown_write(&self) {
        self.remote.shutdown();
    }
}

/// A TTL that a packet can have.
pub(super) fn hops(ttl: u32) -> io::Result<u8> {
    let hops = u8::try_from(ttl).ok().filter(|&hops| hops > 0);
    hops.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a TTL is 1 to 255"))
}

/// Connects from `host`.
pub(crate) async fn connect(
    host: &RemoteHost,
    address: SocketAddr,
    options: ConnectOptions,
    settings: Vec<SocketOption>,
) -> io::Result<TcpStream> {
    let stream = host.connect_set(Endpoint::from(address), options, settings).await;
    stream.map(TcpStream::new).map_err(Errno::into_io)
}

/// The result of an attempt that must not wait.
fn now<T>(attempt: Option<Result<T, StreamError>>) -> io::Result<T> {
    attempt.map_or_else(|| Err(io::ErrorKind::WouldBlock.into()), |result| result.map_err(Errno::into_io))
}
fn std(duration: inhost_base::Duration) -> Duration {
    Duration::from_nanos(duration.as_nanos())
}
pub(super) fn own(duration: Duration) -> inhost_base::Duration {
    inhost_base::Duration::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

impl AsRef<Self> for TcpStream {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpStream")
            .field("addr", &self.remote.local())
            .field("peer", &self.remote.remote())
            .finish()
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_read_by_ref(context, into)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_by_ref(context, &[IoSlice::new(bytes)])
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_by_ref(context, bytes)
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shutdown_write();
        Poll::Ready(Ok(()))
    }
}
