//! The structured fields of IND$FILE in DFT mode (identifier X'D0', "Distributed Data Management").
//!
//! The host asks and the terminal answers: Open, then either Set Cursor and Get for each piece of a file that goes to the
//! host, or Insert and data for each that comes from it, then Close. What the user shall read comes as a file of its own,
//! with the name "FT:MSG ". The format is not in GA23-0059; it is that of IBM's "3270 Information Display System
//! Distributed Function Terminal" products.

use super::error::DataError;
use super::structured::{DDM, write_field};

/// The name in an Open of a file's data.
pub const OPEN_DATA: &[u8; 7] = b"FT:DATA";
/// The name in an Open of a message.
pub const OPEN_MESSAGE: &[u8; 7] = b"FT:MSG ";

/// The head of a piece of data: not compressed, data begins.
const DATA_HEAD: [u8; 3] = [0xc0, 0x80, 0x61];
/// Octets of that head and of the length, which the length counts.
const DATA_HEAD_BYTES: u16 = 5;
const RECORD: [u8; 2] = [0x63, 0x06];
const ERROR: [u8; 2] = [0x69, 0x04];

/// Why a terminal does not do what it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DdmError {
    /// The file ends before what was asked for.
    EndOfFile,
    /// The request failed, or the user gave up.
    Failed,
    /// Another code.
    Other(u16),
}

impl DdmError {
    fn from_code(code: u16) -> DdmError {
        match code {
            0x2200 => DdmError::EndOfFile,
            0x0100 => DdmError::Failed,
            other => DdmError::Other(other),
        }
    }
    fn code(self) -> u16 {
        match self {
            DdmError::EndOfFile => 0x2200,
            DdmError::Failed => 0x0100,
            DdmError::Other(code) => code,
        }
    }
}

/// One structured field of a file transfer, of either side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Ddm<'a> {
    /// The host opens a file or a message, by this name.
    Open {
        /// [`OPEN_DATA`] or [`OPEN_MESSAGE`].
        name: [u8; 7],
        /// Whether the terminal is to send: the open is for Get.
        is_upload: bool,
    },
    /// The host closes it.
    Close,
    /// The host sets the position of the next Get; it always is where the last one ended.
    SetCursor,
    /// The host asks for a piece.
    Get,
    /// The host announces a piece.
    Insert,
    /// A piece from the host.
    InsertData(&'a [u8]),
    /// The terminal has opened it.
    Opened,
    /// The terminal has closed it.
    Closed,
    /// A piece from the terminal, with its number from 1.
    Data {
        /// The number.
        record: u32,
        /// The piece.
        data: &'a [u8],
    },
    /// The terminal has taken a piece.
    Inserted {
        /// Its number from 1.
        record: u32,
    },
    /// The terminal could not.
    Error {
        /// The first octet of the request.
        request: u8,
        /// Why.
        error: DdmError,
    },
}

