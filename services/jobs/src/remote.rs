//! Another host as a back end: a job is kept here until that host has acknowledged it, and looked at and fetched until
//! it is over, whatever is lost between. Every request may be sent again: a submission has the attempt's key.

use std::cell::RefCell;
use std::fs;
use std::io::{self, Write};
use std::rc::Rc;

use futures_lite::future::or;
use inhost_base::Duration;
use inhost_common::{Clock, LocalFuture};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::backend::{Backend, Look, Progress, Started};
use crate::client::{Client, ClientError};
use crate::codec::{Array, Job, Limits, Submission};
use crate::machine::State;
use crate::queue::Output;
use crate::store::{Change, Outcome, Store, Task};

/// The time limit of a request.
const REQUEST_WITHIN: Duration = Duration::from_secs(60);
/// How often jobs there are looked at.
const INTERVAL_MS: u64 = 2000;
/// Pieces of output that one look fetches of each stream.
const PIECES: usize = 64;

/// A byte stream to another host.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

/// Connects to another host, with TLS where that is wanted.
pub trait Dial: 'static {
    /// A new connection.
    fn dial(&self) -> LocalFuture<io::Result<Box<dyn Duplex>>>;
}

/// Hands jobs to another host.
#[derive(Clone)]
pub struct Remote {
    client: Client,
    dial: Rc<dyn Dial>,
    clock: Rc<dyn Clock>,
    store: Store,
    limits: Limits,
    /// A connection that was made before jobs were taken, for the first request.
    open: Rc<RefCell<Option<Box<dyn Duplex>>>>,
}

impl Remote {
    /// A back end. `store` is the queue's own, below whose folder output is kept: of each stream at most as much as the job's
    /// limits allow, or else `limits`.
    pub fn new(
        client: Client,
        dial: Rc<dyn Dial>,
        clock: Rc<dyn Clock>,
        store: Store,
        limits: Limits,
    ) -> Remote {
        Remote { client, dial, clock, store, limits, open: Rc::default() }
    }
    async fn connect(&self) -> Result<Box<dyn Duplex>, ClientError> {
        match self.open.take() {
            Some(stream) => Ok(stream),
            None => self.dial().await,
        }
    }
    async fn dial(&self) -> Result<Box<dyn Duplex>, ClientError> {
        self.dial.dial().await.map_err(ClientError::Unreachable)
    }
    async fn within<T>(&self, work: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
        or(work, async {
            self.clock.sleep_until(self.clock.now() + REQUEST_WITHIN).await;
            Err(ClientError::Broken(io::ErrorKind::TimedOut.into()))
        })
        .await
    }
    async fn try_look(&self, task: &Task, handle: &mut Option<String>) -> Result<Progress, ClientError> {
        let known = task.handle.as_deref().and_then(|text| text.parse::<i64>().ok());
        let id = match known {
            Some(id) => id,
            None => {
                let submission = handed_over(task);
                let send = async { self.client.submit(self.connect().await?, &task.key, &submission).await };
                // An array of one element has a number of its own, and the element the next.
                let id = self.within(send).await? + i64::from(task.index.is_some());
                *handle = Some(id.to_string());
                id
            }
        };
        if task.is_cancelling {
            let cancel = async { self.client.change(self.connect().await?, id, Change::Cancel).await };
            match self.within(cancel).await {
                Err(error) if error.is_transient() => return Err(error),
                // It may be over.
                _ => {}
            }
        }
        let job = self.within(async { self.client.job(self.connect().await?, id).await }).await?;
        let mut bytes = 0;
        for output in [Output::Stdout, Output::Stderr] {
            match self.fetch(task, id, output, job.state().is_over()).await? {
                Some(count) => bytes += count,
                None => return Ok(Progress::Running("its output is being fetched".to_owned())),
            }
        }
        Ok(progress(&job, bytes))
    }
    /// Fetches what is there beyond what is here; how much there is then, `None` if more is there already.
    async fn fetch(
        &self,
        task: &Task,
        id: i64,
        output: Output,
        is_over: bool,
    ) -> Result<Option<u64>, ClientError> {
        let (folder, path) = (task.folder.clone(), task.folder.join(output.name()));
        let own = path.clone();
        let begin = self.store.files(move || {
            fs::create_dir_all(&folder)?;
            Ok(fs::metadata(own).map_or(0, |file| file.len()))
        });
        let mut offset = begin.await.map_err(ClientError::Broken)?;
        let most = task.submission.limits.or(self.limits).output_bytes.unwrap_or(u64::MAX);
        for _ in 0..PIECES {
            if offset >= most {
                return Ok(Some(offset));
            }
            let ask = async { self.client.output(self.connect().await?, id, output, None, offset).await };
            let mut piece = self.within(ask).await?;
            piece.body.truncate(usize::try_from(most - offset).unwrap_or(usize::MAX));
            let count = piece.body.len() as u64;
            if count == 0 {
                return Ok(Some(offset));
            }
            let own = path.clone();
            let append = self.store.files(move || {
                let mut file = fs::OpenOptions::new().create(true).append(true).open(own)?;
                file.write_all(&piece.body)
            });
            append.await.map_err(ClientError::Broken)?;
            offset += count;
        }
        Ok((!is_over).then_some(offset))
    }
}

/// The job as the other host gets it: what is decided here already is left out.
fn handed_over(task: &Task) -> Submission {
    let mut submission = Submission::clone(&task.submission);
    submission.to = None;
    submission.after.clear();
    submission.deliver.clear();
    (submission.not_before_s, submission.delay_s) = (0, 0);
    (submission.retries, submission.is_held) = (0, false);
    submission.array = task.index.map(|index| Array { first: index, last: index, at_a_time: None });
    submission
}

fn progress(job: &Job, bytes: u64) -> Progress {
    let outcome = match job.state() {
        State::Done | State::Failed => match job.exit_status {
            Some(status) => Outcome::Exit(status, job.reason.clone()),
            None => Outcome::Refused(job.reason.clone()),
        },
        State::Cancelled => Outcome::Cancelled(format!("cancelled there: {}", job.reason)),
        State::Lost => Outcome::Vanished(format!("lost there: {}", job.reason)),
        State::Running => return Progress::Running(String::new()),
        waits => return Progress::Running(format!("{waits} there")),
    };
    Progress::Ended(outcome, bytes)
}

impl Backend for Remote {
    fn reach(&self) -> Option<LocalFuture<Result<(), String>>> {
        let own = self.clone();
        Some(Box::pin(async move {
            let dialed = own.within(own.dial()).await;
            let stream = dialed.map_err(|error| format!("waits for that host: {error}"))?;
            own.open.replace(Some(stream));
            Ok(())
        }))
    }
    fn start(&self, tasks: Vec<Task>) -> LocalFuture<Vec<Started>> {
        // They are handed over when they are looked at, as often as that takes.
        Box::pin(std::future::ready(tasks.iter().map(|_| Ok(None)).collect()))
    }
    fn look(&self, task: Task) -> LocalFuture<Look> {
        let own = self.clone();
        Box::pin(async move {
            let mut handle = None;
            let progress = match own.try_look(&task, &mut handle).await {
                Ok(progress) => progress,
                Err(error) if error.is_transient() => {
                    Progress::Running(format!("waits for that host: {error}"))
                }
                Err(error) => Progress::Ended(Outcome::Refused(error.to_string()), 0),
            };
            Look { progress, handle }
        })
    }
    fn changed(&self) -> LocalFuture<()> {
        Box::pin(std::future::pending())
    }
    fn interval_ms(&self) -> u64 {
        INTERVAL_MS
    }
}
