//! A verdict as text: at most ten lines of 100 columns, read in ten seconds.

use super::figures::{bytes, rate, time, window_rate};
use crate::report::{Vantage, Verdict};

const COLUMNS: usize = 100;
/// Lines of the account.
const SHARES: usize = 3;
/// Frames of one claim that are printed.
const FRAMES: usize = 6;

impl Verdict {
    /// The verdict in words.
    pub fn text(&self) -> String {
        let of = &self.directions[self.direction];
        let (from, to) = match self.direction {
            0 => (&self.client, &self.server),
            _ => (&self.server, &self.client),
        };
        let mut lines = vec![
            format!("{from} -> {to}"),
            format!(
                "  {} in {}, {}; round trip {}; captured {}",
                bytes(of.bytes),
                time(self.duration_ns),
                rate(window_rate(of.bytes, self.duration_ns)),
                self.round_trip.map_or("not measured".to_owned(), |trip| time(trip.least_ns)),
                vantage(self.vantage),
            ),
        ];
        let shares: Vec<String> = of
            .shares
            .iter()
            .take(SHARES)
            .map(|share| format!("{:.0} % {}", share.per_cent, share.cause.text()))
            .collect();
        lines.push(format!("  {}", shares.join(", ")));
        wrap(&mut lines, "  Why: ", &self.diagnosis, 2);
        wrap(&mut lines, "  Do:  ", &self.remedy, 2);
        if let Some(claim) = self.evidence.first() {
            let frames: Vec<String> =
                claim.frames.iter().take(FRAMES).map(|frame| frame.to_string()).collect();
            wrap(&mut lines, "  See: ", &format!("{} (frames {})", claim.claim, frames.join(", ")), 1);
        }
        let reason = self.confidence_reasons.first().map_or(String::new(), |why| format!(": {why}"));
        wrap(&mut lines, "  Sure: ", &format!("{:.2}{reason}", self.confidence), 1);
        if let Some(unknown) = self.unknown.first() {
            wrap(&mut lines, "  Not known from here: ", unknown, 1);
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
/// Adds a text in at most so many lines; what does not fit is cut.
fn wrap(lines: &mut Vec<String>, label: &str, text: &str, most: usize) {
    let (mut line, mut used) = (label.to_owned(), 1);
    let mut is_empty = true;
    for word in text.split(' ') {
        let room = COLUMNS - usize::from(used == most) * 4;
        if line.chars().count() + 1 + word.chars().count() > room {
            if used == most {
                line.push_str(" ...");
                break;
            }
            lines.push(std::mem::replace(&mut line, " ".repeat(label.len())));
            (used, is_empty) = (used + 1, true);
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
}
