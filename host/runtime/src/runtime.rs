//! The runtime: the round under the real clock.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use inhost_base::{Duration, Instant, LinkId};
use inhost_buf::Batch;
use inhost_event::{Ignore, Layer};
use inhost_link::{Driver, Handover, Spec};
use inhost_record::Recorder;
use inhost_socket::{Doorbell, Host};
use inhost_stack::{ConfigureError, InterfaceConfig, Medium, Stack, StackConfig};
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use crate::busy_poll::BusyPoll;
use crate::clock::{Clock, entropy};
use crate::layers::{LayerWatch, Phase, Watched, within};
use crate::link::{Link, LinkChange, Links};
use crate::reactor::Reactor;

/// Polls of tasks in a round, for each host.
pub const POLLS_A_ROUND: usize = 256;
/// While the runtime looks again and again instead of sleeping, and while something happens in each turn, it asks for readiness
/// once in so many rounds: links are asked directly.
const ROUNDS_A_WAIT: u32 = 8;
/// How long a host's time of day may lag behind the system's calendar.
const TIME_OF_DAY_EVERY: Duration = Duration::from_secs(60);
/// The token of the eventfd by which other threads end the sleep.
const ALARM: u32 = u32::MAX;
/// The token of the timer that stands for the earliest deadline in somebody else's loop.
const TIMER: u32 = u32::MAX - 1;

/// Hosts, their links, and the loop that drives them on one thread.
///
/// A round is: a bounded batch of frames up from each link; due timers and ready tasks, within a budget; output to each
/// link; then sleep until the earliest deadline, a descriptor, or another thread. Mostly there is one host; a second
/// one, such as a gateway's, joins by [`Runtime::add_host`] and shares the loop.
///
/// ```
/// use inhost_base::Duration;
/// use inhost_link::memory;
/// use inhost_runtime::{Runtime, interface};
/// use inhost_stack::StackConfig;
///
/// let mut runtime = Runtime::new(StackConfig::default())?;
/// let (near, _far) = memory::pair(&memory::Config::default())?;
/// let config = interface("memory", &near).with_address("10.9.0.2/24".parse().unwrap());
/// let host = runtime.host().clone();
/// runtime.add_link(&host, config, Box::new(near)).unwrap();
/// let slept = runtime.run(async {
///     let before = host.now();
///     host.sleep(Duration::from_millis(1)).await;
///     host.now().since(before)
/// })?;
/// assert!(slept >= Duration::from_millis(1));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Runtime {
    reactor: Reactor,
    clock: Clock,
    alarm: Arc<Alarm>,
    hosts: Vec<Host>,
    /// One for each host.
    recorders: Vec<Option<Recorder>>,
    links: Vec<Link>,
    views: Links,
    batch: Batch,
    rounds: u64,
    /// From then on a round tells the hosts the time of day again.
    time_of_day_due: Instant,
    busy_poll: BusyPoll,
    link_listener: Option<LinkListener>,
    watched: Option<Watched>,
    /// What stands for the earliest deadline while [`Runtime::turn`] is what drives the hosts.
    timer: Option<Timer>,
    /// [`Runtime::turn`] said that its caller is to wait.
    waited: bool,
    /// Turns in which something happened and readiness was not asked for.
    unasked: u32,
}

/// The system's timer that makes the runtime's descriptor readable.
struct Timer {
    descriptor: OwnedFd,
    /// When it does. It is not set again for a later time: a loop that wakes too early costs less than a call of the system in
    /// each turn.
    at: Option<Instant>,
}

/// Ends the sleep of the loop that drives the hosts.
struct Alarm {
    descriptor: OwnedFd,
    /// Whom to wake instead of making the descriptor readable.
    waker: Mutex<Option<Waker>>,
}

