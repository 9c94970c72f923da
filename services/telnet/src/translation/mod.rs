//! Translation for applications (UCLA §2.6.6): text of a program or of another host in its own charset, and the caller's
//! in UTF-8. A [`Table`] overrides single characters.
//!
//! ```
//! use inhost_telnet::codec::Charset;
//! use inhost_telnet::translation::{Table, Translation};
//! let charset = Charset::from_name("IBM037").unwrap();
//! let table = Table::parse("# no bar in this program's page\n4f = \\e|\n", charset).unwrap();
//! let translation = Translation { charset, tabs: None, table };
//! assert_eq!(translation.start().shown(b"\xc8\x89\x15"), b"Hi\r\n");
//! ```

mod table;
#[cfg(test)]
mod tests;

use core::num::NonZeroU8;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::codec::Charset;
use crate::codec::charset::Characters;
use crate::machine::TabExpansion;
use crate::pty::TerminalKeys;
pub use table::{OCTETS, SEQUENCE_BYTES, TABLE_BYTES, TABLE_ENTRIES, Table, TableError};

/// The widest tab stops, so that an octet of an application is never more than this many octets on the screen.
pub const TABS: u8 = 32;

/// LF of ASCII, which the line discipline of a terminal puts behind CR whatever the program speaks.
const TERMINAL_LINE_FEED: u8 = 0x0a;

/// How an application's text is translated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Translation {
    /// The application's charset. In UTF-8 text is not translated, but for the table.
    pub charset: Charset,
    /// Tab stops, at most [`TABS`] columns apart, to which tabs of the application are expanded; `None` leaves them.
    pub tabs: Option<NonZeroU8>,
    /// Characters that are translated in another way than the charset says.
    pub table: Table,
}

impl Translation {
    /// Begins with an application's text, and the caller's.
    pub fn start(self) -> Translator {
        Translator::new(Rc::new(self))
    }
}

/// A translation under way.
#[derive(Debug)]
pub struct Translator {
    translation: Rc<Translation>,
    tabs: Option<TabExpansion>,
    /// The last octet that was shown was a CR.
    after_return: bool,
    characters: Characters,
    /// What was typed and begins a sequence of the table.
    held: String,
    substituted_characters: u64,
}

impl Translator {
    pub(crate) fn new(translation: Rc<Translation>) -> Translator {
        let tabs = translation.tabs.map(TabExpansion::new);
        Translator {
            translation,
            tabs,
            after_return: false,
            characters: Characters::default(),
            held: String::new(),
            substituted_characters: 0,
        }
    }
    /// The application's charset.
    pub fn charset(&self) -> Charset {
        self.translation.charset
    }
    /// Characters, in both directions, in whose place stands a substitute.
    pub fn substituted_characters(&self) -> u64 {
        self.substituted_characters
    }

    /// What the application says, for the caller: NL of EBCDIC is CR LF, an octet without a character U+FFFD. At most
    /// [`SEQUENCE_BYTES`] octets for one.
    pub fn shown(&mut self, octets: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(octets.len());
        for &octet in octets {
            self.show(octet, &mut text);
        }
        let Some(tabs) = &mut self.tabs else { return text };
        let mut expanded = Vec::with_capacity(text.len());
        tabs.expand(&text, &mut expanded);
        expanded
    }
    fn show(&mut self, octet: u8, text: &mut Vec<u8>) {
        let after_return = core::mem::take(&mut self.after_return);
        if let Some(sequence) = self.translation.table.shown(octet) {
            return text.extend_from_slice(sequence.as_bytes());
        }
        let charset = self.translation.charset;
        if charset == Charset::Utf8 {
            return text.push(octet);
        }
        let character = charset.character(octet).unwrap_or_else(|| {
            self.substituted_characters += 1;
            char::REPLACEMENT_CHARACTER
        });
        self.after_return = character == '\r';
        match character {
            _ if charset.is_ebcdic() && after_return && octet == TERMINAL_LINE_FEED => text.push(b'\n'),
            '\u{85}' if charset.is_ebcdic() && after_return => text.push(b'\n'),
            '\u{85}' if charset.is_ebcdic() => text.extend_from_slice(b"\r\n"),
            _ => {
                Charset::Utf8.append(character, text);
            }
        }
    }

    /// Takes an octet that the caller typed, and appends what the application gets. The return key is NL in EBCDIC. Keys
    /// to which the application's terminal, in the modes of `keys`, gives a meaning reach it as they are. What begins a
    /// sequence of the table waits for the next key.
    pub fn typed(&mut self, octet: u8, keys: &TerminalKeys, octets: &mut VecDeque<u8>) {
        let mut appended = Vec::new();
        if self.translation.charset == Charset::Utf8 && self.translation.table.types_nothing() {
            octets.push_back(octet);
            return;
        }
        if is_terminals(octet, keys) {
            self.release(&mut appended);
            appended.push(octet);
        } else {
            let mut characters = core::mem::take(&mut self.characters);
            characters.push(&[octet], |character| self.type_character(character, &mut appended));
            self.characters = characters;
        }
        octets.extend(appended);
    }
    fn type_character(&mut self, character: char, octets: &mut Vec<u8>) {
        self.held.push(character);
        while !self.held.is_empty() {
            if let Some((sequence, own)) = self.translation.table.begun(&self.held) {
                octets.extend_from_slice(own);
                self.held.drain(..sequence.len());
            } else if self.translation.table.continues(&self.held) {
                return;
            } else {
                self.type_first(octets);
            }
        }
    }
    /// The first of the held characters begins no sequence.
    fn type_first(&mut self, octets: &mut Vec<u8>) {
        if self.held.is_empty() {
            return;
        }
        let character = match self.held.remove(0) {
            '\r' if self.translation.charset.is_ebcdic() => '\u{85}',
            character => character,
        };
        self.substituted_characters += u64::from(!self.translation.charset.append(character, octets));
    }
    fn release(&mut self, octets: &mut Vec<u8>) {
        while !self.held.is_empty() {
            self.type_first(octets);
        }
    }
}

/// Whether the line discipline of the application's terminal acts on a key.
fn is_terminals(octet: u8, keys: &TerminalKeys) -> bool {
    let edits =
        [keys.erase, keys.kill, keys.end_of_file, keys.word_erase, keys.reprint, keys.literal, b'\r', b'\n'];
    let raises = [keys.interrupt, keys.quit, keys.suspend];
    let paces = [keys.start, keys.stop];
    octet != 0
        && (keys.canonical && edits.contains(&octet)
            || (keys.signals || keys.traps) && raises.contains(&octet)
            || keys.flow_control && paces.contains(&octet))
}
