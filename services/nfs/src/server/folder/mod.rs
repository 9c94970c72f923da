//! A folder of the file system as a [`Tree`].
//!
//! A key of a file has its inode number, hashes of its device and of its time of birth, and one octet for each
//! directory on the way from the root: a hash of that directory's inode number. Where a file is, the tree remembers in
//! a table of bounded size. What is not in the table, after a restart say, is found by going down where these octets
//! fit; what was moved meanwhile, by looking at all names up to a limit. Nothing is kept on the disk.
//!
//! Nothing leads out of the folder: names are opened one by one or by `openat2` with `RESOLVE_BENEATH`, without links and
//! without other file systems, as descriptors that only name a file (`O_PATH`); each is compared with its key before it
//! is used. Files are opened to read or write through such a descriptor, in `/proc/self/fd`.

mod directory;
mod key;
mod open;
mod places;
mod search;

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{
    self, AtFlags, Dev, FileType as SystemType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, StatVfs,
    Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid,
};
use rustix::io::Errno;

use super::tree::{FileKey, Known, Make, Tree, TreeEntries, TreeResult};
use crate::codec::nfs::{
    Attributes, FileType, SetAttributes, SetTime, Stable, Statistics, Status, TARGET_BYTES, Verifier,
};
use key::{Key, Seen, attributes, see};
use open::OpenFiles;
use places::Places;

/// Octets of a name that file systems take.
const SYSTEM_NAME_BYTES: usize = 255;
/// Permission bits that a file may have: no set-user-ID or set-group-ID, which would lend the server's identity to a
/// program.
const FILE_MODE: u32 = 0o1777;
/// The same for a directory. Its set-group-ID bit decides the group of new files.
const DIRECTORY_MODE: u32 = 0o3777;
/// A directory's files have its group.
const SET_GROUP: u32 = 0o2000;

/// Attempts to open a file while it is being renamed.
const RENAME_TRIES: usize = 8;

/// How often a path is opened while renames come between.
const RACE_TRIES: usize = 64;

/// How soon changes are on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// Before they are answered, as RFC 1813 §4.8 asks.
    #[default]
    Answered,
    /// Later: what was answered may be lost with the machine's power. COMMIT is obeyed all the same.
    Later,
}

/// A folder as [`Tree`].
#[derive(Debug)]
pub struct FolderTree {
    root: OwnedFd,
    root_key: Key,
    durability: Durability,
    owner: (u32, u32),
    places: Mutex<Places>,
    files: Mutex<OpenFiles>,
    renames: Renames,
    /// One search at a time, so that keys of files that are gone do not occupy all threads.
    searching: Mutex<()>,
    /// Directory entries that one search reads.
    names_limit: usize,
}

/// Counts the renames through this tree. A rename by another program is not seen: a search that it disturbs may report
/// a file as stale until the file is looked up again.
#[derive(Debug, Default)]
struct Renames {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Renames {
    /// A number that stays the same until the next rename; `None` during a rename.
    fn standstill(&self) -> Option<u64> {
        let ended = self.ended.load(Ordering::SeqCst);
        (self.begun.load(Ordering::SeqCst) == ended).then_some(ended)
    }
}

/// A rename in progress, until it is dropped.
struct Renaming<'a>(&'a Renames);

