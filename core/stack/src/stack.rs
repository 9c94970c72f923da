//! The host as its driver sees it.

use crate::cookie::Cookies;
use crate::counters::{Counters, LinkCounters};
use crate::direct::opens_or_closes;
use crate::entry::{Flow, Marks, Socket};
use crate::extras::ExtrasByPlace;
use crate::fast_open::FastOpen;
use crate::limit::RateLimit;
use crate::list::Lists;
use crate::listener::CHANGED;
use crate::loopback::Loopback;
use crate::memory::Shares;
use crate::options::StackConfig;
use crate::parked::Parked;
use crate::ports::Identity;
use crate::reply::Replies;
use crate::socket::{Readiness, SocketId};
use crate::source_route::SourceRoutes;
use crate::straight::{Reception, Run};
use crate::table::Table;
use crate::wheel::Wheel;
use inhost_base::{Duration, Endpoint, Instant, Key, LinkId, Random, Slab};
use inhost_buf::{Batch, Device, Packet, Pool};
use inhost_event::{Drop, Event, FrameDropped, FrameReceived, Ignore, Mask, Sink};
use inhost_ip::{ConfigureError, InterfaceConfig, Ip, IpEnvironment, Received};
use inhost_tcp::Config;
use inhost_wire::protocol;
use std::sync::Arc;

/// Expired timers that one [`Stack::timeout`] serves; the rest is due at once again.
const TIMERS_PER_CALL: usize = 1024;
/// Timer entries that one [`Stack::timeout`] moves.
const TIMER_MOVES_PER_CALL: usize = 8192;
/// Neighbours whose decision one call looks at.
const RESOLVED_PER_CALL: usize = 64;
/// How long a socket waits that found no memory to send.
const FEEDING: Duration = Duration::from_millis(50);
/// How long a flow rests whose neighbour did not answer, or whose route is gone.
pub(crate) const REST: Duration = Duration::from_secs(1);

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
/// let listener = host.listen(here, ListenOptions::default(), now).unwrap();
/// let caller = host.connect(here, ConnectOptions::default(), now, &mut sink).unwrap();
/// while let Some(deadline) = host.deadline().filter(|&deadline| deadline <= now) {
///     now = now.max(deadline);
///     host.timeout(now, &mut sink); // The handshake, over the loopback.
/// }
/// let accepted = host.accept(listener, now).unwrap().unwrap();
/// assert_eq!(host.send(caller, b"hello", now, &mut sink), Ok(5));
/// host.timeout(now, &mut sink);
/// let mut place = [0; 16];
/// assert_eq!(host.read(accepted.socket, &mut place, now, &mut sink), Ok(5));
/// ```
#[derive(Debug)]
pub struct Stack {
    pub(crate) config: StackConfig,
    pub(crate) tcp_config: Arc<Config>,
    pub(crate) pool: Pool,
    pub(crate) random: Random,
    pub(crate) ip: Ip,
    pub(crate) sockets: Slab<Socket>,
    pub(crate) flows: Table,
    pub(crate) bindings: Table,
    pub(crate) identity: Identity,
    pub(crate) cookies: Cookies,
    pub(crate) fast_open: FastOpen,
    pub(crate) source_routes: SourceRoutes,
    pub(crate) timers: Wheel,
    /// For each link what is ready to send and what rests, and for each neighbour what waits for it.
    pub(crate) sending: Lists,
    pub(crate) parked: Parked,
    /// What the application is to be told of: sockets whose readiness changed, and for each listener handshakes in
    /// progress and connections to accept. No socket is in two of them, for nobody hears of what is not accepted.
    pub(crate) queues: Lists,
    /// One list: sockets that could not send for want of memory.
    pub(crate) starved: Lists,
    /// What nobody holds any more: UDP sockets whose last datagrams have not left, the oldest first, and connections.
    pub(crate) closing: Lists,
    /// What each may hold while memory is short.
    pub(crate) shares: Shares,
    /// When they are to try again.
    pub(crate) feeding_at: Option<Instant>,
    pub(crate) extras: ExtrasByPlace,
    pub(crate) links: Vec<Link>,
    /// When the first of their rests ends.
    pub(crate) rests_until: Instant,
    pub(crate) loopback: Loopback,
    pub(crate) replies: Replies,
    pub(crate) reset_limit: RateLimit,
    pub(crate) counters: Counters,
    pub(crate) population: Population,
    /// The only frame lengths of a pass that a sink wants to hear of.
    pub(crate) sent_lengths: Vec<u32>,
    /// The last end that a binding was looked up for, by transport and link, and what was found: until another is bound.
    pub(crate) last_binding: Option<((u8, LinkId, Endpoint), Key)>,
    /// The flow that the last segment was for; it may be gone.
    pub(crate) last_flow: Option<Key>,
    /// The latest time told.
    pub(crate) now: Instant,
}

