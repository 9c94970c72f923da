//! A folder of the file system, by a handle that nothing leads out of.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};
use cap_std::fs::{PermissionsExt, ReadDir};

use super::name::{is_partial, system};
use super::partial::{self, freed_bytes, open_locked, partial_name};
use super::plain::Plain;
use super::quota::{FileId, Quotas};
use super::{
    Contents, Facts, Kind, LIST_BATCH, Listing, LocalFuture, Permissions, Quota, Source, Storage,
    StorageError, StorageResult, Store, Storing, UnixTime, VirtualPath, name_text,
};

/// Directories, one in another, that counting what is used goes into; each has a descriptor open. What is deeper fails
/// the count, and is not taken for nothing.
const COUNT_DEPTH: usize = 256;
/// Names that the error about a directory that is not empty tells.
const NAMES_TOLD: usize = 3;

/// A folder as [`Storage`]. Links within it are followed; a path that leads out of it, by `..`, by a link or by a race
/// of either with us, is denied by the system (`openat2`) or step by step.
#[derive(Clone)]
pub struct Folder {
    root: Arc<Dir>,
    quota: Option<Quota>,
    writable: bool,
}

impl Folder {
    /// Opens the folder; the only place where a path of the system is used.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let root = Dir::open_ambient_dir(path, ambient_authority())?;
        Ok(Folder { root: Arc::new(root), quota: None, writable: true })
    }
    /// The same, with no more in it than the quota allows.
    pub fn with_quota(mut self, quota: Quota) -> Folder {
        self.quota = Some(quota);
        self
    }
    /// The same, with no more in it than so many octets, which count together for all who have the same root.
    pub fn limited(self, quotas: &Quotas, limit_bytes: u64) -> StorageResult<Folder> {
        let quota = quotas.limit(self.id()?, limit_bytes);
        Ok(self.with_quota(quota))
    }
    /// The same, with facts that offer no changing, and without unfinished uploads. Whether something may be changed the
    /// server decides before it comes here.
    pub fn read_only(mut self) -> Folder {
        self.writable = false;
        self
    }

    /// Size of an interrupted upload or download.
    pub fn partial_bytes(&self, path: &VirtualPath) -> LocalFuture<StorageResult<u64>> {
        self.run(path, |folder, path| {
            let (parent, name) = place(&folder.root, &path)?;
            Ok(parent.symlink_metadata(system(&partial_name(&name)))?.len())
        })
    }

    /// Whether a name is that of a link.
    pub fn is_link(&self, path: &VirtualPath) -> LocalFuture<StorageResult<bool>> {
        self.run(path, |folder, path| {
            let (parent, name) = place(&folder.root, &path)?;
            Ok(parent.symlink_metadata(system(&name))?.is_symlink())
        })
    }

    /// Removes the unfinished uploads, here and in the folders below, to which nobody has written since `before`. Gives
    /// how many there were. One that is open stays, and so does what cannot be read.
    pub fn expire(&self, before: UnixTime) -> LocalFuture<u64> {
        let folder = self.clone();
        Box::pin(blocking::unblock(move || folder.expire_below(&folder.root, before, COUNT_DEPTH)))
    }

    fn expire_below(&self, directory: &Dir, before: UnixTime, depth: usize) -> u64 {
        let Ok(entries) = directory.entries() else { return 0 };
        let mut expired = 0;
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let name = name_text(entry.file_name().as_encoded_bytes());
            if kind.is_dir() && depth > 0 {
                let below = entry.open_dir().map(|inner| self.expire_below(&inner, before, depth - 1));
                expired += below.unwrap_or(0);
            } else if kind.is_file() && is_partial(&name) {
                let is_old = entry.metadata().is_ok_and(|metadata| metadata.mtime() < before.seconds);
                expired += u64::from(is_old && self.remove_partial(directory, &name).is_ok());
            }
        }
        expired
    }

    /// Removes an unfinished upload that nobody writes to.
    fn remove_partial(&self, folder: &Dir, name: &str) -> StorageResult<()> {
        // Held until its name is gone, so that nobody goes on with it meanwhile.
        let _lock = open_locked(folder, name, false)?;
        self.freeing(folder, name, || folder.remove_file(system(name)))
    }

    /// Whether a path is that of an unfinished upload that this user does not see.
    fn hides(&self, path: &Path) -> bool {
        let is_partial = |name: &std::ffi::OsStr| is_partial(&name_text(name.as_encoded_bytes()));
        !self.writable && path.file_name().is_some_and(is_partial)
    }

    /// Does something on a thread that may wait for the disk.
    fn run<T: Send + 'static>(
        &self,
        path: &VirtualPath,
        work: impl FnOnce(&Folder, PathBuf) -> StorageResult<T> + Send + 'static,
    ) -> LocalFuture<StorageResult<T>> {
        let (folder, path) = (self.clone(), system(&path.relative()));
        if self.hides(&path) {
            return Box::pin(std::future::ready(Err(StorageError::NotFound)));
        }
        Box::pin(blocking::unblock(move || work(&folder, path)))
    }

    fn facts_of(&self, metadata: &Metadata, kind: Option<Kind>) -> Facts {
        let kind = kind.unwrap_or(match () {
            () if metadata.is_file() => Kind::File,
            () if metadata.is_dir() => Kind::Directory,
            () => Kind::Other,
        });
        let modified = UnixTime { seconds: metadata.mtime(), nanoseconds: 0 };
        Facts {
            kind,
            size_bytes: metadata.len(),
            modified: Some(modified),
            mode: Some(metadata.mode()),
            unique: Some(format!("{:x}g{:x}", metadata.dev(), metadata.ino())),
            permissions: Permissions { read: true, write: self.writable, delete: self.writable },
        }
    }

    /// Identity of the root folder.
    fn id(&self) -> StorageResult<FileId> {
        let metadata = self.root.dir_metadata()?;
        Ok((metadata.dev(), metadata.ino()))
    }

    fn count(&self) -> StorageResult<()> {
        match &self.quota {
            Some(quota) => quota.ensure_counted(|| used_bytes(&self.root, COUNT_DEPTH)),
            None => Ok(()),
        }
    }
    /// Does what frees the name `name` in `folder`, and gives back what it took.
    fn freeing(&self, folder: &Dir, name: &str, work: impl FnOnce() -> io::Result<()>) -> StorageResult<()> {
        let Some(quota) = &self.quota else { return Ok(work()?) };
        self.count()?;
        quota.freeing(|growing| {
            let bytes = freed_bytes(folder, name, growing)?;
            Ok((work()?, bytes))
        })
    }
}

