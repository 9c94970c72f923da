//! The executor of a host's tasks, stepped by its round.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use async_executor::LocalExecutor;

use crate::doorbell::Doorbell;
use crate::observer::{Observed, TaskObserver};

/// A task that was spawned on a host.
///
/// Awaiting it returns its result. Dropping it cancels the task; [`Task::detach`] lets it continue. A panic in a task
/// is passed to the task that awaits it and ends nothing else.
#[must_use = "a task is cancelled when its handle is dropped; detach it to let it run"]
#[derive(Debug)]
pub struct Task<T>(Option<async_executor::Task<T>>);

impl<T> Task<T> {
    /// Lets the task run on without a handle, until it ends or the host is stopped.
    pub fn detach(self) {
        if let Some(task) = self.0 {
            task.detach();
        }
    }
    /// Stops the task and waits until it is gone; its result when it had ended already.
    pub async fn cancel(self) -> Option<T> {
        self.0?.cancel().await
    }
    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.0.as_ref().is_some_and(async_executor::Task::is_finished)
    }
}

impl<T> Future for Task<T> {
    type Output = T;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match &mut self.0 {
            Some(task) => Pin::new(task).poll(context),
            None => Poll::Pending,
        }
    }
}

type Steps = Pin<Box<dyn Future<Output = ()>>>;

/// Runs tasks in the order in which they were woken, a bounded number of polls at a time.
pub(crate) struct Executor {
    tasks: RefCell<Option<Rc<LocalExecutor<'static>>>>,
    /// Polls one task after the other; it is pending when none is runnable, and then the bell is its waker.
    steps: RefCell<Option<Steps>>,
    left: Rc<Cell<usize>>,
    bell: Doorbell,
    observer: OnceCell<Rc<dyn TaskObserver>>,
}

impl Executor {
    pub(crate) fn new(bell: Doorbell) -> Executor {
        let tasks = Rc::new(LocalExecutor::new());
        let left = Rc::new(Cell::new(0));
        let steps = steps(tasks.clone(), left.clone());
        Executor {
            tasks: RefCell::new(Some(tasks)),
            steps: RefCell::new(Some(Box::pin(steps))),
            left,
            bell,
            observer: OnceCell::new(),
        }
    }
    /// Shows tasks spawned from now on to `observer`; false when there is one already.
    pub(crate) fn observe(&self, observer: Rc<dyn TaskObserver>) -> bool {
        self.observer.set(observer).is_ok()
    }
    /// A task uses something of the host.
    #[inline(always)]
    pub(crate) fn operation(&self) {
        if let Some(observer) = self.observer.get() {
            observer.operation();
        }
    }
    /// Spawns a task; once the host has been stopped, the future is dropped and the task never ends.
    pub(crate) fn spawn<T: 'static>(
        &self,
        at: &'static Location<'static>,
        future: impl Future<Output = T> + 'static,
    ) -> Task<T> {
        let tasks = self.tasks.borrow().clone();
        Task(tasks.map(|tasks| match self.observer.get() {
            None => tasks.spawn(future),
            Some(observer) => tasks.spawn(Observed::new(future, at, observer.clone())),
        }))
    }
    /// Polls runnable tasks, at most `budget` polls, and says how many polls were made.
    pub(crate) fn run(&self, budget: usize) -> usize {
        // A task that drives its own host finds no steps here and does nothing.
        let Some(mut steps) = self.steps.borrow_mut().take() else { return 0 };
        self.bell.answer();
        self.left.set(budget);
        let _ = steps.as_mut().poll(&mut Context::from_waker(&self.bell.waker()));
        if self.left.get() == 0 {
            self.bell.ring();
        }
        if self.tasks.borrow().is_some() {
            *self.steps.borrow_mut() = Some(steps);
        }
        budget - self.left.get()
    }
    /// Whether a task may be runnable.
    pub(crate) fn has_runnable(&self) -> bool {
        self.bell.is_rung()
    }
    /// Drops every task. Futures run their destructors here, which may use the host.
    pub(crate) fn stop(&self) {
        let steps = self.steps.borrow_mut().take();
        let tasks = self.tasks.borrow_mut().take();
        drop((steps, tasks));
    }
}

async fn steps(tasks: Rc<LocalExecutor<'static>>, left: Rc<Cell<usize>>) {
    loop {
        // Wait for the next round's budget; who polls sets it.
        poll_fn(|_| if left.get() == 0 { Poll::Pending } else { Poll::Ready(()) }).await;
        tasks.tick().await;
        left.set(left.get().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_bounds_the_polls_and_the_rest_stays_runnable() {
        let executor = Executor::new(Doorbell::new());
        let ran = Rc::new(Cell::new(0));
        for _ in 0..10 {
            let ran = ran.clone();
            executor.spawn(Location::caller(), async move { ran.set(ran.get() + 1) }).detach();
        }
        assert_eq!(executor.run(4), 4);
        assert_eq!(ran.get(), 4);
        assert!(executor.has_runnable());
        assert_eq!(executor.run(100), 6);
        assert!(!executor.has_runnable());
        assert_eq!(executor.run(100), 0);
    }

    #[test]
    fn another_thread_wakes_a_task_and_rings() {
        let executor = Executor::new(Doorbell::new());
        let (send, receive) = async_channel::bounded::<u8>(1);
        let got = Rc::new(Cell::new(0));
        let into = got.clone();
        executor.spawn(Location::caller(), async move { into.set(receive.recv().await.unwrap()) }).detach();
        executor.run(10);
        assert!(!executor.has_runnable());
        std::thread::spawn(move || send.send_blocking(7).unwrap()).join().unwrap();
        assert!(executor.has_runnable());
        executor.run(10);
        assert_eq!(got.get(), 7);
    }

    #[test]
    fn stopping_drops_the_tasks_and_dropping_cancels_one() {
        struct Flag(Rc<Cell<u32>>);
        impl Drop for Flag {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let executor = Executor::new(Doorbell::new());
        let dropped = Rc::new(Cell::new(0));
        let flag = Flag(dropped.clone());
        executor
            .spawn(Location::caller(), async move {
                let _flag = flag;
                std::future::pending::<()>().await;
            })
            .detach();
        let flag = Flag(dropped.clone());
        let task = executor.spawn(Location::caller(), async move {
            let _flag = flag;
            std::future::pending::<()>().await;
        });
        executor.run(10);
        drop(task);
        executor.run(10);
        assert_eq!(dropped.get(), 1);
        executor.stop();
        assert_eq!(dropped.get(), 2);
        assert!(!executor.spawn(Location::caller(), async {}).is_finished());
    }
}
