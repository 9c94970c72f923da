//! Files as a whole: fetched and stored with many calls under way.

use futures_util::stream::{FuturesUnordered, StreamExt};
use inhost_common::Clock;
use inhost_common::storage::{Sink, Source};

use super::{ClientError, Remote};
use crate::codec::nfs::{
    self, CommitArguments, DATA_BYTES, Data, FileType, Handle, ReadArguments, Stable, Status, Verifier,
    WriteArguments,
};

/// Octets of READs or WRITEs of a file under way at a time.
pub const WINDOW_BYTES: u64 = 4 << 20;
/// The most calls of which they are; and the fewest are two.
pub const WINDOW_CALLS: usize = 32;
/// Octets that are written before they are committed, and written again if the server forgot them.
pub const COMMIT_BYTES: u64 = 64 << 20;
/// How often the same octets are written.
const COMMIT_TRIES: usize = 16;
/// Octets of one call where the server names no size.
const CALL_BYTES: usize = 32 * 1024;

/// Told how many octets of a file have moved.
pub type Progress<'a> = &'a dyn Fn(u64);

fn call_bytes(best: u32, most: u32) -> u64 {
    let best = if best == 0 { CALL_BYTES } else { best as usize };
    let most = if most == 0 { DATA_BYTES } else { most as usize };
    best.min(most).clamp(1, DATA_BYTES) as u64
}

/// Calls under way at a time, of so many octets each.
fn window(call_bytes: u64) -> usize {
    usize::try_from(WINDOW_BYTES / call_bytes.max(1)).unwrap_or(WINDOW_CALLS).clamp(2, WINDOW_CALLS)
}

/// Pieces of `from..to`, each at most `bytes` long.
fn pieces(from: u64, to: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut at = from;
    std::iter::from_fn(move || {
        let piece = (at, to.min(at.saturating_add(bytes)));
        at = piece.1;
        (piece.0 < piece.1).then_some(piece)
    })
}

impl<C: Clock> Remote<C> {
    /// Fetches a file into `sink` and commits it there; gives its octets.
    pub async fn get(
        &self,
        path: &str,
        sink: Box<dyn Sink>,
        progress: Progress<'_>,
    ) -> Result<u64, ClientError> {
        let fetched = self.fetch(path, &*sink, progress).await;
        match fetched {
            Ok(bytes) => {
                sink.commit(bytes).await?;
                Ok(bytes)
            }
            Err(error) => {
                sink.discard().await;
                Err(error)
            }
        }
    }

    async fn fetch(&self, path: &str, sink: &dyn Sink, progress: Progress<'_>) -> Result<u64, ClientError> {
        let file = self.file(path).await?;
        match file.attributes.kind {
            FileType::Regular => {}
            FileType::Directory => {
                return Err(ClientError::Refused { procedure: "Read", status: Status::ISDIR });
            }
            _ => return Err(ClientError::Refused { procedure: "Read", status: Status::INVAL }),
        }
        let size_bytes = file.attributes.size_bytes;
        let best = call_bytes(self.information.read_best, self.information.read_most);
        let (mut under_way, mut moved) = (FuturesUnordered::new(), 0);
        let mut left = pieces(0, size_bytes, best);
        loop {
            while under_way.len() < window(best)
                && let Some(piece) = left.next()
            {
                under_way.push(self.read_piece(&file.handle, piece, sink));
            }
            let Some(done) = under_way.next().await else { return Ok(size_bytes) };
            moved += done?;
            progress(moved);
        }
    }

    /// Reads all of a piece and has it written.
    async fn read_piece(
        &self,
        file: &Handle,
        (from, to): (u64, u64),
        sink: &dyn Sink,
    ) -> Result<u64, ClientError> {
        let mut at = from;
        while at < to {
            let wanted = u32::try_from(to - at).unwrap_or(u32::MAX);
            let asked = ReadArguments { file: file.clone(), offset: at, count: wanted };
            let read = self.rpc.files::<nfs::Read, _, _>(&asked).await?;
            let octets = read.data.0;
            if octets.len() as u64 > to - at {
                return Err(ClientError::Nonsense("more octets than were asked for"));
            }
            if octets.is_empty() {
                return Err(ClientError::Changed);
            }
            let count = octets.len() as u64;
            let (_, written) = sink.write_at(at, octets).await;
            written?;
            at += count;
        }
        Ok(to - from)
    }

