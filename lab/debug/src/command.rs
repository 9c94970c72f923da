//! Commands as they are typed.

use inhost_base::Duration;
use inhost_sim::Tamper;

use crate::words::{parse_bytes, parse_time};

/// Most steps of one command.
pub const MOST_STEPS: u32 = 100_000;
/// Most bytes that one command writes or reads.
pub const MOST_BYTES: u64 = 64 << 20;

/// One of the two hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It calls.
    Client,
    /// It is called.
    Server,
}

impl End {
    /// Both, the client first.
    pub const BOTH: [End; 2] = [End::Client, End::Server];

    /// Its name.
    pub const fn text(self) -> &'static str {
        match self {
            End::Client => "client",
            End::Server => "server",
        }
    }
    /// Its number in the network.
    pub const fn number(self) -> usize {
        self as usize
    }
    /// The other one.
    pub const fn other(self) -> End {
        match self {
            End::Client => End::Server,
            End::Server => End::Client,
        }
    }
}

/// What `next` waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// A connection enters another state.
    State,
    /// A frame arrives.
    Frame,
    /// A timer expires.
    Timer,
    /// Data is sent again.
    Retransmission,
    /// Data is thought lost.
    Loss,
    /// Loss recovery changes its state.
    Recovery,
    /// Data waits to be read.
    Data,
    /// The peer's window changes.
    Window,
    /// A host drops what it received.
    Drop,
}

impl Until {
    const ALL: &[(&str, Until)] = &[
        ("state", Until::State),
        ("frame", Until::Frame),
        ("timer", Until::Timer),
        ("retransmission", Until::Retransmission),
        ("loss", Until::Loss),
        ("recovery", Until::Recovery),
        ("data", Until::Data),
        ("window", Until::Window),
        ("drop", Until::Drop),
    ];
    /// Its name.
    pub fn text(self) -> &'static str {
        Until::ALL.iter().find(|(_, until)| *until == self).map_or("", |(name, _)| name)
    }
}

/// How much is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// So many bytes.
    Bytes(u64),
    /// Whatever comes, until the stream ends.
    All,
}

/// A command.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// An empty line or a comment.
    Nothing,
    /// So many steps.
    Step(u32),
    /// Steps until something happens.
    Next(Until),
    /// Steps until nothing more happens, or for a time.
    Run(Option<Duration>),
    /// Something is done to a frame on its way: its number there, from 1.
    Tamper(Tamper, usize),
    /// The client calls the server.
    Connect,
    /// An application writes bytes.
    Send(End, u64),
    /// An application reads.
    Read(End, Amount),
    /// An application has nothing more to send.
    Close(End),
    /// An application aborts the connection.
    Reset(End),
    /// The whole state.
    Show(Option<End>),
    /// Timers that run.
    Timers,
    /// Queues and frames on their way.
    Queues,
    /// What the tasks wait for.
    Tasks,
    /// The latest frames.
    Trace(usize),
    /// The settings; or one is changed.
    Set(Option<End>, Option<(String, String)>),
    /// So many steps back.
    Undo(u32),
    /// From the beginning.
    Restart,
    /// The session is written as a script.
    Save(String),
    /// The commands, or one.
    Help(Option<String>),
    /// The end.
    Quit,
}

/// A command as help has it.
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// What stands behind it.
    pub takes: &'static str,
    /// What it does.
    pub what: &'static str,
    /// Examples with what they do.
    pub examples: &'static [(&'static str, &'static str)],
}

/// Frames of `trace` without a number.
const TRACED: usize = 20;

