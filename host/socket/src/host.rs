//! The `Host`: a stack with the tasks that use it, and the calls of its driver.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use inhost_base::{Instant, LinkId};
use inhost_buf::{Batch, Device};
use inhost_event::{Ignore, Layer, Mask, Sink, TcpState};
use inhost_stack::{
    AnySocketId, Readiness, SocketId, SocketKind, Stack, TcpSockets, Transmitted, UdpSockets,
};

use crate::doorbell::Doorbell;
use crate::executor::Executor;
use crate::memory::Allowance;
use crate::observer::TaskObserver;
use crate::requests::{Requests, serve};
use crate::resolve::Resolve;
use crate::send_buffer::SendBuffer;
use crate::timers::Timers;
use crate::waiters::{Wait, Waiters, wake_all};

/// Sockets whose news is taken from the stack at a time.
const READY_A_LOOK: usize = 4096;
/// Wakers for which memory is kept from one look to the next.
const MOST_WOKEN_KEPT: usize = 1024;
/// Bytes that [`Host::with_scratch`] lends.
pub(crate) const SCRATCH_BYTES: usize = 65_535;
/// Polls in one round of [`Host::run_alone`].
const POLLS_ALONE: usize = 256;

/// A host: one shard, seen by the tasks that live on it. Clones are the same host. It stays on its thread.
///
/// # For tasks
///
/// Sockets come from [`connect`](Host::connect), [`listen`](Host::listen), [`udp`](Host::udp) and [`echo`](Host::echo);
/// time from [`now`](Host::now) and [`sleep`](Host::sleep); other tasks from [`spawn`](Host::spawn). A task never
/// blocks: it awaits.
///
/// # For the driver of a host
///
/// One round is, in this order: [`receive`](Host::receive) a bounded batch from each link; one
/// [`run`](Host::run), in which due timers fire and ready tasks are polled within a budget; then
/// [`transmit`](Host::transmit) to each link. Between rounds the driver may sleep until [`deadline`](Host::deadline),
/// unless [`has_runnable`](Host::has_runnable); [`Host::doorbell`] ends its sleep. Every call may be spurious. Tasks
/// are woken only after the stack's call has returned, so a task may call anything of the host. At the end
/// [`stop`](Host::stop) drops the tasks; without it they and the host keep each other alive.
///
/// # Example
///
/// ```
/// use inhost_base::{Duration, Instant};
/// use inhost_socket::Host;
/// use inhost_stack::{Stack, StackConfig};
///
/// let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
/// let task = host.spawn({
///     let host = host.clone();
///     async move {
///         host.sleep(Duration::from_secs(5)).await;
///         host.now()
///     }
/// });
/// // The driver supplies the time: five seconds pass at once.
/// host.run(Instant::ZERO, 10);
/// host.run(host.deadline().unwrap(), 10);
/// assert_eq!(host.run_alone(task), Some(Instant::from_millis(5_000)));
/// host.stop();
/// ```
#[derive(Clone)]
pub struct Host {
    inner: Rc<Inner>,
}

/// What another thread has a host do.
pub(crate) type Request = Box<dyn FnOnce(&Host) + Send>;

pub(crate) struct Inner {
    core: RefCell<Core>,
    waiters: RefCell<Waiters>,
    timers: RefCell<Timers>,
    executor: Executor,
    bell: Doorbell,
    now: Cell<Instant>,
    /// Whether the sink is told the layers.
    marks: Cell<bool>,
    /// The number of calls of [`Host::run`], and whether one is at work.
    round: Cell<u64>,
    in_round: Cell<bool>,
    /// The driver's clock, for calls between two rounds.
    clock: OnceCell<Box<dyn Fn() -> Instant>>,
    /// Sockets whose handles were dropped while the stack was borrowed.
    orphans: RefCell<Vec<SocketId>>,
    draining: Cell<bool>,
    /// The stack's generation of paths when those who wait for another were last woken.
    paths: Cell<u32>,
    remote: OnceCell<(Arc<Requests<Request>>, async_channel::Receiver<Request>)>,
    remote_memory: OnceCell<Arc<Allowance>>,
    /// Where bytes lie while they are moved to other threads and processes; nothing stays in it.
    scratch: RefCell<Vec<u8>>,
    /// Where wakers lie until they are woken; nothing stays in it.
    woken: Cell<Vec<Waker>>,
    /// Of connections whose room to send is reckoned as Linux does.
    send_buffers: RefCell<BTreeMap<SocketId, SendBuffer>>,
    resolver: RefCell<Option<Rc<dyn Resolve>>>,
}

