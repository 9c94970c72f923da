//! One transfer: a file, a data connection, and two buffers between them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use inhost_base::{Duration, Instant, IpAddr};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::listing;
use super::stall::{Stall, within};
use super::tls::SessionTag;
use super::{Clock, Lease, MaybeTls, Network, Services, TlsServer, files};
use crate::codec::{Decoded, Decoder, Encoder};
use crate::protocol::{Facts, Kind, Parameters};
use crate::server::{
    Channel, ListStyle, ServerConfig, Task, TransferError, TransferEvent, TransferRequest, restarts_by_file,
};
use crate::storage::{LocalFuture, Outcome, Source, Storage, StorageError, Store, Storing, VirtualPath};

/// Octets of one buffer; a transfer has two, whatever its file.
const BUFFER_BYTES: usize = 128 * 1024;
/// Names that one listing has at most.
const LIST_NAMES: usize = 1 << 20;
/// How long the end of an upload is held back to see whether the client's control connection ended with it.
const SETTLE: Duration = Duration::from_millis(3);

/// What the session sees of its transfer while it runs.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) events: RefCell<VecDeque<TransferEvent>>,
    pub(super) moved_bytes: Cell<u64>,
}

/// What a transfer needs.
pub(super) struct Transfer<V: Services> {
    pub(super) services: Rc<V>,
    pub(super) config: Rc<ServerConfig>,
    pub(super) storage: Rc<dyn Storage>,
    pub(super) lease: Option<Lease<V::Network>>,
    pub(super) tls: Option<(TlsServer, SessionTag)>,
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
                let mut sending = Sending::new(&self, parameters, start, by_file);
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
                let mut sending = Sending::new(&self, parameters, 0, true);
                sending.text(text.as_bytes(), &mut stream).await?;
                self.close(&mut stream).await?;
                Ok(text.len() as u64)
            }
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
        let Some((server, tag)) = &self.tls else {
            return Err(TransferError::Tls("the control connection was never in TLS".into()));
        };
        let handshake = server.accept(stream, tag, false);
        let stream = match within(clock, self.config.handshake_time, handshake).await {
            Some(Ok(stream)) => stream,
            Some(Err(error)) => return Err(TransferError::Tls(error.to_string())),
            None => return Err(TransferError::Tls("the handshake took too long".into())),
        };
        if self.config.resumption_required && stream.resumed_tag() != Some(&tag[..]) {
            return Err(TransferError::Tls(
                "it has to resume the TLS session of the control connection".into(),
            ));
        }
        Ok(MaybeTls::Tls(Box::new(stream)))
    }

    async fn store(
        &mut self,
        storing: Storing,
        stream: &mut DataStream<V>,
        parameters: Parameters,
        expected_bytes: Option<u64>,
    ) -> Result<u64, TransferError> {
        let start = storing.position;
        let mut receiving = Receiving::new(self, &storing, parameters);
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

async fn shutdown<S: AsyncWrite + Unpin>(stream: &mut S) -> io::Result<()> {
    poll_fn(|cx| Pin::new(&mut *stream).poll_flush(cx)).await?;
    poll_fn(|cx| Pin::new(&mut *stream).poll_shutdown(cx)).await
}

/// Waits so that no more than the user's rate is moved.
struct Pace<'a, C> {
    clock: &'a C,
    bytes_per_second: Option<u64>,
    began: Instant,
    moved_bytes: u64,
}

impl<C: Clock> Pace<'_, C> {
    async fn moved(&mut self, bytes: usize) {
        let Some(rate) = self.bytes_per_second else { return };
        self.moved_bytes += bytes as u64;
        let due_ns = u128::from(self.moved_bytes) * 1_000_000_000 / u128::from(rate.max(1));
        let due = self.began + Duration::from_nanos(u64::try_from(due_ns).unwrap_or(u64::MAX));
        if due > self.clock.now() {
            self.clock.sleep_until(due).await;
        }
    }
    /// Octets of one buffer: at a low rate fewer, so that it flows.
    fn buffer_bytes(&self) -> usize {
        let rate = self.bytes_per_second.unwrap_or(u64::MAX) / 8;
        usize::try_from(rate).unwrap_or(usize::MAX).clamp(1024, BUFFER_BYTES)
    }
}

struct Sending<'a, C> {
    parameters: Parameters,
    encoder: Encoder,
    /// Octets on the wire that are left out: a restart in text counts those (RFC 3659 §5.2).
    skip: u64,
    position: u64,
    moved_bytes: u64,
    stall: Stall<'a, C>,
    pace: Pace<'a, C>,
    shared: &'a Shared,
}

