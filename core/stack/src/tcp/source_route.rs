//! Source routes that accepted connections learn from their caller.

use crate::parts::Parts;
use crate::sockets::TcpSocketId;
use inhost_base::Instant;

impl Parts {
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
        if self.ip.paths_mut().route_by(&route, remote.address, Some(local.address), link, now).is_err() {
            return;
        }
        self.source_routes.insert(key, Some(route));
        let generation = self.ip.paths().generation();
        if let Some(flow) = self.sockets.tcp_mut(key) {
            // The path, and what then fits a segment, are asked for before the next one leaves.
            flow.expire_path(generation);
        }
    }
}
