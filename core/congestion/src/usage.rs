//! Whether the window was in use: only then does its size prove anything (RFC 9438 §5.8, RFC 7661 in spirit).

use crate::CongestionWindow;

/// What the sender made of its window within the current window's worth of data.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Usage {
    /// Most that was in flight, or what was when the window last stopped the sender; the top bit tells that it did.
    in_flight_bytes: u32,
    /// Low half of the byte count at which this window's worth of data ends.
    until: u32,
}

const LIMITED: u32 = 1 << 31;

impl Usage {
    /// A batch left. Between the two counts lies what is outstanding, less than 2^31 bytes.
    pub fn transmitted(
        &mut self,
        in_flight_bytes: u32,
        limited: bool,
        acknowledged_bytes: u64,
        sent_bytes: u64,
    ) {
        let over = (acknowledged_bytes as u32).wrapping_sub(self.until) < 1 << 31;
        // With the top bit set nothing is more than what it was.
        if over || limited || in_flight_bytes > self.in_flight_bytes {
            let bit = if limited { LIMITED } else { 0 };
            *self = Usage { in_flight_bytes: in_flight_bytes & !LIMITED | bit, until: sent_bytes as u32 };
        }
    }
    /// Whether the window may grow. In slow start it may be twice what was in flight, so that an application that
    /// writes more each round is never behind.
    // spec: RFC9438 4.6-3, 5.8-1
    pub fn allows_growth(&self, window: &CongestionWindow) -> bool {
        let limited = self.in_flight_bytes & LIMITED != 0;
        limited || (window.in_slow_start() && window.window_bytes / 2 < self.in_flight_bytes)
    }
}
