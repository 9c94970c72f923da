//! A Maildir on the disk, which other programs read and write at the same time.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use inhost_mail::{Body, Maildir};
use rustix::fs::OFlags;

use crate::name::{FileName, Flags};
use crate::summary::{HEADER_BYTES, Summary};

/// Most messages that are listed.
pub const MESSAGES: usize = 1_000_000;
/// Octets of a message that are read; the rest is not shown.
pub const MESSAGE_BYTES: usize = 64 << 20;
/// Octets that are read first for a header.
const FIRST_BYTES: usize = 8 << 10;

/// A Maildir that is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mailbox {
    path: PathBuf,
}

/// When the folders of a Maildir changed last; it differs once a message came, went or was renamed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp([(i64, i64); 2]);

impl Mailbox {
    /// The Maildir in `path`. It is an error if there is none.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Mailbox> {
        let path = path.into();
        match path.join("cur").is_dir() || path.join("new").is_dir() {
            true => Ok(Mailbox { path }),
            false => {
                Err(io::Error::new(io::ErrorKind::NotFound, "it is not a Maildir: it has no folder cur"))
            }
        }
    }
    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// The Maildir++ folder `.name` inside; it is made if it is missing.
    pub fn folder(&self, name: &str) -> io::Result<Mailbox> {
        let path = self.path.join(format!(".{name}"));
        if !path.exists() {
            DirBuilder::new().mode(0o700).create(&path)?;
            Maildir::new(&path).create()?;
            OpenOptions::new().write(true).create(true).truncate(false).open(path.join("maildirfolder"))?;
        }
        Mailbox::open(path)
    }
    /// Names of the Maildir++ folders inside, without their point.
    pub fn folders(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let is_folder = |name: &String| self.path.join(format!(".{name}")).join("cur").is_dir();
        let names =
            entries.filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix('.')?.to_owned()));
        let mut names: Vec<_> = names.filter(is_folder).take(1000).collect();
        names.sort();
        names
    }
    /// When it changed.
    pub fn stamp(&self) -> Stamp {
        let time = |name| {
            let facts = fs::metadata(self.path.join(name));
            facts.map_or((0, 0), |facts| (facts.mtime(), facts.mtime_nsec()))
        };
        Stamp([time("new"), time("cur")])
    }
    /// All messages, by their unique names. One that is in `new` and in `cur` is being moved: that in `cur` counts.
    pub fn scan(&self) -> io::Result<Vec<FileName>> {
        let mut names = Vec::new();
        for (folder, is_new) in [("new", true), ("cur", false)] {
            let entries = match fs::read_dir(self.path.join(folder)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries.flatten() {
                if names.len() < MESSAGES
                    && let Some(name) =
                        entry.file_name().to_str().and_then(|name| FileName::parse(name, is_new))
                {
                    names.push(name);
                }
            }
        }
        names.sort_by(|a, b| a.unique.cmp(&b.unique).then(a.is_new.cmp(&b.is_new)));
        names.dedup_by(|b, a| a.unique == b.unique);
        Ok(names)
    }
    /// The message, of `limit` octets at most, whatever its flags are now.
    pub fn read(&self, name: &FileName, limit: usize) -> io::Result<Vec<u8>> {
        let (mut file, _) = self.file(name)?;
        let mut octets = Vec::new();
        file.by_ref().take(limit as u64).read_to_end(&mut octets)?;
        Ok(octets)
    }
    /// Its summary: only its header is read.
    pub fn summary(&self, name: &FileName) -> io::Result<Summary> {
        let (mut file, size_bytes) = self.file(name)?;
        let mut octets = Vec::with_capacity(FIRST_BYTES);
        let mut limit = FIRST_BYTES;
        while octets.len() < limit {
            let room = (limit - octets.len()) as u64;
            if file.by_ref().take(room).read_to_end(&mut octets)? < room as usize {
                break;
            }
            let is_whole = octets.windows(2).any(|two| two == b"\n\n")
                || octets.windows(4).any(|four| four == b"\r\n\r\n");
            limit = if is_whole { octets.len() } else { HEADER_BYTES };
        }
        Ok(Summary::parse(&octets, size_bytes, name.delivered_s()))
    }
    /// Sets and clears flags, which moves it to `cur`. Flags that another program changed meanwhile stay as they are.
    pub fn change(&self, name: &FileName, set: Flags, clear: Flags) -> io::Result<FileName> {
        let mut from = name.clone();
        for is_second in [false, true] {
            let to = from.with_flags(from.flags.with(set).without(clear));
            if to == from {
                return Ok(from);
            }
            let (old, new) = (self.path_of(&from), self.path_of(&to));
            match fs::rename(old, new) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && !is_second => {
                    from = self.find(&from)?
                }
                renamed => return renamed.map(|()| to),
            }
        }
        Ok(from)
    }
    /// Removes it. One that is gone is removed.
    pub fn remove(&self, name: &FileName) -> io::Result<()> {
        let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        match fs::remove_file(self.path_of(name)) {
            Err(error) if is_gone(&error) => match self.find(name) {
                Ok(now) => fs::remove_file(self.path_of(&now)),
                Err(error) if is_gone(&error) => Ok(()),
                Err(error) => Err(error),
            },
            removed => removed,
        }
    }
    /// Writes a message with these flags. `unix` is the time since 1970.
    pub fn add(&self, text: Vec<u8>, flags: Flags, unix: Duration) -> io::Result<()> {
        let path = Maildir::new(&self.path).deliver("", &Body::new(text), unix)?;
        let name =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| FileName::parse(name, true));
        name.map_or(Ok(()), |name| self.change(&name, flags, Flags::NONE).map(drop))
    }
    /// Where a message is.
    pub fn path_of(&self, name: &FileName) -> PathBuf {
        self.path.join(name.relative_path())
    }
    /// Its name now.
    fn find(&self, name: &FileName) -> io::Result<FileName> {
        let found = self.scan()?.into_iter().find(|other| other.unique == name.unique);
        found
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "another program has removed the message"))
    }
    /// The file of a message, and its size. Links are not followed, and what is not a file is not opened.
    fn file(&self, name: &FileName) -> io::Result<(File, u64)> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let open =
            |name: &FileName| OpenOptions::new().read(true).custom_flags(flags).open(self.path_of(name));
        let file = match open(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => open(&self.find(name)?)?,
            opened => opened?,
        };
        let facts = file.metadata()?;
        match facts.is_file() {
            true => Ok((file, facts.len())),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a file")),
        }
    }
}
