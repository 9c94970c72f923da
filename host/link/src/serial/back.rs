//! Reopening rules: whether a tty that hung up may return under its name.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The name of a tty that hung up, and whether it may lead to a working one again.
#[derive(Debug)]
pub(super) enum Gone {
    /// A device that is there for good, as `/dev/ttyS0`: it may be tried at any time.
    Device,
    /// A symbolic link to a pty. The pty's number is reused by the next pty, so the link must be made anew first.
    Link(NameIdentity),
}

impl Gone {
    /// Of the tty that was opened as `path` when that was `name`; `None` when the name itself is a pty's, which never
    /// comes back.
    pub(super) fn of(path: &str, name: NameIdentity) -> Option<Gone> {
        match (leads_to_pty(path), is_pty_name(Path::new(path))) {
            (_, true) => None,
            // A link that leads nowhere belonged to a pty too, most likely.
            (Some(false), _) => Some(Gone::Device),
            (Some(true) | None, _) => Some(Gone::Link(name)),
        }
    }
    /// Whether to try to open `path` now.
    pub(super) fn may_be_back(&self, path: &str) -> bool {
        match self {
            Gone::Device => true,
            Gone::Link(before) => NameIdentity::of(path).is_ok_and(|now| now != *before),
        }
    }
}

fn is_pty_name(path: &Path) -> bool {
    path.starts_with("/dev/pts")
}

/// Whether `path` resolves to a pty; `None` when it does not resolve.
fn leads_to_pty(path: &str) -> Option<bool> {
    std::fs::canonicalize(path).ok().map(|path| is_pty_name(&path))
}

/// The identity of a file behind a name: it changes when the name is made anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NameIdentity {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl NameIdentity {
    pub(super) fn of(path: &str) -> io::Result<Self> {
        let data = std::fs::symlink_metadata(path)?;
        Ok(NameIdentity { device: data.dev(), inode: data.ino(), changed: (data.ctime(), data.ctime_nsec()) })
    }
}