pub(crate) struct Core {
    pub(crate) stack: Stack,
    pub(crate) sink: Box<dyn Sink>,
    pub(crate) now: Instant,
}

/// The calls on connections and listeners, in a round.
pub(crate) fn tcp(core: &mut Core) -> TcpSockets<'_> {
    core.stack.tcp(core.now, &mut *core.sink)
}
/// The calls on UDP sockets, in a round.
pub(crate) fn udp(core: &mut Core) -> UdpSockets<'_> {
    core.stack.udp(core.now, &mut *core.sink)
}

impl Host {
    /// A host on `stack`, at the time `now` on the clock of its driver. Events go nowhere; see [`Host::set_sink`].
    pub fn new(stack: Stack, now: Instant) -> Host {
        let bell = Doorbell::new();
        Host {
            inner: Rc::new(Inner {
                core: RefCell::new(Core { stack, sink: Box::new(Ignore), now }),
                waiters: RefCell::default(),
                timers: RefCell::default(),
                executor: Executor::new(bell.clone()),
                bell,
                now: Cell::new(now),
                marks: Cell::new(false),
                round: Cell::new(0),
                in_round: Cell::new(false),
                clock: OnceCell::new(),
                orphans: RefCell::default(),
                draining: Cell::new(false),
                paths: Cell::new(0),
                remote: OnceCell::new(),
                remote_memory: OnceCell::new(),
                scratch: RefCell::default(),
                woken: Cell::default(),
                send_buffers: RefCell::default(),
                resolver: RefCell::default(),
            }),
        }
    }
    pub(crate) fn from_inner(inner: Rc<Inner>) -> Host {
        Host { inner }
    }
    pub(crate) fn inner(&self) -> &Rc<Inner> {
        &self.inner
    }

    /// The time of the current round.
    pub fn now(&self) -> Instant {
        self.inner.now.get()
    }
    /// Carries out the requests of other threads that wait.
    pub(crate) fn serve_remote(&self) {
        if let Some((_, incoming)) = self.inner.remote.get() {
            while let Ok(request) = incoming.try_recv() {
                request(self);
            }
        }
    }
    /// The requests of other threads. The first call starts the task that serves them.
    pub(crate) fn requests(&self) -> &Arc<Requests<Request>> {
        &self
            .inner
            .remote
            .get_or_init(|| {
                let (requests, incoming) = Requests::open();
                let host = self.clone();
                self.spawn(serve(incoming.clone(), move |request: Request| request(&host))).detach();
                self.take_place(requests.place());
                (requests, incoming)
            })
            .0
    }
}

