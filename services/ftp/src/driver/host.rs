//! The host's sockets as a [`Network`](super::Network).

use std::io;
use std::task::{Context, Poll};

use inhost_base::{Endpoint, IpAddr};
use inhost_socket::{Host, Listener, Stream};
use inhost_stack::{ConnectOptions, ListenOptions, Local, TcpConfig as Config};

use super::{Accept, Network};
use inhost_common::LocalFuture;

/// Connections of one host.
#[derive(Clone)]
pub struct HostNetwork {
    host: Host,
    /// Socket options of data connections.
    tcp: Option<Config>,
}

impl HostNetwork {
    /// Connections like all others of `host`.
    pub fn new(host: &Host) -> HostNetwork {
        HostNetwork { host: host.clone(), tcp: None }
    }
    /// Has each data connection hold at most so many bytes that came and were not taken; the window is half of it. Files
    /// are written more slowly than a near peer sends, and what waits makes nothing faster.
    pub fn with_received_limit(mut self, bytes: usize) -> HostNetwork {
        let mut tcp = self.host.with_stack(|stack, _| stack.config().tcp.clone());
        tcp.receive_buffer_limit_bytes = tcp.receive_buffer_limit_bytes.min(bytes);
        tcp.receive_buffer_initial_bytes = tcp.receive_buffer_initial_bytes.min(bytes);
        self.tcp = Some(tcp);
        self
    }
}

/// Callers that may wait at the port of a data connection; one is meant.
const BACKLOG: usize = 8;

/// Ports from here to the end are nobody's service (RFC 6335 §6).
const FIRST_PORT: u16 = 0xc000;
/// Ports that are tried before there is said to be none.
const PORT_TRIES: usize = 64;

impl Network for HostNetwork {
    type Stream = Stream;
    type Listener = Listener;
    fn listen(&self, at: Endpoint) -> io::Result<Listener> {
        let mut options = ListenOptions::default();
        options.backlog = BACKLOG;
        options.tcp = self.tcp.clone();
        if at.port != 0 {
            return self.host.listen(at, options).map_err(io::Error::other);
        }
        // The stack listens at the requested port. A port that nobody can guess is one that nobody can take (RFC 2577
        // §8).
        let mut failure = io::Error::from(io::ErrorKind::AddrInUse);
        for _ in 0..PORT_TRIES {
            let mut drawn = [0; 2];
            ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut drawn)
                .map_err(|_| io::Error::other("the system has no entropy"))?;
            let port = FIRST_PORT | u16::from_be_bytes(drawn);
            match self.host.listen(Endpoint::new(at.address, port), options.clone()) {
                Ok(listener) => return Ok(listener),
                Err(error) => failure = io::Error::other(error),
            }
        }
        Err(failure)
    }
    fn connect(&self, from: IpAddr, to: Endpoint) -> LocalFuture<io::Result<Stream>> {
        let host = self.host.clone();
        let local = Local { address: Some(from), port: 0 };
        let mut options = ConnectOptions::default();
        options.local = local;
        options.tcp = self.tcp.clone();
        Box::pin(async move { host.connect_with(to, options).await.map_err(io::Error::other) })
    }
}

impl Accept for Listener {
    type Stream = Stream;
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Stream, Endpoint)>> {
        Listener::poll_accept(self, cx).map_err(io::Error::other).map_ok(|held| {
            let remote = held.remote();
            (held.proceed(), remote)
        })
    }
    fn local(&self) -> Endpoint {
        Listener::local(self)
    }
}
