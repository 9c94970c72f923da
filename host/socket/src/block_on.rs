//! Blocking a thread until a future is done.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::Host;

/// Wakes a thread.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The system's clock, by which a thread that blocks gives up. The asynchronous sockets use the host's time instead.
#[allow(clippy::disallowed_methods)]
fn clock() -> Instant {
    Instant::now()
}

/// Longest time for which a thread with hosts of its own waits for another host before it looks after them.
const SERVE_INTERVAL: Duration = Duration::from_millis(1);

/// Blocks until `future` is done. Hosts of this thread answer calls of other threads meanwhile: the host that is waited
/// for may wait for one of them.
pub(crate) fn block_on_and_serve<F: Future>(future: F) -> F::Output {
    let hosts = Host::all_on_this_thread();
    let limit = (!hosts.is_empty()).then_some(SERVE_INTERVAL);
    let mut future = pin!(future);
    loop {
        if let Some(value) = wait(future.as_mut(), limit) {
            return value;
        }
        hosts.iter().for_each(Host::serve_remote);
    }
}

/// Blocks until `future` is done, or for `limit`; `None` when the time is over, and then the future is dropped.
///
/// # Panics
/// When it would block a task of a host, and with it all others of its thread.
pub fn block_on_within<F: Future>(future: F, limit: Option<Duration>) -> Option<F::Output> {
    let mut future = pin!(future);
    // What is done at once blocks nobody.
    if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return Some(value);
    }
    assert!(
        Host::current().is_none(),
        "a task of a host may not block its thread: await, or use another thread"
    );
    wait(future, limit)
}

fn wait<F: Future>(mut future: Pin<&mut F>, limit: Option<Duration>) -> Option<F::Output> {
    let waker = Waker::from(Arc::new(Parked(thread::current())));
    let until = limit.and_then(|limit| clock().checked_add(limit));
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(value);
        }
        match until {
            None => thread::park(),
            Some(until) => {
                let left = until.checked_duration_since(clock()).filter(|left| !left.is_zero())?;
                thread::park_timeout(left);
            }
        }
    }
}

/// Blocks until `future` is done.
///
/// # Panics
/// As [`block_on_within`].
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        // Without a limit it ends with the future.
        if let Some(value) = block_on_within(future.as_mut(), None) {
            return value;
        }
    }
}
