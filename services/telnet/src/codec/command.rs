//! The octets of RFC 854, and the commands among them that stand alone.

/// "Interpret as command": the octet before every command; doubled, it is data 255.
pub const IAC: u8 = 255;
/// Asks the peer to stop performing an option, or to go on not performing it.
pub const DONT: u8 = 254;
/// Asks the peer to perform an option.
pub const DO: u8 = 253;
/// Refuses to perform an option, or says that it stops.
pub const WONT: u8 = 252;
/// Offers to perform an option, or says that it does.
pub const WILL: u8 = 251;
/// Opens a subnegotiation.
pub const SB: u8 = 250;
/// Closes a subnegotiation.
pub const SE: u8 = 240;

pub(crate) const CR: u8 = 13;
pub(crate) const LF: u8 = 10;
pub(crate) const NUL: u8 = 0;

/// A command that stands alone: RFC 854, RFC 885 (end of record) and the three of RFC 1184, which
/// clients also send outside its line mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Command {
    /// EOF: the end-of-file character.
    EndOfFile = 236,
    /// SUSP: suspend the process.
    Suspend = 237,
    /// ABORT: end the process harder than IP does.
    Abort = 238,
    /// EOR: the end of a record.
    EndOfRecord = 239,
    /// NOP.
    NoOperation = 241,
    /// DM: where a Synch ends.
    DataMark = 242,
    /// BRK: the break key.
    Break = 243,
    /// IP: interrupt the process.
    InterruptProcess = 244,
    /// AO: discard the output, let the process run.
    AbortOutput = 245,
    /// AYT: show that you are there.
    AreYouThere = 246,
    /// EC: erase the last character.
    EraseCharacter = 247,
    /// EL: erase the line.
    EraseLine = 248,
    /// GA: it is your turn.
    GoAhead = 249,
}

impl Command {
    /// Every command, in the order of its octet.
    pub const ALL: [Command; 13] = [
        Command::EndOfFile,
        Command::Suspend,
        Command::Abort,
        Command::EndOfRecord,
        Command::NoOperation,
        Command::DataMark,
        Command::Break,
        Command::InterruptProcess,
        Command::AbortOutput,
        Command::AreYouThere,
        Command::EraseCharacter,
        Command::EraseLine,
        Command::GoAhead,
    ];

    /// The command that `octet` stands for after IAC.
    pub fn from_octet(octet: u8) -> Option<Command> {
        Command::ALL.into_iter().find(|command| command.octet() == octet)
    }
    /// The octet that follows IAC.
    pub fn octet(self) -> u8 {
        self as u8
    }
    /// The RFC's short name, in lower case, as `send` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Command::EndOfFile => "eof",
            Command::Suspend => "susp",
            Command::Abort => "abort",
            Command::EndOfRecord => "eor",
            Command::NoOperation => "nop",
            Command::DataMark => "dm",
            Command::Break => "brk",
            Command::InterruptProcess => "ip",
            Command::AbortOutput => "ao",
            Command::AreYouThere => "ayt",
            Command::EraseCharacter => "ec",
            Command::EraseLine => "el",
            Command::GoAhead => "ga",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_go_both_ways() {
        for command in Command::ALL {
            assert_eq!(Command::from_octet(command.octet()), Some(command));
        }
        for octet in [0, 235, SE, SB, WILL, WONT, DO, DONT, IAC] {
            assert_eq!(Command::from_octet(octet), None);
        }
    }
}
