//! The queue of a host: what users and operators call, and the loops that run jobs and deliver their output.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::pending;
use std::io::{self, Read, Seek};
use std::path::PathBuf;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use futures_lite::StreamExt;
use futures_lite::future::or;
use futures_util::stream::FuturesUnordered;
use inhost_common::Clock;
use tracing::{error, info};

use crate::backend::{Backend, Progress};
use crate::codec::{KEY_BYTES, Submission};
use crate::deliver::{Courier, Deliver, NoCourier, Parcel, to_file};
use crate::machine::Shares;
use crate::store::{
    Change, Delivery, End, Outcome, Quotas, Retention, Scope, Store, StoreError, Submitted, Task,
};

/// How often a loop looks at the queue when nothing is to be done: another process may have added a job.
const IDLE_MS: u64 = 1000;
/// How long a loop waits after the store has failed.
const TROUBLE_MS: u64 = 2000;
/// How long a loop waits whose back end cannot be reached.
const UNREACHABLE_MS: u64 = 5000;
/// How often deliveries are looked at, and old jobs removed.
const DELIVERY_MS: u64 = 5000;
/// Deliveries at a time.
const DELIVERIES_AT_ONCE: usize = 16;
/// Tasks that wait for a change. Beyond, all of them look.
const WAITERS: usize = 1024;
/// Octets of one read of output.
pub const PIECE_BYTES: usize = 64 << 10;

/// Configuration of a [`Queue`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct QueueConfig {
    /// What a user may have.
    pub quotas: Quotas,
    /// How long jobs are kept.
    pub retention: Retention,
    /// Places besides this host to which jobs may go; see [`Queue::run`].
    pub places: Vec<String>,
}

/// The queue of a host. Its loops, [`run`](Self::run) for each back end and [`deliver`](Self::deliver), are tasks.
pub struct Queue {
    /// What is on disk.
    pub store: Store,
    config: RefCell<QueueConfig>,
    courier: RefCell<Rc<dyn Courier>>,
    clock: Rc<dyn Clock>,
    unix_time: fn() -> Duration,
    changed: Signal,
}

/// One of a job's streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Output {
    /// Its file's name, and its name in paths of URLs.
    pub fn name(self) -> &'static str {
        match self {
            Output::Stdout => "stdout",
            Output::Stderr => "stderr",
        }
    }
}

/// A piece of output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Octets from the offset that was asked for; up to [`PIECE_BYTES`].
    pub octets: Vec<u8>,
    /// Octets that there are now.
    pub total_bytes: u64,
    /// The attempt whose output it is; 0 if there was none yet.
    pub attempt: u32,
    /// Whether more of this attempt may come, or another attempt.
    pub is_open: bool,
}

impl Queue {
    /// A queue over a store. `unix_time` is the time since 1970, by which jobs wait; `clock` paces the loops.
    pub fn new(
        store: Store,
        config: QueueConfig,
        clock: Rc<dyn Clock>,
        unix_time: fn() -> Duration,
    ) -> Queue {
        let courier = RefCell::new(Rc::new(NoCourier) as Rc<dyn Courier>);
        Queue { store, config: RefCell::new(config), courier, clock, unix_time, changed: Signal::default() }
    }
    /// Delivers by FTP and mail through `courier` from now on.
    pub fn set_courier(&self, courier: Rc<dyn Courier>) {
        self.courier.replace(courier);
    }
    /// Other quotas, retention and places from now on.
    pub fn set_config(&self, config: QueueConfig) {
        self.config.replace(config);
    }
    /// The time since 1970, in seconds.
    pub fn now_s(&self) -> u64 {
        (self.unix_time)().as_secs()
    }
    /// Submits a job for a user; its number once it is durable. See [`Store::submit`].
    ///
    /// # Errors
    /// It is not valid, its place is unknown, a quota is used up, or the store fails.
    pub async fn submit(
        &self,
        user: &str,
        key: Option<&str>,
        submission: Submission,
    ) -> Result<Submitted, StoreError> {
        submission.check().map_err(|wrong| StoreError::State(wrong.0))?;
        if key.is_some_and(|key| key.is_empty() || key.len() > KEY_BYTES) {
            return Err(StoreError::State(format!("a key has 1 to {KEY_BYTES} octets")));
        }
        let quotas = {
            let config = self.config.borrow();
            if let Some(to) = submission.to.as_ref().filter(|to| !config.places.contains(to)) {
                return Err(StoreError::State(format!("this queue does not know the place {to}")));
            }
            config.quotas
        };
        let submitted = self.store.submit(user, key, submission, quotas, self.now_s()).await?;
        if submitted.is_new {
            info!(target: "jobs", user, job = submitted.id, count = submitted.count, "submitted");
        }
        self.changed.set();
        Ok(submitted)
    }
    /// Holds, releases or cancels. See [`Store::change`].
    ///
    /// # Errors
    /// There is no such job, or its state does not allow it.
    pub async fn change(&self, scope: Scope, id: i64, change: Change) -> Result<u32, StoreError> {
        let count = self.store.change(scope, id, change, self.now_s()).await?;
        info!(target: "jobs", job = id, count, "{change:?}");
        self.changed.set();
        Ok(count)
    }
    /// A piece of the output of an attempt, of the latest one if that is `None`.
    ///
    /// # Errors
    /// There is no such job, or its file cannot be read.
    pub async fn output(
        &self,
        scope: Scope,
        id: i64,
        output: Output,
        attempt: Option<u32>,
        offset: u64,
    ) -> Result<Piece, StoreError> {
        let job = self.store.job(scope, id).await?;
        let latest = job.attempts;
        let attempt = attempt.unwrap_or(latest).min(latest);
        let is_open = attempt < latest || !job.state().is_over();
        let path = self.store.folder(id, attempt).join(output.name());
        let own = path.clone();
        let read = self.store.files(move || read(&own, offset)).await;
        let (octets, total_bytes) = read.map_err(|error| StoreError::Io(path, error))?;
        Ok(Piece { octets, total_bytes, attempt, is_open })
    }