impl Alarm {
    /// Called only for a loop that sleeps.
    fn ring(&self) {
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match waker {
            Some(waker) => waker.wake(),
            // A full counter is a bell that rings already.
            None => drop(rustix::io::write(&self.descriptor, &1u64.to_ne_bytes())),
        }
    }
}

/// What to do after [`Runtime::turn`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Call again at once, or after other work.
    Again,
    /// Call when the runtime's descriptor is readable.
    Wait,
}

/// Hears of links that die and come back.
type LinkListener = Box<dyn FnMut(&LinkChange)>;

/// Why a link was not added.
#[derive(Debug)]
#[non_exhaustive]
pub enum AddLinkError {
    /// The interface's configuration was refused.
    Configure(ConfigureError),
    /// The driver's descriptor cannot be watched.
    Watch(io::Error),
}

impl core::fmt::Display for AddLinkError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            AddLinkError::Configure(why) => why.fmt(f),
            AddLinkError::Watch(why) => write!(f, "the link's descriptor cannot be watched: {why}"),
        }
    }
}
impl core::error::Error for AddLinkError {}

/// How [`Runtime::shutdown`] went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shutdown {
    /// Connections that had to be aborted when the time was over.
    pub aborted: usize,
    /// How long it took.
    pub took: Duration,
}