/// The commands, in the order of help.
pub const COMMANDS: &[Known] = &[
    Known {
        name: "connect",
        takes: "",
        what: "the client calls the server",
        examples: &[("connect", "the SYN leaves; step lets it arrive")],
    },
    Known {
        name: "send",
        takes: "BYTES",
        what: "an application writes: the client's, or server send",
        examples: &[("send 3000", "the client writes 3000 bytes"), ("server send 64K", "the server writes")],
    },
    Known {
        name: "read",
        takes: "BYTES | all",
        what: "an application reads: the server's, or client read",
        examples: &[
            ("read 1000", "the server reads 1000 bytes, and waits for what is not there"),
            ("read all", "the server reads whatever comes from now on"),
            ("client read 10", "the client reads"),
        ],
    },
    Known {
        name: "close",
        takes: "",
        what: "an application has nothing more to send: the client's, or server close",
        examples: &[("close", "the client's FIN"), ("server close", "the server's")],
    },
    Known {
        name: "reset",
        takes: "",
        what: "an application aborts the connection: the client's, or server reset",
        examples: &[("server reset", "the client gets a RST")],
    },
    Known {
        name: "step",
        takes: "[COUNT]",
        what: "the next frame or timer; s for short",
        examples: &[("step", "one"), ("s 5", "five")],
    },
    Known {
        name: "next",
        takes: "[EVENT]",
        what: "step until something happens; n for short",
        examples: &[
            ("next", "until a connection enters another state"),
            ("next retransmission", "or: state, frame, timer, loss, recovery, data, window, drop"),
        ],
    },
    Known {
        name: "run",
        takes: "[TIME]",
        what: "step until nothing more happens; r for short",
        examples: &[("run", "to the end, TIME-WAIT with it"), ("run 500ms", "for so long")],
    },
    Known {
        name: "drop",
        takes: "[FRAME]",
        what: "lose the frame that arrives next, or another on its way",
        examples: &[("drop", "the next one"), ("drop 3", "the third in the list of queues")],
    },
    Known {
        name: "duplicate",
        takes: "[FRAME]",
        what: "let it arrive twice",
        examples: &[("duplicate", "the next one")],
    },
    Known {
        name: "delay",
        takes: "TIME [FRAME]",
        what: "let it arrive later; others may overtake it",
        examples: &[("delay 50ms", "the next one"), ("delay 1s 2", "the second")],
    },
    Known {
        name: "reorder",
        takes: "[FRAME]",
        what: "let the next of its direction overtake it",
        examples: &[("reorder", "the next one arrives behind the one that follows it")],
    },
    Known {
        name: "corrupt",
        takes: "[FRAME]",
        what: "change some bits of it, which its checksum tells",
        examples: &[("corrupt", "the next one")],
    },
    Known {
        name: "show",
        takes: "",
        what: "the whole state of both ends, or client show",
        examples: &[("show", "both"), ("server show", "one")],
    },
    Known {
        name: "timers",
        takes: "",
        what: "the timers that run",
        examples: &[("timers", "of both hosts")],
    },
    Known {
        name: "queues",
        takes: "",
        what: "what waits where, and the frames on their way",
        examples: &[("queues", "with the numbers by which drop and others name frames")],
    },
    Known {
        name: "tasks",
        takes: "",
        what: "what the applications wait for",
        examples: &[("tasks", "of both hosts")],
    },
    Known {
        name: "trace",
        takes: "[COUNT]",
        what: "the latest frames",
        examples: &[("trace", "the latest twenty"), ("trace 100", "more of them")],
    },
    Known {
        name: "set",
        takes: "[NAME VALUE]",
        what: "the settings, or change one, of both or one end",
        examples: &[
            ("set", "all of them"),
            ("set delay 50ms", "of the link, both ways"),
            ("client set congestion newreno", "of connections that the client opens from now on"),
            ("server set window 8K", "what the server offers"),
        ],
    },
    Known {
        name: "undo",
        takes: "[COUNT]",
        what: "take steps back; u for short",
        examples: &[("undo", "the session is played again with a step less"), ("undo 5", "five steps less")],
    },
    Known {
        name: "restart",
        takes: "",
        what: "begin again",
        examples: &[("restart", "with no setting changed")],
    },
    Known {
        name: "save",
        takes: "FILE",
        what: "write the session as a script",
        examples: &[("save loss.debug", "inhost debug loss.debug plays it again")],
    },
    Known {
        name: "help",
        takes: "[COMMAND]",
        what: "this, or examples of a command",
        examples: &[("help set", "with every setting")],
    },
    Known { name: "quit", takes: "", what: "leave", examples: &[("quit", "so does the end of input")] },
];

/// Those before which an end may stand.
const OF_AN_END: &[&str] = &["send", "read", "close", "reset", "show", "set"];

/// Short names.
const SHORT: &[(&str, &str)] = &[
    ("s", "step"),
    ("n", "next"),
    ("r", "run"),
    ("u", "undo"),
    ("q", "quit"),
    ("exit", "quit"),
    ("?", "help"),
];

/// Reads a command.
///
/// # Errors
/// A sentence that says what is wrong and what to try.
pub fn parse(line: &str) -> Result<Command, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(Command::Nothing);
    }
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let end = End::BOTH.into_iter().find(|end| end.text() == words[0]);
    if let Some(end) = end {
        words.remove(0);
        if words.is_empty() {
            return Err(format!("{0} what? try: {0} show, {0} send 1000", end.text()));
        }
    }
    let name = full_name(words[0])?;
    let parsed = of_words(name, end, &words[1..])?;
    if end.is_some() && !OF_AN_END.contains(&name) {
        return Err(format!("{name} is not of one end; try: {name}"));
    }
    Ok(parsed)
}

