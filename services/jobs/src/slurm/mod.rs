//! Slurm as a back end: jobs are handed over with `sbatch`, elements of an array together, and looked at with `squeue`, or
//! with `sacct` once that has forgotten them. The queue's folder is one that the nodes see, too: they write output there.
//!
//! The wrapper is that of this host's own jobs, so that limits, output and status are the same. Retries and dependencies
//! stay with the queue: a job there may need one here, and one that is needed may have a retry left.

mod codec;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use inhost_common::LocalFuture;

use crate::attempt::{self, Launch};
use crate::backend::{Backend, Look, Progress, Started};
use crate::codec::Limits;
use crate::store::{Outcome, Task};
use codec::{Row, SACCT, SQUEUE, Stage};

#[doc(hidden)]
pub use codec::{sacct, sbatch, squeue};

/// The time limit of one of Slurm's programs, for `timeout`.
const WITHIN: &str = "60";
/// How often jobs are looked at.
const INTERVAL_MS: u64 = 2000;
/// How long a list of `squeue` holds, in seconds.
const LIST_HOLDS_S: u64 = 2;
/// Octets of an answer of Slurm's programs.
const ANSWER_BYTES: u64 = 64 << 20;
/// Octets of an error that are shown.
const ERROR_BYTES: usize = 300;
/// How long Slurm may take to show a job that was handed over, and a status to come over the network, in seconds.
const SHOWN_WITHIN_S: u64 = 60;

/// Configuration of a [`Slurm`] back end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SlurmConfig {
    /// More arguments of `sbatch`, such as `--partition=long`.
    pub options: Vec<String>,
    /// Limits of jobs that say none. Default: 16 MiB of output.
    pub limits: Limits,
    /// Time from TERM to KILL, in seconds. Default 5.
    pub grace_s: u64,
    /// PATH of jobs. Default `/usr/local/bin:/usr/bin:/bin`.
    pub path: String,
    /// The time since 1970.
    pub unix_time: fn() -> Duration,
}

impl SlurmConfig {
    /// The defaults, with a clock.
    pub fn new(unix_time: fn() -> Duration) -> SlurmConfig {
        SlurmConfig {
            options: Vec::new(),
            limits: Limits { output_bytes: Some(16 << 20), ..Limits::default() },
            grace_s: 5,
            path: "/usr/local/bin:/usr/bin:/bin".to_owned(),
            unix_time,
        }
    }
}

/// What Slurm has of this user.
#[derive(Default)]
struct List {
    at_s: u64,
    by_id: HashMap<String, Row>,
    by_comment: HashMap<(String, Option<u32>), String>,
}

impl List {
    fn new(text: &str, at_s: u64) -> List {
        let mut list = List { at_s, ..List::default() };
        for row in codec::squeue(text) {
            let index = codec::number(&row.id).and_then(|(_, index)| index);
            list.by_comment.insert((row.comment.clone(), index), row.id.clone());
            list.by_id.insert(row.id.clone(), row);
        }
        list
    }
}

/// Hands jobs to Slurm, as the user of this process.
pub struct Slurm {
    config: SlurmConfig,
    list: Rc<RefCell<Option<Rc<List>>>>,
    /// When jobs were over at Slurm whose status had not come yet, in seconds since 1970.
    over: Rc<RefCell<HashMap<i64, u64>>>,
}

impl Slurm {
    /// A back end.
    pub fn new(config: SlurmConfig) -> Slurm {
        Slurm { config, list: Rc::default(), over: Rc::default() }
    }
}

impl Backend for Slurm {
    fn start(&self, tasks: Vec<Task>) -> LocalFuture<Vec<Started>> {
        let config = self.config.clone();
        self.list.take();
        Box::pin(blocking::unblock(move || start(&tasks, &config)))
    }
    fn look(&self, task: Task) -> LocalFuture<Look> {
        let own = Slurm { config: self.config.clone(), list: self.list.clone(), over: self.over.clone() };
        Box::pin(async move { own.look_at(task).await })
    }
    fn changed(&self) -> LocalFuture<()> {
        Box::pin(std::future::pending())
    }
    fn interval_ms(&self) -> u64 {
        INTERVAL_MS
    }
}

