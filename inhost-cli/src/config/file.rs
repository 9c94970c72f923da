//! The configuration file: which one is believed, and in which of its lines a value stands.

use crate::failure::Failure;
use inhost_common::trust::distrust;
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{fmt, fs};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A configuration file that was read.
pub struct File {
    /// Where it lies.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
}

impl File {
    /// The file that the user named.
    pub fn named(path: &Path) -> Result<File, Failure> {
        let text = fs::read_to_string(path)
            .map_err(|e| Failure::usage(format!("cannot read {}: {e}", path.display())))?;
        Ok(File { path: path.to_owned(), text })
    }

    /// The file that lies in the current folder, if there is one. The user did not name it, and the folder may be
    /// anybody's: the file counts only if it belongs to the caller or to root, and nobody else can write it.
    pub fn of_current_folder(path: &Path) -> Result<Option<File>, Failure> {
        let shown = path.display();
        let failed = |e| Failure::usage(format!("cannot read {shown} of the current folder: {e}"));
        let refused = |why: &str| {
            Failure::usage(format!(
                "{shown} of the current folder is not used: {why}; name it with --config {shown} if you trust it, or \
                 start in another folder"
            ))
        };
        // Anybody who can write the folder chooses where a link in it leads, and what it leads to may well be the user's own.
        if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let about = fs::metadata(folder.unwrap_or(Path::new("."))).map_err(failed)?;
            if let Some(why) = distrust(about.uid(), about.mode(), geteuid().as_raw()) {
                return Err(refused(&format!("it is a symbolic link in a folder that is not safe: {why}")));
            }
        }
        let mut file = match opened(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        // Of the open file: the name may lead elsewhere by now.
        let metadata = file.metadata().map_err(failed)?;
        if let Some(why) = distrust(metadata.uid(), metadata.mode(), geteuid().as_raw()) {
            return Err(refused(&why.to_string()));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        Ok(Some(File { path: path.to_owned(), text }))
    }
}

/// A file that is open. Nothing else is one: nobody has said that a pipe is to be waited for.
fn opened(path: &Path) -> io::Result<fs::File> {
    let without_waiting = OFlags::NONBLOCK.bits() as i32;
    let file = fs::OpenOptions::new().read(true).custom_flags(without_waiting).open(path)?;
    match file.metadata()?.file_type() {
        kind if kind.is_file() => Ok(file),
        kind if kind.is_dir() => Err(io::Error::other("it is a folder; name a file")),
        _ => Err(io::Error::other("it is not a regular file")),
    }
}

/// The line, from 1, of `text` at which `key` has the value `value`; if no value reads so, the first line of the key.
pub fn line_of(text: &str, key: &str, value: &str) -> Option<usize> {
    let table = DeTable::parse(text).ok()?.into_inner();
    let mut found = Vec::new();
    collect(&table, key, &mut found);
    let is_value = |(_, written): &&(usize, String)| written == value;
    let &(at, _) = found.iter().find(is_value).or(found.first())?;
    Some(text[..at].matches('\n').count() + 1)
}

/// What is wrong with a text, and in which line.
#[derive(Debug)]
pub struct Wrong {
    line: Option<usize>,
    words: String,
}

/// How the parser calls numbers, and how people do.
const NUMBERS: [(&str, &str); 4] = [
    ("expected u8", "expected a number from 0 to 255"),
    ("expected u16", "expected a number from 0 to 65535"),
    ("expected u32", "expected a number from 0 to 4294967295"),
    ("expected u64", "expected a whole number that is not negative"),
];

/// The key whose value begins at `at`, where both stand in one line.
fn key_before(text: &str, at: usize) -> Option<&str> {
    let line = text.get(..at)?.rsplit('\n').next()?;
    let key = line.trim_end().strip_suffix('=')?.trim();
    (!key.is_empty()).then_some(key)
}

impl Wrong {
    /// Words about what is at `span` of `text`.
    pub fn at(text: &str, span: Option<Range<usize>>, words: &str) -> Wrong {
        let line = span.map(|span| text[..span.start].matches('\n').count() + 1);
        Wrong { line, words: words.trim().replace('\n', "; ") }
    }
    /// The parser's error, whose own form has several lines.
    pub fn of(text: &str, error: &toml::de::Error) -> Wrong {
        let words = error.message().replace("unknown field", "unknown key");
        let words = words.replace("expected a sequence", "expected a list such as [\"user\"]");
        let words = NUMBERS.iter().fold(words, |words, (kind, named)| {
            words.strip_suffix(kind).map_or(words.clone(), |front| front.to_owned() + named)
        });
        let key = error.span().and_then(|span| key_before(text, span.start));
        let words = key.map_or(words.clone(), |key| format!("{key}: {words}"));
        Wrong::at(text, error.span(), &words)
    }
    /// The same with more words.
    pub fn and(self, more: &str) -> Wrong {
        Wrong { words: self.words + more, ..self }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.words),
            None => f.write_str(&self.words),
        }
    }
}

