//! One transfer between its socket and its file.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use inhost_base::{Endpoint, Instant};
use inhost_common::LocalFuture;
use inhost_common::storage::{Sink, Source, StorageError, StorageResult};

use super::{Clock, Datagrams};
use crate::codec::options::BLOCK_BYTES_LIMITS;
use crate::codec::{ErrorCode, HEADER_BYTES};
use crate::machine::{Summary, Transfer, TransferError};
use crate::server::error_code;

/// Octets that are read or written at a time.
const CHUNK_BYTES: usize = 256 * 1024;
/// Octets that may wait to be written before nothing more is taken from the network.
const UNWRITTEN_BYTES: usize = 2 * CHUNK_BYTES;
/// Datagrams in or out before others have their turn.
const DATAGRAMS_A_TURN: usize = 64;
/// The longest datagram of a transfer, and one octet by which a longer one is known.
const DATAGRAM_BYTES: usize = HEADER_BYTES + BLOCK_BYTES_LIMITS.1 as usize + 1;

/// A transfer's file, at this end.
pub enum Arriving {
    /// It is read.
    Source(Box<dyn Source>),
    /// It is written.
    Sink(Box<dyn Sink>),
}

/// Observer of progress.
pub trait Progress {
    /// So many octets of the file have moved.
    fn moved(&self, file_bytes: u64, now: Instant);
    /// The transfer has finished; only retransmitted blocks are still acknowledged.
    fn settled(&self, _: &Result<Summary, TransferError>) {}
}

impl Progress for Cell<u64> {
    fn moved(&self, file_bytes: u64, _: Instant) {
        self.set(file_bytes);
    }
}

/// Carries it to its end. A file that does not come whole is not kept.
pub async fn carry<D: Datagrams, C: Clock>(
    transfer: Transfer,
    datagrams: &D,
    clock: &C,
    file: Arriving,
    progress: &dyn Progress,
) -> Result<Summary, TransferError> {
    let (source, sink) = match file {
        Arriving::Source(source) => (Some(source), None),
        Arriving::Sink(sink) => (None, Some(sink)),
    };
    let mut carrier = Carrier {
        transfer,
        datagrams,
        clock,
        progress,
        source,
        sink,
        position: 0,
        moving: None,
        spare: Vec::new(),
        outgoing: Vec::new(),
        outgoing_to: None,
        incoming: Vec::new(),
        alarm: None,
        told_bytes: 0,
        is_settled: false,
    };
    let outcome = poll_fn(|cx| carrier.poll(cx)).await;
    if let Some(sink) = carrier.sink.take() {
        sink.discard().await;
    }
    outcome
}

/// Pending file operation.
enum Moving {
    Reading(LocalFuture<(Vec<u8>, StorageResult<usize>)>),
    Writing(LocalFuture<(Vec<u8>, StorageResult<()>)>),
    Committing(LocalFuture<StorageResult<()>>),
}

type Sleep = Pin<Box<dyn Future<Output = ()>>>;

struct Carrier<'a, D, C> {
    transfer: Transfer,
    datagrams: &'a D,
    clock: &'a C,
    progress: &'a dyn Progress,
    source: Option<Box<dyn Source>>,
    sink: Option<Box<dyn Sink>>,
    position: u64,
    moving: Option<Moving>,
    spare: Vec<u8>,
    outgoing: Vec<u8>,
    outgoing_to: Option<Endpoint>,
    incoming: Vec<u8>,
    alarm: Option<(Instant, Sleep)>,
    told_bytes: u64,
    is_settled: bool,
}

