//! Canonical forms of header fields and bodies (RFC 6376 §3.4).

use crate::message::Field;

/// Canonicalization algorithm: how much whitespace may change in transit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Canonical {
    Simple,
    Relaxed,
}

impl Canonical {
    pub(crate) fn parse(text: &str) -> Option<Canonical> {
        match text {
            "simple" => Some(Canonical::Simple),
            "relaxed" => Some(Canonical::Relaxed),
            _ => None,
        }
    }
    /// Puts the canonical form of a field behind `text`, without its line end.
    pub(crate) fn field(self, field: &Field<'_>, text: &mut Vec<u8>) {
        match self {
            Canonical::Simple => {
                for (number, line) in lines(field.whole).enumerate() {
                    if number > 0 {
                        text.extend_from_slice(b"\r\n");
                    }
                    text.extend_from_slice(line);
                }
            }
            Canonical::Relaxed => {
                text.extend(field.name.iter().map(u8::to_ascii_lowercase));
                text.push(b':');
                let mut words =
                    field.value.split(|octet| b" \t\r\n".contains(octet)).filter(|w| !w.is_empty());
                if let Some(first) = words.next() {
                    text.extend_from_slice(first);
                }
                for word in words {
                    text.push(b' ');
                    text.extend_from_slice(word);
                }
            }
        }
    }
    /// Gives the canonical form of a body to `sink`, piece by piece.
    pub(crate) fn body(self, body: &[u8], sink: &mut dyn FnMut(&[u8])) {
        // Empty lines count only when something follows them.
        let (mut empty, mut is_empty_body) = (0_usize, true);
        for line in lines(body) {
            let line = match self {
                Canonical::Simple => line,
                Canonical::Relaxed => trim_blanks_end(line),
            };
            if line.is_empty() {
                empty += 1;
                continue;
            }
            is_empty_body = false;
            for _ in 0..std::mem::take(&mut empty) {
                sink(b"\r\n");
            }
            match self {
                Canonical::Simple => sink(line),
                Canonical::Relaxed => relaxed_line(line, sink),
            }
            sink(b"\r\n");
        }
        // spec: RFC6376 3.4.3 — an empty body is one line end.
        if is_empty_body && self == Canonical::Simple {
            sink(b"\r\n");
        }
    }
}

/// The lines of a text, without CRLF or LF.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.split(|octet| *octet == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

fn trim_blanks_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|octet| !is_blank(*octet)).map_or(0, |at| at + 1);
    &line[..end]
}

/// Replaces each run of blanks by one; `line` does not end with a blank.
fn relaxed_line(line: &[u8], sink: &mut dyn FnMut(&[u8])) {
    let mut from = 0;
    for at in 0..line.len() {
        let is_followed = line.get(at + 1).is_some_and(|next| is_blank(*next));
        // Text without such runs is passed on in one piece.
        if is_blank(line[at]) && (line[at] == b'\t' || is_followed) {
            sink(&line[from..at]);
            if !is_followed {
                sink(b" ");
            }
            from = at + 1;
        }
    }
    sink(&line[from..]);
}

fn is_blank(octet: u8) -> bool {
    matches!(octet, b' ' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;

    fn body(form: Canonical, body: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        form.body(body, &mut |piece| text.extend_from_slice(piece));
        text
    }

    /// RFC 6376 §3.4.5. spec: RFC6376 3.4.5
    #[test]
    fn canonical_forms_are_those_of_the_rfc() {
        let text = b"A: X\r\nB : Y\t\r\n\tZ  \r\n\r\n C \r\nD \t E\r\n\r\n\r\n";
        let message = Message::parse(text).unwrap();
        let header = |form: Canonical| {
            let mut text = Vec::new();
            for field in &message.fields {
                form.field(field, &mut text);
                text.extend_from_slice(b"\r\n");
            }
            String::from_utf8(text).unwrap()
        };
        assert_eq!(header(Canonical::Relaxed), "a:X\r\nb:Y Z\r\n");
        assert_eq!(header(Canonical::Simple), "A: X\r\nB : Y\t\r\n\tZ  \r\n");
        assert_eq!(body(Canonical::Relaxed, message.body), b" C\r\nD E\r\n");
        assert_eq!(body(Canonical::Simple, message.body), b" C \r\nD \t E\r\n");
    }

    #[test]
    fn bodies_end_with_one_line_end() {
        for (text, simple, relaxed) in [
            (&b""[..], &b"\r\n"[..], &b""[..]),
            (b"\r\n\r\n", b"\r\n", b""),
            (b"a", b"a\r\n", b"a\r\n"),
            (b" \r\n", b" \r\n", b""),
            (b"a\n\nb\t \t c\t\n\n", b"a\r\n\r\nb\t \t c\t\r\n", b"a\r\n\r\nb c\r\n"),
            (b"\t a\r\n", b"\t a\r\n", b" a\r\n"),
        ] {
            assert_eq!(body(Canonical::Simple, text), simple, "{text:?}");
            assert_eq!(body(Canonical::Relaxed, text), relaxed, "{text:?}");
        }
    }
}