impl<'a> Renaming<'a> {
    fn begin(renames: &'a Renames) -> Renaming<'a> {
        renames.begun.fetch_add(1, Ordering::SeqCst);
        Renaming(renames)
    }
}
impl Drop for Renaming<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

/// A file that was found: a descriptor that names it, and what was seen of it.
struct Node {
    descriptor: OwnedFd,
    seen: Seen,
}

/// The error of the system as one of NFS.
pub(super) fn status(error: Errno) -> Status {
    match error {
        Errno::PERM => Status::PERM,
        Errno::NOENT => Status::NOENT,
        Errno::NXIO => Status::NXIO,
        Errno::ACCESS | Errno::XDEV => Status::ACCES,
        Errno::EXIST => Status::EXIST,
        Errno::NODEV => Status::NODEV,
        Errno::NOTDIR => Status::NOTDIR,
        Errno::ISDIR => Status::ISDIR,
        Errno::INVAL => Status::INVAL,
        Errno::FBIG => Status::FBIG,
        Errno::NOSPC => Status::NOSPC,
        Errno::ROFS => Status::ROFS,
        Errno::MLINK => Status::MLINK,
        Errno::NAMETOOLONG => Status::NAMETOOLONG,
        Errno::NOTEMPTY => Status::NOTEMPTY,
        Errno::DQUOT => Status::DQUOT,
        Errno::STALE => Status::STALE,
        Errno::OPNOTSUPP => Status::NOTSUPP,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => Status::JUKEBOX,
        _ => Status::IO,
    }
}

fn io_status(error: &io::Error) -> Status {
    Errno::from_io_error(error).map_or(Status::IO, status)
}

/// A name as the system takes it.
fn system_name(name: &[u8]) -> TreeResult<CString> {
    if name.len() > SYSTEM_NAME_BYTES {
        return Err(Status::NAMETOOLONG);
    }
    if name.is_empty() || name.contains(&b'/') || name == b"." || name == b".." {
        return Err(Status::INVAL);
    }
    CString::new(name).map_err(|_| Status::INVAL)
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a path below a directory so that the descriptor only names the file.
fn open_below(root: BorrowedFd<'_>, path: impl rustix::path::Arg + Copy) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    for _ in 0..RACE_TRIES {
        match fs::openat2(root, path, flags, Mode::empty(), resolve) {
            // A rename elsewhere came between (openat2(2)). Linux also takes some of these for a way out, which a path
            // without links and without `..` does not have; then only another file system stays one.
            Err(Errno::AGAIN | Errno::INTR | Errno::XDEV) => {}
            other => return other,
        }
    }
    Err(Errno::XDEV)
}

/// Opens a file again by a descriptor that names it.
fn reopen(descriptor: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    fs::open(path, flags | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())
}

impl FolderTree {
    /// Opens the folder; the only place where a path of the system is used.
    pub fn open(path: &Path, durability: Durability) -> io::Result<FolderTree> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = fs::open(path, flags, Mode::empty())?;
        let root_key = see(root.as_fd())?.root_key();
        let owner = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Ok(FolderTree {
            root,
            root_key,
            durability,
            owner,
            places: Mutex::default(),
            files: Mutex::default(),
            renames: Renames::default(),
            searching: Mutex::default(),
            names_limit: search::NAMES_LIMIT,
        })
    }

    /// Opens the file of a key.
    fn node(&self, key: &FileKey) -> TreeResult<Node> {
        let key = Key::parse(key).ok_or(Status::BADHANDLE)?;
        if key.is_same(&self.root_key) {
            let descriptor = self.root.try_clone().map_err(|error| io_status(&error))?;
            let seen = see(descriptor.as_fd()).map_err(status)?;
            return Ok(Node { descriptor, seen });
        }
        let mut tried = None;
        // A name may change between being read here and being opened, but not each time.
        for _ in 0..RENAME_TRIES {
            let Some(path) = locked(&self.places).path(key.id(), self.root_key.id()) else { break };
            if tried.as_ref() == Some(&path) {
                break;
            }
            match self.node_at(&path) {
                Ok(node) if key.is_of(&node.seen) => return Ok(node),
                // Something else has the name now.
                Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => tried = Some(path),
                Err(error) => return Err(status(error)),
            }
        }
        self.search(&key, tried.as_deref())
    }

    fn node_at(&self, path: &[u8]) -> Result<Node, Errno> {
        let descriptor = open_below(self.root.as_fd(), path)?;
        let seen = see(descriptor.as_fd())?;
        Ok(Node { descriptor, seen })
    }

    fn directory(&self, key: &FileKey) -> TreeResult<Node> {
        let node = self.node(key)?;
        if node.seen.kind() == FileType::Directory { Ok(node) } else { Err(Status::NOTDIR) }
    }

