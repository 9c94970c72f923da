//! Query replies: what a terminal says that it can do.

use super::error::DataError;

/// Codes of query replies (GA23-0059, "Query Reply").
pub mod query_code {
    /// Summary.
    pub const SUMMARY: u8 = 0x80;
    /// Usable Area.
    pub const USABLE_AREA: u8 = 0x81;
    /// Alphanumeric Partitions.
    pub const ALPHANUMERIC_PARTITIONS: u8 = 0x84;
    /// Character Sets.
    pub const CHARACTER_SETS: u8 = 0x85;
    /// Color.
    pub const COLOR: u8 = 0x86;
    /// Highlighting.
    pub const HIGHLIGHTING: u8 = 0x87;
    /// Reply Modes.
    pub const REPLY_MODES: u8 = 0x88;
    /// Distributed Data Management: file transfer.
    pub const DDM: u8 = 0x95;
    /// Implicit Partition.
    pub const IMPLICIT_PARTITION: u8 = 0xa6;
    /// Null: none of those that were asked for.
    pub const NULL: u8 = 0xff;
}

/// A character set of a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CharacterSet {
    /// The number of its store.
    pub store: u8,
    /// X'80' loadable, X'40' triple-plane, X'20' double-byte, X'10' not compared.
    pub flags: u8,
    /// Its local identifier, as in attributes of characters.
    pub local: u8,
    /// Its graphic character set and code page, where the reply has it.
    pub graphic_set: Option<u32>,
}

/// One query reply.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum QueryReply {
    /// The codes of all replies.
    Summary(Vec<u8>),
    /// The size of the screen.
    UsableArea {
        /// Columns, in characters.
        columns: u16,
        /// Rows, in characters.
        rows: u16,
        /// The size of the buffer in positions; 0 where it is not said.
        buffer_positions: u16,
        /// The width of a character in points.
        cell_width: u8,
        /// The height of a character in points.
        cell_height: u8,
    },
    /// Partitions beyond the first, and the positions of all.
    AlphanumericPartitions {
        /// Their number.
        partitions: u8,
        /// Positions.
        positions: u16,
    },
    /// Character sets.
    CharacterSets {
        /// Whether Graphic Escape is understood.
        has_graphic_escape: bool,
        /// The sets.
        sets: Vec<CharacterSet>,
    },
    /// Pairs of a colour that is asked for and the one that is shown; the first is for the default.
    Color(Vec<(u8, u8)>),
    /// Pairs of a highlighting that is asked for and the one that is shown.
    Highlighting(Vec<(u8, u8)>),
    /// The reply modes that are understood.
    ReplyModes(Vec<u8>),
    /// File transfer.
    Ddm {
        /// The most octets of one structured field from the terminal.
        inbound_bytes: u16,
        /// The most octets of one structured field to the terminal.
        outbound_bytes: u16,
    },
    /// Default and alternate size, columns and rows.
    ImplicitPartition {
        /// Of Erase/Write.
        default: (u16, u16),
        /// Of Erase/Write Alternate.
        alternate: (u16, u16),
    },
    /// None of those that were asked for.
    Null,
    /// Another one, which is not read: its code and what is behind it.
    Other(u8, Vec<u8>),
}

/// A structured field's identifier: query reply.
pub(super) const QUERY_REPLY: u8 = 0x81;

impl QueryReply {
    /// Its code.
    pub fn code(&self) -> u8 {
        match self {
            QueryReply::Summary(_) => query_code::SUMMARY,
            QueryReply::UsableArea { .. } => query_code::USABLE_AREA,
            QueryReply::AlphanumericPartitions { .. } => query_code::ALPHANUMERIC_PARTITIONS,
            QueryReply::CharacterSets { .. } => query_code::CHARACTER_SETS,
            QueryReply::Color(_) => query_code::COLOR,
            QueryReply::Highlighting(_) => query_code::HIGHLIGHTING,
            QueryReply::ReplyModes(_) => query_code::REPLY_MODES,
            QueryReply::Ddm { .. } => query_code::DDM,
            QueryReply::ImplicitPartition { .. } => query_code::IMPLICIT_PARTITION,
            QueryReply::Null => query_code::NULL,
            QueryReply::Other(code, _) => *code,
        }
    }

    /// Appends it as a structured field.
    pub fn write(&self, record: &mut Vec<u8>) {
        let mut body = vec![self.code()];
        self.write_body(&mut body);
        super::structured::write_field(record, QUERY_REPLY, &body);
    }

