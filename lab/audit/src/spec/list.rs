//! The lists of requirements in `docs/spec`.

use std::fs;
use std::path::{Path, PathBuf};

/// The requirements of one RFC.
pub struct List {
    /// As tags name it: `RFC9293`.
    pub rfc: String,
    /// Why it is not enforced yet.
    pub open: Option<String>,
    pub requirements: Vec<Requirement>,
}

/// One line of a list.
pub struct Requirement {
    pub id: String,
    pub what: String,
    /// Why no branch meets it.
    pub reason: Option<String>,
}

/// Every list of a folder, by name.
pub fn read_all(folder: &Path) -> Result<Vec<List>, String> {
    let entries = fs::read_dir(folder)
        .map_err(|e| format!("{}: {e}; run from the root of the workspace", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> Result<List, String> {
    let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let rfc = file.file_stem().unwrap_or_default().to_string_lossy().to_uppercase();
    parse(rfc, &text).map_err(|why| format!("{}: {why}", file.display()))
}

fn parse(rfc: String, text: &str) -> Result<List, String> {
    let mut list = List { rfc, open: None, requirements: Vec::new() };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(comment) = line.strip_prefix('#') {
            if let Some(why) = comment.trim().strip_prefix("open:") {
                list.open = Some(why.trim().to_owned());
            }
            continue;
        }
        let mut fields = line.splitn(3, '|').map(|field| field.trim().to_owned());
        let (Some(id), Some(what)) = (fields.next(), fields.next()) else {
            return Err(format!("no text in the line {line:?}"));
        };
        let reason = fields.next();
        if reason.as_ref().is_some_and(String::is_empty) || id.contains(' ') {
            return Err(format!("an empty reason, or a blank in an id, in the line {line:?}"));
        }
        if list.requirements.iter().any(|other| other.id == id) {
            return Err(format!("{id} is there twice"));
        }
        list.requirements.push(Requirement { id, what, reason });
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_id_a_text_and_perhaps_a_reason() {
        let text = "# Of RFC 1.\n# open: being built\n\n1-1 | MUST do | because\n1-2 | SHOULD do\n";
        let list = parse("RFC1".to_owned(), text).unwrap();
        assert_eq!((list.open.as_deref(), list.requirements.len()), (Some("being built"), 2));
        assert_eq!(list.requirements[0].reason.as_deref(), Some("because"));
        assert_eq!((list.requirements[1].id.as_str(), &list.requirements[1].reason), ("1-2", &None));
        for bad in ["1-1", "1-1 | a\n1-1 | b", "1-1 | a |"] {
            assert!(parse("RFC1".to_owned(), bad).is_err(), "{bad:?}");
        }
    }
}
