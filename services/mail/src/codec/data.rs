//! The text behind DATA: lines that end in CRLF, a point in front of those that begin with one, a point alone at the
//! end (RFC 5321 §4.5.2).
//!
//! A line feed or a carriage return alone is never the end of a line here, and never part of a text: servers that
//! disagree about them can be made to take a message out of the middle of another ("SMTP smuggling").

use memchr::memchr2;

/// Why decoding has stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataEnd {
    /// The text is whole.
    Whole,
    /// There is a line feed or a carriage return alone; nothing that follows can be trusted.
    BareLineEnd,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// At the beginning of a line.
    #[default]
    Start,
    /// A point began the line.
    Point,
    /// A point began the line, and a carriage return follows.
    PointReturn,
    /// Within a line.
    Text,
    /// Behind a carriage return.
    Return,
}

/// Takes the points out.
///
/// ```
/// use inhost_mail::codec::{DataDecoder, DataEnd};
/// let (mut text, mut input) = (Vec::new(), &b"..a\r\n.\r\nQUIT\r\n"[..]);
/// assert_eq!(DataDecoder::default().decode(&mut input, &mut text), Some(DataEnd::Whole));
/// assert_eq!((text.as_slice(), input), (&b".a\r\n"[..], &b"QUIT\r\n"[..]));
/// ```
#[derive(Clone, Debug, Default)]
pub struct DataDecoder {
    state: State,
}

impl DataDecoder {
    /// Takes octets off `input` to its end, or to the end of the text, and puts the text behind `output`.
    pub fn decode(&mut self, input: &mut &[u8], output: &mut Vec<u8>) -> Option<DataEnd> {
        while let [octet, rest @ ..] = *input {
            match (self.state, octet) {
                (State::Start, b'.') => self.state = State::Point,
                (State::Point, b'\r') => self.state = State::PointReturn,
                (State::PointReturn, b'\n') => {
                    *input = rest;
                    self.state = State::Start;
                    return Some(DataEnd::Whole);
                }
                (State::Return, b'\n') => {
                    output.extend_from_slice(b"\r\n");
                    self.state = State::Start;
                }
                (State::Return | State::PointReturn, _) | (_, b'\n') => return Some(DataEnd::BareLineEnd),
                (_, b'\r') => self.state = State::Return,
                _ => {
                    let end = memchr2(b'\r', b'\n', input).unwrap_or(input.len());
                    output.extend_from_slice(&input[..end]);
                    *input = &input[end..];
                    self.state = State::Text;
                    continue;
                }
            }
            *input = rest;
        }
        None
    }
}

/// Puts the points in.
#[derive(Clone, Debug, Default)]
pub struct DataEncoder {
    state: State,
}

impl DataEncoder {
    /// Puts `text` behind `output`. Its lines end in CRLF.
    pub fn encode(&mut self, mut text: &[u8], output: &mut Vec<u8>) {
        while let Some(&first) = text.first() {
            if self.state == State::Start && first == b'.' {
                output.push(b'.');
            }
            let end = memchr::memchr(b'\n', text).map_or(text.len(), |at| at + 1);
            output.extend_from_slice(&text[..end]);
            self.state = match text[..end] {
                [.., b'\n'] => State::Start,
                [.., b'\r'] => State::Return,
                _ => State::Text,
            };
            text = &text[end..];
        }
    }
    /// The end of the text.
    pub fn end(&mut self, output: &mut Vec<u8>) {
        let end: &[u8] = match self.state {
            State::Start => b".\r\n",
            State::Return => b"\n.\r\n",
            _ => b"\r\n.\r\n",
        };
        output.extend_from_slice(end);
        self.state = State::Start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes all at once and octet by octet.
    fn decode(text: &[u8]) -> (Vec<u8>, Option<DataEnd>) {
        let (mut whole, mut rest) = (Vec::new(), text);
        let end = DataDecoder::default().decode(&mut rest, &mut whole);
        let (mut pieces, mut decoder, mut piecewise) = (Vec::new(), DataDecoder::default(), None);
        for octet in text.chunks(1) {
            piecewise = decoder.decode(&mut &*octet, &mut pieces);
            if piecewise.is_some() {
                break;
            }
        }
        assert_eq!((&whole, end), (&pieces, piecewise));
        (whole, end)
    }

    /// spec: RFC5321 §4.5.2
    #[test]
    fn what_was_encoded_is_decoded() {
        for text in [&b""[..], b".\r\n", b"..\r\n.a\r\n", b"a\r\n\r\n.\r\nb\r\n", b"MAIL FROM:<a>\r\n"] {
            for cut in 0..=text.len() {
                let (mut encoder, mut carried) = (DataEncoder::default(), Vec::new());
                encoder.encode(&text[..cut], &mut carried);
                encoder.encode(&text[cut..], &mut carried);
                encoder.end(&mut carried);
                assert_eq!(decode(&carried), (text.to_vec(), Some(DataEnd::Whole)));
            }
        }
        let mut carried = Vec::new();
        let mut encoder = DataEncoder::default();
        encoder.encode(b"no end", &mut carried);
        encoder.end(&mut carried);
        assert_eq!(decode(&carried).0, b"no end\r\n");
    }

    #[test]
    fn smuggled_ends_are_found() {
        for end in ["\n.\n", "\n.\r\n", "\r.\r", "\r\n.\r", "\r\n.\n", "\r\n\r.\r\n", "\r.\r\n"] {
            let (text, end) = decode(format!("a{end}MAIL FROM:<evil>\r\n.\r\n").as_bytes());
            assert_eq!(end, Some(DataEnd::BareLineEnd), "{text:?}");
            assert!(!text.windows(4).any(|part| part == b"MAIL"));
        }
    }
}
