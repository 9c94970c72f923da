//! A file that is being written, beside the name that it will have.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cap_std::fs::{Dir, MetadataExt as _, OpenOptions, OpenOptionsExt};

use super::name::{PREFIX, SUFFIX, system};
use super::plain::Plain;
use super::quota::{Growing, Grows};
use super::{LocalFuture, Quota, Sink, Source, StorageError, StorageResult, Store, Storing, name_octets};

/// Octets of a name that file systems take (NAME_MAX).
const NAME_BYTES: usize = 255;
/// Names that [`Store::Unique`] tries.
const UNIQUE_TRIES: u32 = 10_000;
/// How often a file is opened that got its name, or went, before it was locked.
const OPEN_TRIES: usize = 8;
/// Octets that are copied at a time from the old file to the new one.
const COPY_BYTES: usize = 1 << 20;

/// The name under which `name` is written. A name that leaves no room for the suffix is cut, and a hash of all of it
/// tells it from others with the same beginning.
pub(super) fn partial_name(name: &str) -> String {
    let room = NAME_BYTES - PREFIX.len() - SUFFIX.len();
    let octets = name_octets(name);
    if octets.len() <= room {
        return format!("{PREFIX}{name}{SUFFIX}");
    }
    let hash = format!("~{:016x}", fnv(&octets));
    format!("{PREFIX}{}{hash}{SUFFIX}", cut(name, room - hash.len()))
}

/// Whether a name is one that file systems take.
pub fn fits_name(name: &str) -> bool {
    name_octets(name).len() <= NAME_BYTES
}

/// `name` with at most so many octets, without its end where it has more.
fn cut(name: &str, bytes: usize) -> &str {
    if name_octets(name).len() <= bytes {
        return name;
    }
    // The text of a name has no fewer octets than the name.
    let end = (0..=bytes).rev().find(|&at| name.is_char_boundary(at));
    &name[..end.unwrap_or(0)]
}

