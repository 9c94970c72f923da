//! The daytime service's line (RFC 867), from a count of seconds.

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};
use std::fmt;

const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// A moment as the daytime service tells it: `Saturday, November 21, 2026 07:52:53-UTC`, the first of the forms that
/// RFC 867 suggests. The local time zone is not used: the service speaks of no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Daytime {
    unix_seconds: u64,
}

impl Daytime {
    /// The moment `unix_seconds` seconds after the start of 1970, UTC; from the year 10000 on, the last of 9999.
    pub const fn new(unix_seconds: u64) -> Self {
        Daytime { unix_seconds }
    }
    /// The line with its CR LF, as it is sent.
    pub fn line(&self) -> String {
        format!("{self}\r\n")
    }
}

impl fmt::Display for Daytime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.unix_seconds).unwrap_or(i64::MAX);
        let moment = EPOCH.saturating_add(SignedDuration::from_secs(seconds));
        write!(f, "{}", moment.strftime("%A, %B %-d, %Y %H:%M:%S-UTC"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec: RFC867
    #[test]
    fn known_moments() {
        for (seconds, line) in [
            (0, "Thursday, January 1, 1970 00:00:00-UTC"),
            (383_247_463, "Monday, February 22, 1982 17:37:43-UTC"),
            (951_782_400, "Tuesday, February 29, 2000 00:00:00-UTC"),
            (951_868_799, "Tuesday, February 29, 2000 23:59:59-UTC"),
            (951_868_800, "Wednesday, March 1, 2000 00:00:00-UTC"),
            (1_795_247_573, "Saturday, November 21, 2026 07:52:53-UTC"),
            (4_107_542_399, "Sunday, February 28, 2100 23:59:59-UTC"),
            (4_107_542_400, "Monday, March 1, 2100 00:00:00-UTC"),
            (253_402_300_800, "Friday, December 31, 9999 23:59:59-UTC"),
            (u64::MAX, "Friday, December 31, 9999 23:59:59-UTC"),
        ] {
            assert_eq!(Daytime::new(seconds).to_string(), line);
        }
    }
}
