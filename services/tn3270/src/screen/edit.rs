//! What the keyboard changes in the buffer.

use super::buffer::{Cell, OperatorError, Screen};

impl Screen {
    /// The attribute's address of the input field at the cursor; `None` on a screen without fields.
    pub(super) fn input_field(&self) -> Result<Option<u16>, OperatorError> {
        let Some(start) = self.field_start(self.cursor) else { return Ok(None) };
        let is_input = start != self.cursor && !self.attribute_at(start).is_protected();
        if is_input { Ok(Some(start)) } else { Err(OperatorError::Protected) }
    }
    /// The addresses from `from` up to the end of its field, or of a screen without fields.
    fn to_field_end(&self, from: u16) -> Vec<u16> {
        let mut addresses = Vec::new();
        let mut address = from;
        let is_formatted = self.is_formatted();
        while self.cell(address).field.is_none() && addresses.len() < self.cells.len() {
            addresses.push(address);
            address = self.after(address);
            if !is_formatted && address == 0 {
                break;
            }
        }
        addresses
    }
    /// The addresses whose characters move when one is inserted or deleted at the cursor: up to the end of its field, or
    /// of its row on a screen without fields.
    fn moving(&self) -> Vec<u16> {
        let mut addresses = self.to_field_end(self.cursor);
        if !self.is_formatted() {
            addresses.truncate(usize::from(self.columns - self.cursor % self.columns));
        }
        addresses
    }
    pub(super) fn type_character(&mut self, character: char) -> Result<(), OperatorError> {
        let octet = self.config.code_page.octet(character).filter(|octet| *octet >= 0x40);
        let octet = octet.ok_or(OperatorError::NotOnPage)?;
        self.type_octet(octet, matches!(character, '0'..='9' | '.' | '-'))?;
        self.skip();
        Ok(())
    }
    /// Passes over attributes at the cursor: into the next input field, where one is of a field that is skipped.
    pub(super) fn skip(&mut self) {
        for _ in 0..self.positions() {
            self.cursor = match self.cell(self.cursor).field {
                None => return,
                Some(attribute) if attribute.is_skip() => self.next_input(self.cursor).unwrap_or(0),
                Some(_) => self.after(self.cursor),
            };
        }
    }
    /// Puts an octet at the cursor, which moves on by one.
    pub(super) fn type_octet(&mut self, octet: u8, is_numeric: bool) -> Result<(), OperatorError> {
        let field = self.input_field()?;
        let attribute = self.attribute_at(self.cursor);
        if field.is_some() && self.config.has_numeric_lock && attribute.is_numeric() && !is_numeric {
            return Err(OperatorError::Numeric);
        }
        if self.is_inserting {
            self.make_room()?;
        }
        self.set_cell(self.cursor, Cell { character: octet, ..Cell::default() });
        if let Some(start) = field {
            self.set_modified(start, true);
        }
        self.cursor = self.after(self.cursor);
        Ok(())
    }
    /// Moves what is from the cursor on by one position, up to the first null.
    fn make_room(&mut self) -> Result<(), OperatorError> {
        let addresses = self.moving();
        let is_free = |&address: &u16| self.cell(address).character == 0;
        let free = addresses.iter().position(is_free).ok_or(OperatorError::Overflow)?;
        for pair in addresses.get(..=free).unwrap_or_default().windows(2).rev() {
            if let [from, to] = *pair {
                self.set_cell(to, self.cell(from));
            }
        }
        Ok(())
    }
    pub(super) fn delete(&mut self) -> Result<(), OperatorError> {
        let field = self.input_field()?;
        let addresses = self.moving();
        for pair in addresses.windows(2) {
            if let [to, from] = *pair {
                self.set_cell(to, self.cell(from));
            }
        }
        if let Some(cell) = addresses.last().and_then(|&last| self.cell_mut(last)) {
            cell.empty();
        }
        if let Some(start) = field {
            self.set_modified(start, true);
        }
        Ok(())
    }
    pub(super) fn backspace(&mut self) -> Result<(), OperatorError> {
        let field = self.input_field()?;
        let before = self.before(self.cursor);
        if field == Some(before) || (field.is_none() && self.cursor == 0) {
            return Ok(());
        }
        self.cursor = before;
        self.delete()
    }
    pub(super) fn erase_to_end_of_field(&mut self) -> Result<(), OperatorError> {
        let field = self.input_field()?;
        for address in self.to_field_end(self.cursor) {
            self.cell_mut(address).into_iter().for_each(Cell::empty);
        }
        if let Some(start) = field {
            self.set_modified(start, true);
        }
        Ok(())
    }
    /// Empties all input fields and resets their modified data tags. The cursor goes to the first of them.
    pub(super) fn erase_input(&mut self) {
        if !self.is_formatted() {
            self.clear();
            return;
        }
        let mut first = None;
        for field in self.fields().into_iter().filter(|field| !field.attribute.is_protected()) {
            self.set_modified(field.start, false);
            let mut address = self.after(field.start);
            if first.is_none() {
                first = Some(address);
            }
            for _ in 0..field.length {
                if let Some(cell) = self.cell_mut(address) {
                    cell.empty();
                }
                address = self.after(address);
            }
        }
        self.cursor = first.unwrap_or(0);
    }
    /// The first position of the first input field.
    pub(super) fn home(&self) -> u16 {
        // The search begins with the attribute at its start, so that of the last position counts for the first.
        self.next_input(self.positions() - 1).unwrap_or(0)
    }
    pub(super) fn back_tab(&self) -> u16 {
        let mut address = self.before(self.cursor);
        for _ in 0..self.positions() {
            let before = self.before(address);
            let is_input = self.cell(before).field.is_some_and(|attribute| !attribute.is_protected());
            if is_input && self.cell(address).field.is_none() {
                return address;
            }
            address = before;
        }
        0
    }
    /// The first input position of the next row that has one; without fields, the beginning of the next row.
    pub(super) fn new_line(&self) -> u16 {
        let next_row = (self.cursor / self.columns + 1) % self.rows * self.columns;
        if !self.is_formatted() {
            return next_row;
        }
        let mut attribute = self.attribute_at(self.before(next_row));
        let mut address = next_row;
        for _ in 0..self.positions() {
            match self.cell(address).field {
                Some(other) => attribute = other,
                None if !attribute.is_protected() => return address,
                None => {}
            }
            address = self.after(address);
        }
        0
    }
    /// Behind the last character of the input field that is neither null nor blank.
    pub(super) fn field_end(&self) -> u16 {
        let Ok(Some(start)) = self.input_field() else { return self.cursor };
        let addresses = self.to_field_end(self.after(start));
        let is_text = |&address: &u16| !matches!(self.cell(address).character, 0 | 0x40);
        match addresses.iter().rposition(is_text) {
            None => addresses.first().copied().unwrap_or(self.cursor),
            Some(last) => addresses.get(last + 1).or(addresses.last()).copied().unwrap_or(self.cursor),
        }
    }
}
