//! Results as text, CSV, curves, and pages in HTML and Markdown.

mod curves;
mod pages;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use inhost_inett::statistics::Estimate;

use crate::compare::{Compared, Results, Shaped, Verdict, compare, results, shapes};
use crate::experiment::Experiment;
use crate::fit::{Factor, Fitted, fits};
use crate::kinds::is_not_here;
use crate::store::{Store, StoreError};

pub use curves::{CurveError, png, svg};

/// What a report says of where it was made.
#[derive(Clone, Debug, Default)]
pub struct Made {
    /// The program and its version.
    pub program: String,
    /// Processor, cores, memory.
    pub machine: String,
    /// The operating system.
    pub system: String,
    /// The day, as 2026-11-26.
    pub day: String,
}

impl Made {
    /// Of this machine, as /proc tells it.
    pub fn here(day: String) -> Made {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let (processors, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_once(':').map_or(String::new(), |(_, value)| value.trim().to_owned())
        };
        let cores = processors.lines().filter(|line| line.starts_with("processor")).count();
        let kib: u64 = field(&memory, "MemTotal").trim_end_matches(" kB").parse().unwrap_or(0);
        Made {
            program: format!("inhost {}", env!("CARGO_PKG_VERSION")),
            machine: format!("{}, {cores} cores, {} GiB", field(&processors, "model name"), kib >> 20),
            system: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            day,
        }
    }
}

/// An experiment with its results.
pub struct Chapter {
    /// It.
    pub experiment: Experiment,
    /// Point by point.
    pub results: Vec<Results>,
    /// Beside the source.
    pub compared: Vec<Compared>,
    /// Beside what curves have to be like.
    pub shaped: Vec<Shaped>,
    /// Sums that were fitted.
    pub fitted: Vec<Fitted>,
}

impl Chapter {
    /// Reads the results of an experiment.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn new(experiment: Experiment, store: &Store) -> Result<Chapter, StoreError> {
        let results = results(&experiment, store)?;
        let compared = compare(&experiment, &results);
        let shaped = shapes(&experiment, &results);
        let fitted = fits(&experiment, &results);
        Ok(Chapter { experiment, results, compared, shaped, fitted })
    }
    /// Whether anything stands beside its figures.
    pub fn is_compared(&self) -> bool {
        !self.compared.is_empty() || !self.shaped.is_empty() || !self.fitted.is_empty()
    }
    /// How many judged figures and curves have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.compared.iter().filter(|of| of.verdict == verdict).count()
            + self.shaped.iter().filter(|of| of.verdict == verdict).count()
            + self.fitted.iter().flat_map(|of| &of.factors).filter(|of| of.verdict == verdict).count()
    }
    /// How many sums cannot be fitted, whatever is still to be measured.
    pub fn unfitted(&self) -> usize {
        let trouble = self.fitted.iter().filter_map(|of| of.trouble);
        trouble.filter(|why| why.is_final()).count()
    }
    /// Why runs cannot be made here, each reason once.
    pub fn not_here(&self) -> BTreeSet<&str> {
        let all = self.results.iter().flat_map(|of| &of.failures).map(String::as_str);
        all.filter(|why| is_not_here(why)).collect()
    }
    /// Whether anything was measured.
    pub fn is_measured(&self) -> bool {
        self.results.iter().any(|of| !of.measures.is_empty())
    }
    /// Whether anything was measured, or cannot be here.
    pub fn is_told(&self) -> bool {
        self.is_measured() || !self.not_here().is_empty()
    }
    /// The measures that its table shows.
    pub fn measures(&self) -> Vec<String> {
        if !self.experiment.show.is_empty() {
            return self.experiment.show.clone();
        }
        self.measured().into_iter().map(str::to_owned).collect()
    }
    /// The measures that there are.
    fn measured(&self) -> BTreeSet<&str> {
        self.results.iter().flat_map(|of| of.measures.keys()).map(String::as_str).collect()
    }
    /// What the experiment wants to be shown that neither was measured nor varies, each with its place.
    pub fn strange_names(&self) -> Vec<String> {
        let (measured, keys) = (self.measured(), self.experiment.keys().collect::<Vec<_>>());
        if measured.is_empty() {
            return Vec::new();
        }
        let list = measured.iter().copied().collect::<Vec<_>>().join(", ");
        let is_measure = |name: &String| measured.contains(name.as_str());
        let is_key = |name: &String| keys.contains(&name.as_str());
        let mut strange = Vec::new();
        for name in self.experiment.show.iter().filter(|name| !is_measure(name)) {
            strange.push(format!("show: {name} is not among the measures: {list}"));
        }
        for (plot, number) in self.experiment.plot.iter().zip(1..) {
            for name in plot.y.iter().filter(|name| !is_measure(name)) {
                strange.push(format!("plot {number}, y: {name} is not among the measures: {list}"));
            }
            if !is_measure(&plot.x) && !is_key(&plot.x) {
                strange.push(format!(
                    "plot {number}, x: {} is neither among what varies ({}) nor among the measures: {list}",
                    plot.x,
                    keys.join(", ")
                ));
            }
        }
        strange
    }
    /// Its table, as text for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.experiment.title);
        let measures = self.measures();
        for of in &self.results {
            let values =
                measures.iter().filter_map(|name| Some(format!("{name} {}", shown(of.measures.get(name)?))));
            let label = if of.point.label.is_empty() { "the setup" } else { &of.point.label };
            let _ = writeln!(text, "  {label}: {}", values.collect::<Vec<_>>().join(", "));
            for why in &of.failures {
                let failed = if is_not_here(why) { "" } else { "failed: " };
                let _ = writeln!(text, "    {failed}{why}");
            }
        }
        text
    }
    /// Beside the source, as text for a terminal.
    pub fn compared_text(&self) -> String {
        let mut text = format!("{}: {}\n", self.experiment.name, self.experiment.title);
        if !self.is_compared() {
            text.push_str("  its source has no figures here\n");
        }
        for of in &self.compared {
            let ours = of.ours.as_ref().map_or_else(|| "-".to_owned(), shown);
            let error = of.error_percent.map_or_else(|| "-".to_owned(), |error| format!("{error:+.1} %"));
            let _ = writeln!(
                text,
                "  {:<12} {:<24} {:<10} paper {:<10} ours {:<18} {:>8} of {:<6} {}",
                of.verdict.to_string(),
                of.measure,
                of.what,
                figure(of.paper),
                ours,
                error,
                of.tolerance,
                of.at
            );
            if !of.note.is_empty() {
                let _ = writeln!(text, "               {}", of.note);
            }
        }
        for why in self.not_here() {
            let _ = writeln!(text, "  {why}");
        }
        for of in &self.shaped {
            let values: Vec<String> = of.values.iter().map(|&value| figure(value)).collect();
            let _ = writeln!(text, "  {:<12} {}: {}", of.verdict.to_string(), of.text, values.join(", "));
        }
        if self.count(Verdict::Unknown) > 0 {
            let names = self.measured().into_iter().collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "  what is unknown is not among the measures: {names}");
        }
        for of in &self.fitted {
            match of.trouble {
                Some(why) => writeln!(text, "  not fitted   {}: {why}", of.text),
                None => writeln!(text, "  {}; explains {:.2} %", of.text, of.explained * 100.0),
            }
            .unwrap_or_default();
            for factor in &of.factors {
                let _ = writeln!(text, "  {:<12} {}", factor.verdict.to_string(), factor.text());
            }
        }
        text
    }
    /// All runs, a line each.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn csv(&self, store: &Store, out: &mut dyn FnMut(&str)) -> Result<(), StoreError> {
        let names: BTreeSet<&String> = self.results.iter().flat_map(|of| of.measures.keys()).collect();
        let keys: Vec<&str> = self.experiment.keys().collect();
        let head = ["point", "seed"]
            .into_iter()
            .chain(keys.iter().copied())
            .chain(names.iter().map(|name| name.as_str()));
        out(&(head.map(cell).collect::<Vec<_>>().join(",") + "\n"));
        for of in &self.results {
            for row in store.rows(&self.experiment, &of.point)? {
                let Ok(measured) = &row.result else { continue };
                let mut cells = vec![row.point.to_string(), row.seed.to_string()];
                cells.extend(keys.iter().map(|&key| match of.point.values.get(key) {
                    Some(toml::Value::String(text)) => cell(text),
                    Some(value) => cell(&value.to_string()),
                    None => String::new(),
                }));
                cells.extend(
                    names.iter().map(|&name| measured.get(name).map_or(String::new(), f64::to_string)),
                );
                out(&(cells.join(",") + "\n"));
            }
        }
        Ok(())
    }
}

