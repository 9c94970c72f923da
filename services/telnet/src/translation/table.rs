//! The table of an application: a file whose lines override the translation of single characters.

use core::fmt;
use std::collections::BTreeMap;

use crate::codec::Charset;

/// Octets of a table's file.
pub const TABLE_BYTES: usize = 64 << 10;
/// Lines of a table that say something.
pub const TABLE_ENTRIES: usize = 512;
/// Octets, in UTF-8, of what is shown or typed for one entry.
pub const SEQUENCE_BYTES: usize = 32;
/// Octets of an application for what is typed.
pub const OCTETS: usize = 8;

/// Overridden characters.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Table {
    shown: BTreeMap<u8, String>,
    /// No sequence begins another.
    typed: Vec<(String, Vec<u8>)>,
}

/// A line that cannot be acted on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: &'static str,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}
impl core::error::Error for TableError {}

impl Table {
    /// Reads a table for an application with this charset. Each line is `OCTETS > TEXT` (what is shown), `OCTETS < TEXT`
    /// (what is typed), `OCTETS = TEXT` (both), empty, or a comment behind `#`.
    ///
    /// OCTETS are pairs of hexadecimal digits, one of them where something is shown; TEXT has no blanks but
    /// the escapes `\e`, `\s` (a space), `\t`, `\r`, `\n`, `\\` and `\xNN` (U+00NN).
    pub fn parse(text: &str, charset: Charset) -> Result<Table, TableError> {
        let mut table = Table::default();
        let mut entries = 0;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let at = |reason| TableError { line: index + 1, reason };
            entries += 1;
            if entries > TABLE_ENTRIES {
                return Err(at("there are too many entries: at most 512"));
            }
            table.entry(line, charset).map_err(at)?;
        }
        Ok(table)
    }
    fn entry(&mut self, line: &str, charset: Charset) -> Result<(), &'static str> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[octets, sign, text] = &fields[..] else {
            return Err("expected OCTETS, one of < > =, and TEXT");
        };
        let (octets, text) = (octets_of(octets)?, text_of(text)?);
        let (shows, types) = match sign {
            ">" => (true, false),
            "<" => (false, true),
            "=" => (true, true),
            _ => return Err("expected one of < > = between OCTETS and TEXT"),
        };
        if shows {
            let &[octet] = &octets[..] else { return Err("a single octet is shown, as two digits") };
            if text.contains('\t') {
                return Err("a tab is not shown: give spaces");
            }
            if charset == Charset::Utf8 && !octet.is_ascii() {
                return Err("beyond 7f an octet is not a character of UTF-8");
            }
            if self.shown.insert(octet, text.clone()).is_some() {
                return Err("the octet is shown in two ways");
            }
        }
        if types {
            let clashes = |(other, _): &(String, Vec<u8>)| {
                other.starts_with(text.as_str()) || text.starts_with(other.as_str())
            };
            if self.typed.iter().any(clashes) {
                return Err("another TEXT that is typed begins in the same way");
            }
            self.typed.push((text, octets));
        }
        Ok(())
    }
    /// What stands for an octet.
    pub(super) fn shown(&self, octet: u8) -> Option<&str> {
        self.shown.get(&octet).map(String::as_str)
    }
    /// The sequence with which `typed` begins, and the application's octets for it.
    pub(super) fn begun(&self, typed: &str) -> Option<(&str, &[u8])> {
        let found = self.typed.iter().find(|(sequence, _)| typed.starts_with(sequence.as_str()));
        found.map(|(sequence, octets)| (sequence.as_str(), octets.as_slice()))
    }
    /// Whether typed characters are left to the charset.
    pub(super) fn types_nothing(&self) -> bool {
        self.typed.is_empty()
    }
    /// Whether `typed` is the beginning of a sequence.
    pub(super) fn continues(&self, typed: &str) -> bool {
        self.typed.iter().any(|(sequence, _)| sequence.starts_with(typed))
    }
}

fn octets_of(digits: &str) -> Result<Vec<u8>, &'static str> {
    const EXPECTED: &str = "expected octets as pairs of hexadecimal digits, at most 8";
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_hex || !digits.len().is_multiple_of(2) || digits.len() > 2 * OCTETS {
        return Err(EXPECTED);
    }
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let pair = core::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    pairs.collect::<Option<_>>().ok_or(EXPECTED)
}

fn text_of(field: &str) -> Result<String, &'static str> {
    const EXPECTED: &str = r"expected one of \e \s \t \r \n \\ \xNN behind the backslash";
    let (mut text, mut characters) = (String::new(), field.chars());
    while let Some(character) = characters.next() {
        let meant = match character {
            '\\' => match characters.next().ok_or(EXPECTED)? {
                'e' => '\u{1b}',
                's' => ' ',
                't' => '\t',
                'r' => '\r',
                'n' => '\n',
                '\\' => '\\',
                'x' => {
                    let digits = [characters.next().ok_or(EXPECTED)?, characters.next().ok_or(EXPECTED)?];
                    let [Some(high), Some(low)] = digits.map(|digit| digit.to_digit(16)) else {
                        return Err(EXPECTED);
                    };
                    char::from_u32(high << 4 | low).ok_or(EXPECTED)?
                }
                _ => return Err(EXPECTED),
            },
            character => character,
        };
        text.push(meant);
    }
    if text.len() > SEQUENCE_BYTES {
        return Err("TEXT is too long: at most 32 octets");
    }
    Ok(text)
}
