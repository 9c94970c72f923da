//! `AsyncFd`: a descriptor of the operating system for the tasks of a host.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use inhost_base::Key;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::reactor::{Interest, Reactor};

/// Owns a descriptor, keeps it non-blocking, and lets tasks of the reactor's thread wait for it.
///
/// Readiness is remembered between waits and forgotten when an operation says `WouldBlock`; so operations on the
/// inner value go through [`AsyncFd::try_io`], [`AsyncFd::io`] or the stream traits, which do that book-keeping.
/// Where `&T` reads and writes, as with `TcpStream`, `UnixStream` and `File` (a pty, a pipe), the whole is a tokio
/// `AsyncRead` and `AsyncWrite`; its shutdown ends the sending half of a socket and does nothing to other kinds.
pub struct AsyncFd<T: AsFd> {
    inner: Option<T>,
    key: Key,
    reactor: Reactor,
}

impl<T: AsFd> AsyncFd<T> {
    /// Sets `inner` non-blocking and watches it. Fails for kinds that the system cannot watch, such as plain files.
    pub fn new(reactor: &Reactor, inner: T) -> io::Result<AsyncFd<T>> {
        rustix::io::ioctl_fionbio(&inner, true)?;
        let key = reactor.watch(inner.as_fd())?;
        Ok(AsyncFd { inner: Some(inner), key, reactor: reactor.clone() })
    }
    /// The owned descriptor.
    pub fn inner(&self) -> &T {
        self.inner.as_ref().unwrap_or_else(|| unreachable!("taken only by into_inner"))
    }
    /// Gives it back, no longer watched and still non-blocking.
    pub fn into_inner(mut self) -> T {
        self.reactor.forget(self.key, self.inner().as_fd());
        self.inner.take().unwrap_or_else(|| unreachable!("taken only here"))
    }
    /// The reactor that watches it.
    pub fn reactor(&self) -> &Reactor {
        &self.reactor
    }
    /// Waits until reading may succeed. May be wrong once: try and wait again.
    pub async fn readable(&self) {
        poll_fn(|context| self.poll_ready(Interest::Read, context)).await;
    }
    /// Waits until writing may succeed. May be wrong once.
    pub async fn writable(&self) {
        poll_fn(|context| self.poll_ready(Interest::Write, context)).await;
    }
    /// Waits until the other end is gone for good: it can neither read nor write any more.
    pub async fn hung_up(&self) {
        poll_fn(|context| self.poll_ready(Interest::HangUp, context)).await;
    }
    /// The waits above, for a future of one's own.
    pub fn poll_ready(&self, interest: Interest, context: &Context<'_>) -> Poll<()> {
        self.reactor.poll_ready(self.key, interest, context)
    }
    /// Tries `operation` at once; on `WouldBlock` the readiness is forgotten, so that the next wait really waits.
    pub fn try_io<R>(
        &self,
        interest: Interest,
        operation: impl FnOnce(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        let result = operation(self.inner());
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::WouldBlock
        {
            self.reactor.clear(self.key, interest);
        }
        result
    }
    /// Repeats `operation` until it says something else than `WouldBlock`, waiting in between.
    pub async fn io<R>(
        &self,
        interest: Interest,
        mut operation: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        poll_fn(|context| self.poll_io(interest, context, &mut operation)).await
    }
    /// One step of [`AsyncFd::io`].
    pub fn poll_io<R>(
        &self,
        interest: Interest,
        context: &Context<'_>,
        mut operation: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            match self.try_io(interest, &mut operation) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.poll_ready(interest, context));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return Poll::Ready(result),
            }
        }
    }
}

impl<T: AsFd> Drop for AsyncFd<T> {
    fn drop(&mut self) {
        if let Some(inner) = &self.inner {
            self.reactor.forget(self.key, inner.as_fd());
        }
    }
}
impl<T: AsFd> AsFd for AsyncFd<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner().as_fd()
    }
}
impl<T: AsFd> Unpin for AsyncFd<T> {}

