//! When a message is tried again (RFC 5321 §4.5.4.1).

/// Times of attempts, in seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Schedule {
    /// Wait after the first failure. Default 5 minutes.
    pub first_s: u64,
    /// Longest wait; each is twice the one before. Default 4 hours.
    pub longest_s: u64,
    /// How long a message is tried. Default 5 days.
    pub expires_s: u64,
    /// After how long the sender is told that it takes long. Default 4 hours; 0 is never.
    pub warning_s: u64,
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule { first_s: 300, longest_s: 4 * 3600, expires_s: 5 * 86_400, warning_s: 4 * 3600 }
    }
}

impl Schedule {
    /// Wait after so many failures, at least one.
    ///
    /// ```
    /// let schedule = inhost_mail::queue::Schedule::default();
    /// assert_eq!([1, 2, 3, 99].map(|failures| schedule.wait_s(failures)), [300, 600, 1200, 14_400]);
    /// ```
    pub fn wait_s(&self, failures: u32) -> u64 {
        let doubled = self.first_s.saturating_mul(1 << failures.saturating_sub(1).min(20));
        doubled.min(self.longest_s).max(1)
    }
}
