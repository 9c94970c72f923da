//! Progress display of transfers.

use inhost_base::{Duration, Instant};
use inhost_common::Cleaner;
use inhost_ftp::codec::name_octets;
use inhost_ftp::driver::Moved;
use inhost_socket::Host;
use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::rc::Rc;

const EVERY: Duration = Duration::from_millis(250);

/// Shows what moves.
pub struct Show {
    host: Host,
    name: String,
    began: Instant,
    is_shown: bool,
}

impl Show {
    /// Something with a name begins.
    pub fn new(host: &Host, name: &str, quiet: bool) -> Show {
        let is_shown = !quiet && std::io::stderr().is_terminal();
        Show { host: host.clone(), name: clean(name), began: host.now(), is_shown }
    }
    /// What comes of `work`; meanwhile `moved` is shown.
    pub async fn during<T>(&self, moved: Rc<Cell<u64>>, work: impl Future<Output = T>) -> T {
        let tick = async {
            loop {
                self.host.sleep(EVERY).await;
                self.line(&format!("{} {}", self.name, self.rate(moved.get())));
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
    /// Octets, and how fast they moved.
    pub fn rate(&self, bytes: u64) -> String {
        let seconds = self.host.now().since(self.began).as_secs_f64();
        format!("{} in {seconds:.2} s, {}/s", size(bytes), size((bytes as f64 / seconds.max(0.001)) as u64))
    }
    /// Transfer statistics as text.
    pub fn moved(&self, moved: Moved) -> String {
        let resumed = match moved.resumed_bytes {
            0 => String::new(),
            bytes => format!(", {} were there", size(bytes)),
        };
        let verified = if moved.hashed { "size and hash agree" } else { "size agrees" };
        let rate = self.rate(moved.size_bytes - moved.resumed_bytes);
        format!("{}: {} bytes ({rate}{resumed}); {verified}", self.name, moved.size_bytes)
    }
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
