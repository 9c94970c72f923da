//! One transfer of the server: a file and a data connection.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use inhost_base::{Duration, IpAddr};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::data::{Last, Moving, Receiving, Sending, Shared};
use super::listing::{Lines, first_names};
use super::{Clock, Lease, MaybeTls, Network, Services, TlsServer, TlsStream};
use crate::codec::{Facts, Kind, Parameters, name_octets};
use crate::server::{
    Channel, ListStyle, ServerConfig, Task, TransferError, TransferEvent, TransferRequest, restarts_by_file,
};
use inhost_common::LocalFuture;
use inhost_common::storage::{Storage, StorageError, Store, Storing, VirtualPath};
use inhost_common::within;

/// Names that are listed in order. What a directory has beyond is listed as it is read, so that no listing takes more
/// memory than these.
const SORTED_NAMES: usize = 16 * 1024;
/// How long the end of an upload is held back to see whether the client's control connection ended with it: a system
/// that closes all that a killed client had open does so within microseconds, or milliseconds where it is busy.
const SETTLE: Duration = Duration::from_millis(5);
/// A file shorter than this was sent by one write of any client, and not broken off in the middle.
const UNBROKEN_BYTES: u64 = 4096;

/// How long a data connection waits for the log-in on the control connection whose session it resumes, where that is
/// another one of its client, and how often it looks.
const LOGIN_TIME: Duration = Duration::from_secs(10);
const LOGIN_LOOK: Duration = Duration::from_millis(20);
/// How long the rest of an upload that cannot be stored is taken and thrown away. Many clients see the reply that says
/// why only when they have sent everything: a reset would be all that they can tell their user.
const REFUSAL_TIME: Duration = Duration::from_secs(30);

