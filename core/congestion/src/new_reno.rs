//! Congestion avoidance by adding one segment a round trip and halving at a loss (RFC 5681 §3.1, RFC 6582).

use crate::CongestionWindow;

/// What a loss leaves, in percent (RFC 5681 §3.1, equation 4).
const LOSS_LEAVES_PERCENT: u32 = 50;
/// What a mark leaves, in percent (RFC 8511 §3): a marking queue is short, so less is needed to empty it.
const MARK_LEAVES_PERCENT: u32 = 80;

#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct NewReno {
    /// Acknowledged since the window last grew.
    counted_bytes: u32,
}

impl NewReno {
    // spec: RFC5681 3.1-10
    pub fn acknowledged(&mut self, window: &mut CongestionWindow, bytes: u32) {
        let grows = window.slow_start_bytes(bytes);
        window.window_bytes += grows;
        let bytes = bytes - grows;
        self.counted_bytes = self.counted_bytes.saturating_add(bytes);
        // A whole window acknowledged is a segment more (RFC 5681 §3.1, by bytes as RFC 3465 §2.1).
        if self.counted_bytes >= window.window_bytes {
            self.counted_bytes -= window.window_bytes;
            window.window_bytes += window.segment_bytes;
        }
    }
    pub fn lost(&mut self, window: &mut CongestionWindow, in_flight_bytes: u32) {
        self.counted_bytes = 0;
        window.threshold_bytes = window.threshold_of(in_flight_bytes, LOSS_LEAVES_PERCENT).0;
    }
    /// A mark. True when the window is to be less than two segments.
    pub fn marked(&mut self, window: &mut CongestionWindow, in_flight_bytes: u32) -> bool {
        self.counted_bytes = 0;
        let (threshold_bytes, is_less) = window.threshold_of(in_flight_bytes, MARK_LEAVES_PERCENT);
        window.threshold_bytes = threshold_bytes;
        is_less
    }
}
