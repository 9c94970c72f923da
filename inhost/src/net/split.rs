//! The two halves of a connection.

use std::error::Error;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::ready::{Interest, Ready};
use super::tcp_stream::TcpStream;

/// The reading half of a borrowed [`TcpStream`].
#[derive(Debug)]
pub struct ReadHalf<'a>(&'a TcpStream);

/// The writing half of a borrowed [`TcpStream`].
#[derive(Debug)]
pub struct WriteHalf<'a>(&'a TcpStream);

/// The reading half of a [`TcpStream`].
#[derive(Debug)]
pub struct OwnedReadHalf(Arc<TcpStream>);

/// The writing half of a [`TcpStream`]. Dropping it ends what we send, unless it was [forgotten](OwnedWriteHalf::forget).
#[derive(Debug)]
pub struct OwnedWriteHalf {
    stream: Arc<TcpStream>,
    ends_on_drop: bool,
}

/// The halves given to `reunite` are not of one stream.
#[derive(Debug)]
pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

impl fmt::Display for ReuniteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the halves are not from the same socket")
    }
}
impl Error for ReuniteError {}

pub(super) fn split(stream: &TcpStream) -> (ReadHalf<'_>, WriteHalf<'_>) {
    (ReadHalf(stream), WriteHalf(stream))
}

pub(super) fn into_split(stream: TcpStream) -> (OwnedReadHalf, OwnedWriteHalf) {
    let stream = Arc::new(stream);
    (OwnedReadHalf(stream.clone()), OwnedWriteHalf { stream, ends_on_drop: true })
}

/// Puts both halves together again.
fn reunite(read: OwnedReadHalf, mut write: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
    if !Arc::ptr_eq(&read.0, &write.stream) {
        return Err(ReuniteError(read, write));
    }
    write.ends_on_drop = false;
    drop(write);
    // Both handles are of this stream, and there were no others.
    let stream = Arc::try_unwrap(read.0);
    Ok(stream
        .unwrap_or_else(|shared| TcpStream { remote: shared.remote.clone(), shown: shared.shown.clone() }))
}

impl OwnedReadHalf {
    /// Puts both halves together again.
    ///
    /// # Errors
    /// When they are not of one stream.
    pub fn reunite(self, other: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        reunite(self, other)
    }
}

impl OwnedWriteHalf {
    /// Puts both halves together again.
    ///
    /// # Errors
    /// When they are not of one stream.
    pub fn reunite(self, other: OwnedReadHalf) -> Result<TcpStream, ReuniteError> {
        reunite(other, self)
    }
    /// Drops the half without ending what we send.
    pub fn forget(mut self) {
        self.ends_on_drop = false;
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.ends_on_drop {
            self.stream.shutdown_write();
        }
    }
}

impl AsRef<TcpStream> for ReadHalf<'_> {
    fn as_ref(&self) -> &TcpStream {
        self.0
    }
}
impl AsRef<TcpStream> for WriteHalf<'_> {
    fn as_ref(&self) -> &TcpStream {
        self.0
    }
}
impl AsRef<TcpStream> for OwnedReadHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.0
    }
}
impl AsRef<TcpStream> for OwnedWriteHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.stream
    }
}

macro_rules! reads {
    ($half:ty) => {
        impl $half {
            /// As [`TcpStream::peek`].
            pub async fn peek(&mut self, into: &mut [u8]) -> io::Result<usize> {
                self.as_ref().peek(into).await
            }
            /// As [`TcpStream::poll_peek`].
            pub fn poll_peek(
                &mut self,
                context: &mut Context<'_>,
                into: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<usize>> {
                self.as_ref().poll_peek(context, into)
            }
            /// As [`TcpStream::ready`].
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                self.as_ref().ready(interest).await
            }
            /// As [`TcpStream::readable`].
            pub async fn readable(&self) -> io::Result<()> {
                self.as_ref().readable().await
            }
            /// As [`TcpStream::try_read_buf`].
            pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
                self.as_ref().try_read_buf(buf)
            }
            /// As [`TcpStream::try_read_vectored`].
            pub fn try_read_vectored(&self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                self.as_ref().try_read_vectored(into)
            }
            /// As [`TcpStream::try_read`].
            pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
                self.as_ref().try_read(into)
            }
            /// The other end.
            pub fn peer_addr(&self) -> io::Result<SocketAddr> {
                self.as_ref().peer_addr()
            }
            /// Our end.
            pub fn local_addr(&self) -> io::Result<SocketAddr> {
                self.as_ref().local_addr()
            }
        }
        impl AsyncRead for $half {
            fn poll_read(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                into: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                (*self).as_ref().poll_read_by_ref(context, into)
            }
        }
    };
}

macro_rules! writes {
    ($half:ty) => {
        impl $half {
            /// As [`TcpStream::ready`].
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                self.as_ref().ready(interest).await
            }
            /// As [`TcpStream::writable`].
            pub async fn writable(&self) -> io::Result<()> {
                self.as_ref().writable().await
            }
            /// As [`TcpStream::try_write`].
            pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
                self.as_ref().try_write(bytes)
            }
            /// As [`TcpStream::try_write_vectored`].
            pub fn try_write_vectored(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
                self.as_ref().try_write_vectored(bytes)
            }
            /// The other end.
            pub fn peer_addr(&self) -> io::Result<SocketAddr> {
                self.as_ref().peer_addr()
            }
            /// Our end.
            pub fn local_addr(&self) -> io::Result<SocketAddr> {
                self.as_ref().local_addr()
            }
        }
        impl AsyncWrite for $half {
            fn poll_write(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                (*self).as_ref().poll_write_by_ref(context, &[IoSlice::new(bytes)])
            }
            fn poll_write_vectored(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                (*self).as_ref().poll_write_by_ref(context, bytes)
            }
            fn is_write_vectored(&self) -> bool {
                true
            }
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }
            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                (*self).as_ref().shutdown_write();
                Poll::Ready(Ok(()))
            }
        }
    };
}

reads!(ReadHalf<'_>);
reads!(OwnedReadHalf);
writes!(WriteHalf<'_>);
writes!(OwnedWriteHalf);