/// Where the values of `key` begin, and how they read.
fn collect(table: &DeTable<'_>, key: &str, found: &mut Vec<(usize, String)>) {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let Some((_, value)) = table.iter().find(|(name, _)| name.get_ref().as_ref() == first) else { return };
    descend(value, rest, found);
}

fn descend(value: &Spanned<DeValue<'_>>, rest: Option<&str>, found: &mut Vec<(usize, String)>) {
    match (value.get_ref(), rest) {
        (DeValue::Array(elements), _) => elements.iter().for_each(|element| descend(element, rest, found)),
        (DeValue::Table(table), Some(rest)) => collect(table, rest, found),
        (DeValue::String(text), None) => found.push((value.span().start, text.to_string())),
        (DeValue::Integer(number), None) => found.push((value.span().start, number.as_str().to_owned())),
        _ => found.push((value.span().start, String::new())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_value_of_another_kind_is_told_with_its_key() {
        let wrong = |text: &str| {
            let parsed = toml::from_str::<std::collections::BTreeMap<String, u16>>(text);
            Wrong::of(text, &parsed.unwrap_err()).to_string()
        };
        let large = "line 2: port: invalid value: integer `70000`, expected a number from 0 to 65535";
        assert_eq!(wrong("other = 1\nport = 70000\n"), large);
        let text = "line 1: port: invalid type: string \"x\", expected a number from 0 to 65535";
        assert_eq!(wrong("port=\"x\""), text);
    }
    #[test]
    fn a_value_is_found_in_its_line() {
        let text = "memory = \"64M\"\nlink = [\n  \"user\",\n  \"user,lost=5%\",\n]\n[tftp]\nwindow = 70000\n\
                    [[ftp.user]]\nname = \"ada\"\nrights = \"read\"\n[[ftp.user]]\nname = \"bob\"\nrights = \"all\"\n";
        assert_eq!(line_of(text, "memory", "64M"), Some(1));
        assert_eq!(line_of(text, "link", "user,lost=5%"), Some(4));
        assert_eq!(line_of(text, "tftp.window", "70000"), Some(7));
        assert_eq!(line_of(text, "ftp.user.rights", "all"), Some(13));
        assert_eq!(line_of(text, "ftp.user.name", "eve"), Some(9), "the first of the key");
        assert_eq!(line_of(text, "names.cache", "8M"), None);
    }

    #[test]
    fn a_file_that_others_can_write_does_not_count() {
        let path = std::env::temp_dir().join(format!("inhost-file-{}.toml", std::process::id()));
        assert!(File::of_current_folder(&path).unwrap().is_none(), "none is not a failure");
        fs::write(&path, "memory = \"64M\"\n").unwrap();
        let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o644);
        assert!(File::of_current_folder(&path).unwrap().is_some());
        for writable in [0o664, 0o646] {
            mode(writable);
            let refused = File::of_current_folder(&path).err().unwrap().to_string();
            assert!(refused.contains("--config") && refused.contains("others can write"), "{refused}");
        }
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_is_not_a_file_is_an_error_and_not_waited_for() {
        let folder = std::env::temp_dir().join(format!("inhost-pipe-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let pipe = folder.join("host.toml");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for (path, why) in [(&pipe, "not a regular file"), (&folder, "a folder")] {
            let found = File::of_current_folder(path).err().unwrap().to_string();
            assert!(found.contains(why), "{found}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_link_counts_where_only_its_owner_can_have_made_it() {
        let folder = std::env::temp_dir().join(format!("inhost-link-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("real.toml"), "memory = \"64M\"\n").unwrap();
        let path = folder.join("host.toml");
        std::os::unix::fs::symlink("real.toml", &path).unwrap();
        let mode = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o755);
        assert!(File::of_current_folder(&path).unwrap().is_some());
        for writable in [0o775, 0o1777] {
            mode(writable);
            let refused = File::of_current_folder(&path).err().unwrap().to_string();
            assert!(refused.contains("symbolic link") && refused.contains("others can write"), "{refused}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
