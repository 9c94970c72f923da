//! Optional state of connections: the linger time and other instants, and source routes, that few of them have.

use crate::socket::TcpSocketId;
use alloc::collections::BTreeMap;
use inhost_base::{Duration, Instant, IpAddr, LinkId};
use inhost_ip::{Ipv4Options, Path, Paths, RouteError, SourceRoute};

/// Most connections of a host that keep to a source route.
const ROUTED_LIMIT: usize = 1024;

/// Optional state of connections, by place. Those with a time bear [`crate::tcp::TcpSocketFlags::OPTIONAL_STATE`].
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct OptionalState {
    times: BTreeMap<usize, Times>,
    routes: BTreeMap<usize, SourceRoute>,
}

/// Optional times of a connection.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Times {
    /// Linger time.
    pub(crate) linger: Option<Duration>,
    /// When that, or the wait for the first data, is over.
    pub(crate) until: Option<Instant>,
}

impl OptionalState {
    /// Linger time.
    pub(crate) fn linger(&self, id: TcpSocketId) -> Option<Duration> {
        self.times.get(&id.place())?.linger
    }
    /// When the linger time, or the wait for the first data, is over; far in the future where there is none.
    pub(crate) fn until(&self, id: TcpSocketId) -> Instant {
        self.times.get(&id.place()).and_then(|times| times.until).unwrap_or(Instant::FAR_FUTURE)
    }
    /// The times of a connection, to change.
    pub(crate) fn times_mut(&mut self, id: TcpSocketId) -> &mut Times {
        self.times.entry(id.place()).or_default()
    }
    /// The source route that a connection keeps to.
    pub(crate) fn route(&self, id: TcpSocketId) -> Option<SourceRoute> {
        self.routes.get(&id.place()).copied()
    }
    pub(crate) fn set_route(&mut self, id: TcpSocketId, route: SourceRoute) {
        self.routes.insert(id.place(), route);
    }
    /// Whether one more connection may keep to a source route.
    pub(crate) fn has_room_for_route(&self) -> bool {
        self.routes.len() < ROUTED_LIMIT
    }
    /// The path of a connection that keeps to `route`, while there is room for one more.
    pub(crate) fn path_by(
        &self,
        paths: &mut Paths,
        route: &SourceRoute,
        (local, remote): (Option<IpAddr>, IpAddr),
        link: Option<LinkId>,
        now: Instant,
    ) -> Result<Path, RouteError> {
        match self.has_room_for_route() {
            true => paths.route_by(route, remote, local, link, now),
            false => Err(RouteError::NoRoute),
        }
    }
    /// The IP options of a connection's headers.
    // spec: RFC9293 MUST-51
    pub(crate) fn ip_options(&self, id: TcpSocketId) -> Ipv4Options {
        let mut options = Ipv4Options::default();
        options.source_route = self.route(id);
        options
    }
    /// Forgets a connection that goes away, of which times are kept if it `has_times`.
    pub(crate) fn forget(&mut self, id: TcpSocketId, has_times: bool) {
        self.routes.remove(&id.place());
        if has_times {
            self.times.remove(&id.place());
        }
    }
}
