//! Tasks of simulated hosts, with tokio's names: see `tokio::task`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use inhost_socket::Task;
pub use inhost_socket::yield_now;

/// Starts a task on the host whose task runs. It need not be `Send`. A panic in it fails the run.
///
/// # Panics
/// Outside the tasks of a host.
#[track_caller]
pub fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> JoinHandle<T> {
    JoinHandle { task: Some(super::host().spawn(future)) }
}

/// As [`spawn`]: tasks of a simulated host are local.
#[track_caller]
pub fn spawn_local<T: 'static>(future: impl Future<Output = T> + 'static) -> JoinHandle<T> {
    spawn(future)
}

/// A task that was [spawned](spawn). Awaiting it gives its result; dropping it lets the task run on.
#[derive(Debug)]
pub struct JoinHandle<T> {
    task: Option<Task<T>>,
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

impl<T> JoinHandle<T> {
    /// Ends the task: its future is dropped.
    pub fn abort(&mut self) {
        self.task = None;
    }
    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        self.task.as_ref().is_none_or(Task::is_finished)
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, JoinError>> {
        match &mut self.task {
            Some(task) => Pin::new(task).poll(context).map(Ok),
            None => Poll::Ready(Err(JoinError)),
        }
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.detach();
        }
    }
}
