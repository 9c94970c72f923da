//! Figures as people write them.

/// A time with three digits.
pub fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} us", digits(ns as f64 / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", digits(ns as f64 / 1e6)),
        _ => format!("{} s", digits(ns as f64 / 1e9)),
    }
}
/// Bytes with three digits; KiB below a megabyte, since windows are powers of two.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..1_000_000 => format!("{} KiB", digits(bytes as f64 / 1024.0)),
        1_000_000..1_000_000_000 => format!("{} MB", digits(bytes as f64 / 1e6)),
        _ => format!("{} GB", digits(bytes as f64 / 1e9)),
    }
}
/// Bytes a second as bits.
pub fn rate(bytes_per_second: u64) -> String {
    let bits = bytes_per_second as f64 * 8.0;
    if bits < 1e6 {
        format!("{} kbit/s", digits(bits / 1e3))
    } else if bits < 1e9 {
        format!("{} Mbit/s", digits(bits / 1e6))
    } else {
        format!("{} Gbit/s", digits(bits / 1e9))
    }
}
fn digits(value: f64) -> String {
    match value {
        _ if value >= 99.95 => format!("{value:.0}"),
        _ if value >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
/// What fills a path: bytes in a round trip.
pub(super) fn product(bytes_per_second: u64, round_trip_ns: u64) -> u64 {
    (u128::from(bytes_per_second) * u128::from(round_trip_ns) / 1_000_000_000).min(u64::MAX.into()) as u64
}
/// Bytes a second of a window in each round trip.
pub(super) fn window_rate(window_bytes: u64, round_trip_ns: u64) -> u64 {
    (u128::from(window_bytes) * 1_000_000_000 / u128::from(round_trip_ns.max(1))).min(u64::MAX.into()) as u64
}
