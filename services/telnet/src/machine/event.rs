//! Events decoded from the peer's octets.

use crate::codec::charset::Charset;
use crate::codec::command::Command;
use crate::codec::line_mode::EditMode;
use crate::codec::option::{Side, TelnetOption};
use crate::codec::subnegotiation::{FlowControl, StatusEntry, Variable};

/// Something the peer said. What the machine answers by itself (negotiation, STATUS, TERMINAL-TYPE,
/// TIMING-MARK …) is in its output already when the event comes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// A run of data, lent from the input. IAC and the octets of CR mapping have been taken out.
    Data(&'a [u8]),
    /// The same in UTF-8, where another charset is agreed on; at most three times as long as what was received.
    Text(Vec<u8>),
    /// A command. Data Mark never comes as one.
    Command(Command),
    /// A Synch has ended at its Data Mark: what was discarded is gone, data flows again.
    Synchronized,
    /// An option came into force, or went out of it.
    OptionChanged {
        /// The side that performs it.
        side: Side,
        /// Which.
        option: TelnetOption,
        /// Whether it now is in force.
        active: bool,
    },
    /// The peer refused an option that we offered or asked for, and that was not in force.
    OptionRefused {
        /// The side that would have performed it.
        side: Side,
        /// Which.
        option: TelnetOption,
    },
    /// LINEMODE: the mode that is agreed on has changed.
    EditMode(EditMode),
    /// LINEMODE: the peer changed special characters; [`special_character`](super::Telnet::special_character) has them.
    SpecialCharacters,
    /// Both ends have agreed on another charset for text in both directions, from here on.
    Charset(Charset),
    /// The peer has none of the charsets that we asked for.
    CharsetRejected,
    /// The peer answered a TIMING-MARK of ours: it has handled all that we sent before.
    TimingMark,
    /// The peer's terminal: letters, digits and `-_./+@`, at most 40.
    TerminalType(String),
    /// The peer's window, in characters; 0 is "unspecified".
    WindowSize {
        /// Its width.
        columns: u16,
        /// Its height.
        rows: u16,
    },
    /// The peer's line.
    TerminalSpeed {
        /// Bits a second that the peer sends.
        transmit: u32,
        /// Bits a second that it receives.
        receive: u32,
    },
    /// The peer sets the meaning of XOFF and XON.
    FlowControl(FlowControl),
    /// The peer's variables, unvalidated.
    Environment(Vec<Variable>),
    /// The peer's option status.
    Status(Vec<StatusEntry>),
    /// The peer went beyond a limit. The connection should be closed; nothing more comes out of the machine.
    Violation(Violation),
}

/// Fatal protocol violations of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Violation {
    /// It drew more replies than [`REPLY_BURST_BYTES`](super::REPLY_BURST_BYTES) and
    /// [`REPLY_BYTES_PER_SECOND`](super::REPLY_BYTES_PER_SECOND) allow.
    ReplyBudget,
}

impl core::fmt::Display for Violation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Violation::ReplyBudget => f.write_str("the peer negotiates without end"),
        }
    }
}

/// Counters of a Telnet connection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// Octets taken from the peer.
    pub received_bytes: u64,
    /// Of these, data that a Synch discarded.
    pub discarded_bytes: u64,
    /// Synchs that ended.
    pub synchs: u64,
    /// Commands after IAC that mean nothing here.
    pub unknown_commands: u64,
    /// Characters, in both directions, in whose place stands the substitute of the charset.
    pub substituted_characters: u64,
    /// Subnegotiations longer than the limit, broken off, or without meaning.
    pub bad_subnegotiations: u64,
}
