//! The tags in the sources.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Where one requirement is tagged, as `file:line`.
#[derive(Default)]
pub struct Places {
    pub branches: Vec<String>,
    pub tests: Vec<String>,
}

/// Places by RFC and id.
pub type Tags = BTreeMap<(String, String), Places>;

/// Every tag in the sources under `folders`. One counts as a test's in a file under `tests`, in a `tests.rs`, behind
/// `#[cfg(test)]`, and in a script.
pub fn collect<'a>(folders: impl Iterator<Item = &'a Path>) -> Result<Tags, String> {
    let mut tags = Tags::new();
    for folder in folders {
        for file in sources(folder) {
            let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            let is_script = file.extension().is_some_and(|e| e == "script");
            let is_test = |part: &std::ffi::OsStr| matches!(part.to_str(), Some("tests" | "tests.rs"));
            let mut in_test = is_script || file.iter().any(is_test);
            for (number, line) in text.lines().enumerate() {
                in_test |= line.trim() == "#[cfg(test)]";
                for tag in tags_of(line) {
                    let places = tags.entry(tag).or_default();
                    let place = format!("{}:{}", file.display(), number + 1);
                    if in_test { places.tests.push(place) } else { places.branches.push(place) }
                }
            }
        }
    }
    Ok(tags)
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return files };
    for path in entries.filter_map(|entry| entry.ok().map(|e| e.path())) {
        // What is pending proves nothing yet.
        if path.is_dir() && !path.ends_with("pending") {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs" || e == "script") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The RFCs and ids that a line tags.
fn tags_of(line: &str) -> Vec<(String, String)> {
    let Some((_, tagged)) = line.split_once("spec: ") else { return Vec::new() };
    let mut tags = Vec::new();
    let mut rfc = None;
    for part in tagged.split([',', ';']) {
        let mut words = part.split_whitespace();
        let Some(mut word) = words.next() else { break };
        if word.strip_prefix("RFC").is_some_and(|number| number.parse::<u32>().is_ok()) {
            rfc = Some(word.to_owned());
            word = match words.next() {
                Some(word) => word,
                None => continue,
            };
        }
        let id = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        match &rfc {
            Some(rfc) if id.contains(|c: char| c.is_ascii_digit()) => tags.push((rfc.clone(), id.to_owned())),
            _ => break,
        }
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_may_tag_several_requirements_of_several_rfcs() {
        let found = |line: &str| -> Vec<String> {
            tags_of(line).into_iter().map(|(rfc, id)| format!("{rfc} {id}")).collect()
        };
        let line = concat!("    // sp", "ec: RFC1122 3.2.1.8-1, 3.2.2.6-4; RFC9293 MUST-53.");
        assert_eq!(found(line), ["RFC1122 3.2.1.8-1", "RFC1122 3.2.2.6-4", "RFC9293 MUST-53"]);
        let line = concat!("\"sp", "ec: RFC8201 4: a report never raises it\"");
        assert_eq!(found(line), ["RFC8201 4"]);
        assert!(found("// RFC 8201 §4, in words").is_empty());
    }
}
