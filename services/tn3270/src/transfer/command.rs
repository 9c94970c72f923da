//! The command that starts a transfer.

use core::fmt;

/// Which way a file goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From the terminal to the host: PUT.
    Upload,
    /// From the host to the terminal: GET.
    Download,
}

/// The form of the command: options of VM and CICS follow a parenthesis, those of TSO do not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum HostKind {
    /// MVS with TSO. Names that are whole are in quotes.
    #[default]
    Tso,
    /// VM with CMS.
    Vm,
    /// CICS.
    Cics,
}

/// `IND$FILE GET name ASCII CRLF`.
///
/// ```
/// use inhost_tn3270::transfer::{Direction, TransferCommand};
/// let command: TransferCommand = "IND$FILE put notes.txt (ascii crlf append".parse().unwrap();
/// assert_eq!((command.direction, &*command.name), (Direction::Upload, "notes.txt"));
/// assert!(command.is_text && command.has_line_ends && command.is_append);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TransferCommand {
    /// Which way.
    pub direction: Direction,
    /// The host's file.
    pub name: String,
    /// ASCII: text is translated.
    pub is_text: bool,
    /// CRLF: lines end in CR LF on the wire.
    pub has_line_ends: bool,
    /// APPEND: behind what the file has.
    pub is_append: bool,
}

/// Why a command cannot be understood.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum CommandError {
    /// It does not begin with IND$FILE.
    NotTransfer,
    /// Neither GET nor PUT follows.
    Direction,
    /// No file is named.
    Name,
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CommandError::NotTransfer => "the command is not IND$FILE",
            CommandError::Direction => "IND$FILE takes GET or PUT",
            CommandError::Name => "IND$FILE takes the name of a file",
        })
    }
}
impl core::error::Error for CommandError {}

impl TransferCommand {
    /// A transfer of text, with its line ends.
    pub fn text(direction: Direction, name: impl Into<String>) -> TransferCommand {
        TransferCommand { direction, name: name.into(), is_text: true, has_line_ends: true, is_append: false }
    }
    /// A transfer of octets as they are.
    pub fn binary(direction: Direction, name: impl Into<String>) -> TransferCommand {
        TransferCommand { is_text: false, has_line_ends: false, ..TransferCommand::text(direction, name) }
    }
    /// The command as it is typed for a kind of host.
    pub fn typed(&self, host: HostKind) -> String {
        let verb = if self.direction == Direction::Upload { "PUT" } else { "GET" };
        let options: Vec<&str> =
            [(self.is_text, "ASCII"), (self.has_line_ends, "CRLF"), (self.is_append, "APPEND")]
                .into_iter()
                .filter_map(|(is_set, word)| is_set.then_some(word))
                .collect();
        let separator = match (host, options.is_empty()) {
            (_, true) => "",
            (HostKind::Tso, _) => " ",
            _ => " (",
        };
        format!("IND$FILE {verb} {}{separator}{}", self.name, options.join(" "))
    }
}

impl core::str::FromStr for TransferCommand {
    type Err = CommandError;
    /// Reads a command of any kind of host. Words of options that are not known are passed over, as are record formats and
    /// lengths. A name may be in quotes; the words of one of CMS are joined by dots.
    fn from_str(text: &str) -> Result<TransferCommand, CommandError> {
        let (before, options) = text.split_once('(').unwrap_or((text, ""));
        let mut words = before.split_whitespace();
        let is_command = words.next().is_some_and(|word| word.eq_ignore_ascii_case("IND$FILE"));
        if !is_command {
            return Err(CommandError::NotTransfer);
        }
        let direction = match words.next().map(str::to_ascii_uppercase).as_deref() {
            Some("GET" | "RECEIVE") => Direction::Download,
            Some("PUT" | "SEND") => Direction::Upload,
            _ => return Err(CommandError::Direction),
        };
        let is_option = |word: &str| {
            let upper = word.to_ascii_uppercase();
            ["ASCII", "CRLF", "APPEND", "BINARY", "NOCRLF"].contains(&&*upper)
                || ["RECFM", "LRECL", "BLKSIZE", "SPACE"].iter().any(|head| upper.starts_with(head))
        };
        let rest: Vec<&str> = words.collect();
        // The first word is the name, even if it is that of an option.
        let names = 1 + rest.iter().skip(1).position(|word| is_option(word)).unwrap_or(rest.len());
        let (name, more) = rest.split_at(names.min(rest.len()));
        let name = name.join(".").trim_matches('\'').to_owned();
        if name.is_empty() {
            return Err(CommandError::Name);
        }
        let has = |option: &str| {
            let mut all = more.iter().copied().chain(options.split([' ', ')', ',']));
            all.any(|word| word.eq_ignore_ascii_case(option))
        };
        Ok(TransferCommand {
            direction,
            name,
            is_text: has("ASCII"),
            has_line_ends: has("CRLF"),
            is_append: has("APPEND"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_go_both_ways() {
        for host in [HostKind::Tso, HostKind::Vm, HostKind::Cics] {
            let mut append = TransferCommand::text(Direction::Upload, "a.b");
            append.is_append = true;
            for command in [append, TransferCommand::binary(Direction::Download, "x")] {
                assert_eq!(command.typed(host).parse(), Ok(command));
            }
        }
        let parsed = |text: &str| text.parse::<TransferCommand>();
        assert_eq!(parsed("ind$file get profile exec a (ascii").unwrap().name, "profile.exec.a");
        assert_eq!(parsed("IND$FILE PUT 'USER.DATA' ASCII LRECL(80)").unwrap().name, "USER.DATA");
        assert_eq!(parsed("IND$FILE PUT ASCII ASCII").unwrap().name, "ASCII");
        assert_eq!(parsed("IND$FILE GET"), Err(CommandError::Name));
        assert_eq!(parsed("IND$FILE LIST x"), Err(CommandError::Direction));
        assert_eq!(parsed("LOGON"), Err(CommandError::NotTransfer));
    }
}
