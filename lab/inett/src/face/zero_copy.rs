//! A host, measured from a task on it, with bulk data that goes by reference: it is lent to the host until the peer has
//! acknowledged it, and read where the host received it.

use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use inhost_base::{Endpoint, Instant};
use inhost_socket::errno::Errno;
use inhost_socket::{Host, Listener, Stream, StreamError, UdpSocket};
use inhost_stack as stack;
use inhost_tcp::SendHow;

use super::{Face, LocalFace, Processor, SocketOptions, StreamFigures};

/// The host's own calls for data by reference ([`stack::TcpSockets::lend`], [`stack::TcpSockets::borrow`]). Everything but
/// bulk data goes as over [`LocalFace`].
#[derive(Clone, Debug)]
pub struct ZeroCopyFace(LocalFace);

impl ZeroCopyFace {
    /// The sockets of this host, whose time may be made up.
    pub fn new(host: Host) -> ZeroCopyFace {
        ZeroCopyFace(LocalFace::new(host))
    }
    /// The sockets of a host under the real clock.
    #[cfg(feature = "kernel")]
    pub fn under_real_clock(host: Host) -> ZeroCopyFace {
        ZeroCopyFace(LocalFace::under_real_clock(host))
    }
}

/// What a call of the stack said; none where it has to be made again.
fn unless_blocked<T>(result: Result<T, stack::StreamError>) -> Option<io::Result<T>> {
    let why = match result {
        Ok(value) => return Some(Ok(value)),
        Err(stack::StreamError::WouldBlock) => return None,
        Err(stack::StreamError::Shutdown) => StreamError::SendingEnded,
        Err(stack::StreamError::Connection(why)) => StreamError::Connection(why),
        Err(_) => StreamError::Closed,
    };
    Some(Err(why.into_io()))
}

/// Waits for what a call lacked. What is there by now is asked for again in the next round.
fn wait<T>(ready: Poll<()>, context: &Context<'_>) -> Poll<T> {
    if ready.is_ready() {
        context.waker().wake_by_ref();
    }
    Poll::Pending
}

impl Face for ZeroCopyFace {
    type Stream = Stream;
    type Listener = Listener;
    type Datagrams = UdpSocket;

    fn now(&self) -> Instant {
        self.0.now()
    }
    async fn sleep_until(&self, at: Instant) {
        self.0.sleep_until(at).await;
    }
    fn entropy(&self) -> u64 {
        self.0.entropy()
    }
    fn processor(&self) -> Option<Processor> {
        self.0.processor()
    }
    async fn connect(&self, to: Endpoint, options: &SocketOptions) -> io::Result<Stream> {
        self.0.connect(to, options).await
    }
    async fn listen(&self, at: Endpoint) -> io::Result<Listener> {
        self.0.listen(at).await
    }
    fn local(&self, listener: &Listener) -> io::Result<Endpoint> {
        self.0.local(listener)
    }
    async fn accept(&self, listener: &Listener) -> io::Result<(Stream, Endpoint)> {
        self.0.accept(listener).await
    }
    async fn prepare(&self, stream: &Stream, options: &SocketOptions) -> io::Result<()> {
        self.0.prepare(stream, options).await
    }
    fn poll_send(
        stream: &mut Stream,
        context: &mut Context<'_>,
        bytes: &Bytes,
        from: usize,
    ) -> Poll<io::Result<usize>> {
        let (socket, mut lent) = (stream.socket(), bytes.slice(from..));
        let sent = stream.host().with_stack_and_sink(|stack, now, sink| {
            stack.tcp(now, sink).lend(socket, &mut lent, SendHow::default())
        });
        match unless_blocked(sent) {
            Some(done) => Poll::Ready(done),
            None => wait(stream.poll_writable(context), context),
        }
    }
    fn poll_receive(stream: &mut Stream, context: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
        let socket = stream.socket();
        let received = stream.host().with_stack_and_sink(|stack, now, sink| {
            stack.tcp(now, sink).borrow(socket).map(|packet| {
                let count = packet.len();
                stack.pool().give(packet);
                count
            })
        });
        match unless_blocked(received) {
            Some(done) => Poll::Ready(done),
            None => wait(stream.poll_readable(context), context),
        }
    }
    async fn datagrams(
        &self,
        local: Endpoint,
        remote: Option<Endpoint>,
        options: &SocketOptions,
    ) -> io::Result<UdpSocket> {
        self.0.datagrams(local, remote, options).await
    }
    async fn send_to(&self, socket: &UdpSocket, bytes: &[u8], to: Option<Endpoint>) -> io::Result<()> {
        self.0.send_to(socket, bytes, to).await
    }
    async fn receive_from(&self, socket: &UdpSocket, into: &mut [u8]) -> io::Result<(usize, Endpoint)> {
        self.0.receive_from(socket, into).await
    }
    async fn figures(&self, stream: &Stream) -> StreamFigures {
        self.0.figures(stream).await
    }
}
