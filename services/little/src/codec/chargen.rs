//! The character generator's pattern (RFC 864): 72-character lines that roll through the printing characters.

/// Characters in a line, its end not counted.
pub const LINE_CHARACTERS: usize = 72;
/// Bytes of a line with its CR LF.
pub const LINE_BYTES: usize = LINE_CHARACTERS + 2;

/// The 95 printing characters of ASCII start with the space.
const FIRST: u8 = b' ';
const PRINTING: usize = 95;
/// After so many bytes the pattern starts over.
const PERIOD_BYTES: usize = PRINTING * LINE_BYTES;

/// A place in the endless pattern; each line starts one character further than the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pattern {
    at: usize,
}

impl Pattern {
    /// The pattern from its first line.
    pub const fn new() -> Self {
        Pattern { at: 0 }
    }
    /// Writes the next `into.len()` bytes of the pattern.
    pub fn fill(&mut self, into: &mut [u8]) {
        for byte in into {
            *byte = byte_at(self.at);
            self.at = (self.at + 1) % PERIOD_BYTES;
        }
    }
    /// Goes on `bytes` further without writing; what a writer takes of a filled buffer need not be all of it.
    pub fn skip(&mut self, bytes: usize) {
        self.at = (self.at + bytes % PERIOD_BYTES) % PERIOD_BYTES;
    }
    /// Goes to the start of the next line, unless it is at the start of one.
    pub fn next_line(&mut self) {
        self.at = self.at.div_ceil(LINE_BYTES) * LINE_BYTES % PERIOD_BYTES;
    }
}

fn byte_at(at: usize) -> u8 {
    let (line, column) = (at / LINE_BYTES, at % LINE_BYTES);
    match column {
        LINE_CHARACTERS => b'\r',
        c if c > LINE_CHARACTERS => b'\n',
        _ => FIRST + ((line + column) % PRINTING) as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec: RFC864
    #[test]
    fn lines_are_as_the_rfc_prints_them() {
        let mut text = vec![0; 3 * LINE_BYTES];
        Pattern::new().fill(&mut text);
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(lines[0], r##" !"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\]^_`abcdefg"##);
        assert_eq!(lines[1], r##"!"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\]^_`abcdefgh"##);
        assert!(lines.iter().all(|l| l.len() == LINE_CHARACTERS));
    }

    #[test]
    fn the_pattern_does_not_depend_on_how_it_is_cut() {
        let mut whole = vec![0; 20_000];
        Pattern::new().fill(&mut whole);
        let (mut pattern, mut pieces) = (Pattern::new(), Vec::new());
        for size in (1..).take(190) {
            let mut piece = vec![0; size];
            let mut ahead = pattern;
            ahead.fill(&mut piece);
            pattern.skip(size);
            assert_eq!(ahead, pattern);
            pieces.extend_from_slice(&piece);
        }
        assert_eq!(pieces[..], whole[..pieces.len()]);
        assert!(whole.iter().all(|b| (b' '..=b'~').contains(b) || *b == b'\r' || *b == b'\n'));
    }

    #[test]
    fn a_line_can_be_started_afresh() {
        let mut pattern = Pattern::new();
        pattern.next_line();
        assert_eq!(pattern, Pattern::new());
        pattern.skip(5);
        pattern.next_line();
        assert_eq!(pattern, Pattern { at: LINE_BYTES });
        pattern.skip(PERIOD_BYTES - 1);
        pattern.next_line();
        assert_eq!(pattern, Pattern { at: LINE_BYTES });
    }
}
