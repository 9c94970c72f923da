//! The result as a table.

use super::judge::{Cell, SURE, words};
use super::situation::Vantage;
use super::stacks::Stack;
use crate::figures::statistics::median;
use inhost_explain::Cause;
use serde::Serialize;
use std::fmt::Write;

/// Everything that a run gave.
#[derive(Serialize)]
pub struct Outcome {
    /// The seed from which all follows.
    pub seed: u64,
    /// The cells.
    pub cells: Vec<Cell>,
    /// Situations that were not what their name says, with the reason, and runs that failed.
    pub unfit: Vec<String>,
}

/// Figures of a set of cells.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Cells.
    pub cells: usize,
    /// Right ones.
    pub right: usize,
    /// Wrong ones with a confidence of 0.8 or more.
    pub sure_and_wrong: usize,
    /// Of the errors of shares, in points.
    pub median_points: f64,
    /// See above: the 95th percentile.
    pub p95_points: f64,
}

impl Score {
    /// Of some cells.
    pub fn of<'a>(cells: impl Iterator<Item = &'a Cell> + Clone) -> Score {
        let mut errors: Vec<f64> = cells.clone().filter_map(|cell| cell.error_points).collect();
        errors.sort_by(f64::total_cmp);
        Score {
            cells: cells.clone().count(),
            right: cells.clone().filter(|cell| cell.is_right).count(),
            sure_and_wrong: cells.filter(|cell| !cell.is_right && cell.confidence >= SURE).count(),
            median_points: median(&errors).unwrap_or(0.0),
            p95_points: errors
                .get((errors.len() * 95 / 100).min(errors.len().saturating_sub(1)))
                .copied()
                .unwrap_or(0.0),
        }
    }
    fn text(&self) -> String {
        let per_cent = self.right as f64 * 100.0 / self.cells.max(1) as f64;
        format!(
            "{} of {} cells right: {per_cent:.1} %; wrong with confidence of {SURE} or more: {}; shares off by {:.1} points (median), {:.1} (95 %)",
            self.right, self.cells, self.sure_and_wrong, self.median_points, self.p95_points
        )
    }
}

impl Outcome {
    /// The table: a row for each situation, a column for each stack and vantage, and a note for each wrong cell.
    pub fn to_table(&self) -> String {
        let mut text = String::new();
        let mut names: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !names.contains(&cell.situation.as_str()) {
                names.push(&cell.situation);
            }
        }
        let width = names.iter().map(|name| name.len()).max().unwrap_or(0).max(9);
        let _ = write!(text, "{:width$}", "");
        for stack in Stack::ALL {
            let _ = write!(text, "  {:<19}", stack.name());
        }
        let _ = write!(text, "\n{:width$}", "situation");
        for _ in Stack::ALL {
            let _ = write!(text, "  {:<4} {:<4} {:<4} {:<4}", "send", "mid", "recv", "live");
        }
        text.push('\n');
        let mut notes = Vec::new();
        for name in names {
            let _ = write!(text, "{name:width$}");
            for stack in Stack::ALL {
                text.push(' ');
                for vantage in Vantage::ALL {
                    let found = self.cells.iter().find(|cell| {
                        cell.situation == name && cell.stack == stack.name() && cell.vantage == vantage.name()
                    });
                    let mark = match found {
                        None => String::new(),
                        Some(cell) if cell.is_right && cell.unknowable.is_empty() => "✓".to_owned(),
                        Some(cell) if cell.is_right => "(✓)".to_owned(),
                        Some(cell) => {
                            notes.push(note(cell));
                            notes.len().to_string()
                        }
                    };
                    let _ = write!(text, " {mark:<4}");
                }
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        if !notes.is_empty() {
            text.push('\n');
        }
        for (place, note) in notes.iter().enumerate() {
            let _ = writeln!(text, "{:>3}  {note}", place + 1);
        }
        for reason in &self.unfit {
            let _ = writeln!(text, "not made: {reason}");
        }
        text.push('\n');
        for stack in Stack::ALL {
            let cells = self.cells.iter().filter(|cell| cell.stack == stack.name());
            if cells.clone().next().is_some() {
                let _ = writeln!(text, "{:7} {}", stack.name(), Score::of(cells).text());
            }
        }
        let _ = writeln!(text, "all     {}\nseed {}", Score::of(self.cells.iter()).text(), self.seed);
        text
    }
}

fn note(cell: &Cell) -> String {
    let mut text = format!(
        "{} {} {}: {}\n       said {}; truth {}; confidence {:.2}",
        cell.situation,
        cell.stack,
        cell.vantage,
        cell.wrong.join("; "),
        shares(&cell.shares),
        shares(&cell.truth),
        cell.confidence
    );
    if !cell.main.iter().any(|main| cell.truth.first().is_some_and(|(cause, _)| cause == main)) {
        let _ = write!(text, "; expected {}", words(&cell.main));
    }
    if let Some(kept) = &cell.kept {
        let _ = write!(text, "\n       {kept}");
    }
    text
}

fn shares(shares: &[(Cause, f64)]) -> String {
    let large = shares.iter().take(3).filter(|(_, per_cent)| *per_cent >= 3.0);
    large.map(|(cause, per_cent)| format!("{per_cent:.0} % {}", cause.text())).collect::<Vec<_>>().join(", ")
}