impl<'a, C: Clock> Sending<'a, C> {
    fn new<V: Services<Clock = C>>(
        transfer: &'a Transfer<V>,
        parameters: Parameters,
        start: u64,
        by_file: bool,
    ) -> Sending<'a, C> {
        let (position, skip) = if by_file { (start, 0) } else { (0, start) };
        let clock = transfer.services.clock();
        let pace = Pace { clock, bytes_per_second: transfer.rate, began: clock.now(), moved_bytes: 0 };
        Sending {
            parameters,
            encoder: Encoder::new(parameters, position),
            skip,
            position,
            moved_bytes: 0,
            stall: Stall::new(clock, transfer.config.stall_time),
            pace,
            shared: &transfer.shared,
        }
    }

    /// Sends a file. While one buffer is sent, the other is read.
    async fn file(
        &mut self,
        source: &dyn Source,
        stream: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), TransferError> {
        let bytes = self.pace.buffer_bytes();
        let mut encoded = Vec::new();
        let mut spare = vec![0; bytes];
        let mut reading = source.read_at(self.position, vec![0; bytes]);
        loop {
            let (buffer, count) = reading.await;
            let count = count.map_err(TransferError::Storage)?;
            if count == 0 {
                break;
            }
            self.position += count as u64;
            reading = source.read_at(self.position, spare);
            self.send(&buffer[..count], &mut encoded, stream).await?;
            self.moved_bytes += count as u64;
            self.shared.moved_bytes.set(self.moved_bytes);
            self.pace.moved(count).await;
            spare = buffer;
        }
        self.finish(encoded, stream).await
    }

    /// Sends what is in memory.
    async fn text(
        &mut self,
        text: &[u8],
        stream: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), TransferError> {
        let mut encoded = Vec::new();
        for piece in text.chunks(BUFFER_BYTES) {
            self.send(piece, &mut encoded, stream).await?;
        }
        self.finish(encoded, stream).await
    }

    async fn send(
        &mut self,
        bytes: &[u8],
        encoded: &mut Vec<u8>,
        stream: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), TransferError> {
        if self.parameters.is_plain() {
            return self.write_all(bytes, stream).await;
        }
        encoded.clear();
        self.encoder.encode(bytes, encoded);
        self.write_encoded(encoded, stream).await
    }

    async fn finish(
        &mut self,
        mut encoded: Vec<u8>,
        stream: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), TransferError> {
        encoded.clear();
        self.encoder.finish(&mut encoded);
        self.write_encoded(&encoded, stream).await
    }

    async fn write_encoded(
        &mut self,
        encoded: &[u8],
        stream: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), TransferError> {
        let left_out = encoded.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
        self.skip -= left_out as u64;
        self.write_all(&encoded[left_out..], stream).await
    }

    async fn write_all(
        &mut self,
        mut bytes: &[u8],
        stream: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), TransferError> {
        self.stall.moved();
        while !bytes.is_empty() {
            let written = poll_fn(|cx| match Pin::new(&mut *stream).poll_write(cx, bytes) {
                Poll::Ready(Ok(0)) => Poll::Ready(Err(TransferError::Lost("it takes nothing more".into()))),
                Poll::Ready(Ok(count)) => Poll::Ready(Ok(count)),
                Poll::Ready(Err(error)) => Poll::Ready(Err(TransferError::Lost(error.to_string()))),
                Poll::Pending if self.stall.poll(cx) => Poll::Ready(Err(TransferError::Stalled)),
                Poll::Pending => Poll::Pending,
            });
            bytes = &bytes[written.await?..];
            self.stall.moved();
        }
        Ok(())
    }
}

type Writing = LocalFuture<(Vec<u8>, Outcome<()>)>;

struct Receiving<'a, C> {
    storing: &'a Storing,
    parameters: Parameters,
    decoder: Decoder,
    position: u64,
    start: u64,
    writing: Option<Writing>,
    spare: Vec<u8>,
    failure: Option<StorageError>,
    stall: Stall<'a, C>,
    pace: Pace<'a, C>,
    shared: &'a Shared,
}

/// What one filling of a buffer came to.
struct Filled {
    count: usize,
    ended: bool,
}

