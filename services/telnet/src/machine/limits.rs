//! Limits on memory and output that a peer can cause.

/// Octets of one subnegotiation that are kept; a longer one is skipped and counted.
pub const SUBNEGOTIATION_BYTES: usize = 1024;
/// Octets of replies (to negotiation, STATUS, TERMINAL-TYPE …) that a peer can draw at once. A whole
/// start of a session by any known client draws under 300.
pub const REPLY_BURST_BYTES: u32 = 4096;
/// Octets of replies that it earns back in a second.
pub const REPLY_BYTES_PER_SECOND: u32 = 512;
/// Octets of output that may wait; a driver takes no more input from either end until they have gone.
pub const OUTPUT_BYTES: usize = 4096;
/// TIMING-MARKs of ours that may be unanswered.
pub const TIMING_MARKS: u8 = 8;
