//! Text on its way: local text is UTF-8; on the wire it is what IND$FILE makes of EBCDIC and calls ASCII.
//!
//! The translation of IND$FILE knows one code page, which is not that of the screen. So each end goes through EBCDIC of
//! the screen's page, and undoes or does the translation of IND$FILE.

use crate::codec::CodePage;

/// Stands for what a code page does not have.
const UNKNOWN: u8 = b'?';
/// The end of a file of CP/M and DOS, which is not text.
const DOS_END: u8 = 0x1a;

/// What IND$FILE makes of the printable octets of EBCDIC, X'40' to X'FF': those of ASCII where the page has one, and for
/// the others the octets from X'A0' on, in their order.
const TO_WIRE: [u8; 256] = {
    let mut wire = [0; 256];
    // The EBCDIC octets of the characters of ASCII from X'20' to X'7E'.
    let ascii =
        b"\x40\x5a\x7f\x7b\x5b\x6c\x50\x7d\x4d\x5d\x5c\x4e\x6b\x60\x4b\x61\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\
        \xf8\xf9\x7a\x5e\x4c\x7e\x6e\x6f\x7c\xc1\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9\xd1\xd2\xd3\xd4\xd5\xd6\
        \xd7\xd8\xd9\xe2\xe3\xe4\xe5\xe6\xe7\xe8\xe9\x4a\xe0\x4f\x5f\x6d\x79\x81\x82\x83\x84\x85\x86\x87\
        \x88\x89\x91\x92\x93\x94\x95\x96\x97\x98\x99\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xc0\x6a\xd0\xa1";
    let mut index = 0;
    while index < ascii.len() {
        wire[ascii[index] as usize] = 0x20 + index as u8;
        index += 1;
    }
    // X'E1' is a control character for IND$FILE.
    wire[0xe1] = 0x9f;
    let (mut octet, mut next) = (0x40, 0xa0);
    while octet < 256 {
        if wire[octet] == 0 {
            wire[octet] = next;
            next = if next == 0xff { next } else { next + 1 };
        }
        octet += 1;
    }
    wire
};

/// The EBCDIC octet of each on the wire that is printable.
const FROM_WIRE: [u8; 256] = {
    let mut ebcdic = [0; 256];
    let mut octet = 0x40;
    while octet < 256 {
        ebcdic[TO_WIRE[octet] as usize] = octet as u8;
        octet += 1;
    }
    ebcdic
};

/// Makes octets for the wire of the UTF-8 text of a file, piece by piece.
#[derive(Clone, Debug)]
pub(crate) struct TextEncoder {
    page: CodePage,
    has_line_ends: bool,
    partial: Vec<u8>,
    is_after_return: bool,
    lost: u64,
}

impl TextEncoder {
    /// With `has_line_ends`, LF becomes CR LF.
    pub(crate) fn new(page: CodePage, has_line_ends: bool) -> TextEncoder {
        TextEncoder { page, has_line_ends, partial: Vec::new(), is_after_return: false, lost: 0 }
    }
    /// Characters so far that the code page does not have, and octets that are no text: `?` stands for each on the wire.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }
    /// Takes the next octets of a file.
    pub(crate) fn take(&mut self, octets: &[u8], out: &mut Vec<u8>) {
        for &octet in octets {
            self.partial.push(octet);
            match core::str::from_utf8(&self.partial) {
                Ok(text) => {
                    let character = text.chars().next();
                    self.partial.clear();
                    character.into_iter().for_each(|character| self.put(character, out));
                }
                // A character has at most four octets, so that little is kept.
                Err(error) if error.error_len().is_none() => {}
                Err(_) => self.lose(out),
            }
        }
    }
    /// The file ends.
    pub(crate) fn end(&mut self, out: &mut Vec<u8>) {
        if !self.partial.is_empty() {
            self.lose(out);
        }
    }
    fn lose(&mut self, out: &mut Vec<u8>) {
        self.partial.clear();
        self.lost += 1;
        out.push(UNKNOWN);
    }
    fn put(&mut self, character: char, out: &mut Vec<u8>) {
        let after_return = core::mem::replace(&mut self.is_after_return, character == '\r');
        if character == '\n' && self.has_line_ends && !after_return {
            out.push(b'\r');
        }
        match (u32::from(character), self.page.octet(character)) {
            (code @ (0..=0x1f | 0x7f..=0x9e), _) => out.push(u8::try_from(code).unwrap_or(UNKNOWN)),
            (0x9f, _) => out.push(0xff),
            (_, Some(octet @ 0x40..=0xfe)) => out.push(TO_WIRE[usize::from(octet)]),
            _ => self.lose(out),
        }
    }
}

