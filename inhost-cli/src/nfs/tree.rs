//! Files and directories as a whole, from and to a server.

use super::server::{CLEAR_WITHIN, Place, Server};
use super::unicode;
use crate::args::NfsOptions;
use crate::failure::{Failure, print_error};
use crate::ftp::show::{clean, size};
use crate::output::counted;
use crate::progress::Progress;
use inhost_common::storage::{
    Facts, Folder, Kind, Storage, StorageError, Store, UnixTime, VirtualPath, name_text,
};
use inhost_nfs::client::{CallError, ClientError, Remote};
use inhost_nfs::codec::nfs::{Attributes, FileType, SetAttributes, SetTime, Status, Time};
use inhost_runtime::entropy;
use inhost_socket::Host;
use serde_json::{Value, json};
use std::cell::Cell;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

/// Directories within directories.
const DEPTH_LIMIT: usize = 64;
/// The permission bits that are kept.
const PERMISSIONS: u32 = 0o777;
/// Until a file is whole, it is its owner's alone.
const UMASK: u32 = 0o077;
/// Permission bits of a file at the server until it is whole.
const FILE_MODE: u32 = 0o600;
/// Permission bits of a directory that is filled.
const OWNER_MODE: u32 = 0o700;
const NEITHER: &str = "it is neither a file nor a directory";
const LINK: &str = "it is a symbolic link";
/// What stands around the name of a file at the server until it is whole, as around that of an unfinished upload.
const PREFIX: &str = ".";
const SUFFIX: &str = ".inhost-part";
/// Octets of a name that servers take.
const NAME_BYTES: usize = 255;
const NO_NAME: &str = "no file here can have this name";

/// Why a file or directory was not copied.
#[derive(PartialEq, Eq, Debug)]
pub enum TreeError {
    /// An operation failed.
    Client(ClientError),
    /// This directory is too deep within others.
    Deep(String),
    /// An operation failed, and this file is left at the server.
    Left(ClientError, String),
}

impl From<ClientError> for TreeError {
    fn from(error: ClientError) -> TreeError {
        TreeError::Client(error)
    }
}
impl From<StorageError> for TreeError {
    fn from(error: StorageError) -> TreeError {
        TreeError::Client(error.into())
    }
}
impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TreeError::Client(error) => error.fmt(f),
            TreeError::Deep(path) => {
                write!(f, "{}: directories are nested more than {DEPTH_LIMIT} deep", clean(path))
            }
            TreeError::Left(error, path) => write!(f, "{error}; {} is left there, unfinished", clean(path)),
        }
    }
}

/// What was moved.
#[derive(Default)]
pub struct Moved {
    verb: &'static str,
    files: u64,
    directories: u64,
    bytes: u64,
    seconds: f64,
    /// Links, devices and what else is not copied, and why.
    skipped: Vec<(String, &'static str)>,
}

impl Moved {
    pub fn json(&self) -> Value {
        json!({
            "direction": self.verb, "files": self.files, "directories": self.directories, "bytes": self.bytes,
            "seconds": self.seconds, "bytes_per_second": (self.bytes as f64 / self.seconds.max(1e-9)) as u64,
            "skipped": self.skipped.iter().map(|(name, _)| unicode(name)).collect::<Value>(),
        })
    }
    pub fn sentence(&self) -> String {
        let rate = size((self.bytes as f64 / self.seconds.max(0.001)) as u64);
        format!("{}, {} ({rate}/s)\n", counted(self.files, "file"), counted(self.bytes, "byte"))
    }
    /// What was not copied, on standard error; that makes it a failure.
    pub fn told(&self) -> Result<(), Failure> {
        for (name, why) in &self.skipped {
            print_error(format_args!("not copied, since {why}: {}", clean(name)));
        }
        match self.skipped.len() as u64 {
            0 => Ok(()),
            count => Err(Failure::operation(format!("nfs: {} left out", counted(count, "thing")))),
        }
    }
    fn skip(&mut self, name: String, why: &'static str) {
        self.skipped.push((name, why));
    }
}

/// A folder here and a server there.
struct Work<'a> {
    remote: &'a Remote<Host>,
    folder: &'a Folder,
    is_quiet: bool,
    is_recursive: bool,
    moved: Moved,
}

