//! The receive sequence space, `RCV.*` of RFC 9293 §3.3.1.

use inhost_base::{Offset, Sequence};

/// The receive sequence space (RFC 9293 §3.3.1).
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ReceiveSpace {
    /// `IRS`: the number of the peer's SYN on the wire.
    initial: Sequence,
    /// `RCV.NXT`
    next: Offset,
    /// `RCV.WND`: what was offered beyond `next`.
    window: u32,
    /// What was received since the last acknowledgment.
    unacknowledged_bytes: u32,
    /// Payload of what counts as a full-sized segment of the peer's.
    segment_bytes: u16,
    /// Bits by which our windows are shifted.
    scale: u8,
    /// FINs among what was received; a peer that repeats its own with another number may send more than one.
    fins: u8,
    /// `RCV.UP`: after the last urgent byte; at or before the read position when nothing is urgent.
    urgent: Offset,
}

impl ReceiveSpace {
    /// That of a peer of which nothing is known.
    pub fn new(scale: u8, segment_bytes: u16) -> ReceiveSpace {
        ReceiveSpace { scale, segment_bytes, ..ReceiveSpace::default() }
    }
    /// The peer's SYN has come, with `initial` as its number.
    pub fn begin(&mut self, initial: Sequence) {
        let next = Offset::SYN + 1;
        *self = ReceiveSpace { initial, next, unacknowledged_bytes: 1, urgent: next, ..*self };
    }
    /// The peer does not scale windows, so that ours are not scaled either.
    pub fn forgo_scale(&mut self) {
        self.scale = 0;
    }
    /// Bits by which our windows are shifted.
    pub fn scale(&self) -> u8 {
        self.scale
    }
    /// Payload of what counts as a full-sized segment of the peer's.
    pub fn segment_bytes(&self) -> u16 {
        self.segment_bytes
    }
    /// Full-sized segments of the peer's have so much payload, as far as is known.
    pub fn assume_segments_of(&mut self, bytes: u16) {
        self.segment_bytes = bytes;
    }
    /// `RCV.UP`
    pub fn urgent(&self) -> Offset {
        self.urgent
    }
    /// What is not read yet before `end` is urgent.
    pub fn urge_to(&mut self, end: Offset) {
        self.urgent = self.urgent.max(end);
    }
    /// Each number of the peer's on the wire is `by` higher from now on.
    pub fn renumber(&mut self, by: u32) {
        self.initial = self.initial + by;
    }
    /// `RCV.NXT`
    pub fn next(&self) -> Offset {
        self.next
    }
    /// `RCV.NXT` on the wire.
    pub fn next_sequence(&self) -> Sequence {
        self.sequence(self.next)
    }
    /// `RCV.NXT + RCV.WND`: the furthest that was offered. It never moves back.
    pub fn edge(&self) -> Offset {
        self.next + self.window
    }
    /// `RCV.WND`: what is left of the window that was offered.
    pub fn window(&self) -> u32 {
        self.window
    }
    /// What was received since the last acknowledgment, SYN and FIN counted.
    pub fn unacknowledged_bytes(&self) -> u32 {
        self.unacknowledged_bytes
    }
    /// The last acknowledgment sent.
    pub fn acknowledged(&self) -> Offset {
        self.next.back(self.unacknowledged_bytes)
    }
    /// The peer's FIN is here.
    pub fn receive_fin(&mut self) {
        self.receive(1);
        self.fins = self.fins.saturating_add(1);
    }
    /// Bytes of the peer's stream that are here.
    pub fn received_bytes(&self) -> u64 {
        self.next.count().saturating_sub(1 + u64::from(self.fins))
    }
    /// The next `bytes` bytes are here.
    #[inline(always)]
    pub fn receive(&mut self, bytes: u32) {
        self.next = self.next + bytes;
        self.window = self.window.saturating_sub(bytes);
        self.unacknowledged_bytes = self.unacknowledged_bytes.wrapping_add(bytes);
    }
    /// An acknowledgment of all that is here was sent.
    pub fn acknowledge(&mut self) {
        self.unacknowledged_bytes = 0;
    }
    /// A window of `bytes` bytes was offered.
    pub fn offer(&mut self, bytes: u32) {
        self.window = self.window.max(bytes);
    }
    /// The number of `at` on the wire.
    pub fn sequence(&self, at: Offset) -> Sequence {
        at.sequence(self.initial)
    }
    /// What a number on the wire stands for.
    pub fn offset(&self, sequence: Sequence) -> Offset {
        self.next.nearest(sequence, self.initial)
    }
}
