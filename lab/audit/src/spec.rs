//! Requirements of RFCs against the tags in the code: `spec: RFC9293 MUST-13` at the branch that meets it and at the
//! test that proves it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose sources carry tags.
const SOURCES: &[&str] = &["core", "host", "services", "lab/sim"];

#[derive(Default)]
struct Places {
    branches: Vec<String>,
    tests: Vec<String>,
}

/// Lists each requirement of `docs/spec/*.txt` with its branch and its test; fails when one has neither them nor a
/// reason, or when a tag names a requirement that no list has.
pub fn check(list: bool) -> Result<String, String> {
    let mut tags: BTreeMap<(String, String), Places> = BTreeMap::new();
    for folder in SOURCES {
        for file in rust_files(Path::new(folder)) {
            collect(&file, &mut tags)?;
        }
    }
    let mut report = String::new();
    let mut wrong = Vec::new();
    let mut met = 0;
    let mut total = 0;
    let mut reasons = 0;
    for list_file in spec_lists()? {
        let rfc = list_file.file_stem().unwrap_or_default().to_string_lossy().to_uppercase();
        let text = fs::read_to_string(&list_file).map_err(|e| format!("{}: {e}", list_file.display()))?;
        let mut known = Vec::new();
        for line in text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty()) {
            let mut fields = line.splitn(3, '|').map(str::trim);
            let (id, what) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
            let reason = fields.next();
            total += 1;
            known.push(id.to_owned());
            let places = tags.get(&(rfc.clone(), id.to_owned()));
            let branch = places.and_then(|p| p.branches.first());
            let test = places.and_then(|p| p.tests.first());
            match (branch, test, reason) {
                (Some(branch), Some(test), _) => {
                    met += 1;
                    let _ = writeln!(report, "{rfc} {id:8} {what}\n{:17} branch {branch}, test {test}", "");
                }
                (_, _, Some(reason)) => {
                    reasons += 1;
                    let _ = writeln!(report, "{rfc} {id:8} {what}\n{:17} reason: {reason}", "");
                }
                (branch, test, None) => wrong.push(format!(
                    "{rfc} {id} ({what}): branch {}, test {}",
                    branch.map_or("missing", |b| b),
                    test.map_or("missing", |t| t)
                )),
            }
        }
        for ((tag_rfc, id), places) in &tags {
            if *tag_rfc == rfc && id.starts_with("MUST") && !known.contains(id) {
                let place = places.branches.iter().chain(&places.tests).next().map_or("", |p| p);
                wrong.push(format!("{place}: {rfc} has no requirement {id}"));
            }
        }
    }
    if list {
        print!("{report}");
    }
    let summary = format!("spec: {total} requirements, {met} with branch and test, {reasons} with a reason");
    if wrong.is_empty() { Ok(summary) } else { Err(format!("{}\n{summary}", wrong.join("\n"))) }
}

fn spec_lists() -> Result<Vec<PathBuf>, String> {
    let mut lists: Vec<PathBuf> = fs::read_dir("docs/spec")
        .map_err(|e| format!("docs/spec: {e}; run from the root of the workspace"))?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    lists.sort();
    Ok(lists)
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return files };
    for path in entries.filter_map(|entry| entry.ok().map(|e| e.path())) {
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// A tag counts as a test's in a file under `tests`, in a `tests.rs`, or behind `#[cfg(test)]`.
fn collect(file: &Path, tags: &mut BTreeMap<(String, String), Places>) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut in_test = file.components().any(|c| matches!(c.as_os_str().to_str(), Some("tests" | "tests.rs")));
    for (number, line) in text.lines().enumerate() {
        in_test |= line.trim() == "#[cfg(test)]";
        let Some((_, tagged)) = line.split_once("spec: ") else { continue };
        let mut words = tagged.split([' ', ',', ';', '.']).filter(|w| !w.is_empty());
        let Some(rfc) = words.next().filter(|w| w.starts_with("RFC")) else { continue };
        for id in words.take_while(|w| w.contains('-') && w.starts_with(|c: char| c.is_ascii_uppercase())) {
            let id = id.trim_end_matches(|c: char| !c.is_ascii_digit());
            let places = tags.entry((rfc.to_owned(), id.to_owned())).or_default();
            let place = format!("{}:{}", file.display(), number + 1);
            if in_test { places.tests.push(place) } else { places.branches.push(place) }
        }
    }
    Ok(())
}