impl Factor {
    /// As text: the value with half of its interval, and the source's.
    pub fn text(&self) -> String {
        let half = self.half_width.map_or_else(String::new, |half| format!(" ± {}", figure(half)));
        let paper = self.paper.zip(self.error_percent);
        let paper = paper
            .map_or_else(String::new, |(paper, error)| format!(", paper {} ({error:+.1} %)", figure(paper)));
        format!("{} = {}{half}{paper}", self.name, figure(self.value))
    }
}

/// A cell of CSV (RFC 4180).
fn cell(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// A number with four digits that count.
pub(crate) fn figure(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A mean, with half of its interval where there is one.
pub(crate) fn shown(of: &Estimate) -> String {
    let half = of.half_width.filter(|&half| half > 0.0);
    half.map_or_else(|| figure(of.mean), |half| format!("{} ± {}", figure(of.mean), figure(half)))
}

/// Writes a page in HTML and one in Markdown into a folder, with each curve as SVG and PNG. What could not be drawn is told.
///
/// # Errors
/// A file cannot be written.
pub fn write(folder: &Path, chapters: &[Chapter], made: &Made) -> io::Result<Vec<String>> {
    fs::create_dir_all(folder)?;
    let mut trouble = BTreeSet::new();
    let mut drawn = Vec::new();
    for chapter in chapters {
        let mut pictures = Vec::new();
        for number in 0..chapter.experiment.plot.len() {
            let name = format!("{}-{}", chapter.experiment.name, number + 1);
            match svg(chapter, number) {
                Ok(picture) => {
                    fs::write(folder.join(format!("{name}.svg")), &picture)?;
                    match png(&picture) {
                        Ok(octets) => fs::write(folder.join(format!("{name}.png")), octets)?,
                        Err(why) => drop(trouble.insert(why.to_string())),
                    }
                    pictures.push((name, picture));
                }
                Err(why) => drop(trouble.insert(format!("{name}: {why}"))),
            }
        }
        drawn.push(pictures);
    }
    fs::write(folder.join("report.html"), pages::html(chapters, &drawn, made))?;
    fs::write(folder.join("report.md"), pages::markdown(chapters, &drawn, made))?;
    Ok(trouble.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_four_digits() {
        let texts = [0.0, 0.12194, 12.0, 97.561, 14197.74, -0.5, 1e-6, 572.5].map(figure);
        assert_eq!(texts, ["0", "0.1219", "12", "97.56", "14198", "-0.5", "0.000001", "572.5"]);
        assert_eq!(cell("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