/// Makes the UTF-8 text of a file of octets from the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextDecoder {
    page: CodePage,
    has_line_ends: bool,
}

impl TextDecoder {
    /// With `has_line_ends`, CR and the end mark of DOS are left out.
    pub(crate) fn new(page: CodePage, has_line_ends: bool) -> TextDecoder {
        TextDecoder { page, has_line_ends }
    }
    /// Takes the next octets from the wire.
    pub(crate) fn take(&self, octets: &[u8], out: &mut Vec<u8>) {
        for &octet in octets {
            if self.has_line_ends && matches!(octet, b'\r' | DOS_END) {
                continue;
            }
            let character = match octet {
                0..=0x1f | 0x7f..=0x9e => char::from(octet),
                0xff => '\u{9f}',
                _ => self.page.character(FROM_WIRE[usize::from(octet)]),
            };
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(page: CodePage, text: &str) -> (Vec<u8>, String) {
        let (mut wire, mut back) = (Vec::new(), Vec::new());
        let mut encoder = TextEncoder::new(page, true);
        text.as_bytes().chunks(1).for_each(|piece| encoder.take(piece, &mut wire));
        encoder.end(&mut wire);
        TextDecoder::new(page, true).take(&wire, &mut back);
        (wire, String::from_utf8(back).unwrap())
    }

    #[test]
    fn text_comes_back_as_it_was() {
        let latin: String = (0x20..0x100).filter(|c| *c != 0x9f).filter_map(char::from_u32).collect();
        for page in [CodePage::Cp037, CodePage::Cp1047, CodePage::Cp273] {
            let text = format!("{latin}\nsecond\tline\n");
            assert_eq!(through(page, &text).1, text, "{page:?}");
        }
        assert_eq!(through(CodePage::Cp037, "A\nb").0, b"A\r\nb");
        assert_eq!(through(CodePage::Cp037, "a\r\nb").0, b"a\r\nb", "a line end that is whole stays one");
        assert_eq!(through(CodePage::Cp037, "漢字").1, "??");
        let mut wire = Vec::new();
        let mut encoder = TextEncoder::new(CodePage::Cp037, false);
        encoder.take(b"a\xff\xe6", &mut wire);
        encoder.end(&mut wire);
        assert_eq!((&wire[..], encoder.lost()), (&b"a??"[..], 2));
    }

    #[test]
    fn each_printable_octet_has_its_own_on_the_wire() {
        let mut seen = [false; 256];
        for octet in TO_WIRE[0x40..0xff].iter() {
            assert!(!core::mem::replace(&mut seen[usize::from(*octet)], true), "{octet:02x}");
        }
        // Some that are known from hosts.
        let known = [
            (0x41, 0xa0),
            (0x4a, 0x5b),
            (0x4f, 0x5d),
            (0x51, 0xa9),
            (0x6a, 0x7c),
            (0xba, 0xe2),
            (0xff, 0xff),
        ];
        for (ebcdic, wire) in known {
            assert_eq!(TO_WIRE[ebcdic], wire, "{ebcdic:02x}");
        }
    }
}
