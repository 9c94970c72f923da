//! Thin drivers that carry octets between the pure machines and the world. They need no runtime: each is a future
//! that any executor may poll, and time, streams and files come through traits.

mod client;
mod data;
mod files;
mod host;
mod listing;
mod mirror;
mod operations;
mod passive;
mod server;
mod services;
mod stall;
#[cfg(test)]
mod tests;
mod tls;
mod tls_client;
mod transfer;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use inhost_base::{Endpoint, IpAddr};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub use client::{ClientLimits, Connection, Flow, Flowed};
pub use host::HostNetwork;
pub use inhost_common::{Clock, SessionEvent, Urgent};
pub use passive::{Caller, Lease, PassivePorts};
pub use server::{SessionEnd, serve_session};
pub use services::{Entry, Granted, Services, Transferred};
pub use tls::{TlsError, TlsServer, TlsStream};
pub use tls_client::{TlsClient, Trust};

pub use mirror::{MirrorPlan, mirror};
pub use operations::{GetOptions, Moved, copy, get, list, put};

use inhost_common::LocalFuture;

/// A stream in clear text or in TLS.
pub type MaybeTls<S> = inhost_common::tls::MaybeTls<S, TlsStream<S>>;

/// Source of data connections: the host's own sockets, or another network.
pub trait Network: 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Urgent + Unpin + 'static;
    /// A place where callers come in.
    type Listener: Accept<Stream = Self::Stream> + 'static;
    /// Listens at `at`; port 0 lets the system choose.
    fn listen(&self, at: Endpoint) -> io::Result<Self::Listener>;
    /// Calls `to`, from our address `from`.
    fn connect(&self, from: IpAddr, to: Endpoint) -> LocalFuture<io::Result<Self::Stream>>;
}

/// A place where callers come in. Dropped, it is closed.
pub trait Accept {
    /// A connection.
    type Stream;
    /// The next caller, and who it is.
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Self::Stream, Endpoint)>>;
    /// The listening endpoint.
    fn local(&self) -> Endpoint;
}

/// Any stream as one without urgent data: those of TLS, pipes, other runtimes.
#[derive(Debug)]
pub struct Plain<S>(pub S);

impl<S: AsyncRead + Unpin> AsyncRead for Plain<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Plain<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl<S: AsyncWrite + Unpin> Urgent for Plain<S> {
    fn poll_send_urgent(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write(cx, bytes)
    }
    fn urgent_ahead(&self) -> Option<usize> {
        None
    }
}
