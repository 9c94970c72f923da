//! The figures that every algorithm moves.

/// Largest congestion window: no window of the peer's can be larger (RFC 7323 §2.3).
pub(crate) const MOST_BYTES: u32 = 1 << 30;
/// Initial window in bytes beyond which segments are counted no more (RFC 6928 §2).
const INITIAL_BYTES: u32 = 14_600;
/// The same for a window of two to four segments (RFC 3390 §1).
const SMALLER_BYTES: u32 = 4_380;

/// The figures that every algorithm moves, in bytes of payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct CongestionWindow {
    /// `cwnd`: what may be in flight.
    pub window_bytes: u32,
    /// `ssthresh`: below it slow start, from it on congestion avoidance.
    pub threshold_bytes: u32,
    /// `SMSS`: payload of a full segment.
    pub segment_bytes: u32,
}

impl CongestionWindow {
    /// No window yet, and nothing known of the path.
    // spec: RFC5681 3.1-6
    pub(crate) const CLOSED: CongestionWindow =
        CongestionWindow { window_bytes: 0, threshold_bytes: MOST_BYTES, segment_bytes: 0 };

    /// Whether the window doubles each round trip.
    pub fn in_slow_start(&self) -> bool {
        self.window_bytes < self.threshold_bytes
    }
    /// Whether no loss has told yet what the path carries.
    // spec: RFC5681 3.1-6
    pub fn is_unexplored(&self) -> bool {
        self.threshold_bytes >= MOST_BYTES
    }
    /// The least threshold after a loss (RFC 5681 §3.1): two segments.
    pub fn least_bytes(&self) -> u32 {
        2 * self.segment_bytes
    }
    /// The window in whole segments.
    pub fn segments(&self) -> u32 {
        self.window_bytes / self.segment_bytes.max(1)
    }
    /// Of `bytes` acknowledged, those by which slow start grows the window, up to the threshold; the others are for congestion
    /// avoidance.
    // Receivers acknowledge many segments at once, and the pacer spreads what they free: all bytes count
    // (RFC 9406 §4.2, L unlimited).
    // spec: RFC5681 3.1-8a
    pub(crate) fn slow_start_bytes(&self, bytes: u32) -> u32 {
        bytes.min(self.threshold_bytes.saturating_sub(self.window_bytes))
    }
    /// The window that somebody's own algorithm set, kept between one segment and the largest that there is.
    pub(crate) fn open_bytes(&self) -> u32 {
        self.window_bytes.clamp(self.segment_bytes, MOST_BYTES)
    }
    /// RFC 7661 §4.4.3: the threshold of a window that is given up for idleness, three quarters of itself at least.
    pub(crate) fn threshold_kept_bytes(&self) -> u32 {
        self.threshold_bytes.max(self.window_bytes / 4 * 3)
    }
    /// The threshold after a loss, `percent` of `bytes`, at least two segments; and whether it would have been less.
    // spec: RFC5681 3.1-7
    pub(crate) fn threshold_of(&self, bytes: u32, percent: u32) -> (u32, bool) {
        let left = (u64::from(bytes) * u64::from(percent) / 100) as u32;
        (left.max(self.least_bytes()), left < self.least_bytes())
    }
}

/// RFC 6928 §2: so many segments, but no more than the larger of two segments and 14,600 bytes.
// spec: RFC6928 2-1
pub(crate) fn initial_window_bytes(segments: u8, segment_bytes: u32) -> u32 {
    let asked = u32::from(segments.max(1)) * segment_bytes;
    asked.min((2 * segment_bytes).max(INITIAL_BYTES)).max(segment_bytes)
}

/// RFC 3390 §1: four segments, but no more than the larger of two and 4,380 bytes.
pub(crate) fn smaller_restart_bytes(segment_bytes: u32) -> u32 {
    (4 * segment_bytes).min((2 * segment_bytes).max(SMALLER_BYTES))
}
