//! Listeners: their SYN queue, their accept queue, and the connections that wait in them.

use crate::fast_open::Pending;
use crate::options::ListenOptions;
use crate::sockets::Inherited;
use inhost_base::{Endpoint, Instant};
use inhost_tcp::Config;
use std::sync::Arc;

/// A listener. The two queues are lists of the stack's, named by the listener's place.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) local: Endpoint,
    pub(crate) options: ListenOptions,
    pub(crate) tcp: Arc<Config>,
    /// What its connections begin with beside that.
    pub(crate) inherited: Inherited,
    pub(crate) opened: Instant,
    /// SYNs that were not taken for want of room.
    pub(crate) overflows: u64,
    /// Until then an acknowledgment may bring back a cookie.
    pub(crate) cookies_until: Instant,
    /// Connections whose data was taken with their SYN.
    pub(crate) fast_open: Pending,
}

/// The list of a listener's handshakes in progress.
pub(crate) const fn embryos_of(place: usize) -> usize {
    place * 2
}
/// The list of a listener's connections that can be accepted.
pub(crate) const fn acceptable_of(place: usize) -> usize {
    place * 2 + 1
}
