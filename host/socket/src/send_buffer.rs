//! `SO_SNDBUF` as Linux counts it: the room that a write gets.
//!
//! Linux counts buffers, not bytes: a write fills one buffer of up to a segmentation's worth after the other, and asks
//! whether there is room only when it begins a new one. So a write takes a multiple of that size, and may exceed the
//! limit a little. Buffers grow with the congestion window while the application waits for room.

use std::collections::VecDeque;

use inhost_base::{Duration, Instant};
use inhost_event::Sink;
use inhost_stack::{SendHow, SendQueue, Stack, StreamError, TcpSocketId};

/// The least that `SO_SNDBUF` may come to.
const LEAST_BYTES: usize = 4608;
/// The stack's own limit where room is counted here: never full.
pub const UNCOUNTED_BYTES: usize = 64 << 20;

/// Overhead of a buffer (Linux's `truesize` beyond its data).
const OVERHEAD_BYTES: usize = 1280;
/// The most that one buffer takes: 64 KiB less room for headers.
const LARGEST_BYTES: usize = 65_535 - 320;
/// A window up to this is not halved.
const SMALL_WINDOW_BYTES: u32 = 536;
/// Headers and bookkeeping that come on top of a segment when a buffer for it is sized.
const SEGMENT_EXTRA_BYTES: usize = 320 + 320;
const BUFFER_HEAD_BYTES: usize = 256;
/// Segments that the buffer has room for at least.
const LEAST_SEGMENTS: usize = 10;

/// The send buffer of one connection. Places are counted in bytes of the stream from its beginning.
///
/// To use it without a [`crate::Host`], set the stack's own limit of the connection to [`UNCOUNTED_BYTES`], write by
/// [`SendBuffer::write`], and while [`SendBuffer::is_wanted`] call [`SendBuffer::look`] after each round.
#[derive(Clone, Debug)]
pub struct SendBuffer {
    limit_bytes: usize,
    most_bytes: usize,
    /// The application fixed the limit.
    fixed: bool,
    /// The last write found no room, so a writer waits for it.
    wanted: bool,
    /// Where each buffer ends; the first begins at `acknowledged`.
    ends: VecDeque<u64>,
    /// The next write must begin a new buffer.
    closed: bool,
    written: u64,
    pushed: u64,
    largest_window_bytes: u32,
    /// Since when a writer waits for room while nothing is left to send, and for how long in all before.
    limited_since: Option<Instant>,
    limited_for: Duration,
}

/// The state of a buffer after a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Filled {
    /// There is room left in it.
    No,
    Yes,
    /// It is full, and queued data is to be sent.
    Pushed,
}

/// State of the connection.
#[derive(Clone, Copy, Debug)]
struct Place {
    acknowledged: u64,
    sent: u64,
}

/// The result of a step of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// Bytes that were taken.
    pub bytes: usize,
    /// Queued data is to be sent before more is written, as Linux sends in the middle of a write.
    pub goes: bool,
}

