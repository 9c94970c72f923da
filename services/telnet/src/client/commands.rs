//! The command level's language. Any unambiguous beginning of a word will do.

use core::fmt;
use core::num::NonZeroU8;

use super::settings::{KeyName, Mode, Toggle, Transmit};
use crate::codec::Command;

/// A command line, understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Nothing: back to the session.
    Nothing,
    /// Connect.
    Open {
        /// A name or an address.
        host: String,
        /// A port; Telnet's own if none is given.
        port: u16,
    },
    /// Close the session.
    Close,
    /// Close all and leave.
    Quit,
    /// Stop the client; the shell it was started from goes on.
    Suspend,
    /// Show the session's options and its connection.
    Status,
    /// Show the settings.
    Display,
    /// Show what there is.
    Help,
    /// Character or line mode.
    Mode(Mode),
    /// Send these to the server.
    Send(Vec<Sending>),
    /// Another key.
    SetKey(KeyName, Option<u8>),
    /// When data goes out.
    SetTransmit(Transmit),
    /// Tab stops.
    SetTabs(Option<NonZeroU8>),
    /// Turn a switch; `None` is "the other way".
    Switch(Toggle, Option<bool>),
    /// Keep a typescript in this file; `None` ends it.
    Log(Option<String>),
    /// List the sessions.
    Sessions,
    /// Go to the session of this number, counted from 1; `None` is the next one.
    Session(Option<usize>),
}

/// Something that `send` sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sending {
    /// A command.
    Command(Command),
    /// A Synch.
    Synch,
    /// The escape key itself.
    Escape,
    /// A question for the server's view of the options.
    Status,
    /// A TIMING-MARK.
    TimingMark,
}

/// Why a line was not understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandError(pub String);

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Text of `help`.
pub const HELP: &str = "\
open HOST [PORT]      connect; a further open makes a further session
close                 close this session
sessions              list the sessions
session [NUMBER]      go to a session, or to the next
mode character|line   who echoes and edits: the server, or this end
send WHAT ...         ayt brk ip ao ec el ga nop dm eor eof susp abort synch escape status timing
set NAME VALUE        escape interrupt quit flushoutput erase kill eof (^X or off),
                      transmit character|return, tabs NUMBER|off
toggle NAME           crlf binary options autoflush autosynch localchars linemode charset
display               all settings
status                options, mode and statistics of the connection
log FILE | log off    keep a typescript
z                     suspend
quit                  close all and leave
An empty line goes back to the session; the escape key twice sends it.";

const WORDS: [&str; 16] = [
    "open", "close", "quit", "exit", "z", "suspend", "status", "display", "help", "mode", "send", "set",
    "unset", "toggle", "log", "session",
];
const KEYS: [(&str, KeyName); 7] = [
    ("escape", KeyName::Escape),
    ("interrupt", KeyName::Interrupt),
    ("quit", KeyName::Quit),
    ("flushoutput", KeyName::FlushOutput),
    ("erase", KeyName::Erase),
    ("kill", KeyName::Kill),
    ("eof", KeyName::EndOfFile),
];
const TOGGLES: [(&str, Toggle); 8] = [
    ("crlf", Toggle::ReturnIsCrLf),
    ("binary", Toggle::Binary),
    ("options", Toggle::Options),
    ("autoflush", Toggle::AutoFlush),
    ("autosynch", Toggle::AutoSynch),
    ("localchars", Toggle::LocalCharacters),
    ("linemode", Toggle::LineMode),
    ("charset", Toggle::Charset),
];

/// The word for a switch.
pub fn toggle_name(toggle: Toggle) -> &'static str {
    TOGGLES.iter().find(|(_, known)| *known == toggle).map_or("binary", |(name, _)| name)
}

/// The word for a key.
pub fn key_name(key: KeyName) -> &'static str {
    KEYS.iter().find(|(_, known)| *known == key).map_or("key", |(name, _)| name)
}

