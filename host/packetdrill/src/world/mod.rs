//! The global host behind the table of functions, and how a call locks it.

pub(crate) mod blocking;
mod time;

use crate::descriptors::Descriptors;
use crate::flags::{Flags, Profile};
use crate::outbound::{Outbound, Wire};
use crate::socket::{Seen, Socket};
use blocking::Blocked;
use inhost_base::{Cidr, Duration, Instant, IpAddr, Ipv4Addr, Ipv6Addr, LinkId};
use inhost_event::Ignore;
use inhost_ip::{Route, RouteOrigin};
use inhost_socket::Taken;
use inhost_stack::{
    DuplicateDetection, InterfaceConfig, Medium, SendHow, SocketId, SocketOption, Stack, StackConfig,
    StreamError, TcpConfig, TcpSocketId, TcpSockets,
};
use libc::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// What the clock says first: far enough from zero that times before the start can be told.
const START: Instant = Instant::from_millis(1_000_000);
/// The host's randomness: the same script takes the same course.
const SEED: [u8; 32] = *b"libinhost_packetdrill, one seed.";
/// Frames that one pass sends.
const FRAMES_PER_PASS: usize = 1024;
/// Passes after which a moment counts as over, whatever the stack still wants.
const PASSES_PER_MOMENT: usize = 10_000;
/// Link MTUs that make an MSS of 1460 in either family.
const MTU_V4: u16 = 1500;
const MTU_V6: u16 = 1520;
/// Our addresses when nobody says any: those that packetdrill gives its own device.
const USUAL_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1));
const USUAL_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd3d, 0x0a0b, 0x17d6, 0, 0, 0, 0, 1));

static WORLD: Mutex<Option<World>> = Mutex::new(None);

/// The host, its clock, its descriptors and what has left it.
pub(crate) struct World {
    stack: Stack,
    link: LinkId,
    now: Instant,
    flags: Flags,
    descriptors: Descriptors,
    outbound: VecDeque<Outbound>,
    /// The tool's device was told to take nothing: then nothing leaves.
    device_takes_nothing: bool,
    blocked: Blocked,
    /// The thread that waits in virtual time; another one's blocked calls are completed by it.
    main: ThreadId,
    /// Nobody follows the events here.
    sink: Ignore,
}

/// The lock, for the length of a call. A panic of an earlier call leaves nothing that a later one cannot use.
pub(crate) fn lock() -> MutexGuard<'static, Option<World>> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Puts a new host in the place of whatever is there.
pub(crate) fn install(flags: Flags) {
    let fresh = World::new(flags);
    let old = lock().replace(fresh);
    drop(old);
}

/// Removes the host. Its descriptors are closed, and blocked calls fail.
pub(crate) fn remove() {
    let old = lock().take();
    blocking::wake();
    drop(old);
}

/// Sets `errno` of the calling thread.
pub(crate) fn set_errno(number: i32) {
    // SAFETY: the C library gives a valid pointer to the calling thread's own number.
    unsafe { *libc::__errno_location() = number };
}

/// Does `act` on the host at one moment of its time and answers as a system call does.
pub(crate) fn call(act: impl FnOnce(&mut World) -> Result<i64, i32>) -> i64 {
    let mut guard = lock();
    let answer = match guard.as_mut() {
        None => Err(libc::EBADF),
        Some(world) => {
            let answer = act(world);
            world.run_until_idle();
            answer
        }
    };
    drop(guard);
    answered(answer)
}

/// The value, or -1 with `errno` set.
pub(crate) fn answered(answer: Result<i64, i32>) -> i64 {
    answer.unwrap_or_else(|number| {
        set_errno(number);
        -1
    })
}

