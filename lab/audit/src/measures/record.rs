//! The record of the measures: `lab/audit/measures.toml`, a table for each group.

use super::Measure;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FILE: &str = "lab/audit/measures.toml";
const HEAD: &str = "\
# The measures of the house (CONTRIBUTING.md). Each may only fall: `inhost-audit measures` fails on a value that differs,
# and `inhost-audit measures --write` writes what fell. A rise is written by hand, and its commit says why.
";
/// New things that are named of a measure that rose.
const NAMED: usize = 20;

/// Values by group and name. What is not written is 0.
pub type Record = BTreeMap<String, BTreeMap<String, usize>>;

pub fn read(root: &Path) -> Result<Record, String> {
    match fs::read_to_string(root.join(FILE)) {
        Ok(text) => toml::from_str(&text).map_err(|error| format!("{FILE}: {error}")),
        Err(error) => Err(format!("{FILE}: {error}")),
    }
}

fn value(recorded: &Record, of: &Measure) -> usize {
    recorded.get(of.kind).and_then(|group| group.get(&of.name)).copied().unwrap_or(0)
}

/// The measures beside what is recorded; those that are and were nothing are left out.
pub fn table(recorded: &Record, found: &[Measure]) -> String {
    let mut text = "| measure | recorded | now | goal |\n|---|---|---|---|\n".to_owned();
    for of in found {
        let (before, goal) = (value(recorded, of), of.goal.map_or_else(String::new, |goal| goal.to_string()));
        if before > 0 || of.value > 0 {
            let _ = writeln!(text, "| {} | {before} | {} | {goal} |", of.title(), of.value);
        }
    }
    text
}

/// What differs from the record; nothing where all is as recorded. `before` measures the code of the record's commit.
pub fn differences(
    recorded: &Record,
    found: &[Measure],
    before: impl FnOnce() -> Result<Vec<Measure>, String>,
) -> String {
    let mut text = String::new();
    let rose: Vec<&Measure> = found.iter().filter(|of| of.value > value(recorded, of)).collect();
    let before = if rose.is_empty() { Ok(Vec::new()) } else { before() };
    for of in rose {
        let _ = writeln!(text, "{} rose from {} to {}", of.title(), value(recorded, of), of.value);
        match &before {
            Ok(before) => new(of, before).for_each(|line| text += &line),
            Err(why) => drop(writeln!(text, "    what is new is not known: {why}")),
        }
    }
    for of in found.iter().filter(|of| of.value < value(recorded, of)) {
        let _ = writeln!(text, "{} fell from {} to {}", of.title(), value(recorded, of), of.value);
    }
    for (kind, name) in gone(recorded, found) {
        let _ = writeln!(text, "{kind} {name} is recorded and measured no more");
    }
    if text.contains(" fell from ") || text.contains(" measured no more") {
        text += "Write down what fell: cargo run -p inhost-audit -- measures --write\n";
    }
    text
}

/// What is behind a measure now and was not before.
fn new(of: &Measure, before: &[Measure]) -> impl Iterator<Item = String> {
    let before = before.iter().find(|before| before.title() == of.title());
    let before: BTreeSet<(&str, &str)> =
        before.into_iter().flat_map(|before| &before.behind).map(|behind| behind.without_line()).collect();
    let new = of.behind.iter().filter(move |behind| !before.contains(&behind.without_line()));
    new.take(NAMED).map(|behind| format!("    new: {} {}\n", behind.place, behind.what))
}

fn gone<'a>(recorded: &'a Record, found: &[Measure]) -> Vec<(&'a str, &'a str)> {
    let known: BTreeSet<(&str, &str)> = found.iter().map(|of| (of.kind, &of.name[..])).collect();
    let all = recorded.iter().flat_map(|(kind, group)| group.keys().map(move |name| (&kind[..], &name[..])));
    all.filter(|name| !known.contains(name)).collect()
}