impl<D: Datagrams, C: Clock> Carrier<'_, D, C> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Summary, TransferError>> {
        let now = self.clock.now();
        self.transfer.timeout(now);
        let mut moved = true;
        for _ in 0..DATAGRAMS_A_TURN {
            if !moved {
                break;
            }
            moved = self.file(cx, now);
            moved |= self.send(cx, now);
            moved |= self.receive(cx, now);
        }
        let file_bytes = self.transfer.file_bytes();
        if file_bytes > self.told_bytes {
            self.told_bytes = file_bytes;
            self.progress.moved(file_bytes, now);
        }
        if !self.is_settled
            && let Some(outcome) = self.transfer.outcome()
        {
            self.is_settled = true;
            self.progress.settled(outcome);
        }
        if self.transfer.is_over() && self.outgoing_to.is_none() {
            let lost = TransferError::Silent;
            return Poll::Ready(self.transfer.outcome().cloned().unwrap_or(Err(lost)));
        }
        if moved || self.alarm(cx) {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Sends what is due; whether something was.
    fn send(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let mut sent = false;
        for _ in 0..DATAGRAMS_A_TURN {
            if self.outgoing_to.is_none() {
                self.outgoing_to = self.transfer.transmit(&mut self.outgoing, now);
            }
            let Some(to) = self.outgoing_to else { break };
            match self.datagrams.poll_send(cx, &self.outgoing, to) {
                Poll::Pending => break,
                Poll::Ready(outcome) => {
                    self.outgoing_to = None;
                    sent = true;
                    if let Err(why) = outcome {
                        self.obstacle(why);
                    }
                }
            }
        }
        sent
    }
    /// Takes what came; whether something did.
    fn receive(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let unwritten = self.transfer.file().map_or(0, |file| file.len());
        if unwritten >= UNWRITTEN_BYTES && self.moving.is_some() {
            return false;
        }
        if self.incoming.is_empty() {
            self.incoming.resize(DATAGRAM_BYTES, 0);
        }
        match self.datagrams.poll_receive(cx, &mut self.incoming) {
            Poll::Pending => false,
            Poll::Ready(Ok((length, from))) => {
                let length = length.min(self.incoming.len());
                self.transfer.datagram(from, &self.incoming[..length], now);
                true
            }
            Poll::Ready(Err(why)) => {
                self.obstacle(why);
                true
            }
        }
    }
    /// The network says that a datagram did not arrive. Before anybody has answered that is the answer; later it is
    /// one datagram lost, and anybody may have forged it.
    fn obstacle(&mut self, why: String) {
        if !self.transfer.is_met() {
            self.transfer.unreachable(why);
        }
    }

    /// Goes on with the file; whether something came of it.
    fn file(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        if self.moving.is_none() {
            self.begin();
        }
        let Some(moving) = &mut self.moving else { return false };
        match moving {
            Moving::Reading(read) => {
                let Poll::Ready((buffer, count)) = read.as_mut().poll(cx) else { return false };
                match count {
                    Ok(count) => {
                        self.position += count as u64;
                        self.transfer.supply(&buffer[..count]);
                        // Fewer than were asked for are the last.
                        if count > 0 && count < buffer.len() {
                            self.transfer.supply(&[]);
                        }
                    }
                    Err(error) => self.trouble(&error),
                }
                self.spare = buffer;
            }
            Moving::Writing(write) => {
                let Poll::Ready((mut buffer, written)) = write.as_mut().poll(cx) else { return false };
                self.position += buffer.len() as u64;
                buffer.clear();
                self.spare = buffer;
                if let Err(error) = written {
                    self.trouble(&error);
                }
            }
            Moving::Committing(commit) => {
                let Poll::Ready(kept) = commit.as_mut().poll(cx) else { return false };
                match kept {
                    Ok(()) => self.transfer.stored(now),
                    Err(error) => self.trouble(&error),
                }
            }
        }
        self.moving = None;
        true
    }
    fn begin(&mut self) {
        let wanted = self.transfer.wants();
        if let (Some(source), true) = (&self.source, wanted > 0) {
            let left = source.size_bytes().saturating_sub(self.position);
            // One octet more than is left shows that it has not grown.
            let bytes = CHUNK_BYTES.min(usize::try_from(left).unwrap_or(CHUNK_BYTES).saturating_add(1));
            let mut buffer = std::mem::take(&mut self.spare);
            buffer.resize(bytes, 0);
            self.moving = Some(Moving::Reading(source.read_at(self.position, buffer)));
        }
        let is_whole = self.transfer.is_whole();
        if let (Some(sink), Some(file)) = (&self.sink, self.transfer.file()) {
            if file.len() >= CHUNK_BYTES || is_whole && !file.is_empty() {
                let full = std::mem::replace(file, std::mem::take(&mut self.spare));
                self.moving = Some(Moving::Writing(sink.write_at(self.position, full)));
            } else if is_whole && let Some(sink) = self.sink.take() {
                self.moving = Some(Moving::Committing(sink.commit(self.position)));
            }
        }
    }
    fn trouble(&mut self, error: &StorageError) {
        let code = if self.sink.is_some() { error_code(error) } else { ErrorCode::OTHER };
        self.transfer.fail(code, &error.to_string());
    }

    /// Has the task woken when the transfer wants it; true when that is now. A time that moves on lets the old alarm run
    /// out first, so that a datagram does not cost one.
    fn alarm(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(deadline) = self.transfer.deadline() else { return false };
        if self.alarm.as_ref().is_none_or(|(at, _)| *at > deadline) {
            self.alarm = Some((deadline, self.clock.sleep_until(deadline)));
        }
        let Some((_, sleep)) = &mut self.alarm else { return false };
        let rang = sleep.as_mut().poll(cx).is_ready();
        if rang {
            self.alarm = None;
        }
        rang
    }
}
