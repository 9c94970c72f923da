//! How long the code of a module is: the symbols of this very program.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;

use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use serde::Deserialize;

/// Which code.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// One of the modules, or `all` for the whole program.
    module: String,
    /// The crates that make each module.
    #[serde(default)]
    modules: BTreeMap<String, Vec<String>>,
}

/// Its length. All in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Length {
    /// Machine code.
    pub code: u64,
    /// Variables that are there from the beginning to the end, writable ones.
    pub variables: u64,
}

impl Setup {
    /// Measures the program that runs.
    ///
    /// A symbol belongs to the first of this project's crates that its name has, so that a function of a library made for a
    /// type of TCP is TCP's.
    ///
    /// # Errors
    /// The program cannot be read, or has no symbols, or none of these crates.
    pub fn measure(&self) -> Result<Length, CodeError> {
        let cache = ReadCache::new(File::open("/proc/self/exe")?);
        let program = object::File::parse(&cache)?;
        if self.module == "all" {
            return Ok(whole(&program));
        }
        let crates = self.modules.get(&self.module).ok_or_else(|| CodeError::NoCode(self.module.clone()))?;
        if program.symbols().next().is_none() {
            return Err(CodeError::NoSymbols);
        }
        let mut length = Length::default();
        for symbol in program.symbols() {
            let of = match symbol.kind() {
                SymbolKind::Text => &mut length.code,
                SymbolKind::Data if is_writable(&program, &symbol) => &mut length.variables,
                _ => continue,
            };
            let name = symbol.name().unwrap_or_default();
            let name = format!("{:#}", rustc_demangle::demangle(name));
            if crate_of(&name).is_some_and(|found| crates.iter().any(|wanted| wanted == found)) {
                *of += symbol.size();
            }
        }
        if length.code == 0 { Err(CodeError::NoCode(self.module.clone())) } else { Ok(length) }
    }
}

fn whole<'a>(program: &impl Object<'a>) -> Length {
    let mut length = Length::default();
    for section in program.sections() {
        match section.kind() {
            SectionKind::Text => length.code += section.size(),
            SectionKind::Data | SectionKind::UninitializedData => length.variables += section.size(),
            _ => {}
        }
    }
    length
}

fn is_writable<'a>(program: &impl Object<'a>, symbol: &impl ObjectSymbol<'a>) -> bool {
    let section = symbol.section_index().and_then(|index| program.section_by_index(index).ok());
    section
        .is_some_and(|section| matches!(section.kind(), SectionKind::Data | SectionKind::UninitializedData))
}

/// The first crate of this project in a symbol's name.
fn crate_of(name: &str) -> Option<&str> {
    let words = name.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.into_iter().find(|word| word.starts_with("inhost_"))
}

/// Why nothing was measured.
#[derive(Debug)]
pub enum CodeError {
    /// The program cannot be read.
    Unreadable(io::Error),
    /// It is not a program that is understood.
    Unknown(object::Error),
    /// It has no symbols.
    NoSymbols,
    /// It has none of the crates of this module.
    NoCode(String),
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodeError::Unreadable(why) => write!(f, "this program cannot be read: {why}"),
            CodeError::Unknown(why) => write!(f, "this program is not understood: {why}"),
            CodeError::NoSymbols => f.write_str(
                "this program has no symbols; one that was built with cargo build --release has them",
            ),
            CodeError::NoCode(module) => write!(f, "this program has none of the crates of {module}"),
        }
    }
}
impl std::error::Error for CodeError {}

impl From<io::Error> for CodeError {
    fn from(why: io::Error) -> CodeError {
        CodeError::Unreadable(why)
    }
}
impl From<object::Error> for CodeError {
    fn from(why: object::Error) -> CodeError {
        CodeError::Unknown(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_belongs_to_the_first_crate_of_the_project() {
        let name = "core::ptr::drop_in_place::<inhost_tcp::connection::Connection>";
        assert_eq!(crate_of(name), Some("inhost_tcp"));
        assert_eq!(crate_of("<inhost_ip::Ip as inhost_event::Sink>::enters"), Some("inhost_ip"));
        assert_eq!(crate_of("serde_json::to_string"), None);
    }
}
