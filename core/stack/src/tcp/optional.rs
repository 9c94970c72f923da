//! Optional state of connections: the linger time and other instants, and source routes, that few of them have.

use crate::socket::TcpSocketId;
use crate::tcp::routes::SourceRoutes;
use alloc::collections::BTreeMap;
use inhost_base::{Duration, Instant};

/// Optional state of connections, by place. Those with a time bear [`crate::tcp::TcpSocketFlags::OPTIONAL_STATE`].
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct OptionalState {
    times: BTreeMap<usize, Times>,
    routes: SourceRoutes,
}

/// One connection's.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Times {
    /// Linger time.
    linger: Option<Duration>,
    /// When that, or the wait for the first data, is over.
    until: Option<Instant>,
}

impl OptionalState {
    /// Linger time.
    pub(crate) fn linger(&self, id: TcpSocketId) -> Option<Duration> {
        self.times.get(&id.place())?.linger
    }
    pub(crate) fn set_linger(&mut self, id: TcpSocketId, linger: Option<Duration>) {
        self.times.entry(id.place()).or_default().linger = linger;
    }
    /// When the linger time, or the wait for the first data, is over; far in the future where there is none.
    pub(crate) fn until(&self, id: TcpSocketId) -> Instant {
        self.times.get(&id.place()).and_then(|times| times.until).unwrap_or(Instant::FAR_FUTURE)
    }
    pub(crate) fn set_until(&mut self, id: TcpSocketId, until: Option<Instant>) {
        self.times.entry(id.place()).or_default().until = until;
    }
    /// The source routes.
    pub(crate) fn routes(&self) -> &SourceRoutes {
        &self.routes
    }
    pub(crate) fn routes_mut(&mut self) -> &mut SourceRoutes {
        &mut self.routes
    }
    /// Forgets a connection that goes away, of which times are kept if it `has_times`.
    pub(crate) fn forget(&mut self, id: TcpSocketId, has_times: bool) {
        self.routes.remove(id.place());
        if has_times {
            self.times.remove(&id.place());
        }
    }
}
