//! The send sequence space, `SND.*` of RFC 9293 §3.3.1.

use inhost_base::{Offset, Sequence};
use inhost_wire::tcp::SackBlocks;

/// The send sequence space (RFC 9293 §3.3.1).
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SendSpace {
    /// `ISS`: the number of our SYN on the wire.
    initial: Sequence,
    /// `SND.UNA`
    unacknowledged: Offset,
    /// `SND.NXT` beyond `SND.UNA`, SYN and FIN counted.
    outstanding_bytes: u32,
    /// `SND.UP` beyond `SND.UNA`; 0 when nothing is urgent.
    urgent_bytes: u32,
    /// The end of the last pushed byte beyond `SND.UNA`.
    pushed_bytes: u32,
    /// `SND.WND`, in bytes.
    // spec: RFC9293 MUST-1 (unsigned)
    window: u32,
    /// `SND.WL1`
    window_sequence: Offset,
    /// `SND.WL2`
    window_acknowledgment: Offset,
    /// Largest window that the peer offered.
    largest_window: u32,
}

impl SendSpace {
    /// That of a connection whose SYN has `initial` as its number.
    pub fn new(initial: Sequence) -> SendSpace {
        SendSpace { initial, ..SendSpace::default() }
    }
    /// Each number of ours on the wire is `by` higher from now on.
    pub fn renumber(&mut self, by: u32) {
        self.initial = self.initial + by;
    }
    /// `SND.WND`, in bytes.
    pub fn window(&self) -> u32 {
        self.window
    }
    /// Largest window that the peer offered.
    pub fn largest_window(&self) -> u32 {
        self.largest_window
    }
    /// `SND.UNA`
    pub fn unacknowledged(&self) -> Offset {
        self.unacknowledged
    }
    /// `SND.NXT`: after all that was ever sent.
    pub fn next(&self) -> Offset {
        self.unacknowledged + self.outstanding_bytes
    }
    /// `SND.UP`: after the last urgent byte; `SND.UNA` when nothing is urgent.
    pub fn urgent(&self) -> Offset {
        self.unacknowledged + self.urgent_bytes
    }
    /// After the last pushed byte, or `SND.UNA`.
    pub fn push(&self) -> Offset {
        self.unacknowledged + self.pushed_bytes
    }
    /// Everything before `to` is acknowledged.
    #[inline(always)]
    pub fn acknowledge(&mut self, to: Offset) {
        let bytes = to.after(self.unacknowledged);
        self.unacknowledged = to;
        self.outstanding_bytes = self.outstanding_bytes.saturating_sub(bytes);
        self.pushed_bytes = self.pushed_bytes.saturating_sub(bytes);
        if self.urgent_bytes > 0 {
            self.urgent_bytes = self.urgent_bytes.saturating_sub(bytes);
        }
    }
    /// Everything before `end` is sent.
    pub fn sent_to(&mut self, end: Offset) {
        self.outstanding_bytes = self.outstanding_bytes.max(end.after(self.unacknowledged));
    }
    /// The data before `end` is urgent.
    pub fn urge_to(&mut self, end: Offset) {
        self.urgent_bytes = end.since(self.unacknowledged);
    }
    /// The data before `end` is pushed.
    pub fn push_to(&mut self, end: Offset) {
        self.pushed_bytes = end.since(self.unacknowledged);
    }
    /// The peer's window, as a segment with these numbers tells it.
    #[inline(always)]
    pub fn set_window(&mut self, sequence: Offset, acknowledgment: Offset, window: u32) {
        (self.window_sequence, self.window_acknowledgment) = (sequence, acknowledgment);
        self.window = window;
        self.largest_window = self.largest_window.max(window);
    }
    /// The window of the peer's SYN, which is never scaled (RFC 7323 §2.2). It counts from the first byte, whether or not that SYN
    /// acknowledges ours.
    pub fn begin_window(&mut self, window: u32) {
        self.largest_window = 0;
        self.set_window(Offset::SYN, self.unacknowledged + 1, window);
    }
    /// Our SYN is acknowledged, and what went with it, by the segment that told the window.
    pub fn acknowledge_syn(&mut self, to: Offset) {
        self.acknowledge(to);
        self.window_acknowledgment = to;
    }
    /// Whether a segment of these numbers tells the window no less lately than the one that told it last. RFC 9293 compares
    /// sequence numbers first. But acknowledgments only grow, so where they differ they show the order better: a
    /// retransmitted segment bears an old number and a new window.
    #[inline(always)]
    pub fn is_window_news(&self, sequence: Offset, acknowledgment: Offset) -> bool {
        self.window_acknowledgment < acknowledgment
            || (self.window_acknowledgment == acknowledgment && self.window_sequence <= sequence)
    }
    /// Whether a segment that begins at `first` is no newer than the one that told the window, and tells of no larger one.
    pub fn knows_window(&self, first: Offset, window: u32) -> bool {
        self.window_sequence >= first && window <= self.window
    }
    /// The number of `at` on the wire.
    pub fn sequence(&self, at: Offset) -> Sequence {
        at.sequence(self.initial)
    }
    /// What a number on the wire stands for.
    pub fn offset(&self, sequence: Sequence) -> Offset {
        self.unacknowledged.nearest(sequence, self.initial)
    }
    /// Bytes that a segment with this acknowledgment number acknowledges anew; more than are outstanding where it is old
    /// or of nothing that was sent.
    pub fn acknowledges(&self, number: Sequence) -> u32 {
        number.since(self.sequence(self.unacknowledged))
    }
    /// What the blocks of a SACK option stand for.
    pub fn blocks(&self, sack: &SackBlocks) -> SackBlocks<Offset> {
        sack.iter().map(|&(start, end)| (self.offset(start), self.offset(end))).collect()
    }
    /// The right edge of the peer's window. It is counted from the acknowledgment of the same segment, not from
    /// `SND.UNA`, which a segment that was overtaken may have advanced since.
    pub fn edge(&self) -> Offset {
        self.window_acknowledgment + self.window
    }
    /// Where a segment without data begins: not beyond the peer's right edge, where it would not be acceptable.
    pub fn first_without_data(&self) -> Offset {
        self.next().min(self.unacknowledged.max(self.edge()))
    }
    /// Whether something is sent and not acknowledged.
    pub fn has_outstanding(&self) -> bool {
        self.outstanding_bytes > 0
    }
    /// Bytes sent and not acknowledged, SYN and FIN counted.
    pub fn outstanding_bytes(&self) -> u32 {
        self.outstanding_bytes
    }
    /// Whether a window with the same numbers as the last one is smaller, and not closed.
    #[cold]
    pub fn narrows(&self, sequence: Offset, acknowledgment: Offset, window: u32) -> bool {
        let same = self.window_acknowledgment == acknowledgment && self.window_sequence == sequence;
        same && 0 < window && window < self.window
    }
}