    /// The file of a name in a directory, which is remembered to be there.
    fn below(&self, directory: &FileKey, node: &Node, name: &CString) -> TreeResult<(Node, Known)> {
        let descriptor = open_below(node.descriptor.as_fd(), name.as_c_str()).map_err(status)?;
        let seen = see(descriptor.as_fd()).map_err(status)?;
        let parent = Key::parse(directory).ok_or(Status::BADHANDLE)?;
        let mut key = seen.key_below(&parent, parent.is_same(&self.root_key));
        locked(&self.places).remember(&mut key, parent.id(), name.as_bytes());
        let known = Known { key: key.seal(), attributes: self.told(&seen) };
        Ok((Node { descriptor, seen }, known))
    }

    /// Attributes, in one file system with all others: a file of an overlay may have another device.
    fn told(&self, seen: &Seen) -> Attributes {
        attributes(seen, self.root_key.id().1)
    }

    /// Updates the tables after a name of this file was removed.
    fn dropped(&self, node: &Node) {
        let key = node.seen.root_key();
        // What has no name any more never gets one again.
        if see(node.descriptor.as_fd()).is_ok_and(|seen| seen.links() > 0) {
            return locked(&self.places).forget(&key);
        }
        locked(&self.places).bury(&key);
        locked(&self.files).forget(key.id());
    }

    /// Puts a directory on the disk.
    fn sync_directory(&self, node: &Node) -> TreeResult<()> {
        match self.durability {
            Durability::Later => Ok(()),
            Durability::Answered => {
                let open = reopen(node.descriptor.as_fd(), OFlags::RDONLY | OFlags::DIRECTORY);
                fs::fsync(open.map_err(status)?).map_err(status)
            }
        }
    }

    /// An open file of a key, from the table or opened.
    fn file(&self, key: &FileKey, is_write: bool) -> TreeResult<std::sync::Arc<File>> {
        let parsed = Key::parse(key).ok_or(Status::BADHANDLE)?;
        let open = locked(&self.files).find(parsed.id(), is_write);
        if let Some(file) = open {
            // One without a name is kept by this table alone.
            let is_there = see(file.as_fd()).is_ok_and(|seen| seen.links() > 0 && parsed.is_of(&seen));
            if is_there {
                return Ok(file);
            }
            locked(&self.files).forget(parsed.id());
            return Err(Status::STALE);
        }
        let node = self.node(key)?;
        match node.seen.kind() {
            FileType::Regular => {}
            FileType::Directory => return Err(Status::ISDIR),
            _ => return Err(Status::INVAL),
        }
        let flags = if is_write { OFlags::RDWR } else { OFlags::RDONLY };
        let opened = match reopen(node.descriptor.as_fd(), flags) {
            Err(Errno::ACCESS) if is_write => reopen(node.descriptor.as_fd(), OFlags::WRONLY),
            other => other,
        };
        let file = std::sync::Arc::new(File::from(opened.map_err(status)?));
        locked(&self.files).keep(parsed.id(), is_write, file.clone());
        Ok(file)
    }

    fn set_times(&self, node: &Node, attributes: &SetAttributes) -> TreeResult<()> {
        let time = |set: SetTime| match set {
            SetTime::Keep => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            SetTime::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
            SetTime::To(time) => {
                Timespec { tv_sec: time.seconds.into(), tv_nsec: time.nanoseconds.min(999_999_999).into() }
            }
        };
        let times = Timestamps {
            last_access: time(attributes.accessed),
            last_modification: time(attributes.modified),
        };
        fs::utimensat(&node.descriptor, "", &times, AtFlags::EMPTY_PATH).map_err(status)
    }

