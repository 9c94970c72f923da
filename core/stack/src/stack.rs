//! The stack as its driver uses it: one round, sequenced over the parts.

use crate::api::{Instruments, TcpSockets};
use crate::error::SocketError;
use crate::icmp::{EchoSockets, ProbeSockets};
use crate::input::Reception;
use crate::options::StackConfig;
use crate::output::{Loopback, PASS_FRAMES, Transmitted, transmit};
use crate::parts::{Parts, ip_environment, tcp_environment};
use crate::sockets::{AnySocketId, ConnectionOptions, Readiness, SocketId, SocketOption, TcpSocketFlags};
use crate::udp::UdpSockets;
use inhost_base::{Endpoint, Instant, LinkId};
use inhost_buf::{Batch, Device, Pool};
use inhost_event::{Ignore, Sink};
use inhost_ip::{ConfigureError, InterfaceConfig, Ip, IpEnvironment};

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
/// 4. [`Stack::transmit`] for each link that wants it ([`Stack::links_wanting_transmit`]) and whose device has room.
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
/// let listener = host.tcp().listen(here, ListenOptions::default(), now).unwrap();
/// let caller = host.tcp().connect(here, ConnectOptions::default(), now, &mut sink).unwrap();
/// while let Some(deadline) = host.deadline().filter(|&deadline| deadline <= now) {
///     now = now.max(deadline);
///     host.timeout(now, &mut sink); // The handshake, over the loopback.
/// }
/// let accepted = host.tcp().accept(listener, now).unwrap().unwrap();
/// assert_eq!(host.tcp().send(caller, b"hello", now, &mut sink), Ok(5));
/// host.timeout(now, &mut sink);
/// let mut place = [0; 16];
/// assert_eq!(host.tcp().read(accepted.socket, &mut place, now, &mut sink), Ok(5));
/// ```
#[derive(Debug)]
pub struct Stack {
    pub(crate) parts: Parts,
    pub(crate) loopback: Loopback,
}

