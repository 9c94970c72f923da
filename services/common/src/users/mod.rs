//! User accounts: a file of Argon2 hashes.
//!
//! One user a line, `name:hash`, `name:hash:shell`, or for an operator `name:hash:shell:operator`; empty lines and lines that begin with `#` are kept
//! and mean nothing. *name* is a letter or underscore and up to 31 letters, digits, `.`, `_`, `-`; *hash*
//! is a PHC string (`$argon2id$v=19$m=19456,t=2,p=1$salt$hash`); *shell* is an absolute path, instead of
//! the host's, and may be empty before the mark of an operator. The file is of mode 0600; one that others can read or write is refused. It is replaced by
//! renaming, so that a reader sees the old one or the new one.

mod authenticate;
mod password;

use std::cell::RefCell;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use argon2::password_hash::PasswordHasher;
use argon2::password_hash::phc::{Output, PasswordHash};
use argon2::{Algorithm, Argon2, Block, Params, Version};

pub use authenticate::{Authenticate, Source, ThreadAuthenticator, Verdict};
pub use password::{ONE_TIME_ENTROPY_BYTES, one_time_password};

/// Octets of a password. A longer one is refused, unread by Argon2.
pub const PASSWORD_BYTES: usize = 256;
/// Octets of a users file that are read.
const FILE_BYTES: u64 = 1 << 20;

/// A user who may log in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    /// The name that was typed.
    pub name: String,
    /// This user's shell, if it is not the host's.
    pub shell: Option<PathBuf>,
    /// Whether this user may look after the host.
    pub is_operator: bool,
}

/// What marks an operator's line.
const OPERATOR: &str = "operator";

/// Users and their hashes, in memory.
#[derive(Clone, Default)]
pub struct Users {
    lines: Vec<Line>,
}

#[derive(Clone)]
enum Line {
    Other(String),
    User { account: Account, hash: String },
}

/// Why the users could not be read or changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum UserError {
    /// The file could not be read or written.
    File(PathBuf, io::Error),
    /// The file is open to others; it must have mode 0600.
    Permissions(PathBuf, u32),
    /// A line, counted from 1, that is not as the format says.
    Line(usize),
    /// A name that the format does not allow.
    Name(String),
    /// A password that is empty or longer than [`PASSWORD_BYTES`].
    Password,
    /// A shell that is not an absolute path, or has a colon or a line end in it.
    Shell(String),
    /// There is such a user already.
    Exists(String),
    /// There is no such user.
    Unknown(String),
    /// Argon2 failed: memory or entropy is short.
    Hash(String),
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UserError::File(path, error) => write!(f, "{}: {error}", path.display()),
            UserError::Permissions(path, mode) => {
                write!(f, "{}: mode is {mode:04o}, must be 0600; try chmod 600", path.display())
            }
            UserError::Line(number) => {
                write!(f, "line {number} of the users file is not name:hash[:shell[:operator]]")
            }
            UserError::Name(name) => write!(f, "{name:?} is not a user name: letters, digits, . _ - only"),
            UserError::Password => write!(f, "a password has 1 to {PASSWORD_BYTES} octets"),
            UserError::Shell(shell) => write!(f, "{shell:?} is not an absolute path of a shell"),
            UserError::Exists(name) => write!(f, "user {name} exists"),
            UserError::Unknown(name) => write!(f, "no user {name}"),
            UserError::Hash(error) => write!(f, "cannot hash the password: {error}"),
        }
    }
}
impl std::error::Error for UserError {}

