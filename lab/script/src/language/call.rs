//! What the application does, and what is asked about a connection.

use super::words::{Words, Wrong, duration, expected, integer};
use super::{Assertion, CallKind, Expect, Failure, Must, SocketCall};

/// The socket that calls are about when none is named.
pub(super) const MAIN: &str = "main";
/// The socket that accepts when none is named.
const LISTENER: &str = "listener";

/// The datagram socket when none is named.
const DATAGRAMS: &str = "datagrams";

/// The socket that makes a call, and the name of the one that comes of it, where nothing is said.
pub(super) fn usual_names(what: &CallKind) -> (&'static str, Option<&'static str>) {
    match what {
        CallKind::Accept => (LISTENER, Some(MAIN)),
        CallKind::Listen { .. } => (LISTENER, None),
        CallKind::Datagrams { .. } | CallKind::Send { .. } | CallKind::Receive { .. } => (DATAGRAMS, None),
        _ => (MAIN, None),
    }
}

const CALLS: &str = "socket, datagrams, connect, listen, accept, write, read, send, receive, shutdown, close, abort, set \
                     or error after `call`";

/// The words after `call`.
pub(super) fn call(words: &mut Words<'_>) -> Result<SocketCall, Wrong> {
    let verb = words.word(CALLS)?;
    let what = kind(verb, words)?;
    let (on, names) = usual_names(&what);
    let names = names.map(str::to_owned);
    let expect = match what {
        CallKind::Read { bytes } | CallKind::Receive { bytes } => Expect::Bytes(bytes),
        _ => Expect::Done,
    };
    let mut call = SocketCall { what, on: on.to_owned(), names, expect };
    loop {
        match words.next() {
            None => return Ok(call),
            Some("on") => call.on = words.word("a socket's name")?.to_owned(),
            Some("as") => call.names = Some(words.word("a name for the new socket")?.to_owned()),
            Some("expect") => call.expect = expectation(words)?,
            Some(other) => return expected("`on`, `as`, `expect` or the end of the line", Some(other)),
        }
    }
}

fn kind(verb: &str, words: &mut Words<'_>) -> Result<CallKind, Wrong> {
    Ok(match verb {
        "socket" => {
            let port = if words.take("port") { Some(words.number("a port")?) } else { None };
            CallKind::Socket { port }
        }
        "datagrams" => {
            let word = words.word("`port`")?;
            if word != "port" {
                return expected("`port`", Some(word));
            }
            CallKind::Datagrams { port: words.number("a port")? }
        }
        "send" => {
            let bytes = words.number("a number of bytes")?;
            let to = if words.take("to") { Some(words.number("a peer's number")?) } else { None };
            CallKind::Send { bytes, to }
        }
        "receive" => CallKind::Receive { bytes: words.number("a number of bytes")? },
        "connect" => {
            let peer = if words.take("peer") { words.number("a peer's number")? } else { 1 };
            let data = if words.take("data") { Some(words.number("a number of bytes")?) } else { None };
            CallKind::Connect { peer, data }
        }
        "listen" => {
            let backlog = if words.take("backlog") { Some(words.number("a backlog")?) } else { None };
            CallKind::Listen { backlog }
        }
        "accept" => CallKind::Accept,
        "write" => {
            let bytes = words.number("a number of bytes")?;
            let (mut urgent, mut more) = (false, false);
            while words.peek().is_some_and(|word| matches!(word, "urgent" | "more")) {
                urgent |= words.take("urgent");
                more |= words.take("more");
            }
            CallKind::Write { bytes, urgent, more }
        }
        "read" => CallKind::Read { bytes: words.number("a number of bytes")? },
        "shutdown" => CallKind::Shutdown,
        "close" => CallKind::Close,
        "abort" => CallKind::Abort,
        "error" => CallKind::Error,
        "set" => CallKind::Set {
            option: words.word("an option's name")?.to_owned(),
            value: words.word("the option's value")?.to_owned(),
        },
        other => return expected(CALLS, Some(other)),
    })
}

