//! Replacing a file as a whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Mode of a file that nobody else reads.
const OWN: u32 = 0o600;

/// Puts `bytes` in the place of the file `path`, with mode 0600. They are written beside it, and the file gets its name when
/// all of them are on the disk: a reader, and a machine that loses its power, sees the old file or the new one.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Two processes that share a folder do not write the same file at once.
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = Path::new(&beside);
    // One that was left behind; and in a folder of many, a link that leads elsewhere.
    let _ = fs::remove_file(beside);
    let opened = fs::OpenOptions::new().write(true).create_new(true).mode(OWN).open(beside);
    let written = opened.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(beside, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(beside);
    }
    written?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_stays_beside() {
        let folder = std::env::temp_dir().join(format!("inhost-replace-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        replace(&path, b"one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        replace(&path, b"other").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"other");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, OWN);
        let below = folder.join("file/below");
        assert!(replace(&below, b"no folder").is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing stays beside");
        // A link in the place of what is written beside it is not followed.
        let beside = folder.join(format!("file.{}.new", std::process::id()));
        std::os::unix::fs::symlink(folder.join("victim"), &beside).unwrap();
        fs::write(folder.join("victim"), b"kept").unwrap();
        replace(&path, b"third").unwrap();
        assert_eq!(fs::read(folder.join("victim")).unwrap(), b"kept");
        fs::remove_dir_all(&folder).unwrap();
    }
}