impl<'a> Ddm<'a> {
    /// Reads what is behind the identifier.
    pub fn parse(body: &'a [u8]) -> Result<Ddm<'a>, DataError> {
        let (head, rest) = body.split_first_chunk().ok_or(DataError::Truncated)?;
        Ok(match (*head, rest) {
            ([0x00, 0x12], _) => {
                let name = *rest.last_chunk().ok_or(DataError::Truncated)?;
                Ddm::Open { name, is_upload: rest.get(9) == Some(&1) }
            }
            ([0x41, 0x12], _) => Ddm::Close,
            ([0x45, 0x11], _) => Ddm::SetCursor,
            ([0x46, 0x11], _) => Ddm::Get,
            ([0x47, 0x11], _) => Ddm::Insert,
            ([0x47, 0x04], _) => Ddm::InsertData(data(rest)?),
            ([0x00, 0x09], _) => Ddm::Opened,
            ([0x41, 0x09], _) => Ddm::Closed,
            ([0x46, 0x05], _) => {
                let (record, rest) = record(rest)?;
                Ddm::Data { record, data: data(rest)? }
            }
            ([0x47, 0x05], _) => Ddm::Inserted { record: record(rest)?.0 },
            ([request, 0x08], &[0x69, 0x04, high, low, ..]) => {
                Ddm::Error { request, error: DdmError::from_code(u16::from_be_bytes([high, low])) }
            }
            ([_, other], _) => return Err(DataError::Field(other)),
        })
    }

    /// Appends it to a record, as a structured field.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        match *self {
            Ddm::Open { name, is_upload } => {
                body.extend_from_slice(&[0x00, 0x12, 0x01, 0x06, 0x01, 0x01, 0x04, 0x03, 0x0a, 0x0a]);
                match is_upload {
                    true => body.extend_from_slice(&[0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00]),
                    false => body.extend_from_slice(&[0x00, 0x00, 0x00, 0x00, 0x11, 0x01, 0x01, 0x00]),
                }
                body.extend_from_slice(&[0x50, 0x05, 0x52, 0x03, 0xf0]);
                if name == *OPEN_DATA {
                    // The most octets of a record.
                    body.extend_from_slice(&[0x08, 0x06, 0x27, 0x04, 0x3f, 0xef]);
                }
                body.extend_from_slice(&[0x03, 0x09]);
                body.extend_from_slice(&name);
            }
            Ddm::Close => body.extend_from_slice(&[0x41, 0x12]),
            Ddm::SetCursor => body
                .extend_from_slice(&[0x45, 0x11, 0x01, 0x05, 0x00, 0x06, 0x00, 0x09, 0x05, 0x01, 0x03, 0x00]),
            Ddm::Get => body.extend_from_slice(&[0x46, 0x11, 0x01, 0x04, 0x00, 0x80]),
            Ddm::Insert => body.extend_from_slice(&[0x47, 0x11, 0x01, 0x05, 0x00, 0x80, 0x00]),
            Ddm::InsertData(data) => {
                body.extend_from_slice(&[0x47, 0x04]);
                write_data(&mut body, data);
            }
            Ddm::Opened => body.extend_from_slice(&[0x00, 0x09]),
            Ddm::Closed => body.extend_from_slice(&[0x41, 0x09]),
            Ddm::Data { record, data } => {
                body.extend_from_slice(&[0x46, 0x05]);
                body.extend_from_slice(&RECORD);
                body.extend_from_slice(&record.to_be_bytes());
                write_data(&mut body, data);
            }
            Ddm::Inserted { record } => {
                body.extend_from_slice(&[0x47, 0x05]);
                body.extend_from_slice(&RECORD);
                body.extend_from_slice(&record.to_be_bytes());
            }
            Ddm::Error { request, error } => {
                body.extend_from_slice(&[request, 0x08]);
                body.extend_from_slice(&ERROR);
                body.extend_from_slice(&error.code().to_be_bytes());
            }
        }
        write_field(out, DDM, &body);
    }
}

fn record(rest: &[u8]) -> Result<(u32, &[u8]), DataError> {
    let rest = rest.strip_prefix(&RECORD).ok_or(DataError::Truncated)?;
    let (number, rest) = rest.split_first_chunk().ok_or(DataError::Truncated)?;
    Ok((u32::from_be_bytes(*number), rest))
}

fn data(rest: &[u8]) -> Result<&[u8], DataError> {
    let rest = rest.strip_prefix(&DATA_HEAD).ok_or(DataError::Truncated)?;
    let (length, rest) = rest.split_first_chunk().ok_or(DataError::Truncated)?;
    let length = u16::from_be_bytes(*length).checked_sub(DATA_HEAD_BYTES).ok_or(DataError::Truncated)?;
    rest.get(..usize::from(length)).ok_or(DataError::Truncated)
}

fn write_data(body: &mut Vec<u8>, data: &[u8]) {
    body.extend_from_slice(&DATA_HEAD);
    let length = u16::try_from(data.len()).unwrap_or(0).saturating_add(DATA_HEAD_BYTES);
    body.extend_from_slice(&length.to_be_bytes());
    body.extend_from_slice(data);
}
