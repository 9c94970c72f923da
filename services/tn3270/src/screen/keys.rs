//! Keys of the operator.

use core::fmt;
use core::str::FromStr;

use super::buffer::{Keyboard, OperatorError, Screen};
use crate::codec::{Aid, Display};

/// A key of a terminal's keyboard.
///
/// As text it is `enter`, `clear`, `pf1` to `pf24`, `pa1` to `pa3`, `tab`, `backtab`, `newline`, `home`, `end`, `left`,
/// `right`, `up`, `down`, `delete`, `backspace`, `eraseeof`, `eraseinput`, `insert`, `reset`, `dup`, `fieldmark`, `sysreq`
/// and `attn`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Key {
    /// A character.
    Character(char),
    /// Enter.
    Enter,
    /// Clear.
    Clear,
    /// Program function key, 1 to 24.
    Pf(u8),
    /// Program attention key, 1 to 3.
    Pa(u8),
    /// To the next input field.
    Tab,
    /// To the beginning of this input field, or of the one before.
    BackTab,
    /// To the first input position of the next row that has one.
    NewLine,
    /// To the first input field.
    Home,
    /// Behind the last character of the field.
    End,
    /// One position back.
    Left,
    /// One position on.
    Right,
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// Deletes the character at the cursor.
    Delete,
    /// Deletes the character before the cursor.
    Backspace,
    /// Empties the field from the cursor on.
    EraseEof,
    /// Empties all input fields.
    EraseInput,
    /// Characters are inserted from now on, until Reset or a key that sends.
    Insert,
    /// Unlocks the keyboard after an error, and turns inserting off.
    Reset,
    /// DUP, and on to the next input field.
    Dup,
    /// A field mark.
    FieldMark,
    /// To a position of the screen.
    Cursor(u16),
}

impl Key {
    /// The AID of a key that makes the terminal send.
    pub fn aid(self) -> Option<Aid> {
        match self {
            Key::Enter => Some(Aid::Enter),
            Key::Clear => Some(Aid::Clear),
            Key::Pf(number @ 1..=24) => Some(Aid::Pf(number)),
            Key::Pa(number @ 1..=3) => Some(Aid::Pa(number)),
            _ => None,
        }
    }
}

/// A name that is not one of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownKey(String);

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a key; try enter, pf3, tab or eraseeof", self.0)
    }
}
impl core::error::Error for UnknownKey {}

impl FromStr for Key {
    type Err = UnknownKey;
    fn from_str(text: &str) -> Result<Key, UnknownKey> {
        let unknown = || UnknownKey(text.to_owned());
        let number = |digits: &str, most: u8| {
            digits.parse().ok().filter(|number| (1..=most).contains(number)).ok_or_else(unknown)
        };
        let lower = text.to_ascii_lowercase();
        Ok(match &*lower {
            "enter" => Key::Enter,
            "clear" => Key::Clear,
            "tab" => Key::Tab,
            "backtab" => Key::BackTab,
            "newline" => Key::NewLine,
            "home" => Key::Home,
            "end" => Key::End,
            "left" => Key::Left,
            "right" => Key::Right,
            "up" => Key::Up,
            "down" => Key::Down,
            "delete" => Key::Delete,
            "backspace" => Key::Backspace,
            "eraseeof" => Key::EraseEof,
            "eraseinput" => Key::EraseInput,
            "insert" => Key::Insert,
            "reset" => Key::Reset,
            "dup" => Key::Dup,
            "fieldmark" => Key::FieldMark,
            _ => match (lower.strip_prefix("pf"), lower.strip_prefix("pa")) {
                (Some(digits), _) => Key::Pf(number(digits, 24)?),
                (_, Some(digits)) => Key::Pa(number(digits, 3)?),
                _ => return Err(unknown()),
            },
        })
    }
}

impl Screen {
    /// Presses a key. Gives the record to send for a key that sends; the keyboard then is locked until the host restores
    /// it.
    ///
    /// # Errors
    ///
    /// The state of a keyboard that takes no input: [`Keyboard::System`] until the host restores it, or
    /// [`Keyboard::Error`] until [`Key::Reset`].
    pub fn press(&mut self, key: Key) -> Result<Option<Vec<u8>>, Keyboard> {
        if key == Key::Reset {
            if matches!(self.keyboard, Keyboard::Error(_)) {
                self.keyboard = Keyboard::Unlocked;
            }
            self.is_inserting = false;
            return Ok(None);
        }
        if self.keyboard != Keyboard::Unlocked {
            return Err(self.keyboard);
        }
        if let Some(aid) = key.aid() {
            return Ok(Some(self.send(aid)));
        }
        self.edit(key).map_err(|error| {
            self.keyboard = Keyboard::Error(error);
            self.keyboard
        })?;
        Ok(None)
    }

