//! The `Host`: a stack with the tasks that use it, and the calls of its driver.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use inhost_base::{Duration, Endpoint, Instant, LinkId};
use inhost_buf::{Batch, Device};
use inhost_event::{Ignore, Layer, Mask, Sink, TcpState};
use inhost_stack::{
    self as stack, AnySocketId, ConnectOptions, ListenOptions, ProbeMethod, Readiness, SendHow, SocketError,
    SocketId, SocketKind, SocketOption, Stack, TcpSocketId, Transmitted, UdpOptions,
};

use crate::doorbell::Doorbell;
use crate::error::{ConnectError, ListenError};
use crate::executor::{Executor, Task};
use crate::future::{Either, race};
use crate::observer::TaskObserver;
use crate::remote::memory::Allowance;
use crate::remote::{self, Incoming, RemoteHost};
use crate::resolve::Resolve;
use crate::send_buffer::{SendBuffer, UNCOUNTED_BYTES};
use crate::timers::{TimerKey, Timers};
use crate::waiters::{Wait, Waiters, WakerSet};
use crate::{EchoSocket, Listener, ProbeSocket, Stream, UdpSocket};

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
    drained: RefCell<WakerSet>,
    /// The stack's generation of paths when those who wait for another were last woken, and they.
    paths: Cell<u32>,
    paths_changed: RefCell<WakerSet>,
    remote: OnceCell<(RemoteHost, Incoming)>,
    remote_memory: OnceCell<Arc<Allowance>>,
    /// Where bytes lie while they are moved to other threads and processes; nothing stays in it.
    scratch: RefCell<Vec<u8>>,
    /// Where wakers lie until they are woken; nothing stays in it.
    woken: Cell<Vec<Waker>>,
    /// Of connections whose room to send is reckoned as Linux does.
    send_buffers: RefCell<BTreeMap<SocketId, SendBuffer>>,
    pub(crate) resolver: RefCell<Option<Rc<dyn Resolve>>>,
}

pub(crate) struct Core {
    pub(crate) stack: Stack,
    pub(crate) sink: Box<dyn Sink>,
    pub(crate) now: Instant,
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
                drained: RefCell::default(),
                paths: Cell::new(0),
                paths_changed: RefCell::default(),
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
    /// Waits for a length of time. It counts from now in a task, else from the next round: between two rounds the host
    /// does not know the time.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        let from_round = (!self.inner.in_round.get()).then_some((self.inner.round.get(), duration));
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
    /// As [`Host::spawn`], for tasks of a program that was given elsewhere: a [`TaskObserver`] is told of `place`.
    pub fn spawn_at<T: 'static>(
        &self,
        place: &'static Location<'static>,
        future: impl Future<Output = T> + 'static,
    ) -> Task<T> {
        self.inner.executor.spawn(place, future)
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
    /// The handle by which other threads reach this host. The first call starts the task that serves them.
    pub fn remote(&self) -> RemoteHost {
        self.inner.remote.get_or_init(|| remote::start(self)).0.clone()
    }
    /// Carries out the requests of other threads that wait.
    pub(crate) fn serve_remote(&self) {
        if let Some((_, incoming)) = self.inner.remote.get() {
            incoming.serve(self);
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
            let oldest = self.inner.paths_changed.borrow_mut().register(context);
            wake_all(oldest);
            Poll::Pending
        })
        .await
    }
    /// Whether the host is going down: [`Host::drain`] was called.
    pub fn is_draining(&self) -> bool {
        self.inner.draining.get()
    }
    /// Waits until the host goes down, so that a service can say good-bye.
    pub async fn draining(&self) {
        poll_fn(|context| {
            if self.is_draining() {
                return Poll::Ready(());
            }
            let oldest = self.inner.drained.borrow_mut().register(context);
            wake_all(oldest);
            Poll::Pending
        })
        .await;
    }
}

