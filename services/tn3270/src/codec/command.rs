//! Commands and the write control character.

use core::ops::BitOr;

/// A command of the host (GA23-0059, "Commands"). Each has two octets, that of local channels and that of SNA.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Command {
    /// Write.
    Write,
    /// Erase/Write: erases the screen, and makes it the default size.
    EraseWrite,
    /// Erase/Write Alternate: erases the screen, and makes it the alternate size.
    EraseWriteAlternate,
    /// Erase All Unprotected.
    EraseAllUnprotected,
    /// Read Buffer.
    ReadBuffer,
    /// Read Modified.
    ReadModified,
    /// Read Modified All.
    ReadModifiedAll,
    /// Write Structured Field.
    WriteStructuredField,
    /// No operation.
    NoOperation,
}

impl Command {
    /// The command of `octet`, in either form.
    pub fn from_octet(octet: u8) -> Option<Command> {
        Some(match octet {
            0x01 | 0xf1 => Command::Write,
            0x05 | 0xf5 => Command::EraseWrite,
            0x0d | 0x7e => Command::EraseWriteAlternate,
            0x0f | 0x6f => Command::EraseAllUnprotected,
            0x02 | 0xf2 => Command::ReadBuffer,
            0x06 | 0xf6 => Command::ReadModified,
            0x0e | 0x6e => Command::ReadModifiedAll,
            0x11 | 0xf3 => Command::WriteStructuredField,
            0x03 => Command::NoOperation,
            _ => return None,
        })
    }
    /// The octet that a Telnet server sends: SNA's.
    pub fn octet(self) -> u8 {
        match self {
            Command::Write => 0xf1,
            Command::EraseWrite => 0xf5,
            Command::EraseWriteAlternate => 0x7e,
            Command::EraseAllUnprotected => 0x6f,
            Command::ReadBuffer => 0xf2,
            Command::ReadModified => 0xf6,
            Command::ReadModifiedAll => 0x6e,
            Command::WriteStructuredField => 0xf3,
            Command::NoOperation => 0x03,
        }
    }
}

/// The write control character (WCC), which follows a write command.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct WriteControl(u8);

impl WriteControl {
    /// Nothing.
    pub const NONE: WriteControl = WriteControl(0);
    /// The reply mode goes back to field mode.
    pub const RESET: WriteControl = WriteControl(0x40);
    /// A printer prints the buffer.
    pub const START_PRINT: WriteControl = WriteControl(0x08);
    /// The alarm sounds.
    pub const ALARM: WriteControl = WriteControl(0x04);
    /// The keyboard is unlocked, and the AID reset.
    pub const RESTORE_KEYBOARD: WriteControl = WriteControl(0x02);
    /// All modified data tags are reset.
    pub const RESET_MODIFIED: WriteControl = WriteControl(0x01);

    /// From an octet; its first bit does not count.
    pub fn from_octet(octet: u8) -> WriteControl {
        WriteControl(octet & 0x7f)
    }
    /// As a graphic octet.
    pub fn octet(self) -> u8 {
        // Each graphic octet has the reset bit set.
        match self.contains(WriteControl::RESET) {
            true => super::address::six_bit(self.0 & 0x3f) | 0x40,
            false => self.0,
        }
    }
    /// Whether it says all that `other` says.
    pub fn contains(self, other: WriteControl) -> bool {
        self.0 & other.0 == other.0
    }
    /// How a printer breaks lines: at 0 where NL and EM say so, else after 40, 64 or 80 characters.
    pub fn line_columns(self) -> usize {
        match self.0 & 0x30 {
            0x00 => 0,
            0x10 => 40,
            0x20 => 64,
            _ => 80,
        }
    }
}

impl BitOr for WriteControl {
    type Output = WriteControl;
    fn bitor(self, other: WriteControl) -> WriteControl {
        WriteControl(self.0 | other.0)
    }
}
