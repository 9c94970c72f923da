//! Times, rates and figures as a person types and reads them.

use inhost_base::Duration;
use serde_json::Value;

/// Columns of a line.
pub const LINE_COLUMNS: usize = 100;

/// A time with its unit, exact to the nanosecond.
pub fn time(ns: u64) -> String {
    match ns {
        0 => "0 ms".to_owned(),
        1..1_000_000 => format!("{} us", decimals(ns, 1_000)),
        1_000_000..10_000_000_000 => format!("{} ms", decimals(ns, 1_000_000)),
        _ => format!("{} s", decimals(ns, 1_000_000_000)),
    }
}

/// A quotient without zeros at its end.
fn decimals(number: u64, unit: u64) -> String {
    let (whole, rest) = (number / unit, number % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let places = unit.ilog10() as usize;
    let text = format!("{whole}.{rest:0places$}");
    text.trim_end_matches('0').to_owned()
}

/// A moment of the session, in milliseconds: its place in a column of such.
pub fn moment(ns: u64) -> String {
    format!("{}.{:03} ms", ns / 1_000_000, ns % 1_000_000 / 1_000)
}

/// A time that somebody typed, such as `50ms`, `1.5s` or `200us`.
pub fn parse_time(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let unit_ns = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        "d" => 86_400e9,
        _ => return None,
    };
    // A week: no timer of a connection is longer.
    (number * unit_ns <= 604_800e9).then(|| Duration::from_nanos((number * unit_ns).round() as u64))
}

/// Bytes that somebody typed, such as `1460`, `64K` or `1M`.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => return text.parse().ok(),
        false => split(text)?,
    };
    let factor = match unit {
        "K" | "k" => 1024.0,
        "M" => 1_048_576.0,
        "G" => 1_073_741_824.0,
        _ => return None,
    };
    Some((number * factor) as u64)
}

/// Bits a second that somebody typed, such as `10Mbit`, `500kbit` or `9600bit`.
pub fn parse_rate(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor = match unit.trim_end_matches("/s") {
        "bit" => 1.0,
        "kbit" => 1e3,
        "Mbit" => 1e6,
        "Gbit" => 1e9,
        _ => return None,
    };
    Some((number * factor) as u64).filter(|&rate| rate > 0)
}

/// Bits a second.
pub fn rate(bits_per_second: u64) -> String {
    match bits_per_second {
        0..1_000 => format!("{bits_per_second}bit"),
        1_000..1_000_000 => format!("{}kbit", decimals(bits_per_second, 1_000)),
        _ => format!("{}Mbit", decimals(bits_per_second, 1_000_000)),
    }
}

/// Parts in a million that somebody typed as `5%`.
pub fn parse_share(text: &str) -> Option<u32> {
    let number: f64 = text.strip_suffix('%')?.parse().ok()?;
    (0.0..=100.0).contains(&number).then(|| (number * 10_000.0).round() as u32)
}

/// A number that is not negative, and its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let at = text.find(|character: char| character.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(at);
    let number: f64 = number.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some((number, unit))
}

/// Fields with a name of their own, in the order in which they are shown; others follow, called as they are written.
const NAMES: &[(&str, &str)] = &[
    ("state", "state"),
    ("send.unacknowledged", "SND.UNA"),
    ("send.next", "SND.NXT"),
    ("send.window_bytes", "SND.WND"),
    ("send.initial", "ISS"),
    ("send.urgent", "SND.UP"),
    ("send.window_scale", "SND.WND.SHIFT"),
    ("send.window_edge", "window's edge"),
    ("send.segment_bytes", "send MSS"),
    ("send.queue_bytes", "send queue"),
    ("send.buffer_bytes", "send buffer"),
    ("send.not_sent_bytes", "not sent"),
    ("send.in_flight_bytes", "in flight"),
    ("send.cause", "send cause"),
    ("receive.next", "RCV.NXT"),
    ("receive.window_bytes", "RCV.WND"),
    ("receive.initial", "IRS"),
    ("receive.urgent", "RCV.UP"),
    ("receive.window_scale", "RCV.WND.SHIFT"),
    ("receive.acknowledged", "last ACK sent"),
    ("receive.segment_bytes", "receive MSS"),
    ("receive.queue_bytes", "receive queue"),
    ("receive.buffer_bytes", "receive buffer"),
    ("receive.reassembly_bytes", "out of order"),
    ("receive.reassembly", "blocks out of order"),
    ("receive.sack", "SACK to send"),
    ("receive.acknowledgment_is_due", "ACK due"),
    ("receive.is_quick", "quick ACKs"),
    ("receive.cause", "receive cause"),
    ("round_trip.smoothed_ns", "SRTT"),
    ("round_trip.variation_ns", "RTTVAR"),
    ("round_trip.timeout_ns", "RTO"),
    ("round_trip.backoff", "back-off"),
    ("round_trip.least_ns", "least round trip"),
    ("round_trip.receiver_ns", "receiver's round trip"),
    ("congestion.algorithm", "algorithm"),
    ("congestion.window_bytes", "cwnd"),
    ("congestion.threshold_bytes", "ssthresh"),
    ("congestion.in_slow_start", "slow start"),
    ("recovery.state", "recovery"),
    ("recovery.until", "recovery until"),
    ("recovery.duplicate_acknowledgments", "duplicate ACKs"),
    ("recovery.timeouts", "timeouts"),
    ("recovery.sacked_bytes", "sacked"),
    ("recovery.lost_bytes", "lost"),
    ("recovery.retransmitted_in_flight_bytes", "retransmitted in flight"),
    ("recovery.reordering_segments", "DupThresh"),
    ("recovery.tests_timeout", "F-RTO"),
    ("recovery.rate_reduction_bytes", "PRR"),
];