impl Runtime {
    /// A runtime with one host, seeded with the system's entropy.
    pub fn new(config: StackConfig) -> io::Result<Runtime> {
        let descriptor = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let alarm = Arc::new(Alarm { descriptor, waker: Mutex::default() });
        let reactor = Reactor::new()?;
        reactor.watch_level(alarm.descriptor.as_fd(), ALARM)?;
        let mut runtime = Runtime {
            reactor,
            clock: Clock::start(),
            alarm,
            hosts: Vec::new(),
            recorders: Vec::new(),
            links: Vec::new(),
            views: Links::default(),
            batch: Batch::new(),
            rounds: 0,
            time_of_day_due: Instant::ZERO,
            busy_poll: BusyPoll::off(Instant::ZERO),
            link_listener: None,
            watched: None,
            timer: None,
            waited: false,
            unasked: 0,
        };
        runtime.add_host(config)?;
        Ok(runtime)
    }
    /// The first host.
    pub fn host(&self) -> &Host {
        &self.hosts[0]
    }
    /// The reactor, by which tasks wait for descriptors; a handle, to be cloned.
    pub fn handle(&self) -> &Reactor {
        &self.reactor
    }
    /// The clock by which the hosts live.
    pub fn clock(&self) -> Clock {
        self.clock
    }
    /// Rounds made so far: while nothing happens there are none.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }
    /// Busy polling: for this time after the last activity the runtime polls instead of sleeping, which saves the
    /// system's wake-up latency of some microseconds. It does so while what comes next has come within this time: after a
    /// longer wait it sleeps at once, until the next short one. It sleeps at once, too, while more than 1 Gbit/s is
    /// received. Default: zero. Cost: the processor is busy meanwhile; an idle runtime sleeps all the same.
    pub fn set_busy_poll(&mut self, limit: Duration) {
        self.busy_poll.set_limit(limit);
    }
    /// Shows `watch`, in the rounds that it chooses, for which layer the processor works: link drivers, IP, TCP, copies, sockets,
    /// applications, the loop itself and its sleep. Cost in other rounds: a call. In a loop of somebody else
    /// ([`Runtime::turn`]) the time between two turns is not part of a round.
    pub fn watch_layers(&mut self, watch: Rc<dyn LayerWatch>) {
        self.end_round();
        self.watched = Some(Watched::new(watch));
    }
    /// Adds another host to the loop.
    pub fn add_host(&mut self, config: StackConfig) -> io::Result<Host> {
        let now = self.clock.now();
        let host = Host::new(Stack::new(config, entropy()?, now), now);
        let alarm = self.alarm.clone();
        host.doorbell().set_waker(move || alarm.ring());
        let clock = self.clock;
        host.set_clock(move || clock.now());
        self.hosts.push(host.clone());
        self.time_of_day_due = now;
        self.recorders.push(None);
        let config = inhost_record::Config::default();
        self.record(&host, Some(config));
        Ok(host)
    }
    /// Gives a host another flight recorder, before it has links, or none. Without this call it has one of
    /// [`inhost_record::Config::default`]. The recorder is the host's event sink. The clock of `config` is set here.
    pub fn record(&mut self, host: &Host, config: Option<inhost_record::Config>) {
        let Some(place) = self.hosts.iter().position(|known| known.is(host)) else { return };
        let recorder = config.map(|mut config| {
            config.epoch_ns = self.clock.epoch_ns();
            Recorder::new(config)
        });
        host.set_sink(match &recorder {
            Some(recorder) => Box::new(recorder.clone()),
            None => Box::new(Ignore),
        });
        self.recorders[place] = recorder;
    }
    /// The flight recorder of a host.
    pub fn recorder(&self, host: &Host) -> Option<Recorder> {
        let place = self.hosts.iter().position(|known| known.is(host))?;
        self.recorders[place].clone()
    }
    /// Gives `host`, one of this runtime's, a link. [`interface`] makes a configuration that fits the driver.
    pub fn add_link(
        &mut self,
        host: &Host,
        config: InterfaceConfig,
        mut driver: Box<dyn Driver>,
    ) -> Result<LinkId, AddLinkError> {
        let token = self.links.len() as u32;
        if let Some(descriptor) = driver.descriptor() {
            self.reactor.watch_level(descriptor, token).map_err(AddLinkError::Watch)?;
        }
        let (clock, now) = (self.clock, self.clock.now());
        driver.set_clock(Box::new(move || clock.now()));
        let id = host.with_stack(|stack, _| stack.add_link(config, now)).map_err(AddLinkError::Configure)?;
        let link = Link::new(host.clone(), id, token, driver, self.recorder(host));
        self.views.add(&link);
        self.links.push(link);
        Ok(id)
    }
    /// Gives the device of one of `host`'s links to another process; what the host has begun on it goes on. See
    /// [`Driver::hand_over`].
    ///
    /// # Errors
    /// `NotFound` for a link that `host` has not, `Unsupported` for a kind that cannot be handed over, and those of the
    /// system.
    pub fn hand_over(&mut self, host: &Host, link: LinkId) -> io::Result<Handover> {
        let found = self.links.iter_mut().find(|known| known.is(host, link));
        let link = found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such link"))?;
        link.hand_over(&self.reactor)
    }
    /// Takes the device of a link back that [`Runtime::hand_over`] gave away, without waiting for the other process.
    ///
    /// # Errors
    /// `NotFound` for a link that `host` has not; what keeps the device away, which is tried again like a link that is
    /// down.
    pub fn take_back(&mut self, host: &Host, link: LinkId) -> io::Result<()> {
        let found = self.links.iter_mut().find(|known| known.is(host, link));
        let link = found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such link"))?;
        link.take_back(host.now(), &self.reactor)
    }
    /// A look at the links' drivers that tasks can keep.
    pub fn links(&self) -> Links {
        self.views.clone()
    }
    /// Calls `listener` when a link goes down or up, from within the round: it must not block. A link that is down is
    /// reopened automatically, after one second, then after two, four, eight and from then on every ten.
    pub fn on_link_change(&mut self, listener: impl FnMut(&LinkChange) + 'static) {
        self.link_listener = Some(Box::new(listener));
    }

