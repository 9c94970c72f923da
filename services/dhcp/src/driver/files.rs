//! Storage of leases.

use crate::saved::LONGEST_BYTES;
use std::fs::{self, File};
use std::future::Future;
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;

/// A future of the host's own thread.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Keeps short texts by name.
pub trait Store {
    /// The text that is kept under `name`; `None` when there is none, or it cannot be read.
    fn load<'a>(&'a self, name: &'a str) -> LocalFuture<'a, Option<String>>;
    /// Keeps `text` under `name`: atomically: a crash leaves the old file or the new one.
    fn save<'a>(&'a self, name: &'a str, text: String) -> LocalFuture<'a, io::Result<()>>;
}

/// Keeps each text in a file of one folder, which is made when it is needed.
#[derive(Clone, Debug)]
pub struct Files {
    folder: PathBuf,
}

impl Files {
    /// In `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Files {
        Files { folder: folder.into() }
    }
    /// The file of `name`, of which only plain characters are kept, so that no name leads elsewhere.
    fn path(&self, name: &str) -> PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
        self.folder.join(name.chars().map(plain).collect::<String>())
    }
}

impl Store for Files {
    fn load<'a>(&'a self, name: &'a str) -> LocalFuture<'a, Option<String>> {
        let path = self.path(name);
        Box::pin(blocking::unblock(move || read(&path).ok()))
    }
    fn save<'a>(&'a self, name: &'a str, text: String) -> LocalFuture<'a, io::Result<()>> {
        let path = self.path(name);
        Box::pin(blocking::unblock(move || replace(&path, text.as_bytes())))
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST_BYTES as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// Puts a text in the place of another, in a folder that is made where there is none.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    inhost_common::replace(path, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_replaced_whole_and_no_name_leads_out_of_the_folder() {
        let folder = std::env::temp_dir().join(format!("inhost-dhcp-files-{}", std::process::id()));
        let files = Files::new(folder.join("deeper"));
        let path = files.path("../../etc/in0.lease");
        assert_eq!(path, folder.join("deeper/______etc_in0_lease"));
        replace(&path, b"one").unwrap();
        replace(&path, b"other").unwrap();
        assert_eq!(read(&path).unwrap(), "other");
        assert_eq!(fs::read_dir(folder.join("deeper")).unwrap().count(), 1, "nothing stays beside");
        fs::write(&path, [0xff; 9]).unwrap();
        assert!(read(&path).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
