//! Names of messages in a Maildir: what is unique, and flags behind `:2,`.

use std::fmt;
use std::rc::Rc;

/// Flags of a message: a set of letters. Those that this crate does not know are kept.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(u64);

impl Flags {
    /// None.
    pub const NONE: Flags = Flags(0);
    /// It was read.
    pub const SEEN: Flags = Flags::letter('S');
    /// It was answered.
    pub const REPLIED: Flags = Flags::letter('R');
    /// It was forwarded.
    pub const PASSED: Flags = Flags::letter('P');
    /// It is important.
    pub const FLAGGED: Flags = Flags::letter('F');
    /// It is marked for removal.
    pub const TRASHED: Flags = Flags::letter('T');
    /// It is not finished.
    pub const DRAFT: Flags = Flags::letter('D');

    const fn letter(letter: char) -> Flags {
        match letter {
            'A'..='Z' => Flags(1 << (letter as u32 - 'A' as u32)),
            'a'..='z' => Flags(1 << (letter as u32 - 'a' as u32 + 26)),
            _ => Flags(0),
        }
    }
    /// The letters of `text`; others are ignored.
    pub fn parse(text: &str) -> Flags {
        text.chars().fold(Flags::NONE, |flags, letter| flags.with(Flags::letter(letter)))
    }
    /// Whether all of `flags` are set.
    pub fn contains(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }
    /// With `flags`.
    #[must_use]
    pub fn with(self, flags: Flags) -> Flags {
        Flags(self.0 | flags.0)
    }
    /// Without `flags`.
    #[must_use]
    pub fn without(self, flags: Flags) -> Flags {
        Flags(self.0 & !flags.0)
    }
}

/// The letters in the order of ASCII, as Maildir wants them.
impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = ('A'..='Z').chain('a'..='z').filter(|letter| self.contains(Flags::letter(*letter)));
        letters.into_iter().try_for_each(|letter| write!(f, "{letter}"))
    }
}
impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flags({self})")
    }
}

/// The name of a message in its Maildir.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileName {
    /// What stays when flags change.
    pub unique: Rc<str>,
    /// Its flags.
    pub flags: Flags,
    /// Whether it is in `new`; else it is in `cur`.
    pub is_new: bool,
    /// The name in that folder.
    pub file: Rc<str>,
}

impl FileName {
    /// The file `name` of `new` or `cur`. Hidden ones are not messages.
    pub fn parse(name: &str, is_new: bool) -> Option<FileName> {
        let (unique, info) = name.split_once(':').unwrap_or((name, ""));
        if unique.is_empty() || name.starts_with('.') || name.contains('/') {
            return None;
        }
        let flags = info.strip_prefix("2,").map_or(Flags::NONE, Flags::parse);
        Some(FileName { unique: unique.into(), flags, is_new, file: name.into() })
    }
    /// The same message in `cur` with these flags.
    #[must_use]
    pub fn with_flags(&self, flags: Flags) -> FileName {
        let file = format!("{}:2,{flags}", self.unique).into();
        FileName { unique: self.unique.clone(), flags, is_new: false, file }
    }
    /// Where it is, below the Maildir's folder.
    pub fn relative_path(&self) -> String {
        format!("{}/{}", if self.is_new { "new" } else { "cur" }, self.file)
    }
    /// The time of its delivery in seconds since 1970, which most names begin with.
    pub fn delivered_s(&self) -> i64 {
        let digits = self.unique.split('.').next().unwrap_or_default();
        digits.parse::<u32>().map_or(0, i64::from)
    }
    /// Whether it was never read.
    pub fn is_unread(&self) -> bool {
        !self.flags.contains(Flags::SEEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_letters_behind_the_unique_name() {
        let name = FileName::parse("1700000000.M1P2.host,S=12:2,FSa", false).unwrap();
        assert_eq!((&*name.unique, name.delivered_s()), ("1700000000.M1P2.host,S=12", 1_700_000_000));
        assert!(!name.is_unread() && name.flags.contains(Flags::FLAGGED));
        let answered = name.with_flags(name.flags.with(Flags::REPLIED).without(Flags::FLAGGED));
        assert_eq!(answered.relative_path(), "cur/1700000000.M1P2.host,S=12:2,RSa", "unknown letters stay");
        let new = FileName::parse("x", true).unwrap();
        assert!(new.is_unread() && new.relative_path() == "new/x");
        assert!(FileName::parse(".hidden", true).is_none() && FileName::parse(":2,S", false).is_none());
    }
}