    /// Runs until `until` is done and gives its result. Tasks stay where they are for the next call. Fails only when
    /// the system's waiting does.
    pub fn run<F: Future>(&mut self, until: F) -> io::Result<F::Output> {
        let mut until = pin!(until);
        let main = Arc::new(Main { woken: AtomicBool::new(true), bell: self.host().doorbell().clone() });
        let waker = Waker::from(main.clone());
        let _current = self.host().clone().enter();
        // Otherwise the system adds up to 50 microseconds to every sleep, to wake several sleepers together.
        let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
        loop {
            self.begin_round();
            self.work();
            if main.woken.swap(false, Ordering::SeqCst) {
                self.busy_poll.note_activity(self.clock.now(), 0);
                let context = &mut Context::from_waker(&waker);
                if let Poll::Ready(value) =
                    within(self.told(), Layer::Application, || until.as_mut().poll(context))
                {
                    // The future's last output is sent before anything else happens.
                    self.send();
                    self.end_round();
                    return Ok(value);
                }
            }
            self.send();
            self.sleep(main.woken.load(Ordering::SeqCst).then_some(Duration::ZERO))?;
        }
    }

    /// One round of a loop that is not this runtime's own; it never waits. Between two calls wait until the descriptor
    /// ([`AsFd`]) is readable, which stands for frames, descriptors of tasks, other threads and the next deadline.
    ///
    /// ```
    /// use inhost_runtime::{Runtime, Turn};
    /// use inhost_stack::StackConfig;
    /// use inhost_base::Duration;
    /// use rustix::event::{PollFd, PollFlags, poll};
    ///
    /// let mut runtime = Runtime::new(StackConfig::default())?;
    /// let host = runtime.host().clone();
    /// let task = host.spawn({ let host = host.clone(); async move { host.sleep(Duration::from_millis(5)).await } });
    /// while !task.is_finished() {
    ///     if runtime.turn()? == Turn::Wait {
    ///         poll(&mut [PollFd::new(&runtime, PollFlags::IN)], None)?;
    ///     }
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn turn(&mut self) -> io::Result<Turn> {
        self.hosts.iter().for_each(|host| host.doorbell().end_sleep());
        let _current = self.host().clone().enter();
        if std::mem::take(&mut self.waited) && !self.is_busy() {
            self.take_events(Some(Duration::ZERO))?;
        }
        self.begin_round();
        self.send();
        let was_active = self.work();
        // The loop's own tasks may have been woken. They read and answer before anything is sent, as tasks of the host do,
        // so that one segment acknowledges, opens the window and answers.
        self.unasked = if was_active { (self.unasked + 1) % ROUNDS_A_WAIT } else { 0 };
        if self.unasked > 0 {
            self.end_round();
            return Ok(Turn::Again);
        }
        self.send();
        self.end_round();
        if self.looks_again() {
            return Ok(Turn::Again);
        }
        let events = self.take_events(Some(Duration::ZERO))?;
        let sleeping = self.hosts.iter().all(|host| host.doorbell().begin_sleep());
        if events > 0 || !sleeping || self.is_busy() {
            return Ok(Turn::Again);
        }
        match self.until_deadline() {
            Some(Duration::ZERO) => return Ok(Turn::Again),
            Some(after) => self.set_timer(after)?,
            None => {}
        }
        self.waited = true;
        self.busy_poll.note_sleep();
        Ok(Turn::Wait)
    }
    /// Has other threads wake `waker` from now on, and not the descriptor, while a loop waits after [`Runtime::turn`]. The
    /// loop's own thread is then woken at once, even if the one that watches descriptors for it waits for the host.
    pub fn wake_by(&self, waker: &Waker) {
        let mut kept = self.alarm.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            *kept = Some(waker.clone());
        }
    }
    /// Has the descriptor be readable after this time, at the latest.
    fn set_timer(&mut self, after: Duration) -> io::Result<()> {
        let timer = match &mut self.timer {
            Some(timer) => timer,
            None => {
                let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
                let descriptor = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
                self.reactor.watch_level(descriptor.as_fd(), TIMER)?;
                self.timer.insert(Timer { descriptor, at: None })
            }
        };
        let at = self.clock.now() + after;
        if timer.at.is_some_and(|set| set <= at) {
            return Ok(());
        }
        timer.at = Some(at);
        let it_value = Timespec {
            tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: (after.as_nanos() % 1_000_000_000) as _,
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        rustix::time::timerfd_settime(&timer.descriptor, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    /// Goes down in good order: hosts stop listening and tell their tasks ([`Host::draining`]), connections may
    /// close until `limit` is over, the others are aborted, and every task is dropped.
    pub fn shutdown(&mut self, limit: Duration) -> io::Result<Shutdown> {
        let began = self.clock.now();
        let until = began + limit;
        self.hosts.iter().for_each(Host::drain);
        while self.clock.now() < until && self.open_connections() > 0 {
            self.begin_round();
            self.work();
            self.send();
            // Polled from time to time, because the end of a connection wakes no task.
            self.sleep(Some(Duration::from_millis(5)))?;
        }
        let mut aborted = 0;
        for host in &self.hosts {
            aborted += host.abort_all();
        }
        self.hosts.iter().for_each(Host::stop);
        // Resets and last acknowledgments leave in a round or two.
        for _ in 0..3 {
            self.begin_round();
            self.work();
            self.send();
        }
        Ok(Shutdown { aborted, took: self.clock.now().since(began) })
    }

    /// Connections of all hosts that are neither closed nor in TIME-WAIT.
    pub fn open_connections(&self) -> usize {
        self.hosts.iter().map(Host::open_connections).sum()
    }

    /// Whom to tell the layers of this round.
    fn told(&self) -> Option<&dyn LayerWatch> {
        self.watched.as_ref().and_then(Watched::told)
    }
    fn end_round(&mut self) {
        if let Some(watched) = &mut self.watched {
            watched.end(&self.hosts);
        }
    }
    fn enter_phase(&self, phase: Phase) {
        if let Some(watch) = self.told() {
            watch.enters_phase(phase);
        }
    }

    fn begin_round(&mut self) {
        self.rounds += 1;
        self.end_round();
        if let Some(watched) = &mut self.watched {
            watched.begin(&self.hosts);
        }
    }
    /// Frames up, timers, tasks. Whether there were any.
    fn work(&mut self) -> bool {
        let now = self.clock.now();
        if self.time_of_day_due <= now {
            self.tell_time_of_day(now);
        }
        let told = self.watched.as_ref().and_then(Watched::told);
        let mut received_bytes = 0;
        for link in &mut self.links {
            if link.advance(now, &self.reactor) {
                received_bytes += link.receive(&mut self.batch, now, &self.reactor, told);
            }
            if let Some(change) = link.take_change()
                && let Some(listener) = &mut self.link_listener
            {
                listener(&change);
            }
        }
        self.enter_phase(Phase::Run);
        let mut active = received_bytes > 0;
        for host in &self.hosts {
            active |= host.run(now, POLLS_A_ROUND) > 0;
        }
        if active {
            self.busy_poll.note_activity(now, received_bytes);
        }
        active
    }

    /// Tells the hosts the system's time of day. Between two times a machine may have slept, or its calendar may have been
    /// set.
    fn tell_time_of_day(&mut self, now: Instant) {
        self.time_of_day_due = now + TIME_OF_DAY_EVERY;
        let since_midnight_ms = Some(self.clock.time_of_day_ms());
        for host in &self.hosts {
            host.with_stack(|stack, _| stack.ip_mut().set_time_of_day(now, since_midnight_ms));
        }
    }

    /// Frames down.
    fn send(&mut self) {
        self.enter_phase(Phase::Send);
        let told = self.watched.as_ref().and_then(Watched::told);
        let now = self.clock.now();
        for link in &mut self.links {
            link.send(now, &self.reactor, told);
        }
    }

    /// Sleeps until something is to be done, at most for `limit`.
    fn sleep(&mut self, limit: Option<Duration>) -> io::Result<()> {
        if self.looks_again() {
            return Ok(());
        }
        let sleeping = self.hosts.iter().all(|host| host.doorbell().begin_sleep());
        let timeout = match sleeping && !self.is_busy() {
            true => self.until_deadline().into_iter().chain(limit).min(),
            false => Some(Duration::ZERO),
        };
        if timeout != Some(Duration::ZERO) {
            self.busy_poll.note_sleep();
        }
        self.enter_phase(Phase::Wait);
        let waited = self.wait(timeout);
        self.hosts.iter().for_each(|host| host.doorbell().end_sleep());
        waited.map(drop)
    }
    /// [`Runtime::take_events`], told as idle.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        if let Some(watch) = self.told() {
            watch.enters(Layer::Idle);
        }
        let waited = self.take_events(timeout);
        if let Some(watch) = self.told() {
            watch.leaves();
        }
        waited
    }
    /// Waits for the system's events, at most for `timeout`, and says how many there were.
    fn take_events(&mut self, timeout: Option<Duration>) -> io::Result<usize> {
        let (links, alarm, timer) = (&mut self.links, &self.alarm, &mut self.timer);
        self.reactor.wait_with_levels(timeout, |ready| match ready.token {
            ALARM => drop(rustix::io::read(&alarm.descriptor, &mut [0; 8])),
            TIMER => {
                if let Some(timer) = timer {
                    timer.at = None;
                    let _ = rustix::io::read(&timer.descriptor, &mut [0; 8]);
                }
            }
            token => {
                if let Some(link) = links.get_mut(token as usize) {
                    link.look_again(ready.readable);
                }
            }
        })
    }

    /// Whether the next round comes at once, without a look at readiness: while the runtime polls its links.
    fn looks_again(&mut self) -> bool {
        if !self.busy_poll.goes_on(|| self.clock.now()) {
            return false;
        }
        self.links.iter_mut().for_each(|link| link.look_again(true));
        !self.busy_poll.spins().is_multiple_of(ROUNDS_A_WAIT)
    }
    fn is_busy(&self) -> bool {
        self.hosts.iter().any(Host::has_runnable) || self.links.iter().any(Link::is_busy)
    }

    fn until_deadline(&self) -> Option<Duration> {
        let now = self.clock.now();
        let hosts = self.hosts.iter().filter_map(Host::deadline);
        let drivers = self.links.iter().filter_map(|link| link.deadline(now));
        hosts.chain(drivers).min().map(|deadline| deadline.since(now))
    }
}

