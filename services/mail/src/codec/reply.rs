//! Replies, written and read (RFC 5321 §4.2, RFC 2034).

use std::borrow::Cow;
use std::fmt;

use inhost_common::Cleaner;
use serde::{Deserialize, Serialize};

/// Longest line of a reply that is read. RFC 5321 §4.5.3.1.5 has 512.
pub const REPLY_LINE_BYTES: usize = 2048;
/// Most lines of a reply that is read.
pub const REPLY_LINES: usize = 128;

/// A reply: a code, an enhanced code and text.
///
/// ```
/// use inhost_mail::codec::Reply;
/// let reply = Reply::new(452, "4.2.2", "Mailbox full");
/// assert_eq!(reply.to_string(), "452 4.2.2 Mailbox full");
/// assert!(reply.is_transient());
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reply {
    /// The code, 200 to 559.
    pub code: u16,
    /// The enhanced code, `5.1.1`, or nothing.
    pub enhanced: Cow<'static, str>,
    /// The text; lines are divided by newlines.
    pub text: Cow<'static, str>,
}

impl Reply {
    /// A reply.
    pub fn new(
        code: u16,
        enhanced: impl Into<Cow<'static, str>>,
        text: impl Into<Cow<'static, str>>,
    ) -> Reply {
        Reply { code, enhanced: enhanced.into(), text: text.into() }
    }
    /// Whether it says that a later attempt may succeed.
    pub fn is_transient(&self) -> bool {
        (400..500).contains(&self.code)
    }
    /// Whether it says that no attempt will succeed.
    pub fn is_permanent(&self) -> bool {
        (500..600).contains(&self.code)
    }
    /// Whether what was asked was done.
    pub fn is_positive(&self) -> bool {
        (200..300).contains(&self.code)
    }
    /// Writes it behind `output`. Control characters of the text become spaces.
    pub fn encode(&self, output: &mut Vec<u8>) {
        let last = self.text.split('\n').count() - 1;
        for (at, line) in self.text.split('\n').enumerate() {
            output.extend_from_slice(self.code.to_string().as_bytes());
            output.push(if at == last { b' ' } else { b'-' });
            if !self.enhanced.is_empty() {
                output.extend_from_slice(self.enhanced.as_bytes());
                output.push(b' ');
            }
            output.extend(line.bytes().map(|octet| if octet < b' ' || octet == 127 { b' ' } else { octet }));
            output.extend_from_slice(b"\r\n");
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        for part in [&self.enhanced, &self.text] {
            if !part.is_empty() {
                write!(f, " {}", part.replace('\n', " / "))?;
            }
        }
        Ok(())
    }
}

/// Why octets are not a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReplyError {
    /// A line or the reply is too long.
    TooLong,
    /// A line does not begin with a code, or with another one than the line before.
    NotAReply,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReplyError::TooLong => "its reply is too long",
            ReplyError::NotAReply => "what it says is not a reply of SMTP",
        })
    }
}
impl std::error::Error for ReplyError {}

/// Makes replies of octets.
#[derive(Debug, Default)]
pub struct ReplyReader {
    line: Vec<u8>,
    lines: Vec<String>,
    code: Option<u16>,
}

