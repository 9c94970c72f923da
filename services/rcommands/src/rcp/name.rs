//! Validation of file names that the other end sends.

use core::fmt;
use inhost_common::Pattern;

/// The longest name of a file.
const NAME_BYTES: usize = 255;

/// Why a name is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NameError {
    /// The name is empty, `.` or `..`.
    NoName,
    /// The name holds a slash and would lead to another folder.
    Slash,
    /// The name holds a control character or NUL, or is too long.
    BadOctet,
    /// The name was not asked for (CVE-2019-6111).
    NotAskedFor,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameError::NoName => "that is not a name of a file",
            NameError::Slash => "the name holds a slash and would lead elsewhere",
            NameError::BadOctet => "the name holds a control character, or is too long",
            NameError::NotAskedFor => "that was not asked for",
        })
    }
}
impl core::error::Error for NameError {}

/// Whether a name may be given to a file in the folder that is being filled.
pub fn check(name: &[u8]) -> Result<(), NameError> {
    match name {
        b"" | b"." | b".." => Err(NameError::NoName),
        name if name.contains(&b'/') => Err(NameError::Slash),
        name if name.len() > NAME_BYTES || name.iter().any(u8::is_ascii_control) => Err(NameError::BadOctet),
        _ => Ok(()),
    }
}

/// The names that the other end may send, given what it was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expected {
    /// Names that fit this, in which `*`, `?` and `[...]` mean what they mean to a shell.
    Pattern(Pattern),
    /// Any: what was asked for can only be known by the other end's shell.
    Any,
}

impl Expected {
    /// For a path there.
    pub fn of(path: &str) -> Expected {
        let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let is_for_shell = last.starts_with('~') || last.contains(['$', '`', '{', '\\', '\'', '"', ' ']);
        match last {
            "" | "." | ".." => Expected::Any,
            _ if is_for_shell => Expected::Any,
            last => Expected::Pattern(Pattern::from_octets(last.as_bytes())),
        }
    }
    /// Whether `name` is allowed.
    pub fn allows(&self, name: &[u8]) -> bool {
        match self {
            Expected::Any => true,
            Expected::Pattern(pattern) => pattern.matches_octets(name),
        }
    }
}
