//! A line being typed: echo, erase, kill. The server's prompts, the client's line mode and its command
//! level all use it. Pure: keys in; screen octets and lines out.

/// Whether and how typed keys are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Echo {
    /// As typed; control characters as `^X`.
    Shown,
    /// Not at all: a password, or somebody else echoes.
    Hidden,
}

/// The keys that edit. 0 switches one off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EditingKeys {
    /// Erases a character. BS and DEL do too, unless `erase` is one of them.
    pub erase: u8,
    /// Erases the line.
    pub kill: u8,
    /// Erases a word.
    pub word_erase: u8,
    /// Shows the line again.
    pub reprint: u8,
    /// Takes the next key as it is.
    pub literal: u8,
    /// Gives the line up.
    pub interrupt: u8,
    /// Ends the input, on an empty line.
    pub end_of_file: u8,
}

impl Default for EditingKeys {
    fn default() -> Self {
        EditingKeys {
            erase: 0x7f,
            kill: 0x15,
            word_erase: 0x17,
            reprint: 0x12,
            literal: 0x16,
            interrupt: 0x03,
            end_of_file: 0x04,
        }
    }
}

/// Result of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Edited {
    /// Return was typed: the line without its end.
    Line(Vec<u8>),
    /// The interrupt key: the line is dropped.
    Interrupt,
    /// End of file on an empty line.
    EndOfFile,
}

/// A line of at most so many octets; what goes beyond rings the bell.
#[derive(Debug)]
pub struct LineEditor {
    line: Vec<u8>,
    limit_bytes: usize,
    keys: EditingKeys,
    literal: bool,
    after_return: bool,
    /// Control characters are shown as they are.
    literal_echo: bool,
}

impl LineEditor {
    /// An empty line.
    pub fn new(limit_bytes: usize, keys: EditingKeys) -> LineEditor {
        LineEditor {
            line: Vec::new(),
            limit_bytes,
            keys,
            literal: false,
            after_return: false,
            literal_echo: false,
        }
    }
    /// The line so far.
    pub fn line(&self) -> &[u8] {
        &self.line
    }
    /// Whether the next key is taken as it is.
    pub fn is_literal(&self) -> bool {
        self.literal
    }
    /// Whether control characters are shown as they are, in place of `^X`.
    pub fn set_literal_echo(&mut self, on: bool) {
        self.literal_echo = on;
    }
    /// Other keys from now on.
    pub fn set_keys(&mut self, keys: EditingKeys) {
        self.keys = keys;
    }
    /// Forgets the line.
    pub fn clear(&mut self) {
        self.line.clear();
        self.literal = false;
    }
    /// Gives up the line unfinished: what was typed so far, without an end.
    pub fn take(&mut self) -> Vec<u8> {
        self.literal = false;
        core::mem::take(&mut self.line)
    }

    /// One key. What it shows is appended to `screen`: at most three octets a character of the line.
    pub fn key(&mut self, key: u8, echo: Echo, screen: &mut Vec<u8>) -> Option<Edited> {
        let after_return = core::mem::take(&mut self.after_return);
        if core::mem::take(&mut self.literal) {
            self.insert(key, echo, screen);
            return None;
        }
        match key {
            b'\n' if after_return => {}
            b'\r' | b'\n' => {
                self.after_return = key == b'\r';
                screen.extend_from_slice(b"\r\n");
                return Some(Edited::Line(core::mem::take(&mut self.line)));
            }
            0 => {}
            _ if key == self.keys.erase || matches!(key, 0x08 | 0x7f) => self.erase(echo, screen),
            _ if key == self.keys.kill => while_some(|| self.pop(echo, screen)),
            _ if key == self.keys.word_erase => self.erase_word(echo, screen),
            _ if key == self.keys.literal => self.literal = true,
            _ if key == self.keys.interrupt => {
                if echo == Echo::Shown {
                    show(key, screen);
                }
                screen.extend_from_slice(b"\r\n");
                self.clear();
                return Some(Edited::Interrupt);
            }
            _ if key == self.keys.reprint => {
                screen.extend_from_slice(b"\r\n");
                if echo == Echo::Shown {
                    self.line.iter().for_each(|&octet| self.show(octet, screen));
                }
            }
            _ if key == self.keys.end_of_file => {
                return self.line.is_empty().then_some(Edited::EndOfFile);
            }
            _ => self.insert(key, echo, screen),
        }
        None
    }