/// Fetches `place` to `to`, a name or a folder.
pub async fn get(
    server: &Server,
    place: &Place,
    to: &Path,
    is_recursive: bool,
    options: &NfsOptions,
) -> Result<Moved, String> {
    let is_folder = to.is_dir();
    let (folder, name) = match is_folder {
        true => (to, place.name().to_owned()),
        false => (to.parent().unwrap_or(Path::new("")), file_name(to)),
    };
    let folder = open(folder)?;
    if name.is_empty() {
        return Err(format!("{}: name what to fetch", place.path));
    }
    server
        .mounted(&place.path, async |remote, inside| {
            let (folder, is_quiet) = (&folder, options.quiet || options.json);
            let mut work = Work {
                remote,
                folder,
                is_quiet,
                is_recursive,
                moved: Moved { verb: "get", ..Moved::default() },
            };
            let began = remote.rpc().clock().now();
            work.fetch(inside, &VirtualPath::root().join(&name), 0).await?;
            work.moved.seconds = remote.rpc().clock().now().since(began).as_secs_f64();
            Ok::<_, TreeError>(work.moved)
        })
        .await
}

/// Sends `from` to `place`.
pub async fn put(
    server: &Server,
    from: &Path,
    place: &Place,
    is_recursive: bool,
    options: &NfsOptions,
) -> Result<Moved, String> {
    // A link is followed, and what it leads to is stored under the link's name.
    let source = from.canonicalize().map_err(|e| format!("{}: {e}", from.display()))?;
    let own = file_name(&source);
    let folder = open(source.parent().filter(|_| !own.is_empty()).ok_or("/ cannot be sent as a whole")?)?;
    let name = if from.file_name().is_some() { file_name(from) } else { own.clone() };
    server
        .mounted(&place.path, async |remote, inside| {
            let is_in = inside.is_empty() || inside.ends_with('/');
            let target = if is_in { format!("{inside}/{name}") } else { inside.to_owned() };
            let (folder, is_quiet) = (&folder, options.quiet || options.json);
            let mut work = Work {
                remote,
                folder,
                is_quiet,
                is_recursive,
                moved: Moved { verb: "put", ..Moved::default() },
            };
            let began = remote.rpc().clock().now();
            work.send(&VirtualPath::root().join(&own), &target, 0).await?;
            work.moved.seconds = remote.rpc().clock().now().since(began).as_secs_f64();
            Ok::<_, TreeError>(work.moved)
        })
        .await
}

fn file_name(of: &Path) -> String {
    of.file_name().map(|name| name_text(name.as_encoded_bytes())).unwrap_or_default()
}

fn open(folder: &Path) -> Result<Folder, String> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Folder::open(folder).map_err(|e| format!("cannot open the folder {}: {e}", folder.display()))
}

