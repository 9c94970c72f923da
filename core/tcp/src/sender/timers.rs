//! What happens when time passes: one deadline, the least of a handful.

use super::Sender;
use crate::common::Common;
use crate::marks::SendMarks;
use crate::phase::Allows;
use inhost_base::{Duration, Instant};
use inhost_event::TcpPhase;

impl Sender {
    /// Probes, of the window or of an idle peer, that the peer has not answered.
    pub fn unanswered_probes(&self, common: &Common) -> u8 {
        let probes_window = self.space.window == 0 && !common.phase.opens();
        if probes_window { self.round_trip.backoff } else { self.keep_alive_probes }
    }
    /// Starts the retransmission timer anew; it never outlasts the user's patience.
    // spec: RFC6298 5-1
    #[inline]
    pub fn arm_retransmission(&mut self, common: &Common, now: Instant) {
        self.retransmit_at = now + self.patience_of_one(common);
        if common.phase.opens() || !common.config.policy.user_timeout_from_retransmission {
            self.bound_by_patience(common, now);
        }
    }
    /// The timer does not outlast the user's patience.
    #[inline]
    pub fn bound_by_patience(&mut self, common: &Common, now: Instant) {
        let patience = self.progress_at + common.patience();
        if patience > now {
            self.retransmit_at = self.retransmit_at.min(patience);
        }
    }
    /// The time-out as it stands. The first of a SYN need not be doubled.
    #[inline]
    fn patience_of_one(&self, common: &Common) -> Duration {
        let linear = if common.phase == TcpPhase::SynSent { common.config.syn_linear_timeouts } else { 0 };
        self.round_trip.timeout_after(self.round_trip.backoff.saturating_sub(linear), &common.config)
    }
    /// Whether a SYN was sent as often as it may be.
    pub fn syn_is_given_up(&self, common: &Common) -> bool {
        let most = match common.phase {
            TcpPhase::SynSent => common.config.syn_retries.saturating_add(common.config.syn_linear_timeouts),
            TcpPhase::SynReceived => common.config.syn_answer_retries,
            _ => return false,
        };
        self.round_trip.backoff >= most
    }
    /// The persist timer lets go what silly-window avoidance holds back.
    pub fn override_small(&mut self, common: &Common) {
        self.marks.set(SendMarks::OVERRIDE);
        if let Some(buffers) = &mut self.buffers {
            buffers.tail_probe.persists = common.config.policy.tail_probes_are_full_segments;
        }
    }
}
