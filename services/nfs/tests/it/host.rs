//! Connections and datagrams of a host, for the client.

use std::io;
use std::task::{Context, Poll};

use inhost_base::{Endpoint, Instant};
use inhost_common::LocalFuture;
use inhost_nfs::driver::{Connect, Peer};
use inhost_socket::{Ends, Host, Stream, UdpSocket};
use inhost_stack::{ConnectOptions, Local};

/// Ports below 1024, of which some servers want one as BSD's did.
const RESERVED_PORTS: std::ops::RangeInclusive<u16> = 665..=1023;

/// Ports that are tried before there is said to be none.
const PORT_TRIES: usize = 8;

/// Connections of a host to one server.
#[derive(Clone)]
pub struct HostConnect {
    /// The host.
    pub host: Host,
    /// The server.
    pub server: Endpoint,
    /// Whether connections come from a port below 1024.
    pub from_reserved_port: bool,
}

impl Connect for HostConnect {
    type Stream = Stream;
    fn connect(&self) -> LocalFuture<io::Result<Stream>> {
        let HostConnect { host, server, from_reserved_port } = self.clone();
        Box::pin(async move {
            if !from_reserved_port {
                let stream = host.connect(server).await.map_err(io::Error::other)?;
                stream.set_nagle(false);
                return Ok(stream);
            }
            let mut failure = io::Error::from(io::ErrorKind::AddrInUse);
            // Each time it begins at another one, so that a port that was just used rests.
            let count = usize::from(RESERVED_PORTS.end() - RESERVED_PORTS.start());
            let skipped = host.now().since(Instant::ZERO).as_millis() as usize % count;
            for port in RESERVED_PORTS.rev().cycle().skip(skipped).take(PORT_TRIES) {
                let mut options = ConnectOptions::default();
                options.local = Local { address: None, port };
                match host.connect_with(server, options).await {
                    Ok(stream) => {
                        stream.set_nagle(false);
                        return Ok(stream);
                    }
                    Err(error) => failure = io::Error::other(error),
                }
            }
            Err(failure)
        })
    }
}

/// Datagrams of a host to one server.
pub struct HostPeer {
    /// The socket.
    pub socket: UdpSocket,
    /// The server.
    pub server: Endpoint,
}

impl Peer for HostPeer {
    fn poll_send(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<(), String>> {
        self.socket.poll_send(cx, bytes, Ends::towards(self.server)).map_err(|error| error.to_string())
    }
    fn poll_receive(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<Result<usize, String>> {
        match self.socket.poll_receive(cx, into) {
            // From anybody else: as if it had not been there.
            Poll::Ready(Ok(info)) if info.from != self.server => Poll::Ready(Ok(0)),
            other => other.map_ok(|info| info.length_bytes).map_err(|error| error.to_string()),
        }
    }
}
