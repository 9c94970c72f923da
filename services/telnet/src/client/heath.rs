//! A Heath 19 in front of a terminal of today (MIT §5.7): its output sequences become those of ECMA-48,
//! and the keys of a terminal become those of its keyboard.
//!
//! Output, in the terminal's Heath mode. `ESC` and:
//!
//! | | | | |
//! |---|---|---|---|
//! | `A B C D` | cursor up, down, forward, back | `H` | home |
//! | `E` | clear and home | `Y` *line* *column* | to a place, both plus 32 |
//! | `I` | up, scrolling at the top | `J` `K` | erase to end of page, of line |
//! | `b` `o` | erase to beginning of page, of line | `l` | erase line |
//! | `L` `M` | insert, delete line | `N` | delete character |
//! | `@` `O` | begin, end insert mode | `j` `k` | save, restore cursor |
//! | `p` `q` | reverse video on, off | `F` `G` | graphics on, off |
//! | `v` `w` | wrap at the end of line, or not | `n` | report the cursor (answered `ESC Y` …) |
//! | `Z` | identify (answered `ESC / K`) | `/` | is the second octet of an answer: shown as it is |
//! | `x5` `y5` | cursor off, on | `x1` `y1` | line 25 on, off: erased, see below |
//! | `=` `>` | keypad alternate, normal | `t` `u` | keypad shifted, normal: ignored |
//! | `z` | power-up reset | `[` `\` `{` `}` | hold screen, keyboard off: ignored |
//! | `x`, `y` and another digit, `r` and one | modes of the hardware: ignored | `<` | ANSI mode: the rest passes as it is |
//!
//! Line 25 is the real terminal's own 25th line, if it has one. Everything else passes, 8 bits wide.
//! Graphics show as the nearest characters of ASCII: a terminal's character set is not ours to know.
//!
//! Keys: arrows `ESC A B C D`, Home `ESC H`, Insert `ESC @`, Delete `ESC N`, F1 to F5 `ESC S T U V W`, and
//! F6, F7, F8 as the blue, red and grey keys `ESC P Q R`. Other keys pass.

const ESC: u8 = 0x1b;
/// Octets of an unfinished sequence of keys that are kept.
const KEY_BYTES: usize = 8;

/// Output of a Heath 19 for the screen of today.
#[derive(Debug, Default)]
pub struct HeathScreen {
    state: Screen,
    graphics: bool,
    ansi: bool,
    answer: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Screen {
    #[default]
    Text,
    Escape,
    Line,
    Column(u8),
    Mode(bool),
    Rate,
}

impl HeathScreen {
    /// Appends `input`, translated, to `output`: at most 24 octets for one.
    pub fn translate(&mut self, input: &[u8], output: &mut Vec<u8>) {
        for &octet in input {
            self.octet(octet, output);
        }
    }
    /// The terminal's reply to the peer (to `ESC Z`), if any.
    pub fn answer(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.answer)
    }

    fn octet(&mut self, octet: u8, output: &mut Vec<u8>) {
        let state = core::mem::take(&mut self.state);
        match state {
            Screen::Text if octet == ESC && !self.ansi => self.state = Screen::Escape,
            Screen::Text if self.graphics && !self.ansi => output.push(graphic(octet)),
            Screen::Text => output.push(octet),
            Screen::Escape => self.escape(octet, output),
            Screen::Line => self.state = Screen::Column(octet),
            Screen::Column(line) => {
                let place = |octet: u8| u32::from(octet.saturating_sub(31).max(1));
                output.extend_from_slice(format!("\x1b[{};{}H", place(line), place(octet)).as_bytes());
            }
            Screen::Mode(on) => output.extend_from_slice(match (octet, on) {
                (b'5', true) => b"\x1b[?25l",
                (b'5', false) => b"\x1b[?25h",
                (b'1', _) => b"\x1b7\x1b[25;1H\x1b[2K\x1b8",
                (b'7', true) => b"\x1b=",
                (b'7', false) => b"\x1b>",
                _ => b"",
            }),
            Screen::Rate => {}
        }
    }

    fn escape(&mut self, octet: u8, output: &mut Vec<u8>) {
        match octet {
            b'z' => {
                *self = HeathScreen::default();
                output.extend_from_slice(b"\x1b[0m\x1b[4l\x1b[?25h\x1b[?7l\x1b>\x1b[H\x1b[2J");
            }
            b'Y' => self.state = Screen::Line,
            b'x' | b'y' => self.state = Screen::Mode(octet == b'x'),
            b'r' => self.state = Screen::Rate,
            b'F' | b'G' => self.graphics = octet == b'F',
            b'Z' => self.answer = b"\x1b/K".to_vec(),
            b'<' => self.ansi = true,
            ESC => self.state = Screen::Escape,
            _ => match translation(octet) {
                Some(sequence) => output.extend_from_slice(sequence),
                None => output.extend_from_slice(&[ESC, octet]),
            },
        }
    }
}