/// How many there are of what is limited.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Population {
    pub(crate) flows: usize,
    pub(crate) orphans: usize,
    pub(crate) datagram_sockets: usize,
    /// Some socket took, or takes, what is for any address.
    pub(crate) any_address: bool,
}

/// What is kept for each link.
#[derive(Debug, Default)]
pub(crate) struct Link {
    pub(crate) counters: LinkCounters,
    /// When the flows that rest try again.
    pub(crate) rest_ends: Option<Instant>,
    /// See [`InterfaceConfig::runs`].
    pub(crate) runs: bool,
    /// See [`InterfaceConfig::coalesce`].
    pub(crate) coalesces: bool,
}

/// The list of a link's sockets that are ready to send.
pub(crate) const fn ready_on(link: LinkId) -> usize {
    link.0 as usize * 3
}
/// A list of sockets that wait for a neighbour; [`Parked`] knows for which.
pub(crate) const fn parked_list(number: usize) -> usize {
    number * 3 + 1
}
/// The list of a link's sockets that rest.
pub(crate) const fn resting_on(link: LinkId) -> usize {
    link.0 as usize * 3 + 2
}

/// What one [`Stack::transmit`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Transmitted {
    /// Frames that the device accepted.
    pub frames: usize,
    /// Whether more could be sent: the budget was spent, or the device was full.
    pub more: bool,
    /// Whether the device was full.
    pub device_full: bool,
}

/// An [`IpEnvironment`] from the stack's own parts, beside `ip`.
macro_rules! ip_environment {
    ($stack:expr, $now:expr, $sink:expr) => {
        inhost_ip::IpEnvironment {
            now: $now,
            pool: &mut $stack.pool,
            random: &mut $stack.random,
            sink: $sink,
        }
    };
}
pub(crate) use ip_environment;

/// An [`Environment`] from the stack's own parts, beside `sockets`.
macro_rules! tcp_environment {
    ($stack:expr, $now:expr, $key:expr, $sink:expr) => {
        inhost_tcp::Environment {
            now: $now,
            socket: $key,
            pool: &mut $stack.pool,
            random: &mut $stack.random,
            sink: $sink,
        }
    };
}
pub(crate) use tcp_environment;

