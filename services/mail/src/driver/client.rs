//! A connection of the client over any stream.

use std::fmt;
use std::io;
use std::pin::pin;

use futures_lite::future::or;
use inhost_base::Duration;
use inhost_socket::Host;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::tls::{MaybeTls, TlsClient, describe};
use crate::body::Body;
use crate::client::{Action, ClientConfig, Dialogue, Failure, Outcome, Step, TlsWish, Transaction};
use crate::codec::DataEncoder;
use crate::trace::Trace;

/// Octets that are read at a time.
const READ_BYTES: usize = 4 << 10;
/// How long a piece of a message may wait to be taken (RFC 5321 §4.5.3.2.5).
const PIECE_WITHIN: Duration = Duration::from_secs(180);
/// How long QUIT may wait for its answer.
const QUIT_WITHIN: Duration = Duration::from_secs(5);

/// Why a connection is of no more use.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The dialogue failed.
    Dialogue(Failure),
    /// The handshake failed; where the certificate was to be right, it may be wrong.
    Tls(io::Error),
    /// The connection was lost at this step.
    Io(Step, io::Error),
    /// The message cannot be read.
    Message(io::Error),
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionError::Dialogue(failure) => failure.fmt(f),
            ConnectionError::Tls(error) => write!(f, "TLS failed: {error}"),
            ConnectionError::Io(step, error) => write!(f, "the connection was lost at {step}: {error}"),
            ConnectionError::Message(error) => write!(f, "the message cannot be read: {error}"),
        }
    }
}
impl std::error::Error for ConnectionError {}

/// A connection to a server, ready for messages.
pub struct Connection<S> {
    stream: Option<MaybeTls<S>>,
    dialogue: Dialogue,
    host: Host,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Begins a dialogue on `stream` with the server `name`. With `is_implicit` TLS comes first. On an error the trace
    /// tells what was said.
    pub async fn open(
        stream: S,
        name: &str,
        is_implicit: bool,
        config: ClientConfig,
        tls: &TlsClient,
        host: &Host,
    ) -> Result<Connection<S>, (ConnectionError, Trace)> {
        let is_verified = config.tls == TlsWish::Required;
        let dialogue = Dialogue::new(config, is_implicit, host.now());
        let stream = Some(MaybeTls::Clear(stream));
        let mut connection = Connection { stream, dialogue, host: host.clone() };
        match connection.start(name, is_implicit, is_verified, tls).await {
            Ok(()) => Ok(connection),
            Err(error) => Err((error, connection.dialogue.trace().clone())),
        }
    }
    /// What was said lately.
    pub fn trace(&self) -> &Trace {
        self.dialogue.trace()
    }
    /// Whether the connection is in TLS: version and cipher.
    pub fn tls(&self) -> Option<String> {
        self.stream.as_ref().and_then(describe)
    }
    /// Whether the server passes wishes for reports on (RFC 3461).
    pub fn passes_notify(&self) -> bool {
        self.dialogue.extensions().dsn
    }
    /// Sends a message: what came of each recipient, in their order.
    pub async fn send(
        &mut self,
        transaction: &Transaction,
        body: &Body,
    ) -> Result<Vec<Outcome>, ConnectionError> {
        self.dialogue.begin(transaction, self.host.now());
        match self.take_to_end(body).await {
            Ok(outcomes) => Ok(outcomes),
            Err(error) => {
                let outcomes = self.dialogue.outcomes_so_far().ok_or(error)?;
                // Nothing more can be sent.
                self.stream = None;
                Ok(outcomes)
            }
        }
    }
    /// Does what the dialogue asks for until it is ready for the next message.
    async fn take_to_end(&mut self, body: &Body) -> Result<Vec<Outcome>, ConnectionError> {
        let mut outcomes = None;
        loop {
            while let Some(action) = self.dialogue.action() {
                match action {
                    Action::SendBody => self.send_body(body).await?,
                    Action::Done(done) => outcomes = Some(done),
                    Action::Ready => return Ok(outcomes.unwrap_or_default()),
                    Action::Close(failure) => return Err(closed(failure)),
                    Action::StartTls => {}
                }
            }
            self.exchange().await?;
        }
    }
    /// Says good-bye.
    pub async fn quit(mut self) {
        self.dialogue.quit(self.host.now());
        let host = self.host.clone();
        let farewell = async {
            while !matches!(self.dialogue.action(), Some(Action::Close(_))) {
                if self.exchange().await.is_err() {
                    break;
                }
            }
            if let Some(stream) = &mut self.stream {
                let _ = stream.shutdown().await;
            }
        };
        or(farewell, host.sleep(QUIT_WITHIN)).await;
    }