/// Whether a line lets the hosts go on: one that a prompt repeats when nothing is typed.
pub fn goes_on(line: &str) -> bool {
    matches!(parse(line), Ok(Command::Step(_) | Command::Next(_) | Command::Run(_)))
}

/// The name of a command of which the beginning, or a short name, was typed.
fn full_name(typed: &str) -> Result<&'static str, String> {
    if let Some((_, name)) = SHORT.iter().find(|(short, _)| *short == typed) {
        return Ok(name);
    }
    let begun: Vec<&'static str> =
        COMMANDS.iter().map(|known| known.name).filter(|name| name.starts_with(typed)).collect();
    match begun.as_slice() {
        _ if begun.contains(&typed) => Ok(begun.into_iter().find(|name| *name == typed).unwrap_or_default()),
        [name] => Ok(name),
        [] => Err(format!("{typed:?} is not a command; help lists them")),
        several => Err(format!("{typed:?} may be {}", several.join(" or "))),
    }
}

fn of_words(name: &'static str, end: Option<End>, words: &[&str]) -> Result<Command, String> {
    let usage = || {
        let known = COMMANDS.iter().find(|known| known.name == name);
        let example = known.and_then(|known| known.examples.first()).map_or(name, |(example, _)| example);
        let takes = known.map_or("", |known| known.takes);
        format!("usage: {name} {takes}; try: {example}")
    };
    let count = |words: &[&str], otherwise: u32| match words {
        [] => Ok(otherwise),
        [text] => match text.parse() {
            Ok(count) if (1..=MOST_STEPS).contains(&count) => Ok(count),
            _ => Err(format!("{text:?} is not a number from 1 to {MOST_STEPS}; try: {name} 3")),
        },
        _ => Err(usage()),
    };
    let time = |text: &str| {
        parse_time(text).ok_or_else(|| {
            format!("{text:?} is not a time in us, ms, s, min, h or d of at most a week; try: {name} 50ms")
        })
    };
    let bytes = |text: &str| {
        let most = |&bytes: &u64| (1..=MOST_BYTES).contains(&bytes);
        parse_bytes(text).filter(most).ok_or_else(|| {
            format!("{text:?} is not a number of bytes up to 64M; try: {name} 3000 or {name} 64K")
        })
    };
    let tamper = |how: Tamper| Ok(Command::Tamper(how, count(words, 1)? as usize));
    let alone = |command: Command| if words.is_empty() { Ok(command) } else { Err(usage()) };
    match (name, words) {
        ("step", _) => Ok(Command::Step(count(words, 1)?)),
        ("next", []) => Ok(Command::Next(Until::State)),
        ("next", [what]) => until(what),
        ("run", []) => Ok(Command::Run(None)),
        ("run", [text]) => Ok(Command::Run(Some(time(text)?))),
        ("drop", _) => tamper(Tamper::Drop),
        ("duplicate", _) => tamper(Tamper::Duplicate),
        ("reorder", _) => tamper(Tamper::Reorder),
        ("corrupt", _) => tamper(Tamper::Corrupt),
        ("delay", [text, rest @ ..]) => {
            Ok(Command::Tamper(Tamper::Delay(time(text)?), count(rest, 1)? as usize))
        }
        ("connect", _) => alone(Command::Connect),
        ("send", [text]) => Ok(Command::Send(end.unwrap_or(End::Client), bytes(text)?)),
        ("read", ["all"]) => Ok(Command::Read(end.unwrap_or(End::Server), Amount::All)),
        ("read", [text]) => Ok(Command::Read(end.unwrap_or(End::Server), Amount::Bytes(bytes(text)?))),
        ("close", _) => alone(Command::Close(end.unwrap_or(End::Client))),
        ("reset", _) => alone(Command::Reset(end.unwrap_or(End::Client))),
        ("show", _) => alone(Command::Show(end)),
        ("timers", _) => alone(Command::Timers),
        ("queues", _) => alone(Command::Queues),
        ("tasks", _) => alone(Command::Tasks),
        ("trace", []) => Ok(Command::Trace(TRACED)),
        ("trace", _) => Ok(Command::Trace(count(words, 1)? as usize)),
        ("set", []) => Ok(Command::Set(end, None)),
        ("set", [name, value]) => Ok(Command::Set(end, Some(((*name).to_owned(), (*value).to_owned())))),
        ("undo", _) => Ok(Command::Undo(count(words, 1)?)),
        ("restart", _) => alone(Command::Restart),
        ("save", [file]) => Ok(Command::Save((*file).to_owned())),
        ("help", []) => Ok(Command::Help(None)),
        ("help", [about]) => Ok(Command::Help(Some(full_name(about)?.to_owned()))),
        ("quit", _) => alone(Command::Quit),
        _ => Err(usage()),
    }
}

