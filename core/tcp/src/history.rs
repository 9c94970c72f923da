//! What a connection has met so far, kept apart because most meet nothing.

/// Counts for instruments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct History {
    pub retransmitted_bytes: u64,
    /// Reports of data that came twice.
    pub duplicate_sacks: u32,
    /// Reductions of the window that a router asked for.
    pub congestion_marks: u32,
}
