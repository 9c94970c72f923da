//! CHARSET (RFC 2066): names of charsets, the bodies of its subnegotiations, and text in a charset and in UTF-8.

use inhost_common::CodePage;

/// Octets of a charset's name.
pub const CHARSET_NAME_BYTES: usize = 40;
/// Names of one request that are looked at.
pub const CHARSET_NAMES: usize = 64;

const REQUEST: u8 = 1;
const ACCEPTED: u8 = 2;
const REJECTED: u8 = 3;
const TTABLE_IS: u8 = 4;
const TTABLE_REJECTED: u8 = 5;

/// Before the names of a request: the sender takes a translation table, of the version that follows.
const TTABLE: &[u8] = b"[TTABLE]";

/// What stands for a character that US-ASCII and ISO-8859-1 do not have.
const QUESTION_MARK: u8 = b'?';
/// SUB, what stands for it in EBCDIC.
const EBCDIC_SUBSTITUTE: u8 = 0x3f;

/// A charset that text on the network can have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Charset {
    /// UTF-8.
    Utf8,
    /// ISO-8859-1.
    Latin1,
    /// US-ASCII.
    Ascii,
    /// IBM037, IBM273, IBM500 or IBM1047.
    Ebcdic(CodePage),
}

impl Charset {
    /// Every charset, the one that is preferred first.
    pub const ALL: [Charset; 7] = [
        Charset::Utf8,
        Charset::Latin1,
        Charset::Ascii,
        Charset::Ebcdic(CodePage::Cp1047),
        Charset::Ebcdic(CodePage::Cp037),
        Charset::Ebcdic(CodePage::Cp500),
        Charset::Ebcdic(CodePage::Cp273),
    ];

    /// Its name at IANA.
    pub fn name(self) -> &'static str {
        match self {
            Charset::Utf8 => "UTF-8",
            Charset::Latin1 => "ISO-8859-1",
            Charset::Ascii => "US-ASCII",
            Charset::Ebcdic(CodePage::Cp037) => "IBM037",
            Charset::Ebcdic(CodePage::Cp273) => "IBM273",
            Charset::Ebcdic(CodePage::Cp500) => "IBM500",
            Charset::Ebcdic(_) => "IBM1047",
        }
    }
    /// The charset of this name, or of one of its other names at IANA, in any case of letters.
    pub fn from_name(name: &str) -> Option<Charset> {
        let lower = name.to_ascii_lowercase();
        let other = match &*lower {
            "utf8" => "utf-8",
            "iso_8859-1" | "iso8859-1" | "latin1" | "l1" | "ibm819" | "cp819" => "iso-8859-1",
            "ascii" | "us" | "ansi_x3.4-1968" | "iso646-us" | "ibm367" | "cp367" => "us-ascii",
            "cp037" => "ibm037",
            "cp273" => "ibm273",
            "cp500" => "ibm500",
            "cp1047" | "ibm-1047" => "ibm1047",
            other => other,
        };
        Charset::ALL.into_iter().find(|charset| charset.name().eq_ignore_ascii_case(other))
    }
    /// Whether the octets of ASCII stand for something else in it.
    pub fn is_ebcdic(self) -> bool {
        matches!(self, Charset::Ebcdic(_))
    }
    /// The character of an octet; `None` where the charset has none, and for the octets of UTF-8 beyond ASCII.
    pub fn character(self, octet: u8) -> Option<char> {
        match self {
            Charset::Utf8 | Charset::Ascii => octet.is_ascii().then_some(char::from(octet)),
            Charset::Latin1 => Some(char::from(octet)),
            Charset::Ebcdic(page) => Some(page.character(octet)),
        }
    }
    /// Appends a character; false where its substitute was appended.
    pub fn append(self, character: char, octets: &mut Vec<u8>) -> bool {
        let octet = match self {
            Charset::Utf8 => {
                octets.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                return true;
            }
            Charset::Ascii => u8::try_from(character).ok().filter(u8::is_ascii),
            Charset::Latin1 => u8::try_from(character).ok(),
            Charset::Ebcdic(page) => page.octet(character),
        };
        let substitute = if self.is_ebcdic() { EBCDIC_SUBSTITUTE } else { QUESTION_MARK };
        octets.push(octet.unwrap_or(substitute));
        octet.is_some()
    }
}

impl core::fmt::Display for Charset {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// The characters of UTF-8 that comes in any pieces; what is not UTF-8 becomes U+FFFD.
#[derive(Clone, Default, Debug)]
pub(crate) struct Characters {
    held: Vec<u8>,
}

impl Characters {
    /// Calls `each` with every character that is complete. At most three octets are held.
    pub(crate) fn push(&mut self, bytes: &[u8], mut each: impl FnMut(char)) {
        let joined;
        let mut rest = bytes;
        if !self.held.is_empty() {
            self.held.extend_from_slice(bytes);
            joined = core::mem::take(&mut self.held);
            rest = &joined;
        }
        while !rest.is_empty() {
            let (valid, after) = match core::str::from_utf8(rest) {
                Ok(text) => (text, &[][..]),
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    let text = core::str::from_utf8(valid).unwrap_or_default();
                    let Some(bad) = error.error_len() else {
                        text.chars().for_each(&mut each);
                        self.held = after.to_vec();
                        return;
                    };
                    text.chars().for_each(&mut each);
                    each(char::REPLACEMENT_CHARACTER);
                    ("", after.get(bad..).unwrap_or_default())
                }
            };
            valid.chars().for_each(&mut each);
            rest = after;
        }
    }
}

