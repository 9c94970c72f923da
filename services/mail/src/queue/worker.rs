//! The queue's thread: operations that wait at the same time are one transaction, and one wait for the disk.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use rustix::fs::{FlockOperation, flock};

use super::store::{Batch, Item, NewMessage, Result_, Settlement, Store, StoreError, Stored};

/// Operations of one transaction.
const GROUP: usize = 512;
/// Operations that may wait.
const WAITING: usize = 8192;

/// An operation on its way through the thread.
trait Job: Send {
    fn run(&mut self, store: &mut Store);
    fn is_durable(&self) -> bool;
    fn done(self: Box<Self>, committed: &Result<(), String>);
}

struct Call<T, F> {
    work: Option<F>,
    result: Option<Result_<T>>,
    is_durable: bool,
    answer: async_channel::Sender<Result_<T>>,
}

impl<T: Send, F: FnOnce(&mut Store) -> Result_<T> + Send> Job for Call<T, F> {
    fn run(&mut self, store: &mut Store) {
        let Some(work) = self.work.take() else { return };
        let _ = store.db.execute_batch("SAVEPOINT operation");
        let garbage = store.garbage.len();
        let result = work(store);
        let end = match &result {
            Ok(_) => "RELEASE operation",
            Err(_) => {
                // What is not removed needs its file.
                store.garbage.truncate(garbage);
                "ROLLBACK TO operation; RELEASE operation"
            }
        };
        self.result = Some(store.db.execute_batch(end).map_err(StoreError::from).and(result));
    }
    fn is_durable(&self) -> bool {
        self.is_durable
    }
    fn done(mut self: Box<Self>, committed: &Result<(), String>) {
        let result = match committed {
            Ok(()) => self.result.take().unwrap_or(Err(StoreError::Closed)),
            Err(why) => {
                let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR);
                Err(StoreError::Database(rusqlite::Error::SqliteFailure(error, Some(why.clone()))))
            }
        };
        // Who asked may have gone.
        let _ = self.answer.try_send(result);
    }
}

/// The queue. A clone is the same one.
#[derive(Clone)]
pub struct Queue(Rc<Inner>);

/// The right to send from a queue. Dropped, another process may have it.
#[derive(Debug)]
pub struct SendLock {
    _file: Option<File>,
}

enum Inner {
    Thread { jobs: SyncSender<Box<dyn Job>>, folder: PathBuf },
    Memory(RefCell<Store>),
}

impl Queue {
    /// Opens the queue in `folder`, and makes it where there is none. Several processes may add to it; one of them
    /// [sends](Self::lock). It waits for the disk.
    pub fn open(folder: &Path) -> Result_<Queue> {
        let store = Store::open(Some(folder))?;
        let (jobs, waiting) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("mail-queue".into());
        thread
            .spawn(move || work(store, &waiting))
            .map_err(|error| StoreError::Io(folder.to_owned(), error))?;
        Ok(Queue(Rc::new(Inner::Thread { jobs, folder: folder.to_owned() })))
    }
    /// Takes the right to send from this queue, and recovers it after a crash: nothing is under way.
    /// [`StoreError::Locked`] while another process has it.
    pub async fn lock(&self) -> Result_<SendLock> {
        let file = match &*self.0 {
            Inner::Thread { folder, .. } => Some(lock(folder)?),
            Inner::Memory(_) => None,
        };
        self.call(false, |store| store.recover()).await?;
        Ok(SendLock { _file: file })
    }
    /// A queue in memory, without a thread, for simulations.
    pub fn in_memory() -> Result_<Queue> {
        Ok(Queue(Rc::new(Inner::Memory(RefCell::new(Store::open(None)?)))))
    }
    /// Where large messages go, so that [`add`](Self::add) can keep them.
    pub fn text_folder(&self) -> Option<PathBuf> {
        match &*self.0 {
            Inner::Thread { folder, .. } => Some(folder.join("text")),
            Inner::Memory(_) => None,
        }
    }
    /// Adds a message; its number, once it is durable.
    pub async fn add(&self, message: NewMessage) -> Result_<i64> {
        self.call(true, move |store| store.add(&message)).await
    }
    /// Gives out what is due: see [`Batch`]. `busy` destinations are left out.
    pub async fn claim(
        &self,
        now_s: u64,
        destinations: usize,
        items: usize,
        busy: BTreeSet<String>,
    ) -> Result_<Vec<Batch>> {
        self.call(false, move |store| store.claim(now_s, destinations, items, &busy)).await
    }
    /// Gives out what is due of one destination.
    pub async fn claim_of(&self, domain: &str, now_s: u64, items: usize) -> Result_<Batch> {
        let domain = domain.to_owned();
        self.call(false, move |store| store.claim_of(&domain, now_s, items)).await
    }
    /// When something is due next, in seconds since 1970.
    pub async fn next_due_s(&self) -> Result_<Option<u64>> {
        self.call(false, |store| store.next_due_s()).await
    }
    /// Notes what came of recipients. A note that is lost in a crash sends a message again.
    pub async fn settle(&self, settlement: Settlement) -> Result_<()> {
        let has_reports = !settlement.reports.is_empty();
        self.call(has_reports, move |store| store.settle(&settlement)).await
    }
    pub(crate) async fn load(&self, message: i64) -> Result_<Option<Stored>> {
        self.call(false, move |store| store.load(message)).await
    }
    pub(crate) async fn failures(&self, domain: &str) -> Result_<u32> {
        let domain = domain.to_owned();
        self.call(false, move |store| store.failures(&domain)).await
    }
    /// Takes back what was given out of a destination that nobody works for any more.
    pub(crate) async fn release(&self, domain: &str) -> Result_<()> {
        let domain = domain.to_owned();
        self.call(false, move |store| store.release(&domain)).await
    }
    pub(crate) async fn claim_expired(&self, domain: &str, now_s: u64, items: usize) -> Result_<Vec<Item>> {
        let domain = domain.to_owned();
        self.call(false, move |store| store.claim_expired(&domain, now_s, items)).await
    }

