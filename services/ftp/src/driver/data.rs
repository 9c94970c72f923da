//! The data of a transfer between a file and a stream, with two buffers.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use inhost_base::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Clock;
use super::stall::Stall;
use crate::codec::Parameters;
use crate::codec::data::{Decoded, Decoder, Encoder};
use crate::server::{TransferError, TransferEvent};
use inhost_common::LocalFuture;
use inhost_common::storage::{Source, StorageError, StorageResult, Storing};

/// Octets of one buffer; a transfer has two at most, whatever its file. Each costs a change of threads, which takes as
/// long as copying a good part of this.
const BUFFER_BYTES: usize = 512 * 1024;
/// Octets of a buffer for what comes in while less than that comes at a time.
const LEAST_BUFFER_BYTES: usize = 64 * 1024;

/// Limit of unreported events; beyond it, the transfer waits.
const EVENTS: usize = 16;

/// Progress of a running transfer.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) events: RefCell<VecDeque<TransferEvent>>,
    pub(super) moved_bytes: Rc<Cell<u64>>,
    /// Takes the rest of an upload that could not be stored.
    pub(super) refusing: RefCell<Option<LocalFuture<()>>>,
    tells_markers: bool,
}

impl Shared {
    /// For a server, which acknowledges each restart marker.
    pub(super) fn with_markers() -> Shared {
        Shared { tells_markers: true, ..Shared::default() }
    }
    /// For a client, whose octets others count.
    pub(super) fn counting(moved_bytes: Rc<Cell<u64>>) -> Shared {
        Shared { moved_bytes, ..Shared::default() }
    }
    /// Notes a marker, and waits while too many wait: a marker is a few octets of data, and its acknowledgment is more.
    /// The task that polls the transfer takes the events, and polls again.
    async fn marker(&self, theirs: String, ours: u64) {
        if !self.tells_markers {
            return;
        }
        self.events.borrow_mut().push_back(TransferEvent::Marker { theirs, ours });
        let has_room = || self.events.borrow().len() < EVENTS;
        poll_fn(|_| if has_room() { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

/// Parameters of one transfer's data.
pub(super) struct Moving<'a, C> {
    pub(super) clock: &'a C,
    pub(super) stall_time: Duration,
    pub(super) bytes_per_second: Option<u64>,
    pub(super) shared: &'a Shared,
    pub(super) parameters: Parameters,
}

/// Waits so that no more than the user's rate is moved.
struct Pace<'a, C> {
    clock: &'a C,
    bytes_per_second: Option<u64>,
    began: Instant,
    moved_bytes: u64,
}

impl<'a, C: Clock> Pace<'a, C> {
    fn new(moving: &Moving<'a, C>) -> Pace<'a, C> {
        let Moving { clock, bytes_per_second, .. } = *moving;
        Pace { clock, bytes_per_second, began: clock.now(), moved_bytes: 0 }
    }
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

/// A file, or what is in memory, on its way out.
pub(super) struct Sending<'a, C> {
    parameters: Parameters,
    encoder: Encoder,
    /// Octets on the wire that are left out: a restart in text counts those (RFC 3659 §5.2).
    skip: u64,
    position: u64,
    pub(super) moved_bytes: u64,
    stall: Stall<'a, C>,
    pace: Pace<'a, C>,
    shared: &'a Shared,
}

impl<'a, C: Clock> Sending<'a, C> {
    /// From `start`: an octet of the file, or with `by_file` false of what would be on the wire.
    pub(super) fn new(moving: &Moving<'a, C>, start: u64, by_file: bool) -> Sending<'a, C> {
        let (position, skip) = if by_file { (start, 0) } else { (0, start) };
        Sending {
            parameters: moving.parameters,
            encoder: Encoder::new(moving.parameters, position),
            skip,
            position,
            moved_bytes: 0,
            stall: Stall::new(moving.clock, moving.stall_time),
            pace: Pace::new(moving),
            shared: moving.shared,
        }
    }

    /// Sends a file. While one buffer is sent, the other is read.
    pub(super) async fn file(
        &mut self,
        source: &dyn Source,
        stream: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), TransferError> {
        // One more than is there shows at once that there is no more.
        let left = source.size_bytes().saturating_sub(self.position).saturating_add(1);
        let bytes = usize::try_from(left).unwrap_or(usize::MAX).min(self.pace.buffer_bytes());
        let mut encoded = Vec::new();
        let mut spare = Vec::new();
        let mut reading = source.read_at(self.position, vec![0; bytes]);
        loop {
            let (buffer, count) = reading.await;
            let count = count.map_err(TransferError::Storage)?;
            self.position += count as u64;
            if count < buffer.len() {
                self.send_counted(&buffer[..count], &mut encoded, stream).await?;
                break;
            }
            spare.resize(bytes, 0);
            reading = source.read_at(self.position, spare);
            self.send_counted(&buffer, &mut encoded, stream).await?;
            spare = buffer;
        }
        self.finish(encoded, stream).await
    }

    async fn send_counted(
        &mut self,
        bytes: &[u8],
        encoded: &mut Vec<u8>,
        stream: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), TransferError> {
        self.send(bytes, encoded, stream).await?;
        self.moved_bytes += bytes.len() as u64;
        self.shared.moved_bytes.set(self.moved_bytes);
        self.pace.moved(bytes.len()).await;
        Ok(())
    }

    /// Sends what is in memory.
    pub(super) async fn text(
        &mut self,
        text: &[u8],
        stream: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), TransferError> {
        let mut encoded = Vec::new();
        for piece in text.chunks(BUFFER_BYTES) {
            self.send(piece, &mut encoded, stream).await?;
        }
        Ok(())
    }
    /// Nothing more comes.
    pub(super) async fn end(&mut self, stream: &mut (impl AsyncWrite + Unpin)) -> Result<(), TransferError> {
        self.finish(Vec::new(), stream).await
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

type Writing = LocalFuture<(Vec<u8>, StorageResult<()>)>;

/// The last octets of a file and their place, not written yet.
pub(super) struct Last {
    pub(super) position: u64,
    pub(super) octets: Vec<u8>,
}

/// A file on its way in.
pub(super) struct Receiving<'a, C> {
    storing: &'a Storing,
    parameters: Parameters,
    decoder: Decoder,
    /// The place behind the last octet that was stored.
    pub(super) position: u64,
    start: u64,
    writing: Option<Writing>,
    /// Whether the last octets are left to be written with the commit.
    holds_last: bool,
    last: Option<Last>,
    spare: Vec<u8>,
    failure: Option<StorageError>,
    stall: Stall<'a, C>,
    pace: Pace<'a, C>,
    shared: &'a Shared,
}

/// Result of one read into a buffer.
struct Filled {
    count: usize,
    ended: bool,
}

impl<'a, C: Clock> Receiving<'a, C> {
    pub(super) fn new(moving: &Moving<'a, C>, storing: &'a Storing) -> Receiving<'a, C> {
        Receiving {
            storing,
            parameters: moving.parameters,
            decoder: Decoder::new(moving.parameters),
            position: storing.position,
            start: storing.position,
            writing: None,
            holds_last: false,
            last: None,
            spare: Vec::new(),
            failure: None,
            stall: Stall::new(moving.clock, moving.stall_time),
            pace: Pace::new(moving),
            shared: moving.shared,
        }
    }
    /// The same, and what came with the end of the stream is not written but kept for [`Receiving::take_last`].
    pub(super) fn holding_last(mut self) -> Self {
        self.holds_last = true;
        self
    }
    /// The stored octets.
    pub(super) fn take_last(&mut self) -> Option<Last> {
        self.last.take()
    }

    /// Stores all that comes; whether the mode said that the file has ended, and not the connection. What the disk says
    /// is the reason of a failure, whatever became of the connection meanwhile.
    pub(super) async fn file(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Result<bool, TransferError> {
        let received = self.receive(stream).await;
        self.settle().await?;
        received
    }

    /// While one buffer is written, the other is filled.
    async fn receive(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Result<bool, TransferError> {
        // The second buffer is made when the first is full: many files have no need of it.
        let most = self.pace.buffer_bytes();
        let mut bytes = most.min(LEAST_BUFFER_BYTES);
        let mut buffer = Vec::new();
        let ended_by_mode = loop {
            buffer.resize(bytes, 0);
            let filled = self.fill(&mut buffer, stream).await?;
            bytes = if filled.count == bytes { most } else { most.min(LEAST_BUFFER_BYTES) };
            buffer.truncate(filled.count);
            let mut has_end = false;
            if self.parameters.is_plain() && filled.ended && self.holds_last && filled.count > 0 {
                self.last =
                    Some(Last { position: self.advance(&buffer), octets: core::mem::take(&mut buffer) });
            } else if self.parameters.is_plain() {
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
        let at = self.advance(&buffer);
        self.writing = Some(self.storing.sink.write_at(at, buffer));
        Ok(core::mem::take(&mut self.spare))
    }

    /// Counts a buffer; the place of its first octet.
    fn advance(&mut self, buffer: &[u8]) -> u64 {
        let at = self.position;
        self.position += buffer.len() as u64;
        self.shared.moved_bytes.set(self.position - self.start);
        at
    }

    /// Decodes a buffer and writes what it holds; whether the file's end was in it.
    async fn decode(&mut self, wire: &[u8]) -> Result<bool, TransferError> {
        let mut rest = wire;
        loop {
            self.settle().await?;
            let mut decoded = core::mem::take(&mut self.spare);
            decoded.clear();
            let found = self.decoder.decode(&mut rest, &mut decoded);
            // Data before the error is stored.
            self.spare = self.write(decoded).await?;
            match found.map_err(TransferError::Decode)? {
                Decoded::More => return Ok(false),
                Decoded::End => return Ok(true),
                Decoded::Marker(theirs) => {
                    // RFC 959 §3.5: the marker is reported once all data before it is stored.
                    self.settle().await?;
                    self.shared.marker(theirs, self.position).await;
                }
            }
        }
    }
}
