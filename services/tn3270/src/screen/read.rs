//! What a terminal sends: the reads.

use super::buffer::{Cell, Screen};
use crate::codec::{Aid, AttributePair, AttributeType, Attributes, ReplyMode, StreamWriter};

/// The attributes of characters that reply mode Character can report, in the order of terminals.
const REPORTED: [AttributeType; 5] = [
    AttributeType::Foreground,
    AttributeType::Background,
    AttributeType::Highlight,
    AttributeType::CharacterSet,
    AttributeType::Transparency,
];

impl Screen {
    /// Read Buffer: the whole screen. In field mode attributes are reported by SF, else by SFE; in character mode those of
    /// characters by SA.
    pub fn read_buffer(&self, aid: Aid) -> Vec<u8> {
        let mut writer = StreamWriter::inbound(aid, self.cursor, self.cells.len());
        let mut last = Attributes::default();
        for cell in &self.cells {
            match (cell.field, self.reply_mode) {
                (Some(attribute), ReplyMode::Field) => writer.start_field(attribute),
                (Some(attribute), _) => writer.start_field_extended(attribute, cell.attributes),
                (None, _) => self.write_character(&mut writer, cell, &mut last),
            }
        }
        writer.finish()
    }

    /// Read Modified, or Read Modified All: fields whose modified data tag is set, without their nulls. On a screen without
    /// fields it is all characters. After PA keys and Clear, Read Modified sends the AID alone.
    pub fn read_modified(&self, aid: Aid, is_all: bool) -> Vec<u8> {
        if aid.is_short_read() && !is_all {
            return vec![aid.octet()];
        }
        let has_data = is_all || aid != Aid::Select;
        let mut writer = StreamWriter::inbound(aid, self.cursor, self.cells.len());
        let mut last = Attributes::default();
        if !self.is_formatted() {
            for cell in self.cells.iter().filter(|cell| cell.character != 0) {
                self.write_character(&mut writer, cell, &mut last);
            }
            return writer.finish();
        }
        for field in self.fields() {
            if !field.attribute.is_modified() {
                continue;
            }
            let mut address = self.after(field.start);
            writer.set_address(address);
            for _ in 0..field.length {
                let cell = self.cell(address);
                if has_data && cell.character != 0 {
                    self.write_character(&mut writer, &cell, &mut last);
                }
                address = self.after(address);
            }
        }
        writer.finish()
    }

    fn write_character(&self, writer: &mut StreamWriter, cell: &Cell, last: &mut Attributes) {
        if self.reply_mode == ReplyMode::Character {
            for kind in REPORTED {
                let pair = AttributePair::new(kind, cell.attributes.value(kind));
                if self.reply_attributes.contains(&pair.kind) && last.value(kind) != pair.value {
                    writer.set_attribute(pair);
                    last.set(pair);
                }
            }
        }
        match cell.graphic {
            true => writer.graphic(cell.character),
            false => writer.text(&[cell.character]),
        }
    }
}
