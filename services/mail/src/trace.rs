//! The circular trace of a dialogue: its last lines, which are written out only if something goes wrong (UCLA §2.7).

use std::collections::VecDeque;
use std::fmt;

use inhost_base::{Duration, Instant};
use inhost_common::Cleaner;

/// Lines that are kept.
pub const TRACE_LINES: usize = 64;
/// Octets of a line that are kept.
pub const TRACE_LINE_BYTES: usize = 256;

/// Who said a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speaker {
    /// The client.
    Client,
    /// The server.
    Server,
    /// This host, about the dialogue: "TLS begins".
    Note,
}

/// A line of a dialogue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceLine {
    /// Since the dialogue began.
    pub at: Duration,
    /// Who said it.
    pub speaker: Speaker,
    octets: Box<[u8]>,
}

impl TraceLine {
    /// The text, cleaned.
    pub fn text(&self) -> String {
        Cleaner::line(&self.octets)
    }
}

/// The last lines of a dialogue. Passwords and messages are not in it.
#[derive(Clone, Debug)]
pub struct Trace {
    began: Instant,
    lines: VecDeque<TraceLine>,
    dropped: usize,
}

impl Trace {
    /// An empty one.
    pub fn new(now: Instant) -> Trace {
        Trace { began: now, lines: VecDeque::new(), dropped: 0 }
    }
    /// The lines that are left, the oldest first.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = &TraceLine> {
        self.lines.iter()
    }
    /// How many older lines were dropped.
    pub fn dropped(&self) -> usize {
        self.dropped
    }
    /// What was said, each line by itself.
    pub fn say(&mut self, speaker: Speaker, octets: &[u8], now: Instant) {
        for line in octets.split(|octet| *octet == b'\n').filter(|line| !line.is_empty()) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if self.lines.len() == TRACE_LINES {
                self.lines.pop_front();
                self.dropped += 1;
            }
            let octets = line.get(..TRACE_LINE_BYTES).unwrap_or(line).into();
            self.lines.push_back(TraceLine { at: now.since(self.began), speaker, octets });
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dropped > 0 {
            writeln!(f, "({} older lines are not kept)", self.dropped)?;
        }
        for line in &self.lines {
            let sign = match line.speaker {
                Speaker::Client => "C:",
                Speaker::Server => "S:",
                Speaker::Note => "--",
            };
            writeln!(f, "{:>9.3} {sign} {}", line.at.as_secs_f64(), line.text())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let mut trace = Trace::new(Instant::ZERO);
        for number in 0..TRACE_LINES + 3 {
            trace.say(Speaker::Client, format!("NOOP {number}\r\n").as_bytes(), Instant::from_millis(1500));
        }
        trace.say(Speaker::Server, b"250-a\r\n250 \x1b[2J\r\n", Instant::from_millis(2000));
        assert_eq!((trace.lines().len(), trace.dropped()), (TRACE_LINES, 5));
        let text = trace.to_string();
        assert!(text.starts_with("(5 older lines are not kept)\n    1.500 C: NOOP 5\n"), "{text}");
        assert!(text.ends_with("    2.000 S: 250 \u{fffd}[2J\n"), "{text}");
    }
}