/// The ANSI sequence for the Heath's ESC and `octet`, where nothing is to be remembered.
fn translation(octet: u8) -> Option<&'static [u8]> {
    Some(match octet {
        b'A' => b"\x1b[A",
        b'B' => b"\x1b[B",
        b'C' => b"\x1b[C",
        b'D' => b"\x1b[D",
        b'E' => b"\x1b[H\x1b[2J",
        b'H' => b"\x1b[H",
        b'I' => b"\x1bM",
        b'J' => b"\x1b[J",
        b'K' => b"\x1b[K",
        b'L' => b"\r\x1b[L",
        b'M' => b"\r\x1b[M",
        b'N' => b"\x1b[P",
        b'@' => b"\x1b[4h",
        b'O' => b"\x1b[4l",
        b'b' => b"\x1b[1J",
        b'j' => b"\x1b7",
        b'k' => b"\x1b8",
        b'l' => b"\x1b[2K",
        b'o' => b"\x1b[1K",
        b'p' => b"\x1b[7m",
        b'q' => b"\x1b[27m",
        b'v' => b"\x1b[?7h",
        b'w' => b"\x1b[?7l",
        b'=' => b"\x1b=",
        b'>' => b"\x1b>",
        // The terminal's own answer, ESC [ line ; column R, is turned round among the keys.
        b'n' => b"\x1b[6n",
        b't' | b'u' | b'[' | b'\\' | b'{' | b'}' => b"",
        _ => return None,
    })
}

/// The 33 graphics of the Heath 19, from `^` to DEL, in ASCII.
fn graphic(octet: u8) -> u8 {
    const GRAPHICS: &[u8; 33] = b"o\\|-+++++.>#v#^#^##/+++++xxxxxxx#";
    match octet {
        0x5e..=0x7e => GRAPHICS.get(usize::from(octet - 0x5e)).copied().unwrap_or(octet),
        _ => octet,
    }
}

/// Keys of a terminal of today as the Heath 19 would send them.
#[derive(Debug, Default)]
pub struct HeathKeys {
    partial: Vec<u8>,
}

impl HeathKeys {
    /// Appends `input`, translated, to `output`. A lone ESC at the end of `input` is the key ESC: terminals
    /// send a sequence in one piece.
    pub fn translate(&mut self, input: &[u8], output: &mut Vec<u8>) {
        for (index, &octet) in input.iter().enumerate() {
            let last = index + 1 == input.len();
            match (self.partial.as_slice(), octet) {
                ([], ESC) if !last => self.partial.push(ESC),
                ([], _) => output.push(octet),
                ([ESC], b'[' | b'O') => self.partial.push(octet),
                ([ESC], _) => {
                    output.extend_from_slice(&[ESC, octet]);
                    self.partial.clear();
                }
                (_, b'0'..=b'9' | b';') if self.partial.len() < KEY_BYTES => self.partial.push(octet),
                _ => {
                    self.partial.push(octet);
                    self.finish(output);
                }
            }
        }
    }

    fn finish(&mut self, output: &mut Vec<u8>) {
        let partial = core::mem::take(&mut self.partial);
        let key = match partial.get(1..).unwrap_or_default() {
            [b'[' | b'O', arrow @ b'A'..=b'D'] => *arrow,
            b"[H" | b"OH" | b"[1~" | b"[7~" => b'H',
            b"[2~" => b'@',
            b"[3~" => b'N',
            b"OP" | b"[11~" => b'S',
            b"OQ" | b"[12~" => b'T',
            b"OR" | b"[13~" => b'U',
            b"OS" | b"[14~" => b'V',
            b"[15~" => b'W',
            b"[17~" => b'P',
            b"[18~" => b'Q',
            b"[19~" => b'R',
            [b'[', place @ .., b'R'] => {
                let place = core::str::from_utf8(place).unwrap_or_default();
                let (line, column) = place.split_once(';').unwrap_or_default();
                let octet = |digits: &str| digits.parse::<u8>().unwrap_or(1).clamp(1, 95) + 31;
                output.extend_from_slice(&[ESC, b'Y', octet(line), octet(column)]);
                return;
            }
            _ => {
                output.extend_from_slice(&partial);
                return;
            }
        };
        output.extend_from_slice(&[ESC, key]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(input: &[u8]) -> String {
        let mut screen = HeathScreen::default();
        let mut whole = Vec::new();
        screen.translate(input, &mut whole);
        let (mut screen, mut pieces) = (HeathScreen::default(), Vec::new());
        input.iter().for_each(|&octet| screen.translate(&[octet], &mut pieces));
        assert_eq!(whole, pieces);
        String::from_utf8_lossy(&whole).into_owned()
    }

    #[test]
    fn a_screen() {
        assert_eq!(shown(b"\x1bEa\x1bY %b\x1bpc\x1bq"), "\x1b[H\x1b[2Ja\x1b[1;6Hb\x1b[7mc\x1b[27m");
        assert_eq!(shown(b"\x1bx5\x1by5\x1bx8\x1brAz"), "\x1b[?25l\x1b[?25hz");
        assert_eq!(shown(b"\x1bFafc\x1bGa"), "-++a");
        assert_eq!(shown("é\x1bK\x1b<\x1b[1m".as_bytes()), "é\x1b[K\x1b[1m");
        let mut screen = HeathScreen::default();
        screen.translate(b"\x1bZ", &mut Vec::new());
        assert_eq!((screen.answer(), screen.answer()), (b"\x1b/K".to_vec(), vec![]));
    }

    #[test]
    fn keys() {
        let mut keys = HeathKeys::default();
        let mut sent = Vec::new();
        keys.translate(b"a\x1b[A\x1bOB\x1b[3~\x1bOP\x1b[17~\x1b[12;80R\x1b[5~\x1bx\x1b", &mut sent);
        assert_eq!(sent, b"a\x1bA\x1bB\x1bN\x1bS\x1bP\x1bY+o\x1b[5~\x1bx\x1b");
        let mut sent = Vec::new();
        keys.translate(b"\x1b[", &mut sent);
        keys.translate(b"C", &mut sent);
        keys.translate(b"\x1b[11111111111", &mut sent);
        assert_eq!(&sent[..], b"\x1bC\x1b[11111111111");
    }
}