    async fn start(
        &mut self,
        name: &str,
        is_implicit: bool,
        is_verified: bool,
        tls: &TlsClient,
    ) -> Result<(), ConnectionError> {
        if is_implicit {
            self.handshake(name, is_verified, tls).await?;
        }
        loop {
            while let Some(action) = self.dialogue.action() {
                match action {
                    Action::StartTls => {
                        let what = self.handshake(name, is_verified, tls).await?;
                        self.dialogue.tls_started(&what, self.host.now());
                    }
                    Action::Ready => return Ok(()),
                    Action::Close(failure) => return Err(closed(failure)),
                    Action::Done(_) | Action::SendBody => {}
                }
            }
            self.exchange().await?;
        }
    }

    async fn handshake(
        &mut self,
        name: &str,
        verified: bool,
        tls: &TlsClient,
    ) -> Result<String, ConnectionError> {
        let Some(MaybeTls::Clear(stream)) = self.stream.take() else {
            return Err(ConnectionError::Tls(io::ErrorKind::NotConnected.into()));
        };
        let late = async {
            self.host.sleep(PIECE_WITHIN).await;
            Err(io::ErrorKind::TimedOut.into())
        };
        let stream = or(tls.connect(stream, name, verified), late).await.map_err(ConnectionError::Tls)?;
        let what = describe(&stream).unwrap_or_default();
        self.stream = Some(stream);
        Ok(what)
    }

    /// Sends what is pending and takes what comes.
    async fn exchange(&mut self) -> Result<(), ConnectionError> {
        let host = self.host.clone();
        let step = self.dialogue.step();
        let Some(stream) = &mut self.stream else {
            return Err(ConnectionError::Dialogue(Failure::Closed(step)));
        };
        if !self.dialogue.pending().is_empty() {
            let pending = self.dialogue.pending();
            write(&host, stream, pending).await.map_err(|error| ConnectionError::Io(step, error))?;
            let count = pending.len();
            self.dialogue.sent(count, host.now());
        }
        let deadline = self.dialogue.deadline();
        let late = async {
            match deadline {
                Some(deadline) => host.sleep_until(deadline).await,
                None => std::future::pending().await,
            }
            None
        };
        let mut octets = [0; READ_BYTES];
        let read = async { Some(stream.read(&mut octets).await) };
        let count = match or(pin!(read), late).await {
            Some(Ok(count)) => count,
            Some(Err(error)) => return Err(ConnectionError::Io(step, error)),
            None => {
                self.dialogue.timeout(host.now());
                return Ok(());
            }
        };
        match count {
            0 => self.dialogue.closed(host.now()),
            count => self.dialogue.network(&octets[..count], host.now()),
        }
        Ok(())
    }

    async fn send_body(&mut self, body: &Body) -> Result<(), ConnectionError> {
        let host = self.host.clone();
        let lost = |error| ConnectionError::Io(Step::End, error);
        let (mut pieces, mut encoder, mut octets) = (body.pieces(), DataEncoder::default(), Vec::new());
        let Some(stream) = &mut self.stream else { return Err(lost(io::ErrorKind::NotConnected.into())) };
        while let Some(piece) = pieces.next().await.map_err(ConnectionError::Message)? {
            // A small head goes with what follows it.
            encoder.encode(&piece, &mut octets);
            if octets.len() >= READ_BYTES {
                write(&host, stream, &octets).await.map_err(lost)?;
                octets.clear();
            }
        }
        encoder.end(&mut octets);
        write(&host, stream, &octets).await.map_err(lost)?;
        self.dialogue.body_sent(body.size_bytes(), host.now());
        Ok(())
    }
}

fn closed(failure: Option<Failure>) -> ConnectionError {
    ConnectionError::Dialogue(failure.unwrap_or(Failure::Closed(Step::Other)))
}

/// Writes all of `octets`. The time limit counts from one piece that was taken to the next.
async fn write<S: AsyncWrite + Unpin>(host: &Host, stream: &mut S, mut octets: &[u8]) -> io::Result<()> {
    while !octets.is_empty() {
        let late = async {
            host.sleep(PIECE_WITHIN).await;
            Err(io::ErrorKind::TimedOut.into())
        };
        let count = or(stream.write(octets), late).await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        octets = &octets[count..];
    }
    stream.flush().await
}
