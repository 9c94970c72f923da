//! The table of connections' source routes.

use crate::socket::TcpSocketId;
use alloc::collections::BTreeMap;
use inhost_base::{Instant, IpAddr, LinkId};
use inhost_ip::{HeaderOptions, Ip, Ipv4Options, Path, Paths, RouteError, SourceRoute};

/// Most connections of a host that keep to a source route.
pub(crate) const ROUTED_LIMIT: usize = 1024;

/// The routes, by the place of their flow. They are rare, so that a flow holds no more of them than their length.
#[derive(Debug, Default)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SourceRoutes {
    by_place: BTreeMap<usize, SourceRoute>,
}

impl SourceRoutes {
    /// Whether there is room for one more.
    pub(crate) fn has_room(&self) -> bool {
        self.by_place.len() < ROUTED_LIMIT
    }
    /// Keeps the route of a flow.
    pub(crate) fn insert(&mut self, key: TcpSocketId, route: Option<SourceRoute>) {
        if let Some(route) = route {
            self.by_place.insert(key.place(), route);
        }
    }
    /// The route of a flow.
    pub(crate) fn of(&self, place: usize) -> Option<SourceRoute> {
        self.by_place.get(&place).copied()
    }
    /// Forgets that of a flow that is gone.
    pub(crate) fn remove(&mut self, place: usize) {
        self.by_place.remove(&place);
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
        match self.has_room() {
            true => paths.route_by(route, remote, local, link, now),
            false => Err(RouteError::NoRoute),
        }
    }
    /// Header options of a connection with a source route.
    // spec: RFC9293 MUST-51
    pub(crate) fn header_options(
        &self,
        ip: &Ip,
        id: TcpSocketId,
        path: &Path,
        now: Instant,
    ) -> Option<HeaderOptions> {
        let source_route = self.of(id.place());
        let mut options = Ipv4Options::default();
        options.source_route = source_route;
        ip.header_options(&options, path, now)
    }
}