/// Calls of the driver of a host.
impl Host {
    /// Sends events to `sink` from now on; gives the one that had them before. A sink must not use the host. Whether it
    /// wants [`Mask::LAYER`] is asked here.
    pub fn set_sink(&self, sink: Box<dyn Sink>) -> Box<dyn Sink> {
        let told = sink.mask().intersects(Mask::LAYER);
        self.inner.marks.set(told);
        self.core(|core| {
            core.stack.tell_layers(told);
            std::mem::replace(&mut core.sink, sink)
        })
    }
    /// Gives the host its driver's clock, so that streams for other threads ([`Host::remote`]) that stay on this one reach
    /// their connection without a detour between two rounds, too. Only the first call counts; false for a later one.
    pub fn set_clock(&self, clock: impl Fn() -> Instant + 'static) -> bool {
        self.inner.clock.set(Box::new(clock)).is_ok()
    }
    /// Shows tasks that are spawned from now on to `observer`. Only the first call counts; false for a later one.
    pub fn observe_tasks(&self, observer: Rc<dyn TaskObserver>) -> bool {
        self.inner.executor.observe(observer)
    }
    /// Has `resolver` look up names from now on.
    ///
    /// ```
    /// use inhost_base::{Instant, IpAddr, Ipv4Addr};
    /// use inhost_socket::{Host, AddressFuture, Resolve};
    /// use inhost_stack::{Stack, StackConfig};
    ///
    /// struct Table;
    /// impl Resolve for Table {
    ///     fn resolve<'a>(&'a self, name: &'a str) -> AddressFuture<'a> {
    ///         Box::pin(async move {
    ///             match name {
    ///                 "here" => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
    ///                 _ => Err(std::io::ErrorKind::NotFound.into()),
    ///             }
    ///         })
    ///     }
    /// }
    /// let host = Host::new(Stack::new(StackConfig::default(), [7; 32], Instant::ZERO), Instant::ZERO);
    /// host.set_resolver(Table);
    /// let found = host.run_alone(host.resolve("here")).unwrap();
    /// assert_eq!(found.unwrap(), [IpAddr::from(Ipv4Addr::LOCALHOST)]);
    /// ```
    pub fn set_resolver(&self, resolver: impl Resolve + 'static) {
        *self.inner.resolver.borrow_mut() = Some(Rc::new(resolver));
    }
    /// Takes frames that came in on `link`.
    pub fn receive(&self, link: LinkId, batch: &mut Batch, now: Instant) {
        self.set_now(now);
        self.within(Layer::Tcp, || {
            self.core(|core| core.stack.receive(link, batch, core.now, &mut *core.sink));
        });
    }
    /// Runs due timers and polls ready tasks, at most `budget` polls. Returns the number of polls.
    pub fn run(&self, now: Instant, budget: usize) -> usize {
        let _current = self.enter();
        self.set_now(now);
        if let Some(allowance) = self.inner.remote_memory.get() {
            self.core(|core| allowance.count_in(core.stack.pool()));
        }
        self.inner.round.update(|round| round + 1);
        self.inner.in_round.set(true);
        self.within(Layer::Timers, || {
            self.core(|core| {
                if core.stack.deadline().is_some_and(|due| due <= core.now) {
                    core.stack.timeout(core.now, &mut *core.sink);
                }
            });
            let due = self.inner.timers.borrow_mut().due(self.now());
            wake_all(due);
        });
        self.within(Layer::Sockets, || {
            self.wake_paths();
            self.wake_ready();
        });
        let polls = self.within(Layer::Application, || self.inner.executor.run(budget));
        self.within(Layer::Sockets, || {
            self.close_orphans();
            self.wake_paths();
            // Tasks that became ready meanwhile run in the next round.
            self.wake_ready();
        });
        self.inner.in_round.set(false);
        polls
    }
    /// Sends what is due on `link`, at most `budget_frames`.
    pub fn transmit(
        &self,
        link: LinkId,
        now: Instant,
        budget_frames: usize,
        device: &mut dyn Device,
    ) -> Transmitted {
        self.set_now(now);
        let sent = self.within(Layer::Tcp, || {
            self.core(|core| core.stack.transmit(link, core.now, budget_frames, device, &mut *core.sink))
        });
        self.within(Layer::Sockets, || self.wake_ready());
        sent
    }
    /// Whether [`Host::transmit`] would find something for `link`.
    pub fn wants_transmit(&self, link: LinkId) -> bool {
        self.core(|core| core.stack.wants_transmit(link))
    }
    /// When the host wants to be run again; `None` when it waits for frames or other threads only.
    pub fn deadline(&self) -> Option<Instant> {
        let stack = self.core(|core| core.stack.deadline());
        let timers = self.inner.timers.borrow().deadline();
        stack.into_iter().chain(timers).min()
    }
    /// Whether a task is runnable now, or another thread rang.
    pub fn has_runnable(&self) -> bool {
        self.inner.executor.has_runnable() || self.core(|core| core.stack.has_ready())
    }
    /// The doorbell, which ends the sleep of the driver's thread.
    pub fn doorbell(&self) -> &Doorbell {
        &self.inner.bell
    }
    /// Drives a host that has no links until `until` is done: loopback traffic is delivered, and when nothing is ready,
    /// the time jumps to the next deadline. `None` when nothing will ever happen again. For examples and tests; the
    /// round of a host with links is the caller's.
    pub fn run_alone<F: Future>(&self, until: F) -> Option<F::Output> {
        let _current = self.enter();
        let mut until = pin!(until);
        loop {
            let waker = self.inner.bell.waker();
            if let Poll::Ready(value) = until.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Some(value);
            }
            if !self.has_runnable() {
                self.set_now(self.deadline()?);
            }
            self.run(self.now(), POLLS_ALONE);
        }
    }
    /// Begins to go down: listeners are closed, [`Listener::accept`](crate::Listener::accept) says [`Stopped`](crate::AcceptError::Stopped)
    /// from now on, nothing new is opened, and [`Host::draining`] wakes. Connections live on.
    pub fn drain(&self) {
        self.inner.draining.set(true);
        self.core(|core| {
            let listeners: Vec<SocketId> = core
                .stack
                .instruments()
                .socket_states()
                .filter(|&(_, kind, _)| kind == SocketKind::Listener)
                .map(|(socket, ..)| socket)
                .collect();
            for listener in listeners {
                // Its handle finds nothing left to close.
                let _ = core.stack.close(listener, core.now, &mut *core.sink);
            }
        });
        let mut woken = Vec::new();
        self.inner.waiters.borrow_mut().take_all(&mut woken);
        wake_all(woken);
    }
    /// Connections that are neither closed nor in TIME-WAIT.
    pub fn open_connections(&self) -> usize {
        self.core(|core| open(core).count())
    }
    /// Resets every connection that is neither closed nor in TIME-WAIT, and says how many there were.
    pub fn abort_all(&self) -> usize {
        let open: Vec<_> = self.core(|core| open(core).collect());
        for &socket in &open {
            let _ = self.core(|core| match core.stack.typed(socket) {
                Some(AnySocketId::Tcp(id)) => tcp(core).abort(id),
                _ => core.stack.close(socket, core.now, &mut *core.sink),
            });
            self.forget(socket);
        }
        open.len()
    }
    /// Resets one connection; the holder of its stream is told. False when there is no such connection.
    pub fn abort(&self, socket: SocketId) -> bool {
        let done = self.core(|core| match core.stack.typed(socket) {
            Some(AnySocketId::Tcp(id)) => tcp(core).abort(id).is_ok(),
            _ => false,
        });
        if done {
            self.forget(socket);
        }
        done
    }
    /// Drops every task, and with them their sockets: connections close as they do when a handle is dropped.
    pub fn stop(&self) {
        let _current = self.enter();
        self.drain();
        self.inner.executor.stop();
        // It may hold its host, as tasks do.
        drop(self.inner.resolver.take());
        self.close_orphans();
    }
    /// Whether `other` is this host.
    pub fn is(&self, other: &Host) -> bool {
        Rc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Host {
    /// Works on the stack; nothing may be woken or dropped in there.
    pub(crate) fn core<R>(&self, work: impl FnOnce(&mut Core) -> R) -> R {
        work(&mut self.inner.core.borrow_mut())
    }
    /// Does `work` for `layer`, and tells the sink if it wants to know.
    pub(crate) fn within<R>(&self, layer: Layer, work: impl FnOnce() -> R) -> R {
        let marks = self.inner.marks.get();
        if marks {
            self.core(|core| core.sink.enters(layer));
        }
        let result = work();
        if marks {
            self.core(|core| core.sink.leaves());
        }
        result
    }
    /// Memory of remote sockets' buffers.
    pub(crate) fn remote_memory(&self) -> &Arc<Allowance> {
        let limit_bytes = || self.core(|core| core.stack.memory().limit_bytes());
        self.inner.remote_memory.get_or_init(|| Allowance::new(limit_bytes()))
    }
    /// Lends a place for bytes that are being moved, as long as the longest datagram; nothing stays in it.
    pub fn with_scratch<R>(&self, work: impl FnOnce(&mut [u8]) -> R) -> R {
        // A nested borrow gets a buffer of its own.
        match self.inner.scratch.try_borrow_mut() {
            Ok(mut scratch) => {
                scratch.resize(SCRATCH_BYTES, 0);
                work(&mut scratch)
            }
            Err(_) => work(&mut vec![0; SCRATCH_BYTES]),
        }
    }
    /// Whether the host is going down: [`Host::drain`] was called.
    pub fn is_draining(&self) -> bool {
        self.inner.draining.get()
    }
    pub(crate) fn resolver(&self) -> Option<Rc<dyn Resolve>> {
        self.inner.resolver.borrow().clone()
    }
    #[inline(always)]
    pub(crate) fn executor(&self) -> &Executor {
        &self.inner.executor
    }
    /// The timers of tasks.
    pub(crate) fn timers(&self) -> &RefCell<Timers> {
        &self.inner.timers
    }
    /// The tasks that wait for something of the host.
    pub(crate) fn waiters(&self) -> &RefCell<Waiters> {
        &self.inner.waiters
    }
    /// The number of rounds so far, and whether one is at work.
    pub(crate) fn rounds(&self) -> (u64, bool) {
        (self.inner.round.get(), self.inner.in_round.get())
    }
    /// Waits for `wait` of `socket`, after an attempt that said not now.
    pub(crate) fn register(&self, socket: impl Into<SocketId>, wait: Wait, context: &Context<'_>) {
        let oldest = self.inner.waiters.borrow_mut().register(socket.into(), wait, context);
        wake_all(oldest);
    }
    /// The connections whose room to send is reckoned as Linux does.
    pub(crate) fn send_buffers(&self) -> &RefCell<BTreeMap<SocketId, SendBuffer>> {
        &self.inner.send_buffers
    }
    /// Wakes the writers of send buffers that have room again.
    fn wake_writers(&self) {
        if self.inner.send_buffers.borrow().is_empty() {
            return;
        }
        let mut woken = Vec::new();
        for (&socket, buffer) in
            self.inner.send_buffers.borrow_mut().iter_mut().filter(|(_, b)| b.is_wanted())
        {
            let queue = self.core(|core| {
                core.stack.instruments().connection(socket).map(|connection| connection.sender().queue())
            });
            if queue.is_none_or(|queue| buffer.look(&queue, usize::MAX, self.now())) {
                self.inner.waiters.borrow_mut().take(socket, Readiness::WRITABLE, &mut woken);
            }
        }
        wake_all(woken);
    }
    /// Wakes the tasks that wait for a closed socket, so that they see the error.
    pub(crate) fn forget(&self, socket: SocketId) {
        self.inner.send_buffers.borrow_mut().remove(&socket);
        let mut woken = Vec::new();
        self.inner.waiters.borrow_mut().forget(socket, &mut woken);
        wake_all(woken);
    }
    /// The handle of `socket` is gone.
    pub(crate) fn close(&self, socket: impl Into<SocketId>) {
        let socket = socket.into();
        match self.inner.core.try_borrow_mut() {
            Ok(mut core) => {
                let core = &mut *core;
                // A socket that was aborted is gone already.
                let _ = core.stack.close(socket, core.now, &mut *core.sink);
            }
            Err(_) => self.inner.orphans.borrow_mut().push(socket),
        }
        self.forget(socket);
    }
    /// Whether the time is known: in a round it is the round's, and between two the clock's, if there is one.
    pub(crate) fn knows_time(&self) -> bool {
        if self.inner.in_round.get() {
            return true;
        }
        let Some(clock) = self.inner.clock.get() else { return false };
        self.set_now(clock());
        true
    }
    /// Something was done that a round is to follow.
    pub(crate) fn wants_round(&self) {
        if !self.inner.in_round.get() {
            self.inner.bell.ring();
        }
    }
    fn set_now(&self, now: Instant) {
        // Time does not go back, whatever the driver's clock does.
        let now = now.max(self.now());
        self.inner.now.set(now);
        self.core(|core| core.now = now);
    }
    fn close_orphans(&self) {
        let orphans = std::mem::take(&mut *self.inner.orphans.borrow_mut());
        for socket in orphans {
            let _ = self.core(|core| core.stack.close(socket, core.now, &mut *core.sink));
        }
    }
    /// Wakes the tasks of sockets that have news.
    fn wake_ready(&self) {
        self.wake_writers();
        let mut woken = self.inner.woken.take();
        {
            let mut waiters = self.inner.waiters.borrow_mut();
            self.core(|core| {
                for _ in 0..READY_A_LOOK {
                    let Some((socket, readiness)) = core.stack.ready() else { break };
                    waiters.take(socket, readiness, &mut woken);
                }
            });
        }
        woken.drain(..).for_each(Waker::wake);
        if woken.capacity() <= MOST_WOKEN_KEPT {
            self.inner.woken.set(woken);
        }
    }
    /// Wakes those who wait for other paths, if they are.
    fn wake_paths(&self) {
        let generation = self.core(|core| core.stack.ip().paths().generation());
        if self.inner.paths.replace(generation) != generation {
            let mut woken = Vec::new();
            self.inner.waiters.borrow_mut().of_paths().take(&mut woken);
            wake_all(woken);
        }
    }
    pub(crate) fn readiness(&self, socket: impl Into<SocketId>) -> Readiness {
        self.core(|core| core.stack.readiness(socket))
    }
}

fn open(core: &Core) -> impl Iterator<Item = SocketId> + '_ {
    core.stack
        .instruments()
        .socket_states()
        .filter(|(_, _, state)| !matches!(state, None | Some(TcpState::TimeWait | TcpState::Closed)))
        .map(|(socket, ..)| socket)
}

impl core::fmt::Debug for Host {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Host").field("now", &self.now()).finish_non_exhaustive()
    }
}