impl World {
    fn new(flags: Flags) -> World {
        let mut config = StackConfig::default();
        config.tcp = initial_tcp(flags.profile);
        if flags.profile == Profile::Linux {
            // Linux looks for black holes only where it is told to.
            config.fast_open.black_hole_pause = Duration::ZERO;
            config.fast_open.destination_pause = Duration::ZERO;
            config.fast_open.assumes_path_mss = true;
        }
        let mut stack = Stack::new(config, SEED, START);
        let mut addresses = flags.addresses();
        for usual in [USUAL_V4, USUAL_V6] {
            if !flags.local.iter().any(|address| address.is_ipv4() == usual.is_ipv4()) {
                addresses.extend(flags.with_prefix(usual));
            }
        }
        let only_v4 = !flags.local.is_empty() && flags.local.iter().all(IpAddr::is_ipv4);
        let mut interface = InterfaceConfig::new("packetdrill", Medium::Ip);
        interface.mtu_bytes = flags.mtu_bytes.unwrap_or(if only_v4 { MTU_V4 } else { MTU_V6 });
        interface.addresses = addresses;
        interface.duplicate_detection = DuplicateDetection::Off;
        interface.accept_router_advertisements = false;
        let link = stack.add_link(interface, START).unwrap_or_else(|why| {
            eprintln!("libinhost_packetdrill: the link cannot be made: {why}");
            LinkId(0)
        });
        let mut world = World {
            stack,
            link,
            now: START,
            flags,
            descriptors: Descriptors::default(),
            outbound: VecDeque::new(),
            device_takes_nothing: false,
            blocked: Blocked::default(),
            main: std::thread::current().id(),
            sink: Ignore,
        };
        world.route_everything();
        world.run_until_idle();
        // What the link says of itself when it comes up is nothing a script expects.
        world.outbound.clear();
        world
    }
    /// Everybody is at the other end of the link, so gateways need not be told apart.
    fn route_everything(&mut self) {
        for everything in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
            let Ok(destination) = Cidr::new(everything, 0) else { continue };
            let route = Route {
                destination,
                link: self.link,
                gateway: None,
                preference: 0,
                origin: RouteOrigin::Configured,
            };
            if let Err(why) = self.stack.ip_mut().add_route(route) {
                eprintln!("libinhost_packetdrill: no route: {why}");
            }
        }
    }
    /// What time it is.
    pub fn now(&self) -> Instant {
        self.now
    }
    /// How the connections are to behave.
    pub fn profile(&self) -> Profile {
        self.flags.profile
    }
    pub fn stack(&self) -> &Stack {
        &self.stack
    }
    /// The calls of TCP's sockets, at this moment.
    pub fn tcp_mut(&mut self) -> TcpSockets<'_> {
        self.stack.tcp(self.now, &mut self.sink)
    }
    pub fn descriptors(&self) -> &Descriptors {
        &self.descriptors
    }
    pub fn descriptors_mut(&mut self) -> &mut Descriptors {
        &mut self.descriptors
    }
    pub fn socket(&self, fd: i32) -> Result<&Socket, i32> {
        self.descriptors.socket(fd)
    }
    pub fn socket_mut(&mut self, fd: i32) -> Result<&mut Socket, i32> {
        self.descriptors.socket_mut(fd)
    }
    /// Sets an option of a connection or listener.
    pub fn set(&mut self, name: impl Into<SocketId>, option: SocketOption) -> Result<(), i32> {
        self.stack.set_option(name, option, self.now, &mut self.sink).map_err(|_| libc::EINVAL)
    }
    /// Resets a connection; the socket is done with it whatever the stack says.
    pub fn abort(&mut self, name: TcpSocketId) {
        let _ = self.tcp_mut().abort(name);
    }
    /// Closes a connection or listener; the socket is done with it whatever the stack says.
    pub fn close(&mut self, name: impl Into<SocketId>) {
        let _ = self.stack.close(name, self.now, &mut self.sink);
    }
    /// Writes of `bytes` what the socket `fd`, which holds the connection `name`, takes now. `end` says how a write of all of
    /// them ends, or of a part; `was_full`, whether there was no room the last time.
    pub fn write(
        &mut self,
        (fd, name): (i32, TcpSocketId),
        bytes: &[u8],
        was_full: &mut bool,
        end: impl Fn(bool) -> SendHow,
    ) -> Result<Result<Taken, StreamError>, i32> {
        let World { stack, descriptors, now, sink, .. } = self;
        let socket = descriptors.socket_mut(fd)?;
        let low_water = socket.low_water();
        Ok(match &mut socket.send_buffer {
            Some(buffer) => buffer.write((stack, name, low_water), bytes, was_full, end, (*now, sink)),
            None => {
                let sent = stack.tcp(*now, sink).send_with(name, bytes, end(true));
                sent.map(|bytes| Taken { bytes, goes: false })
            }
        })
    }
    /// Whether the tool's device was told to take nothing.
    pub fn set_device_takes_nothing(&mut self, takes_nothing: bool) {
        self.device_takes_nothing = takes_nothing;
    }
    /// Packets of the link that were dropped for a reason.
    pub fn dropped_for(&self, why: inhost_event::Drop) -> u64 {
        self.stack.instruments().link_counters(self.link).map_or(0, |link| link.dropped_for(why))
    }
    /// Makes `address` one of ours, when it is not: the tool tells addresses by `bind` and in packets only.
    pub fn learn(&mut self, address: IpAddr) {
        let learnable = !address.is_unspecified() && !address.is_multicast() && !address.is_loopback();
        if !learnable || self.stack.ip().paths().is_local(address) {
            return;
        }
        let Some(cidr) = self.flags.with_prefix(address) else { return };
        let (link, now) = (self.link, self.now);
        let added = self.stack.with_ip(now, &mut Ignore, |ip, env| ip.add_address(link, cidr, env));
        if let Err(why) = added {
            eprintln!("libinhost_packetdrill: {address} cannot be ours: {why}");
        }
    }
    /// Lets happen what happens at this moment: timers that are due, segments, readiness, and the completion of blocked
    /// calls with all that follows from it.
    pub fn run_until_idle(&mut self) {
        for _ in 0..PASSES_PER_MOMENT {
            if self.is_due() {
                self.stack.timeout(self.now, &mut Ignore);
            }
            self.note_room();
            // A writer that waits runs before the answer leaves, so that both leave together.
            let mut completed = self.complete_blocked(true);
            self.transmit();
            self.note_changes();
            self.note_completions();
            completed |= self.complete_blocked(false);
            let wants = self.stack.wants_transmit(self.link) && !self.device_takes_nothing;
            if !completed && !self.is_due() && !wants {
                return;
            }
        }
    }
    fn is_due(&self) -> bool {
        self.stack.deadline().is_some_and(|deadline| deadline <= self.now)
    }
    pub fn transmit(&mut self) {
        let World { stack, outbound, now, link, device_takes_nothing, .. } = self;
        if stack.wants_transmit(*link) {
            let mut device = Wire::new(outbound, *now, *device_takes_nothing);
            stack.transmit(*link, *now, FRAMES_PER_PASS, &mut device, &mut Ignore);
        }
    }
    fn note_changes(&mut self) {
        while let Some((name, _)) = self.stack.ready() {
            if let Some(fd) = self.descriptors.holder(name) {
                self.note_change(fd, name);
            }
        }
        self.note_room();
    }
    /// Tells those who watch a descriptor for edges what kind of change there was.
    fn note_change(&mut self, fd: i32, name: SocketId) {
        let info = self.tcp(name);
        let Ok(socket) = self.descriptors.socket_mut(fd) else { return };
        let Some(info) = info else {
            // A listener has somebody to accept.
            return self.descriptors.note(fd, POLLIN);
        };
        let seen = Seen {
            received_bytes: info.received_bytes,
            state: Some(info.state),
            failed: info.error.is_some(),
        };
        let before = std::mem::replace(&mut socket.seen, seen);
        let counts_room = socket.send_buffer.is_some();
        let mut events = 0;
        if seen.received_bytes != before.received_bytes {
            events |= POLLIN;
        }
        if seen.state != before.state || seen.failed != before.failed {
            events |= POLLIN | POLLOUT | POLLRDHUP | POLLHUP | POLLERR;
        }
        if !counts_room {
            events |= POLLOUT;
        }
        if events != 0 {
            self.descriptors.note(fd, events);
        }
    }
    /// Gives those room who wait for it, once there is enough to be worth telling.
    fn note_room(&mut self) {
        let now = self.now;
        for fd in self.descriptors.waiting_for_room() {
            let Ok(socket) = self.descriptors.socket(fd) else { continue };
            let queue = socket.connection().and_then(|name| {
                self.stack.instruments().connection(name).map(|connection| connection.sender().queue())
            });
            let (Some(queue), Ok(socket)) = (queue, self.descriptors.socket_mut(fd)) else { continue };
            let low_water = socket.low_water();
            let Some(buffer) = &mut socket.send_buffer else { continue };
            let room = buffer.look(&queue, low_water, now);
            if room {
                self.descriptors.note(fd, POLLOUT);
            }
        }
    }
    fn note_completions(&mut self) {
        for fd in self.descriptors.waiting_for_completions() {
            let Ok(socket) = self.descriptors.socket(fd) else { continue };
            let info = socket.connection().and_then(|name| self.tcp(name));
            let (queued, unsent) = info.map_or((0, 0), |info| (info.send_queue_bytes, info.not_sent_bytes));
            let now = self.now;
            let Ok(completions) = self.descriptors.completions_mut(fd) else { continue };
            let written = completions.written();
            let (sent, acknowledged) =
                (written.saturating_sub(unsent as u64), written.saturating_sub(queued as u64));
            if completions.progress(sent, acknowledged, now) {
                self.descriptors.note(fd, POLLERR);
            }
        }
    }
    /// Everything of a connection, for TCP_INFO and the buffers' figures.
    pub fn tcp(&self, socket: impl Into<SocketId>) -> Option<inhost_tcp::Info> {
        self.stack.instruments().info(socket, self.now)?.tcp
    }
}

/// What a connection begins with before any option.
fn initial_tcp(profile: Profile) -> TcpConfig {
    match profile {
        Profile::Rfc => TcpConfig::default(),
        Profile::Linux => crate::sysctl::tcp_config(),
    }
}
