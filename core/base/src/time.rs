//! Instants and durations in integer nanoseconds. The caller supplies every instant; nothing reads a clock.

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};

/// A point in time, in nanoseconds since an origin that the host's driver chooses.
///
/// ```
/// use inhost_base::{Duration, Instant};
/// let sent = Instant::from_millis(10);
/// let acknowledged = sent + Duration::from_micros(1_500);
/// assert_eq!(acknowledged.since(sent), Duration::from_micros(1_500));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

/// A length of time in nanoseconds. Arithmetic saturates; it never wraps.
///
/// ```
/// use inhost_base::Duration;
/// let timeout = Duration::from_secs(1).times(3).divided_by(2);
/// assert_eq!(timeout.as_millis(), 1_500);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Duration(u64);

/// When something is due, for a timer that may run or not; by default never.
///
/// ```
/// use inhost_base::{Deadline, Instant};
/// let mut timer = Deadline::default();
/// assert!(!timer.is_set() && !timer.has_come(Instant::from_millis(1)));
/// timer.set(Instant::from_millis(10));
/// timer.bring_forward(Instant::from_millis(5));
/// assert!(timer.has_come(Instant::from_millis(5)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Deadline(Instant);

impl Default for Deadline {
    fn default() -> Self {
        Deadline::NEVER
    }
}

impl Deadline {
    /// Of a timer that does not run.
    pub const NEVER: Deadline = Deadline(Instant::FAR_FUTURE);

    /// Due at `at`.
    #[inline(always)]
    pub const fn at(at: Instant) -> Self {
        Deadline(at)
    }
    /// The instant; [`Instant::FAR_FUTURE`] for never.
    #[inline(always)]
    pub const fn instant(self) -> Instant {
        self.0
    }
    /// Whether the timer runs.
    #[inline(always)]
    pub fn is_set(self) -> bool {
        self.0 != Instant::FAR_FUTURE
    }
    /// Whether it is due by `now`.
    #[inline(always)]
    pub fn has_come(self, now: Instant) -> bool {
        self.0 <= now
    }
    /// It is due at `at`.
    #[inline(always)]
    pub fn set(&mut self, at: Instant) {
        self.0 = at;
    }
    /// It is due at `at` at the latest.
    #[inline(always)]
    pub fn bring_forward(&mut self, at: Instant) {
        self.0 = self.0.min(at);
    }
    /// The timer stops.
    #[inline(always)]
    pub fn stop(&mut self) {
        self.0 = Instant::FAR_FUTURE;
    }
}

/// As one more than its nanoseconds, so that [`Instant::FAR_FUTURE`], which is frequent, takes one byte.
#[cfg(feature = "freeze")]
impl serde::Serialize for Instant {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.wrapping_add(1).serialize(serializer)
    }
}
#[cfg(feature = "freeze")]
impl<'de> serde::Deserialize<'de> for Instant {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(|number| Instant(number.wrapping_sub(1)))
    }
}

impl Instant {
    /// The origin.
    pub const ZERO: Instant = Instant(0);
    /// Later than any instant that occurs.
    pub const FAR_FUTURE: Instant = Instant(u64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }
    /// The instant `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Instant(millis.saturating_mul(1_000_000))
    }
    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Whole microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// Whole milliseconds since the origin.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Time since `earlier`, or zero if the clock went back.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// Longer than anything that is waited for.
    pub const MAX: Duration = Duration(u64::MAX);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Duration(nanos)
    }
    /// `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Duration(micros.saturating_mul(1_000))
    }
    /// `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Duration(millis.saturating_mul(1_000_000))
    }
    /// `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Duration(secs.saturating_mul(1_000_000_000))
    }
    /// The length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// The length in whole microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// The length in whole milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// The length in whole seconds.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000_000
    }
    /// The length in seconds, for display and statistics.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// `self * factor`, saturating.
    pub const fn times(self, factor: u64) -> Self {
        Duration(self.0.saturating_mul(factor))
    }
    /// `self / divisor`; a divisor of zero counts as one.
    pub const fn divided_by(self, divisor: u64) -> Self {
        Duration(self.0 / if divisor == 0 { 1 } else { divisor })
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_add(rhs.0))
    }
}
impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}
impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_sub(rhs.0))
    }
}
impl Add for Duration {
    type Output = Duration;
    fn add(self, rhs: Duration) -> Duration {
        Duration(self.0.saturating_add(rhs.0))
    }
}
impl AddAssign for Duration {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}
impl Sub for Duration {
    type Output = Duration;
    fn sub(self, rhs: Duration) -> Duration {
        Duration(self.0.saturating_sub(rhs.0))
    }
}
impl SubAssign for Duration {
    fn sub_assign(&mut self, rhs: Duration) {
        *self = *self - rhs;
    }
}
impl From<core::time::Duration> for Duration {
    fn from(d: core::time::Duration) -> Self {
        Duration(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}
impl From<Duration> for core::time::Duration {
    fn from(d: Duration) -> Self {
        core::time::Duration::from_nanos(d.0)
    }
}
impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self)
    }
}
impl fmt::Display for Duration {
    /// The largest unit that keeps three figures: `1.25 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{:.3} us", nanos / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.3} ms", nanos / 1e6),
            _ => write!(f, "{:.3} s", nanos / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_goes_back_gives_no_time() {
        assert_eq!(Instant::from_millis(1).since(Instant::from_millis(2)), Duration::ZERO);
        assert_eq!(Instant::FAR_FUTURE + Duration::from_secs(1), Instant::FAR_FUTURE);
    }
}