impl Stack {
    /// A host with its loopback and nothing else. `seed` is all its randomness: entropy in production.
    pub fn new(config: StackConfig, seed: [u8; 32], now: Instant) -> Stack {
        Stack { parts: Parts::new(config, seed, now), loopback: Loopback::default() }
    }
    /// Adds a link. Its first frames (address tests, solicitations) wait for [`Stack::transmit`].
    pub fn add_link(&mut self, config: InterfaceConfig, now: Instant) -> Result<LinkId, ConfigureError> {
        let mut environment = ip_environment!(self.parts, now, &mut Ignore);
        let (gso, gro) = (config.gso, config.gro);
        let link = self.parts.ip.add_interface(config, &mut environment)?;
        let count = self.parts.links.add(link, gso, gro);
        self.parts.schedule.add_links(count);
        Ok(link)
    }
    /// The memory of the host, from which drivers take packets.
    pub fn pool(&mut self) -> &mut Pool {
        self.parts.memory.pool_mut()
    }
    /// The memory pool of the host.
    pub fn memory(&self) -> &Pool {
        self.parts.memory.pool()
    }
    /// Changes the host's memory limit. Memory in use above it is kept; nothing is allocated until usage is below.
    pub fn set_memory_limit(&mut self, limit_bytes: usize) {
        self.parts.config.memory_limit_bytes = limit_bytes;
        self.parts.memory.pool_mut().set_limit_bytes(limit_bytes);
    }
    /// The IP layer of the host.
    pub fn ip(&self) -> &Ip {
        &self.parts.ip
    }
    /// The Internet Protocol of the host: addresses, routes, gateways, groups.
    pub fn ip_mut(&mut self) -> &mut Ip {
        &mut self.parts.ip
    }
    /// IP together with what its calls borrow, for those that need an [`IpEnvironment`].
    pub fn with_ip<R>(
        &mut self,
        now: Instant,
        sink: &mut dyn Sink,
        act: impl FnOnce(&mut Ip, &mut IpEnvironment<'_>) -> R,
    ) -> R {
        let mut environment = ip_environment!(self.parts, now, sink);
        act(&mut self.parts.ip, &mut environment)
    }
    /// Whether the sinks of calls are told, from now on, which work within them is not TCP's ([`Sink::enters`]): checksums,
    /// copies, timers, IP, UDP. A runtime with a sink that wants [`inhost_event::Mask::LAYER`] says so here, and counts the rest
    /// of a call as [`inhost_event::Layer::Tcp`]. Default: not. Cost while it is off: a test at each boundary.
    pub fn tell_layers(&mut self, told: bool) {
        self.parts.marks_layers = told;
    }
    /// The configuration in force.
    pub fn config(&self) -> &StackConfig {
        &self.parts.config
    }

    /// Takes frames that came in on `link`.
    pub fn receive(&mut self, link: LinkId, batch: &mut Batch, now: Instant, sink: &mut dyn Sink) {
        self.parts.tick(now);
        if !batch.is_empty() {
            Reception::new(&mut self.parts, link, now, sink).batch(batch);
        }
        self.wake_resolved();
        self.run_loopback(now, sink);
    }
    /// Runs the timers that are due at `now`.
    pub fn timeout(&mut self, now: Instant, sink: &mut dyn Sink) {
        self.parts.tick(now);
        if self.parts.ip.deadline() <= now {
            self.parts.ip.timeout(&mut ip_environment!(self.parts, now, sink));
        }
        self.wake_resolved();
        self.parts.schedule.end_back_off(now);
        self.retry_memory(now);
        self.parts.schedule.advance(now, TIMER_MOVES_PER_CALL);
        for _ in 0..TIMERS_PER_CALL {
            let Some(place) = self.parts.schedule.pop_due() else { break };
            self.timer_expired(place, now, sink);
        }
        self.run_loopback(now, sink);
    }
    /// When [`Stack::timeout`] is wanted next, and `None` when nothing is waited for. An instant that has passed means
    /// at once.
    pub fn deadline(&self) -> Option<Instant> {
        if self.loopback_waits() && !self.loopback.is_stalled() {
            return Some(self.parts.now);
        }
        let mut soonest = self.parts.schedule.deadline().min(self.parts.ip.deadline());
        soonest = soonest.min(self.parts.memory.retry_at().unwrap_or(Instant::FAR_FUTURE));
        if let Some(stalled) = self.loopback.stalled_until().filter(|_| self.loopback_waits()) {
            soonest = soonest.min(stalled);
        }
        (soonest != Instant::FAR_FUTURE).then_some(soonest)
    }
    /// Takes a socket whose readiness changed, with its readiness now. Each socket is returned once, however many
    /// changes it had; closed sockets are not returned.
    #[inline]
    pub fn ready(&mut self) -> Option<(SocketId, Readiness)> {
        if self.has_ready() { self.next_ready() } else { None }
    }
    fn next_ready(&mut self) -> Option<(SocketId, Readiness)> {
        while let Some(place) = self.parts.schedule.pop_changed() {
            if let Some(socket) = self.parts.sockets.at_place(place) {
                return Some((socket, self.parts.readiness(socket)));
            }
        }
        None
    }
    /// Whether [`Stack::ready`] has something to name.
    pub fn has_ready(&self) -> bool {
        self.parts.schedule.has_changed()
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
        self.parts.tick(now);
        self.run_loopback(now, sink);
        let done = match link {
            LOOPBACK => Transmitted::default(),
            _ => transmit(&mut self.parts, link, now, budget_frames, device, sink),
        };
        self.wake_resolved();
        done
    }
    /// Whether [`Stack::transmit`] has something for the device of `link`. Never of the loopback, which has none.
    pub fn wants_transmit(&self, link: LinkId) -> bool {
        link != LOOPBACK && self.parts.has_output(link)
    }
    /// The links for which [`Stack::wants_transmit`] holds.
    pub fn links_wanting_transmit(&self) -> impl Iterator<Item = LinkId> + '_ {
        self.parts.links.ids().skip(1).filter(|&link| self.parts.has_output(link))
    }
    /// The links of the host, the loopback included.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        self.parts.links.ids()
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
        self.parts.tick(now);
        self.parts.close(socket.into(), now, sink)
    }
    /// The typed identifier of a socket, while it lives: for those who keep identifiers of any kind.
    pub fn typed(&self, socket: SocketId) -> Option<AnySocketId> {
        self.parts.sockets.typed(socket)
    }
    /// The readiness of a socket.
    #[inline]
    pub fn readiness(&self, socket: impl Into<SocketId>) -> Readiness {
        self.parts.readiness(socket.into())
    }
    /// The two ends of a connection, or of a connected UDP socket.
    pub fn endpoints(&self, socket: impl Into<SocketId>) -> Option<(Endpoint, Option<Endpoint>)> {
        self.parts.endpoints(socket.into())
    }
    /// Changes an option of a socket.
    pub fn set_option(
        &mut self,
        socket: impl Into<SocketId>,
        option: SocketOption,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), SocketError> {
        self.parts.tick(now);
        self.parts.set_option(socket.into(), option, now, sink)
    }
    /// The options of a connection or a listener.
    pub fn options(&self, socket: impl Into<SocketId>) -> Result<ConnectionOptions, SocketError> {
        self.parts.options(socket.into())
    }
    /// Calls on TCP connections and listeners.
    #[inline]
    pub fn tcp(&mut self) -> TcpSockets<'_> {
        TcpSockets::new(&mut self.parts)
    }
    /// Calls on UDP sockets.
    #[inline]
    pub fn udp(&mut self) -> UdpSockets<'_> {
        UdpSockets::new(&mut self.parts)
    }
    /// Calls on echo sockets (ping).
    #[inline]
    pub fn echo(&mut self) -> EchoSockets<'_> {
        EchoSockets::new(&mut self.parts)
    }
    /// Calls on probe sockets (traceroute).
    #[inline]
    pub fn probe(&mut self) -> ProbeSockets<'_> {
        ProbeSockets::new(&mut self.parts)
    }
    /// Read-only access for instruments.
    #[inline]
    pub fn instruments(&self) -> Instruments<'_> {
        Instruments::new(&self.parts)
    }

    /// Whether something waits to go round on the loopback.
    #[inline]
    fn loopback_waits(&self) -> bool {
        self.loopback.has_frames() || self.parts.has_output(LOOPBACK)
    }
    /// Sends and receives on the loopback until it is quiet, or the limit of one call is reached.
    #[inline(always)]
    fn run_loopback(&mut self, now: Instant, sink: &mut dyn Sink) {
        if self.loopback.stalled_until().is_some() || self.loopback_waits() {
            self.run_busy_loopback(now, sink);
        }
    }
    #[inline(never)]
    fn run_busy_loopback(&mut self, now: Instant, sink: &mut dyn Sink) {
        self.loopback.resume(now);
        for _ in 0..LOOPBACK_PASSES_PER_CALL {
            if !self.loopback_waits() || self.loopback.is_stalled() {
                return;
            }
            let Stack { parts, loopback } = self;
            if parts.has_output(LOOPBACK) {
                loopback.fill(parts.memory.pool_mut());
                let done = transmit(parts, LOOPBACK, now, PASS_FRAMES, loopback, sink);
                if done.frames == 0 && done.device_full && !loopback.has_frames() {
                    loopback.stall(now);
                }
                loopback.empty(parts.memory.pool_mut());
            }
            parts.counters.loopback_full += loopback.take_refused();
            for _ in 0..PASS_FRAMES {
                let Some(packet) = loopback.pop() else { break };
                let mut reception = Reception::new(parts, LOOPBACK, now, sink);
                if packet.pieces() == 0 {
                    reception.frame(packet);
                } else {
                    reception.scattered(packet, false, &mut || loopback.pop());
                    reception.apply_predicted();
                }
            }
        }
    }
    /// Lets those send again whose neighbour is known now, or known not to answer.
    #[inline(always)]
    fn wake_resolved(&mut self) {
        if self.parts.ip.paths().has_resolved() {
            self.wake_some_resolved();
        }
    }
    #[inline(never)]
    fn wake_some_resolved(&mut self) {
        for _ in 0..RESOLVED_PER_CALL {
            let Some((link, neighbour)) = self.parts.ip.paths_mut().take_resolved() else { return };
            self.parts.replies.wake(link);
            self.parts.schedule.neighbour_resolved(link, neighbour);
        }
    }
    /// Lets those try again that found no memory to send.
    fn retry_memory(&mut self, now: Instant) {
        if self.parts.memory.retries(now) {
            while let Some(place) = self.parts.memory.pop_waiting() {
                if let Some(socket) = self.parts.sockets.at_place(place) {
                    self.parts.notify_holder(socket);
                }
            }
        }
    }
    fn timer_expired(&mut self, place: usize, now: Instant, sink: &mut dyn Sink) {
        let key = match self.parts.sockets.at_place(place).and_then(|socket| self.parts.sockets.typed(socket))
        {
            Some(AnySocketId::Tcp(key)) => key,
            Some(AnySocketId::Udp(key)) => return UdpSockets::new(&mut self.parts).closing_expired(key),
            _ => return,
        };
        let Some(flow) = self.parts.sockets.tcp(key) else { return };
        let mut deadline = flow.connection().deadline();
        if flow.has(TcpSocketFlags::OPTIONAL_STATE) {
            if self.parts.optional_expired(key, now, sink) {
                return;
            }
            deadline = deadline.min(self.parts.optional.until(key));
        }
        if deadline > now {
            // Its deadline has moved since it was armed.
            self.parts.schedule.arm(place, deadline);
            return;
        }
        let Some(flow) = self.parts.sockets.tcp_mut(key) else { return };
        let outcome = flow.connection_mut().timeout(&mut tcp_environment!(self.parts, now, key, sink));
        self.parts.apply(key, outcome, now, sink);
        if self.parts.sockets.tcp(key).is_some_and(|flow| flow.has(TcpSocketFlags::OPTIONAL_STATE)) {
            self.parts.schedule.arm_no_later(place, self.parts.optional.until(key));
        }
    }
}
