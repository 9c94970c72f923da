//! Idle time limit of a transfer.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use inhost_base::{Duration, Instant};

use super::Clock;

/// Watches that something moves. The sleep is armed lazily: what moves often costs no timer each time.
pub(super) struct Stall<'a, C> {
    clock: &'a C,
    limit: Duration,
    last: Instant,
    sleep: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl<'a, C: Clock> Stall<'a, C> {
    pub(super) fn new(clock: &'a C, limit: Duration) -> Stall<'a, C> {
        Stall { clock, limit, last: clock.now(), sleep: None }
    }
    /// Something moved.
    pub(super) fn moved(&mut self) {
        self.last = self.clock.now();
    }
    /// Whether nothing has moved for too long; if not, the task is woken to look again.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        loop {
            let until = self.last + self.limit;
            if self.clock.now() >= until {
                return true;
            }
            let sleep = self.sleep.get_or_insert_with(|| self.clock.sleep_until(until));
            if sleep.as_mut().poll(cx).is_pending() {
                return false;
            }
            self.sleep = None;
        }
    }
}

/// The result of `future`, or `None` after `time`.
pub(super) async fn within<T>(
    clock: &impl Clock,
    time: Duration,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let mut sleep = clock.sleep_until(clock.now() + time);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => sleep.as_mut().poll(cx).map(|()| None),
    })
    .await
}