    /// Runs the jobs of one back end, until it is dropped. `name` is "local", or the place that jobs name in
    /// [`to`](Submission::to). The caller holds the [lock](Store::lock) of the store.
    pub async fn run(self: Rc<Self>, name: &str, backend: Rc<dyn Backend>, shares: Shares) {
        let mut trouble = Trouble::default();
        loop {
            let mut seen = self.changed.count();
            let pause_ms = match self.round(name, &*backend, shares, &mut seen).await {
                Ok(pause_ms) => {
                    trouble.is_over(name);
                    pause_ms
                }
                Err(problem) => {
                    trouble.is_there(name, &problem);
                    seen = self.changed.count();
                    TROUBLE_MS
                }
            };
            let waited = or(self.changed.after(seen), backend.changed());
            or(waited, self.pause(pause_ms)).await;
        }
    }
    async fn pause(&self, time_ms: u64) {
        self.clock.sleep_until(self.clock.now() + inhost_base::Duration::from_millis(time_ms)).await;
    }
    /// Looks at the jobs that the back end has, and gives it more; how long to wait then.
    async fn round(
        &self,
        name: &str,
        backend: &dyn Backend,
        shares: Shares,
        seen: &mut u64,
    ) -> Result<u64, StoreError> {
        let mut left = self.look(name, backend, seen, |_| true).await?;
        if self.store.has_queued(name, self.now_s()).await?
            && let Some(reaching) = backend.reach()
            && let Err(why) = reaching.await
        {
            self.store.keep_queued(name, why, self.now_s()).await?;
            return Ok(if left > 0 { backend.interval_ms() } else { UNREACHABLE_MS });
        }
        let plan = self.store.plan(name, shares, self.now_s()).await?;
        left += plan.start.len();
        let mut refused = Vec::new();
        let started = backend.start(plan.start.clone()).await;
        for (task, started) in plan.start.iter().zip(started) {
            match started {
                Ok(Some(handle)) => self.store.note(task, Some(handle), String::new()).await?,
                Ok(None) => {}
                Err(outcome) => {
                    refused.push(End { id: task.id, attempt: task.attempt, outcome, output_bytes: 0 })
                }
            }
        }
        if !refused.is_empty() {
            // There may be slots again.
            self.settle(refused, seen).await?;
            return Ok(0);
        }
        let pause_ms = if left > 0 { backend.interval_ms() } else { IDLE_MS };
        let next_ms =
            plan.next_s.map(|next_s| next_s.saturating_sub(self.now_s()).saturating_mul(1000).max(10));
        Ok(pause_ms.min(next_ms.unwrap_or(IDLE_MS)))
    }
    /// Ends what is cancelling at a back end; how many have not ended yet. For the end of a host, whose
    /// [loops](Self::run) are not polled any more.
    ///
    /// # Errors
    /// The store fails.
    pub async fn end_cancelled(&self, name: &str, backend: &dyn Backend) -> Result<usize, StoreError> {
        self.look(name, backend, &mut 0, |task| task.is_cancelling).await
    }
    /// Looks at the jobs that the back end has; how many have not ended.
    async fn look(
        &self,
        name: &str,
        backend: &dyn Backend,
        seen: &mut u64,
        is_meant: impl Fn(&Task) -> bool,
    ) -> Result<usize, StoreError> {
        let (mut ends, mut left) = (Vec::new(), 0);
        for task in self.store.running(name).await?.into_iter().filter(is_meant) {
            let look = backend.look(task.clone()).await;
            match look.progress {
                Progress::Ended(outcome, output_bytes) => {
                    ends.push(End { id: task.id, attempt: task.attempt, outcome, output_bytes });
                }
                Progress::Running(reason) => {
                    left += 1;
                    if look.handle.is_some() || reason != task.reason {
                        self.store.note(&task, look.handle, reason).await?;
                    }
                }
            }
        }
        self.settle(ends, seen).await?;
        Ok(left)
    }
    async fn settle(&self, ends: Vec<End>, seen: &mut u64) -> Result<(), StoreError> {
        if ends.is_empty() {
            return Ok(());
        }
        self.store.settle(ends.clone(), self.now_s()).await?;
        for End { id: job, attempt, outcome, .. } in &ends {
            match outcome {
                Outcome::Exit(0, _) => tracing::debug!(target: "jobs", job, "done"),
                outcome => info!(target: "jobs", job, attempt, "ended: {outcome}"),
            }
        }
        // Other back ends may have what waited for these.
        *seen += u64::from(self.changed.count() == *seen);
        self.changed.set();
        Ok(())
    }

