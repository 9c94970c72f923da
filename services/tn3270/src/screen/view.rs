//! The screen as a person or a script sees it.

use serde::Serialize;

use super::buffer::{Keyboard, Screen};
use crate::codec::{Display, graphic_character};

/// A place on the screen. Both count from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Position {
    /// The row, from 1.
    pub row: u16,
    /// The column, from 1.
    pub column: u16,
}

/// A field of a [`Snapshot`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct FieldView {
    /// The place of its first character, behind the attribute.
    #[serde(flatten)]
    pub position: Position,
    /// Its length in positions.
    pub length: u16,
    /// What stands in it. Empty for hidden fields.
    pub text: String,
    /// Whether the keyboard cannot change it.
    pub protected: bool,
    /// Whether it takes numbers only.
    pub numeric: bool,
    /// Its modified data tag.
    pub modified: bool,
    /// How it is displayed.
    pub display: Display,
    /// Its colour, where it is not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<&'static str>,
    /// Its highlighting, where it is not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub highlight: Option<&'static str>,
}

/// All that is to be seen, for `--json` and for tests. Its text has no control characters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// Rows.
    pub rows: u16,
    /// Columns.
    pub columns: u16,
    /// Where the cursor is.
    pub cursor: Position,
    /// `unlocked`, `system`, or the operator's error in words.
    pub keyboard: String,
    /// Whether characters are inserted.
    pub inserting: bool,
    /// The rows, without blanks at their ends.
    pub text: Vec<String>,
    /// The fields.
    pub fields: Vec<FieldView>,
}

impl Screen {
    /// The place of an address.
    pub fn position(&self, address: u16) -> Position {
        Position { row: address / self.columns + 1, column: address % self.columns + 1 }
    }
    /// The address of a row and a column, from 1; `None` where the screen has none.
    pub fn address_of(&self, row: u16, column: u16) -> Option<u16> {
        let is_on_screen = (1..=self.rows).contains(&row) && (1..=self.columns).contains(&column);
        is_on_screen.then(|| (row - 1) * self.columns + column - 1)
    }
    /// What is shown at `address`, in a field that is displayed or hidden.
    fn shown(&self, address: u16, is_hidden: bool) -> char {
        let cell = self.cell(address);
        match (cell.field, is_hidden, cell.graphic || cell.attributes.character_set == 0xf1) {
            (Some(_), ..) | (_, true, _) => ' ',
            (.., true) => graphic_character(cell.character),
            _ => self.config.code_page.shown(cell.character),
        }
    }
    /// What a row, from 0, shows: as many characters as there are columns. Hidden fields are blank.
    pub fn line(&self, row: u16) -> String {
        let start = row.saturating_mul(self.columns);
        let mut is_hidden = self.attribute_at(start).displayed() == Display::Hidden;
        (start..start.saturating_add(self.columns))
            .map(|address| {
                if let Some(attribute) = self.cell(address).field {
                    is_hidden = attribute.displayed() == Display::Hidden;
                }
                self.shown(address, is_hidden)
            })
            .collect()
    }
    /// All rows, without blanks at their ends.
    pub fn lines(&self) -> Vec<String> {
        (0..self.rows).map(|row| self.line(row).trim_end().to_owned()).collect()
    }
    /// What stands in the field to which `address` belongs, without blanks at its end; nulls are left out. On a screen
    /// without fields it is the row's.
    pub fn field_text(&self, address: u16) -> String {
        let Some(start) = self.field_start(address) else {
            return self.line(address / self.columns).trim_end().to_owned();
        };
        let mut text = String::new();
        let mut at = self.after(start);
        while at != start && self.cell(at).field.is_none() {
            if self.cell(at).character != 0 {
                text.push(self.shown(at, false));
            }
            at = self.after(at);
        }
        text.trim_end().to_owned()
    }
    /// All that is to be seen.
    pub fn snapshot(&self) -> Snapshot {
        let fields = self.fields().into_iter().map(|field| {
            let is_hidden = field.attribute.displayed() == Display::Hidden;
            let attributes = self.cell(field.start).attributes;
            FieldView {
                position: self.position(self.after(field.start)),
                length: field.length,
                text: if is_hidden { String::new() } else { self.field_text(field.start) },
                protected: field.attribute.is_protected(),
                numeric: field.attribute.is_numeric(),
                modified: field.attribute.is_modified(),
                display: field.attribute.displayed(),
                color: attributes.foreground.name(),
                highlight: attributes.highlight.name(),
            }
        });
        Snapshot {
            rows: self.rows,
            columns: self.columns,
            cursor: self.position(self.cursor),
            keyboard: match self.keyboard {
                Keyboard::Unlocked => "unlocked".to_owned(),
                Keyboard::System => "system".to_owned(),
                Keyboard::Error(error) => error.to_string(),
            },
            inserting: self.is_inserting,
            text: self.lines(),
            fields: fields.collect(),
        }
    }
}
