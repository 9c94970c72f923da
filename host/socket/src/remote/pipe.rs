//! Both directions of a stream between a host's thread and another thread: a bounded byte ring each, and blocks and received
//! packets that need none.
//!
//! A task of the host uses the *shard's* end; the holder of the stream uses the *outer* end. Wake-ups of both happen
//! after the lock is released.
//!
//! An outer end on the shard's own thread needs no ring: while nothing waits here, it asks the connection *directly*, and
//! the shard's task leaves received data where it is. The first call from another thread, or of another kind, has it go on.

use std::io::IoSlice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use inhost_stack::SocketOption;

use super::blocks::{BLOCKS_FROM_BYTES, Memory};
use super::down::{Down, Sending};
use super::lent::Lent;
use super::locked::Locked;
use super::readiness::{StreamReadiness, replace_option};
use super::up::Up;
use crate::error::StreamError;
use crate::memory::Allowance;
use crate::waiters::{WakerSet, wake_all};

/// Both directions of one stream.
pub(super) struct Pipe {
    state: Locked<State>,
    /// What a reader has taken out of `state`: the oldest unread bytes. They are copied without the lock that the shard
    /// wants. Locked before `state`.
    reader: Locked<Lent>,
    /// The memory of blocks, once some were written.
    blocks: OnceLock<Arc<Memory>>,
    allowance: Arc<Allowance>,
    /// Bytes that were read of all that was handed up.
    read_bytes: AtomicU64,
}

/// Both directions, and who waits at each end.
pub(super) struct State {
    up: Up,
    down: Down,
    /// Options that the outer end set, one of a kind at most; the shard's task has not seen them yet.
    options: Vec<SocketOption>,
    shard: Option<Waker>,
    readers: WakerSet,
    writers: WakerSet,
}

impl Pipe {
    pub(super) fn new(ring_bytes: usize, allowance: &Arc<Allowance>) -> Arc<Pipe> {
        Arc::new(Pipe {
            state: Locked::new(State {
                up: Up::new(ring_bytes, allowance),
                down: Down::new(ring_bytes, allowance),
                options: Vec::new(),
                shard: None,
                readers: WakerSet::default(),
                writers: WakerSet::default(),
            }),
            reader: Locked::default(),
            blocks: OnceLock::new(),
            allowance: allowance.clone(),
            read_bytes: AtomicU64::new(0),
        })
    }
}

/// Calls of an outer end on the shard's thread, before and after it asks the connection itself.
impl Pipe {
    /// Whether it may read there: nothing waits here that would be overtaken, and nobody waits for what is handed up.
    pub(super) fn may_read_directly(&self) -> bool {
        let mut reader = self.reader.lock();
        self.state.change(|state| {
            let may = state.up.is_drained(&mut reader) && state.readers.is_empty();
            if may {
                state.up.set_direct(true);
            }
            (may, if state.up.awaits_packets() { state.shard.take() } else { None })
        })
    }
    /// Whether it may write there; gives the options that are to be set before.
    pub(super) fn may_write_directly(&self) -> Option<Vec<SocketOption>> {
        let mut state = self.state.lock();
        let may = state.error().is_none() && state.down.may_write_directly();
        may.then(|| std::mem::take(&mut state.options))
    }
    /// Whether it has read there last.
    pub(super) fn reads_directly(&self) -> bool {
        self.state.lock().up.is_direct()
    }
    /// It found the end of the stream, or an error.
    pub(super) fn ended_directly(&self, end: Result<(), StreamError>) {
        self.on_shard(|state| state.finish(end));
        self.tell_shard(|_| ());
    }
    /// It could not send.
    pub(super) fn failed_directly(&self, error: StreamError) {
        self.on_shard(|state| state.down.fail(error));
        self.tell_shard(|_| ());
    }
    /// Changes something that the shard's task is to see.
    fn tell_shard(&self, change: impl FnOnce(&mut State)) {
        self.state.change(|state| {
            change(state);
            ((), state.shard.take())
        });
    }
}

