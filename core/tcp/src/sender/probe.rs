//! Tail loss probes: if no acknowledgment arrives for two round trips, one segment asks for an acknowledgment, so that a
//! loss at the end of a flight is found before the RTO expires (RFC 8985 §7).

use super::Sender;
use crate::RecoveryState;
use crate::common::Common;
use crate::flags::ConnectionFlags;
use inhost_base::{Deadline, Duration, Instant, Offset};
use inhost_event::TcpState;

/// The worst delay of a peer's acknowledgment (RFC 8985 §7.2, WCDelAckT).
const WORST_ACKNOWLEDGMENT_DELAY: Duration = Duration::from_millis(200);

/// State of the outstanding probe (RFC 8985 §5.3).
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct TailProbe {
    /// When the next probe is due.
    at: Deadline,
    /// `TLP.end_seq`: SND.NXT after the probe was sent; `None` while none is outstanding.
    end: Option<Offset>,
    /// `TLP.is_retrans`: the probe retransmits data from here.
    again_from: Option<Offset>,
    /// The peer got the probe twice.
    was_duplicate: bool,
    /// No round trip was measured since the last probe was sent.
    unmeasured: bool,
}

impl TailProbe {
    /// When the next probe is due.
    pub fn deadline(&self) -> Deadline {
        self.at
    }
    /// None is due; one that is outstanding may still show that it repaired a loss (RFC 8985 §7.4.2).
    pub fn stop(&mut self) {
        self.at.stop();
    }
    /// No probe is outstanding or due.
    pub fn end(&mut self) {
        *self = TailProbe { unmeasured: self.unmeasured, ..TailProbe::default() };
    }
    /// A round trip was measured.
    pub fn measured(&mut self) {
        self.unmeasured = false;
    }
    /// Whether a probe is outstanding.
    pub fn is_out(&self) -> bool {
        self.end.is_some()
    }
    /// An acknowledgment up to `unacknowledged` arrived while a probe is outstanding (RFC 8985 §7.4.2). `pure`: it has no
    /// new information. True when the probe repaired a loss, for which congestion control has to reduce the window.
    // spec: RFC8985 7.4.2-1
    #[inline]
    pub fn acknowledged(&mut self, unacknowledged: Offset, pure: bool) -> bool {
        let Some(end) = self.end else { return false };
        if unacknowledged < end {
            return false;
        }
        if self.again_from.is_none() || self.was_duplicate {
            self.end();
            return false;
        }
        if end < unacknowledged {
            self.end();
            return true;
        }
        if pure {
            // Both copies arrived.
            self.end();
        }
        false
    }
    /// The probe was sent; SND.NXT is `next`. `again_from`: where it begins if it is a retransmission.
    // spec: RFC8985 7.3-5
    pub fn sent(&mut self, next: Offset, again_from: Option<Offset>) {
        *self = TailProbe { end: Some(next), again_from, unmeasured: true, ..TailProbe::default() };
    }
    /// Whether another probe may be sent: none is outstanding, and a round trip was measured since the last (RFC 8985
    /// §7.3).
    // spec: RFC8985 7.3-1a
    pub fn may_leave(&self) -> bool {
        !self.unmeasured && !self.is_out()
    }
    /// The peer got the data from `start` to `end` twice; true where that is the probe's own doing.
    pub fn explains(&mut self, start: Offset, end: Offset) -> bool {
        let (from, to) = (self.again_from, self.end);
        let explains = from.is_some_and(|from| from <= start) && to.is_some_and(|to| end <= to);
        self.was_duplicate |= explains;
        explains
    }
}

impl Sender {
    /// Restarts the probe timer after new data was sent, or after an acknowledgment (RFC 8985 §7.2).
    // spec: RFC8985 4-4, 7.2-1, 7.2-2, 7.2-3, 7.3-1
    #[inline]
    pub fn arm_tail_probe(&mut self, common: &Common, now: Instant) {
        let allowed = self.may_probe_tail(common);
        let Some(buffers) = &mut self.buffers else {
            if allowed && self.leaves_out_record(common) && self.space.has_outstanding() {
                // One timer stands for both until it expires.
                self.timer.bring_forward(now + probe_timeout(common, true));
            }
            return;
        };
        if !allowed || buffers.flight.records().is_empty() || buffers.tail_probe.is_out() {
            buffers.tail_probe.stop();
            return;
        }
        let timeout = probe_timeout(common, buffers.flight.records().len() == 1);
        // No later than the time-out, whose work it is to save.
        buffers.tail_probe.at.set((now + timeout).min(self.timer.instant()));
    }
    /// Whether the state allows a probe.
    // RFC 8985 §4: what the probe brings back only RACK can read.
    #[inline]
    pub fn may_probe_tail(&self, common: &Common) -> bool {
        let reads =
            common.config().tail_loss_probe && common.config().rack && common.has(ConnectionFlags::SACK);
        reads
            && common.state() != TcpState::SynReceived
            && self.recovery.state == RecoveryState::Open
            && self.space.window() > 0
    }
}

/// How long an acknowledgment is waited for before a probe is sent (RFC 8985 §7.2, PTO).
#[inline(always)]
fn probe_timeout(common: &Common, is_alone: bool) -> Duration {
    match common.round_trip().smoothed() {
        None => Duration::from_secs(1),
        // One segment alone may wait for the peer's delayed acknowledgment.
        Some(smoothed) if is_alone => smoothed.times(2) + WORST_ACKNOWLEDGMENT_DELAY,
        Some(smoothed) => smoothed.times(2) + common.config().recovery_timer_slack,
    }
}