impl Slurm {
    fn now_s(&self) -> u64 {
        (self.config.unix_time)().as_secs()
    }
    async fn listed(&self) -> io::Result<Rc<List>> {
        let now_s = self.now_s();
        if let Some(list) = self.list.borrow().as_ref().filter(|list| now_s < list.at_s + LIST_HOLDS_S) {
            return Ok(list.clone());
        }
        let text = blocking::unblock(|| call("squeue", SQUEUE, &[])).await?;
        let list = Rc::new(List::new(&text, now_s));
        self.list.replace(Some(list.clone()));
        Ok(list)
    }
    async fn look_at(&self, task: Task) -> Look {
        let (own, limits) = (task.clone(), self.config.limits);
        let ended = blocking::unblock(move || {
            attempt::status(&own, &limits)
                .map(|outcome| Progress::Ended(outcome, attempt::output_bytes(&own)))
        });
        if let Some(ended) = ended.await {
            self.over.borrow_mut().remove(&task.id);
            return Look::new(ended);
        }
        let list = match self.listed().await {
            Ok(list) => list,
            Err(error) => return Look::new(Progress::Running(format!("waits for Slurm: {error}"))),
        };
        let found = || list.by_comment.get(&(codec::comment(&task), task.index)).cloned();
        let (known, handle) = match &task.handle {
            Some(id) => (Some(id.clone()), None),
            None => (found(), found()),
        };
        let progress = match known {
            Some(id) => self.stands(&task, &id, list.by_id.get(&id)).await,
            None if self.now_s() < task.started_s.saturating_add(SHOWN_WITHIN_S) => {
                Progress::Running("is being handed over to Slurm".to_owned())
            }
            None => gone(&task, "Slurm does not know it").await,
        };
        if let Progress::Ended(..) = progress {
            self.over.borrow_mut().remove(&task.id);
        }
        Look { progress, handle }
    }
    /// How the job stands that Slurm calls `id`.
    async fn stands(&self, task: &Task, id: &str, row: Option<&Row>) -> Progress {
        let (state, reason) = match row {
            Some(row) => (row.state.clone(), row.reason.clone()),
            None => {
                let asked = id.to_owned();
                let text =
                    blocking::unblock(move || call("sacct", SACCT.iter().copied().chain([&*asked]), &[]))
                        .await;
                match text.ok().and_then(|text| codec::sacct(&text, id)) {
                    Some(state) => (state, String::new()),
                    None => return gone(task, "Slurm has forgotten it").await,
                }
            }
        };
        let stage = Stage::named(&state);
        if task.is_cancelling && matches!(stage, Stage::Waits | Stage::Runs) {
            let id = id.to_owned();
            if let Err(error) = blocking::unblock(move || call("scancel", [&*id], &[])).await {
                return Progress::Running(format!("cannot be cancelled: {error}"));
            }
            self.list.take();
            return Progress::Running("is being cancelled".to_owned());
        }
        match stage {
            Stage::Waits => Progress::Running(format!("waits at Slurm: {reason}")),
            Stage::Runs => Progress::Running(String::new()),
            Stage::Lost => ended(task, Outcome::Vanished(format!("Slurm says {state}"))).await,
            Stage::Cancelled => ended(task, Outcome::Cancelled("cancelled at Slurm".to_owned())).await,
            Stage::TimeOut | Stage::OutOfMemory => {
                ended(task, Outcome::Exit(137, format!("Slurm says {state}"))).await
            }
            // Files of a node may be seen later here.
            Stage::Over => {
                let since = *self.over.borrow_mut().entry(task.id).or_insert_with(|| self.now_s());
                match self.now_s() < since.saturating_add(SHOWN_WITHIN_S) {
                    true => Progress::Running("its status is awaited".to_owned()),
                    false => gone(task, &format!("Slurm says {state}, and it has left no status")).await,
                }
            }
        }
    }
}

