//! Virtual time, with tokio's names: see `tokio::time`.

use std::fmt;
use std::future::Future;
use std::io;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::pin::Pin;
use std::task::{Context, Poll};
pub use std::time::Duration;

use inhost_socket::Host;

/// A point in the virtual time of the host whose task asks, as `tokio::time::Instant`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Instant(inhost_base::Instant);

impl Instant {
    /// Now.
    ///
    /// # Panics
    /// Outside the tasks of a host.
    #[track_caller]
    pub fn now() -> Instant {
        Instant(super::host().now())
    }
    /// How long it was from `earlier` to this; zero when that is later.
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.since(earlier.0).as_nanos())
    }
    /// How long ago it was.
    #[track_caller]
    pub fn elapsed(&self) -> Duration {
        Instant::now().duration_since(*self)
    }
}

fn own(duration: Duration) -> inhost_base::Duration {
    inhost_base::Duration::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, duration: Duration) -> Instant {
        Instant(self.0 + own(duration))
    }
}
impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}
impl Sub<Instant> for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}
impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, duration: Duration) -> Instant {
        Instant(self.0 - own(duration))
    }
}
impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

/// Waits for a point in time; from [`sleep`] and [`sleep_until`].
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct Sleep {
    sleep: inhost_socket::Sleep,
}

impl Sleep {
    /// When it is over.
    pub fn deadline(&self) -> Instant {
        Instant(self.sleep.deadline())
    }
    /// Whether it is over.
    pub fn is_elapsed(&self) -> bool {
        Host::current().is_some_and(|host| host.now() >= self.sleep.deadline())
    }
    /// Waits for another point in time from now on.
    #[track_caller]
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        self.get_mut().sleep = super::host().sleep_until(deadline.0);
    }
}

impl Future for Sleep {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.sleep).poll(context)
    }
}

/// Waits for a length of time.
///
/// # Panics
/// Outside the tasks of a host.
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    Sleep { sleep: super::host().sleep(own(duration)) }
}

/// Waits until a point in time.
///
/// # Panics
/// Outside the tasks of a host.
#[track_caller]
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep { sleep: super::host().sleep_until(deadline.0) }
}

/// A future took longer than [`timeout`] allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Elapsed(Duration);

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deadline has elapsed: not done within {:?}", self.0)
    }
}
impl std::error::Error for Elapsed {}
impl From<Elapsed> for io::Error {
    fn from(elapsed: Elapsed) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, elapsed)
    }
}

/// The result of `future`, or [`Elapsed`] when it takes longer than `limit`; then it is dropped.
///
/// # Errors
/// When it took longer.
#[track_caller]
pub fn timeout<F: Future>(limit: Duration, future: F) -> impl Future<Output = Result<F::Output, Elapsed>> {
    let host = super::host();
    async move { host.timeout(own(limit), future).await.map_err(|_| Elapsed(limit)) }
}

/// As [`timeout`], until a point in time.
///
/// # Errors
/// When it took longer.
#[track_caller]
pub fn timeout_at<F: Future>(
    deadline: Instant,
    future: F,
) -> impl Future<Output = Result<F::Output, Elapsed>> {
    timeout(deadline.duration_since(Instant::now()), future)
}

/// Ticks at regular points in time; from [`interval`].
#[derive(Debug)]
pub struct Interval {
    next: Instant,
    period: Duration,
}

impl Interval {
    /// Waits for the next tick, and says when it was due. The first is at once; ticks that were missed follow at once, too.
    pub async fn tick(&mut self) -> Instant {
        let due = self.next;
        sleep_until(due).await;
        self.next = due + self.period;
        due
    }
    /// The time between two ticks.
    pub fn period(&self) -> Duration {
        self.period
    }
}

/// Ticks every `period`, from now on.
///
/// # Panics
/// When `period` is zero, or outside the tasks of a host.
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    interval_at(Instant::now(), period)
}

/// Ticks every `period`, from `start` on.
///
/// # Panics
/// When `period` is zero.
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(!period.is_zero(), "`period` must be non-zero");
    Interval { next: start, period }
}