impl Work<'_> {
    async fn fetch(&mut self, from: &str, to: &VirtualPath, depth: usize) -> Result<(), TreeError> {
        let of = self.remote.file_or_link(from).await?.attributes;
        match of.kind {
            FileType::Regular => self.fetch_file(from, to, &of).await?,
            FileType::Directory if !self.is_recursive => return Err(StorageError::IsDirectory.into()),
            FileType::Directory if depth >= DEPTH_LIMIT => return Err(TreeError::Deep(from.to_owned())),
            FileType::Directory => {
                let is_new = match self.folder.make_directory(to, UMASK).await {
                    Ok(()) => true,
                    Err(StorageError::Exists) => false,
                    Err(why) => return Err(why.into()),
                };
                self.moved.directories += u64::from(is_new);
                for of in self.remote.list(from).await? {
                    let Some(name) = own_name(&of.name) else {
                        self.moved.skip(format!("{from}/{}", name_text(&of.name)), NO_NAME);
                        continue;
                    };
                    let (from, to) = (format!("{from}/{name}"), to.join(&name));
                    Box::pin(self.fetch(&from, &to, depth + 1)).await?;
                }
                match self.keep(to, &of).await {
                    // It was there before, and belongs to somebody else.
                    Err(StorageError::Denied) if !is_new => {}
                    kept => kept?,
                }
            }
            FileType::Link => self.moved.skip(from.to_owned(), LINK),
            _ => self.moved.skip(from.to_owned(), NEITHER),
        }
        Ok(())
    }
    async fn fetch_file(&mut self, from: &str, to: &VirtualPath, of: &Attributes) -> Result<(), TreeError> {
        let stored = self.folder.store(to, Store::Replace, UMASK).await?;
        let progress = self.progress(to, of.size_bytes);
        let shown = Rc::new(Cell::new(0));
        let tell = |bytes| shown.set(bytes);
        let fetching = self.remote.get(from, stored.sink, &tell);
        self.moved.bytes += progress.during(shown.clone(), fetching).await?;
        self.keep(to, of).await?;
        self.moved.files += 1;
        Ok(())
    }
    /// Gives a file here the time and the permissions that it has at the server: the time first, for it needs a file that
    /// may be read.
    async fn keep(&self, to: &VirtualPath, of: &Attributes) -> Result<(), StorageError> {
        self.folder.set_modified(to, unix_time(of.modified)).await?;
        self.folder.set_mode(to, of.mode & PERMISSIONS).await
    }
    async fn send(&mut self, from: &VirtualPath, to: &str, depth: usize) -> Result<(), TreeError> {
        // One that is named on the command line is followed.
        if depth > 0 && self.folder.is_link(from).await? {
            self.moved.skip(from.to_string(), LINK);
            return Ok(());
        }
        let facts = self.folder.facts(from).await?;
        match facts.kind {
            Kind::File => self.send_file(from, to, &facts).await?,
            Kind::Directory if !self.is_recursive => return Err(StorageError::IsDirectory.into()),
            Kind::Directory if depth >= DEPTH_LIMIT => return Err(TreeError::Deep(from.to_string())),
            Kind::Directory => {
                let is_new = self.remote.file(to).await.is_err();
                if is_new {
                    self.remote.make_directory(to, OWNER_MODE).await?;
                    self.moved.directories += 1;
                }
                self.send_names(from, to, depth).await?;
                match self.remote.set_attributes(to, attributes(&facts)).await {
                    // It was there before, and belongs to somebody else.
                    Err(ClientError::Refused { status: Status::PERM | Status::ACCES, .. }) if !is_new => {}
                    kept => kept?,
                }
            }
            _ => self.moved.skip(from.to_string(), NEITHER),
        }
        Ok(())
    }
    async fn send_file(&mut self, from: &VirtualPath, to: &str, facts: &Facts) -> Result<(), TreeError> {
        let source = self.folder.retrieve(from).await?;
        let progress = self.progress(from, source.size_bytes());
        let shown = Rc::new(Cell::new(0));
        let tell = |bytes| shown.set(bytes);
        if self.remote.file_or_link(to).await.is_ok_and(|of| of.attributes.kind == FileType::Directory) {
            return Err(ClientError::Refused { procedure: "Create", status: Status::ISDIR }.into());
        }
        // Until it is whole it has another name, so that what is there stays if this fails.
        let part = part_name(to)?;
        let sending = async {
            let bytes = self.remote.put(&*source, &part, FILE_MODE, &tell).await?;
            self.remote.set_attributes(&part, attributes(facts)).await?;
            self.remote.rename(&part, to).await?;
            Ok(bytes)
        };
        match progress.during(shown.clone(), sending).await {
            Ok(bytes) => self.moved.bytes += bytes,
            Err(why) => return Err(self.clear(why, part).await),
        }
        self.moved.files += 1;
        Ok(())
    }
    /// Removes what is unfinished at the server, because of `why`.
    async fn clear(&self, why: ClientError, part: String) -> TreeError {
        let clock = self.remote.rpc().clock();
        if let Ok(Ok(())) = clock.timeout(CLEAR_WITHIN, self.remote.remove(&part)).await {
            return why.into();
        }
        // It may never have been made.
        match clock.timeout(CLEAR_WITHIN, self.remote.file_or_link(&part)).await {
            Ok(Err(ClientError::Refused { status: Status::NOENT, .. })) => why.into(),
            _ => TreeError::Left(why, part.replace("//", "/")),
        }
    }
    async fn send_names(&mut self, from: &VirtualPath, to: &str, depth: usize) -> Result<(), TreeError> {
        let mut listing = self.folder.list(from).await?;
        loop {
            let (rest, batch) = listing.next().await;
            listing = rest;
            let batch = batch?;
            if batch.is_empty() {
                return Ok(());
            }
            let is_inside = |facts: &Facts| !matches!(facts.kind, Kind::This | Kind::Parent);
            for (name, _) in batch.into_iter().filter(|(_, facts)| is_inside(facts)) {
                let (from, to) = (from.join(&name), format!("{to}/{name}"));
                Box::pin(self.send(&from, &to, depth + 1)).await?;
            }
        }
    }
    fn progress(&self, path: &VirtualPath, bytes: u64) -> Progress {
        let name = path.name().unwrap_or_default();
        Progress::new(self.remote.rpc().clock(), name, self.is_quiet).of(Some(bytes))
    }
}

