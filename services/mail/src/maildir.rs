//! Mailboxes as folders: Maildir. A message is written in `tmp`, and is in `new` once it is on the disk.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::body::Body;

/// Messages that this process has written: names differ by it.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// A Maildir.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Maildir {
    path: PathBuf,
}

impl Maildir {
    /// The Maildir in the folder `path`, which need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Maildir {
        Maildir { path: path.into() }
    }
    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Makes its folders, where they are not there.
    pub fn create(&self) -> io::Result<()> {
        for name in ["tmp", "new", "cur"] {
            DirBuilder::new().recursive(true).mode(0o700).create(self.path.join(name))?;
        }
        Ok(())
    }
    /// Writes a message with `head` in front, its lines ending in a line feed as programs of this system expect it.
    /// When this is done, the message is on the disk. `unix` is the time since 1970. It waits for the disk.
    pub fn deliver(&self, head: &str, body: &Body, unix: std::time::Duration) -> io::Result<PathBuf> {
        let name = self.name(unix);
        let temporary = self.path.join("tmp").join(&name);
        let file = match open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.create()?;
                open(&temporary)?
            }
            opened => opened?,
        };
        let written = write(file, head, body).and_then(|()| {
            let new = self.path.join("new").join(&name);
            fs::rename(&temporary, &new)?;
            File::open(self.path.join("new"))?.sync_all()?;
            Ok(new)
        });
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }
    /// A name that no other message of this Maildir has.
    fn name(&self, unix: std::time::Duration) -> String {
        let node = rustix::system::uname().nodename().to_string_lossy().replace(['/', ':'], "-");
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let (seconds, micros, process) = (unix.as_secs(), unix.subsec_micros(), std::process::id());
        format!("{seconds}.M{micros}P{process}Q{number}.{node}")
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn write(mut file: File, head: &str, body: &Body) -> io::Result<()> {
    let mut pieces = body.pieces();
    let (mut text, mut has_return) = (head.replace("\r\n", "\n").into_bytes(), false);
    while let Some(piece) = pieces.read()? {
        with_line_feeds(&piece, &mut has_return, &mut text);
        file.write_all(&text)?;
        text.clear();
    }
    file.write_all(&text)?;
    file.sync_all()
}

/// CRLF becomes LF; `has_return` is a carriage return at the end of the piece before.
fn with_line_feeds(piece: &[u8], has_return: &mut bool, text: &mut Vec<u8>) {
    let mut rest = piece;
    if core::mem::take(has_return) && rest.first() != Some(&b'\n') {
        text.push(b'\r');
    }
    while let Some(at) = memchr::memchr(b'\r', rest) {
        text.extend_from_slice(&rest[..at]);
        match rest.get(at + 1) {
            Some(b'\n') => {}
            Some(_) => text.push(b'\r'),
            None => *has_return = true,
        }
        rest = &rest[at + 1..];
    }
    text.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_whole_and_its_lines_are_the_system_s() {
        let folder = std::env::temp_dir().join(format!("inhost-maildir-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let maildir = Maildir::new(&folder);
        let body = Body::new("Subject: x\r\n\r\na\rb\r\n");
        let path =
            maildir.deliver("Return-Path: <a@b>\r\n", &body, std::time::Duration::from_secs(7)).unwrap();
        assert_eq!(fs::read(path).unwrap(), b"Return-Path: <a@b>\nSubject: x\n\na\rb\n");
        assert_eq!(fs::read_dir(folder.join("tmp")).unwrap().count(), 0);
        fs::remove_dir_all(&folder).unwrap();
        fs::write(&folder, "a file").unwrap();
        assert!(maildir.deliver("", &body, std::time::Duration::ZERO).is_err());
        fs::remove_file(&folder).unwrap();
        let (mut text, mut has_return) = (Vec::new(), false);
        for piece in [&b"a\r"[..], b"\nb\r", b"c\r\n"] {
            with_line_feeds(piece, &mut has_return, &mut text);
        }
        assert_eq!(text, b"a\nb\rc\n");
    }
}
