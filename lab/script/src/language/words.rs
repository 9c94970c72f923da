//! A line as words, and words as values. Errors say what was expected and what stands there.

use inhost_base::Duration;
use inhost_wire::tcp::Flags;
use std::ops::RangeInclusive;

/// The flags that a segment's words name, ACK and PSH aside.
pub(super) const FLAGS: [(Flags, &str); 6] = [
    (Flags::SYN, "SYN"),
    (Flags::FIN, "FIN"),
    (Flags::RST, "RST"),
    (Flags::URG, "URG"),
    (Flags::ECE, "ECE"),
    (Flags::CWR, "CWR"),
];

/// The words of one line that are not yet read.
pub(super) struct Words<'a> {
    rest: &'a [&'a str],
}

/// A syntax error: the expected word.
pub(super) type Wrong = String;

pub(super) fn expected<T>(what: &str, found: Option<&str>) -> Result<T, Wrong> {
    match found {
        Some(found) => Err(format!("expected {what}, found `{found}`")),
        None => Err(format!("expected {what}, found the end of the line")),
    }
}

/// Splits a line; commas are spaces, and `#` begins a comment.
pub(super) fn split(line: &str) -> Vec<&str> {
    let line = line.find('#').map_or(line, |at| &line[..at]);
    line.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty()).collect()
}

impl<'a> Words<'a> {
    pub fn new(words: &'a [&'a str]) -> Self {
        Words { rest: words }
    }
    pub fn peek(&self) -> Option<&'a str> {
        self.rest.first().copied()
    }
    pub fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }
    /// Takes `word` when it is next.
    pub fn take(&mut self, word: &str) -> bool {
        let is_next = self.peek() == Some(word);
        if is_next {
            self.next();
        }
        is_next
    }
    /// The next word, which says `what`.
    pub fn word(&mut self, what: &str) -> Result<&'a str, Wrong> {
        self.next().map_or_else(|| expected(what, None), Ok)
    }
    pub fn number<T: TryFrom<i64>>(&mut self, what: &str) -> Result<T, Wrong> {
        let word = self.word(what)?;
        integer(word).and_then(|n| T::try_from(n).ok()).map_or_else(|| expected(what, Some(word)), Ok)
    }
    pub fn end(&self, after: &str) -> Result<(), Wrong> {
        match self.peek() {
            None => Ok(()),
            Some(word) => Err(format!("`{word}` is not a word that can follow {after}")),
        }
    }
}

/// A whole number; `1_000_000` is easier to read.
pub(super) fn integer(word: &str) -> Option<i64> {
    word.replace('_', "").parse().ok()
}
/// `1..1001`
pub(super) fn span(word: &str) -> Option<(i64, i64)> {
    let (from, to) = word.split_once("..")?;
    Some((integer(from)?, integer(to)?)).filter(|(from, to)| from <= to)
}
/// `1000`, `1000..2000`, `any`
pub(super) fn window(word: &str) -> Option<RangeInclusive<u32>> {
    if word == "any" {
        return Some(0..=u32::MAX);
    }
    let (from, to) = word.split_once("..").unwrap_or((word, word));
    let bound = |word| integer(word).and_then(|n| u32::try_from(n).ok());
    Some(bound(from)?..=bound(to)?).filter(|range| !range.is_empty())
}
/// `200ms`, `1.5s`, `10us`
pub fn duration(word: &str) -> Option<Duration> {
    let at = word.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = word.split_at(at);
    let nanos_each = match unit {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        _ => return None,
    };
    let number: f64 = number.replace('_', "").parse().ok()?;
    (number >= 0.0).then(|| Duration::from_nanos((number * nanos_each).round() as u64))
}
/// `on` or `off`, `yes` or `no`.
pub fn switch(word: &str) -> Option<bool> {
    match word {
        "on" | "yes" => Some(true),
        "off" | "no" => Some(false),
        _ => None,
    }
}
