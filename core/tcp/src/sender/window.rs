//! The peer's window (RFC 9293 §3.8.6): updates, closing and reopening.

use super::Sender;
use crate::arrival::Arrival;
use crate::common::Common;
use crate::flags::SenderFlags;
use inhost_base::{Instant, Offset};

impl Sender {
    /// Whether a segment neither acknowledges anything nor tells of a larger window.
    pub fn learns_nothing_from(&self, arrival: &Arrival<'_>) -> bool {
        let window = self.scaled(arrival.header.window);
        arrival.acknowledgment == self.space.unacknowledged()
            && self.space.knows_window(arrival.first, window)
    }
    /// A window update (RFC 9293 §3.10.7.4): takes the peer's window from a segment that is not older than the one of the last
    /// update.
    // spec: RFC9293 MUST-34 (the edge may move back; what lies beyond it waits)
    // spec: RFC7323 2.3-3
    #[inline(always)]
    pub fn take_window(
        &mut self,
        common: &mut Common,
        (sequence, acknowledgment, field): (Offset, Offset, u16),
        now: Instant,
    ) {
        let newer = self.space.is_window_news(sequence, acknowledgment);
        let was_closed = self.space.window() == 0;
        if was_closed {
            // The peer answers probes: it may keep its window closed as long as it likes.
            self.progress_at = now;
        }
        if common.policy().window_probes_are_empty && !self.space.has_outstanding() && self.timer.is_set() {
            // The persist timer restarts with each acknowledgment.
            self.arm_timer(common, now);
        }
        if !newer {
            return;
        }
        let window = self.scaled(field);
        if common.policy().same_sequence_only_widens_window
            && self.space.narrows(sequence, acknowledgment, window)
        {
            return;
        }
        self.space.set_window(sequence, acknowledgment, window);
        if was_closed && window > 0 {
            self.window_opened(common, now);
        }
    }
    /// Data that the closed window refused is retransmitted at once, and the persist timer's back-off is cleared.
    pub fn window_opened(&mut self, common: &mut Common, now: Instant) {
        self.flags.remove(SenderFlags::WINDOW_PROBE);
        if common.policy().window_probes_are_empty && self.space.has_outstanding() {
            // The data in flight was retransmitted into the closed window, and the timer covers it.
            return;
        }
        common.round_trip_mut().end_back_off();
        self.timer.stop();
        if self.space.has_outstanding() {
            if !self.recovery.state.has_end() {
                self.retransmit_longer_than(0);
            }
            self.arm_timer(common, now);
        }
    }
}
