//! The sequence numbers that a connection keeps: one list of all of them, and the rules that keep each comparable.
//!
//! Sequence numbers compare correctly over a distance of less than 2^31 (RFC 9293 §3.4). A number that is kept while
//! the stream moves on becomes wrong after 2 GiB, unless something brings it along. The rules:
//!
//! - Send space: a number behind `SND.UNA` answers one question, whether it is behind. Each time the count of
//!   acknowledged bytes passes a multiple of [`STEP_BYTES`], every number further behind than [`LAG_BYTES`] moves up to
//!   that distance. With the largest window (RFC 7323 §2.3) no distance reaches 2^31.
//! - Receive space: the window bounds `RCV.NXT`, the edge and the last acknowledgment. The urgent pointer follows what
//!   is read or discarded, `SND.WL1` follows each acceptable segment, and out-of-order data moves with the window.
//! - `IRS` and the number of our SYN are read only during the handshake.
//!
//! Each part lists its own numbers and destructures itself in full, so that a new one cannot be forgotten.

use inhost_base::Sequence;

/// Bytes acknowledged between two looks at all kept numbers, as a power of two.
pub(crate) const STEP_SHIFT: u32 = 28;
pub(crate) const STEP_BYTES: u32 = 1 << STEP_SHIFT;
/// The furthest behind `SND.UNA` that a look leaves a number.
pub(crate) const LAG_BYTES: u32 = 1 << 29;
/// The largest window (RFC 7323 §2.3).
pub(crate) const LARGEST_WINDOW_BYTES: u32 = 1 << 30;
/// The furthest that an urgent pointer reaches beyond the window.
pub(crate) const URGENT_REACH_BYTES: u32 = 1 << 16;

/// What is done with each number, by name.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&'static str, &mut Sequence);
