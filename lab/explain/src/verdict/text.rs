//! A verdict as text: some ten lines of 100 columns, read in ten seconds.

use super::LEAST_PER_CENT;
use super::figures::{bytes, rate, time, window_rate};
use crate::report::{Vantage, Verdict};

const COLUMNS: usize = 100;
/// Before the second line of a text.
const INDENT: &str = "       ";
/// Causes that are printed.
const SHARES: usize = 3;
/// Frames of one claim that are printed.
const FRAMES: usize = 6;

impl Verdict {
    /// The verdict in words, in lines of at most 100 columns.
    pub fn text(&self) -> String {
        self.text_in(COLUMNS)
    }
    /// The same in lines of at most so many columns. Only a word that is longer, such as an address, exceeds them.
    pub fn text_in(&self, columns: usize) -> String {
        let of = &self.directions[self.direction];
        let (from, to) = match self.direction {
            0 => (&self.client, &self.server),
            _ => (&self.server, &self.client),
        };
        let mut lines = Vec::new();
        let mut add = |label: &str, text: &str| wrap(&mut lines, label, text, columns);
        add("", &format!("{from} -> {to}"));
        let moved = match (of.bytes, self.duration_ns) {
            (0, 0) => "no data".to_owned(),
            (0, ns) => format!("no data in {}", time(ns)),
            (many, 0) => bytes(many),
            (many, ns) => format!("{} in {}, {}", bytes(many), time(ns), rate(window_rate(many, ns))),
        };
        let trip = self.round_trip.map_or("not measured".to_owned(), |trip| time(trip.least_ns));
        add("  ", &format!("{moved}; round trip {trip}; captured {}", vantage(self.vantage)));
        let named = of.shares.iter().filter(|share| share.per_cent >= LEAST_PER_CENT).take(SHARES);
        let shares: Vec<String> =
            named.map(|share| format!("{:.0} % {}", share.per_cent, share.cause.text())).collect();
        if !shares.is_empty() {
            add("  ", &shares.join(", "));
        }
        add("  Why: ", &self.diagnosis);
        add("  Do:  ", &self.remedy);
        if let Some(claim) = self.evidence.first() {
            let frames: Vec<String> =
                claim.frames.iter().take(FRAMES).map(|frame| frame.to_string()).collect();
            add("  See: ", &format!("{} (frames {})", claim.claim, frames.join(", ")));
        }
        let reason = self.confidence_reasons.first().map_or(String::new(), |why| format!(": {why}"));
        add("  Sure: ", &format!("{:.2}{reason}", self.confidence));
        if let Some(unknown) = self.unknown.first() {
            add("  Not known from here: ", unknown);
        }
        lines.join("\n") + "\n"
    }
}

fn vantage(vantage: Vantage) -> &'static str {
    match vantage {
        Vantage::Client => "at the client",
        Vantage::Server => "at the server",
        Vantage::Middle => "between them",
        Vantage::Unknown => "at an unknown place",
    }
}
/// Adds a text in lines of so many columns, broken at spaces; a longer word has a line of its own.
fn wrap(lines: &mut Vec<String>, label: &str, text: &str, columns: usize) {
    let mut line = label.to_owned();
    let mut is_empty = true;
    for word in text.split(' ') {
        let taken = line.chars().count() + usize::from(!is_empty) + word.chars().count();
        if taken > columns && !is_empty {
            lines.push(std::mem::replace(&mut line, INDENT.to_owned()));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_any_width_is_whole() {
        let text = "the server's window of 32.0 KiB limits this path of 40.0 ms to 6.55 Mbit/s; for 31 % of the time the cause \
                    is slow start; the client reset the connection after the server's data in frame 4711";
        for columns in [1, 40, 60, 80, 100, 1000] {
            let mut lines = Vec::new();
            wrap(&mut lines, "  Why: ", text, columns);
            let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
            assert_eq!(words[0], "Why:");
            assert_eq!(words[1..].join(" "), text);
            let longest = lines.iter().map(|line| line.len()).max();
            assert!(columns < 40 || longest <= Some(columns), "{lines:?}");
        }
    }
}
