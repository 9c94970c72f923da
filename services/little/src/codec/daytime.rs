//! The daytime service's line (RFC 867), from a count of seconds.

use std::fmt;

const WEEKDAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAY_SECONDS: u64 = 86_400;
/// Days in 400 years of the Gregorian calendar, after which it repeats.
const ERA_DAYS: u64 = 146_097;
/// Days from 1 March of the year 0 to 1 January 1970.
const EPOCH_DAYS: u64 = 719_468;

/// A moment as the daytime service tells it: `Saturday, November 21, 2026 07:52:53-UTC`, the first of the forms that
/// RFC 867 suggests. The local time zone is not used: the service speaks of no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Daytime {
    unix_seconds: u64,
}

impl Daytime {
    /// The moment `unix_seconds` seconds after the start of 1970, UTC.
    pub const fn new(unix_seconds: u64) -> Self {
        // Past the year 9999 the line would no longer fit what a reader expects.
        const LAST: u64 = 253_402_300_799;
        Daytime { unix_seconds: if unix_seconds > LAST { LAST } else { unix_seconds } }
    }
    /// The line with its CR LF, as it is sent.
    pub fn line(&self) -> String {
        format!("{self}\r\n")
    }
    /// Year, month (from 0) and day of the month (from 1).
    ///
    /// The year is counted from March, so that the leap day is its last and month lengths follow one formula.
    fn date(&self) -> (u64, usize, u64) {
        let days = self.unix_seconds / DAY_SECONDS + EPOCH_DAYS;
        let (era, day_of_era) = (days / ERA_DAYS, days % ERA_DAYS);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = (month_from_march + 2) % 12;
        let year = era * 400 + year_of_era + u64::from(month < 2);
        (year, month as usize, day)
    }
}

impl fmt::Display for Daytime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        let weekday = WEEKDAYS[(self.unix_seconds / DAY_SECONDS % 7) as usize];
        let second = self.unix_seconds % DAY_SECONDS;
        write!(
            f,
            "{weekday}, {} {day}, {year} {:02}:{:02}:{:02}-UTC",
            MONTHS[month],
            second / 3_600,
            second / 60 % 60,
            second % 60
        )
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
            (u64::MAX, "Friday, December 31, 9999 23:59:59-UTC"),
        ] {
            assert_eq!(Daytime::new(seconds).to_string(), line);
        }
    }
}
