//! Tasks of simulated hosts, with tokio's names: see `tokio::task`.

use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use inhost_socket::Task;
pub use inhost_socket::yield_now;

/// Starts a task on the host whose task runs. It need not be `Send`. A panic in it fails the run.
///
/// # Panics
/// Outside the tasks of a host.
#[track_caller]
pub fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> JoinHandle<T> {
    JoinHandle { task: Rc::new(RefCell::new(Some(super::host().spawn(future)))) }
}

/// As [`spawn`]: tasks of a simulated host are local.
#[track_caller]
pub fn spawn_local<T: 'static>(future: impl Future<Output = T> + 'static) -> JoinHandle<T> {
    spawn(future)
}

/// A task that was [spawned](spawn). Awaiting it gives its result; dropping it lets the task run on.
#[derive(Debug)]
pub struct JoinHandle<T> {
    task: Rc<RefCell<Option<Task<T>>>>,
}

/// Ends a task from elsewhere.
#[derive(Clone)]
pub struct AbortHandle(Rc<dyn Abort>);

trait Abort {
    fn abort(&self);
    fn is_finished(&self) -> bool;
}

impl<T> Abort for RefCell<Option<Task<T>>> {
    fn abort(&self) {
        // The task may look at its own handle while it is dropped.
        let task = self.borrow_mut().take();
        drop(task);
    }
    fn is_finished(&self) -> bool {
        self.borrow().as_ref().is_none_or(Task::is_finished)
    }
}

impl AbortHandle {
    /// As [`JoinHandle::abort`].
    pub fn abort(&self) {
        self.0.abort();
    }
    /// As [`JoinHandle::is_finished`].
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle").finish_non_exhaustive()
    }
}

/// The task was aborted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JoinError;

impl JoinError {
    /// Whether the task was aborted: always so, because a panic ends the run.
    pub fn is_cancelled(&self) -> bool {
        true
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task was cancelled")
    }
}
impl std::error::Error for JoinError {}

impl<T: 'static> JoinHandle<T> {
    /// Ends the task: its future is dropped.
    pub fn abort(&self) {
        self.task.abort();
    }
    /// Ends the task, from wherever it is kept.
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle(self.task.clone())
    }
    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        Abort::is_finished(&*self.task)
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, JoinError>> {
        match &mut *self.task.borrow_mut() {
            Some(task) => Pin::new(task).poll(context).map(Ok),
            None => Poll::Ready(Err(JoinError)),
        }
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if let Some(task) = self.task.borrow_mut().take() {
            task.detach();
        }
    }
}

/// Tasks whose results are taken as they come, as `tokio::task::JoinSet`. Dropping it ends them.
#[derive(Debug)]
pub struct JoinSet<T> {
    tasks: Vec<JoinHandle<T>>,
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        JoinSet { tasks: Vec::new() }
    }
}

impl<T: 'static> JoinSet<T> {
    /// A set without tasks.
    pub fn new() -> JoinSet<T> {
        JoinSet::default()
    }
    /// How many tasks are in it, those included that have ended and whose result was not taken.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
    /// Starts a task, as [`spawn`].
    ///
    /// # Panics
    /// Outside the tasks of a host.
    #[track_caller]
    pub fn spawn(&mut self, future: impl Future<Output = T> + 'static) -> AbortHandle {
        let task = spawn(future);
        let handle = task.abort_handle();
        self.tasks.push(task);
        handle
    }
    /// As [`JoinSet::spawn`].
    #[track_caller]
    pub fn spawn_local(&mut self, future: impl Future<Output = T> + 'static) -> AbortHandle {
        self.spawn(future)
    }
    /// The result of the next task that ends; `None` when there is no task.
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        poll_fn(|context| self.poll_join_next(context)).await
    }
    /// One step of [`JoinSet::join_next`].
    pub fn poll_join_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        for at in 0..self.tasks.len() {
            if let Poll::Ready(result) = Pin::new(&mut self.tasks[at]).poll(context) {
                self.tasks.remove(at);
                return Poll::Ready(Some(result));
            }
        }
        if self.tasks.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    }
    /// The result of a task that has ended; `None` when none has.
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        match self.poll_join_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => None,
        }
    }
    /// The results of all tasks, in the order in which they ended.
    ///
    /// # Panics
    /// When one was aborted.
    pub async fn join_all(mut self) -> Vec<T> {
        let mut results = Vec::new();
        while let Some(result) = self.join_next().await {
            results.push(result.unwrap_or_else(|aborted| panic!("{aborted}")));
        }
        results
    }
    /// Ends all tasks; their results say so.
    pub fn abort_all(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
    /// Ends all tasks, and forgets them.
    pub async fn shutdown(&mut self) {
        self.abort_all();
        self.tasks.clear();
    }
    /// Lets all tasks run on.
    pub fn detach_all(&mut self) {
        self.tasks.clear();
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        for task in &self.tasks {
            let ended = task.task.borrow_mut().take();
            drop(ended);
        }
    }
}
