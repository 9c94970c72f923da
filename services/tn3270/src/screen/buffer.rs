//! The buffer and what belongs to it.

use crate::codec::{Aid, Attributes, FieldAttribute, ReplyMode};

use super::model::ScreenConfig;

/// Types of attributes that Set Reply Mode can name; more are not kept.
pub(super) const REPLY_ATTRIBUTES: usize = 16;
/// Rows of the default size.
pub(super) const DEFAULT_ROWS: u16 = 24;
/// Columns of the default size.
pub(super) const DEFAULT_COLUMNS: u16 = 80;

/// One position of the screen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cell {
    /// The character, in EBCDIC; 0 is null.
    pub character: u8,
    /// Whether it is of the alternate set of Graphic Escape.
    pub graphic: bool,
    /// The attributes of the character, or the extended attributes of the field.
    pub attributes: Attributes,
    /// The attribute of the field that begins here, if one does; the position then shows as a blank.
    pub field: Option<FieldAttribute>,
}

impl Cell {
    /// A null in the place of its character, as the orders that erase have it.
    pub(super) fn empty(&mut self) {
        (self.character, self.graphic, self.attributes.character_set) = (0, false, 0);
    }
}

/// A field: where its attribute is, and how many positions follow it up to the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// The address of the attribute.
    pub start: u16,
    /// The positions behind the attribute; the last may be followed by the first of the screen.
    pub length: u16,
    /// The attribute.
    pub attribute: FieldAttribute,
}

/// Why the keyboard takes no more input until Reset is pressed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum OperatorError {
    /// The cursor is where nothing can be typed.
    Protected,
    /// The field takes numbers only.
    Numeric,
    /// The field has no room for another character.
    Overflow,
    /// The code page does not have the character.
    NotOnPage,
}

impl core::fmt::Display for OperatorError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            OperatorError::Protected => "the cursor is in a protected field",
            OperatorError::Numeric => "the field takes numbers only",
            OperatorError::Overflow => "the field is full",
            OperatorError::NotOnPage => "the code page does not have this character",
        })
    }
}

/// Whether the keyboard takes input.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Keyboard {
    /// It does.
    Unlocked,
    /// The host has not restored it ("X SYSTEM").
    System,
    /// The operator did something that cannot be done.
    Error(OperatorError),
}

/// The screen of a terminal.
///
/// Give it the host's records by [`receive`](Screen::receive) and the operator's keys by [`press`](Screen::press). Send
/// what they return. Its memory is that of the larger of its two sizes.
#[derive(Clone, Debug)]
pub struct Screen {
    pub(super) config: ScreenConfig,
    pub(super) cells: Vec<Cell>,
    pub(super) rows: u16,
    pub(super) columns: u16,
    pub(super) cursor: u16,
    pub(super) address: u16,
    pub(super) aid: Aid,
    pub(super) keyboard: Keyboard,
    pub(super) reply_mode: ReplyMode,
    pub(super) reply_attributes: Vec<u8>,
    pub(super) is_inserting: bool,
    pub(super) alarms: u64,
    pub(super) prints: u64,
    pub(super) writes: u64,
}

impl Screen {
    /// An empty screen of the default size, with its keyboard unlocked.
    pub fn new(config: ScreenConfig) -> Screen {
        let (rows, columns) = (DEFAULT_ROWS, DEFAULT_COLUMNS);
        Screen {
            cells: vec![Cell::default(); usize::from(rows) * usize::from(columns)],
            config,
            rows,
            columns,
            cursor: 0,
            address: 0,
            aid: Aid::None,
            keyboard: Keyboard::Unlocked,
            reply_mode: ReplyMode::Field,
            reply_attributes: Vec::new(),
            is_inserting: false,
            alarms: 0,
            prints: 0,
            writes: 0,
        }
    }
    /// What the terminal is.
    pub fn config(&self) -> &ScreenConfig {
        &self.config
    }
    /// Rows of the size that is in force.
    pub fn rows(&self) -> u16 {
        self.rows
    }
    /// Columns of the size that is in force.
    pub fn columns(&self) -> u16 {
        self.columns
    }
    /// Positions of the size that is in force.
    pub fn positions(&self) -> u16 {
        self.rows * self.columns
    }
    /// The address of the cursor: row times columns, and column.
    pub fn cursor(&self) -> u16 {
        self.cursor
    }
    /// Whether the keyboard takes input.
    pub fn keyboard(&self) -> Keyboard {
        self.keyboard
    }
    /// The last key that made the terminal send, until the host restores the keyboard.
    pub fn aid(&self) -> Aid {
        self.aid
    }
    /// How attributes are reported.
    pub fn reply_mode(&self) -> ReplyMode {
        self.reply_mode
    }
    /// Whether characters are inserted rather than put over others.
    pub fn is_inserting(&self) -> bool {
        self.is_inserting
    }
    /// How often the host has sounded the alarm.
    pub fn alarms(&self) -> u64 {
        self.alarms
    }
    /// How often the host has asked for a print of the buffer.
    pub fn prints(&self) -> u64 {
        self.prints
    }
    /// Records that wrote or erased something.
    pub fn writes(&self) -> u64 {
        self.writes
    }
    /// The cells, row by row.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }
    /// The cell at `address`; an empty one beyond the screen.
    pub fn cell(&self, address: u16) -> Cell {
        self.cells.get(usize::from(address)).copied().unwrap_or_default()
    }
    /// Whether there are fields.
    pub fn is_formatted(&self) -> bool {
        self.cells.iter().any(|cell| cell.field.is_some())
    }

