//! A host of inhost: from a task on it, and from another thread.

use std::collections::BTreeMap;
use std::io;

use inhost_base::{Duration, Endpoint, Instant};
use inhost_socket::errno::Errno;
use inhost_socket::{
    Host, Listener, RemoteHost, RemoteListener, RemoteStream, RemoteUdpSocket, Stream, UdpSocket,
};
use inhost_stack::{
    CongestionChoice, ConnectionOption, ListenOptions, SendDatagrams, SocketOption, UdpOptions,
};
use inhost_tcp::Info;

use super::{Face, Processor, SocketOptions, StreamFigures};

/// A host, measured from a task on it. Time is the host's, so that a simulator's figures follow from its seed.
#[derive(Clone, Debug)]
pub struct LocalFace {
    host: Host,
    has_real_clock: bool,
}

impl LocalFace {
    /// The sockets of this host, whose time may be made up: processor time is left out.
    pub fn new(host: Host) -> LocalFace {
        LocalFace { host, has_real_clock: false }
    }
    /// The sockets of a host under the real clock: processor time is measured, too.
    #[cfg(feature = "kernel")]
    pub fn under_real_clock(host: Host) -> LocalFace {
        LocalFace { host, has_real_clock: true }
    }
}

fn congestion(name: &str) -> io::Result<CongestionChoice> {
    match name {
        "cubic" => Ok(CongestionChoice::Cubic),
        "cubic-in-segments" => Ok(CongestionChoice::CubicInSegments),
        "newreno" | "reno" => Ok(CongestionChoice::NewReno),
        _ => Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("the host has no congestion control {name:?}"),
        )),
    }
}

fn socket_options(options: &SocketOptions, is_stream: bool) -> io::Result<Vec<SocketOption>> {
    let mut list = Vec::new();
    if let Some(bytes) = options.window_bytes {
        list.push(SocketOption::SendBufferLimit(bytes as usize));
        list.push(SocketOption::ReceiveBufferLimit(bytes as usize));
    }
    if is_stream {
        if options.no_delay {
            list.push(SocketOption::Tcp(ConnectionOption::Nagle(false)));
        }
        if let Some(name) = &options.congestion {
            list.push(SocketOption::Tcp(ConnectionOption::Congestion(congestion(name)?)));
        }
    }
    Ok(list)
}

pub(super) fn figures_of(info: Option<Info>) -> StreamFigures {
    let Some(info) = info else { return StreamFigures::default() };
    let waits = info.ledgers.send.iter().filter(|(_, time)| *time > Duration::ZERO);
    let waits_s: BTreeMap<_, _> =
        waits.map(|(cause, time)| (cause.text().to_owned(), time.as_secs_f64())).collect();
    StreamFigures {
        retransmits: Some(info.retransmitted_segments.into()),
        round_trip_us: info.smoothed_round_trip.map(|trip| trip.as_nanos() as f64 / 1e3),
        congestion: Some(info.congestion_control.to_owned()),
        waits_s,
    }
}

impl Face for LocalFace {
    type Stream = Stream;
    type Listener = Listener;
    type Datagrams = UdpSocket;

    fn now(&self) -> Instant {
        self.host.now()
    }
    async fn sleep_until(&self, at: Instant) {
        self.host.sleep_until(at).await;
    }
    fn entropy(&self) -> u64 {
        self.host.now().as_nanos()
    }
    #[cfg(feature = "kernel")]
    fn processor(&self) -> Option<Processor> {
        let process = Processor::of_process().filter(|_| self.has_real_clock)?;
        let (host_thread_s, layers) = super::of_thread();
        Some(Processor { host_thread_s, layers, ..process })
    }
    #[cfg(not(feature = "kernel"))]
    fn processor(&self) -> Option<Processor> {
        debug_assert!(!self.has_real_clock, "it is set with the feature `kernel` only");
        None
    }
    async fn connect(&self, to: Endpoint, options: &SocketOptions) -> io::Result<Stream> {
        let list = socket_options(options, true)?;
        let stream = self.host.connect(to).await.map_err(Errno::into_io)?;
        for option in list {
            stream.set_option(option).map_err(Errno::into_io)?;
        }
        Ok(stream)
    }
    async fn listen(&self, at: Endpoint) -> io::Result<Listener> {
        self.host.listen(at, ListenOptions::default()).map_err(Errno::into_io)
    }
    fn local(&self, listener: &Listener) -> io::Result<Endpoint> {
        Ok(listener.local())
    }
    async fn accept(&self, listener: &Listener) -> io::Result<(Stream, Endpoint)> {
        let stream = listener.accept().await.map_err(Errno::into_io)?;
        let peer = stream.remote();
        Ok((stream, peer))
    }
    async fn prepare(&self, stream: &Stream, options: &SocketOptions) -> io::Result<()> {
        for option in socket_options(options, true)? {
            stream.set_option(option).map_err(Errno::into_io)?;
        }
        Ok(())
    }
    async fn datagrams(
        &self,
        local: Endpoint,
        remote: Option<Endpoint>,
        options: &SocketOptions,
    ) -> io::Result<UdpSocket> {
        let socket = self.host.udp(local, UdpOptions::default()).map_err(Errno::into_io)?;
        for option in socket_options(options, false)? {
            socket.set_option(option).map_err(Errno::into_io)?;
        }
        if let Some(remote) = remote {
            socket.connect(remote).map_err(Errno::into_io)?;
        }
        Ok(socket)
    }
    async fn send_to(&self, socket: &UdpSocket, bytes: &[u8], to: Option<Endpoint>) -> io::Result<()> {
        match to {
            Some(to) => socket.send_to(bytes, to).await,
            None => socket.send(bytes).await,
        }
        .map_err(Errno::into_io)
    }
    async fn receive_from(&self, socket: &UdpSocket, into: &mut [u8]) -> io::Result<(usize, Endpoint)> {
        let info = socket.receive_from(into).await.map_err(Errno::into_io)?;
        Ok((info.length_bytes.min(into.len()), info.from))
    }
    async fn figures(&self, stream: &Stream) -> StreamFigures {
        figures_of(stream.info())
    }
}