impl<'a, C: Clock> Receiving<'a, C> {
    fn new<V: Services<Clock = C>>(
        transfer: &'a Transfer<V>,
        storing: &'a Storing,
        parameters: Parameters,
    ) -> Receiving<'a, C> {
        let clock = transfer.services.clock();
        Receiving {
            storing,
            parameters,
            decoder: Decoder::new(parameters),
            position: storing.position,
            start: storing.position,
            writing: None,
            spare: Vec::new(),
            failure: None,
            stall: Stall::new(clock, transfer.config.stall_time),
            pace: Pace { clock, bytes_per_second: transfer.rate, began: clock.now(), moved_bytes: 0 },
            shared: &transfer.shared,
        }
    }

    /// Stores all that comes; whether the mode said that the file has ended, and not the connection. While one buffer
    /// is written, the other is filled.
    async fn file(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Result<bool, TransferError> {
        let mut buffer = vec![0; self.pace.buffer_bytes()];
        self.spare = vec![0; buffer.len()];
        let full = buffer.len();
        let ended_by_mode = loop {
            buffer.resize(full, 0);
            let filled = self.fill(&mut buffer, stream).await?;
            buffer.truncate(filled.count);
            let mut has_end = false;
            if self.parameters.is_plain() {
                buffer = self.write(buffer).await?;
            } else {
                has_end = self.decode(&buffer).await?;
            }
            self.pace.moved(filled.count).await;
            if has_end || filled.ended {
                break has_end;
            }
        };
        if !ended_by_mode && !self.parameters.is_plain() {
            let mut rest = Vec::new();
            self.decoder.finish(&mut rest).map_err(TransferError::Decode)?;
            drop(self.write(rest).await?);
        }
        self.settle().await?;
        Ok(ended_by_mode)
    }

    /// Reads until the buffer is full or, once nothing is being written any more, until nothing more is there.
    async fn fill(
        &mut self,
        buffer: &mut [u8],
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Result<Filled, TransferError> {
        let mut count = 0;
        self.stall.moved();
        poll_fn(|cx| {
            loop {
                let mut buf = ReadBuf::new(&mut buffer[count..]);
                let read = Pin::new(&mut *stream).poll_read(cx, &mut buf);
                let more = buf.filled().len();
                match read {
                    Poll::Ready(Ok(())) if more == 0 => {
                        return Poll::Ready(Ok(Filled { count, ended: true }));
                    }
                    Poll::Ready(Ok(())) => {
                        count += more;
                        self.stall.moved();
                        if count == buffer.len() {
                            return Poll::Ready(Ok(Filled { count, ended: false }));
                        }
                    }
                    Poll::Ready(Err(error)) => {
                        return Poll::Ready(Err(TransferError::Lost(error.to_string())));
                    }
                    Poll::Pending => {
                        self.poll_written(cx);
                        return match () {
                            () if count > 0 && self.writing.is_none() => {
                                Poll::Ready(Ok(Filled { count, ended: false }))
                            }
                            () if self.stall.poll(cx) => Poll::Ready(Err(TransferError::Stalled)),
                            () => Poll::Pending,
                        };
                    }
                }
            }
        })
        .await
    }

    fn poll_written(&mut self, cx: &mut Context<'_>) {
        if let Some(writing) = &mut self.writing
            && let Poll::Ready((buffer, written)) = writing.as_mut().poll(cx)
        {
            self.writing = None;
            self.spare = buffer;
            self.failure = written.err();
        }
    }

    /// Waits for what is being written.
    async fn settle(&mut self) -> Result<(), TransferError> {
        poll_fn(|cx| {
            self.poll_written(cx);
            if self.writing.is_some() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        self.failure.take().map_or(Ok(()), |error| Err(TransferError::Storage(error)))
    }

    /// Begins to write a buffer behind what was written, and gives another one.
    async fn write(&mut self, buffer: Vec<u8>) -> Result<Vec<u8>, TransferError> {
        self.settle().await?;
        if buffer.is_empty() {
            return Ok(buffer);
        }
        let at = self.position;
        self.position += buffer.len() as u64;
        self.shared.moved_bytes.set(self.position - self.start);
        self.writing = Some(self.storing.sink.write_at(at, buffer));
        Ok(core::mem::take(&mut self.spare))
    }

    /// Decodes a buffer and writes what it holds; whether the file's end was in it.
    async fn decode(&mut self, wire: &[u8]) -> Result<bool, TransferError> {
        let mut rest = wire;
        loop {
            self.settle().await?;
            let mut decoded = core::mem::take(&mut self.spare);
            decoded.clear();
            let found = self.decoder.decode(&mut rest, &mut decoded);
            // What was there before something wrong is kept.
            self.spare = self.write(decoded).await?;
            match found.map_err(TransferError::Decode)? {
                Decoded::More => return Ok(false),
                Decoded::End => return Ok(true),
                Decoded::Marker(theirs) => {
                    // RFC 959 §3.5: the marker is told once all before it is safe.
                    self.settle().await?;
                    let event = TransferEvent::Marker { theirs, ours: self.position };
                    self.shared.events.borrow_mut().push_back(event);
                }
            }
        }
    }
}
