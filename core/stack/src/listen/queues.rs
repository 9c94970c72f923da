//! The SYN queue and the accept queue of each listener, and their common limits.

use crate::listen::cookie::Cookies;
use crate::listen::fast_open::FastOpen;
use crate::options::FastOpenConfig;
use crate::socket::{ListenerId, TcpSocketId};
use inhost_base::{Instant, Lists, Random};

/// The list of a listener's half-open connections.
const fn syn_queue_of(listener: ListenerId) -> usize {
    listener.place() * 2
}
/// The list of a listener's connections that can be accepted.
const fn accept_queue_of(listener: ListenerId) -> usize {
    listener.place() * 2 + 1
}

/// The queues of all listeners, the key of SYN cookies, and the Fast Open state. A connection is in one queue at most.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Listening {
    queues: Lists,
    cookies: Cookies,
    fast_open: FastOpen,
}

impl Listening {
    pub(crate) fn new(config: &FastOpenConfig, random: &mut Random, now: Instant) -> Listening {
        Listening {
            queues: Lists::new(0),
            cookies: Cookies::new(random),
            fast_open: FastOpen::new(config, random, now),
        }
    }
    /// Checks thawed queues of places below `places`.
    #[cfg(feature = "freeze")]
    pub(crate) fn check(&self, places: usize) -> Result<(), crate::Invalid> {
        self.queues.check(places)
    }
    /// Gives a fork keys of its own.
    #[cfg(feature = "freeze")]
    pub(crate) fn reseed(&mut self, random: &mut Random, now: Instant) {
        self.cookies = Cookies::new(random);
        self.fast_open.reseed(random, now);
    }
    pub(crate) fn cookies(&self) -> &Cookies {
        &self.cookies
    }
    pub(crate) fn fast_open(&mut self) -> &mut FastOpen {
        &mut self.fast_open
    }
    /// Half-open connections in a listener's SYN queue.
    pub(crate) fn half_open(&self, listener: ListenerId) -> usize {
        self.queues.count(syn_queue_of(listener))
    }
    /// Connections in a listener's accept queue.
    pub(crate) fn acceptable(&self, listener: ListenerId) -> usize {
        self.queues.count(accept_queue_of(listener))
    }
    /// Puts a connection into a listener's SYN queue.
    pub(crate) fn add_half_open(&mut self, listener: ListenerId, id: TcpSocketId) {
        self.queues.push_back(syn_queue_of(listener), id.place());
    }
    /// Puts a connection into a listener's accept queue, out of its SYN queue.
    pub(crate) fn add_acceptable(&mut self, listener: ListenerId, id: TcpSocketId) {
        self.queues.push_back(accept_queue_of(listener), id.place());
    }
    /// Whether a connection is in a listener's accept queue.
    pub(crate) fn is_acceptable(&self, listener: ListenerId, id: TcpSocketId) -> bool {
        self.queues.list_of(id.place()) == Some(accept_queue_of(listener))
    }
    /// The place of a listener's oldest half-open connection.
    pub(crate) fn oldest_half_open(&self, listener: ListenerId) -> Option<usize> {
        self.queues.first(syn_queue_of(listener))
    }
    /// Takes a connection from a listener's accept queue: its place.
    pub(crate) fn pop_acceptable(&mut self, listener: ListenerId) -> Option<usize> {
        self.queues.pop_front(accept_queue_of(listener))
    }
    /// Takes a connection from the queues of a listener that closes: its place.
    pub(crate) fn pop_any(&mut self, listener: ListenerId) -> Option<usize> {
        self.queues.pop_front(syn_queue_of(listener)).or_else(|| self.pop_acceptable(listener))
    }
    /// Takes a connection that goes away out of its queue.
    pub(crate) fn forget(&mut self, id: TcpSocketId) {
        self.queues.remove(id.place());
    }
}
