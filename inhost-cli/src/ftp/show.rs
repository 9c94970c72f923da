//! What a transfer says, on a terminal and as JSON.

use crate::progress::{Progress, rate};
use inhost_common::Cleaner;
use inhost_ftp::codec::name_octets;
use inhost_ftp::driver::Moved;
use serde_json::{Value, json};

/// What was moved, in a line.
pub fn moved_line(progress: &Progress, moved: Moved) -> String {
    let resumed = match moved.resumed_bytes {
        0 => String::new(),
        bytes => format!(", {} were there", size(bytes)),
    };
    let verified = if moved.hashed { "size and hash agree" } else { "size agrees" };
    let rate = progress.rate(moved.size_bytes - moved.resumed_bytes);
    format!("{}: {} bytes ({rate}{resumed}); {verified}", progress.name(), moved.size_bytes)
}

/// The same as JSON.
pub fn moved_json(progress: &Progress, moved: Moved) -> Value {
    let seconds = progress.seconds();
    json!({
        "file": progress.name(),
        "bytes": moved.size_bytes,
        "resumed_bytes": moved.resumed_bytes,
        "hash_agrees": moved.hashed,
        "seconds": seconds,
        "bytes_per_second": rate(moved.size_bytes - moved.resumed_bytes, seconds),
    })
}

/// Text of a server, cleaned for a terminal.
pub fn clean(text: &str) -> String {
    Cleaner::line(&name_octets(text))
}

/// Shows what is said on a control connection.
pub fn show_said(said: &str) {
    said.lines().for_each(|line| eprintln!("{}", clean(line)));
}

/// Octets, in the unit that has few digits.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{value:.1} {}", UNITS[unit]) }
}
