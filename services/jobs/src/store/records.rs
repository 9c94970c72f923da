//! What goes into the queue and comes out of it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::codec::Submission;

/// Why the queue cannot be used, or does not do something.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// SQLite fails.
    Database(rusqlite::Error),
    /// The database of this folder fails: why.
    Folder(PathBuf, String),
    /// A file or folder fails.
    Io(PathBuf, io::Error),
    /// It was made by a later version.
    Version(i64),
    /// Another process runs jobs of this queue.
    Locked,
    /// Its thread has ended.
    Closed,
    /// There is no such job, or it belongs to somebody else.
    Unknown(i64),
    /// The job's state does not allow it: the reason.
    State(String),
    /// The user's quota is used up: which one.
    Quota(String),
    /// The key belongs to another submission.
    KeyUsed,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Database(error) => write!(f, "the queue: {error}"),
            StoreError::Folder(folder, why) => write!(f, "the queue {}: {why}", folder.display()),
            StoreError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            StoreError::Version(version) => {
                write!(f, "the queue has version {version}, later than this program's")
            }
            StoreError::Locked => f.write_str("another host runs the jobs of this queue"),
            StoreError::Closed => f.write_str("the queue's thread has ended"),
            StoreError::Unknown(id) => write!(f, "there is no job {id}"),
            StoreError::State(why) | StoreError::Quota(why) => f.write_str(why),
            StoreError::KeyUsed => f.write_str("this key was used for another submission"),
        }
    }
}
impl std::error::Error for StoreError {}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        StoreError::Database(error)
    }
}

/// What a user may have in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Quotas {
    /// Jobs of a user that are not over. Default 2000.
    pub jobs: u64,
    /// Octets of output that are kept for a user; beyond, he can submit nothing. Default 1 GiB.
    pub output_bytes: u64,
}

impl Default for Quotas {
    fn default() -> Self {
        Quotas { jobs: 2000, output_bytes: 1 << 30 }
    }
}

/// How long jobs that are over are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Retention {
    /// Time since the end, in seconds. Default 14 days.
    pub age_s: u64,
    /// How many are kept. Default 10,000.
    pub jobs: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { age_s: 14 * 86_400, jobs: 10_000 }
    }
}

/// A submission that is in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Submitted {
    /// The number of the job, or of the array.
    pub id: i64,
    /// How many jobs it is.
    pub count: u32,
    /// Whether it was not there before.
    pub is_new: bool,
}

/// Whose jobs somebody sees and changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Those of all users: an operator.
    All,
    /// Those of one user.
    User(String),
}

impl Scope {
    pub(super) fn user(&self) -> Option<&str> {
        match self {
            Scope::All => None,
            Scope::User(name) => Some(name),
        }
    }
}

/// What a user or operator does to a job or to all elements of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// It does not start until it is released.
    Hold,
    /// It may start.
    Release,
    /// It ends, or never starts.
    Cancel,
}

/// An attempt to run a job, as a back end gets it.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Task {
    /// The job's number.
    pub id: i64,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// The number of its array.
    pub array: Option<i64>,
    /// Its index there.
    pub index: Option<u32>,
    /// Whose it is.
    pub user: String,
    /// What was submitted.
    pub submission: Arc<Submission>,
    /// The folder of this attempt.
    pub folder: PathBuf,
    /// What the back end calls it.
    pub handle: Option<String>,
    /// Whether it is to end.
    pub is_cancelling: bool,
    /// When it was started, in seconds since 1970.
    pub started_s: u64,
    /// Why it waits there, as it was noted last.
    pub reason: String,
    /// What names this attempt at other places, and is the same after a crash.
    pub key: String,
}

/// How an attempt ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// With a status, and why if that is known.
    Exit(i32, String),
    /// Its process is gone without a status: the reason.
    Vanished(String),
    /// It never started, and will not: it is started anew.
    NeverStarted,
    /// It cannot be started: the reason.
    Refused(String),
    /// The other place has cancelled it.
    Cancelled(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Exit(status, why) if why.is_empty() => write!(f, "exit status {status}"),
            Outcome::NeverStarted => f.write_str("it never started"),
            Outcome::Vanished(why) => write!(f, "lost: {why}"),
            Outcome::Exit(_, why) | Outcome::Refused(why) | Outcome::Cancelled(why) => f.write_str(why),
        }
    }
}

/// The end of an attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// The job.
    pub id: i64,
    /// The attempt.
    pub attempt: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Octets of its output.
    pub output_bytes: u64,
}

/// What is to be done now.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Plan {
    /// Jobs that are running as of now: the back end is to start them.
    pub start: Vec<Task>,
    /// When the next job may run that waits for its time, in seconds since 1970.
    pub next_s: Option<u64>,
}

/// The folder of an attempt below a queue's.
pub(super) fn attempt_folder(folder: &Path, id: i64, attempt: u32) -> PathBuf {
    folder.join("jobs").join(id.to_string()).join(attempt.to_string())
}
