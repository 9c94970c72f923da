//! File requests of a session, carried out on its storage.

use std::rc::Rc;

use super::listing::{self, FirstNames, first_names};
use crate::codec::{Facts, Kind, UnixTime};
use crate::server::{Digest, FileReply, FileRequest, ListStyle};
use inhost_common::storage::{Source, Storage, StorageError, StorageResult, VirtualPath};

/// Octets that are read at a time to be hashed or counted.
const CHUNK_BYTES: usize = 256 * 1024;
/// No more than this is hashed at once where it was read: a change of threads takes as long.
const HASHED_AT_ONCE_BYTES: usize = 16 * 1024;
/// The longest file whose line ends are counted for SIZE in type A; RFC 3659 §4.1 lets longer ones be refused.
const COUNTED_BYTES: u64 = 64 << 20;
/// Lines of a listing on the control connection.
const STAT_LINES: usize = 1000;

/// Does what was asked.
pub(super) async fn serve(
    storage: Rc<dyn Storage>,
    request: FileRequest,
    now: UnixTime,
) -> StorageResult<FileReply> {
    match request {
        FileRequest::Enter(path) => match storage.facts(&path).await?.kind {
            Kind::Directory => Ok(FileReply::Done),
            _ => Err(StorageError::NotDirectory),
        },
        FileRequest::Size { path, text: false } => storage.size(&path).await.map(FileReply::Size),
        FileRequest::Size { path, text: true } => text_size(&*storage, &path).await.map(FileReply::Size),
        FileRequest::Modified(path) | FileRequest::Facts(path) => {
            storage.facts(&path).await.map(FileReply::Facts)
        }
        FileRequest::SetModified(path, time) => {
            storage.set_modified(&path, time).await.map(|()| FileReply::Done)
        }
        FileRequest::Make { path, umask } => {
            storage.make_directory(&path, umask).await.map(|()| FileReply::Done)
        }
        FileRequest::RemoveDirectory(path) => storage.remove_directory(&path).await.map(|()| FileReply::Done),
        FileRequest::Remove(path) => storage.remove(&path).await.map(|()| FileReply::Done),
        FileRequest::RenameFrom(path) => storage.facts(&path).await.map(|_| FileReply::Done),
        FileRequest::Rename(from, to) => storage.rename(&from, &to).await.map(|()| FileReply::Done),
        FileRequest::SetMode(path, mode) => storage.set_mode(&path, mode).await.map(|()| FileReply::Done),
        FileRequest::Digest { path, digest } => {
            let source = storage.retrieve(&path).await?;
            let (hash, size) = hash(&*source, digest).await?;
            Ok(FileReply::Digest(hash, size))
        }
        FileRequest::List(path) => stat_lines(&*storage, &path, now).await.map(FileReply::Lines),
    }
}

async fn text_size(storage: &dyn Storage, path: &VirtualPath) -> StorageResult<u64> {
    let source = storage.retrieve(path).await?;
    if source.size_bytes() > COUNTED_BYTES {
        return Err(StorageError::Other("Too long to count in TYPE A, say TYPE I".into()));
    }
    let (mut position, mut lines, mut last) = (0, 0, 0);
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let (back, count) = source.read_at(position, buffer).await;
        let count = count?;
        // Lines that end in CR LF are sent unchanged.
        for &octet in &back[..count] {
            lines += u64::from(octet == b'\n' && last != b'\r');
            last = octet;
        }
        position += count as u64;
        if count == 0 {
            return Ok(position + lines);
        }
        buffer = back;
    }
}

/// The hash of a whole file, and its octets. The work is done where it holds nobody up.
pub(crate) async fn hash(source: &dyn Source, digest: Digest) -> StorageResult<(String, u64)> {
    let algorithm = match digest {
        Digest::Sha256 => &ring::digest::SHA256,
        Digest::Sha512 => &ring::digest::SHA512,
        Digest::Sha1 => &ring::digest::SHA1_FOR_LEGACY_USE_ONLY,
    };
    let mut context = ring::digest::Context::new(algorithm);
    // One more than is there shows at once that there is no more.
    let bytes = usize::try_from(source.size_bytes().saturating_add(1)).unwrap_or(usize::MAX);
    let mut buffer = vec![0; bytes.min(CHUNK_BYTES)];
    let mut position = 0;
    loop {
        let (back, count) = source.read_at(position, buffer).await;
        let count = count?;
        let is_last = count < back.len();
        position += count as u64;
        if count <= HASHED_AT_ONCE_BYTES {
            context.update(&back[..count]);
            buffer = back;
        } else {
            (context, buffer) = blocking::unblock(move || {
                context.update(&back[..count]);
                (context, back)
            })
            .await;
        }
        if is_last {
            let hash = context.finish();
            return Ok((hash.as_ref().iter().map(|octet| format!("{octet:02x}")).collect(), position));
        }
    }
}

async fn stat_lines(storage: &dyn Storage, path: &VirtualPath, now: UnixTime) -> StorageResult<Vec<String>> {
    let FirstNames { names, .. } = first_names(storage, path, STAT_LINES).await?;
    let style = ListStyle::Long { all: true };
    let line = |(name, facts): &(String, Facts)| listing::line(name, facts, style, now).trim_end().to_owned();
    Ok(names.iter().take(STAT_LINES).map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_common::LocalFuture;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A file in memory that counts how often it is read.
    struct Counting(Vec<u8>, AtomicUsize);

    impl Source for Counting {
        fn size_bytes(&self) -> u64 {
            self.0.len() as u64
        }
        fn read_at(
            &self,
            position: u64,
            mut buffer: Vec<u8>,
        ) -> LocalFuture<(Vec<u8>, StorageResult<usize>)> {
            self.1.fetch_add(1, Ordering::Relaxed);
            let rest = &self.0[usize::try_from(position).unwrap()..];
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            Box::pin(std::future::ready((buffer, Ok(count))))
        }
    }

    /// Each read is a change of threads, and many files are small.
    #[test]
    fn a_small_file_is_read_once_to_be_hashed() {
        for (bytes, reads) in
            [(0, 1), (4000, 1), (CHUNK_BYTES - 1, 1), (CHUNK_BYTES, 2), (CHUNK_BYTES + 1, 2)]
        {
            let source = Counting(vec![7; bytes], AtomicUsize::new(0));
            let (hash, size) = futures_lite::future::block_on(hash(&source, Digest::Sha256)).unwrap();
            let whole = ring::digest::digest(&ring::digest::SHA256, &source.0);
            let whole: String = whole.as_ref().iter().map(|octet| format!("{octet:02x}")).collect();
            assert_eq!((hash, size), (whole, bytes as u64));
            assert_eq!(source.1.into_inner(), reads, "{bytes} octets");
        }
    }
}
