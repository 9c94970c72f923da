//! The kernel's sockets and clock for the drivers: a small adapter over tokio.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use inhost_base::{Endpoint, Instant};
use inhost_common::{Clock, LocalFuture};
use inhost_nfs::driver::{Connect, Datagrams, Peer};
use tokio::io::ReadBuf;
use tokio::net::{TcpStream, UdpSocket};

/// The kernel's clock.
#[derive(Clone, Copy)]
pub struct KernelClock(tokio::time::Instant);

impl KernelClock {
    /// It begins now.
    pub fn start() -> KernelClock {
        KernelClock(tokio::time::Instant::now())
    }
}

impl Clock for KernelClock {
    fn now(&self) -> Instant {
        Instant::from_millis(self.0.elapsed().as_millis() as u64)
    }
    fn sleep_until(&self, at: Instant) -> LocalFuture<()> {
        // A millisecond more: the clock has no smaller steps.
        let at = self.0 + std::time::Duration::from_millis(at.as_millis() + 1);
        Box::pin(tokio::time::sleep_until(at))
    }
}

/// Connections to one server.
#[allow(dead_code, reason = "the example itself is a server")]
pub struct KernelConnect(pub SocketAddr);

impl Connect for KernelConnect {
    type Stream = TcpStream;
    fn connect(&self) -> LocalFuture<io::Result<TcpStream>> {
        let to = self.0;
        Box::pin(async move {
            let stream = TcpStream::connect(to).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        })
    }
}

/// A socket for datagrams, connected to one server or not.
pub struct KernelDatagrams(pub UdpSocket);

impl Datagrams for KernelDatagrams {
    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        _: Endpoint,
        to: Endpoint,
    ) -> Poll<Result<(), String>> {
        let to = SocketAddr::new(to.address, to.port);
        self.0.poll_send_to(cx, bytes, to).map_ok(drop).map_err(|error| error.to_string())
    }
    fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<(usize, Endpoint, Endpoint), String>> {
        let own = self.0.local_addr().map(Endpoint::from).unwrap_or(Endpoint::new([0; 4], 0));
        let mut buffer = ReadBuf::new(into);
        match self.0.poll_recv_from(cx, &mut buffer) {
            Poll::Ready(Ok(from)) => Poll::Ready(Ok((buffer.filled().len(), from.into(), own))),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.to_string())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Peer for KernelDatagrams {
    fn poll_send(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<(), String>> {
        self.0.poll_send(cx, bytes).map_ok(drop).map_err(|error| error.to_string())
    }
    fn poll_receive(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<Result<usize, String>> {
        let mut buffer = ReadBuf::new(into);
        match self.0.poll_recv(cx, &mut buffer) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(buffer.filled().len())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.to_string())),
            Poll::Pending => Poll::Pending,
        }
    }
}