/// A subnegotiation of CHARSET.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum CharsetBody<'a> {
    /// The names, best first.
    Request(Vec<&'a str>),
    Accepted(&'a str),
    Rejected,
    TableIs,
    TableRejected,
}

/// Reads a body. `None`: without meaning.
/// spec: RFC2066 2
pub(crate) fn charset(body: &[u8]) -> Option<CharsetBody<'_>> {
    let (&code, rest) = body.split_first()?;
    Some(match code {
        REQUEST => {
            // Behind the word stands the version of the tables that the sender takes.
            let list = match rest.strip_prefix(TTABLE) {
                Some(versioned) => versioned.get(1..)?,
                None => rest,
            };
            let (separator, names) = list.split_first()?;
            CharsetBody::Request(
                names.split(|octet| octet == separator).take(CHARSET_NAMES).filter_map(name).collect(),
            )
        }
        ACCEPTED => CharsetBody::Accepted(name(rest)?),
        REJECTED => CharsetBody::Rejected,
        TTABLE_IS => CharsetBody::TableIs,
        TTABLE_REJECTED => CharsetBody::TableRejected,
        _ => return None,
    })
}

fn name(octets: &[u8]) -> Option<&str> {
    let is_name = (1..=CHARSET_NAME_BYTES).contains(&octets.len()) && octets.iter().all(u8::is_ascii_graphic);
    core::str::from_utf8(octets).ok().filter(|_| is_name)
}

/// `REQUEST` with the names of `charsets`, best first.
pub(crate) fn request_body(charsets: &[Charset]) -> Vec<u8> {
    let mut body = vec![REQUEST];
    for charset in charsets {
        body.push(b';');
        body.extend_from_slice(charset.name().as_bytes());
    }
    body
}
/// `ACCEPTED`, with the name as the sender of the request wrote it.
pub(crate) fn accepted_body(name: &str) -> Vec<u8> {
    let mut body = vec![ACCEPTED];
    body.extend_from_slice(name.as_bytes());
    body
}
/// `REJECTED`.
pub(crate) const REJECTED_BODY: [u8; 1] = [REJECTED];
/// `TTABLE-REJECTED`.
pub(crate) const TABLE_REJECTED_BODY: [u8; 1] = [TTABLE_REJECTED];

#[cfg(test)]
mod tests {
    use super::*;

    /// spec: RFC2066 2
    #[test]
    fn requests_name_charsets_behind_any_separator() {
        let request = CharsetBody::Request(vec!["UTF-8", "x"]);
        assert_eq!(charset(b"\x01;UTF-8;x"), Some(request.clone()));
        assert_eq!(charset(b"\x01 UTF-8 x "), Some(request.clone()));
        assert_eq!(charset(b"\x01[TTABLE]\x01 UTF-8 x"), Some(request));
        assert_eq!(charset(b"\x01;"), Some(CharsetBody::Request(vec![])));
        assert_eq!(charset(b"\x02UTF-8"), Some(CharsetBody::Accepted("UTF-8")));
        let long = [&b"\x02"[..], &[b'x'; 41]].concat();
        for bad in [&b""[..], b"\x01", b"\x01[TTABLE]", b"\x02", b"\x02a b", b"\x02\xc3\xa9", b"\x09", &long]
        {
            assert_eq!(charset(bad), None, "{bad:?}");
        }
        let own = request_body(&Charset::ALL);
        assert_eq!(own, b"\x01;UTF-8;ISO-8859-1;US-ASCII;IBM1047;IBM037;IBM500;IBM273");
    }

    #[test]
    fn names_are_those_of_iana() {
        for charset in Charset::ALL {
            assert_eq!(Charset::from_name(&charset.name().to_lowercase()), Some(charset));
        }
        assert_eq!(Charset::from_name("latin1"), Some(Charset::Latin1));
        assert_eq!(Charset::from_name("CP037"), Some(Charset::Ebcdic(CodePage::Cp037)));
        assert_eq!(Charset::from_name("KOI8-R"), None);
    }

    #[test]
    fn characters_come_in_any_pieces() {
        let text = "aé€𝄞 ";
        let bytes = [text.as_bytes(), b"\xff\xc3(\xe2\x82x"].concat();
        for size in 1..bytes.len() {
            let (mut characters, mut all) = (Characters::default(), String::new());
            for piece in bytes.chunks(size) {
                characters.push(piece, |character| all.push(character));
                assert!(characters.held.len() <= 3);
            }
            assert_eq!(all, format!("{text}\u{fffd}\u{fffd}(\u{fffd}x"), "{size}");
        }
    }
}