    fn write_body(&self, body: &mut Vec<u8>) {
        let pairs = |body: &mut Vec<u8>, pairs: &[(u8, u8)]| {
            let pairs = pairs.get(..255).unwrap_or(pairs);
            body.push(u8::try_from(pairs.len()).unwrap_or(u8::MAX));
            pairs.iter().for_each(|(asked, shown)| body.extend_from_slice(&[*asked, *shown]));
        };
        match self {
            QueryReply::Summary(codes) => body.extend_from_slice(codes),
            QueryReply::UsableArea { columns, rows, buffer_positions, cell_width, cell_height } => {
                body.extend_from_slice(&[0x01, 0x00]);
                body.extend_from_slice(&columns.to_be_bytes());
                body.extend_from_slice(&rows.to_be_bytes());
                // The distance of points in millimetres, as a 3279 model 2 says it: 10/741 and 2/111.
                body.extend_from_slice(&[0x01, 0x00, 0x0a, 0x02, 0xe5, 0x00, 0x02, 0x00, 0x6f]);
                body.extend_from_slice(&[*cell_width, *cell_height]);
                body.extend_from_slice(&buffer_positions.to_be_bytes());
            }
            QueryReply::AlphanumericPartitions { partitions, positions } => {
                body.push(*partitions);
                body.extend_from_slice(&positions.to_be_bytes());
                body.push(0);
            }
            QueryReply::CharacterSets { has_graphic_escape, sets } => {
                body.extend_from_slice(&[u8::from(*has_graphic_escape) << 7 | 0x02, 0, 9, 12]);
                body.extend_from_slice(&[0, 0, 0, 0, 7]);
                for set in sets {
                    body.extend_from_slice(&[set.store, set.flags, set.local]);
                    body.extend_from_slice(&set.graphic_set.unwrap_or(0).to_be_bytes());
                }
            }
            QueryReply::Color(list) => {
                body.push(0);
                pairs(body, list);
            }
            QueryReply::Highlighting(list) => pairs(body, list),
            QueryReply::ReplyModes(modes) => body.extend_from_slice(modes),
            QueryReply::Ddm { inbound_bytes, outbound_bytes } => {
                body.extend_from_slice(&[0, 0]);
                body.extend_from_slice(&inbound_bytes.to_be_bytes());
                body.extend_from_slice(&outbound_bytes.to_be_bytes());
                body.extend_from_slice(&[1, 1]);
            }
            QueryReply::ImplicitPartition { default, alternate } => {
                body.extend_from_slice(&[0, 0, 11, 1, 0]);
                for number in [default.0, default.1, alternate.0, alternate.1] {
                    body.extend_from_slice(&number.to_be_bytes());
                }
            }
            QueryReply::Null => {}
            QueryReply::Other(_, other) => body.extend_from_slice(other),
        }
    }

    /// Reads what is behind the identifier of a query reply. One that is not known, or that is shorter than its kind has
    /// to be, is [`QueryReply::Other`].
    pub fn parse(field: &[u8]) -> Result<QueryReply, DataError> {
        let (&code, body) = field.split_first().ok_or(DataError::Truncated)?;
        Ok(parse_known(code, body).unwrap_or_else(|| QueryReply::Other(code, body.to_vec())))
    }
}

fn number(body: &[u8], at: usize) -> Option<u16> {
    let octets: [u8; 2] = body.get(at..at.checked_add(2)?)?.try_into().ok()?;
    Some(u16::from_be_bytes(octets))
}

fn parse_known(code: u8, body: &[u8]) -> Option<QueryReply> {
    let pairs = |body: &[u8]| -> Option<Vec<(u8, u8)>> {
        let (&count, rest) = body.split_first()?;
        let octets = rest.get(..2 * usize::from(count))?;
        Some(octets.chunks_exact(2).filter_map(|pair| Some((*pair.first()?, *pair.get(1)?))).collect())
    };
    Some(match code {
        query_code::SUMMARY => QueryReply::Summary(body.to_vec()),
        query_code::USABLE_AREA => QueryReply::UsableArea {
            columns: number(body, 2)?,
            rows: number(body, 4)?,
            cell_width: *body.get(15)?,
            cell_height: *body.get(16)?,
            buffer_positions: number(body, 17).unwrap_or(0),
        },
        query_code::ALPHANUMERIC_PARTITIONS => {
            QueryReply::AlphanumericPartitions { partitions: *body.first()?, positions: number(body, 1)? }
        }
        query_code::CHARACTER_SETS => character_sets(body)?,
        query_code::COLOR => QueryReply::Color(pairs(body.get(1..)?)?),
        query_code::HIGHLIGHTING => QueryReply::Highlighting(pairs(body)?),
        query_code::REPLY_MODES => QueryReply::ReplyModes(body.to_vec()),
        query_code::DDM => {
            QueryReply::Ddm { inbound_bytes: number(body, 2)?, outbound_bytes: number(body, 4)? }
        }
        query_code::IMPLICIT_PARTITION => QueryReply::ImplicitPartition {
            default: (number(body, 5)?, number(body, 7)?),
            alternate: (number(body, 9)?, number(body, 11)?),
        },
        query_code::NULL => QueryReply::Null,
        _ => return None,
    })
}

fn character_sets(body: &[u8]) -> Option<QueryReply> {
    let &flags = body.first()?;
    let length = usize::from(*body.get(8)?).max(3);
    let sets = body.get(9..)?.chunks_exact(length).filter_map(|set| {
        // The graphic set is the last four octets of the descriptor.
        let graphic_set = set.last_chunk().filter(|_| length >= 7).map(|octets| u32::from_be_bytes(*octets));
        Some(CharacterSet { store: *set.first()?, flags: *set.get(1)?, local: *set.get(2)?, graphic_set })
    });
    Some(QueryReply::CharacterSets { has_graphic_escape: flags & 0x80 != 0, sets: sets.collect() })
}