    /// Delivers output, and removes old jobs, until it is dropped. Those who answer slowly do not hold up the others.
    pub async fn deliver(self: Rc<Self>) {
        let (mut under_way, mut jobs) = (FuturesUnordered::new(), BTreeSet::new());
        let mut trouble = Trouble::default();
        loop {
            let seen = self.changed.count();
            let round = async {
                for delivery in self.store.deliveries(self.now_s(), jobs.len()).await? {
                    if under_way.len() < DELIVERIES_AT_ONCE && jobs.insert(delivery.job.id) {
                        under_way.push(self.deliver_one(delivery));
                    }
                }
                let retention = self.config.borrow().retention;
                self.store.expire(retention, self.now_s()).await
            };
            match round.await {
                Ok(_) => trouble.is_over("delivery"),
                Err(problem) => {
                    trouble.is_there("delivery", &problem);
                    self.pause(TROUBLE_MS).await;
                }
            }
            let ended = async {
                match under_way.next().await {
                    Some(ended) => Some(ended),
                    None => pending().await,
                }
            };
            let waited = async {
                or(self.changed.after(seen), self.pause(DELIVERY_MS)).await;
                None
            };
            if let Some((id, result)) = or(ended, waited).await {
                jobs.remove(&id);
                if let Err(problem) = result {
                    error!(target: "jobs", "delivery: {problem}");
                }
            }
        }
    }
    /// One attempt at a delivery, and the note of it; the job's number.
    async fn deliver_one(&self, delivery: Delivery) -> (i64, Result<(), StoreError>) {
        let (id, job) = (delivery.job.id, delivery.job.clone());
        let folder = self.store.folder(id, job.attempts);
        let (stdout, stderr) = (folder.join("stdout"), folder.join("stderr"));
        let parcel = Parcel { job, to: delivery.to.clone(), stdout, stderr };
        let result = match &delivery.to {
            Deliver::File(path) => {
                let (path, replace) = (path.clone(), delivery.replace);
                self.store.files(move || to_file(&parcel, &path, replace)).await
            }
            _ => {
                let courier = self.courier.borrow().clone();
                courier.deliver(parcel).await
            }
        };
        if let Err(why) = &result {
            info!(target: "jobs", job = id, "cannot be delivered: {why}");
        }
        (id, self.store.delivered(delivery, result, self.now_s()).await)
    }
}

/// Reads up to [`PIECE_BYTES`] from an offset; how much there is. A file that is missing is empty.
fn read(path: &PathBuf, offset: u64) -> io::Result<(Vec<u8>, u64)> {
    let mut file = match std::fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        other => other?,
    };
    let total_bytes = file.metadata()?.len();
    file.seek(io::SeekFrom::Start(offset))?;
    let mut octets = Vec::new();
    file.take(PIECE_BYTES as u64).read_to_end(&mut octets)?;
    // It may have grown since.
    let end = if octets.is_empty() { 0 } else { offset.saturating_add(octets.len() as u64) };
    Ok((octets, total_bytes.max(end)))
}

/// Trouble of a loop, which is logged when it begins and when it is over.
#[derive(Default)]
struct Trouble(Option<String>);

impl Trouble {
    fn is_there(&mut self, name: &str, problem: &StoreError) {
        let text = problem.to_string();
        if self.0.as_ref() != Some(&text) {
            error!(target: "jobs", "{name}: {text}; it is tried again, and jobs wait meanwhile");
            self.0 = Some(text);
        }
    }
    fn is_over(&mut self, name: &str) {
        if self.0.take().is_some() {
            info!(target: "jobs", "{name}: the queue can be used again");
        }
    }
}

/// A change that several tasks wait for.
#[derive(Default)]
struct Signal {
    count: Cell<u64>,
    wakers: RefCell<Vec<Waker>>,
}

impl Signal {
    fn count(&self) -> u64 {
        self.count.get()
    }
    fn set(&self) {
        self.count.set(self.count.get() + 1);
        self.wakers.take().into_iter().for_each(Waker::wake);
    }
    /// Ready once the count is not `seen`.
    async fn after(&self, seen: u64) {
        std::future::poll_fn(|context| {
            if self.count.get() != seen {
                return Poll::Ready(());
            }
            let mut wakers = self.wakers.borrow_mut();
            if wakers.len() >= WAITERS {
                wakers.drain(..).for_each(Waker::wake);
            }
            if !wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                wakers.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}
