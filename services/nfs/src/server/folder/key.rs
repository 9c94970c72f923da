//! Keys of files, and what the system tells of a file.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType as SystemType, Statx, StatxFlags, StatxTimestamp, statx};
use rustix::io::Errno;

use super::super::tree::{FileKey, KEY_BYTES};
use crate::codec::nfs::{Attributes, Device, FileType, Time, Verifier};

/// Octets before those of the directories.
const FRONT_BYTES: usize = 16;
/// Directories of which a key tells; below, it does not say where a file is.
pub(super) const LEVELS: usize = KEY_BYTES - FRONT_BYTES;

/// Identity of a file while it exists: inode number and hash of the device.
pub(super) type FileId = (u64, u32);

/// A key, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Key {
    inode: u64,
    device: u32,
    /// Hash of the time of birth: an inode number is used again for other files.
    pub(super) birth: u32,
    /// For each directory below the root on the way to the file, a hash of its inode number.
    pub(super) levels: Vec<u8>,
}

impl Key {
    pub(super) fn parse(key: &FileKey) -> Option<Key> {
        let (inode, rest) = key.0.split_first_chunk()?;
        let (device, rest) = rest.split_first_chunk()?;
        let (birth, levels) = rest.split_first_chunk()?;
        Some(Key {
            inode: u64::from_be_bytes(*inode),
            device: u32::from_be_bytes(*device),
            birth: u32::from_be_bytes(*birth),
            levels: levels.to_vec(),
        })
    }
    pub(super) fn seal(&self) -> FileKey {
        let mut octets = Vec::with_capacity(FRONT_BYTES + self.levels.len());
        octets.extend_from_slice(&self.inode.to_be_bytes());
        octets.extend_from_slice(&self.device.to_be_bytes());
        octets.extend_from_slice(&self.birth.to_be_bytes());
        octets.extend_from_slice(&self.levels);
        FileKey(octets)
    }
    pub(super) fn id(&self) -> FileId {
        (self.inode, self.device)
    }
    pub(super) fn inode(&self) -> u64 {
        self.inode
    }
    /// Whether it is the key of the same file, however it is reached.
    pub(super) fn is_same(&self, other: &Key) -> bool {
        (self.id(), self.birth) == (other.id(), other.birth)
    }
    /// Whether it is the key of a file that was seen.
    pub(super) fn is_of(&self, seen: &Seen) -> bool {
        (self.id(), self.birth) == (seen.id(), seen.birth())
    }
    pub(super) fn birth_verifier(&self) -> Verifier {
        let mut verifier = [0; 8];
        verifier[..4].copy_from_slice(&self.device.to_be_bytes());
        verifier[4..].copy_from_slice(&self.birth.to_be_bytes());
        verifier
    }
}

/// The octet of a directory in a key.
pub(super) fn level(inode: u64) -> u8 {
    (hash([inode]) & 0xff) as u8
}

/// FNV-1a of some numbers, folded: a hash that stays the same in later versions.
fn hash<const N: usize>(numbers: [u64; N]) -> u32 {
    let octets = numbers.into_iter().flat_map(u64::to_be_bytes);
    let hash = octets.fold(0xcbf2_9ce4_8422_2325u64, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
    });
    ((hash >> 32) ^ (hash & 0xffff_ffff)) as u32
}

/// What the system tells of a file.
#[derive(Clone, Copy)]
pub(super) struct Seen(Statx);

/// Looks at a file by its descriptor.
pub(super) fn see(descriptor: BorrowedFd<'_>) -> Result<Seen, Errno> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    statx(descriptor, "", AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW, wanted).map(Seen)
}

impl Seen {
    pub(super) fn id(&self) -> FileId {
        (self.0.stx_ino, self.device())
    }
    fn device(&self) -> u32 {
        hash([self.0.stx_dev_major.into(), self.0.stx_dev_minor.into()])
    }
    /// A file system without times of birth has the same for all its files: there an inode number that is used again
    /// is not known to be.
    fn birth(&self) -> u32 {
        let is_known = self.0.stx_mask & StatxFlags::BTIME.bits() != 0;
        let birth = self.0.stx_btime;
        if is_known { hash([birth.tv_sec.cast_unsigned(), birth.tv_nsec.into()]) } else { 0 }
    }
    pub(super) fn kind(&self) -> FileType {
        match SystemType::from_raw_mode(self.0.stx_mode.into()) {
            SystemType::Directory => FileType::Directory,
            SystemType::BlockDevice => FileType::Block,
            SystemType::CharacterDevice => FileType::Character,
            SystemType::Symlink => FileType::Link,
            SystemType::Socket => FileType::Socket,
            SystemType::Fifo => FileType::Fifo,
            _ => FileType::Regular,
        }
    }
    pub(super) fn links(&self) -> u32 {
        self.0.stx_nlink
    }
    pub(super) fn mode(&self) -> u32 {
        self.0.stx_mode.into()
    }
    pub(super) fn size_bytes(&self) -> u64 {
        self.0.stx_size
    }
    /// The key of the exported folder itself; of another file, its key without the way to it.
    pub(super) fn root_key(&self) -> Key {
        let (inode, device) = self.id();
        Key { inode, device, birth: self.birth(), levels: Vec::new() }
    }
    /// The key of a file in the directory with the key `parent`.
    pub(super) fn key_below(&self, parent: &Key, is_parent_root: bool) -> Key {
        let mut levels = parent.levels.clone();
        if !is_parent_root && levels.len() < LEVELS {
            levels.push(level(parent.inode));
        }
        Key { levels, ..self.root_key() }
    }
}

/// Attributes as NFS has them, in the file system `fsid`.
pub(super) fn attributes(seen: &Seen, fsid: u32) -> Attributes {
    let stat = &seen.0;
    // Before 1970 and after 2106 is the nearest time that there is.
    let time = |time: StatxTimestamp| Time {
        seconds: u32::try_from(time.tv_sec.max(0)).unwrap_or(u32::MAX),
        nanoseconds: time.tv_nsec,
    };
    Attributes {
        kind: seen.kind(),
        mode: seen.mode() & 0o7777,
        links: stat.stx_nlink,
        uid: stat.stx_uid,
        gid: stat.stx_gid,
        size_bytes: stat.stx_size,
        used_bytes: stat.stx_blocks.saturating_mul(512),
        device: Device { major: stat.stx_rdev_major, minor: stat.stx_rdev_minor },
        fsid: u64::from(fsid),
        fileid: stat.stx_ino,
        accessed: time(stat.stx_atime),
        modified: time(stat.stx_mtime),
        changed: time(stat.stx_ctime),
    }
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Seen").field(&self.id()).finish()
    }
}
