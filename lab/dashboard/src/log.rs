//! The latest lines of the log.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

/// Lines that are kept.
const KEPT: usize = 2000;
/// Bytes of a line; the rest is cut off.
const LONGEST_BYTES: usize = 2000;

/// How grave a line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // The names are those of every log.
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// A line of the log.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Its number, from 0.
    pub number: u64,
    /// When: milliseconds since 1970.
    pub at_unix_ms: u64,
    /// How grave it is.
    pub level: Level,
    /// The part of the host that says it.
    pub target: String,
    /// What it says.
    pub text: String,
}

/// The latest lines of the log. Clones are the same; any thread may add.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    lines: VecDeque<Line>,
    next: u64,
}

impl Log {
    /// Adds a line, at `at_unix_ms` milliseconds since 1970.
    pub fn add(&self, at_unix_ms: u64, level: Level, target: &str, mut text: String) {
        text.truncate(text.floor_char_boundary(LONGEST_BYTES));
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.lines.len() == KEPT {
            lines.lines.pop_front();
        }
        let number = lines.next;
        lines.lines.push_back(Line { number, at_unix_ms, level, target: target.to_owned(), text });
        lines.next += 1;
    }
    /// The lines from number `from` on, at most the last `most`; and the number of the next.
    pub fn since(&self, from: u64, most: usize) -> (Vec<Line>, u64) {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = lines.lines.iter().filter(|line| line.number >= from).count().min(most);
        (lines.lines.iter().skip(lines.lines.len() - wanted).cloned().collect(), lines.next)
    }
}