    /// Sets what may be set of a file that was found.
    fn set(&self, node: &Node, set: &SetAttributes) -> TreeResult<()> {
        if let Some(size_bytes) = set.size_bytes {
            let file = reopen(node.descriptor.as_fd(), OFlags::WRONLY).map_err(status)?;
            fs::ftruncate(&file, size_bytes).map_err(status)?;
        }
        if set.uid.is_some() || set.gid.is_some() {
            let (uid, gid) = (set.uid.map(Uid::from_raw), set.gid.map(Gid::from_raw));
            fs::chownat(&node.descriptor, "", uid, gid, AtFlags::EMPTY_PATH).map_err(status)?;
        }
        if let Some(mode) = set.mode {
            let allowed = if node.seen.kind() == FileType::Directory { DIRECTORY_MODE } else { FILE_MODE };
            // A descriptor that only names a file takes no other way.
            let path = format!("/proc/self/fd/{}", node.descriptor.as_raw_fd());
            fs::chmod(path, Mode::from_raw_mode(mode & allowed)).map_err(status)?;
        }
        if set.accessed != SetTime::Keep || set.modified != SetTime::Keep {
            self.set_times(node, set)?;
        }
        Ok(())
    }

    /// Gives a new file its owner and its mode, and puts both on the disk. The mode comes last: a change of the owner may
    /// take bits away.
    fn finish(&self, directory: &Node, new: &Node, mode: u32, owner: (u32, u32)) -> TreeResult<()> {
        let mut set = SetAttributes { mode: Some(mode), ..SetAttributes::default() };
        let inherits = directory.seen.mode() & SET_GROUP != 0;
        if self.gives_away() && owner != self.owner {
            set.uid = Some(owner.0);
            set.gid = (!inherits).then_some(owner.1);
        }
        match new.seen.kind() {
            FileType::Link => set.mode = None,
            FileType::Directory if inherits => set.mode = Some(mode | SET_GROUP),
            _ => {}
        }
        self.set(new, &set)?;
        self.sync_file(new)
    }

    fn sync_file(&self, node: &Node) -> TreeResult<()> {
        let is_synced = matches!(node.seen.kind(), FileType::Regular | FileType::Directory);
        if self.durability == Durability::Later || !is_synced {
            return Ok(());
        }
        match reopen(node.descriptor.as_fd(), OFlags::RDONLY) {
            Ok(file) => fs::fsync(file).map_err(status),
            // Its own mode keeps even the server from opening it; then its directory's journal has it.
            Err(Errno::ACCESS) => Ok(()),
            Err(error) => Err(status(error)),
        }
    }
}

impl Tree for FolderTree {
    fn root(&self) -> TreeResult<Known> {
        let seen = see(self.root.as_fd()).map_err(status)?;
        Ok(Known { key: self.root_key.seal(), attributes: self.told(&seen) })
    }

    fn owner(&self) -> (u32, u32) {
        self.owner
    }

    fn gives_away(&self) -> bool {
        self.owner.0 == 0
    }

    fn attributes(&self, file: &FileKey) -> TreeResult<Attributes> {
        self.node(file).map(|node| self.told(&node.seen))
    }

    fn lookup(&self, directory: &FileKey, name: &[u8]) -> TreeResult<Known> {
        let name = system_name(name)?;
        let node = self.directory(directory)?;
        self.below(directory, &node, &name).map(|(_, known)| known)
    }

    fn parent(&self, directory: &FileKey) -> TreeResult<Known> {
        let key = Key::parse(directory).ok_or(Status::BADHANDLE)?;
        self.directory(directory)?;
        let path = locked(&self.places).path(key.id(), self.root_key.id());
        let path = path.unwrap_or_default();
        let Some(end) = path.iter().rposition(|&octet| octet == b'/') else { return self.root() };
        self.walk(&path[..end]).map(|(_, known)| known)
    }

    fn set_attributes(&self, file: &FileKey, set: &SetAttributes) -> TreeResult<()> {
        let node = self.node(file)?;
        let kind = node.seen.kind();
        match kind {
            FileType::Directory if set.size_bytes.is_some() => return Err(Status::ISDIR),
            FileType::Link if set.mode.is_some() || set.size_bytes.is_some() => return Err(Status::INVAL),
            kind if kind != FileType::Regular && set.size_bytes.is_some() => return Err(Status::INVAL),
            _ => {}
        }
        self.set(&node, set)?;
        self.sync_file(&node)
    }

