//! What runs jobs: a trait, so that a queue hands them to this host or to another one.

use inhost_common::LocalFuture;

use crate::store::{Outcome, Task};

/// How an attempt fares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It has not ended: why it waits, empty while it runs.
    Running(String),
    /// It has ended, with so many octets of output.
    Ended(Outcome, u64),
}

/// The back end's name for an attempt, where there is one already, or why it was not started.
pub type Started = Result<Option<String>, Outcome>;

/// A back end of the queue. Its calls follow each other; none runs while another does.
pub trait Backend: 'static {
    /// Whether attempts can be started, or why not. It is asked when jobs may start, which stay queued otherwise.
    fn reach(&self) -> Option<LocalFuture<Result<(), String>>> {
        None
    }
    /// Starts attempts; the answers are in the same order. It is called once for each attempt, and not again after a crash:
    /// the store has noted the start before.
    fn start(&self, tasks: Vec<Task>) -> LocalFuture<Vec<Started>>;
    /// Looks at an attempt. If it is [cancelling](Task::is_cancelling), it is ended, which may take several calls.
    fn look(&self, task: Task) -> LocalFuture<Look>;
    /// Ready when something may have changed.
    fn changed(&self) -> LocalFuture<()>;
    /// How often attempts are looked at, in milliseconds, if nothing says that they have changed.
    fn interval_ms(&self) -> u64;
}

/// What a look at an attempt has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Look {
    /// How it fares.
    pub progress: Progress,
    /// What the back end calls it, if that is known only now.
    pub handle: Option<String>,
}

impl Look {
    /// Without a new handle.
    pub fn new(progress: Progress) -> Look {
        Look { progress, handle: None }
    }
}
