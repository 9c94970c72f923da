//! Blocking sockets in the manner of Berkeley: calls that block their thread or time out.
//!
//! Made from a [`RemoteHost`], on any thread but a host's own. In a task of a host they panic instead of waiting for ever.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::time::Duration;

use inhost_base::Endpoint;
use inhost_stack::{ConnectOptions, ConnectionOptions, ListenOptions, SocketError, SocketOption, UdpOptions};
use inhost_tcp::Info;

pub use crate::block_on::{block_on, block_on_within};
use crate::errno::Errno;
use crate::error::{AcceptError, DatagramError, ListenError};
use crate::remote::{RemoteHost, RemoteListener, RemoteStream, RemoteUdpSocket};

/// A connection with blocking reads and writes, like `std::net::TcpStream`. Clones are the same connection, with time
/// limits of their own.
#[derive(Clone, Debug)]
pub struct TcpStream {
    stream: RemoteStream,
    read_timeout: Option<Duration>,
    write_timeout: Option<Duration>,
}

impl From<RemoteStream> for TcpStream {
    fn from(stream: RemoteStream) -> Self {
        TcpStream { stream, read_timeout: None, write_timeout: None }
    }
}

impl TcpStream {
    /// Calls `remote` and waits for the handshake; the connection's own time limit applies.
    pub fn connect(host: &RemoteHost, remote: Endpoint) -> io::Result<TcpStream> {
        block_on(host.connect(remote)).map(TcpStream::from).map_err(Errno::into_io)
    }
    /// Calls `remote`, with options, and gives up after `limit`.
    pub fn connect_within(
        host: &RemoteHost,
        remote: Endpoint,
        options: ConnectOptions,
        limit: Duration,
    ) -> io::Result<TcpStream> {
        let connected = block_on_within(host.connect_with(remote, options), Some(limit));
        let stream = connected.ok_or(io::ErrorKind::TimedOut)?.map_err(Errno::into_io)?;
        Ok(TcpStream::from(stream))
    }
    /// Our end.
    pub fn local(&self) -> Endpoint {
        self.stream.local()
    }
    /// The other end.
    pub fn remote(&self) -> Endpoint {
        self.stream.remote()
    }
    /// How long a read may take; then it fails with `WouldBlock`, as Berkeley's does. A zero limit never waits;
    /// `None` waits for ever.
    pub fn set_read_timeout(&mut self, limit: Option<Duration>) {
        self.read_timeout = limit;
    }
    /// The same for writes.
    pub fn set_write_timeout(&mut self, limit: Option<Duration>) {
        self.write_timeout = limit;
    }
    /// Sets any option of the connection.
    pub fn set_option(&self, option: SocketOption) -> Result<(), SocketError> {
        block_on(self.stream.set_option(option))
    }
    /// `SO_SNDBUF`; see [`Stream::set_send_buffer`](crate::Stream::set_send_buffer).
    pub fn set_send_buffer(&self, bytes: usize) -> Result<(), SocketError> {
        block_on(self.stream.set_send_buffer(bytes))
    }
    /// The options as they stand, while the connection lives.
    pub fn options(&self) -> Result<ConnectionOptions, SocketError> {
        block_on(self.stream.options())
    }
    /// Every figure of the connection, while it lives.
    pub fn info(&self) -> Option<Info> {
        block_on(self.stream.info())
    }
    /// Writes all of `bytes`, the last of which is urgent.
    pub fn send_urgent(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let sent = poll_fn(|context| self.stream.poll_send(context, bytes, true));
            let count = within(sent, self.write_timeout)?.map_err(Errno::into_io)?;
            bytes = &bytes[count.min(bytes.len())..];
        }
        Ok(())
    }
    /// Bytes up to and including the urgent mark, when it is ahead.
    pub fn urgent_ahead(&self) -> Option<usize> {
        self.stream.urgent_ahead()
    }
    /// Ends the sending half after the written data.
    pub fn shutdown(&self) {
        self.stream.shutdown();
    }
    /// Resets the connection.
    pub fn abort(&self) {
        self.stream.abort();
    }
    /// The asynchronous stream.
    pub fn into_inner(self) -> RemoteStream {
        self.stream
    }
}