impl SendBuffer {
    /// The limit that `SO_SNDBUF` with `bytes` means: twice that, since it counts what buffers cost, too.
    pub fn limit_of_option(bytes: usize) -> usize {
        bytes.saturating_mul(2).max(LEAST_BYTES)
    }
    /// The buffer of a connection that was not written to. It grows from `limit_bytes` to `most_bytes` unless it is
    /// `fixed`.
    pub fn new(limit_bytes: usize, most_bytes: usize, fixed: bool) -> SendBuffer {
        SendBuffer {
            limit_bytes,
            most_bytes,
            fixed,
            wanted: false,
            ends: VecDeque::new(),
            closed: false,
            written: 0,
            pushed: 0,
            largest_window_bytes: 0,
            limited_since: None,
            limited_for: Duration::ZERO,
        }
    }
    /// Sets the limit, which no longer grows: the application said so.
    pub fn fix(&mut self, limit_bytes: usize) {
        self.limit_bytes = limit_bytes;
        self.fixed = true;
    }
    fn place(&self, queue: &SendQueue) -> Place {
        let back = |bytes: usize| self.written.saturating_sub(bytes as u64);
        Place { acknowledged: back(queue.unacknowledged_bytes), sent: back(queue.not_sent_bytes) }
    }
    /// Whether a writer found no room and is owed the news of some.
    pub fn is_wanted(&self) -> bool {
        self.wanted
    }
    /// The limit in force.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }
    /// Looks after a round whether there is room that is worth telling a writer who waits, and grows as Linux does.
    pub fn look(&mut self, queue: &SendQueue, low_water: usize, now: Instant) -> bool {
        let before = self.held_bytes(queue);
        self.follow(queue);
        if self.held_bytes(queue) < before {
            self.grow(queue);
        }
        let room = self.is_writable(queue, low_water);
        self.wanted = !room;
        self.account(queue, now);
        room
    }
    /// Writes as much of `rest` as one buffer takes. `was_full` belongs to the write: whether its last step found no
    /// room; then it waits until there is enough. `end` says how the last byte taken is sent, whether it is the last of
    /// `rest` or not. Without room nothing is taken, and the write would block.
    pub fn write(
        &mut self,
        (stack, socket, low_water): (&mut Stack, TcpSocketId, usize),
        rest: &[u8],
        was_full: &mut bool,
        end: impl FnOnce(bool) -> SendHow,
        (now, sink): (Instant, &mut dyn Sink),
    ) -> Result<Taken, StreamError> {
        let queue = stack.instruments().connection(socket).map(|connection| connection.sender().queue());
        let room = queue.as_ref().map_or(rest.len(), |queue| self.room(queue, low_water, was_full));
        let piece = &rest[..room.min(rest.len())];
        if piece.is_empty() && !rest.is_empty() {
            return Err(StreamError::WouldBlock);
        }
        let end = end(piece.len() == rest.len());
        let filled = queue.as_ref().map_or(Filled::No, |queue| self.filled(piece.len(), queue));
        if let Some(pushed) = queue.as_ref().and_then(|queue| self.begins(queue)) {
            stack.tcp(now, sink).end_burst(socket, pushed);
        }
        let push = (end.push && !end.more) || end.end_of_record || filled == Filled::Pushed;
        let how = SendHow { push, more: false, ..end };
        let bytes = stack.tcp(now, sink).send_with(socket, piece, how)?;
        let goes = queue.is_some_and(|queue| self.took(bytes, filled, &queue));
        self.closed |= end.end_of_record;
        Ok(Taken { bytes, goes })
    }
    /// How much a write takes now.
    fn room(&mut self, queue: &SendQueue, low_water: usize, was_full: &mut bool) -> usize {
        self.follow(queue);
        // A waiting writer is woken when there is enough room, not at the first byte.
        let waits = *was_full && self.wanted;
        let room = if waits { 0 } else { self.room_bytes(queue, low_water) };
        *was_full = room == 0;
        self.wanted |= room == 0;
        room
    }
    /// Updates the state: acknowledged buffers are freed, and a send buffer that was too small grows.
    fn follow(&mut self, queue: &SendQueue) {
        self.largest_window_bytes = self.largest_window_bytes.max(queue.window_bytes);
        let acknowledged = self.place(queue).acknowledged;
        while self.ends.front().is_some_and(|&end| end <= acknowledged) {
            self.ends.pop_front();
        }
    }
    /// Keeps account of the time for which the buffer, and nothing else, kept data from being sent.
    fn account(&mut self, queue: &SendQueue, now: Instant) {
        let is_limited = self.wanted && queue.not_sent_bytes == 0;
        match (is_limited, self.limited_since) {
            (true, None) => self.limited_since = Some(now),
            (false, Some(since)) if !self.wanted => {
                self.limited_for += now.since(since);
                self.limited_since = None;
            }
            _ => {}
        }
    }
    /// That time.
    pub fn send_buffer_limited(&self, now: Instant) -> Duration {
        self.limited_for + self.limited_since.map_or(Duration::ZERO, |since| now.since(since))
    }
    /// Grows with the congestion window, when there is room again for a waiting writer.
    fn grow(&mut self, queue: &SendQueue) {
        if self.fixed {
            return;
        }
        let mss = usize::from(queue.peer_segment_bytes.max(queue.segment_bytes));
        let buffer = (mss + SEGMENT_EXTRA_BYTES).next_power_of_two() + BUFFER_HEAD_BYTES;
        let window = (queue.congestion_window_bytes / u32::from(queue.segment_bytes).max(1)) as usize;
        let segments = LEAST_SEGMENTS.max(window).max(usize::from(queue.reordering_segments) + 1);
        let wanted = 2 * segments * buffer;
        if wanted > self.limit_bytes {
            self.limit_bytes = wanted.min(self.most_bytes).max(self.limit_bytes);
        }
    }
    /// Memory held, as Linux counts it.
    pub fn held_bytes(&self, queue: &SendQueue) -> usize {
        let sent = self.place(queue).sent;
        let unsent_buffers = self.ends.len() - self.ends.partition_point(|&end| end <= sent);
        queue.unacknowledged_bytes + OVERHEAD_BYTES * (queue.bursts_in_flight + unsent_buffers)
    }
    /// The size up to which a buffer is filled.
    fn goal_bytes(&self, queue: &SendQueue) -> usize {
        let mss = usize::from(queue.segment_bytes).max(1);
        let window = self.largest_window_bytes;
        let half = if window > SMALL_WINDOW_BYTES { window / 2 } else { window };
        let most = if half == 0 { LARGEST_BYTES } else { LARGEST_BYTES.min(half as usize) };
        (most / mss).max(1) * mss
    }
    /// How many bytes may be written next without asking again: the rest of the last buffer, or a new one; 0 when
    /// there is no room.
    fn room_bytes(&self, queue: &SendQueue, low_water: usize) -> usize {
        let goal = self.goal_bytes(queue);
        let rest = match self.last_fill(queue) {
            Some(fill) if fill < goal && !self.closed => goal - fill,
            _ => 0,
        };
        if rest > 0 {
            return rest;
        }
        let full = self.held_bytes(queue) >= self.limit_bytes || queue.not_sent_bytes >= low_water;
        if full { 0 } else { goal }
    }
    /// Bytes of the last buffer that were not sent, if there are any to join others to.
    fn last_fill(&self, queue: &SendQueue) -> Option<usize> {
        let place = self.place(queue);
        let before = self.ends.iter().rev().nth(1).copied().unwrap_or(place.acknowledged);
        let start = before.max(place.sent);
        self.ends.back().filter(|&&end| end > start).map(|&end| (end - start) as usize)
    }
    /// Whether `bytes` more, as [`SendBuffer::room_bytes`] allowed, fill a buffer, and whether it is pushed at once
    /// because half the largest window was written since the last push.
    fn filled(&self, bytes: usize, queue: &SendQueue) -> Filled {
        let goal = self.goal_bytes(queue);
        let fill = self.last_fill(queue).filter(|&fill| fill < goal && !self.closed).unwrap_or(0);
        match fill + bytes >= goal {
            false => Filled::No,
            true if self.written + bytes as u64 > self.pushed + u64::from(self.largest_window_bytes / 2) => {
                Filled::Pushed
            }
            true => Filled::Yes,
        }
    }
    /// `bytes` were taken. Whether what waits is sent at once: where a buffer was filled that was pushed, or that is
    /// the first that waits.
    fn took(&mut self, bytes: usize, filled: Filled, before: &SendQueue) -> bool {
        let goal = self.goal_bytes(before);
        let fill = self.last_fill(before).filter(|&fill| fill < goal && !self.closed);
        let is_first = before.not_sent_bytes <= fill.unwrap_or(0);
        self.written += bytes as u64;
        match (fill, self.ends.back_mut()) {
            (Some(_), Some(end)) => *end = self.written,
            _ => self.ends.push_back(self.written),
        }
        self.closed = false;
        if filled == Filled::Pushed {
            self.pushed = self.written;
        }
        filled == Filled::Pushed || (filled == Filled::Yes && is_first)
    }
    /// Bytes went with the SYN.
    pub fn wrote(&mut self, bytes: usize) {
        if bytes > 0 {
            self.written += bytes as u64;
            self.ends.push_back(self.written);
        }
    }
    /// Whether the next bytes begin a buffer, and then whether the one before was pushed.
    fn begins(&self, queue: &SendQueue) -> Option<bool> {
        let goal = self.goal_bytes(queue);
        let joins = self.last_fill(queue).is_some_and(|fill| fill < goal && !self.closed);
        (!joins && queue.not_sent_bytes > 0).then_some(self.pushed == self.written)
    }
    /// All that was written is pushed.
    pub fn push(&mut self) {
        self.pushed = self.written;
    }
    /// Whether enough is free to wake a writer: a third.
    pub fn is_writable(&self, queue: &SendQueue, low_water: usize) -> bool {
        let held = self.held_bytes(queue);
        let free = self.limit_bytes.saturating_sub(held);
        held < self.limit_bytes
            && free >= held / 2
            && (low_water == usize::MAX || queue.not_sent_bytes.saturating_mul(2) < low_water)
    }
}
