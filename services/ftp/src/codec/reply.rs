//! Replies: three digits and text, over one line or several (RFC 959 §4.2).

use std::fmt;

use super::lines::LINE_BYTES;
use inhost_common::storage::{name_octets, name_text};

/// Lines of one reply that are kept; of the rest only the last counts.
pub const REPLY_LINES: usize = 4096;
/// Octets of one reply that are kept.
const REPLY_BYTES: usize = 256 * 1024;
/// Lines of one reply. With more it is taken for one without an end.
pub const ENDLESS_LINES: usize = 64 * 1024;
/// Octets of one reply. With more it is taken for one without an end.
pub const ENDLESS_BYTES: usize = 8 << 20;

/// One reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// 100 to 599, and 6yz of RFC 2228.
    pub code: u16,
    /// Its text, line by line, without the codes of the first and last.
    pub lines: Vec<String>,
}

impl Reply {
    /// The first digit: 1 preliminary, 2 done, 3 more is wanted, 4 not now, 5 not at all.
    pub fn class(&self) -> u16 {
        self.code / 100
    }
    /// The text of the first line.
    pub fn text(&self) -> &str {
        self.lines.first().map_or("", String::as_str)
    }
    /// The text of the last line.
    pub fn last(&self) -> &str {
        self.lines.last().map_or("", String::as_str)
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.last())
    }
}

/// Malformed reply of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReplyError {
    /// A line that should begin with a code, and does not.
    NoCode(String),
    /// A line longer than any that FTP has.
    TooLong,
    /// More lines or octets than any reply has, and no last line.
    Endless,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplyError::NoCode(line) => write!(f, "this is not an FTP server, it says {line:?}"),
            ReplyError::TooLong => f.write_str("a reply has a line without an end"),
            ReplyError::Endless => f.write_str("a reply has no last line"),
        }
    }
}
impl std::error::Error for ReplyError {}

/// Appends a reply to `output`. In all but its last line it has the code with a hyphen in its first, and a space before
/// the others' text, so that no text can look like the end.
pub fn write_reply(output: &mut Vec<u8>, code: u16, lines: &[impl AsRef<str>]) {
    let last = lines.len().saturating_sub(1);
    for (index, line) in lines.iter().enumerate() {
        let line = line.as_ref();
        let head = match index {
            _ if index == last => format!("{code} "),
            0 => format!("{code}-"),
            _ if line.starts_with(' ') => String::new(),
            _ => " ".to_owned(),
        };
        output.extend_from_slice(head.as_bytes());
        // Control characters, those of a file's name among them, end no line here.
        let shown = |&octet: &u8| if octet < 0x20 || octet == 0x7f { b'?' } else { octet };
        output.extend(name_octets(line).iter().map(shown));
        output.extend_from_slice(b"\r\n");
    }
}

/// Makes replies of lines.
#[derive(Debug, Default)]
pub struct ReplyReader {
    line: Vec<u8>,
    begun: Option<Reply>,
    /// Octets that are kept of it.
    bytes: usize,
    /// Lines and octets of it that came.
    received: (usize, usize),
}

impl ReplyReader {
    /// Takes octets off `input` up to the end of the next reply.
    pub fn receive(&mut self, input: &mut &[u8]) -> Option<Result<Reply, ReplyError>> {
        while let [octet, rest @ ..] = *input {
            *input = rest;
            match octet {
                b'\n' => {
                    let line = core::mem::take(&mut self.line);
                    let line = line.strip_suffix(b"\r").unwrap_or(&line);
                    let line = name_text(line);
                    if let Some(done) = self.line(line) {
                        return Some(done);
                    }
                }
                _ if self.line.len() > 2 * LINE_BYTES => return Some(Err(ReplyError::TooLong)),
                octet => self.line.push(*octet),
            }
        }
        None
    }
    /// Whether a reply has begun and not ended.
    pub fn is_midway(&self) -> bool {
        self.begun.is_some() || !self.line.is_empty()
    }

