//! The sockets of a host: the table, how a packet finds its socket, and the queues and timers that sockets stand in.

mod accept;
mod datagrams;
mod entry;
mod flow;
mod lookup;
mod names;
mod options;
mod table;

pub(crate) use entry::Socket;
pub(crate) use names::Target;

use crate::demux::Identity;
use crate::listen::Listening;
use crate::options::StackConfig;
use crate::schedule::Schedule;
use crate::socket::{SocketId, TcpSocketId};
use crate::tcp::{OptionalState, TcpSocketFlags};
use alloc::sync::Arc;
use inhost_base::{Endpoint, Instant, LinkId, Random, Slab};
use inhost_tcp::Config;
use names::{By, Named};

/// All sockets of a host, and everything that refers to one by its place: a socket that is removed is gone from every
/// table, queue and list. An identifier finds its socket while that lives, and never a later one at the same place.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Sockets {
    slab: Slab<Socket>,
    /// Connections among them.
    connections: usize,
    /// UDP, echo and probe sockets among them, those included that are closing.
    datagram_sockets: usize,
    datagram_limit: usize,
    orphan_limit: usize,
    /// How connections behave that are not told otherwise.
    // Written with the other configurations, each once.
    #[cfg_attr(feature = "freeze", serde(skip))]
    tcp: Arc<Config>,
    /// By their two ends, which is looked up first.
    flows: Named,
    /// Those that take from anybody, by their local end.
    bindings: Named,
    identity: Identity,
    /// Some binding accepts, or accepted, every address.
    any_address: bool,
    /// The last binding look-up, by transport and link, and its result. Valid until a socket is bound.
    // A cache.
    #[cfg_attr(feature = "freeze", serde(skip))]
    last_binding: Option<((u8, LinkId, Endpoint), SocketId)>,
    /// The flow that the last segment was for; it may be gone.
    last_flow: Option<TcpSocketId>,
    listening: Listening,
    schedule: Schedule,
    optional: OptionalState,
}

impl Sockets {
    pub(crate) fn new(config: &StackConfig, random: &mut Random, now: Instant) -> Sockets {
        Sockets {
            slab: Slab::new(config.socket_limit),
            connections: 0,
            datagram_sockets: 0,
            datagram_limit: config.datagram_socket_limit,
            orphan_limit: config.orphan_limit,
            tcp: Arc::new(config.tcp.clone()),
            flows: Named::new(random.private_key(), By::Flow),
            bindings: Named::new(random.private_key(), By::Binding),
            identity: Identity::new(
                (config.ephemeral_ports_first, config.ephemeral_ports_last),
                config.share,
                random,
            ),
            any_address: false,
            last_binding: None,
            last_flow: None,
            listening: Listening::new(&config.fast_open, random, now),
            schedule: Schedule::new(now),
            optional: OptionalState::default(),
        }
    }
    /// How connections behave that are not told otherwise.
    pub(crate) fn tcp_config(&self) -> &Arc<Config> {
        &self.tcp
    }
    /// Who wants to send, waits, or has news; timers.
    pub(crate) fn schedule(&self) -> &Schedule {
        &self.schedule
    }
    pub(crate) fn schedule_mut(&mut self) -> &mut Schedule {
        &mut self.schedule
    }
    /// The queues of listeners, SYN cookies and Fast Open.
    pub(crate) fn listening(&self) -> &Listening {
        &self.listening
    }
    pub(crate) fn listening_mut(&mut self) -> &mut Listening {
        &mut self.listening
    }
    /// State that few connections have.
    pub(crate) fn optional(&self) -> &OptionalState {
        &self.optional
    }
    /// Names a socket in the next [`crate::Stack::ready`], unless it is a connection that no application holds.
    #[inline]
    pub(crate) fn notify(&mut self, socket: SocketId) {
        let is_held =
            |socket: &Socket| !matches!(socket, Socket::Tcp(flow) if flow.has(TcpSocketFlags::SILENT));
        if self.any(socket).is_some_and(is_held) {
            self.schedule.notify(socket.0.index());
        }
    }
    /// Checks thawed sockets.
    #[cfg(feature = "freeze")]
    pub(crate) fn check(&mut self) -> Result<(), crate::Invalid> {
        self.slab.check()?;
        let connections = self.iter().filter(|(_, socket)| matches!(socket, Socket::Tcp(_))).count();
        let datagram_sockets = self.iter().filter(|(_, socket)| socket.datagrams().is_some()).count();
        let is_true = (connections, datagram_sockets) == (self.connections, self.datagram_sockets);
        crate::require(is_true, "the counts of sockets")?;
        let places = self.places();
        self.schedule.check(places)?;
        self.listening.check(places)
    }
    /// Gives thawed sockets what is not written with them.
    #[cfg(feature = "freeze")]
    pub(crate) fn set_tcp_config(&mut self, tcp: Arc<Config>) {
        self.tcp = tcp;
    }
    /// Gives a fork secrets of its own.
    #[cfg(feature = "freeze")]
    pub(crate) fn reseed(&mut self, random: &mut Random, now: Instant) {
        self.flows = Named::new(random.private_key(), By::Flow);
        self.bindings = Named::new(random.private_key(), By::Binding);
        self.identity.reseed(random);
        (self.last_binding, self.last_flow) = (None, None);
        self.listening.reseed(random, now);
    }
}