/// Calls of the driver of a host.
impl Host {
    /// Sends events to `sink` from now on; gives the one that had them before. A sink must not use the host. Whether it
    /// wants [`Mask::LAYER`] is asked here.
    pub fn set_sink(&self, sink: Box<dyn Sink>) -> Box<dyn Sink> {
        let told = sink.mask().wants(Mask::LAYER);
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
    /// Lends the timers of tasks, and who waits for each socket.
    pub(crate) fn with_waits<R>(&self, read: impl FnOnce(&Timers, &Waiters) -> R) -> R {
        read(&self.inner.timers.borrow(), &self.inner.waiters.borrow())
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
    /// Begins to go down: listeners are closed, [`Listener::accept`] says [`Stopped`](crate::AcceptError::Stopped)
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
        self.inner.drained.borrow_mut().take(&mut woken);
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
                Some(AnySocketId::Tcp(id)) => core.stack.tcp().abort(id, core.now, &mut *core.sink),
                _ => core.stack.close(socket, core.now, &mut *core.sink),
            });
            self.forget(socket);
        }
        open.len()
    }
    /// Resets one connection; the holder of its stream is told. False when there is no such connection.
    pub fn abort(&self, socket: SocketId) -> bool {
        let done = self.core(|core| match core.stack.typed(socket) {
            Some(AnySocketId::Tcp(id)) => core.stack.tcp().abort(id, core.now, &mut *core.sink).is_ok(),
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
    /// A task uses a socket or a timer.
    #[inline(always)]
    pub(crate) fn operation(&self) {
        self.inner.executor.operation();
    }
    /// Waits for `wait` of `socket`, after an attempt that said not now.
    pub(crate) fn register(&self, socket: impl Into<SocketId>, wait: Wait, context: &Context<'_>) {
        let oldest = self.inner.waiters.borrow_mut().register(socket.into(), wait, context);
        wake_all(oldest);
    }
    /// Reckons the room to send of a connection as Linux does from now on, with `SO_SNDBUF` at `bytes`.
    pub(crate) fn set_send_buffer(&self, socket: TcpSocketId, bytes: usize) -> Result<(), SocketError> {
        let uncounted = SocketOption::SendBufferLimit(UNCOUNTED_BYTES);
        self.core(|core| core.stack.set_option(socket, uncounted, core.now, &mut *core.sink))?;
        let limit_bytes = SendBuffer::limit_of_option(bytes);
        let mut buffers = self.inner.send_buffers.borrow_mut();
        let buffer = buffers.entry(socket.into()).or_insert_with(|| {
            let queued = self.core(|core| core.stack.instruments().queued(socket)).unwrap_or_default();
            let mut buffer = SendBuffer::new(limit_bytes, limit_bytes, true);
            buffer.wrote(queued.unacknowledged_bytes);
            buffer
        });
        buffer.fix(limit_bytes);
        Ok(())
    }
    /// Sends as much of `bytes` as the send buffer has room for.
    pub(crate) fn send(
        &self,
        socket: TcpSocketId,
        bytes: &[u8],
        how: SendHow,
    ) -> Result<usize, stack::StreamError> {
        let mut buffers = self.inner.send_buffers.borrow_mut();
        let Some(buffer) = buffers.get_mut(&socket.into()) else {
            return self.within(Layer::Tcp, || {
                self.core(|core| core.stack.tcp().send_with(socket, bytes, how, core.now, &mut *core.sink))
            });
        };
        let end = |all| if all { how } else { SendHow { push: false, ..SendHow::default() } };
        let mut sent = 0;
        loop {
            // A task that came back too early waits on.
            let mut was_full = true;
            let taken = self.core(|core| {
                let on = (&mut core.stack, socket, usize::MAX);
                buffer.write(on, &bytes[sent..], &mut was_full, end, (core.now, &mut *core.sink))
            });
            match taken {
                Ok(taken) => sent += taken.bytes,
                Err(stack::StreamError::WouldBlock) if sent > 0 => return Ok(sent),
                Err(error) => return Err(error),
            }
            if sent == bytes.len() {
                return Ok(sent);
            }
        }
    }
    /// Whether a writer waits for room.
    pub(crate) fn is_send_buffer_full(&self, socket: TcpSocketId) -> bool {
        self.inner.send_buffers.borrow().get(&socket.into()).is_some_and(SendBuffer::is_wanted)
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
            let queue = self.core(|core| core.stack.instruments().send_queue(socket));
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
            self.inner.paths_changed.borrow_mut().take(&mut woken);
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
        self.host.operation();
        let now = self.host.now();
        if let Some((made, duration)) = self.from_round
            && self.host.inner.round.get() > made
        {
            self.from_round = None;
            self.deadline = now + duration;
        }
        if self.from_round.is_none() && now >= self.deadline {
            return Poll::Ready(());
        }
        // The next round comes at once where it is waited for.
        let due = if self.from_round.is_some() { now } else { self.deadline };
        let mut timers = self.host.inner.timers.borrow_mut();
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
            let waker = self.host.inner.timers.borrow_mut().cancel(timer);
            drop(waker);
        }
    }
}

fn wake_all(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}