    fn line(&mut self, line: String) -> Option<Result<Reply, ReplyError>> {
        let code = code(&line);
        let Some(reply) = &mut self.begun else {
            let Some((code, more)) = code else { return Some(Err(ReplyError::NoCode(line))) };
            let reply = Reply { code, lines: vec![line.get(4..).unwrap_or_default().to_owned()] };
            if !more {
                return Some(Ok(reply));
            }
            (self.bytes, self.received) = (0, (1, line.len()));
            self.begun = Some(reply);
            return None;
        };
        self.received = (self.received.0 + 1, self.received.1 + line.len());
        if self.received.0 > ENDLESS_LINES || self.received.1 > ENDLESS_BYTES {
            self.begun = None;
            return Some(Err(ReplyError::Endless));
        }
        let is_last = code == Some((reply.code, false));
        let again = code == Some((reply.code, true));
        let text = if is_last || again { line.get(4..).unwrap_or_default().to_owned() } else { line };
        if is_last || (reply.lines.len() < REPLY_LINES && self.bytes + text.len() <= REPLY_BYTES) {
            self.bytes += text.len();
            reply.lines.push(text);
        }
        if is_last { self.begun.take().map(Ok) } else { None }
    }
}

/// The code that a line begins with, and whether a hyphen says that more lines follow.
fn code(line: &str) -> Option<(u16, bool)> {
    let bytes = line.as_bytes();
    let digits = bytes.get(..3)?;
    if !digits.iter().all(u8::is_ascii_digit) || !(b'1'..=b'6').contains(&digits[0]) {
        return None;
    }
    let code = digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
    match bytes.get(3) {
        None | Some(b' ') => Some((code, false)),
        Some(b'-') => Some((code, true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Result<Reply, ReplyError>> {
        let mut reader = ReplyReader::default();
        text.as_bytes()
            .chunks(3)
            .flat_map(|mut piece| {
                let mut found = Vec::new();
                while let Some(reply) = reader.receive(&mut piece) {
                    found.push(reply);
                }
                found
            })
            .collect()
    }

    #[test]
    fn replies_of_one_line_and_of_several() {
        // The example of RFC 959 §4.2, in which a line begins with digits.
        let replies = read(
            "123-First line\r\nSecond line\r\n  234 A line beginning with numbers\r\n123 The last line\r\n220\r\n",
        );
        let first = replies[0].as_ref().unwrap();
        assert_eq!((first.code, first.lines.len(), first.last()), (123, 4, "The last line"));
        assert_eq!(replies[1].as_ref().unwrap().code, 220);
        assert_eq!(read("SSH-2.0-x\r\n"), [Err(ReplyError::NoCode("SSH-2.0-x".into()))]);
        assert_eq!(read(&"1".repeat(20_000)).first(), Some(&Err(ReplyError::TooLong)));
    }

    #[test]
    fn a_reply_without_a_last_line_is_an_error() {
        let long = format!("{}\r\n", "x".repeat(4000));
        for line in ["220-\r\n", "a line\r\n", &long] {
            let mut reader = ReplyReader::default();
            let mut lines = 1;
            assert_eq!(reader.receive(&mut &b"220-Welcome\r\n"[..]), None);
            let error = loop {
                if let Some(error) = reader.receive(&mut line.as_bytes()) {
                    break error;
                }
                lines += 1;
                assert!(lines <= ENDLESS_LINES, "{line:?}");
            };
            assert_eq!(error, Err(ReplyError::Endless));
            assert!(lines == ENDLESS_LINES || lines > ENDLESS_BYTES / long.len(), "{lines}");
        }
    }

    #[test]
    fn no_text_can_end_a_reply() {
        let mut output = Vec::new();
        write_reply(&mut output, 211, &["Status:", "211 evil\r\n550 x", " fine", "End"]);
        assert_eq!(output, b"211-Status:\r\n 211 evil??550 x\r\n fine\r\n211 End\r\n");
        let replies = read(&String::from_utf8(output).unwrap());
        assert_eq!(replies.len(), 1);
        assert_eq!(replies[0].as_ref().unwrap().lines.len(), 4);
    }
}
