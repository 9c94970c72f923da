//! A session of the server over any stream.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use futures_lite::future::or;
use inhost_base::{Duration, Endpoint, Instant};
use inhost_common::{Over, Permit};
use inhost_socket::Host;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::tls::{MaybeTls, TlsServer, describe};
use crate::body::{Body, Spool, SpoolFolder};
use crate::codec::Reply;
use crate::server::{Action, Client, Closing, Decision, Envelope, ServerConfig, Session, Stage, Verdict};
use crate::trace::Trace;

/// Octets that are read at a time.
const READ_BYTES: usize = 16 << 10;
/// How long a client may take to close, once the last reply was sent.
const FAREWELL: Duration = Duration::from_secs(5);
/// Octets that are read meanwhile.
const FAREWELL_BYTES: usize = 1 << 20;
/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(60);

/// An owner's answer, in its own time.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Who owns a server: decides what is accepted, and takes the messages.
pub trait Mailroom {
    /// Whether a session goes on with `stage`. At [`Stage::Recipient`] the new one is the last of the envelope.
    fn stage<'a>(
        &'a self,
        stage: Stage,
        client: &Rc<Client>,
        envelope: Option<&Rc<Envelope>>,
    ) -> Answer<'a, Decision>;
    /// Whether a password is right, or why it cannot be checked.
    fn authenticate<'a>(
        &'a self,
        client: &Rc<Client>,
        user: String,
        password: String,
    ) -> Answer<'a, Result<bool, Reply>>;
    /// Takes a message. Once this gives its name, the message is durable and the client is told so. `is_eight_bit`
    /// says whether it has octets above 127.
    fn message<'a>(
        &'a self,
        client: &Rc<Client>,
        envelope: &Rc<Envelope>,
        body: Body,
        is_eight_bit: bool,
    ) -> Answer<'a, Result<String, Reply>>;
    /// A session has ended; `closing` is `None` where the connection was lost.
    fn ended(&self, client: &Client, trace: &Trace, closing: Option<Closing>) {
        let _ = (client, trace, closing);
    }
}

/// What the sessions of a server share.
#[derive(Clone)]
pub struct Server {
    /// Its configuration.
    pub config: Rc<ServerConfig>,
    /// Its certificate.
    pub tls: Option<TlsServer>,
    /// Where large messages go.
    pub spool: Arc<SpoolFolder>,
}

/// Serves a client that calls from `address`, with TLS from the start where `is_implicit`. It ends with the session, or
/// when `permit` is over.
pub async fn serve<S>(
    stream: S,
    address: Endpoint,
    is_implicit: bool,
    server: &Server,
    mailroom: &dyn Mailroom,
    permit: &Permit,
    host: &Host,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let session = Session::new(server.config.clone(), address, host.now());
    let mut serving = Serving {
        stream: Some(MaybeTls::Clear(stream)),
        session,
        server,
        mailroom,
        permit,
        host,
        spool: None,
        body: Vec::new(),
        read: Vec::new(),
        rate: None,
    };
    let closing = serving.run(is_implicit).await.ok();
    serving.mailroom.ended(serving.session.client(), serving.session.trace(), closing);
}

