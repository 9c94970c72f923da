//! The time of day for timestamp options and ICMP, as the owner of the host set it.

use inhost_base::Instant;
use inhost_wire::icmpv4::NONSTANDARD_TIME;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Offset from the host's own time to midnight, Universal Time.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Clock {
    /// Milliseconds to be added to the host's own time.
    offset_ms: Option<u64>,
}

impl Clock {
    /// Milliseconds since midnight UT. While the time of day is not set, those of the host's own time, marked as
    /// nonstandard.
    // spec: RFC1122 3.2.2.8-6
    pub fn time_of_day(&self, now: Instant) -> u32 {
        match self.offset_ms {
            Some(offset_ms) => ((now.as_millis() + offset_ms) % DAY_MS) as u32,
            None => (now.as_millis() % DAY_MS) as u32 | NONSTANDARD_TIME,
        }
    }
    /// Sets the time of day, see [`crate::Ip::set_time_of_day`].
    pub fn set(&mut self, now: Instant, since_midnight_ms: Option<u32>) {
        let own_ms = now.as_millis() % DAY_MS;
        let offset = |since_ms: u32| (u64::from(since_ms) % DAY_MS + DAY_MS - own_ms) % DAY_MS;
        self.offset_ms = since_midnight_ms.map(offset);
    }
}
