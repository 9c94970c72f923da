//! What a terminal sends.

use super::address::decode_address;
use super::aid::Aid;
use super::error::DataError;
use super::order::{Order, Orders};
use super::query::{QUERY_REPLY, QueryReply};
use super::structured::{DDM, next_field};

/// A record from a terminal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Inbound<'a> {
    /// The answer to a read, or the press of a key.
    Read {
        /// The key.
        aid: Aid,
        /// The address of the cursor; none in a short read.
        cursor: Option<u16>,
        /// The orders behind it.
        data: &'a [u8],
    },
    /// Structured fields.
    Fields(Vec<InboundField<'a>>),
}

/// A structured field from a terminal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InboundField<'a> {
    /// A query reply.
    Query(QueryReply),
    /// The file transfer of IND$FILE: what is behind the identifier.
    Ddm(&'a [u8]),
    /// Inbound 3270DS: what is behind its partition, which begins with an AID.
    Data(&'a [u8]),
    /// Another one: its identifier.
    Other(u8),
}

/// A field that was changed: its address, and its characters without nulls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModifiedField {
    /// The address of its first character; `None` on a screen without fields.
    pub address: Option<u16>,
    /// What stands in it, in EBCDIC.
    pub text: Vec<u8>,
}

/// Inbound 3270DS.
const INBOUND_DATA: u8 = 0x80;

impl<'a> Inbound<'a> {
    /// Reads a record.
    pub fn parse(record: &'a [u8]) -> Result<Inbound<'a>, DataError> {
        let (&octet, rest) = record.split_first().ok_or(DataError::Empty)?;
        let aid = Aid::from_octet(octet).ok_or(DataError::Command(octet))?;
        if aid == Aid::StructuredField {
            return fields(rest).map(Inbound::Fields);
        }
        match rest.split_first_chunk() {
            Some((cursor, data)) => Ok(Inbound::Read { aid, cursor: Some(decode_address(*cursor)), data }),
            None if rest.is_empty() => Ok(Inbound::Read { aid, cursor: None, data: &[] }),
            None => Err(DataError::Truncated),
        }
    }
}

impl ModifiedField {
    /// The changed fields of the data of a record: each begins with SBA; without one, the screen has no fields.
    /// Attributes of characters are passed over.
    pub fn parse(data: &[u8]) -> Result<Vec<ModifiedField>, DataError> {
        let mut fields: Vec<ModifiedField> = Vec::new();
        for order in Orders::new(data) {
            let text: &[u8] = match order? {
                Order::SetAddress(address) => {
                    fields.push(ModifiedField { address: Some(address), text: Vec::new() });
                    continue;
                }
                Order::Text(text) => text,
                Order::Graphic(character) => &[character],
                Order::Control(character) => &[character],
                _ => continue,
            };
            if fields.is_empty() {
                fields.push(ModifiedField { address: None, text: Vec::new() });
            }
            if let Some(field) = fields.last_mut() {
                field.text.extend(text.iter().filter(|&&octet| octet != 0));
            }
        }
        Ok(fields)
    }
}

fn fields(mut rest: &[u8]) -> Result<Vec<InboundField<'_>>, DataError> {
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let field = next_field(&mut rest)?;
        let (&identifier, body) = field.split_first().ok_or(DataError::Truncated)?;
        fields.push(match identifier {
            QUERY_REPLY => InboundField::Query(QueryReply::parse(body)?),
            DDM => InboundField::Ddm(body),
            INBOUND_DATA => InboundField::Data(body.get(1..).unwrap_or_default()),
            other => InboundField::Other(other),
        });
    }
    Ok(fields)
}
