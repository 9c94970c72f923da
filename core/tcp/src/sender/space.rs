//! The send sequence space, `SND.*` of RFC 9293 §3.3.1.

use crate::numbers::Visit;
use inhost_base::Sequence;

/// A window up to this is not halved (Linux's TCP_MSS_DEFAULT).
const SMALL_WINDOW_BYTES: u32 = 536;

/// The send sequence space (RFC 9293 §3.3.1).
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SendSpace {
    /// `SND.UNA`
    pub unacknowledged: Sequence,
    /// `SND.NXT`: after all that was ever sent.
    pub next: Sequence,
    /// `SND.WND`, in bytes.
    // spec: RFC9293 MUST-1 (unsigned)
    pub window: u32,
    /// `SND.WL1`
    pub window_sequence: Sequence,
    /// `SND.WL2`
    pub window_acknowledgment: Sequence,
    /// Largest window that the peer offered.
    pub largest_window: u32,
    /// `SND.UP`: after the last urgent byte; at or before `unacknowledged` when nothing is urgent.
    pub urgent: Sequence,
    /// After the last pushed byte.
    pub push: Sequence,
}

impl SendSpace {
    /// The right edge of the peer's window. It is counted from the acknowledgment of the same segment, not from
    /// `SND.UNA`, which a segment that was overtaken may have advanced since.
    #[inline]
    pub fn edge(&self) -> Sequence {
        self.window_acknowledgment + self.window
    }
    /// Whether something is sent and not acknowledged.
    #[inline]
    pub fn has_outstanding(&self) -> bool {
        self.unacknowledged != self.next
    }
    /// Half of the largest window that the peer has offered, or a small one whole.
    pub fn window_bound(&self) -> u32 {
        let window = self.largest_window;
        if window > SMALL_WINDOW_BYTES { window / 2 } else { window }
    }
    /// Bytes sent and not acknowledged, SYN and FIN counted.
    #[inline]
    pub fn outstanding_bytes(&self) -> u32 {
        self.next.since(self.unacknowledged)
    }
    /// Whether a window with the same numbers as the last one is smaller, and not closed.
    #[cold]
    pub fn narrows(&self, sequence: Sequence, acknowledgment: Sequence, window: u32) -> bool {
        let same = self.window_acknowledgment == acknowledgment && self.window_sequence == sequence;
        same && 0 < window && window < self.window
    }
    /// Visits the numbers of the send space; see [`crate::numbers`].
    pub fn numbers(&mut self, visit: Visit<'_>) {
        let SendSpace {
            unacknowledged,
            next,
            window: _,
            window_sequence: _, // It lies in the receive space.
            window_acknowledgment,
            largest_window: _,
            urgent,
            push,
        } = self;
        visit("SND.UNA", unacknowledged);
        visit("SND.NXT", next);
        visit("SND.WL2", window_acknowledgment);
        visit("SND.UP", urgent);
        visit("the end of what is pushed", push);
    }
}
