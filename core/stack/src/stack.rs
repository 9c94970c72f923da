//! The stack as its driver uses it: one round, sequenced over the parts.

use crate::api::{Calls, EchoSockets, Instruments, ProbeSockets, TcpSockets, UdpSockets};
use crate::environment::Environment;
use crate::flows::{close_flow, close_listener, timer_expired};
use crate::input::Reception;
use crate::network::Network;
use crate::options::StackConfig;
use crate::output::{Loopback, PASS_FRAMES, Transmitted};
use crate::pass::{has_output, transmit};
use crate::resources::Resources;
use crate::socket::{AnySocketId, SocketId, SocketOption};
use crate::sockets::Sockets;
use inhost_base::{Endpoint, Instant, LinkId, Random};
use inhost_buf::{Batch, Device, Pool};
use inhost_datagram::SocketError;
use inhost_event::{Ignore, Readiness, Sink};
use inhost_ip::{ConfigureError, InterfaceConfig, Ip, IpEnvironment};

#[cfg(feature = "freeze")]
pub(crate) mod freeze;

/// Expired timers that one [`Stack::timeout`] serves; the rest is due at once again.
const TIMERS_PER_CALL: usize = 1024;
/// Timer entries that one [`Stack::timeout`] moves.
const TIMER_MOVES_PER_CALL: usize = 8192;

/// Most loopback passes of one call. If frames are left, the deadline is now.
const LOOPBACK_PASSES_PER_CALL: usize = 16;
const LOOPBACK: LinkId = LinkId(0);

/// Most resolved neighbours that one call handles.
const RESOLVED_PER_CALL: usize = 64;

/// A whole host: interfaces, neighbours, routes, connections, sockets, and their timers.
///
/// A stack is driven and never drives. It is `Send` and not `Sync`, and holds no lock, no `Rc` and no waker. Time,
/// frames and calls come in as arguments; frames, events and the next deadline come out. The same calls with the same
/// arguments and the same seed give the same frames.
///
/// # A round
///
/// 1. [`Stack::receive`] with a bounded batch of frames, for each link that has some. Packets come from
///    [`Stack::pool`], and every one that goes in is accounted for: kept by a socket or given back to the pool.
/// 2. [`Stack::timeout`], when [`Stack::deadline`] is reached.
/// 3. [`Stack::ready`] until `None`, and the applications of the sockets it names. Their calls change state and
///    never send; what they want to send waits for step 4, so that an answer, an acknowledgment and a window update
///    share one segment.
/// 4. [`Stack::transmit`] for each link that wants it ([`Stack::wants_transmit`]) and whose device has room.
/// 5. Sleep until a frame comes, a full device has room again, an application wants something, or the deadline, unless
///    [`Stack::ready`], or a link that wants to transmit, has something left.
///
/// # What a call may count on
///
/// - Any call may come at any time and in any order; one that finds nothing to do does nothing. `timeout` before the
///   deadline, `transmit` with nothing to send, `ready` with nothing changed, and `receive` of an empty batch are such.
/// - Work is bounded: `receive` by its batch, `transmit` by its budget, `timeout` by named limits; when a limit cuts it
///   short the deadline is an instant that has passed.
/// - No timer fires before its instant. The deadline of a busy connection may have moved on by the time it is reached,
///   because timers are re-armed lazily; then `timeout` does nothing but re-arm it.
/// - State is committed after the device accepted a frame. When it says [`inhost_buf::Full`], `transmit` returns with
///   `more` set, and the same frame is made anew later.
/// - `now` never needs to be exact. A jump ahead (suspend) makes everything due that the jump passed, once; but where a
///   connection's timer is served more than five seconds late, what it was late does not count against the user timeout
///   or the keep-alive, so that data outstanding and idle connections survive. A step back is taken as no time.
/// - Link 0 is the loopback. What the host sends to itself comes back within the same round, in `receive`, `timeout` or
///   `transmit` of any link, and needs no device: the driver does nothing for it, and while something waits there the
///   deadline has passed.
///
/// ```
/// use inhost_base::Instant;
/// use inhost_event::Ignore;
/// use inhost_stack::{ConnectOptions, Endpoint, ListenOptions, Stack, StackConfig};
/// use inhost_base::Ipv4Addr;
///
/// let (mut now, mut sink) = (Instant::ZERO, Ignore);
/// let mut host = Stack::new(StackConfig::default(), [7; 32], now);
/// let here = Endpoint::new(Ipv4Addr::LOCALHOST, 7);
/// let listener = host.tcp(now, &mut sink).listen(here, ListenOptions::default()).unwrap();
/// let caller = host.tcp(now, &mut sink).connect(here, ConnectOptions::default()).unwrap();
/// while let Some(deadline) = host.deadline().filter(|&deadline| deadline <= now) {
///     now = now.max(deadline);
///     host.timeout(now, &mut sink); // The handshake, over the loopback.
/// }
/// let accepted = host.tcp(now, &mut sink).accept(listener).unwrap().unwrap();
/// assert_eq!(host.tcp(now, &mut sink).send(caller, b"hello"), Ok(5));
/// host.timeout(now, &mut sink);
/// let mut place = [0; 16];
/// assert_eq!(host.tcp(now, &mut sink).read(accepted.socket, &mut place), Ok(5));
/// ```
#[derive(Debug)]
pub struct Stack {
    parts: Parts,
    loopback: Loopback,
}

