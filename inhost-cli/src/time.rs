//! The wall's clock, and times as people say them.

use std::time::{Duration, SystemTime};

/// The time since 1970: the time of day, and the times of files and of queues, which outlive a restart.
#[allow(clippy::disallowed_methods)]
pub fn unix_time() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// The same in seconds.
pub fn now_s() -> u64 {
    unix_time().as_secs()
}

/// A time as how long until then or since then: `in 5 min`, `2 h ago`. Both are in seconds since 1970.
pub fn relative(at_s: u64, now_s: u64) -> String {
    match at_s.cmp(&now_s) {
        std::cmp::Ordering::Equal => "now".into(),
        std::cmp::Ordering::Greater => format!("in {}", span(at_s - now_s)),
        std::cmp::Ordering::Less => format!("{} ago", span(now_s - at_s)),
    }
}

fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_say_them() {
        assert_eq!(relative(400, 100), "in 5 min");
        assert_eq!(relative(100, 200_000), "2 days ago");
        assert_eq!(relative(7, 7), "now");
    }
}
