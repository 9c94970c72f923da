//! Files: headings, includes, and lines.

use super::words::{Words, Wrong, expected, split};
use super::{HostSetting, KernelNote, Line, ParseError, Place, Profile, Script, line};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most lines that a script may have with its includes.
pub const SCRIPT_LIMIT_LINES: usize = 10_000;
/// Most includes within includes.
const INCLUDE_LIMIT: usize = 8;

/// Reads the script in `path`; what it includes is looked for beside it and in the folders above it.
pub fn parse_file(path: &Path) -> Result<Script, ParseError> {
    let file: Arc<str> = path.display().to_string().into();
    let text = read(path, Place { file: file.clone(), line: 0 })?;
    parse(&file, &text, path.parent().unwrap_or(Path::new(".")))
}
/// Reads a script that lies in memory; includes are looked for in the folder that the program runs in.
pub fn parse_text(file: &str, text: &str) -> Result<Script, ParseError> {
    parse(&file.into(), text, Path::new("."))
}

fn parse(file: &Arc<str>, text: &str, folder: &Path) -> Result<Script, ParseError> {
    let first = text.lines().next().unwrap_or_default();
    let purpose = first.strip_prefix('#').map(str::trim).filter(|purpose| !purpose.is_empty());
    let Some(purpose) = purpose else {
        return Err(ParseError {
            place: Place { file: file.clone(), line: 1 },
            message: "a script begins with its purpose, such as `# RFC 9293 §3.5: the handshake`".into(),
        });
    };
    let mut parser = Parser {
        script: Script {
            file: file.to_string(),
            purpose: purpose.to_owned(),
            profile: Profile::default(),
            is_ipv6: false,
            host: Vec::new(),
            kernel: KernelNote::Same,
            lines: Vec::new(),
        },
        depth: 0,
    };
    parser.text(file, text, folder)?;
    if parser.script.lines.is_empty() {
        let place = Place { file: file.clone(), line: text.lines().count() };
        return Err(ParseError { place, message: "nothing happens in this script".into() });
    }
    Ok(parser.script)
}

fn read(path: &Path, place: Place) -> Result<String, ParseError> {
    std::fs::read_to_string(path)
        .map_err(|error| ParseError { place, message: format!("cannot read {}: {error}", path.display()) })
}

struct Parser {
    script: Script,
    /// How deep we are in includes.
    depth: usize,
}

impl Parser {
    fn text(&mut self, file: &Arc<str>, text: &str, folder: &Path) -> Result<(), ParseError> {
        for (index, text) in text.lines().enumerate() {
            let place = Place { file: file.clone(), line: index + 1 };
            self.line(&place, text.trim(), folder).or_else(|wrong| wrong.into_result(&place))?;
        }
        Ok(())
    }
    fn line(&mut self, place: &Place, text: &str, folder: &Path) -> Result<(), Stop> {
        if let Some(note) = text.strip_prefix("kernel:") {
            return Ok(self.kernel_note(note.trim())?);
        }
        let words = split(text);
        let mut words = Words::new(&words);
        match words.next() {
            None => Ok(()),
            Some("profile") => Ok(self.profile(&mut words)?),
            Some("network") => Ok(self.network(&mut words)?),
            Some("host") => Ok(self.host(place, &mut words)?),
            Some("include") => {
                let name = words.word("a file's name")?;
                words.end("an include")?;
                self.include(place, name, folder)
            }
            Some(_) => {
                for (when, step) in line::steps(text)? {
                    if self.script.lines.len() == SCRIPT_LIMIT_LINES {
                        return Err(format!("a script has at most {SCRIPT_LIMIT_LINES} lines").into());
                    }
                    let text = text.to_owned();
                    self.script.lines.push(Line { place: place.clone(), text, when, step });
                }
                Ok(())
            }
        }
    }
    fn kernel_note(&mut self, note: &str) -> Result<(), Wrong> {
        const WHAT: &str = "`kernel: differs because …` or `kernel: cannot run because …`";
        let reason = |rest: &str| Some(rest.trim().to_owned()).filter(|reason| !reason.is_empty());
        let read = match note.split_once("because") {
            Some((how, why)) if how.trim() == "differs" => reason(why).map(KernelNote::Differs),
            Some((how, why)) if how.trim() == "cannot run" => reason(why).map(KernelNote::CannotRun),
            _ => None,
        };
        if self.script.kernel != KernelNote::Same {
            return Err("the kernel's behaviour is noted twice".into());
        }
        self.script.kernel = read.map_or_else(|| expected(WHAT, Some(note)), Ok)?;
        Ok(())
    }
    fn profile(&mut self, words: &mut Words<'_>) -> Result<(), Wrong> {
        self.script.profile = match words.word("rfc or linux")? {
            "rfc" => Profile::Rfc,
            "linux" => Profile::Linux,
            other => return expected("rfc or linux", Some(other)),
        };
        words.end("a profile")
    }
    fn network(&mut self, words: &mut Words<'_>) -> Result<(), Wrong> {
        self.script.is_ipv6 = match words.word("ipv4 or ipv6")? {
            "ipv4" => false,
            "ipv6" => true,
            other => return expected("ipv4 or ipv6", Some(other)),
        };
        words.end("a network")
    }
    fn host(&mut self, place: &Place, words: &mut Words<'_>) -> Result<(), Wrong> {
        if !self.script.lines.is_empty() {
            return Err("the host is set up before anything happens".into());
        }
        let name = words.word("a setting's name")?.to_owned();
        let value = words.word("the setting's value")?.to_owned();
        words.end("a setting")?;
        self.script.host.push(HostSetting { place: place.clone(), name, value });
        Ok(())
    }
    fn include(&mut self, place: &Place, name: &str, folder: &Path) -> Result<(), Stop> {
        if self.depth == INCLUDE_LIMIT {
            return Err(format!("includes go at most {INCLUDE_LIMIT} deep").into());
        }
        let Some(path) = find(name, folder) else {
            return Err(format!("no file {name} in {} or the folders above it", folder.display()).into());
        };
        let text = read(&path, place.clone())?;
        let file: Arc<str> = path.display().to_string().into();
        self.depth += 1;
        self.text(&file, &text, path.parent().unwrap_or(folder))?;
        self.depth -= 1;
        Ok(())
    }
}

/// `name` beside the script, or in one of the folders above.
fn find(name: &str, folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Why reading ended: something on this line, or something inside an include, which has its own place.
enum Stop {
    Here(Wrong),
    Elsewhere(ParseError),
}

impl Stop {
    fn into_result(self, place: &Place) -> Result<(), ParseError> {
        Err(match self {
            Stop::Here(message) => ParseError { place: place.clone(), message },
            Stop::Elsewhere(error) => error,
        })
    }
}
impl From<Wrong> for Stop {
    fn from(wrong: Wrong) -> Self {
        Stop::Here(wrong)
    }
}
impl From<ParseError> for Stop {
    fn from(error: ParseError) -> Self {
        Stop::Elsewhere(error)
    }
}