/// The parts of a host as separate fields, so that a function borrows only those that it needs. Each owns its private state;
/// a rule that needs several parts takes them.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Parts {
    config: StackConfig,
    resources: Resources,
    network: Network,
    sockets: Sockets,
}

impl Stack {
    /// A host with its loopback and nothing else. `seed` is all its randomness: entropy in production.
    pub fn new(config: StackConfig, seed: [u8; 32], now: Instant) -> Stack {
        let mut random = Random::from_seed(seed);
        let ip = Ip::new(config.ip.clone(), &mut random);
        let sockets = Sockets::new(&config, &mut random, now);
        let network = Network::new(ip, config.resets_per_second, now);
        let resources = Resources::new(config.memory_limit_bytes, random, now);
        Stack { parts: Parts { config, resources, network, sockets }, loopback: Loopback::default() }
    }
    /// Adds a link. Its first frames (address tests, solicitations) wait for [`Stack::transmit`].
    pub fn add_link(&mut self, config: InterfaceConfig, now: Instant) -> Result<LinkId, ConfigureError> {
        let Parts { network, resources, .. } = &mut self.parts;
        network.add_link(config, &mut resources.for_ip(now, &mut Ignore))
    }
    /// The memory of the host, from which drivers take packets.
    pub fn pool(&mut self) -> &mut Pool {
        self.parts.resources.pool_mut()
    }
    /// The memory pool of the host.
    pub fn memory(&self) -> &Pool {
        self.parts.resources.memory().pool()
    }
    /// Changes the host's memory limit. Memory in use above it is kept; nothing is allocated until usage is below.
    pub fn set_memory_limit(&mut self, limit_bytes: usize) {
        self.parts.config.memory_limit_bytes = limit_bytes;
        self.parts.resources.pool_mut().set_limit_bytes(limit_bytes);
    }
    /// The IP layer of the host.
    pub fn ip(&self) -> &Ip {
        self.parts.network.ip()
    }
    /// The Internet Protocol of the host: addresses, routes, gateways, groups.
    pub fn ip_mut(&mut self) -> &mut Ip {
        self.parts.network.ip_mut()
    }
    /// IP together with what its calls borrow, for those that need an [`IpEnvironment`].
    pub fn with_ip<R>(
        &mut self,
        now: Instant,
        sink: &mut dyn Sink,
        act: impl FnOnce(&mut Ip, &mut IpEnvironment<'_>) -> R,
    ) -> R {
        let Parts { network, resources, .. } = &mut self.parts;
        act(network.ip_mut(), &mut resources.for_ip(now, sink))
    }
    /// Whether the sinks of calls are told, from now on, which work within them is not TCP's ([`Sink::enters`]): checksums,
    /// copies, timers, IP, UDP. A runtime with a sink that wants [`inhost_event::Mask::LAYER`] says so here, and counts the rest
    /// of a call as [`inhost_event::Layer::Tcp`]. Default: not. Cost while it is off: a test at each boundary.
    pub fn tell_layers(&mut self, told: bool) {
        self.parts.resources.tell_layers(told);
    }
    /// The configuration in force.
    pub fn config(&self) -> &StackConfig {
        &self.parts.config
    }

    /// Takes frames that came in on `link`.
    pub fn receive(&mut self, link: LinkId, batch: &mut Batch, now: Instant, sink: &mut dyn Sink) {
        let (sockets, mut env) = step(&mut self.parts, now, sink);
        if !batch.is_empty() {
            Reception::new(sockets, link, &mut env.reborrow()).batch(batch);
        }
        wake_resolved(sockets, env.network_mut());
        run_loopback(sockets, &mut self.loopback, &mut env);
    }
    /// Runs the timers that are due at `now`.
    pub fn timeout(&mut self, now: Instant, sink: &mut dyn Sink) {
        let (sockets, mut env) = step(&mut self.parts, now, sink);
        let env = &mut env;
        if env.network().ip().deadline() <= now {
            let (ip, mut environment) = env.ip();
            ip.timeout(&mut environment);
        }
        wake_resolved(sockets, env.network_mut());
        sockets.schedule_mut().end_back_off(now);
        retry_memory(sockets, now);
        sockets.schedule_mut().advance(now, TIMER_MOVES_PER_CALL);
        for _ in 0..TIMERS_PER_CALL {
            let Some(place) = sockets.schedule_mut().pop_due() else { break };
            match sockets.typed_at(place) {
                Some(AnySocketId::Tcp(key)) => timer_expired(sockets, key, env),
                Some(AnySocketId::Udp(key)) if sockets.held_udp(key).is_err() => {
                    sockets.remove_datagrams(key.into(), env.resources());
                }
                _ => {}
            }
        }
        run_loopback(sockets, &mut self.loopback, env);
    }
    /// When [`Stack::timeout`] is wanted next, and `None` when nothing is waited for. An instant that has passed means
    /// at once.
    pub fn deadline(&self) -> Option<Instant> {
        let Parts { sockets, network, resources, .. } = &self.parts;
        let schedule = sockets.schedule();
        let mut soonest = schedule.deadline().min(network.ip().deadline()).min(schedule.memory_retry_at());
        if loopback_waits(sockets, network, &self.loopback) {
            let stalled_until = self.loopback.stalled_until().filter(|_| self.loopback.is_stalled());
            soonest = stalled_until.map_or(resources.now(), |until| soonest.min(until));
        }
        (soonest != Instant::FAR_FUTURE).then_some(soonest)
    }
    /// Takes a socket whose readiness changed, with its readiness now. Each socket is returned once, however many
    /// changes it had; closed sockets are not returned.
    #[inline]
    pub fn ready(&mut self) -> Option<(SocketId, Readiness)> {
        if self.has_ready() { next_ready(&mut self.parts.sockets) } else { None }
    }
    /// Whether [`Stack::ready`] has something to name.
    pub fn has_ready(&self) -> bool {
        self.parts.sockets.schedule().has_changed()
    }
    /// Sends what is due on `link`, at most about `budget_frames` frames: first the host's own (neighbour and
    /// control messages, resets), then that of each socket in turn, a few segments each, so that none starves.
    pub fn transmit(
        &mut self,
        link: LinkId,
        now: Instant,
        budget_frames: usize,
        device: &mut dyn Device,
        sink: &mut dyn Sink,
    ) -> Transmitted {
        let (sockets, mut env) = step(&mut self.parts, now, sink);
        run_loopback(sockets, &mut self.loopback, &mut env);
        let done = match link {
            LOOPBACK => Transmitted::default(),
            link => transmit(sockets, link, budget_frames, device, &mut env.reborrow()),
        };
        wake_resolved(sockets, env.network_mut());
        done
    }
    /// Sockets that have something to send on `link`.
    pub fn senders(&self, link: LinkId) -> usize {
        self.parts.sockets.schedule().sender_count(link)
    }
    /// Whether [`Stack::transmit`] has something for the device of `link`. Never of the loopback, which has none.
    pub fn wants_transmit(&self, link: LinkId) -> bool {
        link != LOOPBACK && has_output(&self.parts.sockets, &self.parts.network, link)
    }
    /// The links of the host, the loopback included.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        self.parts.network.links().ids()
    }
    /// Closes a socket of any kind. A connection finishes by itself: queued data is sent and retransmitted as needed,
    /// then the FIN, then TIME-WAIT. With unread received data it is reset instead, so that the peer knows that data
    /// was lost. At the limit on orphans one of them ends: a TIME-WAIT, or else one whose peer keeps its window closed.
    /// A listener takes the connections with it that nobody accepted. The datagrams that a UDP socket has queued still
    /// leave, within ten seconds.
    pub fn close(
        &mut self,
        socket: impl Into<SocketId>,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), SocketError> {
        let (sockets, mut env) = step(&mut self.parts, now, sink);
        let (socket, env) = (socket.into(), &mut env);
        match sockets.typed(socket).ok_or(SocketError::NoSocket)? {
            AnySocketId::Tcp(id) => {
                sockets.held_tcp(id)?;
                close_flow(sockets, id, env);
            }
            AnySocketId::Listener(id) => close_listener(sockets, id, env),
            AnySocketId::Udp(id) => sockets.close_udp(id, now, env.resources()),
            // Nobody is left to receive the answers.
            AnySocketId::Echo(_) | AnySocketId::Probe(_) => {
                sockets.remove_datagrams(socket, env.resources());
            }
        }
        Ok(())
    }
    /// The typed identifier of a socket, while it lives: for those who keep identifiers of any kind.
    #[inline]
    pub fn typed(&self, socket: SocketId) -> Option<AnySocketId> {
        self.parts.sockets.typed(socket)
    }
    /// The readiness of a socket.
    #[inline]
    pub fn readiness(&self, socket: impl Into<SocketId>) -> Readiness {
        self.parts.sockets.readiness(socket.into())
    }
    /// The two ends of a connection, or of a connected UDP socket.
    pub fn endpoints(&self, socket: impl Into<SocketId>) -> Option<(Endpoint, Option<Endpoint>)> {
        self.parts.sockets.any(socket.into())?.endpoints()
    }
    /// Changes an option of a socket.
    pub fn set_option(
        &mut self,
        socket: impl Into<SocketId>,
        option: SocketOption,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), SocketError> {
        let (sockets, mut env) = step(&mut self.parts, now, sink);
        sockets.set_option(socket.into(), option, &mut env)
    }
    /// Calls on TCP connections and listeners, at `now`; `sink` takes their events.
    #[inline]
    pub fn tcp<'a>(&'a mut self, now: Instant, sink: &'a mut dyn Sink) -> TcpSockets<'a> {
        Calls::new(step(&mut self.parts, now, sink))
    }
    /// Calls on UDP sockets, at `now`; `sink` takes their events.
    #[inline]
    pub fn udp<'a>(&'a mut self, now: Instant, sink: &'a mut dyn Sink) -> UdpSockets<'a> {
        Calls::new(step(&mut self.parts, now, sink))
    }
    /// Calls on echo sockets (ping), at `now`; `sink` takes their events.
    #[inline]
    pub fn echo<'a>(&'a mut self, now: Instant, sink: &'a mut dyn Sink) -> EchoSockets<'a> {
        Calls::new(step(&mut self.parts, now, sink))
    }
    /// Calls on probe sockets (traceroute), at `now`; `sink` takes their events.
    #[inline]
    pub fn probe<'a>(&'a mut self, now: Instant, sink: &'a mut dyn Sink) -> ProbeSockets<'a> {
        Calls::new(step(&mut self.parts, now, sink))
    }
    /// Read-only access for instruments.
    #[inline]
    pub fn instruments(&self) -> Instruments<'_> {
        Instruments::new(&self.parts.sockets, &self.parts.network, &self.parts.resources)
    }
}