/// Octets of all files below `dir`. What cannot be looked at fails: a folder that nobody may read would hide what is in
/// it.
fn used_bytes(dir: &Dir, depth: usize) -> StorageResult<u64> {
    let mut sum = 0;
    for entry in dir.entries()? {
        let entry = entry?;
        let counted = match entry.metadata() {
            Ok(metadata) if metadata.is_dir() && depth == 0 => {
                return Err(StorageError::Other("Folders are too deep in each other for a quota".into()));
            }
            Ok(metadata) if metadata.is_dir() => match entry.open_dir() {
                Ok(inner) => used_bytes(&inner, depth - 1),
                Err(error) => Err(error.into()),
            },
            Ok(metadata) => Ok(if metadata.is_file() { metadata.len() } else { 0 }),
            Err(error) => Err(error.into()),
        };
        match counted {
            Ok(bytes) => sum += bytes,
            // It went away since.
            Err(StorageError::NotFound) => {}
            Err(StorageError::Denied) => {
                let name = entry.file_name().to_string_lossy().into_owned();
                let why = format!("The quota cannot be counted: {name} may not be read");
                return Err(StorageError::Other(why));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(sum)
}

/// The folder of a path and the name in it.
fn place(root: &Dir, path: &Path) -> StorageResult<(Dir, String)> {
    let path = name_text(path.as_os_str().as_encoded_bytes());
    let (parent, name) = path.rsplit_once('/').unwrap_or((".", &path));
    if name == "." {
        return Err(StorageError::Name);
    }
    Ok((root.open_dir(system(parent))?, name.to_owned()))
}

/// The same for something that gets this name, or has it and keeps it.
fn named(root: &Dir, path: &Path) -> StorageResult<(Dir, String)> {
    match place(root, path)? {
        (_, name) if is_partial(&name) => Err(StorageError::Unfinished),
        place => Ok(place),
    }
}

/// The first names in a directory that should be empty.
fn contents(parent: &Dir, name: &str) -> Contents {
    let Ok(entries) = parent.read_dir(system(name)) else { return Contents::default() };
    let mut names = entries.flatten().map(|entry| name_text(entry.file_name().as_encoded_bytes()));
    Contents { names: names.by_ref().take(NAMES_TOLD).collect(), has_more: names.next().is_some() }
}

/// Opens a file of any type without blocking on a pipe.
fn open_readable(root: &Dir, path: &Path) -> StorageResult<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    Ok(root.open_with(path, &options)?.into_std())
}

/// Opens a plain file.
fn open_file(root: &Dir, path: &Path) -> StorageResult<File> {
    let file = open_readable(root, path)?;
    let metadata = file.metadata()?;
    match () {
        () if metadata.is_dir() => Err(StorageError::IsDirectory),
        () if !metadata.is_file() => Err(StorageError::NotFile),
        () => Ok(file),
    }
}

impl Storage for Folder {
    fn facts(&self, path: &VirtualPath) -> LocalFuture<StorageResult<Facts>> {
        self.run(path, |folder, path| Ok(folder.facts_of(&folder.root.metadata(path)?, None)))
    }

    fn size(&self, path: &VirtualPath) -> LocalFuture<StorageResult<u64>> {
        self.run(path, |folder, path| match folder.root.metadata(&path) {
            Ok(metadata) if metadata.is_file() => Ok(metadata.len()),
            Ok(_) => Err(StorageError::NotFile),
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder.writable => {
                let (parent, name) = place(&folder.root, &path)?;
                Ok(parent.symlink_metadata(system(&partial_name(&name)))?.len())
            }
            Err(error) => Err(error.into()),
        })
    }

    fn list(&self, path: &VirtualPath) -> LocalFuture<StorageResult<Box<dyn Listing>>> {
        self.run(path, |folder, path| {
            let metadata = folder.root.metadata(&path)?;
            if !metadata.is_dir() {
                return Err(StorageError::NotDirectory);
            }
            let directory = folder.root.open_dir(path)?;
            let entries = directory.entries()?;
            let listing: Box<dyn Listing> = Box::new(Reading { folder: folder.clone(), directory, entries });
            Ok(listing)
        })
    }

    fn retrieve(&self, path: &VirtualPath) -> LocalFuture<StorageResult<Box<dyn Source>>> {
        self.run(path, |folder, path| {
            let file = open_file(&folder.root, &path)?;
            let size_bytes = file.metadata()?.len();
            let source: Box<dyn Source> = Box::new(Plain { file: Arc::new(file), size_bytes });
            Ok(source)
        })
    }

    fn store(&self, path: &VirtualPath, how: Store, umask: u32) -> LocalFuture<StorageResult<Storing>> {
        self.run(path, move |folder, path| {
            folder.count()?;
            let (parent, name) = named(&folder.root, &path)?;
            partial::open(parent, &name, how, umask, folder.quota.clone())
        })
    }

    fn make_directory(&self, path: &VirtualPath, umask: u32) -> LocalFuture<StorageResult<()>> {
        self.run(path, move |folder, path| {
            let (parent, name) = named(&folder.root, &path)?;
            let mut builder = DirBuilder::new();
            builder.mode(0o777 & !umask);
            Ok(parent.create_dir_with(system(&name), &builder)?)
        })
    }

    fn remove_directory(&self, path: &VirtualPath) -> LocalFuture<StorageResult<()>> {
        self.run(path, |folder, path| {
            let (parent, name) = place(&folder.root, &path)?;
            parent.remove_dir(system(&name)).map_err(|error| match error.into() {
                StorageError::NotEmpty(_) => StorageError::NotEmpty(contents(&parent, &name)),
                other => other,
            })
        })
    }

    fn remove(&self, path: &VirtualPath) -> LocalFuture<StorageResult<()>> {
        self.run(path, |folder, path| {
            let (parent, name) = place(&folder.root, &path)?;
            match parent.symlink_metadata(system(&name)) {
                Ok(metadata) if metadata.is_dir() => return Err(StorageError::IsDirectory),
                Ok(_) if is_partial(&name) => return folder.remove_partial(&parent, &name),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return folder.remove_partial(&parent, &partial_name(&name));
                }
                Err(error) => return Err(error.into()),
            }
            folder.freeing(&parent, &name, || parent.remove_file(system(&name)))
        })
    }

    fn rename(&self, from: &VirtualPath, to: &VirtualPath) -> LocalFuture<StorageResult<()>> {
        let to = system(&to.relative());
        self.run(from, move |folder, from| {
            let (from_parent, from_name) = named(&folder.root, &from)?;
            let (to_parent, to_name) = named(&folder.root, &to)?;
            let (from_system, to_system) = (system(&from_name), system(&to_name));
            let id = |metadata: Metadata| (metadata.dev(), metadata.ino());
            let moved = from_parent.symlink_metadata(&from_system).map(id)?;
            // Two names of one file stay both, so nothing is freed (rename(2)).
            if to_parent.symlink_metadata(&to_system).is_ok_and(|replaced| id(replaced) == moved) {
                return Ok(from_parent.rename(&from_system, &to_parent, &to_system)?);
            }
            folder.freeing(&to_parent, &to_name, || from_parent.rename(&from_system, &to_parent, &to_system))
        })
    }

    fn set_modified(&self, path: &VirtualPath, time: UnixTime) -> LocalFuture<StorageResult<()>> {
        self.run(path, move |folder, path| {
            let since = Duration::new(time.seconds.unsigned_abs(), time.nanoseconds);
            let at = match time.seconds < 0 {
                true => SystemTime::UNIX_EPOCH.checked_sub(since),
                false => SystemTime::UNIX_EPOCH.checked_add(since),
            };
            let file = open_readable(&folder.root, &path)?;
            Ok(file.set_modified(at.ok_or(StorageError::Position)?)?)
        })
    }

    fn set_mode(&self, path: &VirtualPath, mode: u32) -> LocalFuture<StorageResult<()>> {
        self.run(path, move |folder, path| {
            // No set-user-ID or set-group-ID bit, which would lend the server's identity to a program.
            let permissions = cap_std::fs::Permissions::from_mode(mode & 0o777);
            Ok(folder.root.set_permissions(path, permissions)?)
        })
    }
}

struct Reading {
    folder: Folder,
    directory: Dir,
    entries: ReadDir,
}

impl Listing for Reading {
    fn next(mut self: Box<Self>) -> LocalFuture<(Box<dyn Listing>, StorageResult<super::Names>)> {
        Box::pin(blocking::unblock(move || {
            let batch = self.batch();
            let listing: Box<dyn Listing> = self;
            (listing, batch)
        }))
    }
}

impl Reading {
    fn batch(&mut self) -> StorageResult<super::Names> {
        let mut batch = Vec::new();
        while batch.len() < LIST_BATCH {
            let Some(entry) = self.entries.next().transpose()? else { break };
            let name = entry.file_name();
            // A name removed meanwhile is left out; a dangling link is listed as a link.
            let Ok(metadata) = self.directory.metadata(&name).or_else(|_| entry.metadata()) else { continue };
            let name = name_text(name.as_encoded_bytes());
            if self.folder.writable || !is_partial(&name) {
                batch.push((name, self.folder.facts_of(&metadata, None)));
            }
        }
        Ok(batch)
    }
}

#[cfg(test)]
mod tests;
