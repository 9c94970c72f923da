//! `.plan` and `.project` files, below the configured folder.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use inhost_common::Cleaner;
use inhost_common::trust::distrust;
use rustix::fs::{Mode, OFlags, open, openat};
use rustix::process::geteuid;

use crate::server::Notes;

/// The most octets of a `.plan` that are shown.
const PLAN_BYTES: u64 = 16 << 10;
/// Octets of a `.project` that are shown: of its first line.
const PROJECT_BYTES: u64 = 256;

/// The folder with a folder for each user, `NAME/.plan` and `NAME/.project`.
///
/// Files and folders count only if they belong to root or to the user who runs the host, if nobody else can write them,
/// and if no name on the way is a link: what another user of the machine put there is not shown in the host's name.
#[derive(Clone, Debug)]
pub struct NotesFolder(Arc<OwnedFd>);

impl NotesFolder {
    /// Opens the folder. Fails on one that others can write.
    pub fn open(path: &Path) -> io::Result<NotesFolder> {
        let folder = open(path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        trusted(folder).map(|folder| NotesFolder(Arc::new(folder)))
    }
    /// Reads the notes of `login`. Blocks on the disk.
    pub fn read(&self, login: &str) -> Notes {
        // A login name is one name of a file; else it is nobody's.
        if login.contains('/') || login.starts_with('.') {
            return Notes::default();
        }
        let folder = OFlags::DIRECTORY | OFlags::RDONLY;
        let Ok(own) = enter(&*self.0, login, folder) else { return Notes::default() };
        let text = |name, limit| {
            let mut octets = Vec::new();
            // A pipe makes nobody wait.
            let file = enter(&own, name, OFlags::RDONLY | OFlags::NONBLOCK).map(File::from)?;
            if !file.metadata()?.is_file() {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            file.take(limit).read_to_end(&mut octets).map(|_| octets)
        };
        let line = |octets: Vec<u8>| {
            Cleaner::line(octets.split(|&octet| octet == b'\n').next().unwrap_or_default().trim_ascii_end())
        };
        Notes {
            project: text(".project", PROJECT_BYTES).ok().map(line),
            plan: text(".plan", PLAN_BYTES).ok().map(|octets| clean(&octets)),
        }
    }
}

/// Opens a name that is not a link, if it can be trusted.
fn enter(folder: impl AsFd, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
    trusted(openat(folder, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}

fn trusted(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    let file = File::from(descriptor);
    let metadata = file.metadata()?;
    match distrust(metadata.uid(), metadata.mode(), geteuid().as_raw()) {
        None => Ok(file.into()),
        Some(why) => Err(io::Error::new(io::ErrorKind::PermissionDenied, why)),
    }
}

/// Text of several lines, fit for a terminal.
pub(crate) fn clean(octets: &[u8]) -> String {
    let (mut text, mut cleaner) = (String::new(), Cleaner::default());
    cleaner.take(octets, &mut text);
    cleaner.end(&mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_files_that_can_be_trusted_are_shown_and_no_more_than_fits() {
        let root = std::env::temp_dir().join(format!("inhost-plans-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("ada")).unwrap();
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let (plan, project) = (root.join("ada/.plan"), root.join("ada/.project"));
        fs::write(&plan, [b"weave\x1b[2J\r\n".to_vec(), vec![b'x'; 20_000]].concat()).unwrap();
        fs::write(&project, "an engine\nand more\n").unwrap();
        for path in [&root, &root.join("ada")] {
            mode(path, 0o755);
        }
        for path in [&plan, &project] {
            mode(path, 0o644);
        }
        let folder = NotesFolder::open(&root).unwrap();
        let notes = folder.read("ada");
        assert_eq!(notes.project.as_deref(), Some("an engine"));
        let shown = notes.plan.unwrap();
        assert!(shown.starts_with("weave\u{fffd}[2J\nxx") && shown.len() < 17_000);
        for login in ["eve", "..", ".", "ada/..", "../ada"] {
            assert_eq!(folder.read(login), Notes::default(), "{login}");
        }
        // Files writable by others and links are ignored; a pipe does not block.
        mode(&plan, 0o666);
        assert_eq!(folder.read("ada").plan, None);
        fs::remove_file(&plan).unwrap();
        symlink(&project, &plan).unwrap();
        assert_eq!(folder.read("ada").plan, None);
        fs::remove_file(&plan).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &plan,
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o644),
            0,
        )
        .unwrap();
        assert_eq!(folder.read("ada").plan, None);
        mode(&root.join("ada"), 0o777);
        assert_eq!(folder.read("ada"), Notes::default());
        mode(&root, 0o777);
        assert!(NotesFolder::open(&root).is_err());
        fs::remove_dir_all(&root).unwrap();
    }
}