    /// A key that sends: the keyboard is locked, and Clear empties the screen before.
    fn send(&mut self, aid: Aid) -> Vec<u8> {
        if aid == Aid::Clear {
            self.clear();
        }
        self.aid = aid;
        self.keyboard = Keyboard::System;
        self.is_inserting = false;
        self.read_modified(aid, false)
    }

    /// Puts a character at a position, as the machinery of a file transfer does.
    pub(crate) fn put_at(&mut self, address: u16, character: u8) {
        if self.cell(address).field.is_none() {
            self.set_cell(address, super::Cell { character, ..super::Cell::default() });
        }
    }
    /// Changes how the field is displayed that begins at `address`.
    pub(crate) fn set_display_at(&mut self, address: u16, display: Display) {
        if let Some(super::Cell { field: Some(attribute), .. }) = self.cell_mut(address) {
            *attribute = attribute.display(display);
        }
    }
    /// Writes the text of the SSCP, which has no orders: it begins at the cursor, NL goes to the next line.
    pub(crate) fn write_text(&mut self, text: &[u8]) {
        self.keyboard = Keyboard::Unlocked;
        self.writes += 1;
        for &octet in text {
            match octet {
                0x15 => self.cursor = (self.cursor / self.columns + 1) % self.rows * self.columns,
                0x0d => self.cursor = self.cursor / self.columns * self.columns,
                0x40..=0xfe => {
                    self.set_cell(self.cursor, super::Cell { character: octet, ..super::Cell::default() });
                    self.cursor = self.after(self.cursor);
                }
                _ => {}
            }
        }
        self.address = self.cursor;
    }
    /// What was typed since the SSCP has written, at most 255 characters.
    pub(crate) fn read_text(&self) -> Vec<u8> {
        let from = usize::from(self.address);
        let cells = self.cells.get(from..).unwrap_or_default();
        cells.iter().map(|cell| cell.character).filter(|octet| *octet != 0).take(255).collect()
    }

    /// Presses a key that sends although the keyboard is locked: the machinery of a file transfer answers for the operator.
    pub(crate) fn answer(&mut self, aid: Aid) -> Vec<u8> {
        self.keyboard = Keyboard::Unlocked;
        self.send(aid)
    }

    fn edit(&mut self, key: Key) -> Result<(), OperatorError> {
        match key {
            Key::Character(character) => self.type_character(character)?,
            Key::Dup => {
                self.type_octet(0x1c, true)?;
                self.cursor = self.next_input(self.cursor).unwrap_or(0);
            }
            Key::FieldMark => {
                self.type_octet(0x1e, false)?;
                self.skip();
            }
            Key::Tab => self.cursor = self.next_input(self.cursor).unwrap_or(0),
            Key::BackTab => self.cursor = self.back_tab(),
            Key::NewLine => self.cursor = self.new_line(),
            Key::Home => self.cursor = self.home(),
            Key::End => self.cursor = self.field_end(),
            Key::Left => self.cursor = self.before(self.cursor),
            Key::Right => self.cursor = self.after(self.cursor),
            Key::Up => {
                let row = self.cursor / self.columns;
                let row = row.checked_sub(1).unwrap_or(self.rows - 1);
                self.cursor = row * self.columns + self.cursor % self.columns;
            }
            Key::Down => {
                let row = (self.cursor / self.columns + 1) % self.rows;
                self.cursor = row * self.columns + self.cursor % self.columns;
            }
            Key::Delete => self.delete()?,
            Key::Backspace => self.backspace()?,
            Key::EraseEof => self.erase_to_end_of_field()?,
            Key::EraseInput => self.erase_input(),
            Key::Insert => self.is_inserting = true,
            Key::Cursor(address) => self.cursor = address.min(self.positions() - 1),
            // Keys that send were handled before; keys that do not exist do nothing.
            _ => {}
        }
        Ok(())
    }
}
