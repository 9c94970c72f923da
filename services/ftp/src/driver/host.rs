//! The host's own sockets, as the drivers want them.

use std::io;
use std::task::{Context, Poll};

use inhost_base::{Endpoint, IpAddr};
use inhost_socket::{Host, Listener, Stream};
use inhost_stack::{ConnectOptions, ListenOptions, Local};

use super::{Accept, Network};
use crate::storage::LocalFuture;

/// Connections of one host.
#[derive(Clone)]
pub struct HostNetwork(pub Host);

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
        let options = ListenOptions { backlog: BACKLOG, ..ListenOptions::default() };
        if at.port != 0 {
            return self.0.listen(at, options).map_err(io::Error::other);
        }
        // The stack listens where it is told to. A port that nobody can guess is one that nobody can take
        // (RFC 2577 §8).
        let mut failure = io::Error::from(io::ErrorKind::AddrInUse);
        for _ in 0..PORT_TRIES {
            let mut drawn = [0; 2];
            ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut drawn)
                .map_err(|_| io::Error::other("the system has no entropy"))?;
            let port = FIRST_PORT | u16::from_be_bytes(drawn);
            match self.0.listen(Endpoint::new(at.address, port), options.clone()) {
                Ok(listener) => return Ok(listener),
                Err(error) => failure = io::Error::other(error),
            }
        }
        Err(failure)
    }
    fn connect(&self, from: IpAddr, to: Endpoint) -> LocalFuture<io::Result<Stream>> {
        let host = self.0.clone();
        let local = Local { address: Some(from), port: 0 };
        let options = ConnectOptions { local, ..ConnectOptions::default() };
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
