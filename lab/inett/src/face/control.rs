//! A running host, measured by another process through its control socket: each connection is a descriptor.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time;

use inhost_base::{Duration, Endpoint, Instant};
use inhost_runtime::control::{CallOptions, Client, ClientError, Connected, ListenerClient, UdpClient};
use inhost_runtime::{AsyncFd, Interest, Reactor};
use inhost_socket::Host;

use super::{Face, Processor, SocketOptions, StreamFigures};

/// The descriptors that a running host gives out. A host of this process waits for them; time is the system's, because a call
/// that blocks lasts as long as a round of that host.
///
/// Opening asks the running host and blocks until it answers, as its client does; data and accepting do not block. The
/// running host keeps the figures of its streams.
#[derive(Clone)]
pub struct ControlFace {
    path: PathBuf,
    waits: Host,
    reactor: Reactor,
    began: time::Instant,
}

/// A listener of the host, whose descriptor is readable when a caller waits.
pub struct ControlListener {
    listener: AsyncFd<ListenerClient>,
    local: Endpoint,
}

impl ControlFace {
    /// The host whose control socket is at `path`, seen from a task on `waits`, whose runtime has `reactor`.
    ///
    /// # Errors
    /// As [`Client::open`].
    #[allow(clippy::disallowed_methods, reason = "this face measures real time")]
    pub fn open(path: &Path, waits: Host, reactor: &Reactor) -> io::Result<ControlFace> {
        Client::open(path)?;
        let (path, reactor, began) = (path.to_owned(), reactor.clone(), time::Instant::now());
        Ok(ControlFace { path, waits, reactor, began })
    }
    fn client(&self) -> io::Result<Client> {
        Client::open(&self.path)
    }
    fn stream_of(&self, connected: Connected) -> io::Result<AsyncFd<UnixStream>> {
        AsyncFd::new(&self.reactor, connected.stream)
    }
}

fn failed(why: ClientError) -> io::Error {
    match why {
        ClientError::Io(why) => why,
        ClientError::Refused { errno: Some(number), .. } => io::Error::from_raw_os_error(number),
        why => io::Error::other(why.to_string()),
    }
}

/// The descriptor passes bytes only: options of the socket behind it are set when it is opened.
fn without_options(options: &SocketOptions) -> io::Result<()> {
    match options.window_bytes.is_some() || options.congestion.is_some() {
        false => Ok(()),
        true => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the control socket has no option for buffers and congestion control",
        )),
    }
}

impl Face for ControlFace {
    type Stream = AsyncFd<UnixStream>;
    type Listener = ControlListener;
    type Datagrams = AsyncFd<UdpClient>;

    fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_nanos(self.began.elapsed().as_nanos() as u64)
    }
    async fn sleep_until(&self, at: Instant) {
        self.waits.sleep(at.since(self.now())).await;
    }
    fn entropy(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher, RandomState};
        RandomState::new().build_hasher().finish()
    }
    fn processor(&self) -> Option<Processor> {
        Processor::of_process()
    }
    async fn connect(&self, to: Endpoint, options: &SocketOptions) -> io::Result<AsyncFd<UnixStream>> {
        without_options(options)?;
        let mut calling = CallOptions::default();
        calling.nagle = !options.no_delay;
        self.stream_of(self.client()?.connect_with(to, calling).map_err(failed)?)
    }
    async fn listen(&self, at: Endpoint) -> io::Result<ControlListener> {
        let listener = self.client()?.listen(at).map_err(failed)?;
        let local = listener.local();
        Ok(ControlListener { listener: AsyncFd::new(&self.reactor, listener)?, local })
    }
    fn local(&self, listener: &ControlListener) -> io::Result<Endpoint> {
        Ok(listener.local)
    }
    async fn accept(&self, listener: &ControlListener) -> io::Result<(AsyncFd<UnixStream>, Endpoint)> {
        let accept = |listener: &ListenerClient| listener.accept().map_err(failed);
        let connected = listener.listener.io(Interest::Read, accept).await?;
        let peer = connected.remote;
        Ok((self.stream_of(connected)?, peer))
    }
    async fn prepare(&self, _: &AsyncFd<UnixStream>, options: &SocketOptions) -> io::Result<()> {
        without_options(options)
    }
    async fn datagrams(
        &self,
        local: Endpoint,
        remote: Option<Endpoint>,
        options: &SocketOptions,
    ) -> io::Result<AsyncFd<UdpClient>> {
        without_options(options)?;
        AsyncFd::new(&self.reactor, self.client()?.udp(local, remote).map_err(failed)?)
    }
    async fn send_to(
        &self,
        socket: &AsyncFd<UdpClient>,
        bytes: &[u8],
        to: Option<Endpoint>,
    ) -> io::Result<()> {
        socket.io(Interest::Write, |socket| socket.send(bytes, to)).await
    }
    async fn receive_from(
        &self,
        socket: &AsyncFd<UdpClient>,
        into: &mut [u8],
    ) -> io::Result<(usize, Endpoint)> {
        let (datagram, from) = socket.io(Interest::Read, UdpClient::receive).await?;
        let count = datagram.len().min(into.len());
        into[..count].copy_from_slice(&datagram[..count]);
        Ok((count, from))
    }
    async fn figures(&self, _: &AsyncFd<UnixStream>) -> StreamFigures {
        StreamFigures::default()
    }
}
