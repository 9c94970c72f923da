//! TLS over any stream: rustls decides, this carries.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

pub use inhost_common::tls::TlsError;
use rustls::server::{ProducesTickets, ServerSessionMemoryCache};
use rustls::{Connection, HandshakeKind, ProtocolVersion, ServerConnection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use inhost_common::tls::server_config;

use super::Urgent;

/// Tickets that each handshake gives. Clients that use one once, as RFC 8446 §C.4 has it, need one for each data
/// connection, and those that send files do not always read the new one; so there are some to spare. Ours can be used
/// again, for they are sealed and not remembered.
const TICKETS: usize = 4;
/// Sessions of TLS 1.2 that are kept for clients without tickets: one is resumed again and again.
const KEPT_SESSIONS: usize = 4;
/// Control connections whose users are remembered for others of the same user, the last ones to log in.
const KEPT_USERS: usize = 1024;
/// Content types of TLS records (RFC 8446 §5.1).
const RECORD_TYPES: std::ops::RangeInclusive<u8> = 20..=23;
/// Clear text that waits to be encrypted, and ciphertext that waits to be sent.
const BUFFER_BYTES: usize = 256 * 1024;

/// A server's certificate with its key, ready for connections.
#[derive(Clone)]
pub struct TlsServer {
    config: Arc<rustls::ServerConfig>,
    users: Arc<Users>,
    /// The control connection that it serves, with its data connections.
    number: u64,
}

/// Seals the tickets of a control connection and its data connections with the connection's number, and keeps the number
/// in the ticket that came.
#[derive(Debug)]
struct Tickets {
    sealer: Arc<dyn ProducesTickets>,
    number: u64,
    came: Mutex<Option<u64>>,
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        self.sealer.enabled()
    }
    fn lifetime(&self) -> u32 {
        self.sealer.lifetime()
    }
    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.sealer.encrypt(&[&self.number.to_be_bytes(), plain].concat())
    }
    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let sealed = self.sealer.decrypt(cipher)?;
        let (number, plain) = sealed.split_first_chunk()?;
        *locked(&self.came) = Some(u64::from_be_bytes(*number));
        Some(plain.to_vec())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who logged in on which control connection.
#[derive(Default)]
struct Users {
    next: AtomicU64,
    known: Mutex<VecDeque<(u64, String)>>,
}

impl TlsServer {
    /// From the PEM texts of a certificate chain and its key.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<TlsServer, TlsError> {
        let mut config = server_config(certificates, key)?;
        config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(TlsError::Config)?;
        config.send_tls13_tickets = TICKETS;
        Ok(TlsServer { config: Arc::new(config), users: Arc::default(), number: 0 })
    }

    /// The same for one control connection and its data connections.
    pub(super) fn of_session(&self) -> TlsServer {
        let number = self.users.next.fetch_add(1, Ordering::Relaxed);
        let mut config = (*self.config).clone();
        config.session_storage = ServerSessionMemoryCache::new(KEPT_SESSIONS);
        TlsServer { config: Arc::new(config), number, ..self.clone() }
    }
    /// Who logged in on the control connection.
    pub(super) fn logged_in(&self, user: &str) {
        let mut known = locked(&self.users.known);
        known.retain(|(number, _)| *number != self.number);
        if known.len() == KEPT_USERS {
            known.pop_front();
        }
        known.push_back((self.number, user.to_owned()));
    }
    /// Whether a data connection resumes a session of this control connection, or of another one of the same user; `None`
    /// while nobody has logged in on that one. Clients with several connections, as rclone, keep the tickets of all in one
    /// place and use any.
    pub(super) fn is_resumed_by<S>(&self, stream: &TlsStream<S>, user: &str) -> Option<bool> {
        let Some(other) = stream.resumes() else { return Some(false) };
        if other == self.number {
            return Some(true);
        }
        let known = locked(&self.users.known);
        known.iter().find(|(number, _)| *number == other).map(|(_, name)| name == user)
    }
    /// Does the handshake on `io`. A control connection is `exact`, since clear text may follow its TLS. On a data
    /// connection tickets wait for the first octet of ours, or for our close behind the client's: a client that only
    /// writes may close with tickets unread, and then its system resets the connection and throws away what it had still
    /// to send.
    pub(super) async fn accept<S>(&self, io: S, exact: bool) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let sealer = self.config.ticketer.clone();
        let tickets = Arc::new(Tickets { sealer, number: self.number, came: Mutex::default() });
        let mut config = (*self.config).clone();
        config.ticketer = tickets.clone();
        let connection = ServerConnection::new(Arc::new(config)).map_err(io::Error::other)?;
        let stream = TlsStream::handshake(io, connection.into(), exact).await?;
        Ok(TlsStream { tickets: Some(tickets), ..stream })
    }
}

/// A stream in TLS.
pub struct TlsStream<S> {
    io: S,
    tls: Connection,
    /// Octets to the end of the record that is being read, where none behind it may be taken.
    record: Option<Record>,
    close_sent: bool,
    /// At the server's end.
    tickets: Option<Arc<Tickets>>,
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

impl<S> TlsStream<S> {
    /// The control connection whose session it resumes, if any; at the server's end.
    fn resumes(&self) -> Option<u64> {
        let tickets = self.tickets.as_ref()?;
        let is_resumed = self.tls.handshake_kind() == Some(HandshakeKind::Resumed);
        // Without a ticket it is a session that TLS 1.2 keeps for this control connection alone.
        let number = locked(&tickets.came).unwrap_or(tickets.number);
        is_resumed.then_some(number)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    /// Does a handshake. With `exact`, no octet behind the last record of TLS is ever taken from `io`, so that it can
    /// be used in clear text again.
    pub(crate) async fn handshake(io: S, mut tls: Connection, exact: bool) -> io::Result<TlsStream<S>> {
        tls.set_buffer_limit(Some(BUFFER_BYTES));
        let record = exact.then_some(Record::Header([0; 5], 0));
        let mut stream = TlsStream { io, tls, record, close_sent: false, tickets: None };
        poll_fn(|cx| stream.poll_handshake(cx)).await?;
        Ok(stream)
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

    /// Whether what TLS has to say waits for us to write: the tickets of a data connection.
    fn is_holding(&self) -> bool {
        let is_server = matches!(self.tls, Connection::Server(_));
        let is_done = !self.tls.is_handshaking();
        // In TLS 1.2 the handshake itself ends with what the server says.
        let has_tickets = self.tls.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        is_server && is_done && has_tickets && self.record.is_none()
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.is_holding() {
                return Poll::Ready(Ok(()));
            }
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
            if this.tls.wants_write()
                && !this.is_holding()
                && this.poll_send(cx)?.is_pending()
                && received.is_pending()
            {
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