impl<T: AsFd> AsyncRead for AsyncFd<T>
where
    for<'a> &'a T: Read,
{
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let unfilled = into.initialize_unfilled();
        let count = ready!(self.poll_io(Interest::Read, context, |mut inner| inner.read(unfilled)))?;
        into.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsFd> AsyncWrite for AsyncFd<T>
where
    for<'a> &'a T: Write,
{
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_io(Interest::Write, context, |mut inner| inner.write(bytes))
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_io(Interest::Write, context, |mut inner| inner.write_vectored(pieces))
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_io(Interest::Write, context, |mut inner| inner.flush())
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match rustix::net::shutdown(self.inner(), Shutdown::Write) {
            Ok(()) | Err(rustix::io::Errno::NOTSOCK | rustix::io::Errno::NOTCONN) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }
}

impl AsyncFd<TcpStream> {
    /// Connects through the operating system's own TCP. That it could not try for a [shortage](crate::is_shortage) says
    /// nothing about the other end.
    pub async fn connect(reactor: &Reactor, to: SocketAddr) -> io::Result<AsyncFd<TcpStream>> {
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        let pending = match rustix::net::connect(&socket, &to) {
            Ok(()) => false,
            Err(rustix::io::Errno::INPROGRESS | rustix::io::Errno::INTR) => true,
            Err(error) => return Err(error.into()),
        };
        let stream = AsyncFd::new(reactor, TcpStream::from(socket))?;
        if pending {
            stream
                .io(Interest::Write, |inner| match inner.take_error()? {
                    Some(error) => Err(error),
                    None => match inner.peer_addr() {
                        Ok(_) => Ok(()),
                        Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                            Err(io::ErrorKind::WouldBlock.into())
                        }
                        Err(error) => Err(error),
                    },
                })
                .await?;
        }
        Ok(stream)
    }
}

impl AsyncFd<TcpListener> {
    /// The next connection, watched by the same reactor, and who called. After a [shortage](crate::is_shortage) the caller
    /// waits on, and no readiness tells when it is over: call again after a pause.
    pub async fn accept(&self) -> io::Result<(AsyncFd<TcpStream>, SocketAddr)> {
        let (stream, from) = self.io(Interest::Read, |inner| inner.accept()).await?;
        Ok((AsyncFd::new(&self.reactor, stream)?, from))
    }
}

impl AsyncFd<UnixListener> {
    /// The next connection, watched by the same reactor.
    pub async fn accept(&self) -> io::Result<AsyncFd<UnixStream>> {
        let (stream, _) = self.io(Interest::Read, |inner| inner.accept()).await?;
        AsyncFd::new(&self.reactor, stream)
    }
}

impl AsyncFd<UdpSocket> {
    /// The next datagram: its length in `into`, and its sender.
    pub async fn receive_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io(Interest::Read, |inner| inner.recv_from(into)).await
    }
    /// Sends one datagram.
    pub async fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.io(Interest::Write, |inner| inner.send_to(bytes, to)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_base::Duration;
    use std::pin::pin;
    use std::task::Waker;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Polls until the future is done, waiting in the reactor between polls.
    fn complete<F: Future>(reactor: &Reactor, future: F) -> F::Output {
        let mut future = pin!(future);
        for _ in 0..10_000 {
            if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return value;
            }
            reactor.wait(Some(Duration::from_secs(5))).unwrap();
        }
        panic!("the future made no progress");
    }

    #[test]
    fn a_pair_carries_bytes_and_its_end() {
        let reactor = Reactor::new().unwrap();
        let (a, b) = UnixStream::pair().unwrap();
        let mut a = AsyncFd::new(&reactor, a).unwrap();
        let mut b = AsyncFd::new(&reactor, b).unwrap();
        let sent: Vec<u8> = (0..1_000_000u32).map(|i| (i * 7) as u8).collect();
        let mut received = Vec::new();
        complete(&reactor, async {
            let write = async {
                a.write_all(&sent).await.unwrap();
                a.shutdown().await.unwrap();
            };
            let read = async { b.read_to_end(&mut received).await.unwrap() };
            both(write, read).await;
        });
        assert!(received == sent);
    }

    async fn both(a: impl Future<Output = ()>, b: impl Future<Output = usize>) {
        let (mut a, mut b) = (pin!(a), pin!(b));
        let (mut a_done, mut b_done) = (false, false);
        poll_fn(|context| {
            a_done = a_done || a.as_mut().poll(context).is_ready();
            b_done = b_done || b.as_mut().poll(context).is_ready();
            if a_done && b_done { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    #[test]
    fn the_systems_tcp_connects_accepts_and_refuses() {
        let reactor = Reactor::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let listener = AsyncFd::new(&reactor, listener).unwrap();
        let mut out = complete(&reactor, AsyncFd::connect(&reactor, address)).unwrap();
        let (mut accepted, from) = complete(&reactor, listener.accept()).unwrap();
        assert_eq!(from, out.inner().local_addr().unwrap());
        complete(&reactor, out.write_all(b"x")).unwrap();
        assert_eq!(complete(&reactor, accepted.read_u8()).unwrap(), b'x');
        drop(listener);
        let refused = complete(&reactor, AsyncFd::connect(&reactor, address));
        assert_eq!(refused.err().unwrap().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_borrowed_descriptor_is_waited_for_and_forgotten() {
        let reactor = Reactor::new().unwrap();
        let (a, b) = UnixStream::pair().unwrap();
        complete(&reactor, reactor.writable(&a)).unwrap();
        (&b).write_all(b"!").unwrap();
        complete(&reactor, reactor.readable(&a)).unwrap();
        // Nothing is watched any more, so a wait finds nothing.
        assert_eq!(reactor.wait(Some(Duration::ZERO)).unwrap(), 0);
    }
}
