//! What both halves of a connection read, and neither changes: its configuration, its state, and what was agreed.

use crate::Config;
use crate::marks::Marks;
use inhost_base::Instant;
use inhost_event::TcpPhase;
use std::sync::Arc;

/// What the sender and the receiver have in common.
#[derive(Debug)]
pub(crate) struct Common {
    pub config: Arc<Config>,
    pub phase: TcpPhase,
    pub marks: Marks,
    /// Largest payload that the peer said it takes.
    pub peer_mss: u16,
    /// Largest payload that the path allows, options not counted.
    pub path_mss: u16,
    /// The same when the connection began: what the peer was offered.
    pub offered_mss: u16,
    /// Added to the host's time to make our timestamps (RFC 7323 §5.4).
    pub timestamp_offset: u32,
}

impl Common {
    /// Our timestamp at `now`: milliseconds from an offset.
    // spec: RFC7323 4.1-1, 5.4-1, 5.4-2, 7.1-1
    pub fn timestamp(&self, now: Instant) -> u32 {
        (now.as_millis() as u32).wrapping_add(self.timestamp_offset)
    }
}
