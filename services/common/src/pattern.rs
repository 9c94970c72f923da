//! Shell patterns for names of files, over the crate `glob`.

use glob::MatchOptions;

/// A pattern: `*` is any text, `?` one character, `[a-z]` one of a set, `[!a-z]` or `[^a-z]` one that is not.
///
/// A pattern that is malformed, such as `x[`, matches itself alone.
///
/// ```
/// use inhost_common::Pattern;
/// let pattern = Pattern::new("*.[ch]");
/// assert!(pattern.matches("main.c") && !pattern.matches("main.o"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern(glob::Pattern);

/// A name has no components.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: false,
    require_literal_leading_dot: false,
};

impl Pattern {
    /// Parses a pattern of text.
    pub fn new(pattern: &str) -> Pattern {
        let mut standard = pattern.replace("[^", "[!");
        // Two stars are one here; `glob` gives them another meaning, for paths.
        while standard.contains("**") {
            standard = standard.replace("**", "*");
        }
        let parsed =
            glob::Pattern::new(&standard).or_else(|_| glob::Pattern::new(&glob::Pattern::escape(pattern)));
        Pattern(parsed.unwrap_or_default())
    }
    /// Parses a pattern of octets, for names that need not be UTF-8: to be used with [`Pattern::matches_octets`].
    pub fn from_octets(pattern: &[u8]) -> Pattern {
        Pattern::new(&latin1(pattern))
    }
    /// Whether `name` as a whole is as the pattern says.
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches_with(name, OPTIONS)
    }
    /// Whether `name` as a whole is as the pattern says, octet for octet.
    pub fn matches_octets(&self, name: &[u8]) -> bool {
        self.0.matches_with(&latin1(name), OPTIONS)
    }
}

/// One character for each octet.
fn latin1(octets: &[u8]) -> String {
    octets.iter().map(|&octet| char::from(octet)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_a_shell() {
        let matches = |pattern: &str, name: &str| Pattern::new(pattern).matches(name);
        assert!(matches("*.c", "main.c") && !matches("*.c", "main.h") && matches("a*b*c", "aXbYbc"));
        assert!(
            matches("f?o", "foo") && !matches("f?o", "fo") && matches("a**b", "ab") && matches("*", ".x")
        );
        assert!(matches("x[a-c]", "xb") && !matches("x[!a-c]", "xb") && !matches("x[^a-c]", "xb"));
        assert!(matches("x[]]", "x]") && matches("x[", "x[") && !matches("[", "x") && matches("", ""));
        assert!(!matches(&"*a".repeat(100), &"b".repeat(255)));
        assert!(Pattern::from_octets(b"\xff?").matches_octets(b"\xff\xfe"));
    }

    #[test]
    fn a_hostile_pattern_costs_little() {
        let pattern = Pattern::new(&"a*".repeat(100));
        assert!(!pattern.matches(&format!("{}b", "a".repeat(50))));
        let pattern = Pattern::new(&format!("{}b", "a*".repeat(100)));
        assert!(!pattern.matches(&"a".repeat(255)));
    }
}
