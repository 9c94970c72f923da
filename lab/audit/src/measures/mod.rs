//! Measures of how the house is built, each of which may only fall. [`reach`] says what reaching is and where syntax trees
//! fall short; [`roots`] and [`halves`] count functions by it, [`parts`] those that hold much of the stack; [`fields`] which
//! fields are open, [`circles`] which files and folders know each other, [`lines`], [`types`] and [`functions`] sizes.
//!
//! `measures.toml` keeps each value. A value that differs from it is an error both ways: one that rose is a loss, and one
//! that fell must be written down (`--write`), so that the gain is not spent later. `--write` never writes a rise; who has
//! a reason for one changes the number by hand, and the commit says why. What no line is written for counts as 0.

mod circles;
mod fields;
mod functions;
mod halves;
mod lines;
mod parts;
mod reach;
mod record;
mod roots;
mod source;
mod types;

pub use circles::{Exempt, of_files};
pub use source::Tree;

use source::Function;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// What a measure counts.
pub struct Measure {
    /// Its group, a table of `measures.toml`.
    kind: &'static str,
    name: String,
    value: usize,
    /// Where it should get.
    goal: Option<usize>,
    /// What was counted.
    behind: Vec<Behind>,
}

/// One of the things that a measure counts.
pub struct Behind {
    what: String,
    /// Its file and line, or where else it is.
    place: String,
}

impl Measure {
    fn of(kind: &'static str, name: String, behind: Vec<Behind>) -> Measure {
        Measure { kind, name, value: behind.len(), goal: None, behind }
    }
    fn with_goal(self, goal: usize) -> Measure {
        Measure { goal: Some(goal), ..self }
    }
    fn title(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }
}

impl Behind {
    fn new(what: String, place: String) -> Behind {
        Behind { what, place }
    }
    fn function(tree: &Tree, function: &Function<'_>) -> Behind {
        Behind::new(function.name(), tree.place(function.module, function.line()))
    }
    fn with(self, more: &str) -> Behind {
        Behind { what: format!("{}: {more}", self.what), ..self }
    }
    /// What it is, wherever in its file: lines move.
    fn without_line(&self) -> (&str, &str) {
        (&self.what, self.place.split(':').next().unwrap_or_default())
    }
}

/// All measures of the workspace at `root`.
fn measure(root: &Path) -> Result<Vec<Measure>, String> {
    let folders = crates(root)?;
    let tree = Tree::read(root, &folders)?;
    let graph = reach::Graph::of(&tree);
    let house: Vec<String> =
        folders.iter().filter(|folder| !folder.starts_with("services/")).cloned().collect();
    Ok([
        halves::measures(&tree, &graph)?,
        parts::measures(&tree, &graph)?,
        roots::measures(&tree, &graph)?,
        fields::measures(&tree, &graph, &house),
        circles::measures(&tree, &folders),
        lines::measures(&tree),
        types::measures(&tree),
        functions::measures(&tree),
    ]
    .into_iter()
    .flatten()
    .collect())
}

/// The folders of the libraries in `core`, `host` and `services`.
fn crates(root: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for group in ["core", "host", "services"] {
        let entries = fs::read_dir(root.join(group))
            .map_err(|error| format!("{group}: {error}; run from the root of the workspace"))?;
        for entry in entries.flatten().filter(|entry| entry.path().join("src/lib.rs").exists()) {
            found.push(format!("{group}/{}", entry.file_name().display()));
        }
    }
    found.sort();
    Ok(found)
}

/// Holds the measures against `measures.toml`; with `is_table`, gives all of them as a table.
pub fn check(is_table: bool) -> Result<String, String> {
    let root = Path::new(".");
    let (recorded, found) = (record::read(root)?, measure(root)?);
    let table = if is_table { record::table(&recorded, &found) } else { String::new() };
    let wrong =
        record::differences(&recorded, &found, || record::before().and_then(|root| measure(root.path())));
    match wrong.is_empty() {
        true => Ok(format!("{table}measures: {}, all as recorded", found.len())),
        false => Err(table + &wrong),
    }
}

/// Writes what fell.
pub fn write() -> Result<String, String> {
    record::write(Path::new("."), &measure(Path::new("."))?)
}

/// What is behind the measures whose title holds `name`.
pub fn list(name: &str) -> Result<String, String> {
    let found = measure(Path::new("."))?;
    let exact: Vec<&Measure> = found.iter().filter(|of| of.title() == name || of.name == name).collect();
    let chosen =
        if exact.is_empty() { found.iter().filter(|of| of.title().contains(name)).collect() } else { exact };
    let mut text = String::new();
    for of in chosen {
        let _ = writeln!(text, "{}: {}", of.title(), of.value);
        for behind in &of.behind {
            let _ = writeln!(text, "    {} {}", behind.place, behind.what);
        }
    }
    if text.is_empty() {
        Err(format!("no measure has “{name}” in its name; `inhost-audit measures` prints them"))
    } else {
        Ok(text)
    }
}
