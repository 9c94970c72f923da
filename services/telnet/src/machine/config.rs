//! Options that one end requests and accepts.

use crate::codec::charset::Charset;
use crate::codec::option::{OptionSet, TelnetOption};
use crate::codec::subnegotiation::Variable;

/// Translation of network line ends for the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineEnd {
    /// CR LF and CR NUL both become CR: the return key of a terminal, as a pty expects it.
    Return,
    /// CR LF stays, CR NUL becomes CR: the motions of a printer, as a screen expects them.
    Printer,
}

/// Configuration of one end.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Options that we perform when asked to.
    pub accept_local: OptionSet,
    /// Options that we let the peer perform when it offers to.
    pub accept_remote: OptionSet,
    /// Options that [`Telnet::start`](super::Telnet::start) offers to perform.
    pub offer: OptionSet,
    /// Options that [`Telnet::start`](super::Telnet::start) asks the peer to perform.
    pub request: OptionSet,
    /// Translation of CR LF.
    pub line_end: LineEnd,
    /// Whether to ask for the terminal's name and speed, and for the user variable LANG, once the peer
    /// agrees to tell them.
    pub ask: bool,
    /// Charsets that CHARSET may agree on, best first. With none every request is rejected.
    pub charsets: Vec<Charset>,
    /// Whether to ask for one of [`charsets`](Self::charsets) as soon as the peer lets us.
    pub asks_charset: bool,
    /// Whether a request of the peer that crosses ours is left unanswered, as a server's goes before a client's (RFC 2066).
    pub charset_precedes: bool,
    /// The names that TERMINAL-TYPE tells, best first; the last is repeated (RFC 1091). At most 8 are used.
    pub terminal_types: Vec<String>,
    /// Value of TERMINAL-SPEED: transmit and receive, in bits a second.
    pub terminal_speed: (u32, u32),
    /// Variables sent by NEW-ENVIRON on request: only those that the user exported.
    pub environment: Vec<Variable>,
}

impl Config {
    /// A server: it echoes, never sends GA, and asks what a full-screen session needs to know.
    /// spec: RFC1123 3.2.2
    pub fn server() -> Config {
        use TelnetOption::*;
        Config {
            accept_local: OptionSet::of(&[
                Binary,
                Echo,
                SuppressGoAhead,
                Status,
                TimingMark,
                EndOfRecord,
                Charset,
            ]),
            accept_remote: OptionSet::of(&[
                Binary,
                SuppressGoAhead,
                TerminalType,
                WindowSize,
                TerminalSpeed,
                RemoteFlowControl,
                LineMode,
                NewEnvironment,
                EndOfRecord,
                Charset,
            ]),
            offer: OptionSet::of(&[Echo, SuppressGoAhead, Status]),
            request: OptionSet::of(&[
                SuppressGoAhead,
                TerminalType,
                WindowSize,
                TerminalSpeed,
                RemoteFlowControl,
                NewEnvironment,
            ]),
            line_end: LineEnd::Return,
            ask: true,
            charsets: crate::codec::charset::Charset::ALL.to_vec(),
            asks_charset: true,
            charset_precedes: true,
            terminal_types: Vec::new(),
            terminal_speed: (0, 0),
            environment: Vec::new(),
        }
    }

    /// A client with a terminal of this name. On another port than 23 it should not be
    /// [started](super::Telnet::start): the server there may speak no Telnet at all.
    /// spec: RFC1123 3.2.2
    pub fn client(terminal_type: &str) -> Config {
        use TelnetOption::*;
        Config {
            accept_local: OptionSet::of(&[
                Binary,
                SuppressGoAhead,
                Status,
                TimingMark,
                TerminalType,
                EndOfRecord,
                WindowSize,
                TerminalSpeed,
                RemoteFlowControl,
                NewEnvironment,
                Charset,
            ]),
            accept_remote: OptionSet::of(&[Binary, Echo, SuppressGoAhead, Status, EndOfRecord, Charset]),
            offer: OptionSet::of(&[
                TerminalType,
                WindowSize,
                TerminalSpeed,
                RemoteFlowControl,
                NewEnvironment,
            ]),
            request: OptionSet::of(&[SuppressGoAhead, Status]),
            line_end: LineEnd::Printer,
            ask: false,
            charsets: crate::codec::charset::Charset::ALL.to_vec(),
            asks_charset: false,
            charset_precedes: false,
            terminal_types: vec![terminal_type.to_owned()],
            terminal_speed: (38_400, 38_400),
            environment: Vec::new(),
        }
    }
}
