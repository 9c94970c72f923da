//! A file that is being written, beside the name that it will have.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::sync::Arc;

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};

use super::folder::Plain;
use super::{LocalFuture, Outcome, Quota, Sink, Source, StorageError, Store, Storing};

const PREFIX: &str = ".";
const SUFFIX: &str = ".inhost-part";
/// Names that [`Store::Unique`] tries.
const UNIQUE_TRIES: u32 = 10_000;
/// Octets that are copied at a time from the old file to the new one.
const COPY_BYTES: usize = 1 << 20;

/// The name under which `name` is written.
pub(super) fn partial_name(name: &str) -> String {
    format!("{PREFIX}{name}{SUFFIX}")
}

/// Whether a name is that of a file which is being written: nothing that others should see.
pub fn is_partial(name: &str) -> bool {
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

/// One upload.
struct Partial {
    folder: Arc<Dir>,
    file: Arc<File>,
    /// Where it is written and what it will be called, both within `folder`; the same when it is written in place.
    name: String,
    final_name: String,
    quota: Option<Quota>,
    umask: u32,
    committed: bool,
}

/// Opens `name` in `folder` to be written; runs where it may block.
pub(super) fn open(
    folder: Dir,
    name: &str,
    how: Store,
    umask: u32,
    quota: Option<Quota>,
) -> Outcome<Storing> {
    let mut final_name = name.to_owned();
    if how == Store::Unique {
        final_name = unique(&folder, name)?;
    }
    let existing = match folder.metadata(&final_name) {
        Ok(metadata) if metadata.is_dir() => return Err(StorageError::IsDirectory),
        Ok(metadata) if !metadata.is_file() => return Err(StorageError::NotFile),
        Ok(metadata) => Some(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let in_place = how == Store::Append && existing.is_some();
    let name = if in_place { final_name.clone() } else { partial_name(&final_name) };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(!in_place).mode(0o600);
    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = folder.open_with(&name, &options)?.into_std();
    if !file.metadata()?.is_file() {
        return Err(StorageError::NotFile);
    }
    // Two sessions that write to one file would make a third of it. The lock goes with the descriptor, also when the
    // process is killed.
    file.try_lock().map_err(|_| StorageError::Busy)?;
    let there = file.metadata()?.len();
    let position = match (how, existing) {
        (Store::Append, _) => there,
        (Store::Replace | Store::Unique, _) => 0,
        (Store::At(at), _) if at <= there => at,
        // Not enough was broken off here, so the beginning is that of the file.
        (Store::At(at), Some(length)) if at <= length => {
            copy_beginning(&folder, &final_name, &file, at)?;
            at
        }
        (Store::At(_), _) => return Err(StorageError::Position),
    };
    file.set_len(position)?;
    if let Some(quota) = &quota {
        quota.release(there.saturating_sub(position));
    }
    let partial = Partial {
        folder: Arc::new(folder),
        file: Arc::new(file),
        name,
        final_name: final_name.clone(),
        quota,
        umask,
        committed: in_place,
    };
    Ok(Storing { sink: Box::new(partial), position, name: final_name })
}

fn unique(folder: &Dir, name: &str) -> Outcome<String> {
    let is_free = |name: &str| {
        folder.symlink_metadata(name).is_err() && folder.symlink_metadata(partial_name(name)).is_err()
    };
    (0..UNIQUE_TRIES)
        .map(|number| if number == 0 { name.to_owned() } else { format!("{name}.{number}") })
        .find(|name| is_free(name))
        .ok_or(StorageError::Exists)
}

fn copy_beginning(folder: &Dir, from: &str, to: &File, bytes: u64) -> Outcome<()> {
    let from = folder.open(from)?.into_std();
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
    fn write_at(&self, position: u64, buffer: Vec<u8>) -> LocalFuture<(Vec<u8>, Outcome<()>)> {
        if let Some(quota) = &self.quota
            && !quota.take(buffer.len() as u64)
        {
            return Box::pin(std::future::ready((buffer, Err(StorageError::Quota))));
        }
        let file = self.file.clone();
        Box::pin(blocking::unblock(move || {
            let written = file.write_all_at(&buffer, position).map_err(StorageError::from);
            (buffer, written)
        }))
    }

    fn read_back(&self) -> Box<dyn Source> {
        let size_bytes = self.file.metadata().map_or(0, |metadata| metadata.len());
        Box::new(Plain { file: self.file.clone(), size_bytes })
    }

    fn commit(mut self: Box<Self>, size_bytes: u64) -> LocalFuture<Outcome<()>> {
        Box::pin(blocking::unblock(move || {
            if self.name == self.final_name {
                return Ok(());
            }
            self.file.set_len(size_bytes)?;
            let mode = std::fs::Permissions::from_mode(0o666 & !self.umask);
            self.file.set_permissions(mode)?;
            let replaced = self.folder.symlink_metadata(&self.final_name).map_or(0, |old| old.len());
            self.folder.rename(&self.name, &self.folder, &self.final_name)?;
            self.committed = true;
            if let Some(quota) = &self.quota {
                quota.release(replaced);
            }
            Ok(())
        }))
    }

    fn discard(self: Box<Self>) -> LocalFuture<()> {
        Box::pin(blocking::unblock(move || {
            // What is empty goes with its last handle.
            let _ = self.file.set_len(0);
        }))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Nothing came of it, so nothing is left of it; this is quick, and not worth a thread.
        if !self.committed && self.file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            let _ = self.folder.remove_file(&self.name);
        }
    }
}