    /// Stores `source` as a file with these permission bits; gives its octets. They are on the server's disk when this
    /// returns. A file that is there is overwritten in place.
    pub async fn put(
        &self,
        source: &dyn Source,
        path: &str,
        mode: u32,
        progress: Progress<'_>,
    ) -> Result<u64, ClientError> {
        let file = self.create(path, mode).await?;
        let size_bytes = source.size_bytes();
        if size_bytes <= self.write_bytes() {
            // One call is enough for it to be on the disk.
            let all = (0, size_bytes);
            let (moved, uncommitted) = self.write_piece(source, &file, all, Stable::File).await?;
            progress(moved);
            if uncommitted.is_empty() {
                return Ok(size_bytes);
            }
        }
        for (from, to) in pieces(0, size_bytes, COMMIT_BYTES) {
            self.store_region(source, &file, (from, to), progress).await?;
        }
        Ok(size_bytes)
    }

    /// Octets of a WRITE.
    fn write_bytes(&self) -> u64 {
        call_bytes(self.information.write_best, self.information.write_most)
    }

    /// Writes a region, and again until it is committed: a verifier that changed says that the server has started again
    /// since, and may have forgotten what was not on its disk (RFC 1813 §3.3.21).
    async fn store_region(
        &self,
        source: &dyn Source,
        file: &Handle,
        (from, to): (u64, u64),
        progress: Progress<'_>,
    ) -> Result<(), ClientError> {
        for _ in 0..COMMIT_TRIES {
            let verifiers = self.write_region(source, file, (from, to), progress).await?;
            let Some((first, rest)) = verifiers.split_first() else { return Ok(()) };
            let asked = CommitArguments {
                file: file.clone(),
                offset: from,
                count: u32::try_from(to - from).unwrap_or(0),
            };
            let committed = self.rpc.files::<nfs::Commit, _, _>(&asked).await?;
            if committed.verifier == *first && rest.iter().all(|verifier| verifier == first) {
                return Ok(());
            }
        }
        Err(ClientError::NotCommitted)
    }

    /// Writes a region; gives the verifiers of what has to be committed.
    async fn write_region(
        &self,
        source: &dyn Source,
        file: &Handle,
        (from, to): (u64, u64),
        progress: Progress<'_>,
    ) -> Result<Vec<Verifier>, ClientError> {
        let (mut under_way, mut moved, mut verifiers) = (FuturesUnordered::new(), from, Vec::new());
        let mut left = pieces(from, to, self.write_bytes());
        loop {
            while under_way.len() < window(self.write_bytes())
                && let Some(piece) = left.next()
            {
                under_way.push(self.write_piece(source, file, piece, Stable::Unstable));
            }
            let Some(done) = under_way.next().await else { return Ok(verifiers) };
            let (bytes, uncommitted) = done?;
            for verifier in uncommitted {
                if verifiers.last() != Some(&verifier) {
                    verifiers.push(verifier);
                }
            }
            moved += bytes;
            progress(moved);
        }
    }

    /// Writes all of a piece; gives its octets and the verifiers of what has to be committed.
    async fn write_piece(
        &self,
        source: &dyn Source,
        file: &Handle,
        (from, to): (u64, u64),
        stable: Stable,
    ) -> Result<(u64, Vec<Verifier>), ClientError> {
        let wanted = usize::try_from(to - from).unwrap_or(DATA_BYTES);
        let (mut octets, read) = source.read_at(from, vec![0; wanted]).await;
        if read? < wanted {
            return Err(ClientError::Changed);
        }
        let (mut at, mut verifiers) = (from, Vec::new());
        while at < to {
            let count = octets.len() as u32;
            let data = Data(std::mem::take(&mut octets));
            let asked = WriteArguments { file: file.clone(), offset: at, count, stable, data };
            let written = self.rpc.files::<nfs::Write, _, _>(&asked).await?;
            if written.count == 0 || written.count > count {
                return Err(ClientError::Nonsense("no octets, or more than were sent, were written"));
            }
            if written.stable == Stable::Unstable {
                verifiers.push(written.verifier);
            }
            at += u64::from(written.count);
            octets = asked.data.0;
            octets.drain(..written.count as usize);
        }
        Ok((to - from, verifiers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_all_once() {
        assert_eq!(pieces(0, 10, 4).collect::<Vec<_>>(), [(0, 4), (4, 8), (8, 10)]);
        assert_eq!(pieces(4, 8, 4).collect::<Vec<_>>(), [(4, 8)]);
        assert!(pieces(0, 0, 4).next().is_none());
        assert_eq!(pieces(u64::MAX - 1, u64::MAX, u64::MAX).count(), 1);
        assert_eq!([window(1), window(1 << 20), window(1 << 30)], [32, 4, 2]);
        assert_eq!([call_bytes(0, 0), call_bytes(9, 5), call_bytes(u32::MAX, 0)], [32_768, 5, 1 << 20]);
    }
}
