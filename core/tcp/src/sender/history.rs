//! What a connection has met so far, kept apart because most meet nothing.
use crate::sender::search::Search;

/// Counts for instruments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct History {
    pub retransmitted_bytes: u64,
    pub retransmitted_segments: u32,
    pub timeouts: u32,
    /// How often data overtook other data of ours on its way.
    pub reorderings: u32,
    /// Reports of data that came twice.
    pub duplicate_sacks: u32,
    /// Reductions of the window that a router asked for.
    pub congestion_marks: u32,
    /// The search for the path's largest segment, once begun.
    pub search: Option<Search>,
}
