//! Times as FTP writes them: UTC, to the second, with fractions where there are any (RFC 3659 §2.3).

use inhost_common::storage::UnixTime;

const DAY_SECONDS: i64 = 86_400;
/// Days in 400 years of the Gregorian calendar, after which it repeats.
const ERA_DAYS: i64 = 146_097;
/// Days from 1 March of the year 0 to 1 January 1970.
const EPOCH_DAYS: i64 = 719_468;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// About half a year: listings tell the year of what is older, as `ls` does.
const RECENT_SECONDS: i64 = 182 * DAY_SECONDS;

/// Year, month (1 to 12) and day. Years begin in March here, so that the leap day is the last of one.
fn date(days_since_epoch: i64) -> (i64, usize, i64) {
    let days = days_since_epoch + EPOCH_DAYS;
    let (era, day) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march_month = (5 * day + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year + i64::from(month <= 2), month as usize, day - (153 * march_month + 2) / 5 + 1)
}

fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let march_month = if month > 2 { month - 3 } else { month + 9 };
    let day = (153 * march_month + 2) / 5 + day - 1;
    era * ERA_DAYS + year * 365 + year / 4 - year / 100 + day - EPOCH_DAYS
}

/// `YYYYMMDDHHMMSS`, with `.sss` where there are milliseconds.
pub fn time_text(time: UnixTime) -> String {
    // Times that four digits of a year cannot write are the nearest that they can.
    let seconds = time.seconds.clamp(-62_167_219_200, 253_402_300_799);
    let (year, month, day) = date(seconds.div_euclid(DAY_SECONDS));
    let second = seconds.rem_euclid(DAY_SECONDS);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let mut text = format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}");
    if time.nanoseconds >= 1_000_000 {
        text += &format!(".{:03}", time.nanoseconds / 1_000_000);
    }
    text
}

/// A time as [`time_text`] writes it; any number of digits behind the point.
pub fn parse_time(text: &str) -> Option<UnixTime> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if whole.len() != 14 || !digits(whole) || !digits(fraction) {
        return None;
    }
    let field = |from: usize, to: usize| whole[from..to].parse::<i64>().ok();
    let (year, month, day) = (field(0, 4)?, field(4, 6)?, field(6, 8)?);
    let (hour, minute, second) = (field(8, 10)?, field(10, 12)?, field(12, 14)?);
    let day_number = days(year, month.clamp(1, 12), day);
    // A leap second is the one before it.
    let is_time = hour < 24 && minute < 60 && second <= 60;
    if !is_time || date(day_number) != (year, usize::try_from(month).ok()?, day) {
        return None;
    }
    let seconds = day_number * DAY_SECONDS + hour * 3600 + minute * 60 + second.min(59);
    let nanoseconds = format!("{fraction:0<9}")[..9].parse().ok()?;
    Some(UnixTime { seconds, nanoseconds })
}

/// The twelve columns of a listing in the manner of `ls -l`.
pub fn list_time(time: UnixTime, now: UnixTime) -> String {
    let (year, month, day) = date(time.seconds.clamp(0, 253_402_300_799).div_euclid(DAY_SECONDS));
    let name = MONTHS[month - 1];
    let age = now.seconds - time.seconds;
    if (-DAY_SECONDS..RECENT_SECONDS).contains(&age) {
        let second = time.seconds.rem_euclid(DAY_SECONDS);
        format!("{name} {day:2} {:02}:{:02}", second / 3600, second / 60 % 60)
    } else {
        format!("{name} {day:2}  {year}")
    }
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
        ] {
            assert_eq!(time_text(at(seconds)), text);
            assert_eq!(parse_time(text), Some(at(seconds)));
        }
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
    }
}
