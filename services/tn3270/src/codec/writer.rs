//! Making a record of the data stream.

use super::address::encode_address;
use super::aid::Aid;
use super::attribute::{AttributePair, AttributeType, Attributes, FieldAttribute};
use super::command::{Command, WriteControl};
use super::order::{EUA, GE, IC, MF, PT, RA, SA, SBA, SF, SFE};

/// Pairs that one order can have.
const PAIRS: usize = 255;

/// Writes a record order by order. It writes what it is told; whether the orders make sense on a screen is the caller's
/// matter.
#[derive(Clone, Debug)]
pub struct StreamWriter {
    bytes: Vec<u8>,
    positions: usize,
}

impl StreamWriter {
    /// A write command, for a screen of so many positions.
    pub fn new(command: Command, control: WriteControl, positions: usize) -> StreamWriter {
        StreamWriter { bytes: vec![command.octet(), control.octet()], positions }
    }
    /// What a terminal sends: an AID and the cursor's address.
    pub fn inbound(aid: Aid, cursor: u16, positions: usize) -> StreamWriter {
        let mut writer = StreamWriter { bytes: vec![aid.octet()], positions };
        writer.address(cursor);
        writer
    }
    fn address(&mut self, address: u16) {
        self.bytes.extend_from_slice(&encode_address(address, self.positions));
    }
    /// SBA.
    pub fn set_address(&mut self, address: u16) {
        self.bytes.push(SBA);
        self.address(address);
    }
    /// SF.
    pub fn start_field(&mut self, attribute: FieldAttribute) {
        self.bytes.extend_from_slice(&[SF, attribute.octet()]);
    }
    /// SFE, or SF where no extended attribute is set.
    pub fn start_field_with(&mut self, attribute: FieldAttribute, attributes: Attributes) {
        match attributes == Attributes::default() {
            true => self.start_field(attribute),
            false => self.start_field_extended(attribute, attributes),
        }
    }
    /// SFE.
    pub fn start_field_extended(&mut self, attribute: FieldAttribute, attributes: Attributes) {
        let field = AttributePair::new(AttributeType::Field, attribute.octet());
        let pairs: Vec<_> = core::iter::once(field).chain(attributes.pairs()).collect();
        self.pairs(SFE, &pairs);
    }
    /// MF.
    pub fn modify_field(&mut self, pairs: &[AttributePair]) {
        self.pairs(MF, pairs);
    }
    fn pairs(&mut self, order: u8, pairs: &[AttributePair]) {
        let pairs = pairs.get(..PAIRS).unwrap_or(pairs);
        self.bytes.extend_from_slice(&[order, u8::try_from(pairs.len()).unwrap_or(u8::MAX)]);
        for pair in pairs {
            self.bytes.extend_from_slice(&[pair.kind, pair.value]);
        }
    }
    /// SA.
    pub fn set_attribute(&mut self, pair: AttributePair) {
        self.bytes.extend_from_slice(&[SA, pair.kind, pair.value]);
    }
    /// IC.
    pub fn insert_cursor(&mut self) {
        self.bytes.push(IC);
    }
    /// PT.
    pub fn program_tab(&mut self) {
        self.bytes.push(PT);
    }
    /// RA.
    pub fn repeat_to(&mut self, to: u16, character: u8) {
        self.bytes.push(RA);
        self.address(to);
        self.bytes.push(character);
    }
    /// RA of a graphic character.
    pub fn repeat_graphic_to(&mut self, to: u16, character: u8) {
        self.bytes.push(RA);
        self.address(to);
        self.bytes.extend_from_slice(&[GE, character]);
    }
    /// EUA.
    pub fn erase_unprotected_to(&mut self, to: u16) {
        self.bytes.push(EUA);
        self.address(to);
    }
    /// GE.
    pub fn graphic(&mut self, character: u8) {
        self.bytes.extend_from_slice(&[GE, character]);
    }
    /// Characters in EBCDIC. Octets that would be orders are replaced by SUB; nulls and format controls stay.
    pub fn text(&mut self, text: &[u8]) {
        let is_order = |octet| matches!(octet, PT | GE | SBA | EUA | IC | SF | SA | SFE | MF | RA);
        self.bytes.extend(text.iter().map(|&octet| if is_order(octet) { 0x3f } else { octet }));
    }
    /// Octets in the record so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
    /// Whether nothing is written; it never is.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
    /// The record.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}