/// Calls of the outer end. Each is short and none waits.
impl Pipe {
    /// Works on the state, and has the shard's task hand up what comes if the outer end has read directly. `work` is given how
    /// many bytes were read, and gives tasks to wake.
    fn by_rings<R, W: IntoIterator<Item = Waker>>(&self, work: impl FnOnce(&mut State, u64) -> (R, W)) -> R {
        self.state.change(|state| {
            let shard = state.leave_direct();
            let (result, woken) = work(state, self.read_bytes());
            (result, woken.into_iter().chain(shard))
        })
    }
    /// Moves bytes out; `Ok(0)` at the end of the stream, `None` when there is nothing yet.
    pub(super) fn try_read(&self, into: &mut [u8]) -> Option<Result<usize, StreamError>> {
        match self.read(None, into) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }
    pub(super) fn poll_read(
        &self,
        context: &Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<usize, StreamError>> {
        self.read(Some(context), into)
    }
    fn read(&self, context: Option<&Context<'_>>, into: &mut [u8]) -> Poll<Result<usize, StreamError>> {
        if into.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let mut reader = self.reader.lock();
        let (mut count, mut wake) = (0, None);
        let end = loop {
            count += reader.read(&mut into[count..]);
            if count == into.len() {
                break None;
            }
            let mut state = self.state.lock();
            wake = wake.or(state.leave_direct());
            match state.up.read(&mut reader, &mut into[count..]) {
                Some(moved) => count += moved,
                None if count > 0 => break None,
                None => {
                    let end = state.at_end();
                    let oldest = match (end, context) {
                        (None, Some(context)) => state.readers.register(context),
                        _ => None,
                    };
                    drop(state);
                    wake_all(oldest);
                    break Some(end);
                }
            }
            if state.up.has_room_again() {
                wake = wake.or(state.shard.take());
            }
        };
        self.read_bytes.fetch_add(count as u64, Ordering::Relaxed);
        drop(reader);
        wake_all(wake);
        match end {
            None => Poll::Ready(Ok(count)),
            Some(Some(end)) => Poll::Ready(end),
            Some(None) => Poll::Pending,
        }
    }
    /// Copies bytes without moving them out; `Ok(0)` at the end of the stream.
    pub(super) fn poll_peek(
        &self,
        context: &Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<usize, StreamError>> {
        if into.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let reader = self.reader.lock();
        let mut count = reader.peek(into);
        self.by_rings(|state, _| {
            count += state.up.peek(&mut into[count..]);
            match (count, state.at_end()) {
                (1.., _) => (Poll::Ready(Ok(count)), None),
                (0, Some(end)) => (Poll::Ready(end), None),
                (0, None) => (Poll::Pending, state.readers.register(context)),
            }
        })
    }
    /// What can be done without waiting.
    pub(super) fn readiness(&self) -> StreamReadiness {
        self.by_rings(|state, read_bytes| (state.readiness(read_bytes), None))
    }
    /// Bytes that were read.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }
    /// Waits until something holds of the readiness.
    pub(super) fn poll_ready(
        &self,
        context: &Context<'_>,
        holds: impl Fn(StreamReadiness) -> bool,
    ) -> Poll<StreamReadiness> {
        self.by_rings(|state, read_bytes| {
            let ready = state.readiness(read_bytes);
            ready.poll(holds, context, &mut state.readers, &mut state.writers)
        })
    }
    /// The error that ended the connection, if one did.
    pub(super) fn error(&self) -> Option<StreamError> {
        self.state.lock().error()
    }
    /// Has the shard set an option, before what is written from now on.
    pub(super) fn set_option(&self, option: SocketOption) {
        self.tell_shard(|state| replace_option(&mut state.options, option));
    }
    /// Writes from several buffers as far as there is room, as one write.
    pub(super) fn try_write(
        &self,
        pieces: &[IoSlice<'_>],
        urgent: bool,
    ) -> Option<Result<usize, StreamError>> {
        match self.write(None, pieces, urgent) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }
    pub(super) fn poll_write(
        &self,
        context: &Context<'_>,
        pieces: &[IoSlice<'_>],
        urgent: bool,
    ) -> Poll<Result<usize, StreamError>> {
        self.write(Some(context), pieces, urgent)
    }
    fn write(
        &self,
        context: Option<&Context<'_>>,
        pieces: &[IoSlice<'_>],
        urgent: bool,
    ) -> Poll<Result<usize, StreamError>> {
        let wanted: usize = pieces.iter().map(|piece| piece.len()).sum();
        let done = if urgent { 0 } else { self.write_blocks(pieces, wanted) };
        if done > 0 && (done == wanted || wanted - done >= BLOCKS_FROM_BYTES) {
            return Poll::Ready(Ok(done));
        }
        self.state.change(|state| match state.write(pieces, done, urgent) {
            Some(Ok(count)) => (Poll::Ready(Ok(done + count)), state.shard.take()),
            // What was taken already is told first; the next call finds the error, or no room.
            Some(Err(_)) | None if done > 0 => (Poll::Ready(Ok(done)), None),
            Some(Err(error)) => (Poll::Ready(Err(error)), None),
            None => (Poll::Pending, context.and_then(|context| state.writers.register(context))),
        })
    }
    /// Writes in blocks, until less than that is worth remains or there is no room. How many bytes. They are copied without
    /// the lock, and the shard's task sends the first ones meanwhile.
    fn write_blocks(&self, pieces: &[IoSlice<'_>], wanted: usize) -> usize {
        let mut done = 0;
        while wanted - done >= BLOCKS_FROM_BYTES && self.state.lock().takes_block() {
            let memory = self.blocks.get_or_init(|| Memory::new(&self.allowance));
            let Some(block) = memory.copy(pieces, done) else { break };
            let count = block.len();
            let is_taken = self.state.change(|state| {
                let is_taken = state.takes_block();
                if is_taken {
                    state.down.push_block(block, done + count < wanted);
                }
                (is_taken, if is_taken { state.shard.take() } else { None })
            });
            if !is_taken {
                break;
            }
            done += count;
        }
        done
    }
    /// Ends the sending half, after the queued data or at once by a reset.
    pub(super) fn end_sending(&self, how: Sending) {
        self.tell_shard(|state| state.down.end_sending(how));
    }
    /// The outer end is gone.
    pub(super) fn abandon(&self) {
        self.tell_shard(|state| {
            state.up.abandon();
            state.down.end_sending(Sending::Finished);
        });
    }
    /// Bytes to the end of urgent data, when some is ahead.
    pub(super) fn urgent_ahead(&self) -> Option<usize> {
        self.by_rings(|state, read_bytes| (state.up.urgent_ahead(read_bytes), None))
    }
    /// Bytes that can be read at once.
    pub(super) fn readable_bytes(&self) -> usize {
        self.by_rings(|state, read_bytes| (state.up.unread_bytes(read_bytes), None))
    }
}

/// Calls of the shard's task.
impl Pipe {
    /// Works on the state under the lock; the wakers that `work` sets free are woken after it.
    pub(super) fn on_shard<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        self.state.change(|state| {
            let result = work(state);
            let readers = state.up.takes_wake().then(|| state.readers.take_out());
            let writers = state.down.takes_wake().then(|| state.writers.take_out());
            (result, readers.into_iter().flatten().chain(writers.into_iter().flatten()))
        })
    }
    /// Whether it holds memory that is to be looked at in a moment.
    pub(super) fn is_large(&self) -> bool {
        let state = self.state.lock();
        let has_blocks = self.blocks.get().is_some_and(|memory| memory.is_held());
        state.up.is_large() || state.down.is_large() || has_blocks
    }
    /// Gives back memory that was not needed since the last call.
    pub(super) fn release_unused(&self) {
        let mut reader = self.reader.lock();
        let mut state = self.state.lock();
        state.up.release_unused(&mut reader);
        state.down.release_unused();
        if let Some(memory) = self.blocks.get() {
            memory.release_unused();
        }
    }
    /// The shard's task is gone.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.up.end_of_shard();
        state.down.end_of_shard();
        if let Some(memory) = self.blocks.get() {
            memory.release();
        }
    }
}

impl State {
    pub(super) fn up(&mut self) -> &mut Up {
        &mut self.up
    }
    pub(super) fn down(&mut self) -> &mut Down {
        &mut self.down
    }
    /// No more will come from the peer; after an error nothing can be sent either.
    pub(super) fn finish(&mut self, how: Result<(), StreamError>) {
        self.up.finish(how);
        self.down.wake_writers();
    }
    /// Options that the outer end set.
    pub(super) fn take_options(&mut self) -> Vec<SocketOption> {
        std::mem::take(&mut self.options)
    }
    /// Whom to wake when the outer end does something.
    pub(super) fn register(&mut self, context: &Context<'_>) {
        if !self.shard.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            self.shard = Some(context.waker().clone());
        }
    }
    /// The outer end no longer reads from the connection itself; whom to wake if it did.
    fn leave_direct(&mut self) -> Option<Waker> {
        if self.up.set_direct(false) { self.shard.take() } else { None }
    }
    /// What a read gives when it finds no data; `None` when it must wait.
    fn at_end(&self) -> Option<Result<usize, StreamError>> {
        self.up.end().map(|end| end.map(|()| 0))
    }
    /// The error of the connection or of its sending half.
    fn error(&self) -> Option<StreamError> {
        self.up.end().and_then(Result::err).or(self.down.error())
    }
    fn readiness(&mut self, read_bytes: u64) -> StreamReadiness {
        let failed = self.error().is_some();
        let write_closed = failed || !self.down.is_open();
        let read_closed = self.up.end().is_some();
        StreamReadiness {
            readable: self.up.unread_bytes(read_bytes) > 0 || read_closed,
            read_closed,
            writable: write_closed || self.down.has_room(),
            write_closed,
            failed,
            urgent: self.up.urgent_ahead(read_bytes).is_some(),
        }
    }
    fn takes_block(&self) -> bool {
        self.error().is_none() && self.down.takes_block()
    }
    /// Writes what stands `at` so many bytes in `pieces` into the ring; `None` when there is no room.
    fn write(
        &mut self,
        pieces: &[IoSlice<'_>],
        at: usize,
        urgent: bool,
    ) -> Option<Result<usize, StreamError>> {
        match self.error() {
            Some(error) => Some(Err(error)),
            None if !self.down.is_open() => Some(Err(StreamError::SendingEnded)),
            None => self.down.write(pieces, at, urgent).map(Ok),
        }
    }
}

#[cfg(test)]
mod tests;
