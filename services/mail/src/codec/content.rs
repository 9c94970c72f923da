//! What a receiver has to know of a message while it comes: header size, loops, MIME containers, line ends.

use std::fmt;

/// Limits on a message's form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ContentLimits {
    /// Octets of the header. Default 256 KiB.
    pub header_bytes: usize,
    /// `Received` lines, beyond which a message is in a loop (RFC 5321 §6.3). Default 100.
    pub hops: usize,
    /// Containers of MIME, which bounds how deep they are nested. Default 1,000.
    pub containers: usize,
}

impl Default for ContentLimits {
    fn default() -> Self {
        ContentLimits { header_bytes: 256 << 10, hops: 100, containers: 1000 }
    }
}

/// Why a message is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ContentError {
    /// Its header is too long.
    Header,
    /// It has passed too many hosts.
    Loop,
    /// It has too many MIME containers.
    Containers,
    /// A line feed or carriage return alone.
    BareLineEnd,
}

impl fmt::Display for ContentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ContentError::Header => "the header is too long",
            ContentError::Loop => "too many Received lines: the message goes in a loop",
            ContentError::Containers => "too many MIME containers",
            ContentError::BareLineEnd => "a line feed or carriage return alone; lines end in CRLF",
        })
    }
}

/// Octets of a line that are looked at.
const PREFIX_BYTES: usize = 64;

/// Looks at a message in passing; it keeps the beginning of a line and nothing else.
#[derive(Clone, Debug)]
pub struct Content {
    limits: ContentLimits,
    prefix: [u8; PREFIX_BYTES],
    held: usize,
    line_is_empty: bool,
    after_return: bool,
    in_header: bool,
    header_bytes: usize,
    hops: usize,
    containers: usize,
    is_eight_bit: bool,
    error: Option<ContentError>,
}

impl Content {
    /// At the beginning of a message.
    pub fn new(limits: ContentLimits) -> Content {
        Content {
            limits,
            prefix: [0; PREFIX_BYTES],
            held: 0,
            line_is_empty: true,
            after_return: false,
            in_header: true,
            header_bytes: 0,
            hops: 0,
            containers: 0,
            is_eight_bit: false,
            error: None,
        }
    }
    /// More of it.
    pub fn take(&mut self, mut text: &[u8]) {
        self.is_eight_bit = self.is_eight_bit || !text.is_ascii();
        while !text.is_empty() && self.error.is_none() {
            let end = memchr::memchr(b'\n', text).map_or(text.len(), |at| at + 1);
            let (piece, rest) = text.split_at(end);
            text = rest;
            self.piece(piece);
        }
    }
    /// Whether it has octets above 127.
    pub fn is_eight_bit(&self) -> bool {
        self.is_eight_bit
    }
    /// Why it is to be refused.
    pub fn error(&self) -> Option<ContentError> {
        self.error
    }
    /// The message ends.
    pub fn end(&mut self) {
        if self.after_return {
            self.error = self.error.or(Some(ContentError::BareLineEnd));
        }
    }

    /// A line, or a part of one.
    fn piece(&mut self, piece: &[u8]) {
        if self.in_header {
            self.header_bytes += piece.len();
            if self.header_bytes > self.limits.header_bytes {
                return self.error = Some(ContentError::Header);
            }
        }
        let is_whole = piece.ends_with(b"\n");
        let text = piece.strip_suffix(b"\n").unwrap_or(piece);
        let returned = if text.is_empty() { self.after_return } else { text.ends_with(b"\r") };
        // A return is right at the end of the line alone.
        let inside = text.strip_suffix(b"\r").unwrap_or(text);
        let is_bare = (is_whole && !returned)
            || (self.after_return && !text.is_empty())
            || memchr::memchr(b'\r', inside).is_some();
        if is_bare {
            return self.error = Some(ContentError::BareLineEnd);
        }
        self.after_return = returned && !is_whole;
        let room = (PREFIX_BYTES - self.held).min(inside.len());
        self.prefix[self.held..self.held + room].copy_from_slice(&inside[..room]);
        self.held += room;
        self.line_is_empty = self.line_is_empty && inside.is_empty();
        if is_whole {
            self.line();
            (self.held, self.line_is_empty) = (0, true);
        }
    }

    /// The end of a line.
    fn line(&mut self) {
        let line = &self.prefix[..self.held];
        if self.in_header && begins(line, b"received:") {
            self.hops += 1;
            if self.hops > self.limits.hops {
                self.error = Some(ContentError::Loop);
            }
        }
        if begins(line, b"content-type:") {
            let kind = line["content-type:".len()..].trim_ascii_start();
            if kind.is_empty() || begins(kind, b"multipart/") || begins(kind, b"message/") {
                self.containers += 1;
                if self.containers > self.limits.containers {
                    self.error = Some(ContentError::Containers);
                }
            }
        }
        self.in_header = self.in_header && !self.line_is_empty;
    }
}

fn begins(line: &[u8], word: &[u8]) -> bool {
    line.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(text: &str) -> Option<ContentError> {
        let limits = ContentLimits { header_bytes: 200, hops: 2, containers: 2 };
        let (mut whole, mut pieces) = (Content::new(limits), Content::new(limits));
        whole.take(text.as_bytes());
        text.as_bytes().chunks(1).for_each(|octet| pieces.take(octet));
        whole.end();
        pieces.end();
        assert_eq!(whole.error(), pieces.error(), "{text:?}");
        whole.error()
    }

    #[test]
    fn what_is_refused() {
        let received = "Received: from a by b\r\n";
        assert_eq!(judge(&format!("{received}{received}\r\n{received}{received}")), None);
        assert_eq!(judge(&received.repeat(3)), Some(ContentError::Loop));
        assert_eq!(judge(&format!("X: {}\r\n", "y".repeat(300))), Some(ContentError::Header));
        assert_eq!(judge(&format!("\r\n{}\r\n", "y".repeat(300))), None);
        let multipart = "content-type:\tMultipart/mixed\r\n\r\n";
        assert_eq!(judge(&multipart.repeat(2)), None);
        assert_eq!(judge(&multipart.repeat(3)), Some(ContentError::Containers));
        assert_eq!(judge(&"Content-Type: text/plain\r\n\r\n".repeat(9)), None);
        for bare in ["a\nb\r\n", "a\rb\r\n", "\r\na\r", "a\r\r\n", "\n"] {
            assert_eq!(judge(bare), Some(ContentError::BareLineEnd), "{bare:?}");
        }
    }
}
