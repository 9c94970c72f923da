//! The TCP listener.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};

use inhost_base::Endpoint;
use inhost_socket::errno::Errno;
use inhost_socket::{RemoteHeld, RemoteHost, RemoteListener};
use inhost_stack::{ListenOptions, Refusal, SocketOption};

use super::ToSocketAddrs;
use super::addr::first_of;
use super::tcp_stream::{DEFAULT_TTL, TcpStream, hops};
use crate::current;

/// A TCP listener, as `tokio::net::TcpListener`.
///
/// ```
/// use inhost::{Host, net::{TcpListener, TcpStream}};
///
/// let host = Host::builder().start()?;
/// host.block_on(async {
///     let listener = TcpListener::bind(("127.0.0.1", 80)).await?;
///     let client = TcpStream::connect("127.0.0.1:80").await?;
///     let (_stream, caller) = listener.accept().await?;
///     assert_eq!(caller, client.local_addr()?);
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct TcpListener {
    remote: RemoteListener,
    ttl: AtomicU8,
}

impl TcpListener {
    pub(crate) fn new(remote: RemoteListener) -> TcpListener {
        TcpListener { remote, ttl: AtomicU8::new(DEFAULT_TTL) }
    }
    /// Listens at `addr` on the current host; an unspecified address stands for each of the host's of that family.
    ///
    /// # Errors
    /// When the address is taken or not the host's; when no host is current, `NotConnected`.
    pub async fn bind<A: ToSocketAddrs>(addr: A) -> io::Result<TcpListener> {
        let host = current::host()?;
        first_of(addr, |address| listen(&host, address, ListenOptions::default())).await
    }
    /// The next connection, and who called: its [`TcpStream::peer_addr`]. It is cancel-safe: no caller is lost when the future
    /// is dropped.
    ///
    /// # Errors
    /// `NetworkDown` when the host is stopping.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        poll_fn(|context| self.poll_accept(context)).await
    }
    /// One step of [`TcpListener::accept`].
    pub fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let stream = ready!(self.remote.poll_accept(context)).map_err(Errno::into_io)?;
        let caller = stream.remote().into();
        Poll::Ready(Ok((TcpStream::new(stream), caller)))
    }
    /// The next caller, who has not been answered yet when the listener holds SYNs.
    ///
    /// # Errors
    /// `NetworkDown` when the listener is closed or the host is stopping.
    pub async fn accept_held(&self) -> io::Result<Held> {
        self.remote.accept_held().await.map(Held).map_err(Errno::into_io)
    }
    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.remote.local().into())
    }
    /// Hops that packets of the connections accepted from now on may take.
    pub fn ttl(&self) -> io::Result<u32> {
        Ok(self.ttl.load(Ordering::Relaxed).into())
    }
    /// Sets the hops that packets of the connections accepted from now on may take, 1 to 255.
    ///
    /// # Errors
    /// When it is none of these, or the host is stopping.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hops = hops(ttl)?;
        self.remote.set_option_now(SocketOption::HopLimit(Some(hops)))?;
        self.ttl.store(hops, Ordering::Relaxed);
        Ok(())
    }
}

/// A caller who may be refused; dropping it resets the connection.
#[derive(Debug)]
pub struct Held(RemoteHeld);

impl Held {
    /// The end that the caller meant: any address, on a link that takes every destination.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.0.local().into())
    }
    /// The caller.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.0.remote().into())
    }
    /// Whether the caller's SYN waits for an answer.
    pub fn is_held(&self) -> bool {
        self.0.is_held()
    }
    /// Answers. The handshake is completed in the background; the stream may be written to at once. Dropping the future
    /// closes the connection.
    ///
    /// # Errors
    /// `NetworkDown` when the host was stopped.
    pub async fn proceed(self) -> io::Result<TcpStream> {
        self.0.proceed().await.map(TcpStream::new).ok_or_else(|| io::ErrorKind::NetworkDown.into())
    }
    /// Resets the connection.
    pub fn refuse(self) {
        self.0.refuse();
    }
    /// Ends it in another way. Where the SYN was not held, the handshake is done and there is only the reset.
    pub fn refuse_with(self, refusal: Refusal) {
        self.0.refuse_with(refusal);
    }
}

/// Listens on `host`.
pub(crate) async fn listen(
    host: &RemoteHost,
    address: SocketAddr,
    options: ListenOptions,
) -> io::Result<TcpListener> {
    let listener = host.listen(Endpoint::from(address), options).await.map_err(Errno::into_io)?;
    Ok(TcpListener::new(listener))
}
