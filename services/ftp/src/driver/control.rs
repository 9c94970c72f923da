//! A connection that may switch to TLS and back.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{TlsStream, Urgent};

/// A stream in clear text or in TLS.
pub enum MaybeTls<S> {
    /// In clear text.
    Clear(S),
    /// In TLS.
    Tls(Box<TlsStream<S>>),
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for MaybeTls<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            MaybeTls::Clear(stream) => Pin::new(stream).poll_read(cx, buf),
            MaybeTls::Tls(stream) => Pin::new(&mut **stream).poll_read(cx, buf),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for MaybeTls<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut *self {
            MaybeTls::Clear(stream) => Pin::new(stream).poll_write(cx, bytes),
            MaybeTls::Tls(stream) => Pin::new(&mut **stream).poll_write(cx, bytes),
        }
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            MaybeTls::Clear(stream) => Pin::new(stream).poll_flush(cx),
            MaybeTls::Tls(stream) => Pin::new(&mut **stream).poll_flush(cx),
        }
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            MaybeTls::Clear(stream) => Pin::new(stream).poll_shutdown(cx),
            MaybeTls::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Urgent + Unpin> Urgent for MaybeTls<S> {
    fn poll_send_urgent(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            MaybeTls::Clear(stream) => Pin::new(stream).poll_send_urgent(cx, bytes),
            MaybeTls::Tls(stream) => Pin::new(&mut **stream).poll_send_urgent(cx, bytes),
        }
    }
    fn urgent_ahead(&self) -> Option<usize> {
        match self {
            MaybeTls::Clear(stream) => stream.urgent_ahead(),
            MaybeTls::Tls(stream) => stream.urgent_ahead(),
        }
    }
}