fn expectation(words: &mut Words<'_>) -> Result<Expect, Wrong> {
    const WHAT: &str = "a number of bytes, ok, any, end, would-block, refused, reset, timed-out, unreachable, closed, \
                        not-connected, in-use, invalid, not-supported, too-long or no-destination";
    let word = words.word(WHAT)?;
    if let Some(bytes) = integer(word).and_then(|n| usize::try_from(n).ok()) {
        return match words.take("of") {
            true => Ok(Expect::Cut(bytes, words.number("how many bytes the datagram has")?)),
            false => Ok(Expect::Bytes(bytes)),
        };
    }
    Ok(match word {
        "ok" => Expect::Done,
        "any" => Expect::Any,
        "end" => Expect::End,
        _ => Expect::Fails(Failure::named(word).map_or_else(|| expected(WHAT, Some(word)), Ok)?),
    })
}

impl Failure {
    const NAMES: [(&'static str, Failure); 12] = [
        ("would-block", Failure::WouldBlock),
        ("refused", Failure::Refused),
        ("reset", Failure::Reset),
        ("timed-out", Failure::TimedOut),
        ("unreachable", Failure::Unreachable),
        ("closed", Failure::Closed),
        ("not-connected", Failure::NotConnected),
        ("in-use", Failure::InUse),
        ("invalid", Failure::Invalid),
        ("not-supported", Failure::NotSupported),
        ("too-long", Failure::TooLong),
        ("no-destination", Failure::NoDestination),
    ];
    fn named(word: &str) -> Option<Failure> {
        Failure::NAMES.iter().find(|(name, _)| *name == word).map(|&(_, failure)| failure)
    }
    /// As it is written in scripts.
    pub fn text(self) -> &'static str {
        Failure::NAMES.iter().find(|(_, failure)| *failure == self).map_or("?", |(name, _)| name)
    }
}

/// The words after `assert`.
pub(super) fn assertion(words: &mut Words<'_>) -> Result<Assertion, Wrong> {
    const WHAT: &str = "info.NAME or ready.NAME";
    let word = words.word(WHAT)?;
    let (ready, field) = match word.split_once('.') {
        Some(("info", field)) if !field.is_empty() => (false, field),
        Some(("ready", field)) if !field.is_empty() => (true, field),
        _ => return expected(WHAT, Some(word)),
    };
    const OPERATORS: &str = "one of == != < <= > >= in";
    let operator = words.word(OPERATORS)?;
    let value = words.word("a value")?;
    let must = match (operator, number(value)) {
        ("in", _) => {
            let bounds = value.split_once("..").and_then(|(a, b)| Some((number(a)?, number(b)?)));
            let (least, most) = bounds.map_or_else(|| expected("a range such as 10..20", Some(value)), Ok)?;
            Must::Between(least, most)
        }
        ("==", None) => Must::Word(value.to_owned()),
        ("!=", None) => Must::NotWord(value.to_owned()),
        ("==", Some(n)) => Must::Between(n, n),
        ("!=", Some(n)) => Must::Not(n),
        ("<", Some(n)) => Must::Between(f64::MIN, n.next_down()),
        ("<=", Some(n)) => Must::Between(f64::MIN, n),
        (">", Some(n)) => Must::Between(n.next_up(), f64::MAX),
        (">=", Some(n)) => Must::Between(n, f64::MAX),
        ("<" | "<=" | ">" | ">=", None) => return expected("a number", Some(value)),
        _ => return expected(OPERATORS, Some(operator)),
    };
    let on = if words.take("on") { words.word("a socket's name")? } else { MAIN };
    words.end("an assertion")?;
    Ok(Assertion { on: on.to_owned(), ready, field: field.to_owned(), must })
}

/// A number, or a time in nanoseconds.
fn number(word: &str) -> Option<f64> {
    match duration(word) {
        Some(duration) => Some(duration.as_nanos() as f64),
        None => word.replace('_', "").parse().ok(),
    }
}
