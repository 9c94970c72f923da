//! Optional state of a connection: the linger deadline and other instants that few connections have.

use crate::sockets::{Sockets, TcpSocketFlags, TcpSocketId};
use alloc::collections::BTreeMap;
use inhost_base::{Duration, Instant};

/// Optional state of connections, by place. Each of them bears [`TcpSocketFlags::OPTIONAL_STATE`].
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct OptionalState {
    by_place: BTreeMap<usize, Entry>,
}

/// One connection's.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Entry {
    /// Linger time.
    linger: Option<Duration>,
    /// When that, or the wait for the first data, is over.
    until: Option<Instant>,
}

impl OptionalState {
    fn entry_mut(&mut self, sockets: &mut Sockets, id: TcpSocketId) -> &mut Entry {
        if let Some(flow) = sockets.tcp_mut(id) {
            flow.set(TcpSocketFlags::OPTIONAL_STATE);
        }
        self.by_place.entry(id.place()).or_default()
    }
    /// Linger time.
    pub(crate) fn linger(&self, id: TcpSocketId) -> Option<Duration> {
        self.by_place.get(&id.place())?.linger
    }
    pub(crate) fn set_linger(&mut self, sockets: &mut Sockets, id: TcpSocketId, linger: Option<Duration>) {
        self.entry_mut(sockets, id).linger = linger;
    }
    /// When the linger time, or the wait for the first data, is over; far in the future where there is none.
    pub(crate) fn until(&self, id: TcpSocketId) -> Instant {
        self.by_place.get(&id.place()).and_then(|entry| entry.until).unwrap_or(Instant::FAR_FUTURE)
    }
    pub(crate) fn set_until(&mut self, sockets: &mut Sockets, id: TcpSocketId, until: Option<Instant>) {
        self.entry_mut(sockets, id).until = until;
    }
    /// Forgets a connection that goes away.
    pub(crate) fn forget(&mut self, id: TcpSocketId) {
        self.by_place.remove(&id.place());
    }
}
