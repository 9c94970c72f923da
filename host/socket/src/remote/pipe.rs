//! Two bounded byte rings between a host's thread and another thread, and received packets that need none.
//!
//! A task of the host uses the *shard's* end; the holder of the stream uses the *outer* end. Wake-ups of both happen
//! after the lock is released.
//!
//! An outer end on the shard's own thread needs no ring: while nothing waits here, it asks the connection *directly*, and
//! the shard's task leaves received data where it is. The first call from another thread, or of another kind, has it go on.

use std::io::IoSlice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use inhost_buf::ByteRing;
use inhost_stack::SocketOption;
use inhost_tcp::SendHow;

use super::blocks::{BLOCKS_FROM_BYTES, Blocks, Memory};
use super::lent::{Lent, LentPacket};
use super::locked::Locked;
use crate::error::StreamError;
use crate::memory::{Allowance, Ring};
use crate::waiters::{WakerSet, wake_all};

/// Bytes that each direction of a remote stream may hold beside the connection's own queues: 1 MiB. It begins with 4 KiB,
/// grows when that is full, and shrinks when it was not needed for a second or two. Much received data is not copied into it:
/// its packets wait as they came, up to four times as much. Much that is written at once goes in blocks, up to half of it. All
/// streams of a host share an eighth of its memory limit for that; beyond it each direction holds 4 KiB.
pub const REMOTE_RING_BYTES: usize = 1 << 20;

/// What the shard's task has taken from the outer end to send. It is sent without the lock, while the next bytes are written.
pub(crate) struct Hand {
    blocks: Blocks,
    /// The same, newer than the blocks.
    bytes: ByteRing,
    /// Bytes at the front that are urgent, up to the mark.
    urgent: usize,
    /// More follows at once.
    more: bool,
}

impl Hand {
    pub(crate) fn new() -> Hand {
        Hand { blocks: Blocks::default(), bytes: ByteRing::new(0), urgent: 0, more: false }
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.bytes.is_empty()
    }
    /// The first block, to be sent before [`Hand::front`], and how.
    pub(crate) fn block(&mut self) -> Option<(&mut Bytes, SendHow)> {
        let follows = !self.bytes.is_empty() || self.more;
        let (block, others) = self.blocks.front()?;
        Some((block, SendHow { more: others || follows, ..SendHow::default() }))
    }
    /// Forgets the first block if the connection took all of it.
    pub(crate) fn sent_of_block(&mut self) {
        self.blocks.pop_empty();
    }
    /// The first bytes to send, and how: whether they end at an urgent mark, and whether more follows at once, because
    /// it was written already or its writer was cut short.
    pub(crate) fn front(&self) -> (&[u8], SendHow) {
        let front = self.bytes.front();
        let (bytes, urgent) = match self.urgent {
            0 => (front, false),
            mark => (&front[..mark.min(front.len())], mark <= front.len()),
        };
        let more = bytes.len() < self.bytes.len() || self.more;
        (bytes, SendHow { urgent, more, ..SendHow::default() })
    }
    /// Forgets bytes that the connection took.
    pub(crate) fn sent(&mut self, count: usize) {
        self.bytes.discard(count);
        self.urgent = self.urgent.saturating_sub(count);
    }
    /// Forgets all, and gives the memory back.
    pub(crate) fn clear(&mut self) {
        *self = Hand::new();
    }
}

/// Both directions of one stream.
pub(crate) struct Pipe {
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

/// Most memory of packets that wait for a stream's reader. With as little as a ring has, a host waits more often for a reader
/// whose core is busy (docs/figures.md, net-receive).
const LENT_MOST_BYTES: usize = 4 * REMOTE_RING_BYTES;
/// Most bytes in blocks that the shard's task has not taken in hand.
const BLOCKS_MOST_BYTES: usize = REMOTE_RING_BYTES / 2;

/// How far the outer end has gone with its sending half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sending {
    /// More may come.
    Open,
    /// The ring holds the last bytes.
    Finished,
    /// The connection is to be reset.
    Aborted,
}

