//! Executing the host's commands.

use super::buffer::{Cell, REPLY_ATTRIBUTES, Screen};
use crate::codec::{
    Aid, AttributePair, AttributeType, Attributes, Command, DataError, FieldAttribute, Order, Orders,
    OutboundField, OutboundFields, QueryRequest, ReplyMode, WriteControl,
};

/// Positions that a record may still look at. A record of ordinary length that asks for more is not one of an application.
struct Work(usize);

impl Work {
    fn spend(&mut self, positions: usize) -> Result<(), DataError> {
        self.0 = self.0.checked_sub(positions).ok_or(DataError::Work)?;
        Ok(())
    }
}

/// The parts of a write command that live as long as it does.
struct Writing<'a> {
    /// Attributes of the characters that follow, set by SA.
    attributes: Attributes,
    /// Where IC was last.
    cursor: Option<u16>,
    /// Whether the last thing was an order rather than a character, so that PT does not erase.
    after_order: bool,
    /// Whether the last order was a PT that erased up to the end of the screen.
    after_erasing_tab: bool,
    work: &'a mut Work,
}

/// Screens that one record may write or look through, by repeating, tabs and structured fields.
const SCREENS_PER_RECORD: usize = 256;

impl Screen {
    /// Executes a record of the host: a command and its data. Gives the record to send, if the command reads.
    ///
    /// A structured field of a file transfer is passed over here; [`OutboundFields`] finds it.
    pub fn receive(&mut self, record: &[u8]) -> Result<Option<Vec<u8>>, DataError> {
        let (&octet, data) = record.split_first().ok_or(DataError::Empty)?;
        let work = &mut Work(SCREENS_PER_RECORD * self.cells.len());
        match Command::from_octet(octet).ok_or(DataError::Command(octet))? {
            Command::Write => self.write(data, false, work)?,
            Command::EraseWrite => {
                self.erase(false);
                self.write(data, true, work)?;
            }
            Command::EraseWriteAlternate => {
                self.erase(true);
                self.write(data, true, work)?;
            }
            Command::EraseAllUnprotected => self.erase_all_unprotected(),
            Command::ReadBuffer => return Ok(Some(self.read_buffer(self.aid))),
            Command::ReadModified => return Ok(Some(self.read_modified(self.aid, false))),
            Command::ReadModifiedAll => return Ok(Some(self.read_modified(self.aid, true))),
            Command::WriteStructuredField => return self.structured(data, work),
            Command::NoOperation => {}
        }
        Ok(None)
    }

    fn write(&mut self, data: &[u8], is_erased: bool, work: &mut Work) -> Result<(), DataError> {
        let (&control, data) = data.split_first().ok_or(DataError::Truncated)?;
        let control = WriteControl::from_octet(control);
        self.writes += 1;
        self.address = self.cursor;
        if is_erased && control.contains(WriteControl::RESET) {
            self.reply_mode = ReplyMode::Field;
            self.reply_attributes.clear();
        }
        if control.contains(WriteControl::RESET_MODIFIED) {
            for cell in &mut self.cells {
                cell.field = cell.field.map(|attribute| attribute.modified(false));
            }
        }
        let mut writing = Writing {
            attributes: Attributes::default(),
            cursor: None,
            after_order: true,
            after_erasing_tab: false,
            work,
        };
        let mut outcome = Ok(());
        for order in Orders::new(data) {
            outcome = order.and_then(|order| self.execute(order, &mut writing));
            if outcome.is_err() {
                break;
            }
        }
        if let Some(cursor) = writing.cursor {
            self.cursor = cursor;
        }
        if control.contains(WriteControl::RESTORE_KEYBOARD) {
            self.restore_keyboard();
        }
        self.alarms += u64::from(control.contains(WriteControl::ALARM));
        self.prints += u64::from(control.contains(WriteControl::START_PRINT));
        outcome
    }

    fn on_screen(&self, address: u16) -> Result<u16, DataError> {
        match address < self.positions() {
            true => Ok(address),
            false => Err(DataError::Address(address)),
        }
    }

    /// Positions that an order looks at, at most.
    fn cost(&self, order: Order<'_>) -> usize {
        match order {
            Order::Repeat { .. } | Order::EraseUnprotected { .. } | Order::ProgramTab => self.cells.len(),
            Order::Text(text) => text.len(),
            _ => 1,
        }
    }

