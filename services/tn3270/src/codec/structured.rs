//! Structured fields that a host sends behind Write Structured Field.

use super::error::DataError;

const READ_PARTITION: u8 = 0x01;
const ERASE_RESET: u8 = 0x03;
const SET_REPLY_MODE: u8 = 0x09;
const CREATE_PARTITION: u8 = 0x0c;
const OUTBOUND_DATA: u8 = 0x40;
pub(super) const DDM: u8 = 0xd0;

/// The way in which a terminal reports attributes (GA23-0059, "Set Reply Mode").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ReplyMode {
    /// Field attributes by SF.
    #[default]
    Field = 0,
    /// Field and extended attributes by SFE.
    ExtendedField = 1,
    /// The same, and character attributes by SA.
    Character = 2,
}

/// What a Read Partition asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueryRequest<'a> {
    /// All query replies.
    Query,
    /// Those of a list of codes.
    List(&'a [u8]),
    /// The equivalent of the list: all that the terminal has.
    Equivalent(&'a [u8]),
    /// All.
    All,
    /// Read Buffer of partition 0.
    ReadBuffer,
    /// Read Modified.
    ReadModified,
    /// Read Modified All.
    ReadModifiedAll,
}

/// A structured field from the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OutboundField<'a> {
    /// Read Partition.
    ReadPartition(QueryRequest<'a>),
    /// Erase/Reset, to the alternate size or to the default one.
    EraseReset {
        /// Whether to the alternate size.
        is_alternate: bool,
    },
    /// Set Reply Mode.
    SetReplyMode {
        /// The mode.
        mode: ReplyMode,
        /// The types of attributes that Character mode reports.
        attributes: &'a [u8],
    },
    /// Create Partition 0, with its parameters.
    CreatePartition(&'a [u8]),
    /// Outbound 3270DS: a write command for partition 0, as if it had come alone.
    Data(&'a [u8]),
    /// The file transfer of IND$FILE: what is behind the identifier. [`Ddm`](super::Ddm) reads it.
    Ddm(&'a [u8]),
}

/// The structured fields of the data behind Write Structured Field. A field that cannot be read is an error, and the
/// next one follows it; after an error in a field's length nothing does.
#[derive(Clone, Debug)]
pub struct OutboundFields<'a> {
    rest: &'a [u8],
}

impl<'a> OutboundFields<'a> {
    /// The structured fields of `data`.
    pub fn new(data: &'a [u8]) -> OutboundFields<'a> {
        OutboundFields { rest: data }
    }
}

/// Takes one structured field off the front of `rest`, and gives what is behind its length. A length of 0 is that of all
/// that is left.
pub(super) fn next_field<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], DataError> {
    let (length, _) = rest.split_first_chunk().ok_or(DataError::Truncated)?;
    let length = match u16::from_be_bytes(*length) {
        0 => rest.len(),
        length if length < 3 => return Err(DataError::FieldLength(length)),
        length => usize::from(length),
    };
    let (field, behind) = rest.split_at_checked(length).ok_or(DataError::Truncated)?;
    *rest = behind;
    field.get(2..).filter(|body| !body.is_empty()).ok_or(DataError::Truncated)
}

impl<'a> Iterator for OutboundFields<'a> {
    type Item = Result<OutboundField<'a>, DataError>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        Some(match next_field(&mut self.rest) {
            Ok(field) => parse(field),
            Err(error) => {
                self.rest = &[];
                Err(error)
            }
        })
    }
}

