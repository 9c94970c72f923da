//! Trust in a control socket: one rule for the host that opens it and for its clients.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{Uid, getuid};

use super::protocol::own_directory;

/// Others than the owner may write.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// The sticky bit: a writer cannot replace files of others, as in `/tmp`.
const STICKY: u32 = 0o1000;
/// Bytes of a path that the system takes for a socket (unix(7)).
const PATH_BYTES: usize = 107;
/// Others than the owner may do anything.
const OPEN_TO_OTHERS: u32 = 0o077;

/// Fails unless only this user and root can replace files in the directory of `path`. The directory for hosts in `/tmp`
/// must be this user's alone, because any user may have created it first.
pub(super) fn check_directory(path: &Path) -> io::Result<()> {
    if path.as_os_str().len() > PATH_BYTES {
        let text = format!("the path is too long for a socket, which takes {PATH_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let me = getuid().as_raw();
    if directory == own_directory() {
        let found = fs::symlink_metadata(directory)?;
        if found.is_dir() && found.uid() == me && found.mode() & OPEN_TO_OTHERS == 0 {
            return Ok(());
        }
        return Err(refusal(format!(
            "{} is not a directory of yours alone (owner {}, mode {:04o}; yours would be owner {me}, mode 0700): somebody else \
             may listen there; remove it, or set XDG_RUNTIME_DIR to a directory of your own",
            directory.display(),
            found.uid(),
            found.mode() & 0o7777,
        )));
    }
    let found = fs::metadata(directory)?;
    if !is_trusted(Uid::from_raw(found.uid())) {
        return Err(refusal(format!(
            "{} belongs to user {}, who may listen there in the place of your host; use a directory that belongs to you (user \
             {me}) or to root",
            directory.display(),
            found.uid(),
        )));
    }
    if found.mode() & WRITABLE_BY_OTHERS != 0 && found.mode() & STICKY == 0 {
        return Err(refusal(format!(
            "others may write to {} (mode {:04o}) and listen there in the place of your host; chmod go-w it, or use another \
             directory",
            directory.display(),
            found.mode() & 0o7777,
        )));
    }
    Ok(())
}

/// Fails unless the other end of `socket` runs as this user or as root. Nothing was said to it before.
pub(super) fn check_peer(socket: impl AsFd) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(socket)?.uid;
    if is_trusted(peer) {
        return Ok(());
    }
    Err(refusal(format!(
        "what listens there runs as user {}, not as you (user {}) or root, and was told nothing; end it, or make a host of your \
         own with --link SPEC",
        peer.as_raw(),
        getuid().as_raw(),
    )))
}

fn is_trusted(owner: Uid) -> bool {
    owner == getuid() || owner.is_root()
}

fn refusal(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}