/// Writes the measures that fell, and says which these are. With no file yet, writes all.
pub fn write(root: &Path, found: &[Measure]) -> Result<String, String> {
    let recorded = if root.join(FILE).exists() { Some(read(root)?) } else { None };
    let (mut written, mut said) = (Record::new(), String::new());
    for of in found {
        let before = recorded.as_ref().map_or(of.value, |recorded| value(recorded, of));
        if of.value != before {
            let what = if of.value < before { "written" } else { "NOT written, it rose" };
            let _ = writeln!(said, "{}: {before}, now {}: {what}", of.title(), of.value);
        }
        if before.min(of.value) > 0 {
            written.entry(of.kind.to_owned()).or_default().insert(of.name.clone(), before.min(of.value));
        }
    }
    let text = toml::to_string(&written).map_err(|error| format!("{FILE}: {error}"))?;
    let text = format!("{HEAD}\n{text}");
    fs::write(root.join(FILE), text).map_err(|error| format!("{FILE}: {error}"))?;
    if said.contains("NOT written") { Err(said) } else { Ok(said + FILE) }
}

/// A folder that goes when it is dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The code of the latest commit that changed the record.
pub fn before() -> Result<Folder, String> {
    let failed = |error| format!("git: {error}");
    let log = Command::new("git").args(["log", "-1", "--format=%H", "--", FILE]).output().map_err(failed)?;
    let commit = String::from_utf8_lossy(&log.stdout).trim().to_owned();
    if commit.is_empty() {
        return Err(format!("no commit has {FILE}"));
    }
    let folder = Folder(std::env::temp_dir().join(format!("inhost-measures-{}", std::process::id())));
    fs::create_dir_all(folder.path()).map_err(|error| error.to_string())?;
    let mut archive = Command::new("git")
        .args(["archive", &commit, "core", "host", "services"])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let from = archive.stdout.take().expect("it is piped");
    let unpacked = Command::new("tar").arg("x").arg("-C").arg(folder.path()).stdin(from).status();
    let packed = archive.wait().map_err(failed)?;
    let unpacked = unpacked.map_err(|error| format!("tar: {error}"))?;
    if packed.success() && unpacked.success() {
        Ok(folder)
    } else {
        Err(format!("git archive {commit} failed"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Behind;
    use super::*;

    fn lines(names: &[&str]) -> Vec<Measure> {
        let behind = |name: &&str| Behind::new((*name).to_owned(), format!("file.rs:{}", name.len()));
        vec![Measure::of("kind", "name".to_owned(), names.iter().map(behind).collect())]
    }
    fn recorded(value: usize) -> Record {
        toml::from_str(&format!("[kind]\nname = {value}")).unwrap()
    }

    #[test]
    fn a_rise_and_a_fall_are_told_and_what_is_new_is_named() {
        let found = lines(&["old", "new"]);
        let before = || Ok(lines(&["old"]));
        assert_eq!(differences(&recorded(2), &found, before), "");
        assert_eq!(
            differences(&recorded(1), &found, before),
            "kind name rose from 1 to 2\n    new: file.rs:3 new\n"
        );
        assert!(
            differences(&recorded(3), &found, before).starts_with("kind name fell from 3 to 2\nWrite down")
        );
        assert!(differences(&Record::new(), &found, before).starts_with("kind name rose from 0 to 2"));
        assert!(
            differences(&recorded(1), &[], before).starts_with("kind name is recorded and measured no more")
        );
    }
    #[test]
    fn only_what_fell_is_written() {
        let folder = Folder(std::env::temp_dir().join(format!("inhost-record-{}", std::process::id())));
        fs::create_dir_all(folder.path().join("lab/audit")).unwrap();
        let written = || read(folder.path()).unwrap()["kind"]["name"];
        write(folder.path(), &lines(&["a", "b"])).unwrap();
        assert_eq!(written(), 2);
        assert!(write(folder.path(), &lines(&["a", "b", "c"])).unwrap_err().contains("NOT written"));
        assert_eq!(written(), 2);
        write(folder.path(), &lines(&["a"])).unwrap();
        assert_eq!(written(), 1);
        write(folder.path(), &[]).unwrap();
        assert!(read(folder.path()).unwrap().is_empty());
    }
}