struct Serving<'a, S> {
    stream: Option<MaybeTls<S>>,
    session: Session,
    server: &'a Server,
    mailroom: &'a dyn Mailroom,
    permit: &'a Permit,
    host: &'a Host,
    spool: Option<Spool>,
    body: Vec<u8>,
    read: Vec<u8>,
    rate: Option<u64>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Serving<'_, S> {
    async fn run(&mut self, is_implicit: bool) -> io::Result<Closing> {
        if is_implicit {
            let tls = self.handshake().await?;
            self.session =
                Session::new(self.server.config.clone(), self.session.client().address, self.now())
                    .in_tls(tls.unwrap_or_default());
        }
        loop {
            while let Some(action) = self.session.action() {
                if let Some(closing) = self.act(action).await? {
                    return Ok(closing);
                }
            }
            self.spool_body().await?;
            if self.session.takes_input() {
                self.write().await?;
                self.receive().await?;
            } else if !self.session.pending().is_empty() {
                self.write().await?;
            }
        }
    }

    fn now(&self) -> Instant {
        self.host.now()
    }

    async fn act(&mut self, action: Action) -> io::Result<Option<Closing>> {
        match action {
            Action::Ask(stage) => {
                let (client, envelope) = (self.session.client(), self.session.envelope());
                let answer = self.mailroom.stage(stage, client, envelope);
                let decision = self.wait(answer).await?;
                if decision.delay > Duration::ZERO {
                    self.write().await?;
                    self.host.sleep(decision.delay).await;
                }
                self.rate = decision.input_bytes_per_second.or(self.rate);
                self.session.decided(decision.verdict, self.now());
            }
            Action::Authenticate { user, password } => self.authenticate(user, password).await?,
            Action::StartTls => {
                self.write().await?;
                let tls = self.handshake().await.ok().flatten();
                self.session.tls_started(tls, self.now());
            }
            Action::Begin => self.spool = Some(Spool::new(&self.server.spool)),
            Action::Discard => self.spool = None,
            Action::Finish => {
                let outcome = self.finish().await?;
                self.session.stored(outcome, self.now());
            }
            Action::Close(closing) => {
                if closing != Closing::Dropped && closing != Closing::Tls {
                    self.farewell().await?;
                }
                return Ok(Some(closing));
            }
        }
        Ok(None)
    }

    /// Waits for an answer; replies to earlier commands do not wait with it.
    async fn wait<T>(&mut self, mut answer: Answer<'_, T>) -> io::Result<T> {
        let first = poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await;
        match first {
            Poll::Ready(value) => Ok(value),
            Poll::Pending => {
                self.write().await?;
                Ok(answer.await)
            }
        }
    }

    async fn authenticate(&mut self, user: String, password: String) -> io::Result<()> {
        self.write().await?;
        let host = self.host;
        let outcome = match poll_fn(|cx| self.permit.poll_attempt(cx, host.now())).await {
            Err(refusal) => Err(Reply::new(454, "4.7.0", refusal.to_string())),
            Ok(attempt) => {
                let answer = self.mailroom.authenticate(self.session.client(), user.clone(), password);
                let outcome = answer.await;
                match outcome {
                    Ok(true) => self.permit.logged_in(&user),
                    Ok(false) => attempt.denied(self.now()),
                    Err(_) => {}
                }
                outcome
            }
        };
        self.session.authenticated(outcome, self.now());
        Ok(())
    }

    async fn finish(&mut self) -> io::Result<Result<String, Reply>> {
        self.spool_body().await?;
        let (Some(spool), Some(envelope)) = (self.spool.take(), self.session.envelope().cloned()) else {
            return Ok(Err(cannot_store()));
        };
        let Ok(body) = spool.finish().await else {
            return Ok(Err(cannot_store()));
        };
        let is_eight_bit = self.session.is_eight_bit();
        let answer = self.mailroom.message(self.session.client(), &envelope, body, is_eight_bit);
        self.wait(answer).await
    }

    /// Puts what came of the message where it belongs. A disk that is full is told at the end of the message.
    async fn spool_body(&mut self) -> io::Result<()> {
        loop {
            self.session.take_body(&mut self.body, self.host.now());
            if self.body.is_empty() {
                return Ok(());
            }
            if let Some(spool) = &mut self.spool
                && let Err(error) = spool.write(&self.body).await
            {
                tracing::error!(target: "mail", "a message cannot be spooled: {error}");
                self.spool = None;
            }
        }
    }

    async fn handshake(&mut self) -> io::Result<Option<String>> {
        let (Some(MaybeTls::Clear(stream)), Some(tls)) = (self.stream.take(), &self.server.tls) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let late = async {
            self.host.sleep(HANDSHAKE).await;
            Err(io::ErrorKind::TimedOut.into())
        };
        let stream = or(tls.accept(stream), late).await?;
        let described = describe(&stream);
        self.stream = Some(stream);
        Ok(described)
    }

    /// Sends replies; a client that does not read is given up.
    async fn write(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::NotConnected.into()) };
        let pending = self.session.pending();
        if pending.is_empty() {
            return Ok(());
        }
        let count = pending.len();
        let late = async {
            self.host.sleep(self.server.config.unread).await;
            Err(io::ErrorKind::TimedOut.into())
        };
        let write = async {
            stream.write_all(pending).await?;
            stream.flush().await
        };
        or(write, late).await?;
        self.session.sent(count, self.host.now());
        Ok(())
    }

    async fn receive(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::NotConnected.into()) };
        let limit = self.rate.map_or(READ_BYTES, |rate| rate.clamp(1, READ_BYTES as u64) as usize);
        self.read.resize(limit, 0);
        let deadline = self.session.deadline();
        let late = async {
            match deadline {
                Some(deadline) => self.host.sleep_until(deadline).await,
                None => std::future::pending().await,
            }
            None
        };
        let over = Cell::new(None);
        let ends = async {
            over.set(Some(poll_fn(|cx| self.permit.poll_over(cx)).await));
            None
        };
        let read = async { Some(stream.read(&mut self.read).await) };
        match or(pin!(read), or(late, ends)).await {
            Some(Ok(0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Some(Ok(count)) => {
                self.session.network(&self.read[..count], self.host.now());
                if let Some(rate) = self.rate {
                    let pause = (count as u64).saturating_mul(1_000_000_000) / rate.max(1);
                    self.host.sleep(Duration::from_nanos(pause)).await;
                }
                return Ok(());
            }
            Some(Err(error)) => return Err(error),
            None => {}
        }
        match over.get() {
            Some(Over::HostEnds) => self.session.end(self.host.now()),
            Some(Over::Dropped) => self.session.end_by_operator(self.host.now()),
            None => self.session.timeout(self.host.now()),
        }
        Ok(())
    }

    /// Sends the last reply and reads on for a moment: a connection that is closed with octets unread is reset, and the
    /// client would not see the reply.
    async fn farewell(&mut self) -> io::Result<()> {
        // A client that has gone has heard all that it wanted.
        if self.write().await.is_err() {
            return Ok(());
        }
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let drain = async {
            stream.shutdown().await?;
            let mut left = FAREWELL_BYTES;
            self.read.resize(READ_BYTES, 0);
            while left > 0 {
                match stream.read(&mut self.read).await? {
                    0 => break,
                    count => left = left.saturating_sub(count),
                }
            }
            Ok(())
        };
        let late = async {
            self.host.sleep(FAREWELL).await;
            Ok::<(), io::Error>(())
        };
        let _ = or(drain, late).await;
        Ok(())
    }
}

fn cannot_store() -> Reply {
    Reply::new(452, "4.3.1", "The message cannot be stored now")
}

impl From<Reply> for Verdict {
    fn from(reply: Reply) -> Verdict {
        Verdict::Refuse(reply)
    }
}
