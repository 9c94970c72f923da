//! A message's header fields and body (RFC 5322 §2), and the domains of its authors.

use crate::domain::{domain, of_address};
use std::fmt;

/// Longest header that is read, in octets.
pub const HEADER_BYTES_LIMIT: usize = 1 << 20;
/// Fields of a header that are read.
pub const FIELDS_LIMIT: usize = 5000;
/// Author domains of a message that are looked at; a message should have one.
pub const AUTHORS_LIMIT: usize = 4;

/// Addresses of the authors that are read. Further ones count as unreadable.
const ADDRESSES_LIMIT: usize = 1000;

/// Why a message cannot be checked or signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MessageError {
    /// The header is longer than [`HEADER_BYTES_LIMIT`].
    LongHeader,
    /// The header has more than [`FIELDS_LIMIT`] fields.
    ManyFields,
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageError::LongHeader => write!(f, "the header has more than {HEADER_BYTES_LIMIT} octets"),
            MessageError::ManyFields => write!(f, "the header has more than {FIELDS_LIMIT} fields"),
        }
    }
}
impl std::error::Error for MessageError {}

/// A header field as it stands in the message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    /// The name, without what blanks follow it.
    pub(crate) name: &'a [u8],
    /// All of it, with its line end.
    pub(crate) whole: &'a [u8],
    /// What follows the colon, with its line end.
    pub(crate) value: &'a [u8],
}

impl Field<'_> {
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

/// A message, cut in its parts. Lines may end with LF alone, which counts as CRLF.
#[derive(Clone, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) fields: Vec<Field<'a>>,
    pub(crate) body: &'a [u8],
}

impl<'a> Message<'a> {
    pub(crate) fn parse(message: &'a [u8]) -> Result<Message<'a>, MessageError> {
        let (mut fields, mut at) = (Vec::new(), 0);
        while at < message.len() {
            let end = field_end(message, at).ok_or(MessageError::LongHeader)?;
            let whole = &message[at..end];
            if whole == b"\r\n" || whole == b"\n" {
                return Ok(Message { fields, body: &message[end..] });
            }
            if fields.len() == FIELDS_LIMIT {
                return Err(MessageError::ManyFields);
            }
            let colon = whole.iter().position(|octet| *octet == b':');
            // A line without a colon is not a field and is skipped.
            if let Some(colon) = colon {
                fields.push(Field {
                    name: whole[..colon].trim_ascii_end(),
                    whole,
                    value: &whole[colon + 1..],
                });
            }
            at = end;
        }
        Ok(Message { fields, body: &[] })
    }
    pub(crate) fn fields_of(&self, name: &str) -> impl Iterator<Item = &Field<'a>> {
        self.fields.iter().filter(move |field| field.is(name))
    }
    /// The domains of the authors, each once; one more than [`AUTHORS_LIMIT`] at most.
    pub(crate) fn authors(&self) -> Authors {
        let mut authors = Authors { fields: 0, domains: Vec::new(), unreadable: 0 };
        let mut read = 0;
        for field in self.fields_of("From") {
            authors.fields += 1;
            for address in addresses(&String::from_utf8_lossy(field.value)) {
                read += 1;
                let found = if read > ADDRESSES_LIMIT { None } else { domain(of_address(&address)) };
                match found {
                    Some(domain) if authors.domains.contains(&domain) => {}
                    Some(domain) if authors.domains.len() <= AUTHORS_LIMIT => authors.domains.push(domain),
                    Some(_) => {}
                    None => authors.unreadable += 1,
                }
            }
        }
        authors
    }
}

/// Who a message says that it is from.
#[derive(Clone, Debug)]
pub(crate) struct Authors {
    /// `From` fields; there should be one (RFC 5322 §3.6).
    pub(crate) fields: usize,
    pub(crate) domains: Vec<String>,
    /// Addresses without a domain.
    pub(crate) unreadable: usize,
}

/// Where the field that begins at `start` ends, its folded lines included. `None` beyond the limit.
fn field_end(message: &[u8], start: usize) -> Option<usize> {
    let limit = message.len().min(HEADER_BYTES_LIMIT);
    let mut at = start;
    loop {
        let line = message.get(at..limit)?;
        at = match line.iter().position(|octet| *octet == b'\n') {
            Some(end) => at + end + 1,
            None if limit == message.len() => return Some(limit),
            None => return None,
        };
        // The empty line is not folded.
        let is_empty = matches!(&message[start..at], b"\r\n" | b"\n");
        if is_empty || !matches!(message.get(at), Some(b' ' | b'\t')) {
            return Some(at);
        }
    }
}

