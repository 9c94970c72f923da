//! Waits with a deadline.

use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest wait of a test for another program, thread or host. Below the limit of a test in `.config/nextest.toml`.
pub const DEADLINE: Duration = Duration::from_secs(45);
/// Time between two looks.
const POLL: Duration = Duration::from_millis(5);

/// Lets real time pass.
pub fn pause(time: Duration) {
    std::thread::park_timeout(time);
}

/// Waits until `look` gives something.
///
/// # Panics
/// With `what`, when [`DEADLINE`] is over.
#[track_caller]
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(DEADLINE, look).unwrap_or_else(|| panic!("not within {DEADLINE:?}: {what}"))
}

/// Waits until `look` gives something; `None` when the time is over.
#[allow(clippy::disallowed_methods, reason = "other programs take real time")]
pub fn within<T>(time: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        // The last look is after the deadline: a thread that was not run for long has not failed.
        let is_over = began.elapsed() > time;
        let found = look();
        if found.is_some() || is_over {
            return found;
        }
        pause(POLL);
    }
}

/// Waits for the end of a thread, and gives what it returned.
///
/// # Panics
/// When the thread panicked, with the same, or when [`DEADLINE`] is over.
#[track_caller]
pub fn join<T>(thread: JoinHandle<T>) -> T {
    let name = thread.thread().name().unwrap_or("a thread").to_owned();
    until(&format!("the end of {name}"), || thread.is_finished().then_some(()));
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Waits for a word from another thread.
///
/// # Panics
/// When there is no sender any more, or when [`DEADLINE`] is over.
#[track_caller]
pub fn receive<T>(from: &Receiver<T>) -> T {
    from.recv_timeout(DEADLINE).unwrap_or_else(|error| panic!("no word from another thread: {error}"))
}
