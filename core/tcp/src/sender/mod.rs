//! The sending half of a connection: its sequence space, what is in flight, and how fast more follows.
//!
//! Where its state goes: what each connection has at all times, into [`Sender`] (whose size `tests/sizes.rs` limits); what only
//! matters while something is queued or in flight, into [`SendBuffers`], which is freed when nothing is, and which a FIN alone
//! does not need; what few connections need, but need then for good, into [`History`].

pub(crate) mod acknowledgment;
pub(crate) mod buffers;
pub(crate) mod burst;
mod commit;
#[cfg(feature = "detail")]
mod detail;
pub(crate) mod flight;
pub(crate) mod handshake;
pub(crate) mod loss;
pub(crate) mod next;
mod pace;
pub(crate) mod probe;
pub(crate) mod reduction;
mod run;
pub(crate) mod search;
pub(crate) mod space;
mod timer;
mod view;
mod window;
mod write;

pub use crate::sender::view::{SendQueue, SendView};

use crate::flags::SenderFlags;
use crate::sender::buffers::FastOpen;
use crate::sender::burst::WriteBoundary;
use crate::sender::flight::Flight;
use crate::sender::probe::TailProbe;
use crate::sender::reduction::{RateReduction, UndoState};
use crate::sender::search::Search;
use crate::sender::space::SendSpace;
use crate::{Config, CongestionChoice, RecoveryState};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::ops::Range;
use inhost_base::{Deadline, Instant, Offset, Sequence};
use inhost_buf::{Pool, SendQueue as Queue};
use inhost_congestion::{Congestion, Pacer, RateSample};

/// The sending half: its sequence space, the data queued and in flight, and loss recovery.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Sender {
    /// Made when there is data to send, freed after [`crate::connection::timers::SHRINK_AFTER`] without.
    buffers: Option<Box<SendBuffers>>,
    /// Made when there is something to record.
    history: Option<Box<History>>,
    congestion: Congestion,
    /// The retransmission timer.
    timer: Deadline,
    /// When the peer last acknowledged data, or when data began to wait for that.
    progress_at: Instant,
    /// When data was last sent.
    sent_at: Instant,
    space: SendSpace,
    recovery: Recovery,
    /// Our timestamp at the last time-out, or at birth: an older echo is not a measure of the round trip.
    least_echo: u32,
    keep_alive_probes: u8,
    flags: SenderFlags,
    /// Bits by which the peer's windows are shifted.
    scale: u8,
}

/// State of loss recovery that is kept when nothing is in flight.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Recovery {
    state: RecoveryState,
    /// Duplicate acknowledgments, without SACK: each counts as a segment that has left the network.
    duplicates: u8,
    /// Whether the time-out was spurious is being found out (RFC 5682).
    forward: bool,
    /// Something was acknowledged since the last time-out.
    progressed: bool,
    /// What had been sent when the state was entered; acknowledging it ends it.
    recover: Offset,
}

/// What a sender keeps only while it has data, and then until it is idle: the send queue, and the state of the data in flight.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SendBuffers {
    /// From the first unacknowledged byte on.
    send: Queue,
    /// When bytes that were held back to fill a segment go as they are.
    aggregate_until: Deadline,
    /// While the connection opens fast.
    fast_open: Option<Box<FastOpen>>,
    /// Ends of bursts and records in the queue, in order.
    #[cfg_attr(feature = "freeze", serde(with = "inhost_base::freeze::with_capacity"))]
    boundaries: VecDeque<(Offset, WriteBoundary)>,
    /// Data up to here may be sent although it was not pushed.
    released: Option<Offset>,
    /// The burst of new data that was sent last.
    burst: Range<Offset>,
    /// The burst that was retransmitted last.
    retransmitted_burst: Range<Offset>,
    /// The end of the last segment that was not full.
    last_small: Option<Offset>,
    /// The data in flight.
    flight: Flight,
    tail_probe: TailProbe,
    reduction: RateReduction,
    undo: UndoState,
    /// When the reordering timer expires and overtaken segments count as lost.
    reorder_at: Deadline,
    /// Segments that have overtaken another on this path, which arrived after all.
    reordering: u16,
    pacer: Pacer,
    /// When the pace lets the next data go.
    pace_at: Deadline,
    /// The latest sample of the rate of delivery.
    rate: Option<RateSample>,
    /// Bytes that were acknowledged when the wait for an orphan's peer began.
    orphan_from_bytes: u64,
    /// The next retransmission is sent regardless of the congestion window.
    force: bool,
}