impl Read for &TcpStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(done) = self.stream.try_read(into) {
            return done.map_err(Errno::into_io);
        }
        let read = poll_fn(|context| self.stream.poll_receive(context, into));
        within(read, self.read_timeout)?.map_err(Errno::into_io)
    }
}
impl Write for &TcpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(done) = self.stream.try_write(bytes) {
            return done.map_err(Errno::into_io);
        }
        let sent = poll_fn(|context| self.stream.poll_send(context, bytes, false));
        within(sent, self.write_timeout)?.map_err(Errno::into_io)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
impl Read for TcpStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        (&*self).read(into)
    }
}
impl Write for TcpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A listener whose accept blocks.
#[derive(Clone, Debug)]
pub struct TcpListener {
    listener: RemoteListener,
    timeout: Option<Duration>,
}

impl TcpListener {
    /// Listens at `local`.
    pub fn bind(host: &RemoteHost, local: Endpoint, options: ListenOptions) -> io::Result<TcpListener> {
        let bound: Result<_, ListenError> = block_on(host.listen(local, options));
        Ok(TcpListener { listener: bound.map_err(Errno::into_io)?, timeout: None })
    }
    /// Where it listens.
    pub fn local(&self) -> Endpoint {
        self.listener.local()
    }
    /// Sets an option: of the listener, or of the connections that it takes from now on.
    pub fn set_option(&self, option: SocketOption) -> Result<(), SocketError> {
        block_on(self.listener.set_option(option))
    }
    /// How long an accept may take; then it fails with `WouldBlock`.
    pub fn set_timeout(&mut self, limit: Option<Duration>) {
        self.timeout = limit;
    }
    /// The next connection.
    pub fn accept(&self) -> io::Result<TcpStream> {
        let accepted: Result<_, AcceptError> = within(self.listener.accept(), self.timeout)?;
        accepted.map(TcpStream::from).map_err(Errno::into_io)
    }
}

/// A UDP socket whose calls block.
#[derive(Clone, Debug)]
pub struct UdpSocket {
    socket: RemoteUdpSocket,
    read_timeout: Option<Duration>,
}

impl UdpSocket {
    /// Opens a socket at `local`.
    pub fn bind(host: &RemoteHost, local: Endpoint, options: UdpOptions) -> io::Result<UdpSocket> {
        let bound: Result<_, ListenError> = block_on(host.udp(local, options));
        Ok(UdpSocket { socket: bound.map_err(Errno::into_io)?, read_timeout: None })
    }
    /// Our end, as it was bound.
    pub fn local(&self) -> Endpoint {
        self.socket.local()
    }
    /// Talks to `remote` only from now on.
    pub fn connect(&self, remote: Endpoint) -> io::Result<()> {
        block_on(self.socket.connect(remote)).map_err(Errno::into_io)
    }
    /// How long a receive may take; then it fails with `WouldBlock`.
    pub fn set_read_timeout(&mut self, limit: Option<Duration>) {
        self.read_timeout = limit;
    }
    /// Sends one datagram to the connected end.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        block_on(self.socket.send_to(bytes, None)).map_err(Errno::into_io)
    }
    /// Sends one datagram to `to`.
    pub fn send_to(&self, bytes: &[u8], to: Endpoint) -> io::Result<()> {
        block_on(self.socket.send_to(bytes, Some(to))).map_err(Errno::into_io)
    }
    /// The next datagram: its length and its sender. What does not fit into `into` is lost.
    pub fn receive_from(&self, into: &mut [u8]) -> io::Result<(usize, Endpoint)> {
        let room = into.len();
        let received: Result<_, DatagramError> = within(self.socket.receive_from(into), self.read_timeout)?;
        let info = received.map_err(Errno::into_io)?;
        Ok((info.length_bytes.min(room), info.from))
    }
}

fn within<F: Future>(future: F, limit: Option<Duration>) -> io::Result<F::Output> {
    block_on_within(future, limit).ok_or_else(|| io::ErrorKind::WouldBlock.into())
}