fn until(what: &str) -> Result<Command, String> {
    let begun: Vec<_> = Until::ALL.iter().filter(|(name, _)| name.starts_with(what)).collect();
    match begun.as_slice() {
        [(_, until)] => Ok(Command::Next(*until)),
        _ => {
            let all: Vec<&str> = Until::ALL.iter().map(|(name, _)| *name).collect();
            Err(format!("next takes one of {}; {what:?} is none of them", all.join(", ")))
        }
    }
}

/// What may stand where a word is begun: the words of a line, of which the last is completed.
pub fn completions(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let (begun, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (*last, before));
    let (is_of_end, before) = match before {
        [end, rest @ ..] if End::BOTH.iter().any(|known| known.text() == *end) => (true, rest),
        other => (false, other),
    };
    let candidates: Vec<&str> = match before {
        [] if is_of_end => OF_AN_END.to_vec(),
        [] => COMMANDS.iter().map(|known| known.name).chain(End::BOTH.map(End::text)).collect(),
        ["help" | "?"] => COMMANDS.iter().map(|known| known.name).collect(),
        ["next" | "n"] => Until::ALL.iter().map(|(name, _)| *name).collect(),
        ["read"] => vec!["all"],
        ["set"] => crate::settings::names().collect(),
        ["set", name] => crate::settings::values(name).collect(),
        _ => Vec::new(),
    };
    candidates.into_iter().filter(|candidate| candidate.starts_with(begun)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        let of = |line: &str| parse(line).unwrap();
        assert_eq!((of(""), of("  # a remark")), (Command::Nothing, Command::Nothing));
        assert_eq!(
            (of("s"), of("step 5"), of("ste")),
            (Command::Step(1), Command::Step(5), Command::Step(1))
        );
        assert_eq!(
            (of("n"), of("next retr")),
            (Command::Next(Until::State), Command::Next(Until::Retransmission))
        );
        assert_eq!(of("run 1.5s"), Command::Run(Some(Duration::from_millis(1500))));
        assert_eq!(of("delay 50ms 2"), Command::Tamper(Tamper::Delay(Duration::from_millis(50)), 2));
        assert_eq!(of("drop"), Command::Tamper(Tamper::Drop, 1));
        assert_eq!(
            (of("send 64K"), of("server send 1")),
            (Command::Send(End::Client, 65_536), Command::Send(End::Server, 1))
        );
        assert_eq!(
            (of("read all"), of("client read 9")),
            (Command::Read(End::Server, Amount::All), Command::Read(End::Client, Amount::Bytes(9)))
        );
        assert_eq!(
            (of("close"), of("server reset")),
            (Command::Close(End::Client), Command::Reset(End::Server))
        );
        assert_eq!(
            of("server set window 8K"),
            Command::Set(Some(End::Server), Some(("window".into(), "8K".into())))
        );
        assert_eq!(of("help sh"), Command::Help(Some("show".into())));
    }

    #[test]
    fn errors_say_what_to_try() {
        for (line, says) in [
            ("fly", "help lists them"),
            ("re", "read or reset or reorder or restart"),
            ("step x", "try: step 3"),
            ("step 0", "from 1"),
            ("send", "try: send 3000"),
            ("send 65M", "up to 64M"),
            ("delay", "try: delay 50ms"),
            ("delay 50", "try: delay 50ms"),
            ("next monday", "retransmission"),
            ("client", "client show"),
            ("server step", "not of one end"),
            ("set window", "try: set"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(says), "{line}: {error}");
        }
    }

    #[test]
    fn every_example_is_taken_and_every_command_is_completed() {
        for known in COMMANDS {
            for (example, _) in known.examples {
                assert!(parse(example).is_ok(), "{example}");
            }
            assert!(completions(&known.name[..2]).contains(&known.name.to_owned()));
        }
        assert_eq!(completions("server se"), ["send", "set"]);
        assert_eq!(completions("set conge"), ["congestion"]);
        assert_eq!(completions("client set congestion n"), ["newreno"]);
        assert_eq!(completions("next retr"), ["retransmission"]);
        assert!(completions("connect now ").is_empty());
    }
}