/// What the outer end can do without waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamReadiness {
    /// A read gives data, the end of the stream or an error.
    pub readable: bool,
    /// No data will come beyond what can be read now.
    pub read_closed: bool,
    /// A write takes bytes or gives an error.
    pub writable: bool,
    /// Every write gives an error.
    pub write_closed: bool,
    /// The connection, or its sending half, has failed; a datagram socket has an error to report.
    pub failed: bool,
    /// Urgent data is ahead.
    pub urgent: bool,
}

impl StreamReadiness {
    /// Ready if `holds`; else a task is registered for what that waits for, which may be one direction's alone. Gives the
    /// tasks that had to make room, too.
    pub(super) fn poll(
        self,
        holds: impl Fn(StreamReadiness) -> bool,
        context: &Context<'_>,
        readers: &mut WakerSet,
        writers: &mut WakerSet,
    ) -> (Poll<StreamReadiness>, std::iter::Flatten<std::array::IntoIter<Option<Waker>, 2>>) {
        if holds(self) {
            return (Poll::Ready(self), [None, None].into_iter().flatten());
        }
        let read = StreamReadiness { readable: true, read_closed: true, urgent: true, failed: true, ..self };
        let written = StreamReadiness { writable: true, write_closed: true, failed: true, ..self };
        let by_reading = holds(read).then(|| readers.register(context)).flatten();
        let by_writing = holds(written).then(|| writers.register(context)).flatten();
        (Poll::Pending, [by_reading, by_writing].into_iter().flatten())
    }
}

/// Adds an option that is to be set, in place of an earlier one of its kind.
pub(super) fn replace_option(options: &mut Vec<SocketOption>, option: SocketOption) {
    let kind = std::mem::discriminant(&option);
    options.retain(|other| std::mem::discriminant(other) != kind);
    options.push(option);
}

pub(crate) struct State {
    /// From the peer to the outer end.
    up: Ring,
    /// The same, newer than what is in the ring: packets as they came.
    lent: Lent,
    /// Packets that the shard gave and has not taken back.
    lent_count: usize,
    up_end: Option<Result<(), StreamError>>,
    /// Bytes that were handed up.
    up_bytes: u64,
    /// The end of the urgent data, as bytes that were handed up before it.
    up_mark: u64,
    /// The shard has more than there was room for.
    up_is_short: bool,
    /// From the outer end to the peer: what the shard has not taken in hand.
    blocks: Blocks,
    /// The same, newer than the blocks.
    down: Ring,
    /// Bytes at the front of `down` that are urgent, up to the mark.
    down_urgent: usize,
    /// The last write was cut short: its rest comes as soon as its writer looks again.
    down_cut: bool,
    sending: Sending,
    /// The error of the sending half; received data may still be read.
    down_error: Option<StreamError>,
    /// The outer end is gone: nothing will be read any more.
    abandoned: bool,
    /// The shard's task is gone: nothing will come or be sent any more.
    ended: bool,
    /// The outer end reads from the connection itself: nothing is to be handed up.
    reads_directly: bool,
    /// The shard's task may have bytes in hand that are not sent.
    in_hand: bool,
    /// Options that the outer end set, one of a kind at most; the shard's task has not seen them yet.
    options: Vec<SocketOption>,
    shard: Option<Waker>,
    readers: WakerSet,
    writers: WakerSet,
}

