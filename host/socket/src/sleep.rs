//! A task's wait for a point in time.

use std::pin::Pin;
use std::task::{Context, Poll};

use inhost_base::{Duration, Instant};

use crate::host::Host;
use crate::timers::TimerKey;

/// Waits for a point in time; see [`Host::sleep`].
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct Sleep {
    host: Host,
    deadline: Instant,
    /// Where it was made between two rounds: the number of the last one, and for how long it is to last after the next.
    from_round: Option<(u64, Duration)>,
    timer: Option<TimerKey>,
}

impl Sleep {
    /// Lasts until `deadline`, or so long from the next round on.
    pub(crate) fn new(host: &Host, deadline: Instant, from_round: Option<(u64, Duration)>) -> Sleep {
        Sleep { host: host.clone(), deadline, from_round, timer: None }
    }
    /// When it is over. One that was made between two rounds learns that when it is first polled after the next.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }
}

impl Future for Sleep {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.host.executor().operation();
        let now = self.host.now();
        if let Some((made, duration)) = self.from_round
            && self.host.rounds().0 > made
        {
            self.from_round = None;
            self.deadline = now + duration;
        }
        if self.from_round.is_none() && now >= self.deadline {
            return Poll::Ready(());
        }
        // The next round comes at once where it is waited for.
        let due = if self.from_round.is_some() { now } else { self.deadline };
        let mut timers = self.host.timers().borrow_mut();
        let kept = self.timer.is_some_and(|timer| timers.change(timer, context.waker()));
        if !kept {
            let timer = timers.set(due, context.waker().clone());
            drop(timers);
            self.timer = Some(timer);
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            let waker = self.host.timers().borrow_mut().cancel(timer);
            drop(waker);
        }
    }
}

/// A future took longer than [`Host::timeout`] allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Elapsed {
    /// How long it was given.
    pub limit: Duration,
}

impl core::fmt::Display for Elapsed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "not done within the {} that Host::timeout gave it", self.limit)
    }
}
impl core::error::Error for Elapsed {}
