//! Observation of a host's tasks, for simulators.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Sees how the tasks of a host run; set by [`Host::observe_tasks`](crate::Host::observe_tasks).
///
/// A task is named by the place in the source where it was spawned. The executor keeps a panic of a detached task to
/// itself, as a server must; a test of programs must not, and gets each here.
pub trait TaskObserver {
    /// `task` is about to be polled.
    fn poll_begins(&self, task: &'static Location<'static>);
    /// The task that is being polled uses a socket or a timer. A panic in here is the task's own.
    fn operation(&self);
    /// The poll is over.
    fn poll_ends(&self);
    /// The poll ended in a panic. Called after [`TaskObserver::poll_ends`], before a task that awaits it is woken.
    fn panicked(&self, task: &'static Location<'static>, panic: &(dyn Any + Send));
}

/// A task under observation.
pub(crate) struct Observed<T> {
    future: Pin<Box<dyn Future<Output = T>>>,
    task: &'static Location<'static>,
    observer: Rc<dyn TaskObserver>,
}

impl<T> Observed<T> {
    pub(crate) fn new(
        future: impl Future<Output = T> + 'static,
        task: &'static Location<'static>,
        observer: Rc<dyn TaskObserver>,
    ) -> Observed<T> {
        Observed { future: Box::pin(future), task, observer }
    }
}

impl<T> Future for Observed<T> {
    type Output = T;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.observer.poll_begins(self.task);
        let result = catch_unwind(AssertUnwindSafe(|| self.future.as_mut().poll(context)));
        self.observer.poll_ends();
        result.unwrap_or_else(|panic| {
            self.observer.panicked(self.task, &*panic);
            resume_unwind(panic)
        })
    }
}
