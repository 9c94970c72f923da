//! Calls of the tasks of a host: time, tasks, sockets, names.

use std::future::poll_fn;
use std::io;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use inhost_base::{Duration, Endpoint, Instant, IpAddr};
use inhost_event::Sink;
use inhost_stack::{ConnectOptions, ListenOptions, ProbeMethod, SocketOption, Stack, UdpOptions};

use crate::datagram::{EchoSocket, ProbeSocket, UdpSocket};
use crate::error::{ConnectError, ListenError};
use crate::executor::Task;
use crate::future::{Either, race};
use crate::host::Host;
use crate::listener::Listener;
use crate::stream::Stream;
use crate::timers::TimerKey;
use crate::waiters::wake_all;

impl Host {
    /// Waits for a length of time. It counts from now in a task, else from the next round: between two rounds the host
    /// does not know the time.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        let (round, is_within) = self.rounds();
        let from_round = (!is_within).then_some((round, duration));
        Sleep { host: self.clone(), deadline: self.now() + duration, from_round, timer: None }
    }
    /// Waits until an instant.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        Sleep { host: self.clone(), deadline, from_round: None, timer: None }
    }
    /// The result of `future`, or [`Elapsed`] when it takes longer than `limit`; then it is dropped.
    pub async fn timeout<F: Future>(&self, limit: Duration, future: F) -> Result<F::Output, Elapsed> {
        match race(future, self.sleep(limit)).await {
            Either::First(value) => Ok(value),
            Either::Second(()) => Err(Elapsed { limit }),
        }
    }
    /// Starts a task. It is first polled in the current round or the next, never within this call. On a host that
    /// was stopped the future is dropped, and the task never ends.
    #[track_caller]
    pub fn spawn<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> Task<T> {
        self.spawn_at(Location::caller(), future)
    }
    /// As [`Host::spawn`], for tasks of a program that was given elsewhere: a [`TaskObserver`](crate::TaskObserver) is told of `place`.
    pub fn spawn_at<T: 'static>(
        &self,
        place: &'static Location<'static>,
        future: impl Future<Output = T> + 'static,
    ) -> Task<T> {
        self.executor().spawn(place, future)
    }

    /// Calls `remote`; done when the handshake is.
    pub async fn connect(&self, remote: Endpoint) -> Result<Stream, ConnectError> {
        self.connect_with(remote, ConnectOptions::default()).await
    }
    /// Calls `remote`, with options. Dropping the future gives the attempt up.
    pub async fn connect_with(
        &self,
        remote: Endpoint,
        options: ConnectOptions,
    ) -> Result<Stream, ConnectError> {
        Stream::connect(self, remote, options, &[]).await
    }
    /// Calls `remote`, with `settings` made before the first segment leaves.
    pub async fn connect_set(
        &self,
        remote: Endpoint,
        options: ConnectOptions,
        settings: &[SocketOption],
    ) -> Result<Stream, ConnectError> {
        Stream::connect(self, remote, options, settings).await
    }
    /// Listens at `local`; an unspecified address stands for every one of ours of its family.
    pub fn listen(&self, local: Endpoint, options: ListenOptions) -> Result<Listener, ListenError> {
        Listener::bind(self, local, options)
    }
    /// Opens a UDP socket at `local`; port 0 lets the host choose.
    pub fn udp(&self, local: Endpoint, options: UdpOptions) -> Result<UdpSocket, ListenError> {
        UdpSocket::bind(self, local, options)
    }
    /// Opens a socket for echo requests (ping).
    pub fn echo(&self) -> Result<EchoSocket, ListenError> {
        EchoSocket::open(self)
    }
    /// Opens a socket for probes of one method (traceroute).
    pub fn probe(&self, method: ProbeMethod) -> Result<ProbeSocket, ListenError> {
        ProbeSocket::open(self, method)
    }
    /// The addresses of `name`: an address as it is written, `localhost`, or what the resolver finds.
    pub async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        if let Ok(address) = name.parse() {
            return Ok(vec![address]);
        }
        if name.eq_ignore_ascii_case("localhost") {
            return Ok(vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1u16])]);
        }
        let resolver = self.resolver();
        match resolver {
            Some(resolver) => resolver.resolve(name).await,
            None => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!(
                    "{name}: this host has no resolver; give an address, or set one with set_resolver of \
                     inhost_socket's Host; with the feature \"names\" the crate inhost sets one by itself"
                ),
            )),
        }
    }

    /// Lends the stack, for what has no method here: configuration and instruments. No socket handle of this host
    /// is to be used within `work`; dropping one is fine.
    pub fn with_stack<R>(&self, work: impl FnOnce(&mut Stack, Instant) -> R) -> R {
        self.core(|core| work(&mut core.stack, core.now))
    }
    /// Like [`Host::with_stack`], with the sink for the calls that take one.
    pub fn with_stack_and_sink<R>(&self, work: impl FnOnce(&mut Stack, Instant, &mut dyn Sink) -> R) -> R {
        self.core(|core| work(&mut core.stack, core.now, &mut *core.sink))
    }
    /// Waits until addresses or routes are others than at the generation `seen` of `inhost_stack`'s IP; gives the
    /// generation that holds now.
    pub async fn paths_changed(&self, seen: u32) -> u32 {
        poll_fn(|context| {
            let generation = self.core(|core| core.stack.ip().paths().generation());
            if generation != seen {
                return Poll::Ready(generation);
            }
            let oldest = self.waiters().borrow_mut().of_paths().register(context);
            wake_all(oldest);
            Poll::Pending
        })
        .await
    }
    /// Waits until the host goes down, so that a service can say good-bye.
    pub async fn draining(&self) {
        poll_fn(|context| {
            if self.is_draining() {
                return Poll::Ready(());
            }
            let oldest = self.waiters().borrow_mut().of_drain().register(context);
            wake_all(oldest);
            Poll::Pending
        })
        .await;
    }
}

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
