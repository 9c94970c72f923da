//! The client's connections: the private host's own, or those that the running host makes.

use crate::connection::{Connection, Connector, Maker};
use crate::through::open_host;
use inhost_base::{Endpoint, IpAddr};
use inhost_common::LocalFuture;
use inhost_ftp::driver::{Accept, HostNetwork, Network};
use inhost_runtime::control::{Client, ClientError, Connected, ListenerClient};
use inhost_runtime::{AsyncFd, Reactor, entropy};
use inhost_socket::Listener;
use inhost_stack::{ConnectOptions, Local};
use inhost_telnet::driver::Connect;
use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Ports from here to the end are nobody's service (RFC 6335 §6).
const FIRST_PORT: u16 = 0xc000;
/// Ports that the running host is asked for before there is said to be none.
const PORT_TRIES: usize = 8;

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
            Connection::Running(_, socket) => {
                let peer: SocketAddr = connected.address.parse().map_err(|_| "the host says no address")?;
                (self.own_end(socket)?, peer.into())
            }
        };
        Ok((connected.stream, local, peer))
    }
    /// The running host's address of a connection: where a server may come to in active mode.
    fn own_end(&self, socket: &str) -> Result<IpAddr, String> {
        let Maker::Running { path, .. } = &self.0.maker else { return Err("no host runs".into()) };
        let mut client = open_host(path).map_err(|e| e.text())?;
        let reply = client.status(socket).map_err(|e| e.to_string())?;
        let local = reply["status"]["local"].as_str().and_then(|text| text.parse::<SocketAddr>().ok());
        local.map(|at| at.ip()).ok_or_else(|| "the host says no address of its own".into())
    }
}

impl Network for ClientNetwork {
    type Stream = Connection;
    type Listener = DataListener;

    fn listen(&self, at: Endpoint) -> io::Result<DataListener> {
        match &self.0.maker {
            Maker::Private { host, .. } => HostNetwork::new(host).listen(at).map(DataListener::Private),
            Maker::Running { path, reactor } => {
                let listener = Arc::new(listen(path, at).map_err(io::Error::other)?);
                let (reactor, accepting) = (reactor.clone(), RefCell::default());
                Ok(DataListener::Running { listener, reactor, accepting })
            }
        }
    }

    fn connect(&self, from: IpAddr, to: Endpoint) -> LocalFuture<io::Result<Connection>> {
        match self.0.maker.clone() {
            Maker::Private { host, .. } => Box::pin(async move {
                let local = Local { address: Some(from), port: 0 };
                let mut options = ConnectOptions::default();
                options.local = local;
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

/// Has the running host listen; where no port is asked for, at one that nobody can guess (RFC 2577 §8).
fn listen(path: &Path, at: Endpoint) -> Result<ListenerClient, ClientError> {
    let mut client = Client::open(path)?;
    if at.port != 0 {
        return client.listen(at);
    }
    let mut tried = io::Error::from(io::ErrorKind::AddrInUse).into();
    for drawn in entropy()?.chunks_exact(2).take(PORT_TRIES) {
        let port = FIRST_PORT | u16::from_be_bytes([drawn[0], drawn[1]]);
        match client.listen(Endpoint::new(at.address, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) => tried = error,
        }
    }
    Err(tried)
}

type Accepting = LocalFuture<Result<Connected, ClientError>>;

/// Listener of active mode.
pub enum DataListener {
    /// On the private host.
    Private(Listener),
    /// On the running one.
    Running {
        /// It.
        listener: Arc<ListenerClient>,
        /// Waits for what comes by the connection.
        reactor: Reactor,
        /// The wait for the next caller.
        accepting: RefCell<Option<Accepting>>,
    },
}

impl Accept for DataListener {
    type Stream = Connection;
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Connection, Endpoint)>> {
        let (listener, reactor, accepting) = match self {
            DataListener::Private(listener) => {
                let accepted = Accept::poll_accept(listener, cx);
                return accepted.map_ok(|(stream, from)| (Connection::Private(stream), from));
            }
            DataListener::Running { listener, reactor, accepting } => (listener, reactor, accepting),
        };
        let mut accepting = accepting.borrow_mut();
        let wait = accepting.get_or_insert_with(|| {
            let listener = listener.clone();
            Box::pin(blocking::unblock(move || listener.accept()))
        });
        let Poll::Ready(accepted) = wait.as_mut().poll(cx) else { return Poll::Pending };
        *accepting = None;
        let caller = accepted.map_err(io::Error::other)?;
        let stream = AsyncFd::new(reactor, caller.stream)?;
        Poll::Ready(Ok((Connection::Running(stream, caller.socket), caller.remote)))
    }
    fn local(&self) -> Endpoint {
        match self {
            DataListener::Private(listener) => listener.local(),
            DataListener::Running { listener, .. } => listener.local(),
        }
    }
}
