//! The tasks of a host, stepped by its round.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use async_task::Runnable;
use inhost_base::{Key, Slab};

use crate::doorbell::Doorbell;

/// Tasks of one host, at most: memory is taken as they come.
const TASKS: usize = 1 << 24;

/// A task that was spawned on a host.
///
/// Awaiting it gives its result. Dropping it cancels the task; [`Task::detach`] lets it run on by itself. A panic in
/// a task is passed to whoever awaits it and ends nothing else.
#[must_use = "a task is cancelled when its handle is dropped; detach it to let it run"]
#[derive(Debug)]
pub struct Task<T>(Option<async_task::Task<T>>);

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
        self.0.as_ref().is_some_and(async_task::Task::is_finished)
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

/// Tasks that wait for their turn, in the order in which they were woken. Any thread may add one.
struct Turns {
    state: Mutex<Waiting>,
    bell: Doorbell,
}

#[derive(Default)]
struct Waiting {
    queue: VecDeque<Runnable>,
    /// Nobody looks before the bell is rung.
    wants_bell: bool,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing in there can panic halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn add(&self, runnable: Runnable) {
        let mut waiting = self.lock();
        waiting.queue.push_back(runnable);
        let rings = std::mem::take(&mut waiting.wants_bell);
        drop(waiting);
        if rings {
            self.bell.ring();
        }
    }
    /// Puts all that wait into `into`, which is empty. Where none do, the next will ring.
    fn take(&self, into: &mut VecDeque<Runnable>) {
        let mut waiting = self.lock();
        std::mem::swap(&mut waiting.queue, into);
        waiting.wants_bell = into.is_empty();
    }
    /// Lets what was taken and has not had its turn wait again, before all others.
    fn put_back(&self, rest: &mut VecDeque<Runnable>) {
        let mut waiting = self.lock();
        rest.append(&mut waiting.queue);
        std::mem::swap(&mut waiting.queue, rest);
    }
}

/// The wakers of all tasks that have not ended, so that they can be ended.
type Living = Rc<RefCell<Slab<Waker>>>;

/// Takes a task out of the living when it ends, however it does.
struct Life {
    key: Key,
    living: Living,
}

impl Drop for Life {
    fn drop(&mut self) {
        let waker = self.living.borrow_mut().remove(self.key);
        // It may be the last that holds something; nothing is borrowed any more.
        drop(waker);
    }
}

/// Runs tasks in the order in which they were woken, a bounded number of polls at a time.
pub(crate) struct Executor {
    turns: Arc<Turns>,
    living: Living,
    /// Those whose turn it is; kept for its memory.
    now: Cell<VecDeque<Runnable>>,
    is_running: Cell<bool>,
    is_stopped: Cell<bool>,
}

impl Executor {
    pub(crate) fn new(bell: Doorbell) -> Executor {
        let turns = Turns { state: Mutex::default(), bell };
        Executor {
            turns: Arc::new(turns),
            living: Rc::new(RefCell::new(Slab::new(TASKS))),
            now: Cell::default(),
            is_running: Cell::new(false),
            is_stopped: Cell::new(false),
        }
    }
    /// Spawns a task; once the host has been stopped, or has as many as it can, the future is dropped and the task never
    /// ends.
    pub(crate) fn spawn<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> Task<T> {
        let next = self.living.borrow().next_key();
        let Some(key) = next.filter(|_| !self.is_stopped.get()) else { return Task(None) };
        let life = Life { key, living: self.living.clone() };
        let lives = async move {
            let _life = life;
            future.await
        };
        let turns = self.turns.clone();
        let builder = async_task::Builder::new().propagate_panic(true);
        let (runnable, task) = builder.spawn_local(move |()| lives, move |runnable| turns.add(runnable));
        // The key is the one that was foretold: nothing has been inserted since.
        let _ = self.living.borrow_mut().insert(runnable.waker());
        runnable.schedule();
        Task(Some(task))
    }
    /// Polls runnable tasks, at most `budget` polls, and says how many polls were made.
    pub(crate) fn run(&self, budget: usize) -> usize {
        // A task that drives its own host finds it running and does nothing.
        if !self.has_runnable() || self.is_running.replace(true) {
            return 0;
        }
        self.turns.bell.answer();
        let (mut polls, mut now) = (0, self.now.take());
        while polls < budget {
            let Some(runnable) = now.pop_front() else {
                self.turns.take(&mut now);
                if now.is_empty() {
                    break;
                }
                continue;
            };
            runnable.run();
            polls += 1;
        }
        if polls == budget {
            self.turns.put_back(&mut now);
            self.turns.bell.ring();
        }
        self.now.set(now);
        self.is_running.set(false);
        if self.is_stopped.get() {
            self.end_all();
        }
        polls
    }
    /// Whether a task may be runnable.
    pub(crate) fn has_runnable(&self) -> bool {
        self.turns.bell.is_rung()
    }
    /// Drops every task. Futures run their destructors here, which may use the host.
    pub(crate) fn stop(&self) {
        self.is_stopped.set(true);
        if !self.is_running.get() {
            self.end_all();
        }
    }
    fn end_all(&self) {
        let wakers: Vec<Waker> = self.living.borrow().iter().map(|(_, waker)| waker.clone()).collect();
        wakers.into_iter().for_each(Waker::wake);
        let mut all = VecDeque::new();
        loop {
            // A task that is dropped may wake another.
            self.turns.take(&mut all);
            if all.is_empty() {
                return;
            }
            all.drain(..).for_each(drop);
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.end_all();
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
            executor.spawn(async move { ran.set(ran.get() + 1) }).detach();
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
        executor.spawn(async move { into.set(receive.recv().await.unwrap()) }).detach();
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
            .spawn(async move {
                let _flag = flag;
                std::future::pending::<()>().await;
            })
            .detach();
        let flag = Flag(dropped.clone());
        let task = executor.spawn(async move {
            let _flag = flag;
            std::future::pending::<()>().await;
        });
        executor.run(10);
        drop(task);
        executor.run(10);
        assert_eq!(dropped.get(), 1);
        executor.stop();
        assert_eq!(dropped.get(), 2);
        assert!(!executor.spawn(async {}).is_finished());
    }
}
