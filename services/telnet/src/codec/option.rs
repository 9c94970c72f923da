//! The options that are spoken here, and sets of them.

/// An option that this implementation can negotiate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum TelnetOption {
    /// 8-bit data without CR mapping, RFC 856.
    Binary = 0,
    /// The performer echoes what it receives, RFC 857.
    Echo = 1,
    /// The performer sends no GA, RFC 858.
    SuppressGoAhead = 3,
    /// The performer tells how it sees the options, RFC 859.
    Status = 5,
    /// Not a state but a mark in the stream, RFC 860.
    TimingMark = 6,
    /// The performer names its terminal, RFC 1091.
    TerminalType = 24,
    /// The performer ends records with EOR, RFC 885.
    EndOfRecord = 25,
    /// The performer tells its window's size (NAWS), RFC 1073.
    WindowSize = 31,
    /// The performer tells its line's speed, RFC 1079.
    TerminalSpeed = 32,
    /// The performer starts and stops flow control when told, RFC 1372.
    RemoteFlowControl = 33,
    /// The performer edits lines as its peer says, RFC 1184.
    LineMode = 34,
    /// The performer tells environment variables, RFC 1572.
    NewEnvironment = 39,
    /// The performer asks for a charset, RFC 2066.
    Charset = 42,
}

/// Number of options.
pub(crate) const OPTION_COUNT: usize = TelnetOption::ALL.len();

impl TelnetOption {
    /// Every option, in the order of its code.
    pub const ALL: [TelnetOption; 13] = [
        TelnetOption::Binary,
        TelnetOption::Echo,
        TelnetOption::SuppressGoAhead,
        TelnetOption::Status,
        TelnetOption::TimingMark,
        TelnetOption::TerminalType,
        TelnetOption::EndOfRecord,
        TelnetOption::WindowSize,
        TelnetOption::TerminalSpeed,
        TelnetOption::RemoteFlowControl,
        TelnetOption::LineMode,
        TelnetOption::NewEnvironment,
        TelnetOption::Charset,
    ];

    /// The option with this code, if it is spoken here.
    pub fn from_code(code: u8) -> Option<TelnetOption> {
        TelnetOption::ALL.into_iter().find(|option| option.code() == code)
    }
    /// The code that IANA gave it.
    pub fn code(self) -> u8 {
        self as u8
    }
    /// Its name in the RFCs.
    pub fn name(self) -> &'static str {
        match self {
            TelnetOption::Binary => "BINARY",
            TelnetOption::Echo => "ECHO",
            TelnetOption::SuppressGoAhead => "SUPPRESS-GO-AHEAD",
            TelnetOption::Status => "STATUS",
            TelnetOption::TimingMark => "TIMING-MARK",
            TelnetOption::TerminalType => "TERMINAL-TYPE",
            TelnetOption::EndOfRecord => "END-OF-RECORD",
            TelnetOption::WindowSize => "NAWS",
            TelnetOption::TerminalSpeed => "TERMINAL-SPEED",
            TelnetOption::RemoteFlowControl => "REMOTE-FLOW-CONTROL",
            TelnetOption::LineMode => "LINEMODE",
            TelnetOption::NewEnvironment => "NEW-ENVIRON",
            TelnetOption::Charset => "CHARSET",
        }
    }
    /// Its place in tables, below [`OPTION_COUNT`].
    pub(crate) fn index(self) -> usize {
        TelnetOption::ALL.iter().position(|&option| option == self).unwrap_or(0)
    }
}

/// Whose option: we perform it, or the peer does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// We perform it: our WILL and WONT, the peer's DO and DONT.
    Local,
    /// The peer performs it: its WILL and WONT, our DO and DONT.
    Remote,
}

/// A set of options.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OptionSet(u16);

impl OptionSet {
    /// No option.
    pub const EMPTY: OptionSet = OptionSet(0);

    /// The set of these.
    pub fn of(options: &[TelnetOption]) -> OptionSet {
        options.iter().fold(OptionSet::EMPTY, |set, &option| set.with(option))
    }
    /// This set and `option`.
    #[must_use]
    pub fn with(self, option: TelnetOption) -> OptionSet {
        OptionSet(self.0 | 1 << option.index())
    }
    /// This set but for `option`.
    #[must_use]
    pub fn without(self, option: TelnetOption) -> OptionSet {
        OptionSet(self.0 & !(1 << option.index()))
    }
    /// Whether `option` is in it.
    pub fn contains(self, option: TelnetOption) -> bool {
        self.0 & 1 << option.index() != 0
    }
    /// Its options in the order of their codes.
    pub fn iter(self) -> impl Iterator<Item = TelnetOption> {
        TelnetOption::ALL.into_iter().filter(move |&option| self.contains(option))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_sets() {
        for option in TelnetOption::ALL {
            assert_eq!(TelnetOption::from_code(option.code()), Some(option));
            assert!(!OptionSet::of(&TelnetOption::ALL).without(option).contains(option));
        }
        let set = OptionSet::of(&[TelnetOption::WindowSize, TelnetOption::Binary]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [TelnetOption::Binary, TelnetOption::WindowSize]);
    }
}
