//! The client's connections: the private host's own, or those that the running host makes.

use crate::connection::{Connection, Connector, Maker};
use inhost_base::{Endpoint, IpAddr, Ipv4Addr, Ipv6Addr};
use inhost_ftp::driver::{Accept, HostNetwork, Network};
use inhost_ftp::storage::LocalFuture;
use inhost_runtime::AsyncFd;
use inhost_runtime::control::Client;
use inhost_socket::Listener;
use inhost_stack::{ConnectOptions, Local};
use inhost_telnet::driver::Connect;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

/// Makes control and data connections.
pub struct ClientNetwork(pub Connector);

/// A control connection that was made: it, our address and the server's end.
pub type Opened = (Connection, IpAddr, Endpoint);

impl ClientNetwork {
    /// Calls a server by its name.
    pub async fn call(&self, name: &str, port: u16) -> Result<Opened, String> {
        let connected = self.0.connect(name, port).await?;
        let (local, peer) = match &connected.stream {
            Connection::Private(stream) => (stream.local().address, stream.remote()),
            Connection::Running(..) => {
                let peer: SocketAddr = connected.address.parse().map_err(|_| "the host says no address")?;
                let any = match peer.is_ipv4() {
                    true => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                    false => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
                };
                (any, peer.into())
            }
        };
        Ok((connected.stream, local, peer))
    }
}

impl Network for ClientNetwork {
    type Stream = Connection;
    type Listener = DataListener;

    fn listen(&self, at: Endpoint) -> io::Result<DataListener> {
        match &self.0.maker {
            Maker::Private { host, .. } => HostNetwork(host.clone()).listen(at).map(DataListener),
            Maker::Running { .. } => {
                Err(io::Error::other("active mode needs a private host; leave --active out, or give --link"))
            }
        }
    }

    fn connect(&self, from: IpAddr, to: Endpoint) -> LocalFuture<io::Result<Connection>> {
        match self.0.maker.clone() {
            Maker::Private { host, .. } => Box::pin(async move {
                let local = Local { address: Some(from), port: 0 };
                let options = ConnectOptions { local, ..ConnectOptions::default() };
                let stream = host.connect_with(to, options).await.map_err(io::Error::other)?;
                Ok(Connection::Private(stream))
            }),
            Maker::Running { path, reactor } => Box::pin(async move {
                let connected = blocking::unblock(move || {
                    Client::open(&path).and_then(|mut client| client.connect(to).map_err(io::Error::other))
                })
                .await?;
                Ok(Connection::Running(AsyncFd::new(&reactor, connected.stream)?, connected.socket))
            }),
        }
    }
}

/// Where the server comes to, in active mode.
pub struct DataListener(Listener);

impl Accept for DataListener {
    type Stream = Connection;
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Connection, Endpoint)>> {
        Accept::poll_accept(&self.0, cx).map_ok(|(stream, from)| (Connection::Private(stream), from))
    }
    fn local(&self) -> Endpoint {
        self.0.local()
    }
}