impl ReplyReader {
    /// Takes octets off `input` up to the end of the next reply. Its text is cleaned.
    pub fn receive(&mut self, input: &mut &[u8]) -> Result<Option<Reply>, ReplyError> {
        while let Some(end) = memchr::memchr(b'\n', input) {
            let (line, rest) = input.split_at(end + 1);
            *input = rest;
            self.push(line)?;
            let line = core::mem::take(&mut self.line);
            if let Some(reply) = self.line(line.trim_ascii_end())? {
                return Ok(Some(reply));
            }
        }
        self.push(core::mem::take(input))?;
        Ok(None)
    }
    /// Whether a reply has begun and not ended.
    pub fn is_midway(&self) -> bool {
        !self.line.is_empty() || self.code.is_some()
    }
    fn push(&mut self, octets: &[u8]) -> Result<(), ReplyError> {
        if self.line.len() + octets.len() > REPLY_LINE_BYTES {
            return Err(ReplyError::TooLong);
        }
        self.line.extend_from_slice(octets);
        Ok(())
    }
    fn line(&mut self, line: &[u8]) -> Result<Option<Reply>, ReplyError> {
        let code = match line.get(..3) {
            Some(&[a @ b'2'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9']) => {
                u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0')
            }
            _ => return Err(ReplyError::NotAReply),
        };
        if self.code.is_some_and(|begun| begun != code) {
            return Err(ReplyError::NotAReply);
        }
        if self.lines.len() >= REPLY_LINES {
            return Err(ReplyError::TooLong);
        }
        self.lines.push(Cleaner::line(line.get(4..).unwrap_or_default()));
        match line.get(3) {
            Some(b'-') => {
                self.code = Some(code);
                Ok(None)
            }
            Some(b' ') | None => {
                self.code = None;
                Ok(Some(reply(code, core::mem::take(&mut self.lines))))
            }
            Some(_) => Err(ReplyError::NotAReply),
        }
    }
}

/// Divides the enhanced code, which each line of a reply repeats, from the text.
fn reply(code: u16, lines: Vec<String>) -> Reply {
    let class = char::from_digit(u32::from(code / 100), 10).unwrap_or('5');
    let enhanced = lines.first().and_then(|line| line.split(' ').next()).filter(|word| {
        let mut parts = word.split('.');
        let is_class = parts.next().is_some_and(|part| part.len() == 1 && part.starts_with(class));
        let is_number =
            |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        is_class && word.split('.').count() == 3 && parts.all(is_number)
    });
    let Some(enhanced) = enhanced.map(str::to_owned) else {
        return Reply::new(code, "", lines.join("\n"));
    };
    let bare = |line: &String| {
        line.strip_prefix(&*enhanced).map_or(line.as_str(), |rest| rest.trim_start()).to_owned()
    };
    let text = lines.iter().map(bare).collect::<Vec<_>>().join("\n");
    Reply::new(code, enhanced, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Reply>, ReplyError> {
        // By one octet and all at once: the same.
        let (mut whole, mut pieces) = (ReplyReader::default(), ReplyReader::default());
        let (mut replies, mut input) = (Vec::new(), text.as_bytes());
        while let Some(reply) = whole.receive(&mut input)? {
            replies.push(reply);
        }
        let mut again = Vec::new();
        for octet in text.as_bytes().chunks(1) {
            again.extend(pieces.receive(&mut &*octet)?);
        }
        assert_eq!(replies, again);
        Ok(replies)
    }

    /// spec: RFC5321 §4.2, RFC2034 §4
    #[test]
    fn replies_of_one_line_and_of_many() {
        let replies = read("220 ready\r\n250-one\r\n250 two\r\n550 5.1.1 no\x1b such\r\n250\r\n").unwrap();
        assert_eq!(replies[1], Reply::new(250, "", "one\ntwo"));
        assert_eq!(replies[2], Reply::new(550, "5.1.1", "no\u{fffd} such"));
        assert_eq!(replies[3], Reply::new(250, "", ""));
        assert_eq!(read("550-5.7.1 a\r\n550 5.7.1 b\r\n").unwrap()[0].text, "a\nb");
        assert_eq!(read("550 4.7.1 a\r\n").unwrap()[0].enhanced, "", "the classes differ");
        for wrong in ["hello\r\n", "250-a\r\n251 b\r\n", "99 x\r\n", "250x\r\n", "\r\n"] {
            assert_eq!(read(wrong), Err(ReplyError::NotAReply), "{wrong}");
        }
        assert_eq!(read(&"250-x\r\n".repeat(REPLY_LINES + 1)), Err(ReplyError::TooLong));
        assert_eq!(read(&format!("250 {}", "x".repeat(REPLY_LINE_BYTES))), Err(ReplyError::TooLong));
    }

    #[test]
    fn what_is_written_is_read() {
        let mut octets = Vec::new();
        let reply = Reply::new(550, "5.7.1", "one\ntwo\r\x07");
        reply.encode(&mut octets);
        assert_eq!(octets, b"550-5.7.1 one\r\n550 5.7.1 two  \r\n");
    }
}