    fn execute(&mut self, order: Order<'_>, writing: &mut Writing<'_>) -> Result<(), DataError> {
        writing.work.spend(self.cost(order))?;
        let mut is_text = false;
        match order {
            Order::Text(text) => {
                is_text = true;
                text.iter().for_each(|&character| self.put(character, false, writing.attributes));
            }
            Order::Graphic(character) => {
                is_text = true;
                self.put(character, true, writing.attributes);
            }
            Order::Control(character) => self.put(character, false, writing.attributes),
            Order::SetAddress(address) => self.address = self.on_screen(address)?,
            Order::StartField(attribute) => self.start_field(attribute, Attributes::default()),
            Order::StartFieldExtended(pairs) => {
                let (mut attribute, mut attributes) = (FieldAttribute::UNPROTECTED, Attributes::default());
                for pair in pairs.iter() {
                    match pair.kind == AttributeType::Field as u8 {
                        true => attribute = FieldAttribute::from_octet(pair.value),
                        false => self.set_field_attribute(&mut attributes, pair),
                    }
                }
                self.start_field(attribute, attributes);
            }
            Order::ModifyField(pairs) => self.modify_field(pairs.iter()),
            Order::SetAttribute(pair) => self.set_field_attribute(&mut writing.attributes, pair),
            Order::InsertCursor => writing.cursor = Some(self.address),
            Order::ProgramTab => {
                self.program_tab(writing);
                return Ok(());
            }
            Order::Repeat { to, character, graphic } => {
                let to = self.on_screen(to)?;
                loop {
                    self.put(character, graphic, writing.attributes);
                    if self.address == to {
                        break;
                    }
                }
            }
            Order::EraseUnprotected { to } => {
                let to = self.on_screen(to)?;
                self.erase_unprotected(to);
            }
            Order::Unknown(_) => {}
        }
        writing.after_order = !is_text;
        writing.after_erasing_tab = false;
        Ok(())
    }

    /// Colours are passed over where the terminal has none.
    fn set_field_attribute(&self, attributes: &mut Attributes, pair: AttributePair) {
        let is_color = matches!(
            AttributeType::from_octet(pair.kind),
            Some(AttributeType::Foreground | AttributeType::Background)
        );
        if self.config.has_color || !is_color {
            attributes.set(pair);
        }
    }

    /// Puts a character at the current address, which moves on. A field attribute that was there is gone.
    fn put(&mut self, character: u8, graphic: bool, mut attributes: Attributes) {
        if graphic {
            // Graphic Escape is a character set of its own.
            attributes.character_set = 0;
        }
        self.set_cell(self.address, Cell { character, graphic, attributes, field: None });
        self.address = self.after(self.address);
    }

    fn start_field(&mut self, attribute: FieldAttribute, attributes: Attributes) {
        let cell = Cell { attributes, field: Some(attribute), ..Cell::default() };
        self.set_cell(self.address, cell);
        self.address = self.after(self.address);
    }

    /// MF changes nothing where no attribute is; the address then stays.
    fn modify_field(&mut self, pairs: impl Iterator<Item = AttributePair>) {
        let mut cell = self.cell(self.address);
        if cell.field.is_none() {
            return;
        }
        for pair in pairs {
            match AttributeType::from_octet(pair.kind) {
                Some(AttributeType::Field) => cell.field = Some(FieldAttribute::from_octet(pair.value)),
                Some(AttributeType::All) => {}
                _ => self.set_field_attribute(&mut cell.attributes, pair),
            }
        }
        self.set_cell(self.address, cell);
        self.address = self.after(self.address);
    }

    /// PT: on to the next input field. Behind a character, what is left of the field on the way is erased.
    fn program_tab(&mut self, writing: &mut Writing<'_>) {
        let at = self.address;
        if self.cell(at).field.is_some_and(|attribute| !attribute.is_protected()) {
            self.address = self.after(at);
            (writing.after_order, writing.after_erasing_tab) = (true, false);
            return;
        }
        // It does not wrap: without an input field up to the end, it stops at the beginning of the screen.
        let next = self.next_input(at).filter(|&next| next >= at).unwrap_or(0);
        if !writing.after_order || writing.after_erasing_tab {
            while self.address != next && self.cell(self.address).field.is_none() {
                self.put(0, false, Attributes::default());
            }
            writing.after_erasing_tab |= next == 0;
        } else {
            writing.after_erasing_tab = false;
        }
        self.address = next;
        writing.after_order = true;
    }

