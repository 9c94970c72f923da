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

use super::Sender;
use crate::numbers::LAG_BYTES;
use crate::numbers::Visit;
use inhost_base::Sequence;

impl Sender {
    /// Visits every number of the send space that means something now.
    pub fn visit_send_space(&mut self, visit: Visit<'_>) {
        let Sender {
            buffers,
            history,
            round_trip,
            space,
            recovery,
            // The rest holds no number: times, counts and sizes.
            congestion: _,
            retransmit_at: _,
            progress_at: _,
            sent_at: _,
            acknowledged_bytes: _,
            least_echo: _,
            keep_alive_probes: _,
            marks: _,
            scale: _,
        } = self;
        space.numbers(visit);
        recovery.numbers(visit);
        round_trip.numbers(visit);
        if let Some(buffers) = buffers {
            buffers.numbers(visit);
        }
        if let Some(search) = history.as_mut().and_then(|history| history.search.as_mut()) {
            search.numbers(visit);
        }
    }
    /// Brings numbers that have fallen far behind `SND.UNA` nearer. It is called once for each [`STEP_BYTES`]
    /// acknowledged.
    #[cold]
    pub fn pull_numbers_along(&mut self) {
        let least = self.space.unacknowledged.back(LAG_BYTES);
        self.visit_send_space(&mut |_, number| *number = least.later(*number));
    }
    /// After the last number of the send space that can be in use: what is sent, or queued with a FIN behind it.
    pub fn send_space_end(&self) -> Sequence {
        self.space.next.later(self.stream_end() + 2)
    }
}