/// A host, measured from another thread by its `Send` sockets. Time is the system's.
#[derive(Clone, Debug)]
pub struct RemoteFace {
    host: RemoteHost,
    began: std::time::Instant,
}

impl RemoteFace {
    /// The sockets of this host.
    #[allow(clippy::disallowed_methods, reason = "this face measures real time")]
    pub fn new(host: RemoteHost) -> RemoteFace {
        RemoteFace { host, began: std::time::Instant::now() }
    }
}

impl Face for RemoteFace {
    type Stream = RemoteStream;
    type Listener = RemoteListener;
    type Datagrams = RemoteUdpSocket;

    fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_nanos(self.began.elapsed().as_nanos() as u64)
    }
    async fn sleep_until(&self, at: Instant) {
        let time = at.since(self.now());
        // A host that is gone has no time: whatever waits ends, and its sockets say why.
        let _ = self.host.call(move |host| async move { host.sleep(time).await }).await;
    }
    fn entropy(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher, RandomState};
        RandomState::new().build_hasher().finish()
    }
    #[cfg(feature = "kernel")]
    fn processor(&self) -> Option<Processor> {
        let process = Processor::of_process()?;
        let (host_thread_s, layers) = self.host.call_now(|_| super::of_thread()).unwrap_or_default();
        Some(Processor { host_thread_s, layers, ..process })
    }
    #[cfg(not(feature = "kernel"))]
    fn processor(&self) -> Option<Processor> {
        None
    }
    async fn connect(&self, to: Endpoint, options: &SocketOptions) -> io::Result<RemoteStream> {
        let list = socket_options(options, true)?;
        let stream = self.host.connect(to).await.map_err(Errno::into_io)?;
        for option in list {
            stream.set_option(option).await.map_err(Errno::into_io)?;
        }
        Ok(stream)
    }
    async fn listen(&self, at: Endpoint) -> io::Result<RemoteListener> {
        self.host.listen(at, ListenOptions::default()).await.map_err(Errno::into_io)
    }
    fn local(&self, listener: &RemoteListener) -> io::Result<Endpoint> {
        Ok(listener.local())
    }
    async fn accept(&self, listener: &RemoteListener) -> io::Result<(RemoteStream, Endpoint)> {
        let stream = listener.accept().await.map_err(Errno::into_io)?;
        let peer = stream.remote();
        Ok((stream, peer))
    }
    async fn prepare(&self, stream: &RemoteStream, options: &SocketOptions) -> io::Result<()> {
        for option in socket_options(options, true)? {
            stream.set_option(option).await.map_err(Errno::into_io)?;
        }
        Ok(())
    }
    async fn datagrams(
        &self,
        local: Endpoint,
        remote: Option<Endpoint>,
        options: &SocketOptions,
    ) -> io::Result<RemoteUdpSocket> {
        let socket = self.host.udp(local, UdpOptions::default()).await.map_err(Errno::into_io)?;
        for option in socket_options(options, false)? {
            socket.queue_option(option);
        }
        if let Some(remote) = remote {
            socket.connect(remote).await.map_err(Errno::into_io)?;
        }
        Ok(socket)
    }
    async fn send_to(&self, socket: &RemoteUdpSocket, bytes: &[u8], to: Option<Endpoint>) -> io::Result<()> {
        let mut how = SendDatagrams::default();
        how.to = to;
        std::future::poll_fn(|context| socket.poll_send(context, bytes, &how)).await.map_err(Errno::into_io)
    }
    async fn receive_from(&self, socket: &RemoteUdpSocket, into: &mut [u8]) -> io::Result<(usize, Endpoint)> {
        let info = socket.receive_from(into).await.map_err(Errno::into_io)?;
        Ok((info.length_bytes.min(into.len()), info.from))
    }
    async fn figures(&self, stream: &RemoteStream) -> StreamFigures {
        figures_of(stream.info().await)
    }
}
