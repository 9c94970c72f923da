//! Colours of output, for terminals alone.

use std::io::IsTerminal;

/// Whether and how output is coloured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    is_coloured: bool,
}

impl Style {
    /// Colours for a terminal, unless `NO_COLOR` is set or the terminal says that it has none.
    pub fn of(output: &impl IsTerminal) -> Style {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        Style { is_coloured: wants_colour(output.is_terminal(), &variable("NO_COLOR"), &variable("TERM")) }
    }
    /// Whether there are colours.
    pub fn is_coloured(self) -> bool {
        self.is_coloured
    }
    /// No colours.
    #[cfg(test)]
    pub const PLAIN: Style = Style { is_coloured: false };

    /// Something that works.
    pub fn good(self, text: &str) -> String {
        self.with("32", text)
    }
    /// Something to know.
    pub fn warning(self, text: &str) -> String {
        self.with("33", text)
    }
    /// Something that failed.
    pub fn bad(self, text: &str) -> String {
        self.with("1;31", text)
    }
    /// One of several things, by its number.
    pub fn one_of_many(self, number: usize, text: &str) -> String {
        self.with(["36", "32", "35", "34", "33", "31"][number % 6], text)
    }
    fn with(self, code: &str, text: &str) -> String {
        if self.is_coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// `no_color` as <https://no-color.org> has it: set and not empty.
fn wants_colour(is_terminal: bool, no_color: &str, term: &str) -> bool {
    is_terminal && no_color.is_empty() && term != "dumb"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_that_can_and_may_is_coloured() {
        assert!(wants_colour(true, "", "xterm") && wants_colour(true, "", ""));
        assert!(!wants_colour(false, "", "xterm"));
        assert!(!wants_colour(true, "1", "xterm") && !wants_colour(true, "", "dumb"));
        assert_eq!(Style::PLAIN.bad("x"), "x");
        assert_eq!(Style { is_coloured: true }.good("ok"), "\x1b[32mok\x1b[0m");
    }
}