    fn read_link(&self, file: &FileKey) -> TreeResult<Vec<u8>> {
        let node = self.node(file)?;
        if node.seen.kind() != FileType::Link {
            return Err(Status::INVAL);
        }
        let target = fs::readlinkat(&node.descriptor, "", Vec::new()).map_err(status)?.into_bytes();
        if target.len() > TARGET_BYTES { Err(Status::NAMETOOLONG) } else { Ok(target) }
    }

    fn read(&self, key: &FileKey, offset: u64, count: usize) -> TreeResult<(Vec<u8>, Attributes)> {
        let file = self.file(key, false)?;
        let size_bytes = see(file.as_fd()).map_err(status)?.size_bytes();
        let left = usize::try_from(size_bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut octets = vec![0; count.min(left)];
        let mut filled = 0;
        while filled < octets.len() {
            match file.read_at(&mut octets[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io_status(&error)),
            }
        }
        octets.truncate(filled);
        Ok((octets, self.told(&see(file.as_fd()).map_err(status)?)))
    }

    fn write(&self, key: &FileKey, offset: u64, octets: &[u8], stable: Stable) -> TreeResult<Stable> {
        let end = offset.checked_add(octets.len() as u64);
        end.filter(|&end| i64::try_from(end).is_ok()).ok_or(Status::FBIG)?;
        let file = self.file(key, true)?;
        file.write_all_at(octets, offset).map_err(|error| io_status(&error))?;
        match (stable, self.durability) {
            (Stable::Unstable, _) | (_, Durability::Later) => {}
            (Stable::Data, _) => file.sync_data().map_err(|error| io_status(&error))?,
            (Stable::File, _) => file.sync_all().map_err(|error| io_status(&error))?,
        }
        Ok(stable)
    }

    fn commit(&self, key: &FileKey) -> TreeResult<()> {
        let file = match self.file(key, true) {
            Err(Status::ACCES | Status::PERM | Status::ROFS) => self.file(key, false)?,
            other => other?,
        };
        file.sync_all().map_err(|error| io_status(&error))
    }

    fn make(
        &self,
        directory: &FileKey,
        name: &[u8],
        make: Make<'_>,
        mode: u32,
        owner: (u32, u32),
    ) -> TreeResult<Known> {
        let name = system_name(name)?;
        let node = self.directory(directory)?;
        let descriptor = node.descriptor.as_fd();
        // Nobody else opens it before it has its owner and mode.
        let narrow = Mode::RUSR | Mode::WUSR;
        match make {
            Make::File => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                drop(fs::openat(descriptor, name.as_c_str(), flags, narrow).map_err(status)?);
            }
            Make::Directory => {
                fs::mkdirat(descriptor, name.as_c_str(), narrow | Mode::XUSR).map_err(status)?;
            }
            Make::Link(target) => {
                let target = CString::new(target).map_err(|_| Status::INVAL)?;
                fs::symlinkat(target, descriptor, name.as_c_str()).map_err(status)?;
            }
            Make::Node(kind) => {
                let kind = match kind {
                    FileType::Fifo => SystemType::Fifo,
                    FileType::Socket => SystemType::Socket,
                    _ => return Err(Status::NOTSUPP),
                };
                fs::mknodat(descriptor, name.as_c_str(), kind, narrow, Dev::default()).map_err(status)?;
            }
        }
        let (new, _) = self.below(directory, &node, &name)?;
        if let Err(status) = self.finish(&node, &new, mode, owner) {
            // A file that does not belong to its maker is worse than none.
            let is_directory = make == Make::Directory;
            let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            let _ = fs::unlinkat(&node.descriptor, name.as_c_str(), flags);
            return Err(status);
        }
        self.sync_directory(&node)?;
        self.below(directory, &node, &name).map(|(_, known)| known)
    }

