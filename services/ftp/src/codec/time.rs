//! Times as FTP writes them: UTC, to the second, with fractions where there are any (RFC 3659 §2.3).

use inhost_common::storage::UnixTime;
use jiff::SignedDuration;
use jiff::civil::{DateTime, date};

const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);
const FORMAT: &str = "%Y%m%d%H%M%S";
const DAY_SECONDS: i64 = 86_400;
/// About half a year: listings tell the year of what is older, as `ls` does.
const RECENT_SECONDS: i64 = 182 * DAY_SECONDS;

/// The date, and the time of the day. What four digits of a year cannot write is the nearest that they can.
fn date_time(time: UnixTime) -> DateTime {
    EPOCH.saturating_add(SignedDuration::from_secs(time.seconds)).max(date(0, 1, 1).at(0, 0, 0, 0))
}

/// `YYYYMMDDHHMMSS`, with `.sss` where there are milliseconds.
pub fn time_text(time: UnixTime) -> String {
    let mut text = date_time(time).strftime(FORMAT).to_string();
    if time.nanoseconds >= 1_000_000 {
        text += &format!(".{:03}", time.nanoseconds / 1_000_000);
    }
    text
}

/// A time as [`time_text`] writes it; any number of digits behind the point. A leap second is the one before it.
pub fn parse_time(text: &str) -> Option<UnixTime> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if whole.len() != 14 || !digits(whole) || !digits(fraction) {
        return None;
    }
    let seconds = DateTime::strptime(FORMAT, whole).ok()?.duration_since(EPOCH).as_secs();
    let nanoseconds = format!("{fraction:0<9}")[..9].parse().ok()?;
    Some(UnixTime { seconds, nanoseconds })
}

/// The twelve columns of a listing in the manner of `ls -l`.
pub fn list_time(time: UnixTime, now: UnixTime) -> String {
    let is_recent = (-DAY_SECONDS..RECENT_SECONDS).contains(&(now.seconds - time.seconds));
    let format = if is_recent { "%b %e %H:%M" } else { "%b %e  %Y" };
    date_time(time).max(EPOCH).strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> UnixTime {
        UnixTime { seconds, nanoseconds: 0 }
    }

    #[test]
    fn times_are_written_and_read() {
        for (seconds, text) in [
            (0, "19700101000000"),
            (951_782_399, "20000228235959"),
            (951_868_799, "20000229235959"),
            (951_868_800, "20000301000000"),
            (1_795_247_573, "20261121075253"),
            (-1, "19691231235959"),
            (-62_167_219_200, "00000101000000"),
            (253_402_300_799, "99991231235959"),
        ] {
            assert_eq!(time_text(at(seconds)), text);
            assert_eq!(parse_time(text), Some(at(seconds)));
        }
        assert_eq!(time_text(at(i64::MIN)), "00000101000000");
        assert_eq!(time_text(at(i64::MAX)), "99991231235959");
        assert_eq!(parse_time("20161231235960"), Some(at(1_483_228_799)));
        assert_eq!(
            parse_time("20000101000000.5"),
            Some(UnixTime { seconds: 946_684_800, nanoseconds: 500_000_000 })
        );
        for wrong in [
            "",
            "2000",
            "20000230000000",
            "20000101240000",
            "20001301000000",
            "20000001000000",
            "20000101006000",
            "20000101000061",
            " 2000101000000",
            "+2000101000000",
            "2000010100000é",
            "20000101000000.",
        ] {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn listings_tell_the_hour_or_the_year() {
        assert_eq!(list_time(at(1_795_247_573), at(1_795_300_000)), "Nov 21 07:52");
        assert_eq!(list_time(at(0), at(1_795_300_000)), "Jan  1  1970");
        assert_eq!(list_time(at(-5), at(1_795_300_000)), "Jan  1  1970");
        assert_eq!(list_time(at(1_795_300_000), at(0)), "Nov 21  2026");
    }
}
