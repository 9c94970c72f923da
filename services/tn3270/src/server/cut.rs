//! The host's part of CUT mode, for terminals without structured fields.

use super::signal::Signal;
use crate::codec::{
    Aid, Command, Display, FieldAttribute, Inbound, ModifiedField, StreamWriter, WriteControl,
};
use crate::transfer::cut::{
    ABORT_FILE, CONTROL, CutDecoder, CutEncoder, DATA, DATA_REQUEST, DOWN_MOST, END_OF_FILE, FRAME_END,
    HOST_ACK, MESSAGE_COLUMNS, RESPONSE, TRANSFER_COMPLETE, UP_DATA, length, six,
};

/// Positions of the screen of CUT mode.
const POSITIONS: usize = FRAME_END as usize + 1;
/// The address of the first octet that the terminal sends.
const UP_FIRST: u16 = 2;

/// Frames of one transfer.
#[derive(Clone, Debug, Default)]
pub(super) struct CutHost {
    encoder: CutEncoder,
    decoder: CutDecoder,
    sequence: u16,
    /// Characters that did not fit into the last frame.
    left: Vec<u8>,
}

impl CutHost {
    fn frame(&mut self, make: impl FnOnce(&mut StreamWriter, u8)) -> Vec<u8> {
        let control = WriteControl::RESET | WriteControl::RESTORE_KEYBOARD;
        let mut writer = StreamWriter::new(Command::EraseWrite, control, POSITIONS);
        self.sequence = (self.sequence + 1) % 64;
        writer.set_address(0);
        make(&mut writer, six(self.sequence));
        writer.set_address(FRAME_END);
        writer.start_field(FieldAttribute::SKIP.display(Display::Hidden));
        writer.finish()
    }
    fn response_area(writer: &mut StreamWriter) {
        writer.set_address(RESPONSE);
        writer.start_field(FieldAttribute::UNPROTECTED.modified(true));
        writer.insert_cursor();
    }
    fn control(&mut self, status: [u8; 2], message: &[u8]) -> Vec<u8> {
        let shown = message.get(..usize::from(MESSAGE_COLUMNS)).unwrap_or(message).to_vec();
        self.frame(|writer, sequence| {
            writer.text(&[CONTROL, sequence, status[0], status[1]]);
            writer.text(&shown);
            CutHost::response_area(writer);
        })
    }
    /// The acknowledgment of the command.
    pub(super) fn open(&mut self) -> Vec<u8> {
        self.control(HOST_ACK, &[])
    }
    /// The end, with a message in EBCDIC.
    pub(super) fn message(&mut self, is_complete: bool, message: &[u8]) -> Vec<u8> {
        self.control(if is_complete { TRANSFER_COMPLETE } else { ABORT_FILE }, message)
    }
    /// A frame of what is in `wire`, as much as there is room for.
    pub(super) fn data(&mut self, wire: &mut Vec<u8>) -> Vec<u8> {
        let most = usize::from(DOWN_MOST);
        let mut data = core::mem::take(&mut self.left);
        let mut used = 0;
        while data.len() < most {
            let Some(&octet) = wire.get(used) else { break };
            self.encoder.put(octet, &mut data);
            used += 1;
        }
        wire.drain(..used);
        self.left = data.split_off(data.len().min(most));
        self.data_frame(&data)
    }
    /// Whether characters wait for the next frame.
    pub(super) fn has_left(&self) -> bool {
        !self.left.is_empty()
    }
    /// The frame at the end of a file.
    pub(super) fn end(&mut self) -> Vec<u8> {
        self.data_frame(&END_OF_FILE)
    }
    fn data_frame(&mut self, data: &[u8]) -> Vec<u8> {
        let count = u16::try_from(data.len()).unwrap_or(DOWN_MOST);
        let checksum = data.iter().fold(0, |sum, octet| sum ^ octet);
        self.frame(|writer, sequence| {
            writer.text(&[DATA, sequence, six(u16::from(checksum)), six(count >> 6), six(count)]);
            writer.text(data);
            CutHost::response_area(writer);
        })
    }
    /// Asks the terminal for data.
    pub(super) fn request(&mut self) -> Vec<u8> {
        self.frame(|writer, sequence| {
            writer.text(&[DATA_REQUEST]);
            writer.start_field(FieldAttribute::UNPROTECTED.modified(true));
            writer.text(&[DATA, sequence]);
            writer.insert_cursor();
            writer.text(&[six(0), six(0), six(0)]);
        })
    }
    /// What a record of the terminal means, to a request for data or to another frame.
    pub(super) fn signal(&mut self, inbound: &Inbound<'_>, is_asked: bool) -> Signal {
        match inbound {
            Inbound::Read { aid: Aid::Enter, data, .. } if is_asked => {
                self.taken(data).unwrap_or(Signal::Failed)
            }
            Inbound::Read { aid: Aid::Enter, .. } => Signal::Acknowledged,
            _ => Signal::Failed,
        }
    }
    fn taken(&mut self, data: &[u8]) -> Option<Signal> {
        let fields = ModifiedField::parse(data).ok()?;
        let field = fields.into_iter().find(|field| field.address == Some(UP_FIRST))?;
        let head = usize::from(UP_DATA - UP_FIRST);
        let &[_, _, checksum, high, low] = field.text.get(..head)? else { return None };
        let characters = field.text.get(head..)?.get(..usize::from(length([high, low])?))?;
        let sum = characters.iter().fold(0, |sum, octet| sum ^ octet);
        if six(u16::from(sum)) != checksum {
            return None;
        }
        if characters == END_OF_FILE {
            return Some(Signal::EndOfFile);
        }
        let mut octets = Vec::new();
        self.decoder.take(characters, &mut octets)?;
        Some(Signal::Data(octets))
    }
}
