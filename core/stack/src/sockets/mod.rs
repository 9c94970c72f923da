//! The sockets of a host: the table, how a packet finds its socket, and the queues and timers that sockets stand in.

mod accept;
mod datagrams;
mod entry;
mod flow;
mod lookup;
mod options;
mod table;

pub(crate) use entry::Socket;
pub(crate) use lookup::Target;

use crate::listen::Listening;
use crate::options::StackConfig;
use crate::schedule::Schedule;
use crate::socket::SocketId;
use crate::tcp::OptionalState;
use alloc::sync::Arc;
use inhost_base::{Instant, Random, Slab};
use inhost_tcp::Config;
use lookup::Lookup;

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
    lookup: Lookup,
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
            lookup: Lookup::new(config, random),
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
    #[inline(always)]
    pub(crate) fn schedule(&self) -> &Schedule {
        &self.schedule
    }
    #[inline(always)]
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
    /// Names a socket in the next [`crate::Stack::ready`].
    #[inline]
    pub(crate) fn notify(&mut self, socket: SocketId) {
        self.schedule.notify(socket.0.index());
    }
    /// Lets a socket that found no memory to send try again soon.
    pub(crate) fn wait_for_memory(&mut self, socket: SocketId, now: Instant) {
        self.schedule.wait_for_memory(socket.0.index(), now);
    }
    /// Checks thawed sockets.
    #[cfg(feature = "freeze")]
    pub(crate) fn check(&mut self) -> Result<(), inhost_base::freeze::Invalid> {
        self.check_table()?;
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
    pub(crate) fn reseed(&mut self, config: &StackConfig, random: &mut Random, now: Instant) {
        self.lookup.reseed(config, random);
        self.listening.reseed(random, now);
    }
}
