//! The thread that writes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::lines::Lines;
use crate::store::Store;
use crate::{HistoryError, Record};

/// Batches of records that wait to be written.
const WAITING: usize = 64;
/// How often what is over the limits is removed, while nothing is written.
const IDLE: Duration = Duration::from_millis(250);
/// Records of one transaction.
const AT_ONCE: usize = 20_000;
/// Transactions between two looks at the limits.
const LOOK_EVERY: u32 = 20;

/// How much is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Days that a record is kept. Default 30.
    pub days: u32,
    /// The most records. Default 1,000,000, some 250 MB.
    pub connections: u64,
    /// Bytes of a file with a line for each connection; there are two. 0 for none, the default.
    pub lines_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { days: 30, connections: 1_000_000, lines_bytes: 0 }
    }
}

/// Writes records on a thread of its own. Dropped, it writes what waits.
#[derive(Debug)]
pub struct Writer {
    batches: Option<SyncSender<Vec<Record>>>,
    thread: Option<JoinHandle<()>>,
    lost: Arc<AtomicU64>,
}

impl Writer {
    /// Opens the records of a folder, and makes it where there is none. Waits for the disk.
    pub fn open(folder: &Path, limits: Limits) -> Result<Writer, HistoryError> {
        let failed = |error| HistoryError::Io(folder.to_owned(), error);
        let store = Store::open(folder)?;
        let lines = match limits.lines_bytes {
            0 => None,
            most_bytes => Some(Lines::open(folder, most_bytes).map_err(failed)?),
        };
        let (batches, waiting) = sync_channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let work = Work { store, lines, limits, lost: lost.clone(), commits: 0, removes: false, last_ms: 0 };
        let thread = std::thread::Builder::new().name("history".to_owned());
        let thread = thread.spawn(move || work.run(&waiting)).map_err(failed)?;
        Ok(Writer { batches: Some(batches), thread: Some(thread), lost })
    }
    /// Has records written at once. Never waits: where the disk is too slow, they are lost and
    /// counted.
    pub fn add(&self, records: Vec<Record>) {
        let count = records.len() as u64;
        let sent = self.batches.as_ref().is_some_and(|batches| batches.try_send(records).is_ok());
        if !sent {
            self.lost.fetch_add(count, Ordering::Relaxed);
        }
    }
    /// Records lost since the last call, because the disk was too slow, or full.
    pub fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.batches.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Work {
    store: Store,
    lines: Option<Lines>,
    limits: Limits,
    lost: Arc<AtomicU64>,
    commits: u32,
    /// More is to be removed.
    removes: bool,
    /// When the latest record ended, by which the age of the others is judged.
    last_ms: u64,
}

impl Work {
    fn run(mut self, waiting: &Receiver<Vec<Record>>) {
        let mut records = Vec::new();
        loop {
            match waiting.recv_timeout(IDLE) {
                Ok(more) => {
                    records.extend(more);
                    while records.len() < AT_ONCE
                        && let Ok(more) = waiting.try_recv()
                    {
                        records.extend(more);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if !records.is_empty() {
                self.write(&records);
                records.clear();
            }
            if self.removes {
                self.remove();
            }
        }
    }
    fn write(&mut self, records: &[Record]) {
        self.last_ms = records.iter().map(|record| record.ended_ms).max().unwrap_or(self.last_ms);
        let lines = self.lines.as_mut().map_or(Ok(()), |lines| lines.add(records));
        if self.store.add(records).is_err() || lines.is_err() {
            self.lost.fetch_add(records.len() as u64, Ordering::Relaxed);
        }
        self.removes |= self.commits.is_multiple_of(LOOK_EVERY);
        self.commits += 1;
    }
    /// Some at a time, so that the next records need not wait.
    fn remove(&mut self) {
        self.removes = self.store.remove(&self.limits, self.last_ms).unwrap_or(false);
    }
}
