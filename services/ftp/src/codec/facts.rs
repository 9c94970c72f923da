//! Facts of a file in MLST and MLSD (RFC 3659 §7).

use inhost_common::storage::{Facts, Kind, Permissions};

use super::time::{parse_time, time_text};

/// The letters of the fact `perm`.
fn letters(permissions: Permissions, kind: Kind) -> String {
    let mut letters = String::new();
    let is_file = kind == Kind::File;
    if permissions.write {
        letters += if is_file { "aw" } else { "cmp" };
    }
    if permissions.delete {
        letters += "df";
    }
    if permissions.read {
        letters += if is_file { "r" } else { "el" };
    }
    letters
}

/// The facts that a server tells, with a space and the name, but for their line's end. `wanted` says which.
pub fn facts_line(facts: &Facts, name: &str, wanted: &dyn Fn(&str) -> bool) -> String {
    let mut line = String::new();
    let mut fact = |key: &str, value: String| {
        if wanted(key) {
            line += &format!("{key}={value};");
        }
    };
    fact("type", type_name(facts.kind).to_owned());
    if facts.kind == Kind::File {
        fact("size", facts.size_bytes.to_string());
    }
    if let Some(modified) = facts.modified {
        fact("modify", time_text(modified));
    }
    fact("perm", letters(facts.permissions, facts.kind));
    if let Some(unique) = &facts.unique {
        fact("unique", unique.clone());
    }
    if let Some(mode) = facts.mode {
        fact("UNIX.mode", format!("{:04o}", mode & 0o7777));
    }
    line.push(' ');
    line.push_str(name);
    line
}

/// The value of the fact `type`.
fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Directory => "dir",
        Kind::This => "cdir",
        Kind::Parent => "pdir",
        Kind::Other => "OS.unix=other",
    }
}

/// One line of MLSD, or the middle one of MLST: its facts and its name. `None` when it is none.
pub fn parse_facts(line: &str) -> Option<(Facts, &str)> {
    let (facts, name) = line.split_once(' ')?;
    let mut found = Facts {
        kind: Kind::Other,
        size_bytes: 0,
        modified: None,
        mode: None,
        unique: None,
        permissions: Permissions::default(),
    };
    let mut typed = false;
    for fact in facts.split_terminator(';') {
        let (key, value) = fact.split_once('=')?;
        match &*key.to_ascii_lowercase() {
            "type" => {
                typed = true;
                found.kind = match &*value.to_ascii_lowercase() {
                    "file" => Kind::File,
                    "dir" => Kind::Directory,
                    "cdir" => Kind::This,
                    "pdir" => Kind::Parent,
                    _ => Kind::Other,
                };
            }
            "size" => found.size_bytes = value.parse().ok()?,
            "modify" => found.modified = parse_time(value),
            "unix.mode" => found.mode = u32::from_str_radix(value, 8).ok(),
            "unique" => found.unique = Some(value.to_owned()),
            "perm" => {
                found.permissions = Permissions {
                    read: value.contains(['r', 'e', 'l']),
                    write: value.contains(['w', 'c']),
                    delete: value.contains('d'),
                };
            }
            _ => {}
        }
    }
    (typed && !name.is_empty()).then_some((found, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_written_and_read() {
        let facts = Facts {
            kind: Kind::File,
            size_bytes: 4_161,
            modified: parse_time("19970706033042"),
            mode: Some(0o100_644),
            unique: Some("8g12".into()),
            permissions: Permissions { read: true, write: true, delete: true },
        };
        let line = facts_line(&facts, "a b;c", &|_| true);
        assert_eq!(
            line,
            "type=file;size=4161;modify=19970706033042;perm=awdfr;unique=8g12;UNIX.mode=0644; a b;c"
        );
        let (read, name) = parse_facts(&line).unwrap();
        assert_eq!((read.mode, name), (Some(0o644), "a b;c"));
        assert_eq!(
            (read.kind, read.size_bytes, read.modified),
            (facts.kind, facts.size_bytes, facts.modified)
        );
        assert_eq!(facts_line(&facts, "x", &|fact| fact == "size"), "size=4161; x");
        // RFC 3659 §7.7.4.
        let (tmp, name) = parse_facts("Type=dir;Modify=19981107085215;Perm=el; tmp").unwrap();
        assert_eq!((tmp.kind, name), (Kind::Directory, "tmp"));
        for wrong in ["", "x", "type=file;size=-1; x", "type=file; ", "size=1; x"] {
            assert_eq!(parse_facts(wrong), None, "{wrong}");
        }
    }
}
