//! TLS over any stream: rustls decides, this carries.

use std::fmt;
use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ServerSessionMemoryCache;
use rustls::{Connection, HandshakeKind, ServerConnection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Urgent;

/// Tickets that each handshake gives. Clients that use one once, as RFC 8446 §C.4 has it, need one for each data
/// connection, and those that send files do not always read the new one; so there are some to spare. Ours can be used
/// again, for they are sealed and not remembered.
const TICKETS: usize = 4;
/// Sessions of TLS 1.2 that are kept for clients without tickets: one is resumed again and again.
const KEPT_SESSIONS: usize = 4;
/// Content types of TLS records (RFC 8446 §5.1).
const RECORD_TYPES: std::ops::RangeInclusive<u8> = 20..=23;
/// Clear text that waits to be encrypted, and ciphertext that waits to be sent.
const BUFFER_BYTES: usize = 256 * 1024;

/// Why TLS cannot be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// The certificate or the key cannot be read.
    Pem(String),
    /// They do not belong together, or are none that rustls takes.
    Config(rustls::Error),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Pem(why) => f.write_str(why),
            TlsError::Config(error) => write!(f, "certificate and key cannot be used: {error}"),
        }
    }
}
impl std::error::Error for TlsError {}

/// A server's certificate with its key, ready for connections.
#[derive(Clone)]
pub struct TlsServer {
    config: Arc<rustls::ServerConfig>,
}

impl TlsServer {
    /// From the PEM texts of a certificate chain and its key.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<TlsServer, TlsError> {
        let chain = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| TlsError::Pem(format!("the certificate is no PEM: {e}")))?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|e| TlsError::Pem(format!("the key is no PEM: {e}")))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Config)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(TlsError::Config)?;
        config.send_tls13_tickets = TICKETS;
        Ok(TlsServer { config: Arc::new(config) })
    }

    /// The same for one control connection and its data connections. Its tickets are sealed with its own keys, so that
    /// every resumed session belongs to it: that holds for TLS 1.2 as for 1.3.
    pub(super) fn of_session(&self) -> Result<TlsServer, TlsError> {
        let mut config = (*self.config).clone();
        config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(TlsError::Config)?;
        config.session_storage = ServerSessionMemoryCache::new(KEPT_SESSIONS);
        Ok(TlsServer { config: Arc::new(config) })
    }

    /// Does the handshake on `io`.
    pub(super) async fn accept<S>(&self, io: S, exact: bool) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let connection = ServerConnection::new(self.config.clone()).map_err(io::Error::other)?;
        TlsStream::handshake(io, connection.into(), exact).await
    }
}

/// A stream in TLS.
pub struct TlsStream<S> {
    io: S,
    tls: Connection,
    /// Octets to the end of the record that is being read, where none behind it may be taken.
    record: Option<Record>,
    close_sent: bool,
}

/// Position within a record.
#[derive(Clone, Copy, Debug)]
enum Record {
    Header([u8; 5], usize),
    Body(usize),
}

/// A stream as `std::io` has it, for the length of one poll.
struct Polled<'a, 'b, S> {
    io: &'a mut S,
    cx: &'a mut Context<'b>,
}

