//! The queue before a line: how much it holds, what it drops and what it marks.

mod codel;
mod fq_codel;
mod tail_drop;

pub use codel::CodelConfig;
pub use fq_codel::FqCodelConfig;

use std::collections::VecDeque;

use inhost_base::Instant;
use inhost_buf::Packet;

use crate::buffers::Buffers;
use crate::ecn;
use crate::link::{LinkStatistics, LossCause, Losses};
use codel::Codel;
use fq_codel::FqCodel;

/// A queue. Begin with [`QueueConfig::default`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueConfig {
    /// What may wait, the frame that is being sent not included. Default: 1,000 packets.
    pub limit: QueueLimit,
    /// What becomes of a frame for which there is no room. Default: the device refuses it. Only tail drop refuses.
    pub when_full: WhenFull,
    /// Queue discipline and early drop. Default: FIFO without early drop.
    pub discipline: Discipline,
    /// Marks packets that come while at least so much waits (a step threshold, as data centres do: RFC 8257 §3.1).
    /// Default: none.
    pub mark_from: Option<QueueLimit>,
}

impl Default for QueueConfig {
    fn default() -> Self {
        QueueConfig {
            limit: QueueLimit::Packets(1000),
            when_full: WhenFull::Refuse,
            discipline: Discipline::TailDrop,
            mark_from: None,
        }
    }
}

impl QueueConfig {
    /// A queue in order of so many packets that drops the next.
    pub const fn tail_drop(packets: usize) -> QueueConfig {
        QueueConfig {
            limit: QueueLimit::Packets(packets),
            when_full: WhenFull::Drop,
            discipline: Discipline::TailDrop,
            mark_from: None,
        }
    }
}

/// A length of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueLimit {
    /// In frames.
    Packets(usize),
    /// In bytes, link headers included.
    Bytes(usize),
}

impl QueueLimit {
    /// Whether so much is at the limit or beyond it.
    fn is_reached(self, packets: usize, bytes: usize) -> bool {
        match self {
            QueueLimit::Packets(limit) => packets >= limit,
            QueueLimit::Bytes(limit) => bytes >= limit,
        }
    }
    /// Whether `bytes` more fit. An empty queue takes any one frame.
    fn has_room(self, packets: usize, held_bytes: usize, bytes: usize) -> bool {
        packets == 0
            || match self {
                QueueLimit::Packets(limit) => packets < limit,
                QueueLimit::Bytes(limit) => held_bytes + bytes <= limit,
            }
    }
}

/// What a full queue does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenFull {
    /// The device says so, and the host keeps the frame: the queue is the host's own. At a switch it is a drop.
    Refuse,
    /// The frame is lost: the queue is a router's somewhere on the way.
    Drop,
}

/// Queue disciplines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Discipline {
    /// In order; what finds no room is lost.
    TailDrop,
    /// In order, and kept short by its delay (RFC 8289).
    Codel(CodelConfig),
    /// A queue for each flow, each kept short by its delay (RFC 8290).
    FqCodel(FqCodelConfig),
}

/// A frame that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) frame: Packet,
    pub(crate) since: Instant,
}

/// What a queue works with besides itself: where its frames' memory goes, and what is counted.
pub(crate) struct Around<'a> {
    pub(crate) buffers: &'a mut Buffers,
    pub(crate) statistics: &'a mut LinkStatistics,
    pub(crate) losses: &'a mut Losses,
    pub(crate) is_ethernet: bool,
}

impl Around<'_> {
    /// Marks a frame; false when its transport does not understand that.
    fn marks(&mut self, frame: &mut Packet) -> bool {
        let is_marked = ecn::mark(frame.bytes_mut(), self.is_ethernet);
        self.statistics.marked += u64::from(is_marked);
        is_marked
    }
    fn drops_early(&mut self, frame: Packet) {
        self.statistics.dropped_early += 1;
        self.losses.add(frame, LossCause::DroppedEarly, self.buffers);
    }
    fn overflows(&mut self, frame: Packet) {
        self.statistics.overflowed += 1;
        self.losses.add(frame, LossCause::QueueFull, self.buffers);
    }
}

/// The frames that wait before a line.
#[derive(Debug)]
pub(crate) struct Queue {
    frames: Frames,
    packets: usize,
    bytes: usize,
}

#[derive(Debug)]
enum Frames {
    InOrder(VecDeque<Waiting>),
    Codel(Box<Codel>),
    FqCodel(Box<FqCodel>),
}

impl Queue {
    /// An empty queue; `salt` spreads flows.
    pub(crate) fn new(config: &QueueConfig, salt: u64) -> Queue {
        let frames = match config.discipline {
            Discipline::TailDrop => Frames::InOrder(VecDeque::new()),
            Discipline::Codel(codel) => Frames::Codel(Box::new(Codel::new(codel))),
            Discipline::FqCodel(fq_codel) => Frames::FqCodel(Box::new(FqCodel::new(fq_codel, salt))),
        };
        Queue { frames, packets: 0, bytes: 0 }
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.packets == 0
    }
    /// Frames that wait.
    pub(crate) fn len(&self) -> usize {
        self.packets
    }
    /// Whether a frame of `bytes` would find room.
    pub(crate) fn has_room(&self, config: &QueueConfig, bytes: usize) -> bool {
        config.limit.has_room(self.packets, self.bytes, bytes)
    }
    /// Takes a frame, or drops one.
    pub(crate) fn push(
        &mut self,
        mut frame: Packet,
        now: Instant,
        config: &QueueConfig,
        around: &mut Around<'_>,
    ) {
        let has_room = self.has_room(config, frame.len());
        if !has_room && !matches!(self.frames, Frames::FqCodel(_)) {
            around.overflows(frame);
            return;
        }
        if config.mark_from.is_some_and(|from| from.is_reached(self.packets, self.bytes)) {
            around.marks(&mut frame);
        }
        self.packets += 1;
        self.bytes += frame.len();
        let waiting = Waiting { frame, since: now };
        match &mut self.frames {
            Frames::InOrder(frames) => tail_drop::push(frames, waiting),
            Frames::Codel(codel) => codel.push(waiting),
            Frames::FqCodel(fq_codel) => {
                fq_codel.push(waiting, around.is_ethernet);
                if !has_room {
                    let (packets, bytes) = fq_codel.drop_from_longest(around);
                    self.packets -= packets;
                    self.bytes -= bytes;
                }
            }
        }
    }
    /// The frame that is sent next, at `now`.
    pub(crate) fn pop(&mut self, now: Instant, around: &mut Around<'_>) -> Option<Packet> {
        let (frame, left) = match &mut self.frames {
            Frames::InOrder(frames) => {
                let frame = tail_drop::pop(frames)?;
                (self.packets, self.bytes) = (self.packets - 1, self.bytes - frame.len());
                return Some(frame);
            }
            Frames::Codel(codel) => (codel.pop(now, around), codel.length()),
            Frames::FqCodel(fq_codel) => (fq_codel.pop(now, around), fq_codel.length()),
        };
        (self.packets, self.bytes) = left;
        frame
    }
    /// Loses everything, and begins anew as another kind of queue.
    pub(crate) fn restart(&mut self, config: &QueueConfig, salt: u64, around: &mut Around<'_>) {
        let mut before = std::mem::replace(self, Queue::new(config, salt));
        while let Some(frame) = before.pop(Instant::ZERO, around) {
            around.overflows(frame);
        }
    }
}