    /// EUA: nulls in input fields up to `to`. Attributes of characters stay, but for the character set.
    fn erase_unprotected(&mut self, to: u16) {
        let mut attribute = self.attribute_at(self.address);
        loop {
            match self.cell_mut(self.address) {
                Some(Cell { field: Some(other), .. }) => attribute = *other,
                Some(cell) if !attribute.is_protected() => cell.empty(),
                _ => {}
            }
            self.address = self.after(self.address);
            if self.address == to {
                return;
            }
        }
    }

    /// EAU: input fields are emptied and no longer modified, the cursor goes to the first of them, and the keyboard is
    /// restored.
    fn erase_all_unprotected(&mut self) {
        self.writes += 1;
        self.erase_input();
        self.restore_keyboard();
    }

    fn structured(&mut self, data: &[u8], work: &mut Work) -> Result<Option<Vec<u8>>, DataError> {
        if !self.config.is_extended {
            return Err(DataError::Command(Command::WriteStructuredField.octet()));
        }
        let (mut answer, mut first_error) = (None, None);
        for field in OutboundFields::new(data) {
            match field.and_then(|field| self.structured_field(field, work)) {
                Ok(Some(record)) => answer = Some(record),
                Ok(None) => {}
                Err(DataError::Work) => return Err(DataError::Work),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        match (answer, first_error) {
            // What was answered is a positive response already.
            (None, Some(error)) => Err(error),
            (answer, _) => Ok(answer),
        }
    }

    /// Reading, erasing and preparing to write cost a screen each.
    fn structured_field(
        &mut self,
        field: OutboundField<'_>,
        work: &mut Work,
    ) -> Result<Option<Vec<u8>>, DataError> {
        work.spend(self.cells.len())?;
        match field {
            OutboundField::ReadPartition(request) => return Ok(Some(self.read_partition(request))),
            OutboundField::EraseReset { is_alternate } => self.erase(is_alternate),
            OutboundField::SetReplyMode { mode, attributes } => {
                self.reply_mode = mode;
                self.reply_attributes = match mode {
                    ReplyMode::Character => attributes.iter().take(REPLY_ATTRIBUTES).copied().collect(),
                    _ => Vec::new(),
                };
            }
            OutboundField::CreatePartition(_) => (self.cursor, self.address) = (0, 0),
            OutboundField::Data(data) => return self.outbound_data(data, work),
            OutboundField::Ddm(_) => {}
        }
        Ok(None)
    }

    /// A write inside of a structured field keeps the size that is in force.
    fn outbound_data(&mut self, record: &[u8], work: &mut Work) -> Result<Option<Vec<u8>>, DataError> {
        let (&octet, data) = record.split_first().ok_or(DataError::Truncated)?;
        let command = Command::from_octet(octet);
        match command {
            Some(Command::Write | Command::EraseWrite | Command::EraseWriteAlternate) => {
                let is_erase = command != Some(Command::Write);
                if is_erase {
                    self.erase(self.is_alternate());
                }
                if !data.is_empty() {
                    self.write(data, is_erase, work)?;
                }
            }
            Some(Command::EraseAllUnprotected) => self.erase_all_unprotected(),
            _ => return Err(DataError::Command(octet)),
        }
        Ok(None)
    }

    fn read_partition(&mut self, request: QueryRequest<'_>) -> Vec<u8> {
        match request {
            QueryRequest::ReadBuffer => self.read_buffer(Aid::QueryReply),
            QueryRequest::ReadModified => self.read_modified(Aid::QueryReply, false),
            QueryRequest::ReadModifiedAll => self.read_modified(Aid::QueryReply, true),
            QueryRequest::Query | QueryRequest::All | QueryRequest::Equivalent(_) => self.query_replies(None),
            QueryRequest::List(codes) => self.query_replies(Some(codes)),
        }
    }
}
