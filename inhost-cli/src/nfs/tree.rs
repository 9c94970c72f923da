//! Files and directories as a whole, from and to a server.

use super::server::{Place, Server};
use crate::args::NfsOptions;
use crate::ftp::show::{clean, size};
use crate::progress::Progress;
use inhost_common::storage::{Facts, Folder, Kind, Storage, StorageError, Store, UnixTime, VirtualPath};
use inhost_nfs::client::{ClientError, Remote};
use inhost_nfs::codec::nfs::{FileType, SetAttributes, SetTime, Time};
use inhost_socket::Host;
use serde_json::{Value, json};
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

/// Directories within directories.
const DEPTH_LIMIT: usize = 64;
/// Permission bits that may not be given.
const UMASK: u32 = 0o022;

/// What was moved.
#[derive(Default)]
pub struct Moved {
    verb: &'static str,
    files: u64,
    directories: u64,
    bytes: u64,
    seconds: f64,
    /// Links, devices and what else is not copied.
    skipped: Vec<String>,
}

impl Moved {
    pub fn json(&self) -> Value {
        json!({
            "direction": self.verb, "files": self.files, "directories": self.directories, "bytes": self.bytes,
            "seconds": self.seconds, "bytes_per_second": (self.bytes as f64 / self.seconds.max(1e-9)) as u64,
            "skipped": self.skipped,
        })
    }
    pub fn sentence(&self) -> String {
        let rate = size((self.bytes as f64 / self.seconds.max(0.001)) as u64);
        let mut text = format!("{} files, {} bytes ({rate}/s)\n", self.files, self.bytes);
        for name in &self.skipped {
            text += &format!("not copied, since it is neither file nor directory: {}\n", clean(name));
        }
        text
    }
}

/// A folder here and a server there.
struct Work<'a> {
    remote: &'a Remote<Host>,
    folder: &'a dyn Storage,
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
            Ok::<_, ClientError>(work.moved)
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
    let name = file_name(&from.canonicalize().map_err(|e| format!("{}: {e}", from.display()))?);
    let folder = open(from.parent().unwrap_or(Path::new("")))?;
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
            work.send(&VirtualPath::root().join(&name), &target, 0).await?;
            work.moved.seconds = remote.rpc().clock().now().since(began).as_secs_f64();
            Ok::<_, ClientError>(work.moved)
        })
        .await
}

fn file_name(of: &Path) -> String {
    of.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn open(folder: &Path) -> Result<Folder, String> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Folder::open(folder).map_err(|e| format!("cannot open the folder {}: {e}", folder.display()))
}

impl Work<'_> {
    async fn fetch(&mut self, from: &str, to: &VirtualPath, depth: usize) -> Result<(), ClientError> {
        let of = self.remote.file_or_link(from).await?.attributes;
        match of.kind {
            FileType::Regular => {
                let stored = self.folder.store(to, Store::Replace, UMASK).await?;
                let progress = self.progress(to, of.size_bytes);
                let shown = Rc::new(Cell::new(0));
                let tell = |bytes| shown.set(bytes);
                let fetching = self.remote.get(from, stored.sink, &tell);
                self.moved.bytes += progress.during(shown.clone(), fetching).await?;
                self.folder.set_modified(to, unix_time(of.modified)).await?;
                self.moved.files += 1;
            }
            FileType::Directory if self.is_recursive && depth < DEPTH_LIMIT => {
                match self.folder.make_directory(to, UMASK).await {
                    Ok(()) => self.moved.directories += 1,
                    Err(StorageError::Exists) => {}
                    Err(why) => return Err(why.into()),
                }
                for of in self.remote.list(from).await? {
                    let Some(name) = own_name(&of.name) else {
                        self.moved.skipped.push(String::from_utf8_lossy(&of.name).into_owned());
                        continue;
                    };
                    let (from, to) = (format!("{from}/{name}"), to.join(&name));
                    Box::pin(self.fetch(&from, &to, depth + 1)).await?;
                }
            }
            FileType::Directory => return Err(StorageError::IsDirectory.into()),
            _ => self.moved.skipped.push(from.to_owned()),
        }
        Ok(())
    }
    async fn send(&mut self, from: &VirtualPath, to: &str, depth: usize) -> Result<(), ClientError> {
        let facts = self.folder.facts(from).await?;
        match facts.kind {
            Kind::File => {
                let source = self.folder.retrieve(from).await?;
                let progress = self.progress(from, source.size_bytes());
                let shown = Rc::new(Cell::new(0));
                let tell = |bytes| shown.set(bytes);
                let mode = facts.mode.map_or(0o644, |mode| mode & 0o777);
                let sending = self.remote.put(&*source, to, mode, &tell);
                self.moved.bytes += progress.during(shown.clone(), sending).await?;
                if let Some(time) = facts.modified {
                    let modified =
                        SetTime::To(Time { seconds: time.seconds as u32, nanoseconds: time.nanoseconds });
                    self.remote
                        .set_attributes(to, SetAttributes { modified, ..SetAttributes::default() })
                        .await?;
                }
                self.moved.files += 1;
            }
            Kind::Directory if self.is_recursive && depth < DEPTH_LIMIT => {
                if self.remote.file(to).await.is_err() {
                    self.remote.make_directory(to, 0o755).await?;
                    self.moved.directories += 1;
                }
                let mut listing = self.folder.list(from).await?;
                loop {
                    let (rest, batch) = listing.next().await;
                    listing = rest;
                    let batch = batch?;
                    if batch.is_empty() {
                        break;
                    }
                    let is_inside = |facts: &Facts| !matches!(facts.kind, Kind::This | Kind::Parent);
                    for (name, _) in batch.into_iter().filter(|(_, facts)| is_inside(facts)) {
                        let (from, to) = (from.join(&name), format!("{to}/{name}"));
                        Box::pin(self.send(&from, &to, depth + 1)).await?;
                    }
                }
            }
            Kind::Directory => return Err(StorageError::IsDirectory.into()),
            _ => self.moved.skipped.push(from.to_string()),
        }
        Ok(())
    }
    fn progress(&self, path: &VirtualPath, bytes: u64) -> Progress {
        let name = path.name().unwrap_or_default();
        Progress::new(self.remote.rpc().clock(), name, self.is_quiet).of(Some(bytes))
    }
}

fn unix_time(of: Time) -> UnixTime {
    UnixTime { seconds: i64::from(of.seconds), nanoseconds: of.nanoseconds }
}

/// A name that a server gives, if a file here may have it: it leads nowhere else.
fn own_name(name: &[u8]) -> Option<String> {
    let name = String::from_utf8(name.to_vec()).ok()?;
    let is_plain = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0']);
    is_plain.then_some(name)
}
