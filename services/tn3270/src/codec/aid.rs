//! Attention identifiers: which key made the terminal send.

/// An attention identifier (GA23-0059, "Attention Identification").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Aid {
    /// No key: the host polled.
    None,
    /// The answer to a read of a partition.
    QueryReply,
    /// Enter.
    Enter,
    /// Program function key, 1 to 24.
    Pf(u8),
    /// Program attention key, 1 to 3.
    Pa(u8),
    /// Clear.
    Clear,
    /// Clear Partition.
    ClearPartition,
    /// SysReq, which is Test Request on a local terminal.
    SysReq,
    /// The light pen, or Cursor Select, on an attention field.
    Select,
    /// A structured field follows.
    StructuredField,
}

/// The octets of PF1 to PF24.
const PF: [u8; 24] = [
    0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0x7a, 0x7b, 0x7c, //
    0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0x4a, 0x4b, 0x4c,
];

impl Aid {
    /// The AID of `octet`.
    pub fn from_octet(octet: u8) -> Option<Aid> {
        Some(match octet {
            0x60 => Aid::None,
            0x61 => Aid::QueryReply,
            0x7d => Aid::Enter,
            0x6c => Aid::Pa(1),
            0x6e => Aid::Pa(2),
            0x6b => Aid::Pa(3),
            0x6d => Aid::Clear,
            0x6a => Aid::ClearPartition,
            0xf0 => Aid::SysReq,
            0x7e => Aid::Select,
            0x88 => Aid::StructuredField,
            _ => {
                let index = PF.iter().position(|&pf| pf == octet)?;
                Aid::Pf(u8::try_from(index + 1).ok()?)
            }
        })
    }
    /// Its octet. A key that does not exist has that of [`Aid::None`].
    pub fn octet(self) -> u8 {
        match self {
            Aid::None => 0x60,
            Aid::QueryReply => 0x61,
            Aid::Enter => 0x7d,
            Aid::Pf(number) => {
                PF.get(usize::from(number).wrapping_sub(1)).copied().unwrap_or(Aid::None.octet())
            }
            Aid::Pa(1) => 0x6c,
            Aid::Pa(2) => 0x6e,
            Aid::Pa(3) => 0x6b,
            Aid::Pa(_) => 0x60,
            Aid::Clear => 0x6d,
            Aid::ClearPartition => 0x6a,
            Aid::SysReq => 0xf0,
            Aid::Select => 0x7e,
            Aid::StructuredField => 0x88,
        }
    }
    /// Whether Read Modified sends the AID alone: neither cursor nor fields.
    pub fn is_short_read(self) -> bool {
        matches!(self, Aid::Pa(_) | Aid::Clear)
    }
}
