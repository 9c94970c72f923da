//! Observation of the tasks on simulated hosts: panics, and tasks that never rest.

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::panic::{Location, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;

use inhost_base::Instant;
use inhost_socket::TaskObserver;

use crate::watchdog::Pulse;

/// Socket and timer operations after which a single poll is called endless. Data and room for it do not grow within a
/// poll, so what goes on for so long reads at the end of a stream, or repeats what fails.
const OPERATIONS_A_POLL: u32 = 1 << 20;
/// Polls of a host's tasks that follow each other without rest, frame or timer, after which one of them spins.
const RESTLESS_POLLS: usize = 250_000;
/// From then on it is counted which task is polled most.
const COUNTED_FROM: usize = RESTLESS_POLLS / 2;

/// What went wrong in a task of a host.
#[derive(Clone, Debug)]
pub struct TaskFailure {
    /// The host's number.
    pub host: usize,
    /// The network's time.
    pub at: Instant,
    /// Where the task was spawned.
    pub task: &'static Location<'static>,
    /// What it did.
    pub what: TaskFault,
}

/// What a task must not do.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TaskFault {
    /// It panicked, with this message.
    Panicked(String),
    /// It wakes itself again and again, and no time passes.
    Restless,
    /// It uses sockets or timers again and again within one poll.
    Endless,
}

impl core::fmt::Display for TaskFailure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (at, task) = (self.at.since(Instant::ZERO), self.task);
        match &self.what {
            TaskFault::Panicked(why) => {
                write!(f, "a task panicked at {at}: {why} (spawned at {task})")?;
                let hint = if is_of_tokio(why) { NOT_TOKIO } else { "" };
                f.write_str(hint)
            }
            TaskFault::Restless => {
                write!(
                    f,
                    "a task spins at {at}: it wakes itself without time passing, {RESTLESS_POLLS} times by now \
                     (spawned at {task})"
                )
            }
            TaskFault::Endless => {
                write!(
                    f,
                    "a task spins at {at}: it uses sockets and timers {OPERATIONS_A_POLL} times within one poll, \
                     as who reads on at the end of a stream (spawned at {task})"
                )
            }
        }
    }
}

/// What to do about a panic of tokio's own.
const NOT_TOKIO: &str = "\ntokio's runtime is not in a simulation: use inhost::sim::{net, task, time} in the place of tokio's \
                         modules, or the calls of the host's node";

/// Whether a panic is that of tokio's timers, tasks or sockets outside a runtime, or in one that has none.
fn is_of_tokio(why: &str) -> bool {
    why.contains("Tokio 1.x")
}

/// What all hosts of a network share: the time, the first failure, and the pulse for a watchdog.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub now: Cell<Instant>,
    failure: RefCell<Option<TaskFailure>>,
    pulse: OnceCell<Arc<Pulse>>,
}

impl Tasks {
    pub fn failure(&self) -> Option<TaskFailure> {
        self.failure.borrow().clone()
    }
    /// The pulse, which beats from now on.
    pub fn pulse(&self) -> Arc<Pulse> {
        self.pulse.get_or_init(Arc::default).clone()
    }
    pub fn has_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }
    fn fails(&self, failure: TaskFailure) {
        // Awaiting a task that panicked panics, too.
        self.failure.borrow_mut().get_or_insert(failure);
    }
}

/// The observer of one host's tasks.
pub(super) struct Observer {
    host: usize,
    tasks: Rc<Tasks>,
    operations: Cell<u32>,
    last: Cell<&'static Location<'static>>,
    restless_polls: Cell<usize>,
    /// Polls of each task, while too many follow each other.
    counts: RefCell<BTreeMap<&'static Location<'static>, u64>>,
}

/// What ends a task within an endless poll.
struct EndlessPoll;

impl Observer {
    pub fn new(host: usize, tasks: Rc<Tasks>) -> Observer {
        Observer {
            host,
            tasks,
            operations: Cell::new(0),
            last: Cell::new(Location::caller()),
            restless_polls: Cell::new(0),
            counts: RefCell::default(),
        }
    }
    /// The host had a round for its own tasks' sake only, in which so many polls were made.
    pub fn restless(&self, polls: usize) {
        self.restless_polls.set(self.restless_polls.get() + polls);
        if self.restless_polls.get() > RESTLESS_POLLS {
            let counts = self.counts.borrow();
            let most = counts.iter().max_by_key(|(_, count)| **count).map(|(task, _)| *task);
            let task = most.unwrap_or(self.last.get());
            self.fails(task, TaskFault::Restless);
        }
    }
    /// The host had a round with frames or timers, and might have had as many polls for them.
    pub fn busy(&self, polls: usize) {
        self.restless_polls.set(self.restless_polls.get().saturating_sub(polls));
    }
    /// The host rested.
    pub fn rested(&self) {
        if self.restless_polls.replace(0) > COUNTED_FROM {
            self.counts.borrow_mut().clear();
        }
    }
    fn fails(&self, task: &'static Location<'static>, what: TaskFault) {
        self.tasks.fails(TaskFailure { host: self.host, at: self.tasks.now.get(), task, what });
    }
}

impl TaskObserver for Observer {
    fn poll_begins(&self, task: &'static Location<'static>) {
        self.operations.set(0);
        self.last.set(task);
        if self.restless_polls.get() > COUNTED_FROM {
            *self.counts.borrow_mut().entry(task).or_default() += 1;
        }
        if let Some(pulse) = self.tasks.pulse.get() {
            pulse.poll_begins(self.host, self.tasks.now.get(), task);
        }
    }
    fn operation(&self) {
        let operations = self.operations.get() + 1;
        self.operations.set(operations);
        if operations >= OPERATIONS_A_POLL && !std::thread::panicking() {
            resume_unwind(Box::new(EndlessPoll));
        }
    }
    fn poll_ends(&self) {
        self.operations.set(0);
        if let Some(pulse) = self.tasks.pulse.get() {
            pulse.poll_ends();
        }
    }
    fn panicked(&self, task: &'static Location<'static>, panic: &(dyn Any + Send)) {
        let what = if panic.is::<EndlessPoll>() {
            TaskFault::Endless
        } else {
            TaskFault::Panicked(words_of(panic).to_owned())
        };
        self.fails(task, what);
    }
}

fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("for a reason of an unknown kind")
}
