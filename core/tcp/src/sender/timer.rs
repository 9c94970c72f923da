//! The retransmission timer (RFC 6298); while the peer's window holds data back, the persist timer (RFC 9293 §3.8.6.1).

use crate::common::Common;
use inhost_base::Instant;
use inhost_event::TcpState;

/// The retransmission timer.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct RetransmissionTimer {
    /// When it expires; [`Instant::FAR_FUTURE`] while it does not run.
    at: Instant,
    /// When the peer last acknowledged data, or when data began to wait for that.
    progress_at: Instant,
}

impl RetransmissionTimer {
    /// One that does not run.
    pub fn new(now: Instant) -> Self {
        RetransmissionTimer { at: Instant::FAR_FUTURE, progress_at: now }
    }
    /// When it expires; [`Instant::FAR_FUTURE`] while it does not run.
    pub fn at(&self) -> Instant {
        self.at
    }
    /// When the peer last acknowledged data, or when data began to wait for that.
    pub fn progress_at(&self) -> Instant {
        self.progress_at
    }
    /// The peer acknowledged something at `at`, or something begins to wait for that.
    pub fn progressed(&mut self, at: Instant) {
        self.progress_at = at;
    }
    /// It expires at `at`.
    pub fn set(&mut self, at: Instant) {
        self.at = at;
    }
    /// It expires at `at` at the latest.
    pub fn bring_forward(&mut self, at: Instant) {
        self.at = self.at.min(at);
    }
    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.at != Instant::FAR_FUTURE
    }
    /// Stops it.
    pub fn stop(&mut self) {
        self.at = Instant::FAR_FUTURE;
    }
    /// Restarts the retransmission timer. It never outlasts the user timeout.
    // spec: RFC6298 5-1
    #[inline]
    pub fn arm(&mut self, common: &Common, now: Instant) {
        // The first of a SYN need not be doubled.
        let linear =
            if common.state() == TcpState::SynSent { common.config().syn_linear_timeouts } else { 0 };
        let doublings = common.round_trip().backoff().saturating_sub(linear);
        self.at = now + common.round_trip().timeout_after(doublings, common.config());
        let ends_at = self.progress_at + common.user_timeout();
        if ends_at > now {
            self.at = self.at.min(ends_at);
        }
    }
    /// The next attempt is at `at`, or when the user time-out is over.
    pub fn retry_at(&mut self, common: &Common, at: Instant) {
        self.at = at.min(self.progress_at + common.config().user_timeout);
    }
}
