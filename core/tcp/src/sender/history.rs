//! What a connection has met so far, kept apart because most meet nothing.

use crate::sender::search::Search;

/// Counts for instruments, and state that few connections need, but need as long as they live.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct History {
    pub retransmitted_bytes: u64,
    pub retransmitted_segments: u32,
    pub timeouts: u32,
    /// Number of reordering events of our data.
    pub reorderings: u32,
    /// Number of reports of duplicate data (D-SACK).
    pub duplicate_sacks: u32,
    /// Reductions of the window that a router asked for.
    pub congestion_marks: u32,
    /// The search for the path MTU, once it has begun.
    pub search: Option<Search>,
}