/// The sockets, and what a step at `now` uses besides.
#[inline(always)]
fn step<'a>(
    parts: &'a mut Parts,
    now: Instant,
    sink: &'a mut dyn Sink,
) -> (&'a mut Sockets, Environment<'a>) {
    (&mut parts.sockets, Environment::new(&mut parts.network, &mut parts.resources, now, sink))
}
/// Whether something waits to go round on the loopback.
#[inline]
fn loopback_waits(sockets: &Sockets, network: &Network, loopback: &Loopback) -> bool {
    loopback.has_frames() || has_output(sockets, network, LOOPBACK)
}
/// Sends and receives on the loopback until it is quiet, or the limit of one call is reached.
#[inline(always)]
fn run_loopback(sockets: &mut Sockets, loopback: &mut Loopback, env: &mut Environment<'_>) {
    if loopback.stalled_until().is_some() || loopback_waits(sockets, env.network(), loopback) {
        run_busy_loopback(sockets, loopback, &mut env.reborrow());
    }
}
#[inline(never)]
fn run_busy_loopback(sockets: &mut Sockets, loopback: &mut Loopback, env: &mut Environment<'_>) {
    loopback.resume(env.now());
    for _ in 0..LOOPBACK_PASSES_PER_CALL {
        if !loopback_waits(sockets, env.network(), loopback) || loopback.is_stalled() {
            return;
        }
        if has_output(sockets, env.network(), LOOPBACK) {
            loopback.fill(env.pool());
            let done = transmit(sockets, LOOPBACK, PASS_FRAMES, loopback, env);
            if done.frames == 0 && done.device_full && !loopback.has_frames() {
                loopback.stall(env.now());
            }
            loopback.empty(env.pool());
        }
        env.counters().loopback_full += loopback.take_refused();
        for _ in 0..PASS_FRAMES {
            let Some(packet) = loopback.pop() else { break };
            let mut reception = Reception::new(sockets, LOOPBACK, env);
            if packet.pieces() == 0 {
                reception.frame(packet);
            } else {
                reception.scattered(packet, false, &mut || loopback.pop());
                reception.apply_predicted();
            }
        }
    }
}
#[inline(never)]
fn next_ready(sockets: &mut Sockets) -> Option<(SocketId, Readiness)> {
    while let Some(place) = sockets.schedule_mut().pop_changed() {
        if let Some(socket) = sockets.at_place(place) {
            return Some((socket, sockets.readiness(socket)));
        }
    }
    None
}
/// Lets those send again whose neighbour is known now, or known not to answer.
#[inline(always)]
fn wake_resolved(sockets: &mut Sockets, network: &mut Network) {
    if network.ip().paths().has_resolved() {
        wake_some_resolved(sockets, network);
    }
}
#[inline(never)]
fn wake_some_resolved(sockets: &mut Sockets, network: &mut Network) {
    for _ in 0..RESOLVED_PER_CALL {
        let Some((link, neighbour)) = network.take_resolved() else { return };
        sockets.schedule_mut().neighbour_resolved(link, neighbour);
    }
}
/// Lets those try again that found no memory to send.
fn retry_memory(sockets: &mut Sockets, now: Instant) {
    while let Some(place) = sockets.schedule_mut().pop_starved(now) {
        if let Some(socket) = sockets.at_place(place) {
            sockets.notify(socket);
        }
    }
}
