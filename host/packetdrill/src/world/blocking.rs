//! Calls that wait, and the hand-over between the two threads of the tool.
//!
//! Time passes only in calls of the main thread, so a call of the other thread that has to wait is left with the world
//! as a closure and its thread sleeps. Whichever call of the main thread brings about what is waited for completes it
//! at that moment of virtual time, with everything that follows from it, and wakes the sleeper with the answer. So the
//! order of events does not depend on how the system schedules the two.

use super::{World, answered, lock};
use inhost_base::{Duration, Instant};
use libc::{EAGAIN, EBADF};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Condvar, PoisonError};

/// How long the main thread itself waits, in virtual time, for what nothing brings about.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

static COMPLETED: Condvar = Condvar::new();

thread_local! {
    /// When the last blocked call of this thread was completed, until it asks for the time.
    static COMPLETED_AT: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Tries a call: EAGAIN stands for "not yet".
type Attempt = Box<dyn FnMut(&mut World) -> Result<i64, i32> + Send>;

/// How long a call may wait, and what it answers then.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// Not at all.
    Never,
    /// Until it is done.
    Always,
    /// Until an instant; the answer is what the attempt gives then, `after` instead of EAGAIN.
    Until { deadline: Instant, after: Result<i64, i32> },
}

struct Waiting {
    ticket: u64,
    attempt: Attempt,
    wait: Wait,
    /// It writes.
    writes: bool,
    /// The thread that waits, as the system numbers it.
    thread: libc::pid_t,
}

struct Done {
    ticket: u64,
    answer: Result<i64, i32>,
    at: Instant,
}

/// The calls that wait, in the order in which they came, and those whose thread has not heard yet.
#[derive(Default)]
pub(crate) struct Blocked {
    tickets: u64,
    waiting: VecDeque<Waiting>,
    done: Vec<Done>,
    /// A thread whose call was completed, and that may not have got to its next rest yet.
    restless: Option<libc::pid_t>,
}

impl Blocked {
    /// When the first of them gives up.
    pub fn deadline(&self) -> Option<Instant> {
        let ends = self.waiting.iter().filter_map(|call| match call.wait {
            Wait::Until { deadline, .. } => Some(deadline),
            Wait::Never | Wait::Always => None,
        });
        ends.min()
    }
}

impl World {
    /// Tries every blocked call once, those that write or the others; whether one was completed.
    pub fn complete_blocked(&mut self, writes: bool) -> bool {
        let mut completed = false;
        for _ in 0..self.blocked.waiting.len() {
            let Some(mut call) = self.blocked.waiting.pop_front() else { break };
            if call.writes != writes {
                self.blocked.waiting.push_back(call);
                continue;
            }
            match attempt(self, &mut call.attempt, call.wait) {
                None => self.blocked.waiting.push_back(call),
                Some(answer) => {
                    completed = true;
                    self.blocked.restless = Some(call.thread);
                    self.blocked.done.push(Done { ticket: call.ticket, answer, at: self.now });
                    wake();
                }
            }
        }
        completed
    }
    /// Lets time pass until the call is done: for the main thread, which nobody else would wake.
    fn wait_alone(&mut self, mut call: Attempt, wait: Wait) -> Result<i64, i32> {
        let limit = match wait {
            Wait::Until { deadline, .. } => deadline,
            Wait::Never => self.now,
            Wait::Always => self.now + LONGEST_WAIT,
        };
        loop {
            if let Some(answer) = attempt(self, &mut call, wait) {
                return answer;
            }
            if self.now >= limit {
                return Err(EAGAIN);
            }
            let next = self.next_event().unwrap_or(limit).min(limit);
            self.advance_to(next);
        }
    }
}

fn attempt(world: &mut World, call: &mut Attempt, wait: Wait) -> Option<Result<i64, i32>> {
    match (call(world), wait) {
        (Err(EAGAIN), Wait::Always) => None,
        (Err(EAGAIN), Wait::Until { deadline, after }) => (world.now >= deadline).then_some(after),
        (answer, _) => Some(answer),
    }
}

/// Wakes every thread that sleeps in a call, to look whether it is its turn.
pub(crate) fn wake() {
    COMPLETED.notify_all();
}

/// When the calling thread's last blocked call was completed; once.
pub(crate) fn take_completion_time() -> Option<Instant> {
    COMPLETED_AT.take()
}

/// Looks of the main thread at another that was woken, before it goes on all the same.
const LOOKS: usize = 20_000;

/// Lets a thread whose call was completed go on in real time until it rests again: to the tool no time passes in a
/// wait of the main thread, but the thread has to tell it of the completion.
pub(crate) fn yield_to_threads() {
    let Some(thread) = lock().as_mut().and_then(|world| world.blocked.restless.take()) else { return };
    for _ in 0..LOOKS {
        let heard = lock().as_ref().is_none_or(|world| world.blocked.done.is_empty());
        if heard && sleeps(thread) {
            return;
        }
        std::thread::yield_now();
    }
}

/// Whether a thread of this process sleeps, or is gone.
fn sleeps(thread: libc::pid_t) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")) else { return true };
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S'))
}

/// Does a call that may wait, and that writes.
pub(crate) fn write_call(prepare: impl FnOnce(&mut World) -> Result<(Attempt, Wait), i32>) -> i64 {
    call_as(true, prepare)
}

/// Does a call that may wait. `prepare` looks at the arguments and gives the attempt and how long to wait.
pub(crate) fn call(prepare: impl FnOnce(&mut World) -> Result<(Attempt, Wait), i32>) -> i64 {
    call_as(false, prepare)
}

fn call_as(writes: bool, prepare: impl FnOnce(&mut World) -> Result<(Attempt, Wait), i32>) -> i64 {
    let mut guard = lock();
    let Some(world) = guard.as_mut() else { return answered(Err(EBADF)) };
    let (mut first, wait) = match prepare(world) {
        Ok(prepared) => prepared,
        Err(number) => return answered(Err(number)),
    };
    if let Some(answer) = attempt(world, &mut first, wait) {
        world.run_until_idle();
        return answered(answer);
    }
    // What a part of the call has brought about (half a write) happens now.
    world.run_until_idle();
    if world.main == std::thread::current().id() {
        let answer = world.wait_alone(first, wait);
        world.run_until_idle();
        return answered(answer);
    }
    world.blocked.tickets += 1;
    let ticket = world.blocked.tickets;
    // SAFETY: it takes nothing and always answers.
    let thread = unsafe { libc::gettid() };
    world.blocked.waiting.push_back(Waiting { ticket, attempt: first, wait, writes, thread });
    // What was settled above may have been what it waits for.
    world.run_until_idle();
    loop {
        let Some(world) = guard.as_mut() else { return answered(Err(EBADF)) };
        if let Some(place) = world.blocked.done.iter().position(|done| done.ticket == ticket) {
            let done = world.blocked.done.swap_remove(place);
            COMPLETED_AT.set(Some(done.at));
            return answered(done.answer);
        }
        guard = COMPLETED.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
}