impl Stack {
    /// A host with its loopback and nothing else. `seed` is all its randomness: entropy in production.
    pub fn new(config: StackConfig, seed: [u8; 32], now: Instant) -> Stack {
        let mut random = Random::from_seed(seed);
        let ip = Ip::new(config.ip.clone(), &mut random);
        Stack {
            tcp_config: Arc::new(config.tcp.clone()),
            pool: Pool::new(config.memory_limit_bytes),
            ip,
            sockets: Slab::new(config.socket_limit),
            flows: Table::new(random.private_key(), Socket::flow_name),
            bindings: Table::new(random.private_key(), Socket::binding_name),
            identity: Identity::new(&mut random),
            cookies: Cookies::new(&mut random),
            fast_open: FastOpen::new(&config.fast_open, &mut random, now),
            source_routes: SourceRoutes::default(),
            timers: Wheel::new(now),
            sending: Lists::new(3),
            parked: Parked::default(),
            queues: Lists::new(1),
            starved: Lists::new(1),
            closing: Lists::new(2),
            shares: Shares::default(),
            feeding_at: None,
            extras: ExtrasByPlace::new(),
            links: vec![Link::default()],
            rests_until: Instant::FAR_FUTURE,
            loopback: Loopback::default(),
            replies: Replies::default(),
            reset_limit: RateLimit::new(config.resets_per_second, now),
            counters: Counters::default(),
            population: Population::default(),
            sent_lengths: Vec::new(),
            last_binding: None,
            last_flow: None,
            now,
            random,
            config,
        }
    }
    /// Adds a link. Its first frames (address tests, solicitations) wait for [`Stack::transmit`].
    pub fn add_link(&mut self, config: InterfaceConfig, now: Instant) -> Result<LinkId, ConfigureError> {
        let mut environment = ip_environment!(self, now, &mut Ignore);
        let (runs, coalesces) = (config.runs, config.coalesce);
        let link = self.ip.add_interface(config, &mut environment)?;
        let count = usize::from(link.0) + 1;
        if self.links.len() < count {
            self.links.resize_with(count, Link::default);
        }
        if let Some(kept) = self.links.get_mut(usize::from(link.0)) {
            *kept = Link { runs, coalesces, ..core::mem::take(kept) };
        }
        self.sending.grow(count * 3);
        Ok(link)
    }
    /// The memory of the host, from which drivers take packets.
    pub fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }
    /// The memory of the host, to look at.
    pub fn memory(&self) -> &Pool {
        &self.pool
    }
    /// Changes the host's memory limit. What is out stays out; nothing is added until it is below.
    pub fn set_memory_limit(&mut self, limit_bytes: usize) {
        self.config.memory_limit_bytes = limit_bytes;
        self.pool.set_limit_bytes(limit_bytes);
    }
    /// The Internet Protocol of the host, to look at.
    pub fn ip(&self) -> &Ip {
        &self.ip
    }
    /// The Internet Protocol of the host: addresses, routes, gateways, groups.
    pub fn ip_mut(&mut self) -> &mut Ip {
        &mut self.ip
    }
    /// IP together with what its calls borrow, for those that need an [`IpEnvironment`].
    pub fn with_ip<R>(
        &mut self,
        now: Instant,
        sink: &mut dyn Sink,
        act: impl FnOnce(&mut Ip, &mut IpEnvironment<'_>) -> R,
    ) -> R {
        let mut environment = ip_environment!(self, now, sink);
        act(&mut self.ip, &mut environment)
    }
    /// The configuration in force.
    pub fn config(&self) -> &StackConfig {
        &self.config
    }

    /// Takes frames that came in on `link`.
    pub fn receive(&mut self, link: LinkId, batch: &mut Batch, now: Instant, sink: &mut dyn Sink) {
        self.tick(now);
        if !batch.is_empty() {
            self.receive_batch(link, batch, now, sink);
        }
        self.wake_resolved();
        self.run_loopback(now, sink);
    }
    fn receive_batch(&mut self, link: LinkId, batch: &mut Batch, now: Instant, sink: &mut dyn Sink) {
        let (mask, mut run) = (sink.mask(), Run::default());
        let coalesces = self.links.get(usize::from(link.0)).is_some_and(|link| link.coalesces);
        while let Some(mut packet) = batch.pop() {
            if self.following_input(&mut packet, &mut run) {
                continue;
            }
            let reception = Reception { link, mask, more: coalesces && !batch.is_empty(), now };
            if packet.pieces() > 0 {
                self.pieces_input(reception, packet, &mut || batch.pop(), &mut run, sink);
                if !coalesces {
                    self.end_run(&mut run, now, sink);
                }
                continue;
            }
            let straight = if opens_or_closes(&packet) {
                self.end_following(link, &mut run, now);
                false
            } else {
                self.straight_input(reception, &mut packet, &mut [], &mut run, sink)
            };
            if !straight || !coalesces {
                self.end_run(&mut run, now, sink);
            }
            if !straight && !self.direct_input(link, &mut packet, mask, now, sink) {
                self.frame(link, packet, now, sink);
            }
        }
        self.end_following(link, &mut run, now);
        self.end_run(&mut run, now, sink);
    }
    /// Does what is due at `now`.
    pub fn timeout(&mut self, now: Instant, sink: &mut dyn Sink) {
        self.tick(now);
        if self.ip.deadline() <= now {
            self.ip.timeout(&mut ip_environment!(self, now, sink));
        }
        self.wake_resolved();
        self.wake_rested(now);
        self.wake_starved(now);
        self.timers.advance(now, TIMER_MOVES_PER_CALL);
        for _ in 0..TIMERS_PER_CALL {
            let Some(place) = self.timers.pop_due() else { break };
            self.timer_expired(place, now, sink);
        }
        self.run_loopback(now, sink);
    }
    /// When [`Stack::timeout`] is wanted next, and `None` when nothing is waited for. An instant that has passed means
    /// at once.
    pub fn deadline(&self) -> Option<Instant> {
        if self.loopback_waits() && !self.loopback_is_stalled() {
            return Some(self.now);
        }
        let mut soonest = self.timers.deadline().min(self.ip.deadline()).min(self.rests_until);
        soonest = soonest.min(self.feeding_at.unwrap_or(Instant::FAR_FUTURE));
        if let Some(stalled) = self.loopback_stalls_until() {
            soonest = soonest.min(stalled);
        }
        (soonest != Instant::FAR_FUTURE).then_some(soonest)
    }
    /// A socket whose readiness changed since it was last named, and what it is ready for now. Each is named once
    /// however much happened to it; a socket that was closed is not named.
    #[inline]
    pub fn ready(&mut self) -> Option<(SocketId, Readiness)> {
        if self.has_ready() { self.next_ready() } else { None }
    }
    fn next_ready(&mut self) -> Option<(SocketId, Readiness)> {
        while let Some(place) = self.queues.pop_front(CHANGED) {
            if let Some(key) = self.sockets.key_at(place) {
                let socket = SocketId(key);
                return Some((socket, self.readiness(socket)));
            }
        }
        None
    }
    /// Whether [`Stack::ready`] has something to name.
    pub fn has_ready(&self) -> bool {
        self.queues.count(CHANGED) > 0
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
        self.tick(now);
        self.run_loopback(now, sink);
        let done = match link {
            LinkId(0) => Transmitted::default(),
            _ => self.transmit_on(link, now, budget_frames, device, sink),
        };
        self.wake_resolved();
        done
    }
    /// Whether [`Stack::transmit`] has something for the device of `link`. Never of the loopback, which has none.
    pub fn wants_transmit(&self, link: LinkId) -> bool {
        link != LinkId(0) && self.has_output(link)
    }
    /// The links for which [`Stack::wants_transmit`] holds.
    pub fn links_wanting_transmit(&self) -> impl Iterator<Item = LinkId> + '_ {
        (1..self.links.len() as u16).map(LinkId).filter(|&link| self.has_output(link))
    }
    /// The links of the host, the loopback included.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.links.len() as u16).map(LinkId)
    }

    #[inline]
    pub(crate) fn has_output(&self, link: LinkId) -> bool {
        self.sending.count(ready_on(link)) > 0 || self.replies.waits(link) || self.ip.wants_transmit(link)
    }
    #[inline]
    pub(crate) fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }
    pub(crate) fn flow(&self, key: Key) -> Option<&Flow> {
        match self.sockets.at(key)? {
            Socket::Flow(flow) => Some(flow),
            _ => None,
        }
    }
    pub(crate) fn flow_mut(&mut self, key: Key) -> Option<&mut Flow> {
        match self.sockets.at_mut(key)? {
            Socket::Flow(flow) => Some(flow),
            _ => None,
        }
    }
    /// Takes one frame, to its end.
    pub(crate) fn frame(&mut self, link: LinkId, mut packet: Packet, now: Instant, sink: &mut dyn Sink) {
        let length_bytes = packet.len() as u32;
        if let Some(link) = self.links.get_mut(usize::from(link.0)) {
            link.counters.received_frames += 1;
            link.counters.received_bytes += u64::from(length_bytes);
        }
        sink.emit(Mask::LINK, now, || Event::FrameReceived(FrameReceived { link, length_bytes }));
        match self.ip.receive(link, &mut packet, &mut ip_environment!(self, now, sink)) {
            Received::Handled => {}
            Received::Dropped(why) => self.count_drop(link, why),
            Received::Error(error) => self.network_error(&error, now, sink),
            Received::Redirect(redirect) => self.redirected(&redirect, now, sink),
            // Whoever stands in for other hosts does not answer pings for them yet.
            Received::EchoRequest(_) => self.drop_frame(link, Drop::NoSocket, now, sink),
            Received::EchoReply(reply) => self.echo_input(&reply, &mut packet, now, sink),
            Received::Datagram(datagram) => {
                let done = match datagram.protocol {
                    protocol::TCP => self.tcp_input(&datagram, &mut packet, now, sink),
                    protocol::UDP => self.udp_input(&datagram, &mut packet, now, sink),
                    _ => {
                        let mut environment = ip_environment!(self, now, sink);
                        self.ip.protocol_unreachable(&datagram, &mut packet, &mut environment);
                        Err(Drop::UnknownProtocol)
                    }
                };
                if let Err(why) = done {
                    self.drop_frame(link, why, now, sink);
                }
            }
        }
        self.pool.give(packet);
    }
    /// Counts and tells why a frame went no further.
    pub(crate) fn drop_frame(&mut self, link: LinkId, why: Drop, now: Instant, sink: &mut dyn Sink) {
        self.count_drop(link, why);
        sink.emit(Mask::LINK, now, || Event::FrameDropped(FrameDropped { link, why }));
    }
    fn count_drop(&mut self, link: LinkId, why: Drop) {
        if let Some(link) = self.links.get_mut(usize::from(link.0)) {
            link.counters.dropped[why as usize] += 1;
        }
    }
    /// Lets those send again whose neighbour is known now, or known not to answer.
    #[inline(always)]
    fn wake_resolved(&mut self) {
        if self.ip.has_resolved() {
            self.wake_some_resolved();
        }
    }
    #[inline(never)]
    fn wake_some_resolved(&mut self) {
        for _ in 0..RESOLVED_PER_CALL {
            let Some((link, neighbour)) = self.ip.take_resolved() else { return };
            self.replies.wake(link);
            let Some(list) = self.parked.take(link, neighbour) else { continue };
            while let Some(place) = self.sending.pop_front(list) {
                self.sending.push_back(ready_on(link), place);
            }
        }
    }
    fn wake_rested(&mut self, now: Instant) {
        if self.rests_until > now {
            return;
        }
        self.rests_until = Instant::FAR_FUTURE;
        for link in (0..self.links.len() as u16).map(LinkId) {
            let state = &mut self.links[usize::from(link.0)];
            if state.rest_ends.is_some_and(|ends| ends <= now) {
                state.rest_ends = None;
                while let Some(place) = self.sending.pop_front(resting_on(link)) {
                    self.sending.push_back(ready_on(link), place);
                }
            } else if let Some(ends) = state.rest_ends {
                self.rests_until = self.rests_until.min(ends);
            }
        }
    }
    fn wake_starved(&mut self, now: Instant) {
        if self.feeding_at.is_some_and(|at| at <= now) {
            self.feeding_at = None;
            while let Some(place) = self.starved.pop_front(0) {
                if let Some(key) = self.sockets.key_at(place) {
                    self.tell(key);
                }
            }
        }
    }
    /// Lets a socket that found no memory to send try again soon: whose memory becomes free then is not its to know.
    pub(crate) fn starve(&mut self, key: Key, now: Instant) {
        self.starved.push_back(0, key.index());
        self.feeding_at.get_or_insert(now + FEEDING);
    }
    /// Sets a socket aside on `link` for a while.
    pub(crate) fn rest(&mut self, link: LinkId, place: usize, now: Instant) {
        self.sending.push_back(resting_on(link), place);
        if let Some(link) = self.links.get_mut(usize::from(link.0)) {
            let ends = *link.rest_ends.get_or_insert(now + REST);
            self.rests_until = self.rests_until.min(ends);
        }
    }
    fn timer_expired(&mut self, place: usize, now: Instant, sink: &mut dyn Sink) {
        let Some(key) = self.sockets.key_at(place) else { return };
        let Some(flow) = self.flow(key) else { return self.closing_expired(key) };
        let mut deadline = flow.connection.deadline();
        if flow.marks.any(Marks::EXTRAS) {
            if self.extras_expired(key, now, sink) {
                return;
            }
            deadline = deadline.min(self.extras_until(key));
        }
        if deadline > now {
            // It moved on since it was armed.
            self.timers.arm(place, deadline);
            return;
        }
        let Some(Socket::Flow(flow)) = self.sockets.at_mut(key) else { return };
        let outcome = flow.connection.timeout(&mut tcp_environment!(self, now, key, sink));
        self.apply(key, outcome, now, sink);
        if self.flow(key).is_some_and(|flow| flow.marks.any(Marks::EXTRAS)) {
            self.arm_extras(key);
        }
    }
}