    async fn call<T, F>(&self, is_durable: bool, work: F) -> Result_<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Store) -> Result_<T> + Send + 'static,
    {
        match &*self.0 {
            Inner::Memory(store) => work(&mut store.borrow_mut()),
            Inner::Thread { jobs, .. } => {
                let (answer, answered) = async_channel::bounded(1);
                let call = Call { work: Some(work), result: None, is_durable, answer };
                match jobs.try_send(Box::new(call)) {
                    Ok(()) => answered.recv().await.unwrap_or(Err(StoreError::Closed)),
                    Err(TrySendError::Full(_)) => Err(StoreError::Database(rusqlite::Error::SqliteFailure(
                        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
                        Some("too many operations wait".into()),
                    ))),
                    Err(TrySendError::Disconnected(_)) => Err(StoreError::Closed),
                }
            }
        }
    }
}

/// Takes the lock of a queue's folder.
fn lock(folder: &Path) -> Result_<File> {
    let path = folder.join("lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|error| StoreError::Io(path, error))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| StoreError::Locked)?;
    Ok(file)
}

/// Whether a host sends from the queue in `folder`.
pub(super) fn is_locked(folder: &Path) -> bool {
    matches!(lock(folder), Err(StoreError::Locked))
}

fn work(mut store: Store, waiting: &Receiver<Box<dyn Job>>) {
    while let Ok(first) = waiting.recv() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(job) = waiting.try_recv()
        {
            group.push(job);
        }
        let is_durable = group.iter().any(|job| job.is_durable());
        let committed = transaction(&mut store, is_durable, &mut group).map_err(|error| error.to_string());
        if let Err(why) = &committed {
            tracing::error!(target: "mail", "the queue cannot be written: {why}");
            let _ = store.db.execute_batch("ROLLBACK");
            store.garbage.clear();
        }
        group.into_iter().for_each(|job| job.done(&committed));
        remove_garbage(&mut store, is_durable);
    }
}

/// Removes files of messages that have left. What says that they have left is on the disk first: after a power failure a
/// message without its file would be reported as lost.
fn remove_garbage(store: &mut Store, is_on_disk: bool) {
    let Some(folder) = store.folder.as_ref().filter(|_| !store.garbage.is_empty()) else { return };
    let log = || File::open(folder.join("queue.sqlite-wal")).and_then(|log| log.sync_data());
    if is_on_disk || log().is_ok() {
        store.garbage.drain(..).for_each(|path| drop(fs::remove_file(path)));
    }
}

fn transaction(store: &mut Store, is_durable: bool, group: &mut [Box<dyn Job>]) -> Result_<()> {
    // In WAL mode a commit without a wait for the disk may be lost in a power failure, and harms nothing else.
    let mode = if is_durable { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" };
    store.db.execute_batch(mode)?;
    store.db.execute_batch("BEGIN IMMEDIATE")?;
    group.iter_mut().for_each(|job| job.run(store));
    if core::mem::take(&mut store.has_new_files)
        && let Some(folder) = store.folder.as_ref().map(|folder| folder.join("text"))
    {
        let synced = File::open(&folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| StoreError::Io(folder, error))?;
    }
    store.db.execute_batch("COMMIT")?;
    Ok(())
}
