//! Verification off the shard's thread: Argon2 is slow on purpose.

use std::collections::VecDeque;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::future::LocalFuture;
use crate::service::Problem;

use super::{Account, Decoy, UserError, Users};

/// Verifications that may wait for the one under way: as many as a host has sessions (`AdmissionLimits`), so that the
/// sessions of one host never find the queue full. It is some ten seconds' work.
const WAITING: usize = 256;

/// Result of a login attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Name and password are right.
    Granted(Account),
    /// They are not.
    Denied,
    /// Too many others wait to be verified; the same name and password may be right a moment later.
    Busy,
    /// They could not be verified, as when the users file cannot be read.
    Unavailable(String),
}

/// Password verification.
pub trait Authenticate {
    /// The verdict, in its own time.
    fn authenticate(&self, user: String, password: String) -> LocalFuture<Verdict>;
}

/// Path of the users file.
#[derive(Clone, Debug)]
pub enum Source {
    /// In a file, read anew for each attempt.
    File(PathBuf),
    /// In memory.
    Memory(Users),
    /// In a file, read anew for each attempt, that may not be there or be empty; until there is somebody in it, in
    /// memory: the one-time user of a host for which none was made yet.
    FileOrElse(PathBuf, Users),
}

impl Source {
    fn users(&self) -> Result<Users, UserError> {
        match self {
            Source::File(path) => Users::read(path),
            Source::Memory(users) => Ok(users.clone()),
            Source::FileOrElse(path, users) => {
                let in_file = Users::read_or_empty(path)?;
                let is_empty = in_file.accounts().next().is_none();
                Ok(if is_empty { users.clone() } else { in_file })
            }
        }
    }
}

/// One side thread that verifies, one attempt after another: so many attempts at once as a peer can make,
/// memory for one Argon2 is used. The thread ends when this and all its futures are dropped.
pub struct ThreadAuthenticator {
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    closed: bool,
}

struct Job {
    user: String,
    password: String,
    answer: Arc<Mutex<Answer>>,
}

#[derive(Default)]
struct Answer {
    verdict: Option<Verdict>,
    waker: Option<Waker>,
}

impl ThreadAuthenticator {
    /// Starts the thread.
    pub fn start(source: Source) -> Result<ThreadAuthenticator, Problem> {
        let queue = Arc::new(Queue::default());
        let theirs = queue.clone();
        std::thread::Builder::new()
            .name("password".into())
            .spawn(move || work(&theirs, &source))
            .map_err(|e| Problem::operation(format!("the thread that checks passwords cannot start: {e}")))?;
        Ok(ThreadAuthenticator { queue })
    }
}

impl Drop for ThreadAuthenticator {
    fn drop(&mut self) {
        locked(&self.queue.jobs).closed = true;
        self.queue.changed.notify_all();
    }
}

impl Authenticate for ThreadAuthenticator {
    fn authenticate(&self, user: String, password: String) -> LocalFuture<Verdict> {
        let answer = Arc::new(Mutex::new(Answer::default()));
        let mut jobs = locked(&self.queue.jobs);
        if jobs.waiting.len() >= WAITING {
            // Sessions that have ended no longer want to know.
            jobs.waiting.retain(|job| Arc::strong_count(&job.answer) > 1);
        }
        if jobs.waiting.len() >= WAITING {
            locked(&answer).verdict = Some(Verdict::Busy);
        } else {
            jobs.waiting.push_back(Job { user, password, answer: answer.clone() });
            self.queue.changed.notify_one();
        }
        Box::pin(Waiting(answer))
    }
}

struct Waiting(Arc<Mutex<Answer>>);