    fn remove(&self, directory: &FileKey, name: &[u8], is_directory: bool) -> TreeResult<()> {
        let name = system_name(name)?;
        let node = self.directory(directory)?;
        let (removed, _) = self.below(directory, &node, &name)?;
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        fs::unlinkat(&node.descriptor, name.as_c_str(), flags).map_err(status)?;
        self.dropped(&removed);
        self.sync_directory(&node)
    }

    fn rename(&self, from: (&FileKey, &[u8]), to: (&FileKey, &[u8])) -> TreeResult<()> {
        let (from_name, to_name) = (system_name(from.1)?, system_name(to.1)?);
        let (from_node, to_node) = (self.directory(from.0)?, self.directory(to.0)?);
        let (moved, replaced) = (
            self.below(from.0, &from_node, &from_name)?.1.key,
            self.below(to.0, &to_node, &to_name).ok().map(|(node, _)| node),
        );
        let (from_at, to_at) = (&from_node.descriptor, &to_node.descriptor);
        {
            let _renaming = Renaming::begin(&self.renames);
            let (from_name, to_name) = (from_name.as_c_str(), to_name.as_c_str());
            fs::renameat_with(from_at, from_name, to_at, to_name, RenameFlags::empty()).map_err(status)?;
            if let (Some(mut moved), Some(parent)) = (Key::parse(&moved), Key::parse(to.0)) {
                locked(&self.places).remember(&mut moved, parent.id(), to_name.to_bytes());
            }
        }
        if let Some(replaced) = replaced {
            self.dropped(&replaced);
        }
        self.sync_directory(&to_node)?;
        if from_node.seen.id() != to_node.seen.id() {
            self.sync_directory(&from_node)?;
        }
        Ok(())
    }

    fn link(&self, file: &FileKey, directory: &FileKey, name: &[u8]) -> TreeResult<()> {
        let name = system_name(name)?;
        let (node, parent) = (self.node(file)?, self.directory(directory)?);
        if node.seen.kind() == FileType::Directory {
            return Err(Status::ISDIR);
        }
        let path = format!("/proc/self/fd/{}", node.descriptor.as_raw_fd());
        fs::linkat(fs::CWD, path, &parent.descriptor, name.as_c_str(), AtFlags::SYMLINK_FOLLOW)
            .map_err(status)?;
        // A name by which it is found when the others are gone.
        let _ = self.below(directory, &parent, &name);
        self.sync_directory(&parent)?;
        self.sync_file(&node)
    }

    fn entries(&self, directory: &FileKey, cookie: u64, bytes: usize) -> TreeResult<TreeEntries> {
        let node = self.directory(directory)?;
        directory::entries(&node, node.seen.id() == self.root_key.id(), cookie, bytes)
    }

    fn cookie_verifier(&self, directory: &FileKey) -> TreeResult<Verifier> {
        // The system's places in a directory stay valid for as long as the directory exists.
        Ok(Key::parse(directory).ok_or(Status::BADHANDLE)?.birth_verifier())
    }

    fn statistics(&self) -> TreeResult<Statistics> {
        let StatVfs { f_frsize, f_blocks, f_bfree, f_bavail, f_files, f_ffree, f_favail, .. } =
            fs::fstatvfs(&self.root).map_err(status)?;
        Ok(Statistics {
            attributes: None,
            total_bytes: f_blocks.saturating_mul(f_frsize),
            free_bytes: f_bfree.saturating_mul(f_frsize),
            available_bytes: f_bavail.saturating_mul(f_frsize),
            total_files: f_files,
            free_files: f_ffree,
            available_files: f_favail,
            unchanged_s: 0,
        })
    }
}

impl FolderTree {
    /// The file at a path; it and all directories on the way are remembered. Looks for nothing.
    fn walk(&self, path: &[u8]) -> TreeResult<(Node, Known)> {
        let mut at = (self.node_at(b".").map_err(status)?, self.root()?);
        for name in path.split(|&octet| octet == b'/') {
            at = self.below(&at.1.key, &at.0, &system_name(name)?)?;
        }
        Ok(at)
    }
}

#[cfg(test)]
mod tests;
