//! Progress of transfers on a terminal: how much of how many, how fast, and how long it will take.

use crate::ftp::show::{clean, size};
use inhost_base::{Duration, Instant};
use inhost_socket::Host;
use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::rc::Rc;

/// Interval of the display.
const EVERY: Duration = Duration::from_millis(250);

/// Shows what moves.
pub struct Progress {
    host: Host,
    name: String,
    began: Instant,
    total_bytes: Option<u64>,
    is_shown: bool,
}

impl Progress {
    /// Something with a name begins.
    pub fn new(host: &Host, name: &str, is_quiet: bool) -> Progress {
        let is_shown = !is_quiet && std::io::stderr().is_terminal();
        Progress { host: host.clone(), name: clean(name), began: host.now(), total_bytes: None, is_shown }
    }
    /// Octets of the whole, where they are known.
    pub fn of(self, total_bytes: Option<u64>) -> Progress {
        Progress { total_bytes, ..self }
    }
    /// Whether anybody sees it.
    pub fn is_shown(&self) -> bool {
        self.is_shown
    }
    /// What comes of `work`; meanwhile `moved` is shown.
    pub async fn during<T>(&self, moved: Rc<Cell<u64>>, work: impl Future<Output = T>) -> T {
        let tick = async {
            loop {
                self.host.sleep(EVERY).await;
                self.line(&self.text(moved.get()));
            }
        };
        let done = futures_lite::future::or(work, tick).await;
        self.line("");
        done
    }
    fn line(&self, text: &str) {
        if self.is_shown {
            eprint!("\r\x1b[K{text}");
            let _ = std::io::stderr().flush();
        }
    }
    fn text(&self, moved_bytes: u64) -> String {
        let seconds = self.host.now().since(self.began).as_secs_f64();
        format!("{} {}", self.name, progress(moved_bytes, self.total_bytes, seconds))
    }
    /// Seconds since it began.
    pub fn seconds(&self) -> f64 {
        self.host.now().since(self.began).as_secs_f64()
    }
    /// Octets, and how fast they moved.
    pub fn rate(&self, bytes: u64) -> String {
        let seconds = self.seconds();
        format!("{} in {seconds:.2} s, {}/s", size(bytes), size(rate(bytes, seconds)))
    }
    /// The name, fit for a terminal.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Octets a second.
pub fn rate(bytes: u64, seconds: f64) -> u64 {
    (bytes as f64 / seconds.max(0.001)) as u64
}

/// `45 % of 1.2 GB, 110.0 MB/s, 6 s left`; without a total what there is to say.
fn progress(moved_bytes: u64, total_bytes: Option<u64>, seconds: f64) -> String {
    let rate = rate(moved_bytes, seconds);
    let Some(total) = total_bytes.filter(|&total| total > 0) else {
        return format!("{}, {}/s", size(moved_bytes), size(rate));
    };
    // In 128 bits: a file may have more than a hundredth of 2^64 octets.
    let percent = (u128::from(moved_bytes) * 100 / u128::from(total)).min(100);
    let left = match total.saturating_sub(moved_bytes).checked_div(rate) {
        Some(seconds) => format!("{} left", duration(seconds)),
        None => "stalled".to_owned(),
    };
    format!("{percent} % of {}, {}/s, {left}", size(total), size(rate))
}

/// `6 s`, `2 min 05 s`, `3 h 07 min`.
fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_much_how_fast_how_long() {
        assert_eq!(progress(45_000_000, Some(100_000_000), 4.5), "45 % of 100.0 MB, 10.0 MB/s, 5 s left");
        assert_eq!(progress(0, Some(100_000_000), 4.5), "0 % of 100.0 MB, 0 bytes/s, stalled");
        assert_eq!(progress(2000, None, 1.0), "2.0 KB, 2.0 KB/s");
        assert_eq!(progress(5, Some(0), 1.0), "5 bytes, 5 bytes/s");
        assert_eq!(progress(u64::MAX, Some(u64::MAX), 1.0).split(',').next(), Some("100 % of 18446744.1 TB"));
        assert_eq!(progress(3, Some(2), 1.0).split(',').next(), Some("100 % of 2 bytes"));
    }

    #[test]
    fn times_as_people_read_them() {
        let shown = [0, 59, 60, 125, 3600, 11_220].map(duration);
        assert_eq!(shown, ["0 s", "59 s", "1 min 00 s", "2 min 05 s", "1 h 00 min", "3 h 07 min"]);
    }
}