/// The hash FNV-1a, which is the same in every version: an upload goes on after an update too.
fn fnv(octets: &[u8]) -> u64 {
    let mix = |hash: u64, &octet: &u8| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
    octets.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// One upload. What is being written holds it too, so that it ends only behind the last of that.
struct Partial {
    body: Arc<Body>,
}

struct Body {
    folder: Dir,
    file: Arc<File>,
    /// Where it is written and what it will be called, both within `folder`; the same when it is written in place.
    name: String,
    final_name: String,
    quota: Option<Quota>,
    /// Octets of the file that the quota has counted.
    counted_bytes: AtomicU64,
    umask: u32,
    /// The name is the file's own.
    is_named: AtomicBool,
    /// Octets that stay when what was written is discarded: those that the file had before it was appended to.
    kept_bytes: u64,
    /// Keeps a file with a name from being freed while it grows.
    _grows: Option<Grows>,
}

/// Opens `name` in `folder` to be written; runs where it may block.
pub(super) fn open(
    folder: Dir,
    name: &str,
    how: Store,
    umask: u32,
    quota: Option<Quota>,
) -> StorageResult<Storing> {
    let mut final_name = name.to_owned();
    if how == Store::Unique {
        final_name = unique(&folder, name)?;
    }
    let existing = match folder.metadata(system(&final_name)) {
        Ok(metadata) if metadata.is_dir() => return Err(StorageError::IsDirectory),
        Ok(metadata) if !metadata.is_file() => return Err(StorageError::NotFile),
        Ok(metadata) => Some(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let in_place = how == Store::Append && existing.is_some();
    let name = if in_place { final_name.clone() } else { partial_name(&final_name) };
    let file = open_locked(&folder, &name, !in_place)?;
    let metadata = file.metadata()?;
    let there = metadata.len();
    let grows = quota.as_ref().filter(|_| in_place);
    let body = Body {
        _grows: grows.map(|quota| quota.grow((metadata.dev(), metadata.ino()))),
        folder,
        file: Arc::new(file),
        name,
        final_name: final_name.clone(),
        quota,
        counted_bytes: AtomicU64::new(there),
        umask,
        is_named: AtomicBool::new(in_place),
        kept_bytes: if in_place { there } else { 0 },
    };
    let position = match (how, existing) {
        (Store::Append, _) => there,
        (Store::Replace | Store::Unique, _) => 0,
        (Store::At(at), _) if at <= there => at,
        // Not enough was broken off here, so the beginning is that of the file.
        (Store::At(at), Some(length)) if at <= length => {
            body.take(at - there)?;
            copy_beginning(&body.folder, &final_name, &body.file, at)?;
            at
        }
        (Store::At(_), _) => return Err(StorageError::Position),
    };
    body.file.set_len(position)?;
    body.release_unwritten();
    Ok(Storing { sink: Box::new(Partial { body: Arc::new(body) }), position, name: final_name })
}

/// Opens a file for nobody else. Two sessions that write to one file would make a third of it. The lock goes with the
/// descriptor, also when the process is killed.
pub(super) fn open_locked(folder: &Dir, name: &str, create: bool) -> StorageResult<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(create).mode(0o600);
    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    for _ in 0..OPEN_TRIES {
        let file = folder.open_with(system(name), &options)?.into_std();
        if !file.metadata()?.is_file() {
            return Err(StorageError::NotFile);
        }
        if lock(folder, name, &file)? {
            return Ok(file);
        }
    }
    Err(StorageError::Busy)
}

/// Locks a file; whether `name` is still its name. Between being opened and locked it may have become the whole file
/// that another session stored, which nobody may write to any more.
fn lock(folder: &Dir, name: &str, file: &File) -> StorageResult<bool> {
    file.try_lock().map_err(|_| StorageError::Busy)?;
    let own = file.metadata()?;
    match folder.metadata(system(name)) {
        Ok(named) => Ok((named.dev(), named.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn unique(folder: &Dir, name: &str) -> StorageResult<String> {
    let is_free = |name: &str| {
        folder.symlink_metadata(system(name)).is_err()
            && folder.symlink_metadata(system(&partial_name(name))).is_err()
    };
    let numbered = |number| {
        let suffix = if number == 0 { String::new() } else { format!(".{number}") };
        format!("{}{suffix}", cut(name, NAME_BYTES - suffix.len()))
    };
    (0..UNIQUE_TRIES).map(numbered).find(|name| is_free(name)).ok_or(StorageError::Exists)
}

fn copy_beginning(folder: &Dir, from: &str, to: &File, bytes: u64) -> StorageResult<()> {
    let from = folder.open(system(from))?.into_std();
    let mut buffer = vec![0; COPY_BYTES];
    let mut position = 0;
    while position < bytes {
        let wanted = buffer.len().min(usize::try_from(bytes - position).unwrap_or(usize::MAX));
        let count = from.read_at(&mut buffer[..wanted], position)?;
        if count == 0 {
            return Err(StorageError::Position);
        }
        to.write_all_at(&buffer[..count], position)?;
        position += count as u64;
    }
    Ok(())
}

impl Sink for Partial {
    fn write_at(&self, position: u64, buffer: Vec<u8>) -> LocalFuture<(Vec<u8>, StorageResult<()>)> {
        if let Err(error) = self.body.take(buffer.len() as u64) {
            return Box::pin(std::future::ready((buffer, Err(error))));
        }
        let body = self.body.clone();
        Box::pin(blocking::unblock(move || {
            let written = body.file.write_all_at(&buffer, position).map_err(StorageError::from);
            (buffer, written)
        }))
    }

    fn read_back(&self) -> Box<dyn Source> {
        let file = self.body.file.clone();
        let size_bytes = file.metadata().map_or(0, |metadata| metadata.len());
        Box::new(Plain { file, size_bytes })
    }

    fn commit(self: Box<Self>, size_bytes: u64) -> LocalFuture<StorageResult<()>> {
        Box::pin(blocking::unblock(move || self.body.commit(size_bytes)))
    }

    fn commit_behind(self: Box<Self>, position: u64, last: Vec<u8>) -> LocalFuture<StorageResult<()>> {
        let bytes = last.len() as u64;
        if let Err(error) = self.body.take(bytes) {
            return Box::pin(std::future::ready(Err(error)));
        }
        Box::pin(blocking::unblock(move || {
            self.body.file.write_all_at(&last, position)?;
            self.body.commit(position + bytes)
        }))
    }

    fn discard(self: Box<Self>) -> LocalFuture<()> {
        Box::pin(blocking::unblock(move || {
            // An upload that is empty goes with its last handle.
            let _ = self.body.file.set_len(self.body.kept_bytes);
        }))
    }
}

impl Body {
    fn take(&self, bytes: u64) -> StorageResult<()> {
        if let Some(quota) = &self.quota {
            quota.take(bytes)?;
            self.counted_bytes.fetch_add(bytes, Ordering::AcqRel);
        }
        Ok(())
    }
    /// Gives back what was counted and is not there: what was cut off, or could not be written.
    fn release_unwritten(&self) {
        let (Some(quota), Ok(metadata)) = (&self.quota, self.file.metadata()) else { return };
        let counted = self.counted_bytes.swap(metadata.len(), Ordering::AcqRel);
        quota.release(counted.saturating_sub(metadata.len()));
    }
    /// Permission bits of the whole file: those of the file that it replaces, as writing into that would leave them.
    fn mode(&self) -> u32 {
        match self.folder.symlink_metadata(system(&self.final_name)) {
            Ok(replaced) if replaced.is_file() => cap_std::fs::MetadataExt::mode(&replaced) & 0o777,
            _ => 0o666 & !self.umask,
        }
    }
    fn commit(&self, size_bytes: u64) -> StorageResult<()> {
        if self.name == self.final_name {
            return Ok(());
        }
        self.file.set_len(size_bytes)?;
        self.file.set_permissions(std::fs::Permissions::from_mode(self.mode()))?;
        let rename = || self.folder.rename(system(&self.name), &self.folder, system(&self.final_name));
        match &self.quota {
            None => rename()?,
            Some(quota) => quota.freeing(|growing| {
                let replaced = freed_bytes(&self.folder, &self.final_name, growing)?;
                Ok((rename()?, replaced))
            })?,
        }
        self.is_named.store(true, Ordering::Release);
        Ok(())
    }
}

/// Octets that are free once `name` is: those of a file, and none of a folder or a link.
pub(super) fn freed_bytes(folder: &Dir, name: &str, growing: &Growing<'_>) -> StorageResult<u64> {
    match folder.symlink_metadata(system(name)) {
        Ok(metadata) if metadata.is_file() => {
            growing.check((metadata.dev(), metadata.ino()))?;
            Ok(metadata.len())
        }
        _ => Ok(0),
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.release_unwritten();
        // Nothing came of it, so nothing is left of it; this is quick, and not worth a thread.
        let is_named = *self.is_named.get_mut();
        if !is_named && self.file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            let _ = self.folder.remove_file(system(&self.name));
        }
    }
}

#[cfg(test)]
mod tests;
