//! Errors of a 3270 data stream.

use core::fmt;

/// What is wrong with a record. The side that finds it answers with a negative response where TN3270E has responses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DataError {
    /// The record is empty where a command or an AID has to be.
    Empty,
    /// The first octet is not a command that this terminal has.
    Command(u8),
    /// The record ends inside of an order or of a structured field.
    Truncated,
    /// A buffer address beyond the end of the screen.
    Address(u16),
    /// A structured field whose length is shorter than its head.
    FieldLength(u16),
    /// A structured field, or a value in one, that this terminal does not have.
    Field(u8),
    /// A partition that does not exist; only partition 0 does.
    Partition(u8),
    /// One record writes more than a screen can be asked to.
    Work,
}

impl DataError {
    /// Whether the command itself is refused, rather than that its execution failed (RFC 2355 §10.4.2).
    pub fn is_command_reject(self) -> bool {
        !matches!(self, DataError::Truncated | DataError::Address(_) | DataError::Work)
    }
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataError::Empty => f.write_str("the record is empty"),
            DataError::Command(octet) => write!(f, "X'{octet:02X}' is not a command"),
            DataError::Truncated => f.write_str("the record ends too early"),
            DataError::Address(address) => write!(f, "the address {address} is beyond the screen"),
            DataError::FieldLength(length) => write!(f, "a structured field of {length} octets is too short"),
            DataError::Field(octet) => write!(f, "the structured field X'{octet:02X}' is not supported"),
            DataError::Work => f.write_str("the record writes the screen over and over"),
            DataError::Partition(number) => write!(f, "there is no partition X'{number:02X}'"),
        }
    }
}
impl core::error::Error for DataError {}