impl Future for Waiting {
    type Output = Verdict;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Verdict> {
        let mut answer = locked(&self.0);
        match answer.verdict.take() {
            Some(verdict) => Poll::Ready(verdict),
            None => {
                answer.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

fn work(queue: &Queue, source: &Source) {
    let decoy = Decoy::new();
    while let Some(job) = next_job(queue) {
        // A session that has ended no longer wants to know.
        if Arc::strong_count(&job.answer) == 1 {
            continue;
        }
        let verdict = match (source.users(), &decoy) {
            (Ok(users), Ok(decoy)) => match users.verify(&job.user, &job.password, decoy) {
                Some(account) => Verdict::Granted(account),
                None => Verdict::Denied,
            },
            (Err(error), _) => Verdict::Unavailable(error.to_string()),
            (_, Err(error)) => Verdict::Unavailable(error.to_string()),
        };
        let waker = {
            let mut answer = locked(&job.answer);
            answer.verdict = Some(verdict);
            answer.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

fn next_job(queue: &Queue) -> Option<Job> {
    let mut jobs = locked(&queue.jobs);
    loop {
        if jobs.closed {
            return None;
        }
        if let Some(job) = jobs.waiting.pop_front() {
            return Some(job);
        }
        jobs = queue.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, zip};

    /// A hash that costs nothing to check.
    fn cheap_users() -> Users {
        use argon2::password_hash::PasswordHasher;
        let argon2 = argon2::Argon2::new(
            argon2::Algorithm::default(),
            argon2::Version::default(),
            argon2::Params::new(8, 1, 1, None).unwrap(),
        );
        let hash: argon2::password_hash::phc::PasswordHash = argon2.hash_password(b"engine").unwrap();
        Users::parse(&format!("ada:{hash}\n")).unwrap()
    }

    #[test]
    fn two_hundred_at_once_wait_and_the_queue_has_a_bound() {
        let authenticator = ThreadAuthenticator::start(Source::Memory(cheap_users())).unwrap();
        let ask = || authenticator.authenticate("ada".into(), "engine".into());
        let asked: Vec<_> = (0..200).map(|_| ask()).collect();
        for verdict in asked {
            assert!(matches!(block_on(verdict), Verdict::Granted(_)));
        }
        let too_many: Vec<_> = (0..2 * WAITING).map(|_| ask()).collect();
        assert!(locked(&authenticator.queue.jobs).waiting.len() <= WAITING);
        let verdicts: Vec<_> = too_many.into_iter().map(block_on).collect();
        assert!(verdicts.iter().all(|v| matches!(v, Verdict::Granted(_) | Verdict::Busy)), "{verdicts:?}");
        // Those who have left make room.
        drop((0..2 * WAITING).map(|_| ask()).collect::<Vec<_>>());
        assert!(matches!(block_on(ask()), Verdict::Granted(_)));
    }

    #[test]
    fn verdicts_come_from_the_side_thread() {
        let mut users = Users::default();
        users.add("ada", "engine", None).unwrap();
        let authenticator = ThreadAuthenticator::start(Source::Memory(users)).unwrap();
        let right = authenticator.authenticate("ada".into(), "engine".into());
        let wrong = authenticator.authenticate("eve".into(), "engine".into());
        let (right, wrong) = block_on(zip(right, wrong));
        assert_eq!(right, Verdict::Granted(Account { name: "ada".into(), shell: None, is_operator: false }));
        assert_eq!(wrong, Verdict::Denied);
        // The user in memory serves until there is one in the file.
        let path = std::env::temp_dir().join(format!("inhost-first-user-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mut guest = Users::default();
        guest.add("guest", "once", None).unwrap();
        let source = Source::FileOrElse(path.clone(), guest);
        let names =
            |source: &Source| source.users().unwrap().accounts().map(|a| a.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&source), ["guest"]);
        let mut users = Users::default();
        users.add("ada", "engine", None).unwrap();
        users.write(&path).unwrap();
        assert_eq!(names(&source), ["ada"]);
        std::fs::remove_file(&path).unwrap();
        let missing = ThreadAuthenticator::start(Source::File("/nonexistent/users".into())).unwrap();
        let verdict = block_on(missing.authenticate("ada".into(), "engine".into()));
        assert!(matches!(verdict, Verdict::Unavailable(_)));
    }
}