/// Understands a line.
pub fn parse(line: &str) -> Result<Order, CommandError> {
    let mut words = line.split_whitespace();
    let Some(first) = words.next() else { return Ok(Order::Nothing) };
    let rest: Vec<&str> = words.collect();
    if first == "?" {
        return Ok(Order::Help);
    }
    if first.eq_ignore_ascii_case("sessions") {
        return Ok(Order::Sessions);
    }
    let choices: Vec<(&str, &str)> = WORDS.iter().map(|&word| (word, word)).collect();
    let order = match choose("command", first, &choices)? {
        "open" => open(&rest)?,
        "close" => Order::Close,
        "quit" | "exit" => Order::Quit,
        "z" | "suspend" => Order::Suspend,
        "status" => Order::Status,
        "display" => Order::Display,
        "mode" => {
            let modes = [("character", Mode::Character), ("line", Mode::Line)];
            Order::Mode(choose("mode", argument(&rest, 0, "a mode: character or line")?, &modes)?)
        }
        "send" => send(&rest)?,
        "set" => set(&rest)?,
        "unset" => unset(&rest)?,
        "toggle" => {
            let name = argument(&rest, 0, "a switch; help lists them")?;
            Order::Switch(choose("switch", name, &TOGGLES)?, None)
        }
        "log" => match argument(&rest, 0, "a file, or off")? {
            "off" => Order::Log(None),
            file => Order::Log(Some(file.to_owned())),
        },
        "session" => match rest.first() {
            None => Order::Session(None),
            Some(number) => Order::Session(Some(
                number.parse().ok().filter(|&number| number > 0).ok_or_else(|| bad("session", number))?,
            )),
        },
        _ => Order::Help,
    };
    Ok(order)
}

fn open(rest: &[&str]) -> Result<Order, CommandError> {
    let host = argument(rest, 0, "a host")?;
    let port = match rest.get(1) {
        None => 23,
        Some(port) => port.parse().ok().filter(|&port: &u16| port > 0).ok_or_else(|| bad("port", port))?,
    };
    Ok(Order::Open { host: host.to_owned(), port })
}

fn send(rest: &[&str]) -> Result<Order, CommandError> {
    argument(rest, 0, "what to send; help lists it")?;
    let mut choices: Vec<(&str, Sending)> =
        Command::ALL.into_iter().map(|command| (command.name(), Sending::Command(command))).collect();
    choices.extend([
        ("break", Sending::Command(Command::Break)),
        ("synch", Sending::Synch),
        ("escape", Sending::Escape),
        ("status", Sending::Status),
        ("timing", Sending::TimingMark),
    ]);
    let sendings = rest.iter().map(|word| choose("thing to send", word, &choices));
    Ok(Order::Send(sendings.collect::<Result<_, _>>()?))
}

fn set(rest: &[&str]) -> Result<Order, CommandError> {
    let name = argument(rest, 0, "what to set; help lists it")?;
    if let Ok(toggle) = choose("switch", name, &TOGGLES) {
        let on = match rest.get(1) {
            None => true,
            Some(value) => choose("value", value, &[("on", true), ("off", false)])?,
        };
        return Ok(Order::Switch(toggle, Some(on)));
    }
    let value = argument(rest, 1, "a value");
    match name {
        "transmit" => {
            let choices = [("character", Transmit::Character), ("return", Transmit::Return)];
            Ok(Order::SetTransmit(choose("value", value?, &choices)?))
        }
        "tabs" => match value? {
            "off" => Ok(Order::SetTabs(None)),
            number => {
                number.parse().map(|every| Order::SetTabs(Some(every))).map_err(|_| bad("number", number))
            }
        },
        _ => Ok(Order::SetKey(choose("setting", name, &KEYS)?, key(value?)?)),
    }
}