/// What few connections need, but need as long as they live: counts for instruments, and the search for the path MTU.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct History {
    retransmitted_bytes: u64,
    retransmitted_segments: u32,
    timeouts: u32,
    /// Number of reordering events of our data.
    reorderings: u32,
    /// Number of reports of duplicate data (D-SACK).
    duplicate_sacks: u32,
    /// Reductions of the window that a router asked for.
    congestion_marks: u32,
    /// Once it has begun.
    search: Option<Search>,
}

impl Sender {
    /// One that has sent nothing, and begins with `initial`. The path takes segments of `path_mss`; our timestamp is `stamp`.
    #[inline]
    pub fn new(config: &Config, initial: Sequence, path_mss: u16, stamp: u32, now: Instant) -> Self {
        let mut congestion = Congestion::new(&config.congestion);
        congestion.set_segment_bytes(u32::from(path_mss));
        congestion.set_spaced(config.pacing);
        Sender {
            buffers: None,
            history: None,
            congestion,
            timer: Deadline::NEVER,
            progress_at: now,
            sent_at: now,
            space: SendSpace::new(initial),
            recovery: Recovery::new(Offset::SYN),
            least_echo: stamp,
            keep_alive_probes: 0,
            flags: SenderFlags::default(),
            scale: 0,
        }
    }
    /// `SND.*`
    pub fn space(&self) -> &SendSpace {
        &self.space
    }
    /// The queues, and the data in flight, where there is any.
    pub fn buffers(&self) -> Option<&SendBuffers> {
        self.buffers.as_deref()
    }
    /// What the connection has met so far.
    fn history(&self) -> History {
        self.history.as_deref().copied().unwrap_or_default()
    }
    /// The retransmission timer.
    pub fn timer(&self) -> Deadline {
        self.timer
    }
    /// Where loss recovery stands.
    pub fn recovery_state(&self) -> RecoveryState {
        self.recovery.state
    }
    /// Whether one of these flags is set.
    pub fn has(&self, flags: SenderFlags) -> bool {
        self.flags.intersects(flags)
    }
    /// When data was last sent.
    pub fn sent_at(&self) -> Instant {
        self.sent_at
    }
    /// The peer's window as this field tells it.
    pub fn scaled(&self, window_field: u16) -> u32 {
        u32::from(window_field) << self.scale
    }
    /// Each number of ours on the wire is `by` higher from now on.
    pub fn renumber(&mut self, by: u32) {
        self.space.renumber(by);
    }
    /// Another congestion control, which begins with the present window.
    pub fn choose_congestion(&mut self, choice: &CongestionChoice) {
        self.congestion.choose(choice);
    }
    /// Whether nothing is queued or in flight.
    pub fn holds_nothing(&self) -> bool {
        self.buffers.as_ref().is_none_or(|buffers| buffers.are_empty())
    }
    /// All memory that is held, by capacity.
    pub fn held_bytes(&self) -> usize {
        let history = self.history.as_ref().map_or(0, |_| size_of::<History>());
        history + self.buffers.as_ref().map_or(0, |buffers| buffers.held_bytes())
    }
    /// Releases all memory to the pool. Gives how many transmissions the peer got since the queues were made.
    pub fn clear(&mut self, pool: &mut Pool) -> u32 {
        self.flags.remove(SenderFlags::PACED);
        let Some(mut buffers) = self.buffers.take() else { return 0 };
        self.congestion.tidy();
        buffers.send.clear(pool);
        buffers.flight.delivered_segments()
    }
    /// All is acknowledged, and nothing more is sent: no timer of loss recovery.
    pub fn stop(&mut self) {
        self.timer.stop();
        self.recovery.end();
    }
    /// The connection is over: no timers, nothing to send.
    pub fn end(&mut self, pool: &mut Pool) {
        self.stop();
        self.flags.remove(SenderFlags::EMPTY_SEGMENT_DUE);
        if let Some(buffers) = &mut self.buffers {
            buffers.send.clear(pool);
            buffers.flight.clear();
            buffers.tail_probe.end();
            (buffers.reorder_at, buffers.pace_at) = (Deadline::NEVER, Deadline::NEVER);
        }
    }
    /// Calls `act` with each packet of a thawed sender, and checks it.
    #[cfg(feature = "freeze")]
    pub fn thaw(
        &mut self,
        common: &crate::common::Common,
        act: inhost_buf::freeze::ThawPacket<'_>,
    ) -> Result<(), inhost_base::freeze::Invalid> {
        use {crate::common::MAX_SCALE, inhost_base::freeze::require, inhost_event::TcpState};
        let has_size = self.segment_bytes() > 0;
        if let Some(buffers) = &mut self.buffers {
            buffers.send.thaw(act)?;
            buffers.flight.check()?;
            buffers.pacer.check()?;
            let reduces =
                self.recovery.state == RecoveryState::Recovery && common.config().proportional_rate_reduction;
            require(!reduces || buffers.reduction.has_begun(), "a rate reduction")?;
            let (first, last) = (buffers.flight.records().front(), buffers.flight.records().back());
            let is_out = first.is_none_or(|first| self.space.unacknowledged() <= first.start)
                && last.is_none_or(|last| last.end <= self.space.next());
            require(is_out, "the place of a flight")?;
            require(first.is_none() || has_size, "the size of a flight's segments")?;
        }
        let is_closed = common.state() == TcpState::Closed;
        require(common.opens() || is_closed || has_size, "the size of a segment")?;
        // The SYN and the FIN are counted with the data.
        let most = u64::from(self.queued_bytes()) + 2;
        require(is_closed || u64::from(self.space.outstanding_bytes()) <= most, "data in flight")?;
        require(self.scale <= MAX_SCALE, "a window scale")?;
        self.congestion.check()
    }
    /// The box of queues, made when it is not there.
    #[inline]
    pub fn buffers_mut(&mut self) -> &mut SendBuffers {
        self.buffers.get_or_insert_default()
    }
    /// The same, made if it does not exist.
    fn history_mut(&mut self) -> &mut History {
        self.history.get_or_insert_default()
    }
    /// Bytes of the stream that the peer has acknowledged.
    #[inline]
    pub fn acknowledged_bytes(&self) -> u64 {
        let others = 1 + u64::from(self.flags.contains(SenderFlags::FIN_ACKNOWLEDGED));
        self.space.unacknowledged().count().saturating_sub(others)
    }
    /// Bytes in the send queue.
    pub fn queued_bytes(&self) -> u32 {
        self.buffers.as_ref().map_or(0, |buffers| buffers.send.len() as u32)
    }
    /// After the last byte of the stream so far. Meaningful from ESTABLISHED until our FIN is acknowledged.
    pub fn stream_end(&self) -> Offset {
        self.space.unacknowledged() + self.queued_bytes()
    }
    /// Payload of a full segment of ours.
    pub fn segment_bytes(&self) -> u32 {
        self.congestion.window().segment_bytes
    }
    /// Payload of a full segment with a SACK option of `sack_bytes`, which takes space from the data (RFC 9293 §3.7.1).
    #[inline]
    pub fn payload_limit(&self, sack_bytes: u32) -> u32 {
        let segment = self.segment_bytes();
        if sack_bytes == 0 { segment } else { segment.saturating_sub(sack_bytes).max(1) }
    }
    /// Bytes thought to be in the network.
    // spec: RFC5681 3.2-6; RFC6675 4-3
    #[inline]
    pub fn in_flight_bytes(&self) -> u32 {
        let outstanding = self.space.outstanding_bytes();
        let counted = u32::from(self.recovery.duplicates) * self.segment_bytes();
        let sums = self.sums();
        outstanding.saturating_sub(sums.sacked_bytes + sums.lost_bytes + counted)
    }
}