impl AsFd for Runtime {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reactor.as_fd()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // Tasks hold their host; without this both would live on.
        self.hosts.iter().for_each(Host::stop);
        self.views.clear();
    }
}

/// Wakes the future that [`Runtime::run`] was given.
struct Main {
    woken: AtomicBool,
    bell: Doorbell,
}
impl Wake for Main {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        self.bell.ring();
    }
}

/// `config` with what `spec` says of addresses, gateways and offloads instead of what the kind has by itself.
pub fn with_spec(mut config: InterfaceConfig, spec: &Spec) -> InterfaceConfig {
    if !spec.addresses.is_empty() {
        config.addresses.clone_from(&spec.addresses);
    }
    if !spec.gateways.is_empty() {
        config.gateways.clone_from(&spec.gateways);
    }
    config.gso = spec.gso;
    config.gro = spec.gro;
    config
}

/// A configuration for a link on `driver`: its medium and MTU, and the defaults of its medium.
pub fn interface(name: &str, driver: &dyn Driver) -> InterfaceConfig {
    let medium = match driver.frame_format() {
        inhost_link::FrameFormat::Ethernet(address) => Medium::Ethernet(address),
        inhost_link::FrameFormat::Ip => Medium::Ip,
    };
    let mut config = InterfaceConfig::new(name, medium);
    config.mtu_bytes = u16::try_from(driver.mtu_bytes()).unwrap_or(u16::MAX);
    config
}