impl Users {
    /// The users of a file's text.
    pub fn parse(text: &str) -> Result<Users, UserError> {
        let parse_line = |(index, line): (usize, &str)| {
            if line.trim().is_empty() || line.starts_with('#') {
                return Ok(Line::Other(line.to_owned()));
            }
            let bad = || UserError::Line(index + 1);
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| is_name(name)).ok_or_else(bad)?;
            let hash = fields.next().ok_or_else(bad)?;
            PasswordHash::new(hash).map_err(|_| bad())?;
            let (shell, mark) = (fields.next(), fields.next());
            if fields.next().is_some() || mark.is_some_and(|mark| mark != OPERATOR) {
                return Err(bad());
            }
            let is_operator = mark.is_some();
            // No shell is an empty field only before a mark.
            let shell = shell.filter(|shell| !(shell.is_empty() && is_operator));
            let shell = shell.map(check_shell).transpose().map_err(|_| bad())?;
            let account = Account { name: name.to_owned(), shell, is_operator };
            Ok(Line::User { account, hash: hash.to_owned() })
        };
        Ok(Users { lines: text.lines().enumerate().map(parse_line).collect::<Result<_, _>>()? })
    }

    /// The file's text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            match line {
                Line::Other(other) => text.push_str(other),
                Line::User { account, hash } => {
                    text.push_str(&format!("{}:{hash}", account.name));
                    if account.shell.is_some() || account.is_operator {
                        let shell = account.shell.as_deref().unwrap_or(Path::new(""));
                        text.push_str(&format!(":{}", shell.display()));
                    }
                    if account.is_operator {
                        text.push_str(&format!(":{OPERATOR}"));
                    }
                }
            }
            text.push('\n');
        }
        text
    }

    /// Reads a file, and refuses one that others may read or write.
    pub fn read(path: &Path) -> Result<Users, UserError> {
        let failed = |error| UserError::File(path.to_owned(), error);
        let file = fs::File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(UserError::Permissions(path.to_owned(), mode));
        }
        let mut text = String::new();
        io::Read::read_to_string(&mut io::Read::take(file, FILE_BYTES), &mut text).map_err(failed)?;
        Users::parse(&text)
    }

    /// Reads a file; none is no users.
    pub fn read_or_empty(path: &Path) -> Result<Users, UserError> {
        match Users::read(path) {
            Err(UserError::File(_, error)) if error.kind() == io::ErrorKind::NotFound => Ok(Users::default()),
            other => other,
        }
    }

    /// Waits until nobody else changes a file in the same folder, and keeps others from it until what it gives is dropped:
    /// of two who read, change and write at once, one change would be lost.
    pub fn lock(path: &Path) -> Result<fs::File, UserError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let locked = fs::File::open(folder).and_then(|folder| folder.lock().map(|()| folder));
        locked.map_err(|error| UserError::File(path.to_owned(), error))
    }

    /// Writes the file anew, with mode 0600.
    pub fn write(&self, path: &Path) -> Result<(), UserError> {
        let written = crate::replace(path, self.to_text().as_bytes());
        written.map_err(|error| UserError::File(path.to_owned(), error))
    }

    /// Adds a user. It takes as long as a verification: Argon2id with 19 MiB and two passes (OWASP's
    /// recommendation for 2023 and after).
    pub fn add(&mut self, name: &str, password: &str, shell: Option<&str>) -> Result<(), UserError> {
        if !is_name(name) {
            return Err(UserError::Name(name.to_owned()));
        }
        if self.find(name).is_some() {
            return Err(UserError::Exists(name.to_owned()));
        }
        let shell = shell.map(check_shell).transpose()?;
        let hash = hash(password)?;
        let account = Account { name: name.to_owned(), shell, is_operator: false };
        self.lines.push(Line::User { account, hash });
        Ok(())
    }

    /// Marks a user as an operator, or takes the mark away.
    pub fn set_operator(&mut self, name: &str, is_operator: bool) -> Result<(), UserError> {
        let account = self.lines.iter_mut().find_map(|line| match line {
            Line::User { account, .. } if account.name == name => Some(account),
            _ => None,
        });
        account.ok_or_else(|| UserError::Unknown(name.to_owned()))?.is_operator = is_operator;
        Ok(())
    }

    /// Takes a user away.
    pub fn remove(&mut self, name: &str) -> Result<(), UserError> {
        let before = self.lines.len();
        self.lines.retain(|line| !matches!(line, Line::User { account, .. } if account.name == name));
        if self.lines.len() == before { Err(UserError::Unknown(name.to_owned())) } else { Ok(()) }
    }

    /// The users, in the file's order.
    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.lines.iter().filter_map(|line| match line {
            Line::User { account, .. } => Some(account),
            Line::Other(_) => None,
        })
    }

    fn find(&self, name: &str) -> Option<(&Account, &str)> {
        self.lines.iter().find_map(|line| match line {
            Line::User { account, hash } if account.name == name => Some((account, hash.as_str())),
            _ => None,
        })
    }

    /// The account, if name and password are right. An unknown name takes as long as a wrong password:
    /// `decoy`, a hash of nobody's password, is verified for it. Slow on purpose: not for a shard's thread.
    pub fn verify(&self, name: &str, password: &str, decoy: &Decoy) -> Option<Account> {
        let known = self.find(name);
        let hash = known.map_or(decoy.hash.as_str(), |(_, hash)| hash);
        let memory = &mut *decoy.memory.borrow_mut();
        let right = password.len() <= PASSWORD_BYTES && matches(password, hash, memory) == Some(true);
        known.filter(|_| right).map(|(account, _)| account.clone())
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.accounts().map(|account| &account.name)).finish()
    }
}

/// A hash that no password matches, for users who are not there; and the memory of one verification, which is used for
/// all: an allocator that gets it back each time lays it beside the last, and the process grows by log-ins.
#[derive(Clone)]
pub struct Decoy {
    hash: String,
    memory: RefCell<Vec<Block>>,
}

impl Decoy {
    /// A decoy that costs what a real hash costs.
    pub fn new() -> Result<Decoy, UserError> {
        Ok(Decoy { hash: hash("nobody")?, memory: RefCell::default() })
    }
}

fn hash(password: &str) -> Result<String, UserError> {
    if password.is_empty() || password.len() > PASSWORD_BYTES {
        return Err(UserError::Password);
    }
    let hash: PasswordHash = Argon2::default()
        .hash_password(password.as_bytes())
        .map_err(|error| UserError::Hash(error.to_string()))?;
    Ok(hash.to_string())
}

/// Whether it is the hash's password; `None` where the hash is none.
fn matches(password: &str, hash: &str, memory: &mut Vec<Block>) -> Option<bool> {
    let hash = PasswordHash::new(hash).ok()?;
    let algorithm = Algorithm::try_from(hash.algorithm.as_str()).ok()?;
    let version = hash.version.map_or(Ok(Version::default()), Version::try_from).ok()?;
    let params = Params::try_from(&hash).ok()?;
    let (salt, expected) = (hash.salt?, hash.hash?);
    memory.resize(params.block_count(), Block::new());
    let mut place = [0; Output::MAX_LENGTH];
    let found = place.get_mut(..expected.as_bytes().len())?;
    let argon2 = Argon2::new(algorithm, version, params);
    argon2.hash_password_into_with_memory(password.as_bytes(), &salt, found, &mut *memory).ok()?;
    // Outputs are compared in constant time.
    Some(Output::new(found).ok()? == expected)
}

fn is_name(name: &str) -> bool {
    let first = name.bytes().next().is_some_and(|c| c.is_ascii_alphabetic() || c == b'_');
    first && name.len() <= 32 && name.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-".contains(&c))
}

fn check_shell(shell: &str) -> Result<PathBuf, UserError> {
    let valid = shell.starts_with('/') && !shell.contains([':', '\n', '\r', '\0']);
    if valid { Ok(PathBuf::from(shell)) } else { Err(UserError::Shell(shell.to_owned())) }
}

#[cfg(test)]
mod tests;