impl<S: AsyncRead + Unpin> Read for Polled<'_, '_, S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut buf = ReadBuf::new(into);
        match Pin::new(&mut *self.io).poll_read(self.cx, &mut buf) {
            Poll::Ready(result) => result.map(|()| buf.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl<S: AsyncWrite + Unpin> Write for Polled<'_, '_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match Pin::new(&mut *self.io).poll_write(self.cx, bytes) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
    fn write_vectored(&mut self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match Pin::new(&mut *self.io).poll_write_vectored(self.cx, pieces) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    /// Does a handshake. With `exact`, no octet behind the last record of TLS is ever taken from `io`, so that it can
    /// be used in clear text again.
    pub(crate) async fn handshake(io: S, mut tls: Connection, exact: bool) -> io::Result<TlsStream<S>> {
        tls.set_buffer_limit(Some(BUFFER_BYTES));
        let record = exact.then_some(Record::Header([0; 5], 0));
        let mut stream = TlsStream { io, tls, record, close_sent: false };
        poll_fn(|cx| stream.poll_handshake(cx)).await?;
        Ok(stream)
    }
    /// Whether it resumes an earlier session.
    pub(super) fn is_resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }
    /// Ends TLS and gives the stream below back, with an octet of clear text if one was taken from it. Data that still
    /// comes in TLS is thrown away. Some clients end TLS too, and some go on in clear text at once: the first octet of
    /// a record is a control character, with which no command begins.
    pub(crate) async fn end(mut self) -> io::Result<(S, Option<u8>)> {
        poll_fn(|cx| self.poll_close(cx)).await?;
        let mut rest = [0; 512];
        loop {
            if let Some(Record::Header(_, 0)) = self.record {
                let mut first = [0];
                let mut buf = ReadBuf::new(&mut first);
                poll_fn(|cx| Pin::new(&mut self.io).poll_read(cx, &mut buf)).await?;
                match *buf.filled() {
                    [octet] if RECORD_TYPES.contains(&octet) => {
                        self.record = Some(Record::Header([octet, 0, 0, 0, 0], 1));
                        self.tls.read_tls(&mut &[octet][..])?;
                    }
                    [octet] => return Ok((self.io, Some(octet))),
                    _ => return Ok((self.io, None)),
                }
            }
            let mut buf = ReadBuf::new(&mut rest);
            poll_fn(|cx| Pin::new(&mut self).poll_read(cx, &mut buf)).await?;
            if buf.filled().is_empty() {
                return Ok((self.io, None));
            }
        }
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let sent = self.poll_send(cx)?;
            if !self.tls.is_handshaking() {
                return if sent.is_pending() { Poll::Pending } else { Poll::Ready(Ok(())) };
            }
            match self.poll_receive(cx)? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Poll::Ready(_) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Sends what TLS has pending.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Polled { io: &mut self.io, cx }) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Takes what has come, and lets TLS work on it; 0 at the end of the stream.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let read = match self.record {
            None => self.tls.read_tls(&mut Polled { io: &mut self.io, cx }),
            Some(record) => self.read_record(record, cx),
        };
        let count = match read {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) => return Poll::Ready(Err(error)),
        };
        if let Err(error) = self.tls.process_new_packets() {
            // The alert that says why is worth one attempt.
            let _ = self.poll_send(cx);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        Poll::Ready(Ok(count))
    }

    /// Reads to the end of the header or of the record, and no further.
    fn read_record(&mut self, record: Record, cx: &mut Context<'_>) -> io::Result<usize> {
        let wanted = match record {
            Record::Header(_, have) => 5 - have,
            Record::Body(left) => left,
        };
        let mut place = [0; 2048];
        let wanted = wanted.min(place.len());
        let count = Polled { io: &mut self.io, cx }.read(&mut place[..wanted])?;
        let mut bytes = &place[..count];
        while !bytes.is_empty() {
            self.tls.read_tls(&mut bytes)?;
        }
        if count == 0 {
            return self.tls.read_tls(&mut io::empty());
        }
        self.record = Some(match record {
            Record::Header(mut header, have) => {
                header[have..have + count].copy_from_slice(&place[..count]);
                match have + count {
                    5 => Record::Body(usize::from(u16::from_be_bytes([header[3], header[4]]))),
                    have => Record::Header(header, have),
                }
            }
            Record::Body(left) if left == count => Record::Header([0; 5], 0),
            Record::Body(left) => Record::Body(left - count),
        });
        Ok(count)
    }

    /// Says that nothing more comes, and leaves the stream below open.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !core::mem::replace(&mut self.close_sent, true) {
            self.tls.send_close_notify();
        }
        self.poll_send(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            match this.tls.reader().read(buf.initialize_unfilled()) {
                Ok(count) => {
                    buf.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            let received = this.poll_receive(cx)?;
            // What TLS itself has to say, such as another key, goes out whether or not somebody writes.
            if this.tls.wants_write() && this.poll_send(cx)?.is_pending() && received.is_pending() {
                return Poll::Pending;
            }
            if received.is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        loop {
            let count = this.tls.writer().write(bytes)?;
            let sent = this.poll_send(cx)?;
            if count > 0 || bytes.is_empty() {
                return Poll::Ready(Ok(count));
            }
            if sent.is_pending() {
                return Poll::Pending;
            }
        }
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.poll_send(cx)? {
            Poll::Ready(()) => Pin::new(&mut self.io).poll_flush(cx),
            Poll::Pending => Poll::Pending,
        }
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.poll_close(cx)? {
            Poll::Ready(()) => Pin::new(&mut self.io).poll_shutdown(cx),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Urgent + Unpin> Urgent for TlsStream<S> {
    // Records of TLS have no urgent octets in them; a command is all that there is.
    fn poll_send_urgent(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write(cx, bytes)
    }
    fn urgent_ahead(&self) -> Option<usize> {
        None
    }
}