/// Where a field comes among others.
pub fn place(path: &str) -> usize {
    NAMES.iter().position(|(known, _)| *known == path).unwrap_or(NAMES.len())
}

/// What a field of a connection's state is called; `path` is `section.field`.
pub fn name(path: &str) -> String {
    if let Some((_, name)) = NAMES.iter().find(|(known, _)| *known == path) {
        return (*name).to_owned();
    }
    let field = path.rsplit_once('.').map_or(path, |(_, field)| field);
    let units = ["_bytes_per_second", "_bytes", "_ns"];
    let field = units.iter().find_map(|unit| field.strip_suffix(unit)).unwrap_or(field);
    field.strip_prefix("is_").unwrap_or(field).replace('_', " ")
}

/// A field's value; its unit follows from its name.
pub fn value(field: &str, value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => match number.as_u64() {
            Some(ns) if field.ends_with("_ns") => time(ns),
            Some(bytes) if field.ends_with("_bytes_per_second") => rate(bytes.saturating_mul(8)),
            _ => number.to_string(),
        },
        Value::String(text) => plain(text),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => {
            let parts = items.iter().map(|item| match item.as_array().map(Vec::as_slice) {
                Some([start, end]) => format!("{start}..{end}"),
                _ => self::value(field, item),
            });
            parts.collect::<Vec<_>>().join(" ")
        }
        Value::Object(_) => value.to_string(),
    }
}

/// A choice as it is called in the code, such as `EverySecondSegment`, as words. Other texts stay as they are.
fn plain(text: &str) -> String {
    let is_name = text.chars().all(|c| c.is_ascii_alphanumeric())
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.contains(|c: char| c.is_ascii_lowercase());
    if !is_name {
        return text.to_owned();
    }
    let mut words = String::new();
    for c in text.chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

/// Items behind a heading, in as many lines as they need.
pub fn wrapped(heading: &str, items: &[String]) -> String {
    let (mut text, mut line) = (String::new(), heading.to_owned());
    let indent = " ".repeat(heading.chars().count());
    for (index, item) in items.iter().enumerate() {
        let comma = if index + 1 < items.len() { ", " } else { "" };
        let length = line.chars().count() + item.chars().count() + comma.trim_end().len();
        if length > LINE_COLUMNS && line.trim() != heading.trim() && line.len() > indent.len() {
            text += line.trim_end();
            text.push('\n');
            line = indent.clone();
        }
        line += item;
        line += comma;
    }
    text += line.trim_end();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_rates_and_shares_are_read_and_written() {
        for (typed, written) in [
            ("50ms", "50 ms"),
            ("1.5s", "1500 ms"),
            ("200us", "200 us"),
            ("0.0205s", "20.5 ms"),
            ("2min", "120 s"),
            ("0s", "0 ms"),
            ("1ns", "0.001 us"),
        ] {
            assert_eq!(time(parse_time(typed).unwrap().as_nanos()), written);
        }
        assert_eq!(["5", "ms", "-1ms", "8d", "1e99s", "nans"].map(parse_time), [None; 6]);
        assert_eq!(
            (parse_bytes("64K"), parse_bytes("1460"), parse_bytes("x")),
            (Some(65_536), Some(1460), None)
        );
        assert_eq!((parse_rate("10Mbit"), parse_rate("9600bit/s")), (Some(10_000_000), Some(9600)));
        assert_eq!((rate(1_500_000), rate(9600)), ("1.5Mbit".to_owned(), "9.6kbit".to_owned()));
        assert_eq!((parse_share("0.5%"), parse_share("101%"), parse_share("5")), (Some(5000), None, None));
        assert_eq!(moment(20_500_000), "20.500 ms");
        let texts = ["EverySecondSegment", "Cubic", "SYN-SENT", "ESTABLISHED", "waiting for data"];
        let said = ["every second segment", "cubic", "SYN-SENT", "ESTABLISHED", "waiting for data"];
        assert_eq!(texts.map(|text| value("x", &text.into())), said);
    }

    #[test]
    fn long_lists_are_wrapped_behind_their_heading() {
        let items: Vec<String> = (0..30).map(|number| format!("figure {number}")).collect();
        let text = wrapped("  head  ", &items);
        assert!(text.lines().count() > 2 && text.lines().all(|line| line.len() <= LINE_COLUMNS));
        assert!(text.lines().skip(1).all(|line| line.starts_with("        figure")), "{text}");
    }
}
