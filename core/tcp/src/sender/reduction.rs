//! State of a congestion window reduction: its rate (RFC 9937), and the evidence by which it is undone (RFC 3522, RFC 3708).

use inhost_base::Offset;

/// Proportional rate reduction (RFC 9937 §6): how much may be sent for the data delivered.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct RateReduction {
    /// `RecoverFS`: in flight when it began.
    start_bytes: u32,
    /// `prr_delivered`
    delivered_bytes: u32,
    /// `prr_out`
    sent_bytes: u32,
}

impl RateReduction {
    /// Begins with `outstanding_bytes` sent and not acknowledged, of which the peer had `sacked_bytes` before the
    /// acknowledgment that showed the loss, and with what that one delivered.
    pub fn new(outstanding_bytes: u32, sacked_bytes: u32) -> Self {
        let start_bytes = outstanding_bytes.saturating_sub(sacked_bytes).max(1);
        RateReduction { start_bytes, ..RateReduction::default() }
    }
    /// Whether it has begun.
    #[cfg(feature = "freeze")]
    pub fn has_begun(&self) -> bool {
        self.start_bytes > 0
    }
    /// `RecoverFS`, `prr_delivered` and `prr_out`.
    #[cfg(feature = "detail")]
    pub fn figures(&self) -> [u32; 3] {
        [self.start_bytes, self.delivered_bytes, self.sent_bytes]
    }
    /// `bytes` were sent.
    pub fn sent(&mut self, bytes: u32) {
        self.sent_bytes = self.sent_bytes.saturating_add(bytes);
    }
    /// An acknowledgment delivered `delivered` bytes: returns the window, with `in_flight` bytes in the network. `good`:
    /// it advanced `SND.UNA` and showed no further loss (`SafeACK`).
    // spec: RFC5681 3.2-10, 4.3-2; RFC8985 9.3-2
    pub fn window(
        &mut self,
        delivered: u32,
        in_flight: u32,
        threshold: u32,
        segment: u32,
        good: bool,
    ) -> u32 {
        self.delivered_bytes = self.delivered_bytes.saturating_add(delivered);
        let mut allowance = if in_flight > threshold {
            let share = u64::from(self.delivered_bytes) * u64::from(threshold);
            let due = share.div_ceil(u64::from(self.start_bytes)).min(u64::from(u32::MAX)) as u32;
            due.saturating_sub(self.sent_bytes)
        } else {
            let owed = self.delivered_bytes.saturating_sub(self.sent_bytes).max(delivered);
            (threshold - in_flight).min(owed + if good { segment } else { 0 })
        };
        if self.sent_bytes == 0 {
            // The first retransmission is sent at once.
            allowance = allowance.max(segment);
        }
        in_flight.saturating_add(allowance)
    }
}

/// Evidence that a reduction was spurious, as far as it has come in.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct UndoState {
    /// `SND.UNA` when it began; `None` when there is nothing to take back.
    since: Option<Offset>,
    /// Retransmissions since then of which no duplicate was reported; negative before the first.
    unexplained: i32,
    /// Our timestamp on the first of them.
    first_stamp: Option<u32>,
}

impl UndoState {
    /// A reduction begins. `has_retransmissions`: retransmissions of an earlier one are still in flight.
    pub fn begin(unacknowledged: Offset, has_retransmissions: bool) -> Self {
        // With old retransmissions about, duplicates would explain too much.
        let unexplained = if has_retransmissions { i32::MAX / 2 } else { -1 };
        UndoState { since: Some(unacknowledged), unexplained, first_stamp: None }
    }
    /// A segment was retransmitted.
    pub fn retransmitted(&mut self, stamp: u32) {
        if self.since.is_some() {
            self.unexplained = self.unexplained.max(0).saturating_add(1);
            self.first_stamp.get_or_insert(stamp);
        }
    }
    /// The peer reports that it got `segments` segments twice, which end at `end`.
    pub fn duplicate(&mut self, end: Offset, segments: u32) {
        if self.since.is_some_and(|since| since < end) && self.unexplained > 0 {
            self.unexplained = self.unexplained.saturating_sub_unsigned(segments).max(0);
        }
    }
    /// Every retransmission was of something that had arrived (RFC 3708 §2).
    pub fn all_were_duplicates(&self) -> bool {
        self.since.is_some() && self.unexplained == 0
    }
    /// Whether the acknowledgment is for a segment sent before the first retransmission (RFC 3522 §3.2).
    pub fn original_arrived(&self, echo: Option<u32>) -> bool {
        let (Some(_), Some(stamp), Some(echo)) = (self.since, self.first_stamp, echo) else { return false };
        (echo.wrapping_sub(stamp) as i32) < 0
    }
    /// The reduction stands, or was undone.
    pub fn end(&mut self) {
        *self = UndoState::default();
    }
}