async fn ended(task: &Task, outcome: Outcome) -> Progress {
    let task = task.clone();
    blocking::unblock(move || Progress::Ended(outcome, attempt::output_bytes(&task))).await
}

/// The end of an attempt of which nobody knows: it may never have started.
async fn gone(task: &Task, why: &str) -> Progress {
    let folder = task.folder.clone();
    let is_never = blocking::unblock(move || attempt::never_starts(&folder)).await;
    let outcome = if is_never { Outcome::NeverStarted } else { Outcome::Vanished(why.to_owned()) };
    ended(task, outcome).await
}

fn start(tasks: &[Task], config: &SlurmConfig) -> Vec<Started> {
    let mut started: Vec<Started> = tasks.iter().map(|_| Ok(None)).collect();
    for numbers in codec::batches(tasks) {
        let batch: Vec<&Task> = numbers.iter().map(|&number| &tasks[number]).collect();
        let answer = submit(&batch, config);
        for number in numbers {
            started[number] = match (&answer, tasks[number].index) {
                (Ok(id), None) => Ok(Some(id.clone())),
                (Ok(id), Some(index)) => Ok(Some(format!("{id}_{index}"))),
                // It may have been carried out: it is looked for by its comment.
                (Err(error), _) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
                (Err(error), _) => Err(Outcome::Refused(format!("Slurm: {error}"))),
            };
        }
    }
    started
}

fn submit(batch: &[&Task], config: &SlurmConfig) -> io::Result<String> {
    let Some(first) = batch.first() else { return Ok(String::new()) };
    let limits = first.submission.limits.or(config.limits);
    for task in batch {
        attempt::prepare(task)?;
        let launch = Launch::new(task, &limits, config.grace_s, None, &config.path);
        attempt::private(&task.folder.join("launch"), 0o600)?.write_all(&launch.file())?;
    }
    let arguments = codec::arguments(batch, &limits, config.grace_s);
    let text = call("sbatch", arguments.iter().chain(&config.options), &codec::script(batch))?;
    let id = codec::sbatch(&text).map(str::to_owned);
    id.ok_or_else(|| {
        io::Error::other(format!("sbatch said {:?}", inhost_common::Cleaner::line(text.as_bytes())))
    })
}

/// What one of Slurm's programs prints, given `input`. Its time is limited, and so is what it says.
fn call<A: AsRef<OsStr>>(
    program: &str,
    arguments: impl IntoIterator<Item = A>,
    input: &[u8],
) -> io::Result<String> {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", WITHIN, program]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (out, errors) = (child.stdout.take(), child.stderr.take());
    let listening = std::thread::spawn(move || heard(errors));
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read says why.
        let _ = stdin.write_all(input);
    }
    let text = heard(out);
    let status = child.wait()?;
    let said = listening.join().unwrap_or_default();
    match status.code() {
        Some(0) => Ok(text),
        Some(124 | 137) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("{program} gave no answer within {WITHIN} s"),
        )),
        Some(127) => Err(io::Error::new(io::ErrorKind::NotFound, format!("{program} is not installed here"))),
        _ => {
            let mut said = inhost_common::Cleaner::line(said.trim().as_bytes());
            said.truncate(said.floor_char_boundary(ERROR_BYTES));
            Err(io::Error::other(said))
        }
    }
}

fn heard(from: Option<impl Read>) -> String {
    let mut octets = Vec::new();
    if let Some(mut from) = from {
        let _ = from.by_ref().take(ANSWER_BYTES).read_to_end(&mut octets);
        // The rest is read and left, so that the program ends.
        let _ = io::copy(&mut from, &mut io::sink());
    }
    String::from_utf8_lossy(&octets).into_owned()
}
