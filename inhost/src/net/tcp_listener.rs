//! The TCP listener.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};

use inhost_base::Endpoint;
use inhost_socket::errno::Errno;
use inhost_socket::{AcceptError, RemoteHeld, RemoteHost, RemoteListener};
use inhost_stack::{ListenOptions, SocketOption};

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
    /// The next connection, and who called. It is cancel-safe: no caller is lost when the future is dropped.
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
    /// When the listener is closed or the host is stopping.
    pub async fn accept_held(&self) -> Result<RemoteHeld, AcceptError> {
        self.remote.accept_held().await
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

/// Listens on `host`.
pub(crate) async fn listen(
    host: &RemoteHost,
    address: SocketAddr,
    options: ListenOptions,
) -> io::Result<TcpListener> {
    let listener = host.listen(Endpoint::from(address), options).await.map_err(Errno::into_io)?;
    Ok(TcpListener::new(listener))
}
