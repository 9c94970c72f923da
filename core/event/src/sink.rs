//! The sink: the receiver of events, and the mask of kinds that it wants.

use crate::{Event, Layer};
use alloc::collections::VecDeque;
use inhost_base::Instant;

/// A set of kinds of event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mask(u32);

bitflags::bitflags! {
    impl Mask: u32 {
        /// Frames received, sent and dropped.
        const LINK = 1;
        /// Frames dropped, without the others of [`Mask::LINK`].
        const DROP = 1 << 6;
        /// Neighbours, routes, fragments, ICMP.
        const IP = 1 << 1;
        /// Every TCP segment in and out.
        const SEGMENT = 1 << 2;
        /// Phases of connections, their beginning and end.
        const CONNECTION = 1 << 3;
        /// Retransmissions, time-outs, windows.
        const RECOVERY = 1 << 4;
        /// Changes of the cause of waiting.
        const CAUSE = 1 << 5;
        /// The account of each connection at its end.
        const ENDED = 1 << 7;
        /// The layers that work is done for: [`Sink::enters`] and [`Sink::leaves`].
        const LAYER = 1 << 8;
    }
}

/// A receiver of events.
pub trait Sink {
    /// The kinds it wants; others are never built.
    fn mask(&self) -> Mask;
    /// Takes an event that happened at `at`.
    fn record(&mut self, at: Instant, event: Event);
    /// A received frame is looked at on the slow path: what is recorded next is about it. Called for sinks that want
    /// [`Mask::DROP`].
    fn looks_at(&mut self, frame: &[u8]) {
        let _ = frame;
    }
    /// What follows is done for `layer`, until [`Sink::leaves`]; such spans nest. Called for sinks that want
    /// [`Mask::LAYER`], which may read a clock here.
    fn enters(&mut self, layer: Layer) {
        let _ = layer;
    }
    /// The span that was entered last is over.
    fn leaves(&mut self) {}
}

impl dyn Sink + '_ {
    /// Builds and records an event of `kind` when the sink wants it.
    pub fn emit(&mut self, kind: Mask, at: Instant, build: impl FnOnce() -> Event) {
        if self.mask().intersects(kind) {
            self.record(at, build());
        }
    }
    /// Does `work` for `layer`, and says so if `marks`: the caller has asked once whether the sink wants [`Mask::LAYER`].
    ///
    /// Where nothing is to be said it costs two tests of `marks`.
    #[inline(always)]
    pub fn within<R>(&mut self, marks: bool, layer: Layer, work: impl FnOnce(&mut dyn Sink) -> R) -> R {
        if marks {
            self.begin_layer(layer);
        }
        let result = work(self);
        if marks {
            self.end_layer();
        }
        result
    }
    /// [`Sink::enters`], out of the way of those who have nothing to say.
    #[cold]
    #[inline(never)]
    pub fn begin_layer(&mut self, layer: Layer) {
        self.enters(layer);
    }
    /// [`Sink::leaves`], likewise.
    #[cold]
    #[inline(never)]
    pub fn end_layer(&mut self) {
        self.leaves();
    }
}

/// Wants nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ignore;

impl Sink for Ignore {
    fn mask(&self) -> Mask {
        Mask::empty()
    }
    fn record(&mut self, _: Instant, _: Event) {}
}

/// Keeps the latest events, for tests and post-mortems.
///
/// ```
/// use inhost_base::{Instant, LinkId};
/// use inhost_event::{Event, FrameReceived, Mask, Recorded};
/// let mut recorded = Recorded::new(Mask::LINK, 100);
/// let frame = FrameReceived { link: LinkId(1), length_bytes: 60 };
/// recorded.emit(Mask::LINK, Instant::ZERO, || Event::FrameReceived(frame));
/// recorded.emit(Mask::IP, Instant::ZERO, || unreachable!("events that are not wanted are not built"));
/// assert_eq!(recorded.events().collect::<Vec<_>>(), [&(Instant::ZERO, Event::FrameReceived(frame))]);
/// ```
#[derive(Debug)]
pub struct Recorded {
    mask: Mask,
    limit: usize,
    events: VecDeque<(Instant, Event)>,
}

impl Recorded {
    /// Keeps the last `limit` events of the kinds in `mask`.
    pub fn new(mask: Mask, limit: usize) -> Self {
        Recorded { mask, limit: limit.max(1), events: VecDeque::new() }
    }
    /// Builds and records an event of `kind` when it is wanted.
    pub fn emit(&mut self, kind: Mask, at: Instant, build: impl FnOnce() -> Event) {
        <dyn Sink>::emit(self, kind, at, build);
    }
    /// The recorded events, oldest first.
    pub fn events(&self) -> impl Iterator<Item = &(Instant, Event)> {
        self.events.iter()
    }
    /// Removes all recorded events.
    pub fn clear(&mut self) {
        self.events.clear();
    }
}

impl Sink for Recorded {
    fn mask(&self) -> Mask {
        self.mask
    }
    fn record(&mut self, at: Instant, event: Event) {
        if self.events.len() == self.limit {
            self.events.pop_front();
        }
        self.events.push_back((at, event));
    }
}
