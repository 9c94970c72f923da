//! Entries of a directory, with the system's own places in it as cookies.

use std::os::fd::AsFd;

use rustix::fs::{FileType, OFlags, RawDir, SeekFrom, seek};

use super::super::tree::{TreeEntries, TreeEntry, TreeResult};
use super::{Node, reopen, status};
use crate::codec::nfs::Status;

/// Octets that an entry has in a reply beside its name.
const ENTRY_BYTES: usize = 24;
/// Octets of names that the system gives at a time.
const SYSTEM_BYTES: usize = 32 * 1024;

/// Entries behind `cookie`, as many as fit into `bytes`, and one at least.
pub(super) fn entries(node: &Node, is_root: bool, cookie: u64, bytes: usize) -> TreeResult<TreeEntries> {
    let directory = reopen(node.descriptor.as_fd(), OFlags::RDONLY | OFlags::DIRECTORY).map_err(status)?;
    if cookie != 0 {
        if i64::try_from(cookie).is_err() {
            return Err(Status::BAD_COOKIE);
        }
        seek(&directory, SeekFrom::Start(cookie)).map_err(|_| Status::BAD_COOKIE)?;
    }
    let mut buffer = Vec::with_capacity(SYSTEM_BYTES);
    let mut system = RawDir::new(&directory, buffer.spare_capacity_mut());
    let (mut list, mut room) = (TreeEntries::default(), bytes);
    while let Some(entry) = system.next() {
        let entry = entry.map_err(status)?;
        let name = entry.file_name().to_bytes();
        let needed = ENTRY_BYTES + name.len().next_multiple_of(4);
        if needed > room && !list.entries.is_empty() {
            return Ok(list);
        }
        room = room.saturating_sub(needed);
        // Nothing is told of what is above the root.
        let fileid = if is_root && name == b".." { node.seen.id().0 } else { entry.ino() };
        list.entries.push(TreeEntry { fileid, name: name.to_vec(), cookie: entry.next_entry_cookie() });
    }
    list.is_end = true;
    Ok(list)
}

/// A name of a directory in a search.
pub(super) struct Candidate {
    pub(super) inode: u64,
    pub(super) name: Vec<u8>,
    pub(super) is_directory: bool,
}

/// Calls `visit` for each name in a directory for as long as it says true.
pub(super) fn each(node: &Node, mut visit: impl FnMut(Candidate) -> bool) -> TreeResult<()> {
    let directory = reopen(node.descriptor.as_fd(), OFlags::RDONLY | OFlags::DIRECTORY).map_err(status)?;
    let mut buffer = Vec::with_capacity(SYSTEM_BYTES);
    let mut system = RawDir::new(&directory, buffer.spare_capacity_mut());
    while let Some(entry) = system.next() {
        let entry = entry.map_err(status)?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let is_directory = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
        if !visit(Candidate { inode: entry.ino(), name: name.to_vec(), is_directory }) {
            break;
        }
    }
    Ok(())
}