fn unset(rest: &[&str]) -> Result<Order, CommandError> {
    let name = argument(rest, 0, "what to switch off")?;
    match choose("switch", name, &TOGGLES) {
        Ok(toggle) => Ok(Order::Switch(toggle, Some(false))),
        Err(_) if name == "tabs" => Ok(Order::SetTabs(None)),
        Err(_) => Ok(Order::SetKey(choose("setting", name, &KEYS)?, None)),
    }
}

/// `^X`, `^?`, `off`, or a single character.
fn key(text: &str) -> Result<Option<u8>, CommandError> {
    match text.as_bytes() {
        b"off" => Ok(None),
        b"^?" => Ok(Some(0x7f)),
        [b'^', key @ b'@'..=b'_'] => Ok(Some(key & 0x1f)),
        [b'^', key @ b'a'..=b'z'] => Ok(Some(key & 0x1f)),
        &[key] => Ok(Some(key)),
        _ => Err(bad("key", text)),
    }
}

fn argument<'a>(rest: &[&'a str], index: usize, what: &str) -> Result<&'a str, CommandError> {
    rest.get(index).copied().ok_or_else(|| CommandError(format!("this needs {what}")))
}

fn bad(what: &str, word: &str) -> CommandError {
    CommandError(format!("{word:?} is no {what}; help lists what there is"))
}

/// The choice that `word` is, or begins alone.
fn choose<T: Copy + PartialEq>(what: &str, word: &str, choices: &[(&str, T)]) -> Result<T, CommandError> {
    let word = word.to_ascii_lowercase();
    if let Some((_, value)) = choices.iter().find(|(name, _)| *name == word) {
        return Ok(*value);
    }
    let mut found = choices.iter().filter(|(name, _)| name.starts_with(&*word));
    let Some((_, first)) = found.next() else { return Err(bad(what, &word)) };
    match found.find(|(_, other)| other != first) {
        Some(_) => Err(CommandError(format!("{word:?} begins more than one {what}"))),
        None => Ok(*first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood() {
        let open = Order::Open { host: "mit".into(), port: 23 };
        assert_eq!(parse("  o mit "), Ok(open));
        assert_eq!(parse("open ::1 2323"), Ok(Order::Open { host: "::1".into(), port: 2323 }));
        assert_eq!(parse(""), Ok(Order::Nothing));
        assert_eq!(parse("?"), Ok(Order::Help));
        assert_eq!(parse("sessions"), Ok(Order::Sessions));
        assert_eq!(parse("session 2"), Ok(Order::Session(Some(2))));
        assert_eq!(parse("mode c"), Ok(Order::Mode(Mode::Character)));
        let both = vec![Sending::Command(Command::InterruptProcess), Sending::Synch];
        assert_eq!(parse("send ip synch"), Ok(Order::Send(both)));
        assert_eq!(parse("send br"), Ok(Order::Send(vec![Sending::Command(Command::Break)])));
        assert_eq!(parse("set esc ^a"), Ok(Order::SetKey(KeyName::Escape, Some(1))));
        assert_eq!(parse("set escape off"), Ok(Order::SetKey(KeyName::Escape, None)));
        assert_eq!(parse("set transmit r"), Ok(Order::SetTransmit(Transmit::Return)));
        assert_eq!(parse("set tabs 8"), Ok(Order::SetTabs(NonZeroU8::new(8))));
        assert_eq!(parse("toggle bin"), Ok(Order::Switch(Toggle::Binary, None)));
        assert_eq!(parse("unset crlf"), Ok(Order::Switch(Toggle::ReturnIsCrLf, Some(false))));
        assert_eq!(parse("log off"), Ok(Order::Log(None)));
    }

    #[test]
    fn and_refused() {
        for line in
            ["frob", "s", "open", "open h 0", "open h 70000", "send", "send x", "set", "set tabs 0", "mode x"]
        {
            assert!(parse(line).is_err(), "{line}");
        }
        assert!(parse("toggle auto").unwrap_err().to_string().contains("more than one"));
    }
}
