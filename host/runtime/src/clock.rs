//! The monotonic clock and the entropy of the operating system.

use std::io;
use std::time;

use inhost_base::Instant;

const DAY_MS: u128 = 24 * 60 * 60 * 1000;

/// The system's monotonic clock, counted from when this was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: time::Instant,
}

impl Clock {
    /// A clock that stands a second after its origin, so that "a while ago" can be said from the start.
    #[allow(clippy::disallowed_methods)] // This is the one place of the runtime that reads the clock.
    pub fn start() -> Clock {
        let now = time::Instant::now();
        Clock { origin: now.checked_sub(time::Duration::from_secs(1)).unwrap_or(now) }
    }
    /// Nanoseconds from 1970 to the zero of this clock, by the system's calendar as it stands now.
    pub fn epoch_ns(&self) -> u64 {
        since_1970().saturating_sub(self.origin.elapsed()).as_nanos() as u64
    }
    /// Milliseconds since midnight, Universal Time, by the system's calendar.
    pub fn time_of_day_ms(&self) -> u32 {
        (since_1970().as_millis() % DAY_MS) as u32
    }
    /// The time.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.origin.elapsed().into()
    }
}

/// What the system's calendar says.
#[allow(clippy::disallowed_methods)] // As above.
fn since_1970() -> time::Duration {
    time::SystemTime::now().duration_since(time::UNIX_EPOCH).unwrap_or_default()
}

/// 32 bytes from the system's random source: the seed of a host.
pub fn entropy() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(seed)
}
