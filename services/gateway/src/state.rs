//! Shared state of a gateway's tasks.

use crate::aside::SharedAside;
use crate::config::GatewayConfig;
use inhost_base::{Duration, Endpoint, Instant, IpAddr};
use inhost_runtime::Reactor;
use inhost_socket::Host;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

/// Reports of want of descriptors go no faster than this.
const REPORTS_APART: Duration = Duration::from_secs(10);
/// The first ephemeral port.
const FIRST_PORT: u16 = 49_152;

/// Bytes moved at a time; all connections of a gateway share the place for them.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;
/// Where bytes lie while they are moved; nothing stays in it.
pub(crate) type Scratch = Rc<RefCell<Vec<u8>>>;

/// Counters since start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Connections that the guest opened.
    pub connections_outward: u64,
    /// Connections that came in through forwarded ports.
    pub connections_inward: u64,
    /// Connections refused, to either side: by the other end, by the configuration, or for want of room.
    pub connections_refused: u64,
    /// Connections of the guest's given up because the system got no answer.
    pub connections_unanswered: u64,
    /// Connections of the guest's to where the system has no way.
    pub connections_unreachable: u64,
    /// Connections that ended in a reset.
    pub connections_reset: u64,
    /// UDP conversations begun.
    pub udp_flows: u64,
    /// Datagrams carried from the guest.
    pub datagrams_outward: u64,
    /// Datagrams carried to the guest.
    pub datagrams_inward: u64,
    /// Datagrams lost: not allowed, no room, or no socket.
    pub datagrams_dropped: u64,
    /// Times that the system had no descriptor or no memory for a socket of ours.
    pub exhausted: u64,
    /// Echo requests passed on.
    pub echoes: u64,
}

/// What the gateway's tasks share.
pub(crate) struct State {
    pub(crate) host: Host,
    pub(crate) reactor: Reactor,
    pub(crate) config: GatewayConfig,
    pub(crate) aside: SharedAside,
    pub(crate) scratch: Scratch,
    pub(crate) counters: Cell<Counters>,
    connections: Cell<usize>,
    /// Forwarded connections of each outer caller that has any.
    callers: RefCell<BTreeMap<IpAddr, usize>>,
    udp_flows: Cell<usize>,
    /// The port from which the next forwarded connection reaches the guest.
    next_port: Cell<u16>,
    /// When want of descriptors was last reported.
    reported: Cell<Option<Instant>>,
    /// Which of the name servers is asked first: the one that answered last.
    resolver: Cell<usize>,
}

impl State {
    pub(crate) fn new(
        host: &Host,
        reactor: &Reactor,
        config: GatewayConfig,
        aside: &SharedAside,
    ) -> Rc<State> {
        Rc::new(State {
            host: host.clone(),
            reactor: reactor.clone(),
            config,
            aside: aside.clone(),
            scratch: Rc::new(RefCell::new(vec![0; CHUNK_BYTES])),
            counters: Cell::default(),
            connections: Cell::new(0),
            callers: RefCell::default(),
            udp_flows: Cell::new(0),
            next_port: Cell::new(FIRST_PORT),
            reported: Cell::new(None),
            resolver: Cell::new(0),
        })
    }
    pub(crate) fn count(&self, change: impl FnOnce(&mut Counters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }
    pub(crate) fn connections(&self) -> usize {
        self.connections.get()
    }
    pub(crate) fn udp_flows(&self) -> usize {
        self.udp_flows.get()
    }
    /// Whether the system had no descriptor or no memory for a socket, and not its peer. It is counted, and reported now
    /// and then.
    pub(crate) fn is_exhausted(&self, error: &io::Error) -> bool {
        use rustix::io::Errno;
        let wants = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
        let is_exhausted = wants.iter().any(|want| error.raw_os_error() == Some(want.raw_os_error()));
        if is_exhausted {
            self.count(|c| c.exhausted += 1);
            let now = self.host.now();
            if self.reported.get().is_none_or(|reported| now.since(reported) >= REPORTS_APART) {
                self.reported.set(Some(now));
                tracing::warn!(
                    target: "gateway",
                    connections = self.connections(),
                    udp_flows = self.udp_flows(),
                    "no socket can be opened: {error}; raise the limit on open files, or lower what is served"
                );
            }
        }
        is_exhausted
    }
    /// A place for one more connection, if there is one.
    pub(crate) fn place(self: &Rc<State>) -> Option<Place> {
        let taken = self.connections.get();
        (taken < self.config.connections_limit).then(|| {
            self.connections.set(taken + 1);
            Place { state: self.clone(), caller: None }
        })
    }
    /// A place for one more connection of `caller`, if there is one for it.
    pub(crate) fn place_of(self: &Rc<State>, caller: IpAddr) -> Option<Place> {
        let caller = inhost_common::network(caller);
        let taken = self.callers.borrow().get(&caller).copied().unwrap_or(0);
        if taken >= self.config.connections_per_caller {
            return None;
        }
        let mut place = self.place()?;
        self.callers.borrow_mut().insert(caller, taken + 1);
        place.caller = Some(caller);
        Some(place)
    }
    /// The port after the last one given, out of the ephemeral range (RFC 6335 §6). Ports are given in turn, so that one
    /// comes again as late as possible.
    pub(crate) fn port(&self) -> u16 {
        let port = self.next_port.get();
        self.next_port.set(port.checked_add(1).unwrap_or(FIRST_PORT));
        port
    }
    /// The name server to ask now, and its number.
    pub(crate) fn resolver(&self) -> Option<(usize, Endpoint)> {
        let resolvers = &self.config.resolvers;
        let number = self.resolver.get() % resolvers.len().max(1);
        resolvers.get(number).map(|&resolver| (number, resolver))
    }
    /// The name server of `number` did not answer: others are asked from now on.
    pub(crate) fn resolver_failed(&self, number: usize) {
        if self.resolver.get() == number {
            self.resolver.set((number + 1) % self.config.resolvers.len().max(1));
        }
    }
}

/// One UDP conversation, counted while it lives.
pub(crate) struct Counted(Rc<State>);

impl Counted {
    pub(crate) fn new(state: &Rc<State>) -> Counted {
        state.udp_flows.set(state.udp_flows.get() + 1);
        state.count(|c| c.udp_flows += 1);
        Counted(state.clone())
    }
}
impl Drop for Counted {
    fn drop(&mut self) {
        self.0.udp_flows.set(self.0.udp_flows.get().saturating_sub(1));
    }
}

/// One of the places for connections, given back when it is dropped.
pub(crate) struct Place {
    state: Rc<State>,
    /// Whose it is, when it came from outside.
    caller: Option<IpAddr>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let State { connections, callers, .. } = &*self.state;
        connections.set(connections.get().saturating_sub(1));
        let Some(caller) = self.caller else { return };
        let mut callers = callers.borrow_mut();
        let left = callers.get(&caller).map_or(0, |taken| taken.saturating_sub(1));
        match left {
            0 => callers.remove(&caller),
            _ => callers.insert(caller, left),
        };
    }
}
