//! The receive sequence space, `RCV.*` of RFC 9293 §3.3.1.

use crate::numbers::Visit;
use inhost_base::Sequence;

/// The receive sequence space (RFC 9293 §3.3.1).
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct ReceiveSpace {
    /// `IRS`
    pub initial: Sequence,
    /// `RCV.NXT`
    pub next: Sequence,
    /// `RCV.NXT + RCV.WND`: the furthest that was offered. It never moves back.
    pub edge: Sequence,
    /// The last acknowledgment sent.
    pub acknowledged: Sequence,
    /// `RCV.UP`: after the last urgent byte; at or before the read position when nothing is urgent.
    pub urgent: Sequence,
}

impl ReceiveSpace {
    pub fn numbers(&mut self, visit: Visit<'_>) {
        let ReceiveSpace { initial: _, next, edge, acknowledged, urgent } = self;
        visit("RCV.NXT", next);
        visit("the offered edge", edge);
        visit("the last acknowledgment sent", acknowledged);
        visit("RCV.UP", urgent);
    }
}
