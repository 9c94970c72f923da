//! The queue's thread: operations that wait at the same time are one transaction, and one wait for the disk.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use rustix::fs::{FlockOperation, flock};

use super::records::{
    Change, End, Plan, Quotas, Retention, Scope, StoreError, Submitted, Task, attempt_folder,
};
use super::tables::{Delivery, Selection, Tables};
use crate::codec::{Job, Submission};
use crate::machine::Shares;

/// Operations of one transaction.
const GROUP: usize = 512;
/// Operations that may wait.
const WAITING: usize = 8192;

type Answer<T> = Result<T, StoreError>;

/// An operation on its way through the thread.
struct Operation {
    /// Does it, and says how to answer once that is committed. Without tables it cannot be done.
    run: Box<Run>,
    is_durable: bool,
}

type Run = dyn FnOnce(Option<&mut Tables>) -> Reply + Send;
type Reply = Box<dyn FnOnce(Option<String>) + Send>;

/// The queue. A clone is the same one.
#[derive(Clone)]
pub struct Store(Rc<Inner>);

enum Inner {
    Thread { operations: SyncSender<Operation>, folder: PathBuf },
    Memory(RefCell<Tables>, PathBuf),
}

/// The right to run the jobs of a queue. Dropped, another process may have it.
#[derive(Debug)]
pub struct RunLock {
    _file: Option<File>,
}

impl Store {
    /// Opens the queue in `folder`, and makes it where there is none. Several processes may submit to it; one of them
    /// [runs](Self::lock) its jobs. It waits for the disk.
    ///
    /// # Errors
    /// The folder or the database cannot be made or read.
    pub fn open(folder: &Path) -> Answer<Store> {
        let tables = Tables::open(folder)?;
        let (operations, waiting) = sync_channel(WAITING);
        std::thread::Builder::new()
            .name("jobs".into())
            .spawn(move || work(tables, &waiting))
            .map_err(|error| StoreError::Io(folder.to_owned(), error))?;
        Ok(Store(Rc::new(Inner::Thread { operations, folder: folder.to_owned() })))
    }
    /// A queue in memory, without a thread, for simulations. Files of jobs are in `folder`.
    ///
    /// # Errors
    /// SQLite has no memory.
    pub fn in_memory(folder: &Path) -> Answer<Store> {
        let tables = Tables::in_memory(folder)?;
        Ok(Store(Rc::new(Inner::Memory(RefCell::new(tables), folder.to_owned()))))
    }
    /// Takes the right to run jobs.
    ///
    /// # Errors
    /// [`StoreError::Locked`] while another process has it.
    pub fn lock(&self) -> Answer<RunLock> {
        let Inner::Thread { folder, .. } = &*self.0 else { return Ok(RunLock { _file: None }) };
        let path = folder.join("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| StoreError::Io(path, error))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| StoreError::Locked)?;
        Ok(RunLock { _file: Some(file) })
    }
    /// Whether a process runs the jobs of this queue.
    pub fn is_served(&self) -> bool {
        matches!(self.lock(), Err(StoreError::Locked))
    }
    /// The folder of an attempt's files.
    pub fn folder(&self, id: i64, attempt: u32) -> PathBuf {
        let (Inner::Thread { folder, .. } | Inner::Memory(_, folder)) = &*self.0;
        attempt_folder(folder, id, attempt)
    }
    /// Does work on files: on another thread, or at once for a queue in memory.
    pub async fn files<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        match &*self.0 {
            Inner::Thread { .. } => blocking::unblock(work).await,
            Inner::Memory(..) => work(),
        }
    }
    /// Adds a job, or all elements of an array; its number, once it is durable. The same `key` of the same user again is
    /// the same submission.
    ///
    /// # Errors
    /// A quota is used up, the key belongs to another submission, a dependency is unknown, or the disk fails.
    pub async fn submit(
        &self,
        user: &str,
        key: Option<&str>,
        submission: Submission,
        quotas: Quotas,
        now_s: u64,
    ) -> Answer<Submitted> {
        let (user, key) = (user.to_owned(), key.map(str::to_owned));
        self.call(true, move |tables| tables.submit(&user, key.as_deref(), &submission, quotas, now_s)).await
    }
    /// Jobs, the latest first.
    ///
    /// # Errors
    /// The database fails.
    pub async fn list(&self, scope: Scope, selection: Selection) -> Answer<Vec<Job>> {
        self.call(false, move |tables| tables.list(&scope, &selection)).await
    }
    /// A job.
    ///
    /// # Errors
    /// There is none of this number in `scope`.
    pub async fn job(&self, scope: Scope, id: i64) -> Answer<Job> {
        self.call(false, move |tables| tables.job(&scope, id)).await
    }
    /// Holds, releases or cancels a job, or all elements of an array that allow it; how many.
    ///
    /// # Errors
    /// There is none, or none that allows it.
    pub async fn change(&self, scope: Scope, id: i64, change: Change, now_s: u64) -> Answer<u32> {
        self.call(true, move |tables| tables.change(&scope, id, change, now_s)).await
    }
    /// Gives the jobs to a back end that are to start now. They are [running](crate::machine::State::Running) from here on.
    ///
    /// # Errors
    /// The database fails.
    pub async fn plan(&self, backend: &str, shares: Shares, now_s: u64) -> Answer<Plan> {
        let backend = backend.to_owned();
        // A start that was forgotten would be repeated.
        self.call(true, move |tables| tables.plan(&backend, shares, now_s)).await
    }
    /// Whether a job may start at a back end.
    pub(crate) async fn has_queued(&self, backend: &str, now_s: u64) -> Answer<bool> {
        let backend = backend.to_owned();
        self.call(false, move |tables| tables.has_queued(&backend, now_s)).await
    }
    /// Notes why jobs wait that may start at a back end.
    pub(crate) async fn keep_queued(&self, backend: &str, reason: String, now_s: u64) -> Answer<()> {
        let backend = backend.to_owned();
        self.call(false, move |tables| tables.keep_queued(&backend, &reason, now_s)).await
    }
    /// Jobs that a back end has.
    ///
    /// # Errors
    /// The database fails.
    pub async fn running(&self, backend: &str) -> Answer<Vec<Task>> {
        let backend = backend.to_owned();
        self.call(false, move |tables| tables.running(&backend)).await
    }
    /// Notes what a back end calls a job, and why it waits.
    ///
    /// # Errors
    /// The database fails.
    pub async fn note(&self, task: &Task, handle: Option<String>, reason: String) -> Answer<()> {
        let (id, attempt) = (task.id, task.attempt);
        self.call(false, move |tables| tables.note(id, attempt, handle.as_deref(), &reason)).await
    }
    /// Notes how attempts ended, and decides what follows: the next attempt, or the end of the job.
    ///
    /// # Errors
    /// The database fails.
    pub async fn settle(&self, ends: Vec<End>, now_s: u64) -> Answer<()> {
        self.call(false, move |tables| ends.iter().try_for_each(|end| tables.settle(end, now_s))).await
    }
    /// Deliveries that are due, besides so many that are under way, which are due as well.
    pub(crate) async fn deliveries(&self, now_s: u64, under_way: usize) -> Answer<Vec<Delivery>> {
        self.call(false, move |tables| tables.deliveries(now_s, under_way)).await
    }
    pub(crate) async fn delivered(
        &self,
        delivery: Delivery,
        result: Result<(), String>,
        now_s: u64,
    ) -> Answer<()> {
        self.call(true, move |tables| tables.delivered(&delivery, result, now_s)).await
    }
    /// Removes jobs that are over and old; how many.
    ///
    /// # Errors
    /// The database fails.
    pub async fn expire(&self, retention: Retention, now_s: u64) -> Answer<usize> {
        self.call(false, move |tables| tables.expire(retention, now_s)).await
    }