/// The addresses of an address list (RFC 5322 §3.4): what is in angle brackets, else the mailbox itself. Names, comments
/// and quotes are passed over; what cannot be read gives an address without a domain.
fn addresses(list: &str) -> Vec<String> {
    let (mut found, mut plain, mut angle) = (Vec::new(), String::new(), None::<String>);
    let mut end = |plain: &mut String, angle: &mut Option<String>| {
        let text = angle.take().unwrap_or_else(|| plain.clone());
        plain.clear();
        if !text.trim().is_empty() {
            found.push(text.split_whitespace().collect());
        }
    };
    let (mut depth, mut is_quoted, mut is_in_angle, mut is_literal) = (0_u32, false, false, false);
    let mut characters = list.chars();
    while let Some(c) = characters.next() {
        let place = match &mut angle {
            Some(angle) if is_in_angle => angle,
            _ => &mut plain,
        };
        match c {
            '\\' if depth > 0 || is_quoted => {
                let _ = characters.next();
            }
            '(' if !is_quoted && !is_literal => depth += 1,
            ')' if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            // An octet stands for the text in quotes, in which no at sign counts.
            '"' if !is_literal => {
                is_quoted = !is_quoted;
                place.push('q');
            }
            _ if is_quoted => {}
            '[' | ']' => {
                is_literal = c == '[';
                place.push(c);
            }
            _ if is_literal => place.push(c),
            '<' => {
                (is_in_angle, angle) = (true, Some(String::new()));
            }
            '>' => is_in_angle = false,
            // A route of old (RFC 5322 §4.4): the address is behind its colon.
            ':' => place.clear(),
            ',' | ';' if !is_in_angle => end(&mut plain, &mut angle),
            c => place.push(c),
        }
    }
    end(&mut plain, &mut angle);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authors_are_found_where_they_are() {
        let domains = |from: &str| {
            let text = format!("Subject: x\r\nFrom: {from}\r\n\r\nbody");
            let authors = Message::parse(text.as_bytes()).unwrap().authors();
            (authors.domains.join(" "), authors.unreadable)
        };
        let one = |domain: &str| (domain.to_owned(), 0);
        assert_eq!(domains("ada@Example.com"), one("example.com"));
        assert_eq!(domains("Ada\r\n <ada@example.com>"), one("example.com"));
        assert_eq!(domains("\"a@evil.example, b\" (c@d.example) <ada@example.com> (x)"), one("example.com"));
        assert_eq!(domains("good@example.net <ada@example.com>"), one("example.com"));
        assert_eq!(domains("\"x@y.example\"@example.com"), one("example.com"));
        assert_eq!(domains("<@a.example,@b.example:ada@example.com>"), one("example.com"));
        assert_eq!(domains("team: ada@example.com, bob@example.net;"), one("example.com example.net"));
        assert_eq!(domains("ada@bücher.example"), one("xn--bcher-kva.example"));
        assert_eq!(domains("ada"), (String::new(), 1));
        assert_eq!(domains("ada@[10.0.0.1]"), (String::new(), 1));
        assert_eq!(domains(""), one(""));
        assert_eq!(domains(&"a@example.com,".repeat(1002)), ("example.com".to_owned(), 2));
    }

    #[test]
    fn a_header_ends_at_the_empty_line() {
        let message = Message::parse(b"A: 1\r\n 2\r\nnonsense\r\nb : 3\n\r\nC: no\r\n").unwrap();
        let names: Vec<_> = message.fields.iter().map(|field| String::from_utf8_lossy(field.name)).collect();
        assert_eq!((names.join(","), message.body), ("A,b".into(), &b"C: no\r\n"[..]));
        assert_eq!(message.fields[0].whole, b"A: 1\r\n 2\r\n");
        let long = [b"A: ".as_slice(), &vec![b'x'; HEADER_BYTES_LIMIT]].concat();
        assert_eq!(Message::parse(&long).unwrap_err(), MessageError::LongHeader);
        let many = b"A:\r\n".repeat(FIELDS_LIMIT + 1);
        assert_eq!(Message::parse(&many).unwrap_err(), MessageError::ManyFields);
    }
}
