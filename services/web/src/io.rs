//! hyper's traits of a stream over tokio's.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::watch::Watch;

/// Bytes of one read.
const READ_BYTES: usize = 8 << 10;

/// A stream as hyper takes it, which tells the connection's watch what moves.
pub(crate) struct Io<S> {
    pub(crate) stream: S,
    pub(crate) watch: Rc<Watch>,
    /// hyper lends memory that may be uninitialized, which safe code cannot read into.
    place: Box<[u8]>,
}

impl<S> Io<S> {
    pub(crate) fn new(stream: S, watch: Rc<Watch>) -> Self {
        Io { stream, watch, place: vec![0; READ_BYTES].into() }
    }
}

impl<S: AsyncRead + Unpin> Read for Io<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Io { stream, watch, place } = self.get_mut();
        let room = into.remaining().min(place.len());
        let mut buffer = ReadBuf::new(place.get_mut(..room).unwrap_or_default());
        ready!(Pin::new(stream).poll_read(context, &mut buffer))?;
        let received = buffer.filled();
        if !received.is_empty() {
            watch.received();
        }
        into.put_slice(received);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Write for Io<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch.sent(written.is_pending());
        written
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.watch.sent(written.is_pending());
        written
    }
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