    pub(super) async fn call<T, F>(&self, is_durable: bool, work: F) -> Answer<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tables) -> Answer<T> + Send + 'static,
    {
        let (operations, folder) = match &*self.0 {
            Inner::Memory(tables, _) => return tables.borrow_mut().saved(work),
            Inner::Thread { operations, folder } => (operations, folder),
        };
        let failed = |why: String| StoreError::Folder(folder.clone(), why);
        let (answer, answered) = async_channel::bounded(1);
        let run = move |tables: Option<&mut Tables>| -> Reply {
            let result = tables.map_or(Err(StoreError::Closed), |tables| tables.saved(work));
            Box::new(move |failed| {
                // The caller may be gone.
                let _ = answer.try_send(match failed {
                    None => result.map_err(Failed::Alone),
                    Some(why) => Err(Failed::All(why)),
                });
            })
        };
        match operations.try_send(Operation { run: Box::new(run), is_durable }) {
            Ok(()) => {
                answered.recv().await.unwrap_or(Err(Failed::Alone(StoreError::Closed))).map_err(|error| {
                    match error {
                        Failed::Alone(StoreError::Database(error)) => failed(error.to_string()),
                        Failed::Alone(error) => error,
                        Failed::All(why) => failed(why),
                    }
                })
            }
            Err(TrySendError::Full(_)) => Err(failed("too many operations wait".to_owned())),
            Err(TrySendError::Disconnected(_)) => Err(StoreError::Closed),
        }
    }
}

/// Why an operation failed.
enum Failed {
    /// It alone.
    Alone(StoreError),
    /// With all others of its transaction.
    All(String),
}

fn work(mut tables: Tables, waiting: &Receiver<Operation>) {
    while let Ok(first) = waiting.recv() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(operation) = waiting.try_recv()
        {
            group.push(operation);
        }
        let mut replies = Vec::with_capacity(group.len());
        let failed = transaction(&mut tables, group, &mut replies).err();
        if failed.is_some() {
            tables.abandon();
        }
        replies.into_iter().for_each(|reply| reply(failed.clone()));
        tables.remove_garbage();
    }
}

/// Does a group whole or not at all; why it could not.
fn transaction(tables: &mut Tables, group: Vec<Operation>, replies: &mut Vec<Reply>) -> Result<(), String> {
    let begun = tables.begin(group.iter().any(|operation| operation.is_durable));
    replies.extend(group.into_iter().map(|operation| (operation.run)(begun.is_ok().then_some(&mut *tables))));
    let ended = begun.and_then(|()| tables.commit());
    ended.map_err(|error| tables.trouble().unwrap_or_else(|| error.to_string()))
}
