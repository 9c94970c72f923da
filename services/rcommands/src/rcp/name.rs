//! Names that the other end gives: what is none, and what was not asked for.

use core::fmt;

/// The longest name of a file.
const NAME_BYTES: usize = 255;

/// Why a name is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameError {
    /// It is empty, `.` or `..`.
    NoName,
    /// It holds a slash: it would lead elsewhere.
    Slash,
    /// It holds a control character or an octet of zero, or is too long.
    BadOctet,
    /// It is not what was asked for (CVE-2019-6111).
    NotAskedFor,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameError::NoName => "that is no name of a file",
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

/// What the other end may send, after what it was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expected {
    /// Names that fit this, in which `*`, `?` and `[...]` mean what they mean to a shell.
    Pattern(Vec<u8>),
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
            last => Expected::Pattern(last.as_bytes().to_vec()),
        }
    }
    /// Whether `name` is among it.
    pub fn allows(&self, name: &[u8]) -> bool {
        match self {
            Expected::Any => true,
            Expected::Pattern(pattern) => fits(pattern, name),
        }
    }
}

/// A shell's pattern. It goes back to the last `*` only, so that it takes no longer than pattern times name.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some(_) => one(pattern.get(p..).unwrap_or_default(), name.get(n).copied().unwrap_or_default()),
            None => None,
        };
        match (step, star) {
            (Some(taken), _) => (p, n) = (p + taken, n + 1),
            (None, Some((after, from))) => {
                star = Some((after, from + 1));
                (p, n) = (after, from + 1);
            }
            (None, None) => return false,
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|&octet| octet == b'*')
}

/// How much of the pattern stands for this octet; `None` when it does not.
fn one(pattern: &[u8], octet: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', set @ ..] => {
            let negated = matches!(set.first(), Some(b'!' | b'^'));
            let from = usize::from(negated);
            // A ] that stands first is one of the set.
            let Some(end) = set.iter().skip(from + 1).position(|&octet| octet == b']') else {
                return (octet == b'[').then_some(1);
            };
            let end = from + 1 + end;
            let inside = in_set(set.get(from..end).unwrap_or_default(), octet);
            (inside != negated).then_some(end + 2)
        }
        [own, ..] => (*own == octet).then_some(1),
        [] => None,
    }
}

fn in_set(mut set: &[u8], octet: u8) -> bool {
    loop {
        match set {
            [] => return false,
            [low, b'-', high, rest @ ..] => {
                if (*low..=*high).contains(&octet) {
                    return true;
                }
                set = rest;
            }
            [own, rest @ ..] => {
                if *own == octet {
                    return true;
                }
                set = rest;
            }
        }
    }
}