/// The path of a file at the server until it is whole: beside `path`, and not that of another one who sends it now.
fn part_name(path: &str) -> Result<String, ClientError> {
    let drawn = entropy().map_err(|e| CallError::Unreachable(format!("no entropy: {e}")))?;
    let tag = u32::from_ne_bytes([drawn[0], drawn[1], drawn[2], drawn[3]]);
    Ok(part_of(path, tag))
}

fn part_of(path: &str, tag: u32) -> String {
    let (above, name) = path.rsplit_once('/').map_or(("", path), |(above, name)| (above, name));
    let end = format!(".{tag:08x}{SUFFIX}");
    // A long name is cut. Its text has no fewer octets than the name.
    let name = &name[..name.floor_char_boundary(NAME_BYTES - PREFIX.len() - end.len())];
    format!("{above}/{PREFIX}{name}{end}")
}

/// Time and permissions of a file here, for the server.
fn attributes(of: &Facts) -> SetAttributes {
    let modified = of.modified.map_or(SetTime::Keep, |time| SetTime::To(nfs_time(time)));
    SetAttributes { mode: of.mode.map(|mode| mode & PERMISSIONS), modified, ..SetAttributes::default() }
}

fn unix_time(of: Time) -> UnixTime {
    UnixTime { seconds: i64::from(of.seconds), nanoseconds: of.nanoseconds }
}

/// A time as NFS has it: from 1970 to 2106. Others become the nearest one.
fn nfs_time(of: UnixTime) -> Time {
    match u32::try_from(of.seconds) {
        Ok(seconds) => Time { seconds, nanoseconds: of.nanoseconds },
        Err(_) if of.seconds < 0 => Time::default(),
        Err(_) => Time { seconds: u32::MAX, nanoseconds: 0 },
    }
}

/// A name that a server gives, if a file here may have it: it leads nowhere else.
fn own_name(name: &[u8]) -> Option<String> {
    let is_plain = !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0);
    is_plain.then(|| name_text(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_common::storage::name_octets;

    #[test]
    fn names_keep_their_octets_and_lead_nowhere_else() {
        for name in [&b"plain"[..], "Mädchen".as_bytes(), b"M\xe4dchen", b"\xff", b"..."] {
            assert_eq!(&*name_octets(&own_name(name).unwrap()), name);
        }
        for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0"] {
            assert_eq!(own_name(name), None, "{name:?}");
        }
        assert_eq!(unicode(&name_text(b"M\xe4dchen")), "M\u{fffd}dchen");
    }

    #[test]
    fn an_unfinished_file_is_beside_its_name() {
        assert_eq!(part_of("/a/b.txt", 0xabc), "/a/.b.txt.00000abc.inhost-part");
        assert_eq!(part_of("/b", 1), "/.b.00000001.inhost-part");
        let long = part_of(&format!("/a/{}", "\u{e4}".repeat(127)), 1);
        assert!(long.len() - 3 <= NAME_BYTES && long.ends_with("\u{e4}.00000001.inhost-part"), "{long}");
    }

    #[test]
    fn times_that_nfs_does_not_have_become_the_nearest_one() {
        let time = |seconds| nfs_time(UnixTime { seconds, nanoseconds: 5 });
        assert_eq!(time(-1), Time { seconds: 0, nanoseconds: 0 });
        assert_eq!(time(7), Time { seconds: 7, nanoseconds: 5 });
        assert_eq!(time(1 << 32), Time { seconds: u32::MAX, nanoseconds: 0 });
    }
}