    /// The fields in the order of their addresses.
    pub fn fields(&self) -> Vec<Field> {
        let starts: Vec<(u16, FieldAttribute)> = (0..self.positions())
            .filter_map(|address| self.cell(address).field.map(|attribute| (address, attribute)))
            .collect();
        let mut fields = Vec::with_capacity(starts.len());
        for (index, &(start, attribute)) in starts.iter().enumerate() {
            let next = starts.get(index + 1).or(starts.first()).map_or(start, |(next, _)| *next);
            let length = match next > start {
                true => next - start - 1,
                false => self.positions() - start - 1 + next,
            };
            fields.push(Field { start, length, attribute });
        }
        fields
    }
    /// The address of the attribute of the field to which `address` belongs; `None` where there are no fields. A position
    /// that holds an attribute belongs to the field that begins there.
    pub fn field_start(&self, address: u16) -> Option<u16> {
        let address = usize::from(address).min(self.cells.len().saturating_sub(1));
        let (after, before) = (self.cells.get(address + 1..)?, self.cells.get(..=address)?);
        let is_field = |cell: &Cell| cell.field.is_some();
        let found = before
            .iter()
            .rposition(is_field)
            .or_else(|| after.iter().rposition(is_field).map(|at| address + 1 + at))?;
        u16::try_from(found).ok()
    }
    /// The attribute of the field to which `address` belongs; unprotected where there are no fields.
    pub fn attribute_at(&self, address: u16) -> FieldAttribute {
        let start = self.field_start(address);
        start.and_then(|start| self.cell(start).field).unwrap_or_default()
    }

    /// The address behind `address`; the first one behind the last.
    pub(super) fn after(&self, address: u16) -> u16 {
        match address + 1 {
            next if next >= self.positions() => 0,
            next => next,
        }
    }
    /// The address before `address`; the last one before the first.
    pub(super) fn before(&self, address: u16) -> u16 {
        address.checked_sub(1).unwrap_or(self.positions() - 1)
    }
    pub(super) fn cell_mut(&mut self, address: u16) -> Option<&mut Cell> {
        self.cells.get_mut(usize::from(address))
    }
    pub(super) fn set_cell(&mut self, address: u16, cell: Cell) {
        if let Some(place) = self.cell_mut(address) {
            *place = cell;
        }
    }
    /// Sets or resets the modified data tag of the field whose attribute is at `start`.
    pub(super) fn set_modified(&mut self, start: u16, is_modified: bool) {
        if let Some(Cell { field: Some(attribute), .. }) = self.cell_mut(start) {
            *attribute = attribute.modified(is_modified);
        }
    }
    /// The first position of the next input field behind `from`, whose own attribute counts; `None` where there is none.
    pub(super) fn next_input(&self, from: u16) -> Option<u16> {
        let mut address = from;
        for _ in 0..self.positions() {
            let next = self.after(address);
            let is_input = self.cell(address).field.is_some_and(|attribute| !attribute.is_protected());
            if is_input && self.cell(next).field.is_none() {
                return Some(next);
            }
            address = next;
        }
        None
    }
    /// Empties the buffer, and makes it one of the sizes.
    pub(super) fn erase(&mut self, is_alternate: bool) {
        let (rows, columns) =
            if is_alternate { self.config.model.alternate() } else { (DEFAULT_ROWS, DEFAULT_COLUMNS) };
        (self.rows, self.columns) = (rows, columns);
        self.clear();
    }
    /// Empties the buffer.
    pub(super) fn clear(&mut self) {
        self.cells.clear();
        self.cells.resize(usize::from(self.positions()), Cell::default());
        (self.cursor, self.address) = (0, 0);
        self.writes += 1;
    }
    /// Whether the size in force is the alternate one, where the two differ.
    pub(super) fn is_alternate(&self) -> bool {
        (self.rows, self.columns) != (DEFAULT_ROWS, DEFAULT_COLUMNS)
    }
    /// The host restores the keyboard.
    pub(super) fn restore_keyboard(&mut self) {
        self.aid = Aid::None;
        self.keyboard = Keyboard::Unlocked;
        self.is_inserting = false;
    }
}
