//! How much a write is given room for in the `linux` profile.
//!
//! Linux counts buffers, not bytes: a write fills one buffer of up to a segmentation's worth after the other, and asks
//! whether there is room only when it begins a new one. So what a write takes is a multiple of that size, and a little
//! more than the limit. Buffers grow with the congestion window while the application waits for room.

use inhost_base::{Duration, Instant};
use inhost_tcp::Info;
use std::collections::VecDeque;

/// What a buffer costs beside its bytes.
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
#[derive(Clone, Debug)]
pub(crate) struct SendBuffer {
    limit_bytes: usize,
    most_bytes: usize,
    /// The application fixed the limit.
    fixed: bool,
    /// The last write found no room, which is what makes room worth telling.
    pub wanted: bool,
    /// Where each buffer ends; the first begins at `acknowledged`.
    ends: VecDeque<u64>,
    /// What follows the last buffer must not be joined with it.
    closed: bool,
    written: u64,
    pushed: u64,
    largest_window_bytes: u32,
    /// Since when a writer waits for room while nothing is left to send, and for how long in all before.
    starved_since: Option<Instant>,
    starved: Duration,
}

/// What a write does to the buffer that it goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Filled {
    /// There is room left in it.
    No,
    Yes,
    /// It is full, and what waits is to be sent.
    Pushed,
}

/// Where the connection stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    acknowledged: u64,
    sent: u64,
}

impl SendBuffer {
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
            starved_since: None,
            starved: Duration::ZERO,
        }
    }
    pub fn fix(&mut self, limit_bytes: usize) {
        self.limit_bytes = limit_bytes;
        self.fixed = true;
    }
    fn place(&self, info: &Info) -> Place {
        let back = |bytes: usize| self.written.saturating_sub(bytes as u64);
        Place { acknowledged: back(info.send_queue_bytes), sent: back(info.not_sent_bytes) }
    }
    /// Takes in what the peer did since: what is acknowledged is freed, and a buffer that was too small grows.
    pub fn follow(&mut self, info: &Info) {
        self.largest_window_bytes = self.largest_window_bytes.max(info.send_window_bytes);
        let acknowledged = self.place(info).acknowledged;
        while self.ends.front().is_some_and(|&end| end <= acknowledged) {
            self.ends.pop_front();
        }
    }
    /// Keeps account of the time for which the buffer, and nothing else, kept data from being sent.
    pub fn account(&mut self, info: &Info, now: Instant) {
        let starves = self.wanted && info.not_sent_bytes == 0;
        match (starves, self.starved_since) {
            (true, None) => self.starved_since = Some(now),
            (false, Some(since)) if !self.wanted => {
                self.starved += now.since(since);
                self.starved_since = None;
            }
            _ => {}
        }
    }
    /// That time.
    pub fn starved(&self, now: Instant) -> Duration {
        self.starved + self.starved_since.map_or(Duration::ZERO, |since| now.since(since))
    }
    /// Grows with the congestion window, which happens when there is room again that somebody waited for.
    pub fn grow(&mut self, info: &Info) {
        if self.fixed {
            return;
        }
        let mss = usize::from(info.peer_segment_bytes.max(info.send_segment_bytes));
        let buffer = (mss + SEGMENT_EXTRA_BYTES).next_power_of_two() + BUFFER_HEAD_BYTES;
        let window = (info.congestion_window_bytes / u32::from(info.send_segment_bytes).max(1)) as usize;
        let segments = LEAST_SEGMENTS.max(window).max(usize::from(info.reordering_segments) + 1);
        let wanted = 2 * segments * buffer;
        if wanted > self.limit_bytes {
            self.limit_bytes = wanted.min(self.most_bytes).max(self.limit_bytes);
        }
    }
    /// What is held, as Linux counts it.
    pub fn held_bytes(&self, info: &Info) -> usize {
        let sent = self.place(info).sent;
        let unsent_buffers = self.ends.iter().filter(|&&end| end > sent).count();
        info.send_queue_bytes + OVERHEAD_BYTES * (info.bursts_in_flight + unsent_buffers)
    }
    /// The size up to which a buffer is filled.
    fn goal_bytes(&self, info: &Info) -> usize {
        let mss = usize::from(info.send_segment_bytes).max(1);
        let window = self.largest_window_bytes;
        let half = if window > SMALL_WINDOW_BYTES { window / 2 } else { window };
        let most = if half == 0 { LARGEST_BYTES } else { LARGEST_BYTES.min(half as usize) };
        (most / mss).max(1) * mss
    }
    /// How many bytes may be written next without asking again: the rest of the last buffer, or a new one; 0 when
    /// there is no room.
    pub fn room_bytes(&self, info: &Info, low_water: usize) -> usize {
        let goal = self.goal_bytes(info);
        let rest = match self.last_fill(info) {
            Some(fill) if fill < goal && !self.closed => goal - fill,
            _ => 0,
        };
        if rest > 0 {
            return rest;
        }
        let full = self.held_bytes(info) >= self.limit_bytes || info.not_sent_bytes >= low_water;
        if full { 0 } else { goal }
    }
    /// Bytes of the last buffer that were not sent, if there are any to join others to.
    fn last_fill(&self, info: &Info) -> Option<usize> {
        let place = self.place(info);
        let before = self.ends.iter().rev().nth(1).copied().unwrap_or(place.acknowledged);
        let start = before.max(place.sent);
        self.ends.back().filter(|&&end| end > start).map(|&end| (end - start) as usize)
    }
    /// Whether `bytes` more, as [`SendBuffer::room_bytes`] allowed, fill a buffer, and whether it is pushed at once
    /// because half the largest window was written since the last push.
    pub fn filled(&self, bytes: usize, info: &Info) -> Filled {
        let goal = self.goal_bytes(info);
        let fill = self.last_fill(info).filter(|&fill| fill < goal && !self.closed).unwrap_or(0);
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
    pub fn took(&mut self, bytes: usize, filled: Filled, before: &Info) -> bool {
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
    pub fn begins(&self, info: &Info) -> Option<bool> {
        let goal = self.goal_bytes(info);
        let joins = self.last_fill(info).is_some_and(|fill| fill < goal && !self.closed);
        (!joins && info.not_sent_bytes > 0).then_some(self.pushed == self.written)
    }
    /// All that was written is pushed.
    pub fn push(&mut self) {
        self.pushed = self.written;
    }
    /// What comes next begins a buffer of its own: MSG_EOR.
    pub fn close_last(&mut self) {
        self.closed = true;
    }
    /// Whether so much is free that a writer is told: a third.
    pub fn is_writable(&self, info: &Info, low_water: usize) -> bool {
        let held = self.held_bytes(info);
        let free = self.limit_bytes.saturating_sub(held);
        held < self.limit_bytes
            && free >= held / 2
            && (low_water == usize::MAX || info.not_sent_bytes.saturating_mul(2) < low_water)
    }
}
