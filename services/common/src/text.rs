//! Untrusted text, cleaned for terminals and logs: RFC 1288 §3.3 asks a client to keep from its terminal what that
//! might obey.

/// Stands where something was that is not shown.
const SUBSTITUTE: char = '\u{fffd}';

/// Takes octets as they come and gives text: lines end in a newline, control characters are replaced, and octets that
/// are not UTF-8 are taken for Latin-1, as servers have it that are older than UTF-8.
#[derive(Clone, Debug, Default)]
pub struct Cleaner {
    /// The beginning of a character whose end has not come yet.
    partial: Vec<u8>,
    after_return: bool,
}

impl Cleaner {
    /// `octets` as a part of one line: a name, a message. Line ends and tabs are replaced, too.
    pub fn line(octets: &[u8]) -> String {
        let (mut text, mut cleaner) = (String::new(), Cleaner::default());
        cleaner.take(octets, &mut text);
        cleaner.end(&mut text);
        text.replace(['\n', '\t'], SUBSTITUTE.encode_utf8(&mut [0; 4]))
    }
    /// Takes more octets, and puts what they say behind `text`.
    pub fn take(&mut self, octets: &[u8], text: &mut String) {
        for &octet in octets {
            self.partial.push(octet);
            self.settle(text, false);
        }
    }
    /// Nothing more comes.
    pub fn end(&mut self, text: &mut String) {
        self.settle(text, true);
        if core::mem::take(&mut self.after_return) {
            text.push('\n');
        }
    }
    /// Shows the characters that are whole, or can never be.
    fn settle(&mut self, text: &mut String, is_end: bool) {
        while let Some(&first) = self.partial.first() {
            let taken = match core::str::from_utf8(&self.partial) {
                Ok(whole) => {
                    let whole = whole.to_owned();
                    whole.chars().for_each(|character| self.show(character, text));
                    self.partial.len()
                }
                // More may make it whole: a character has at most four octets.
                Err(error) if error.error_len().is_none() && !is_end => return,
                Err(_) => {
                    self.show(char::from(first), text);
                    1
                }
            };
            self.partial.drain(..taken);
        }
    }
    fn show(&mut self, character: char, text: &mut String) {
        let after_return = core::mem::take(&mut self.after_return);
        if after_return && character != '\n' {
            text.push('\n');
        }
        match character {
            '\r' => self.after_return = true,
            '\n' | '\t' => text.push(character),
            // RFC 1288 names ^G and escape sequences; what turns the direction of writing deceives as well.
            c if c.is_control() || is_format(c) => text.push(SUBSTITUTE),
            c => text.push(c),
        }
    }
}

/// Invisible formatting characters.
fn is_format(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2028}' | '\u{2029}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether a text may be the name or the address of a host.
pub fn is_host(text: &str) -> bool {
    let letters = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    !text.is_empty() && text.len() <= 255 && !text.starts_with(['-', '.']) && text.chars().all(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(octets: &[u8]) -> String {
        let mut text = String::new();
        let mut cleaner = Cleaner::default();
        cleaner.take(octets, &mut text);
        cleaner.end(&mut text);
        // However it comes in pieces, it is the same.
        for cut in 0..octets.len() {
            let (mut other, mut cleaner) = (String::new(), Cleaner::default());
            cleaner.take(&octets[..cut], &mut other);
            cleaner.take(&octets[cut..], &mut other);
            cleaner.end(&mut other);
            assert_eq!(other, text);
        }
        text
    }

    #[test]
    fn lines_end_as_lines_end_here() {
        assert_eq!(clean(b"a\r\nb\nc\rd\r"), "a\nb\nc\nd\n");
        assert_eq!(clean(b"\r\r\n\tx"), "\n\n\tx");
    }

    #[test]
    fn what_a_terminal_obeys_is_replaced() {
        assert_eq!(clean(b"\x1b[2J\x07!\x7f"), "\u{fffd}[2J\u{fffd}!\u{fffd}");
        // The same as one octet, alone and as UTF-8; and what turns the direction of writing.
        assert_eq!(clean(b"\x9b2J"), "\u{fffd}2J");
        assert_eq!(clean("\u{9b}2J \u{202e}x".as_bytes()), "\u{fffd}2J \u{fffd}x");
        for turns in ['\u{61c}', '\u{200e}', '\u{200f}', '\u{2066}', '\u{2069}'] {
            assert_eq!(clean(format!("a{turns}b").as_bytes()), "a\u{fffd}b", "{turns:?}");
        }
    }

    #[test]
    fn a_part_of_a_line_stays_one() {
        assert_eq!(Cleaner::line(b"a\r\nb\tc\x1b[1m"), "a\u{fffd}b\u{fffd}c\u{fffd}[1m");
        assert_eq!(Cleaner::line("M\u{fc}ller \u{202e}".as_bytes()), "M\u{fc}ller \u{fffd}");
    }

    #[test]
    fn utf_8_stays_and_latin_1_is_understood() {
        assert_eq!(clean("Mädchen 東京".as_bytes()), "Mädchen 東京");
        assert_eq!(clean(b"M\xfcller\r\n"), "Müller\n");
        assert_eq!(clean(b"caf\xe9"), "café");
        assert_eq!(clean(b"\xe6\x9d"), "æ\u{fffd}");
    }
}