fn parse(field: &[u8]) -> Result<OutboundField<'_>, DataError> {
    let (&identifier, body) = field.split_first().ok_or(DataError::Truncated)?;
    match identifier {
        READ_PARTITION => read_partition(body).map(OutboundField::ReadPartition),
        ERASE_RESET => match body {
            [0x00] => Ok(OutboundField::EraseReset { is_alternate: false }),
            [0x80] => Ok(OutboundField::EraseReset { is_alternate: true }),
            _ => Err(DataError::Field(identifier)),
        },
        SET_REPLY_MODE => {
            let (&mode, attributes) = in_partition_0(body)?.split_first().ok_or(DataError::Truncated)?;
            let mode = match mode {
                0 => ReplyMode::Field,
                1 => ReplyMode::ExtendedField,
                2 => ReplyMode::Character,
                other => return Err(DataError::Field(other)),
            };
            Ok(OutboundField::SetReplyMode { mode, attributes })
        }
        CREATE_PARTITION => Ok(OutboundField::CreatePartition(in_partition_0(body)?)),
        OUTBOUND_DATA => match in_partition_0(body)? {
            [] => Err(DataError::Truncated),
            data => Ok(OutboundField::Data(data)),
        },
        DDM => Ok(OutboundField::Ddm(body)),
        other => Err(DataError::Field(other)),
    }
}

fn in_partition_0(body: &[u8]) -> Result<&[u8], DataError> {
    match body.split_first().ok_or(DataError::Truncated)? {
        (0, rest) => Ok(rest),
        (&other, _) => Err(DataError::Partition(other)),
    }
}

fn read_partition(body: &[u8]) -> Result<QueryRequest<'_>, DataError> {
    let [partition, operation, rest @ ..] = body else { return Err(DataError::Truncated) };
    let expected = if matches!(operation, 0x02 | 0x03) { 0xff } else { 0x00 };
    if *partition != expected {
        return Err(DataError::Partition(*partition));
    }
    match (operation, rest) {
        (0x02, _) => Ok(QueryRequest::Query),
        (0x03, [0x00, codes @ ..]) => Ok(QueryRequest::List(codes)),
        (0x03, [0x40, codes @ ..]) => Ok(QueryRequest::Equivalent(codes)),
        (0x03, [0x80, ..]) => Ok(QueryRequest::All),
        (0x03, []) => Err(DataError::Truncated),
        (0xf2, _) => Ok(QueryRequest::ReadBuffer),
        (0xf6, _) => Ok(QueryRequest::ReadModified),
        (0x6e, _) => Ok(QueryRequest::ReadModifiedAll),
        (&other, _) => Err(DataError::Field(other)),
    }
}

/// Appends a structured field of this identifier and body to a record: its length, itself.
pub fn write_field(record: &mut Vec<u8>, identifier: u8, body: &[u8]) {
    let length = u16::try_from(body.len().saturating_add(3)).unwrap_or(0);
    record.extend_from_slice(&length.to_be_bytes());
    record.push(identifier);
    record.extend_from_slice(body);
}

impl OutboundField<'_> {
    /// Appends it to a record that begins with Write Structured Field.
    pub fn write(&self, record: &mut Vec<u8>) {
        let (identifier, body) = match *self {
            OutboundField::ReadPartition(request) => {
                let (head, codes): (&[u8], &[u8]) = match request {
                    QueryRequest::Query => (&[0xff, 0x02], &[]),
                    QueryRequest::List(codes) => (&[0xff, 0x03, 0x00], codes),
                    QueryRequest::Equivalent(codes) => (&[0xff, 0x03, 0x40], codes),
                    QueryRequest::All => (&[0xff, 0x03, 0x80], &[]),
                    QueryRequest::ReadBuffer => (&[0x00, 0xf2], &[]),
                    QueryRequest::ReadModified => (&[0x00, 0xf6], &[]),
                    QueryRequest::ReadModifiedAll => (&[0x00, 0x6e], &[]),
                };
                (READ_PARTITION, [head, codes].concat())
            }
            OutboundField::EraseReset { is_alternate } => (ERASE_RESET, vec![u8::from(is_alternate) << 7]),
            OutboundField::SetReplyMode { mode, attributes } => {
                (SET_REPLY_MODE, [&[0, mode as u8], attributes].concat())
            }
            OutboundField::CreatePartition(parameters) => (CREATE_PARTITION, [&[0], parameters].concat()),
            OutboundField::Data(data) => (OUTBOUND_DATA, [&[0], data].concat()),
            OutboundField::Ddm(body) => (DDM, body.to_vec()),
        };
        write_field(record, identifier, &body);
    }
}
