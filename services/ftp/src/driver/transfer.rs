//! One transfer of the server: a file and a data connection.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;

use inhost_base::{Duration, IpAddr};
use tokio::io::AsyncWrite;

use super::listing;
use super::moving::{Moving, Receiving, Sending, Shared};
use super::stall::within;
use super::{Clock, Lease, MaybeTls, Network, Services, TlsServer, files};
use crate::protocol::{Facts, Kind, Parameters};
use crate::server::{
    Channel, ListStyle, ServerConfig, Task, TransferError, TransferEvent, TransferRequest, restarts_by_file,
};
use crate::storage::{Storage, StorageError, Store, Storing, VirtualPath};

/// Names that one listing has at most.
const LIST_NAMES: usize = 1 << 20;
/// How long the end of an upload is held back to see whether the client's control connection ended with it.
const SETTLE: Duration = Duration::from_millis(3);

/// What a transfer needs.
pub(super) struct Transfer<V: Services> {
    pub(super) services: Rc<V>,
    pub(super) config: Rc<ServerConfig>,
    pub(super) storage: Rc<dyn Storage>,
    pub(super) lease: Option<Lease<V::Network>>,
    /// That of the session.
    pub(super) tls: Option<TlsServer>,
    pub(super) local: IpAddr,
    pub(super) rate: Option<u64>,
    pub(super) shared: Rc<Shared>,
}

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
                self.store(storing, &mut stream, parameters, expected_bytes).await
            }
            Task::List { path, pattern, style } => {
                let text = self.listing(&path, pattern.as_deref(), style).await?;
                self.opened(None, None);
                let mut stream = self.connect(&request).await?;
                let mut sending = Sending::new(&self.moving(parameters), 0, true);
                sending.text(text.as_bytes(), &mut stream).await?;
                self.close(&mut stream).await?;
                Ok(text.len() as u64)
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

    async fn listing(
        &self,
        path: &VirtualPath,
        pattern: Option<&str>,
        style: ListStyle,
    ) -> Result<String, TransferError> {
        let now = self.services.unix_time();
        let is_facts = matches!(style, ListStyle::Facts(_));
        if is_facts && self.storage.facts(path).await.map_err(TransferError::Storage)?.kind != Kind::Directory
        {
            return Err(TransferError::Storage(StorageError::NotDirectory));
        }
        let names = files::names(&*self.storage, path, LIST_NAMES).await.map_err(TransferError::Storage)?;
        let mut text = String::new();
        if is_facts {
            // RFC 3659 §7.2: the directory itself, so that nobody takes an empty one for a failure.
            let mut own = self.storage.facts(path).await.map_err(TransferError::Storage)?;
            own.kind = Kind::This;
            text += &listing::line(".", &own, style, now);
        }
        let shows_dots = matches!(style, ListStyle::Facts(_) | ListStyle::Long { all: true });
        let wanted = |(name, _): &&(String, Facts)| match pattern {
            Some(pattern) => {
                listing::matches(pattern, name) && (!name.starts_with('.') || pattern.starts_with('.'))
            }
            None => shows_dots || !name.starts_with('.'),
        };
        names.iter().filter(wanted).for_each(|(name, facts)| text += &listing::line(name, facts, style, now));
        Ok(text)
    }

    /// The data connection, in TLS where that was agreed on.
    async fn connect(&mut self, request: &TransferRequest) -> Result<DataStream<V>, TransferError> {
        let clock = self.services.clock();
        let none = |why: String| TransferError::NoConnection(why);
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
        let Some(server) = &self.tls else {
            return Err(TransferError::Tls("the control connection was never in TLS".into()));
        };
        let handshake = server.accept(stream, false);
        let stream = match within(clock, self.config.handshake_time, handshake).await {
            Some(Ok(stream)) => stream,
            Some(Err(error)) => return Err(TransferError::Tls(error.to_string())),
            None => return Err(TransferError::Tls("the handshake took too long".into())),
        };
        if self.config.resumption_required && !stream.is_resumed() {
            return Err(TransferError::Tls(
                "it has to resume the TLS session of the control connection".into(),
            ));
        }
        Ok(MaybeTls::Tls(Box::new(stream)))
    }

    async fn store(
        &self,
        storing: Storing,
        stream: &mut DataStream<V>,
        parameters: Parameters,
        expected_bytes: Option<u64>,
    ) -> Result<u64, TransferError> {
        let start = storing.position;
        let mut receiving = Receiving::new(&self.moving(parameters), &storing);
        let ended_by_mode = receiving.file(stream).await?;
        let position = receiving.position;
        let moved = position - start;
        // A client that was killed ends its connections like one that is done. What it announced tells, and in block
        // mode or TLS the end itself; else the control connection, whose end comes at the same time.
        if expected_bytes.is_some_and(|expected| moved != expected && position != expected) {
            return Err(TransferError::Incomplete);
        }
        let told = expected_bytes.is_some() || ended_by_mode || matches!(stream, MaybeTls::Tls(_));
        if !told {
            let clock = self.services.clock();
            clock.sleep_until(clock.now() + SETTLE).await;
        }
        storing.sink.commit(position).await.map_err(TransferError::Storage)?;
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

pub(super) async fn shutdown<S: AsyncWrite + Unpin>(stream: &mut S) -> io::Result<()> {
    poll_fn(|cx| Pin::new(&mut *stream).poll_flush(cx)).await?;
    poll_fn(|cx| Pin::new(&mut *stream).poll_shutdown(cx)).await
}
