//! Connections that keep to a source route: those that were opened with one, and those whose caller came by one.

use crate::parts::Parts;
use crate::sockets::TcpSocketId;
use inhost_base::{Endpoint, Instant, LinkId};
use inhost_ip::{HeaderOptions, Ipv4Options, Path, RouteError, SourceRoute};
use std::collections::BTreeMap;

/// Most connections of a host that keep to a source route.
pub(crate) const ROUTED_LIMIT: usize = 1024;

/// The routes, by the place of their flow. They are rare, so that a flow holds no more of them than their length.
#[derive(Debug, Default)]
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
}

impl Parts {
    /// The way of a connection that keeps to `route`.
    pub(crate) fn route_by(
        &mut self,
        route: &SourceRoute,
        local: Option<inhost_base::IpAddr>,
        remote: Endpoint,
        link: Option<LinkId>,
        now: Instant,
    ) -> Result<Path, RouteError> {
        match self.source_routes.has_room() {
            true => self.ip.route_by(route, remote.address, local, link, now),
            false => Err(RouteError::NoRoute),
        }
    }
    /// What the headers of a flow bear that keeps to a source route.
    // spec: RFC9293 MUST-51
    pub(crate) fn routed_options(
        &self,
        key: TcpSocketId,
        path: &Path,
        now: Instant,
    ) -> Option<HeaderOptions> {
        let source_route = self.source_routes.of(key.place());
        self.ip.header_options(&Ipv4Options { source_route, ..Ipv4Options::default() }, path, now)
    }
    /// A segment that a connection took came by a source route: from now on it is answered by the same. Where we called
    /// it is the application that chose the way.
    // spec: RFC9293 MUST-52, MUST-53, SHLD-24
    pub(crate) fn learn_route(&mut self, key: TcpSocketId, now: Instant) {
        let Some(route) = self.ip.return_route().copied() else { return };
        let Some(flow) = self.sockets.tcp(key) else { return };
        let (local, remote, link) = (flow.local(), flow.remote(), flow.bound_link());
        let held = self.source_routes.of(key.place());
        if flow.listener().is_none()
            || held == Some(route)
            || held.is_none() && !self.source_routes.has_room()
        {
            return;
        }
        if self.ip.route_by(&route, remote.address, Some(local.address), link, now).is_err() {
            return;
        }
        self.source_routes.insert(key, Some(route));
        let generation = self.ip.generation();
        if let Some(flow) = self.sockets.tcp_mut(key) {
            // The path, and what then fits a segment, are asked for before the next one leaves.
            flow.expire_path(generation);
        }
    }
}
