//! Congestion avoidance by adding one segment a round trip and halving at a loss (RFC 5681 §3.1).

use super::CongestionWindow;

#[derive(Debug, Default)]
pub(crate) struct NewReno {
    /// Acknowledged since the window last grew.
    counted_bytes: u32,
}

impl NewReno {
    pub fn acknowledged(&mut self, window: &mut CongestionWindow, bytes: u32) {
        self.counted_bytes = self.counted_bytes.saturating_add(bytes);
        // A whole window acknowledged is a segment more (RFC 5681 §3.1, equation 3 by bytes).
        if self.counted_bytes >= window.window_bytes {
            self.counted_bytes -= window.window_bytes;
            window.window_bytes += window.segment_bytes;
        }
    }
    pub fn lost(&mut self, window: &mut CongestionWindow, in_flight_bytes: u32) {
        self.counted_bytes = 0;
        window.threshold_bytes = (in_flight_bytes / 2).max(window.least_bytes());
    }
}
