//! The formats that the r-commands share: replies of servers, and the request that begins a command.
//!
//! A reply is an octet of zero for success, or 1 (warning) or 2 (fatal) and a line of text.

use inhost_common::Cleaner;

/// The longest line that is kept; the rest of it is left out.
const LINE_BYTES: usize = 512;
/// Octets of a line beyond which it is taken for one without an end.
const ENDLESS_BYTES: usize = 64 * 1024;
/// The longest name of a user.
const USER_BYTES: usize = 255;
/// The longest command.
const COMMAND_BYTES: usize = 64 * 1024;

/// A reply of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// Success.
    Ok,
    /// Something failed, and the rest goes on. In rsh and rlogin: refused.
    Warning(String),
    /// Something failed, and nothing goes on.
    Fatal(String),
}

/// Reads one reply after another.
#[derive(Clone, Debug, Default)]
pub struct ReplyReader {
    line: Option<Line>,
}

#[derive(Clone, Debug)]
struct Line {
    fatal: bool,
    octets: Vec<u8>,
    /// Octets that were left out.
    more: usize,
}

impl Line {
    fn new(fatal: bool) -> Line {
        Line { fatal, octets: Vec::new(), more: 0 }
    }
}

impl ReplyReader {
    /// Takes octets from the front of `input`; `None` when there is no whole reply yet.
    pub fn take(&mut self, input: &mut &[u8]) -> Option<Reply> {
        while let Some((&octet, rest)) = input.split_first() {
            *input = rest;
            match (&mut self.line, octet) {
                (None, 0) => return Some(Reply::Ok),
                (None, 1) => self.line = Some(Line::new(false)),
                (None, 2) => self.line = Some(Line::new(true)),
                // A server that fails before it speaks the protocol just says so: a shell, a wrapper.
                (None, b'\n') => return Some(Reply::Fatal(String::new())),
                (None, octet) => self.line = Some(Line { octets: vec![octet], ..Line::new(true) }),
                (Some(_), b'\n') => return self.end(),
                (Some(line), octet) if line.octets.len() < LINE_BYTES => line.octets.push(octet),
                (Some(line), _) if line.more < ENDLESS_BYTES => line.more += 1,
                (Some(line), _) => {
                    let text = format!("a line without an end: {}", printable(&line.octets));
                    self.line = None;
                    return Some(Reply::Fatal(text));
                }
            }
        }
        None
    }
    /// Whether no octet of a reply has come.
    pub fn is_empty(&self) -> bool {
        self.line.is_none()
    }
    /// The reply in an unterminated line, when the stream has ended.
    pub fn end(&mut self) -> Option<Reply> {
        let Line { fatal, octets, .. } = self.line.take()?;
        let text = printable(&octets);
        Some(if fatal { Reply::Fatal(text) } else { Reply::Warning(text) })
    }
}

/// Text of a server without terminal control sequences.
pub fn printable(octets: &[u8]) -> String {
    Cleaner::line(octets.trim_ascii())
}

/// A command to be run, and the users on both hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The user's name here.
    pub local_user: String,
    /// The user's name there.
    pub remote_user: String,
    /// The command, for the user's shell there.
    pub command: String,
}

/// Why a request cannot be encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RequestError {
    /// A name or the command holds an octet of zero, which ends it there; or is empty.
    BadText,
    /// A name or the command is too long.
    TooLong,
}

impl core::fmt::Display for RequestError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            RequestError::BadText => "names and the command may neither be empty nor hold an octet of zero",
            RequestError::TooLong => "a name or the command is too long",
        })
    }
}
impl core::error::Error for RequestError {}

impl Request {
    /// The octets that follow the number of the error port.
    pub fn encode(&self) -> Result<Vec<u8>, RequestError> {
        let Request { local_user, remote_user, command } = self;
        let mut octets = Vec::new();
        for (text, limit_bytes) in
            [(local_user, USER_BYTES), (remote_user, USER_BYTES), (command, COMMAND_BYTES)]
        {
            if text.is_empty() || text.contains('\0') {
                return Err(RequestError::BadText);
            }
            if text.len() > limit_bytes {
                return Err(RequestError::TooLong);
            }
            octets.extend_from_slice(text.as_bytes());
            octets.push(0);
        }
        Ok(octets)
    }
}

/// The number of the port on which the client accepts the connection for standard error; `None` asks for no such
/// connection.
pub fn encode_error_port(port: Option<u16>) -> Vec<u8> {
    port.map_or_else(|| vec![0], |port| format!("{port}\0").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut input: &[u8]) -> Vec<Reply> {
        let mut reader = ReplyReader::default();
        let mut replies: Vec<Reply> = std::iter::from_fn(|| reader.take(&mut input)).collect();
        replies.extend(reader.end());
        replies
    }

    #[test]
    fn a_line_without_an_end_is_fatal() {
        for begins in ["\u{1}", "\u{2}", "w"] {
            let mut reader = ReplyReader::default();
            let endless = std::iter::once(begins).chain(std::iter::repeat("x")).take(2 * ENDLESS_BYTES);
            let replies: Vec<Reply> =
                endless.filter_map(|text| reader.take(&mut text.as_bytes())).take(1).collect();
            let Some(Reply::Fatal(why)) = replies.first() else { panic!("{replies:?}") };
            assert!(why.starts_with("a line without an end: "), "{why}");
        }
    }

    #[test]
    fn answers_of_all_kinds() {
        let said = all(b"\0\x01no such file\n\0\x02out of \x1bspace\nlogin incorrect\nsh: rcp");
        let text = |text: &str| text.to_owned();
        assert_eq!(
            said,
            [
                Reply::Ok,
                Reply::Warning(text("no such file")),
                Reply::Ok,
                Reply::Fatal(text("out of \u{fffd}space")),
                Reply::Fatal(text("login incorrect")),
                Reply::Fatal(text("sh: rcp")),
            ]
        );
    }

    #[test]
    fn what_turns_the_direction_of_writing_is_not_shown() {
        assert_eq!(all("\x01\u{202e}exe.a\n".as_bytes()), [Reply::Warning("\u{fffd}exe.a".to_owned())]);
        assert_eq!(all(b"\x01M\xfcller\n"), [Reply::Warning("M\u{fc}ller".to_owned())]);
    }

    #[test]
    fn a_line_without_end_is_kept_in_bounds() {
        let Reply::Warning(text) = &all(&[&[1][..], &[b'x'; 10_000]].concat())[0] else { panic!() };
        assert_eq!(text.len(), LINE_BYTES);
    }

    fn request(command: &str) -> Request {
        Request { local_user: "ada".into(), remote_user: "charles".into(), command: command.into() }
    }

    #[test]
    fn a_request_with_a_nul_is_refused() {
        assert_eq!(request("a\0b").encode(), Err(RequestError::BadText));
        assert_eq!(request("").encode(), Err(RequestError::BadText));
        assert_eq!(request(&"x".repeat(COMMAND_BYTES + 1)).encode(), Err(RequestError::TooLong));
        assert_eq!(encode_error_port(None), b"\0");
    }
}
