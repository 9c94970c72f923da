//! The clock of drivers: real, or simulated.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};

use inhost_base::{Duration, Instant};
use inhost_socket::Host;

use crate::future::LocalFuture;

/// The clock of drivers: real, or simulated.
pub trait Clock {
    /// Now.
    fn now(&self) -> Instant;
    /// Ready at `at`, or soon after.
    fn sleep_until(&self, at: Instant) -> LocalFuture<()>;
}

impl Clock for Host {
    fn now(&self) -> Instant {
        Host::now(self)
    }
    fn sleep_until(&self, at: Instant) -> LocalFuture<()> {
        Box::pin(Host::sleep_until(self, at))
    }
}

/// An alarm whose time may move. A time that moves on lets the old sleep run out first, so that what happens often costs no
/// timer each time.
#[derive(Default)]
pub struct Alarm {
    armed: Option<(Instant, LocalFuture<()>)>,
}

impl Alarm {
    /// Whether `at` has come; if not, the task is woken when it does. `None` never comes.
    pub fn poll(&mut self, clock: &impl Clock, at: Option<Instant>, cx: &mut Context<'_>) -> bool {
        let Some(at) = at else {
            self.armed = None;
            return false;
        };
        loop {
            if clock.now() >= at {
                self.armed = None;
                return true;
            }
            if self.armed.as_ref().is_none_or(|(armed, _)| at < *armed) {
                self.armed = Some((at, clock.sleep_until(at)));
            }
            if self.armed.as_mut().is_some_and(|(_, sleep)| sleep.as_mut().poll(cx).is_pending()) {
                return false;
            }
            self.armed = None;
        }
    }
}

/// The result of `future`, or `None` after `time`.
pub async fn within<T>(clock: &impl Clock, time: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut sleep = clock.sleep_until(clock.now() + time);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => sleep.as_mut().poll(cx).map(|()| None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use inhost_stack::{Stack, StackConfig};

    #[test]
    fn an_alarm_that_moves_rings_at_its_last_time_and_one_without_a_time_never() {
        let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
        let second = |number: u64| Some(Instant::from_millis(1000 * number));
        let own = host.clone();
        let rang = host.run_alone(async move {
            let (mut alarm, mut at) = (Alarm::default(), second(3));
            let rings = poll_fn(|cx| {
                let rings = alarm.poll(&own, at, cx);
                // It is moved on once it is armed, and once to an earlier time.
                at = if at == second(3) { second(9) } else { second(7) };
                if rings { Poll::Ready(own.now()) } else { Poll::Pending }
            });
            let rang = rings.await;
            assert!(poll_fn(|cx| Poll::Ready(!alarm.poll(&own, None, cx))).await);
            assert_eq!(within(&own, Duration::from_secs(1), std::future::pending::<()>()).await, None);
            assert_eq!(within(&own, Duration::from_secs(1), async { 7 }).await, Some(7));
            rang
        });
        assert_eq!(rang, second(7));
    }
}