/// A passive data connection in TLS, which begins when the client comes. Some clients send the command that needs it only
/// behind the handshake, and others wait with the handshake for the command.
pub(super) struct Early<S> {
    beginning: Option<LocalFuture<Result<TlsStream<S>, TransferError>>>,
    begun: Option<Result<TlsStream<S>, TransferError>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + 'static> Early<S> {
    pub(super) fn new<N: Network<Stream = S>>(lease: Lease<N>, server: TlsServer) -> Early<S> {
        let beginning = async move {
            let stream = poll_fn(|cx| lease.poll_accept(cx)).await;
            // The port is free for the next one.
            drop(lease);
            let stream = stream.map_err(|error| TransferError::NoConnection(error.to_string()))?;
            server.accept(stream, false).await.map_err(|error| TransferError::Tls(error.to_string()))
        };
        Early { beginning: Some(Box::pin(beginning)), begun: None }
    }
    /// Goes on as far as the client does.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) {
        if let Some(beginning) = &mut self.beginning
            && let Poll::Ready(begun) = beginning.as_mut().poll(cx)
        {
            (self.beginning, self.begun) = (None, Some(begun));
        }
    }
    async fn stream(mut self) -> Result<TlsStream<S>, TransferError> {
        poll_fn(|cx| {
            self.poll(cx);
            self.begun.take().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// Context of a transfer.
pub(super) struct Transfer<V: Services> {
    pub(super) services: Rc<V>,
    pub(super) config: Rc<ServerConfig>,
    pub(super) storage: Rc<dyn Storage>,
    pub(super) lease: Option<Lease<V::Network>>,
    pub(super) early: Option<Early<<V::Network as Network>::Stream>>,
    /// That of the session.
    pub(super) tls: Option<TlsServer>,
    /// Whether a data connection in TLS has to resume a session of the user's.
    pub(super) must_resume: bool,
    pub(super) user: String,
    pub(super) local: IpAddr,
    pub(super) rate: Option<u64>,
    pub(super) shared: Rc<Shared>,
}

type NetworkTls<V> = TlsStream<<<V as Services>::Network as Network>::Stream>;
type DataStream<V> = MaybeTls<<<V as Services>::Network as Network>::Stream>;

impl<V: Services> Transfer<V> {
    /// Runs to the end; dropped before it, the data connection is reset and a file that was stored stays unfinished.
    pub(super) async fn run(mut self, request: TransferRequest) -> Result<u64, TransferError> {
        let parameters = request.parameters;
        match request.task.clone() {
            Task::Retrieve { path, start } => {
                let source = self.storage.retrieve(&path).await.map_err(TransferError::Storage)?;
                let (size, by_file) = (source.size_bytes(), restarts_by_file(&parameters));
                if by_file && start > size {
                    return Err(TransferError::Storage(StorageError::Position));
                }
                self.opened(Some(size), None);
                let mut stream = self.connect(&request).await?;
                let mut sending = Sending::new(&self.moving(parameters), start, by_file);
                sending.file(&*source, &mut stream).await?;
                self.close(&mut stream).await?;
                Ok(sending.moved_bytes)
            }
            Task::Store { path, how, umask, expected_bytes } => {
                let storing = self.storage.store(&path, how, umask).await.map_err(TransferError::Storage)?;
                self.opened(None, (how == Store::Unique).then(|| storing.name.clone()));
                let mut stream = self.connect(&request).await?;
                let stored = self.store(storing, &mut stream, parameters, expected_bytes).await;
                if let Err(TransferError::Storage(_) | TransferError::Decode(_)) = stored {
                    let services = self.services.clone();
                    let refusing = async move {
                        within(services.clock(), REFUSAL_TIME, drain(&mut stream)).await;
                    };
                    self.shared.refusing.replace(Some(Box::pin(refusing)));
                }
                stored
            }
            Task::List { path, pattern, style } => {
                let mut lines = self.lines(&path, pattern, style).await?;
                self.opened(None, None);
                let mut stream = self.connect(&request).await?;
                let mut sending = Sending::new(&self.moving(parameters), 0, true);
                let mut bytes = 0;
                while let Some(text) = lines.next().await.map_err(TransferError::Storage)? {
                    let text = name_octets(&text);
                    bytes += text.len() as u64;
                    sending.text(&text, &mut stream).await?;
                }
                sending.end(&mut stream).await?;
                self.close(&mut stream).await?;
                Ok(bytes)
            }
        }
    }

    fn moving(&self, parameters: Parameters) -> Moving<'_, V::Clock> {
        Moving {
            clock: self.services.clock(),
            stall_time: self.config.stall_time,
            bytes_per_second: self.rate,
            shared: &self.shared,
            parameters,
        }
    }

    fn opened(&self, size_bytes: Option<u64>, name: Option<String>) {
        self.shared.events.borrow_mut().push_back(TransferEvent::Opened { size_bytes, name });
    }

    async fn lines(
        &self,
        path: &VirtualPath,
        pattern: Option<String>,
        style: ListStyle,
    ) -> Result<Lines, TransferError> {
        let failed = TransferError::Storage;
        let mut own = None;
        if matches!(style, ListStyle::Facts(_)) {
            let facts = self.storage.facts(path).await.map_err(failed)?;
            if facts.kind != Kind::Directory {
                return Err(TransferError::NoDirectory);
            }
            // RFC 3659 §7.2: the directory itself, so that nobody takes an empty one for a failure.
            own = Some(Facts { kind: Kind::This, ..facts });
        }
        let first = first_names(&*self.storage, path, SORTED_NAMES).await.map_err(failed)?;
        Ok(Lines::new(first, own, pattern, style, self.services.unix_time()))
    }

    /// The data connection, in TLS where that was agreed on.
    async fn connect(&mut self, request: &TransferRequest) -> Result<DataStream<V>, TransferError> {
        let clock = self.services.clock();
        let none = |why: String| TransferError::NoConnection(why);
        if let Some(early) = self.early.take().filter(|_| request.channel == Channel::Passive) {
            if !request.protected {
                return Err(none("it began in TLS, before PROT C".into()));
            }
            let stream = within(clock, self.config.connect_time, early.stream()).await;
            let stream = stream.unwrap_or_else(|| Err(none("nobody came in time".into())));
            return self.protected(stream?).await;
        }
        let opening = async {
            match (request.channel, &mut self.lease) {
                (Channel::Active(to), _) => self.services.network().connect(self.local, to).await,
                (Channel::Passive, Some(lease)) => poll_fn(|cx| lease.poll_accept(cx)).await,
                (Channel::Passive, None) => Err(io::Error::other("the port was given back")),
            }
        };
        let stream = match within(clock, self.config.connect_time, opening).await {
            Some(Ok(stream)) => stream,
            Some(Err(error)) => return Err(none(error.to_string())),
            None => return Err(none("nobody came in time".into())),
        };
        // The port is free for the next one.
        self.lease = None;
        if !request.protected {
            return Ok(MaybeTls::Clear(stream));
        }
        let Some(server) = &self.tls else { return Err(never_in_tls()) };
        let handshake = server.accept(stream, false);
        match within(clock, self.config.handshake_time, handshake).await {
            Some(Ok(stream)) => self.protected(stream).await,
            Some(Err(error)) => Err(TransferError::Tls(error.to_string())),
            None => Err(TransferError::Tls("the handshake took too long".into())),
        }
    }

    /// A connection whose TLS is what it has to be.
    async fn protected(&self, stream: NetworkTls<V>) -> Result<DataStream<V>, TransferError> {
        let clock = self.services.clock();
        let is_taken =
            !self.must_resume || within(clock, LOGIN_TIME, self.is_the_users(&stream)).await == Some(true);
        match is_taken {
            true => Ok(MaybeTls::Tls(Box::new(stream))),
            false => Err(TransferError::NotResumed),
        }
    }

    /// Whether a connection resumes a session of the user's.
    async fn is_the_users(&self, stream: &NetworkTls<V>) -> bool {
        let Some(server) = &self.tls else { return false };
        let clock = self.services.clock();
        loop {
            match server.is_resumed_by(stream, &self.user) {
                Some(known) => return known,
                None => clock.sleep_until(clock.now() + LOGIN_LOOK).await,
            }
        }
    }

    async fn store(
        &self,
        storing: Storing,
        stream: &mut DataStream<V>,
        parameters: Parameters,
        expected_bytes: Option<u64>,
    ) -> Result<u64, TransferError> {
        let start = storing.position;
        let mut receiving = Receiving::new(&self.moving(parameters), &storing).holding_last();
        let ended_by_mode = receiving.file(stream).await?;
        let (position, mut last) = (receiving.position, receiving.take_last());
        drop(receiving);
        let moved = position - start;
        // A client that was killed ends its connections like one that is done. What it announced tells, and in block
        // mode or TLS the end itself; else the control connection, whose end comes at the same time.
        let is_broken = expected_bytes.is_some_and(|expected| moved != expected && position != expected);
        let is_size_known = expected_bytes.is_some()
            || ended_by_mode
            || moved < UNBROKEN_BYTES
            || matches!(stream, MaybeTls::Tls(_));
        // A resumable file contains all received data.
        if (is_broken || !is_size_known)
            && let Some(Last { position, octets }) = last.take()
        {
            storing.sink.write_at(position, octets).await.1.map_err(TransferError::Storage)?;
        }
        if is_broken {
            return Err(TransferError::Incomplete);
        }
        if !is_size_known {
            let clock = self.services.clock();
            clock.sleep_until(clock.now() + SETTLE).await;
        }
        let committing = match last {
            Some(Last { position, octets }) => storing.sink.commit_behind(position, octets),
            None => storing.sink.commit(position),
        };
        committing.await.map_err(TransferError::Storage)?;
        if let MaybeTls::Tls(_) = stream {
            let _ = within(self.services.clock(), self.config.closing_time, shutdown(stream)).await;
        }
        Ok(moved)
    }

    async fn close(&self, stream: &mut DataStream<V>) -> Result<(), TransferError> {
        match within(self.services.clock(), self.config.stall_time, shutdown(stream)).await {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(TransferError::Lost(error.to_string())),
            None => Err(TransferError::Stalled),
        }
    }
}

fn never_in_tls() -> TransferError {
    TransferError::Tls("the control connection was never in TLS".into())
}

pub(super) async fn shutdown<S: AsyncWrite + Unpin>(stream: &mut S) -> io::Result<()> {
    stream.flush().await?;
    stream.shutdown().await
}

/// Reads to the end of a stream and keeps nothing.
pub(super) async fn drain<S: AsyncRead + Unpin>(stream: &mut S) {
    let mut place = vec![0; 32 * 1024];
    while stream.read(&mut place).await.is_ok_and(|count| count > 0) {}
}
