//! What servers of this family say: an octet of zero when all is well, else a line that says what is not.

use inhost_common::Cleaner;

/// The longest line that is kept; the rest of it is left out.
const LINE_BYTES: usize = 512;

/// What was said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// All is well.
    Fine,
    /// Something failed, and the rest goes on. In rsh and rlogin: refused.
    Warning(String),
    /// Something failed, and nothing goes on.
    Fatal(String),
}

/// Reads one answer after another.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    line: Option<Line>,
}

#[derive(Clone, Debug)]
struct Line {
    fatal: bool,
    octets: Vec<u8>,
}

impl Answer {
    /// Takes octets from the front of `input`; `None` when there is no whole answer yet.
    pub fn take(&mut self, input: &mut &[u8]) -> Option<Said> {
        while let Some((&octet, rest)) = input.split_first() {
            *input = rest;
            match (&mut self.line, octet) {
                (None, 0) => return Some(Said::Fine),
                (None, 1) => self.line = Some(Line { fatal: false, octets: Vec::new() }),
                (None, 2) => self.line = Some(Line { fatal: true, octets: Vec::new() }),
                // A server that fails before it speaks the protocol just says so: a shell, a wrapper.
                (None, b'\n') => return Some(Said::Fatal(String::new())),
                (None, octet) => self.line = Some(Line { fatal: true, octets: vec![octet] }),
                (Some(_), b'\n') => return self.end(),
                (Some(line), octet) if line.octets.len() < LINE_BYTES => line.octets.push(octet),
                (Some(_), _) => {}
            }
        }
        None
    }
    /// Whether nothing of an answer has come.
    pub fn is_empty(&self) -> bool {
        self.line.is_none()
    }
    /// What a line says that has no end, when nothing more comes.
    pub fn end(&mut self) -> Option<Said> {
        let Line { fatal, octets } = self.line.take()?;
        let text = shown(&octets);
        Some(if fatal { Said::Fatal(text) } else { Said::Warning(text) })
    }
}

/// A server's words, fit to be shown: without what a terminal obeys.
pub fn shown(octets: &[u8]) -> String {
    Cleaner::line(octets.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut input: &[u8]) -> Vec<Said> {
        let mut answer = Answer::default();
        let mut said: Vec<Said> = std::iter::from_fn(|| answer.take(&mut input)).collect();
        said.extend(answer.end());
        said
    }

    #[test]
    fn answers_of_all_kinds() {
        let said = all(b"\0\x01no such file\n\0\x02out of \x1bspace\nlogin incorrect\nsh: rcp");
        let text = |text: &str| text.to_owned();
        assert_eq!(
            said,
            [
                Said::Fine,
                Said::Warning(text("no such file")),
                Said::Fine,
                Said::Fatal(text("out of \u{fffd}space")),
                Said::Fatal(text("login incorrect")),
                Said::Fatal(text("sh: rcp")),
            ]
        );
    }

    #[test]
    fn what_turns_the_direction_of_writing_is_not_shown() {
        assert_eq!(all("\x01\u{202e}exe.a\n".as_bytes()), [Said::Warning("\u{fffd}exe.a".to_owned())]);
        assert_eq!(all(b"\x01M\xfcller\n"), [Said::Warning("M\u{fc}ller".to_owned())]);
    }

    #[test]
    fn a_line_without_end_is_kept_in_bounds() {
        let Said::Warning(text) = &all(&[&[1][..], &[b'x'; 100_000]].concat())[0] else { panic!() };
        assert_eq!(text.len(), LINE_BYTES);
    }
}