    /// Erases the last character, as the EC command does.
    pub fn erase(&mut self, echo: Echo, screen: &mut Vec<u8>) {
        self.pop(echo, screen);
    }
    /// Erases the line, as the EL command does.
    pub fn kill(&mut self, echo: Echo, screen: &mut Vec<u8>) {
        while_some(|| self.pop(echo, screen));
    }

    fn insert(&mut self, key: u8, echo: Echo, screen: &mut Vec<u8>) {
        if self.line.len() >= self.limit_bytes {
            screen.push(7);
            return;
        }
        self.line.push(key);
        if echo == Echo::Shown {
            self.show(key, screen);
        }
    }
    fn show(&self, key: u8, screen: &mut Vec<u8>) {
        match self.literal_echo {
            true => screen.push(key),
            false => show(key, screen),
        }
    }

    fn erase_word(&mut self, echo: Echo, screen: &mut Vec<u8>) {
        while self.line.last() == Some(&b' ') {
            self.pop(echo, screen);
        }
        while self.line.last().is_some_and(|&octet| octet != b' ') {
            self.pop(echo, screen);
        }
    }

    /// Takes the last character off, all octets of it where it is UTF-8.
    fn pop(&mut self, echo: Echo, screen: &mut Vec<u8>) -> Option<()> {
        let mut octet = self.line.pop()?;
        let mut continuations = 0;
        while octet & 0xc0 == 0x80 && continuations < 3 && self.line.last().is_some_and(|&last| last >= 0x80)
        {
            octet = self.line.pop()?;
            continuations += 1;
        }
        if echo == Echo::Shown {
            let is_control = octet < 0x20 || octet == 0x7f;
            let width =
                if self.literal_echo { usize::from(!is_control) } else { 1 + usize::from(is_control) };
            (0..width).for_each(|_| screen.extend_from_slice(b"\x08 \x08"));
        }
        Some(())
    }
}

fn while_some(mut step: impl FnMut() -> Option<()>) {
    while step().is_some() {}
}

/// `octet` as a terminal echoes it.
pub(crate) fn show(octet: u8, screen: &mut Vec<u8>) {
    match octet {
        0x7f => screen.extend_from_slice(b"^?"),
        0..0x20 => screen.extend_from_slice(&[b'^', octet | 0x40]),
        _ => screen.push(octet),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[u8], echo: Echo) -> (Vec<Edited>, String) {
        let mut editor = LineEditor::new(16, EditingKeys::default());
        let mut screen = Vec::new();
        let edited = keys.iter().filter_map(|&key| editor.key(key, echo, &mut screen)).collect();
        (edited, String::from_utf8_lossy(&screen).into_owned())
    }

    #[test]
    fn a_line_is_edited() {
        let (lines, screen) = typed("ab\x7fc dé\x08\x17x\r\ny\n".as_bytes(), Echo::Shown);
        assert_eq!(lines, [Edited::Line(b"ac x".to_vec()), Edited::Line(b"y".to_vec())]);
        assert_eq!(screen, "ab\x08 \x08c dé\x08 \x08\x08 \x08x\r\ny\r\n");
    }

    #[test]
    fn keys_that_are_no_text() {
        let (lines, screen) = typed(b"pw\x03\x04a\x04\x15\x16\x03\r", Echo::Shown);
        assert_eq!(lines, [Edited::Interrupt, Edited::EndOfFile, Edited::Line(vec![3])]);
        assert_eq!(screen, "pw^C\r\na\x08 \x08^C\r\n");
        let (lines, screen) = typed(b"secret\x7f\r", Echo::Hidden);
        assert_eq!((lines, &screen[..]), (vec![Edited::Line(b"secre".to_vec())], "\r\n"));
        let (lines, screen) = typed(&[b'x'; 20], Echo::Hidden);
        assert_eq!((lines.len(), &screen[..]), (0, "\x07\x07\x07\x07"));
    }
}