impl Pipe {
    pub(crate) fn new(ring_bytes: usize, allowance: &Arc<Allowance>) -> Arc<Pipe> {
        Arc::new(Pipe {
            state: Locked::new(State {
                up: Ring::new(ring_bytes, 1, allowance),
                lent: Lent::default(),
                lent_count: 0,
                up_end: None,
                up_bytes: 0,
                up_mark: 0,
                up_is_short: false,
                blocks: Blocks::default(),
                down: Ring::new(ring_bytes, 2, allowance),
                down_urgent: 0,
                down_cut: false,
                sending: Sending::Open,
                down_error: None,
                abandoned: false,
                ended: false,
                reads_directly: false,
                in_hand: false,
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
    pub(crate) fn may_read_directly(&self) -> bool {
        let mut reader = self.reader.lock();
        let mut state = self.state.lock();
        reader.move_used(&mut state.lent);
        let may = reader.is_empty()
            && state.lent.is_empty()
            && state.up.is_empty()
            && state.up_end.is_none()
            && state.readers.is_empty()
            && !state.ended;
        state.reads_directly |= may;
        let wake = if state.lent_count > 0 { state.shard.take() } else { None };
        drop((state, reader));
        wake_all(wake);
        may
    }
    /// Whether it may write there; gives the options that are to be set before.
    pub(crate) fn may_write_directly(&self) -> Option<Vec<SocketOption>> {
        let mut state = self.state.lock();
        let may = state.error().is_none()
            && state.sending == Sending::Open
            && state.blocks.is_empty()
            && state.down.is_empty()
            && !state.in_hand
            && !state.ended;
        may.then(|| std::mem::take(&mut state.options))
    }
    /// Whether it has read there last.
    pub(crate) fn reads_directly(&self) -> bool {
        self.state.lock().reads_directly
    }
    /// It found the end of the stream, or an error.
    pub(crate) fn ended_directly(&self, end: Result<(), StreamError>) {
        self.on_shard(|shard| shard.finish(end));
        self.tell_shard(|_| ());
    }
    /// It could not send.
    pub(crate) fn failed_directly(&self, error: StreamError) {
        self.on_shard(|shard| shard.fail_sending(error));
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
    /// Has the shard's task hand up what comes, if the outer end has read directly.
    fn goes_by_rings(&self) {
        self.state.change(|state| {
            let wake = if std::mem::take(&mut state.reads_directly) { state.shard.take() } else { None };
            ((), wake)
        });
    }
    /// Moves bytes out; `Ok(0)` at the end of the stream, `None` when there is nothing yet.
    pub(crate) fn try_read(&self, into: &mut [u8]) -> Option<Result<usize, StreamError>> {
        match self.read(None, into) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }
    pub(crate) fn poll_read(
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
        self.goes_by_rings();
        let mut reader = self.reader.lock();
        let (mut count, mut wake) = (0, None);
        let end = loop {
            count += reader.read(&mut into[count..]);
            if count == into.len() {
                break None;
            }
            let mut state = self.state.lock();
            reader.move_used(&mut state.lent);
            if state.ended {
                // The host takes nothing back any more.
                drop(state.lent.take_used());
            }
            if !state.up.is_empty() {
                count += state.up.read(&mut into[count..]);
                if state.ended {
                    state.up.release();
                }
            } else if !state.lent.is_empty() {
                reader.take_over(&mut state.lent);
            } else if count > 0 {
                break None;
            } else {
                let end = state.at_end();
                let oldest = match (end, context) {
                    (None, Some(context)) => state.readers.register(context),
                    _ => None,
                };
                drop(state);
                wake_all(oldest);
                break Some(end);
            }
            // The shard is woken once for half of the room, not for every byte.
            if state.up_is_short && state.up.free() >= state.up.len() {
                state.up_is_short = false;
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
    pub(crate) fn poll_peek(
        &self,
        context: &Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<usize, StreamError>> {
        if into.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.goes_by_rings();
        let reader = self.reader.lock();
        let mut count = reader.peek(into);
        let mut state = self.state.lock();
        count += state.up.peek(&mut into[count..]);
        count += state.lent.peek(&mut into[count..]);
        if count > 0 {
            return Poll::Ready(Ok(count));
        }
        if let Some(end) = state.at_end() {
            return Poll::Ready(end);
        }
        let oldest = state.readers.register(context);
        drop(state);
        wake_all(oldest);
        Poll::Pending
    }
    /// What can be done without waiting.
    pub(crate) fn readiness(&self) -> StreamReadiness {
        self.goes_by_rings();
        self.state.lock().readiness(self.read_bytes())
    }
    fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }
    /// Waits until something holds of the readiness.
    pub(crate) fn poll_ready(
        &self,
        context: &Context<'_>,
        holds: impl Fn(StreamReadiness) -> bool,
    ) -> Poll<StreamReadiness> {
        self.goes_by_rings();
        self.state.change(|state| {
            let ready = state.readiness(self.read_bytes());
            ready.poll(holds, context, &mut state.readers, &mut state.writers)
        })
    }
    /// The error that ended the connection, if one did.
    pub(crate) fn error(&self) -> Option<StreamError> {
        self.state.lock().error()
    }
    /// Has the shard set an option, before what is written from now on.
    pub(crate) fn set_option(&self, option: SocketOption) {
        self.tell_shard(|state| replace_option(&mut state.options, option));
    }
    /// Writes from several buffers as far as there is room, as one write.
    pub(crate) fn try_write(
        &self,
        pieces: &[IoSlice<'_>],
        urgent: bool,
    ) -> Option<Result<usize, StreamError>> {
        match self.write(None, pieces, urgent) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }
    pub(crate) fn poll_write(
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
            Some((Ok(count), wake)) => (Poll::Ready(Ok(done + count)), wake),
            // What was taken already is told first; the next call finds the error, or no room.
            Some((Err(_), wake)) if done > 0 => (Poll::Ready(Ok(done)), wake),
            None if done > 0 => (Poll::Ready(Ok(done)), None),
            Some((Err(error), wake)) => (Poll::Ready(Err(error)), wake),
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
                    state.push_block(block);
                    state.down_cut = done + count < wanted;
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
    pub(crate) fn end_sending(&self, how: Sending) {
        self.tell_shard(|state| state.end_sending(how));
    }
    /// The outer end is gone.
    pub(crate) fn abandon(&self) {
        self.tell_shard(|state| {
            state.abandoned = true;
            state.end_sending(Sending::Finished);
        });
    }
    /// Bytes to the end of urgent data, when some is ahead.
    pub(crate) fn urgent_ahead(&self) -> Option<usize> {
        self.goes_by_rings();
        let mark = self.state.lock().up_mark;
        Some(mark.saturating_sub(self.read_bytes()) as usize).filter(|&bytes| bytes > 0)
    }
    /// Bytes that can be read at once.
    pub(crate) fn readable_bytes(&self) -> usize {
        self.goes_by_rings();
        self.state.lock().up_bytes.saturating_sub(self.read_bytes()) as usize
    }
}

impl State {
    /// What a read gives when it finds no data; `None` when it must wait.
    fn at_end(&self) -> Option<Result<usize, StreamError>> {
        self.up_end.map(|end| end.map(|()| 0))
    }
    fn end_sending(&mut self, how: Sending) {
        if self.sending == Sending::Open || how == Sending::Aborted {
            self.sending = how;
        }
    }
    /// The error of the connection or of its sending half.
    fn error(&self) -> Option<StreamError> {
        match self.up_end {
            Some(Err(error)) => Some(error),
            _ => self.down_error,
        }
    }
    fn readiness(&mut self, read_bytes: u64) -> StreamReadiness {
        let failed = self.error().is_some();
        let write_closed = failed || self.sending != Sending::Open;
        StreamReadiness {
            readable: self.up_bytes > read_bytes || self.up_end.is_some(),
            read_closed: self.up_end.is_some(),
            writable: write_closed || !self.are_blocks_full() && self.down.room(1) > 0,
            write_closed,
            failed,
            urgent: self.up_mark > read_bytes,
        }
    }
    fn are_blocks_full(&self) -> bool {
        self.blocks.bytes() >= BLOCKS_MOST_BYTES
    }
    /// Whether a block may be written. What is urgent stays in the ring, and what follows it.
    fn takes_block(&self) -> bool {
        self.error().is_none()
            && self.sending == Sending::Open
            && self.down_urgent == 0
            && self.down.len() <= BLOCKS_FROM_BYTES
            && !self.are_blocks_full()
    }
    /// Adds a block, and before it what little is in the ring.
    fn push_block(&mut self, block: Bytes) {
        if !self.down.is_empty() {
            let mut before = vec![0; self.down.len()];
            self.down.read(&mut before);
            self.blocks.push(before.into());
        }
        self.blocks.push(block);
    }
    /// Writes what stands `at` so many bytes in `pieces` into the ring.
    fn write(
        &mut self,
        pieces: &[IoSlice<'_>],
        mut at: usize,
        urgent: bool,
    ) -> Option<(Result<usize, StreamError>, Option<Waker>)> {
        if let Some(error) = self.error() {
            return Some((Err(error), None));
        }
        if self.sending != Sending::Open {
            return Some((Err(StreamError::SendingEnded), None));
        }
        let wanted = pieces.iter().map(|piece| piece.len()).sum::<usize>() - at;
        let has_room = !self.are_blocks_full();
        let mut count = 0;
        if has_room {
            self.down.room(wanted);
            for piece in pieces {
                count += self.down.write(piece.get(at..).unwrap_or_default());
                at = at.saturating_sub(piece.len());
            }
        }
        self.down_cut = count < wanted;
        if count == 0 && wanted > 0 {
            return None;
        }
        if urgent {
            self.down_urgent = self.down.len();
        }
        Some((Ok(count), self.shard.take()))
    }
}

/// Calls of the shard's task.
impl Pipe {
    /// Works on the state under the lock; the wakers that `work` sets free are woken after it.
    pub(crate) fn on_shard<R>(&self, work: impl FnOnce(&mut ShardEnd<'_>) -> R) -> R {
        let state = self.state.lock();
        let mut end = ShardEnd { state, read_bytes: self.read_bytes(), read: false, written: false };
        let result = work(&mut end);
        let ShardEnd { mut state, read, written, .. } = end;
        let readers = written.then(|| state.readers.take_out());
        let writers = read.then(|| state.writers.take_out());
        drop(state);
        wake_all(readers.into_iter().flatten().chain(writers.into_iter().flatten()));
        result
    }
}

/// Memory, for the shard's task.
impl Pipe {
    /// Whether a ring holds memory that is to be looked at in a moment.
    pub(crate) fn is_large(&self) -> bool {
        let state = self.state.lock();
        let has_blocks = self.blocks.get().is_some_and(|memory| memory.is_held());
        state.up.is_large() || state.down.is_large() || state.lent_count > 0 || has_blocks
    }
    /// Gives back memory that was not needed since the last call.
    pub(crate) fn release_unused(&self) {
        let mut reader = self.reader.lock();
        let mut state = self.state.lock();
        state.up.release_unused();
        state.down.release_unused();
        if let Some(memory) = self.blocks.get() {
            memory.release_unused();
        }
        reader.move_used(&mut state.lent);
        reader.release();
        if state.lent_count == 0 {
            state.lent.release();
        }
    }
    /// The shard's task is gone.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        state.up.release();
        state.down.release();
        drop(std::mem::take(&mut state.blocks));
        if let Some(memory) = self.blocks.get() {
            memory.release();
        }
        drop(state.lent.take_used());
    }
}

/// The shard's end while the lock is held.
pub(crate) struct ShardEnd<'a> {
    state: MutexGuard<'a, State>,
    read_bytes: u64,
    read: bool,
    written: bool,
}

impl ShardEnd<'_> {
    /// Room for bytes from the peer: some, unless there is no memory to grow. None while packets wait that would be
    /// overtaken.
    pub(crate) fn room(&mut self) -> usize {
        let room = if self.state.lent.is_empty() { self.state.up.room(1) } else { 0 };
        self.state.up_is_short = room == 0;
        room
    }
    /// The memory of packets that may be handed up as they are; 0 when there is room for none, or no memory.
    pub(crate) fn room_to_lend(&mut self, has_memory: bool) -> usize {
        let most_bytes = if has_memory { LENT_MOST_BYTES } else { 0 };
        let room = most_bytes.saturating_sub(self.state.lent.waiting_bytes() + self.state.up.len());
        self.state.up_is_short = room == 0;
        room
    }
    /// Whether packets wait for the reader.
    pub(crate) fn has_lent(&self) -> bool {
        !self.state.lent.is_empty()
    }
    /// Hands up bytes of the peer, of which [`ShardEnd::room`] says how many fit; `urgent_ahead` as the connection
    /// said before they were read.
    pub(crate) fn put(&mut self, bytes: &[u8], urgent_ahead: Option<usize>) {
        self.set_urgent(urgent_ahead);
        self.state.up.write(bytes);
        self.state.up_bytes += bytes.len() as u64;
        self.written = true;
    }
    /// Hands up packets of the peer. Their reader is told once for all of a round: on the host's core it would run before the next
    /// ones are there.
    pub(crate) fn lend(&mut self, packets: Vec<LentPacket>) {
        self.state.lent_count += packets.len();
        for lent in packets {
            self.state.up_bytes += lent.packet.len() as u64;
            self.state.lent.push(lent);
        }
    }
    /// Wakes the reader.
    pub(crate) fn tell_reader(&mut self) {
        self.written = true;
    }
    /// Packets that were read.
    pub(crate) fn take_used(&mut self) -> Vec<LentPacket> {
        let used = self.state.lent.take_used();
        self.state.lent_count -= used.len();
        used
    }
    /// Takes note of urgent data that the connection announces beyond the ring.
    pub(crate) fn set_urgent(&mut self, urgent_ahead: Option<usize>) {
        if let Some(ahead) = urgent_ahead {
            self.state.up_mark = self.state.up_bytes + ahead as u64;
            self.written = true;
        }
    }
    /// No more will come from the peer; after an error nothing can be sent either.
    pub(crate) fn finish(&mut self, how: Result<(), StreamError>) {
        self.state.up_end.get_or_insert(how);
        self.written = true;
        self.read = true;
    }
    /// Nothing can be sent any more; received data is still passed on.
    pub(crate) fn fail_sending(&mut self, error: StreamError) {
        self.state.down_error.get_or_insert(error);
        self.state.down.discard(usize::MAX);
        drop(std::mem::take(&mut self.state.blocks));
        self.read = true;
    }
    /// Takes in hand what was written, when all from before was sent.
    pub(crate) fn take(&mut self, hand: &mut Hand) {
        let state = &mut *self.state;
        state.in_hand = !hand.is_empty();
        if state.in_hand || state.blocks.is_empty() && state.down.is_empty() {
            return;
        }
        state.in_hand = true;
        hand.blocks = std::mem::take(&mut state.blocks);
        state.down.swap(&mut hand.bytes);
        hand.urgent = std::mem::take(&mut state.down_urgent);
        hand.more = state.down_cut && state.sending == Sending::Open;
        self.read = true;
    }
    /// Whether the ring of what is to be sent holds more memory than every ring may.
    pub(crate) fn is_down_large(&self) -> bool {
        self.state.down.is_large()
    }
    /// Options that the outer end set.
    pub(crate) fn take_options(&mut self) -> Vec<SocketOption> {
        std::mem::take(&mut self.state.options)
    }
    /// Whether the outer end reads from the connection itself.
    pub(crate) fn is_read_directly(&self) -> bool {
        self.state.reads_directly
    }
    /// How the stream from the peer ended, as far as the outer end was told.
    pub(crate) fn up_end(&self) -> Option<Result<(), StreamError>> {
        self.state.up_end
    }
    /// Whether nothing can be sent any more.
    pub(crate) fn has_failed_sending(&self) -> bool {
        self.state.down_error.is_some()
    }
    /// How far the outer end has gone.
    pub(crate) fn sending(&self) -> Sending {
        self.state.sending
    }
    /// Whether bytes of the peer were handed up that the outer end has not read.
    pub(crate) fn has_unread(&self) -> bool {
        self.state.up_bytes > self.read_bytes
    }
    /// Whether the reader is gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.state.abandoned
    }
    /// Whom to wake when the outer end does something.
    pub(crate) fn register(&mut self, context: &Context<'_>) {
        if !self.state.shard.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            self.state.shard = Some(context.waker().clone());
        }
    }
}

#[cfg(test)]
mod tests;
