//! The turn of a connection in an output pass.

use crate::flows::{apply, ask_path, tell};
use crate::output::{CommonHeader, Segments, Turn};
use crate::pass::Pass;
use crate::socket::TcpSocketId;
use crate::tcp::{TcpSocketFlags, segment_limit};
use inhost_event::Layer;
use inhost_ip::{HeaderHow, Resolution, RouteError};
use inhost_tcp::{Connection, SoftError};
use inhost_wire::protocol;

impl Pass<'_, '_, '_> {
    pub(super) fn flow_turn(&mut self, key: TcpSocketId, budget: usize) -> Turn {
        let (link, now) = (self.link, self.env.now());
        let Some(mut flow) = self.sockets.tcp(key) else { return Turn::Done };
        if !flow.has_path_of(self.env.paths().generation()) {
            if let Err(why) = self.refresh_path(key) {
                let no_route = why == RouteError::NoRoute;
                let what = if no_route { SoftError::NetworkUnreachable } else { SoftError::Unreachable };
                return self.flow_unreachable(key, what, why != RouteError::Tentative);
            }
            let Some(refreshed) = self.sockets.tcp(key) else { return Turn::Done };
            flow = refreshed;
        }
        let path = flow.path();
        if path.link != link {
            self.sockets.schedule_mut().queue_sender(path.link, key.place());
            return Turn::Done;
        }
        self.env.begin_layer(Layer::Ip);
        let (ip, mut environment) = self.env.ip();
        let resolved = ip.paths_mut().resolve(&path, &mut environment);
        self.env.end_layer();
        let link_header = match resolved {
            Resolution::Ready(link_header) => link_header,
            Resolution::Pending => return Turn::Pending(path.next_hop),
            Resolution::Failed => return self.flow_unreachable(key, SoftError::Unreachable, true),
        };
        let mut how = HeaderHow::new(protocol::TCP);
        how.dont_fragment = !flow.has(TcpSocketFlags::FRAGMENTS);
        how.dscp_ecn = flow.traffic_class();
        // spec: RFC9293 MUST-49
        how.hop_limit = flow.hop_limit();
        let (local_port, remote_port) = (flow.local().port, flow.remote().port);
        let options = match flow.is_routed() {
            true => {
                self.env.network().ip().header_options(&self.sockets.optional().ip_options(key), &path, now)
            }
            false => None,
        };
        let gso = self.env.network().links().takes_gso(link);
        let before = self.device.frames();
        let common = CommonHeader {
            path: &path,
            link_header,
            how,
            options: options.as_ref(),
            local_port,
            remote_port,
        };
        let (ip, mut environment) = self.env.ip_and_tcp(key.key());
        let mut output = Segments::new(ip, &mut self.device, &common, gso);
        let transmit = |flow: &mut Connection| flow.transmit(&mut environment, budget, &mut output);
        let Some(changes) = self.sockets.change(key, now, transmit) else { return Turn::Done };
        let stuck = self.device.frames() == before;
        if !changes.is_empty() {
            tell(self.sockets, key, changes, self.env);
        }
        // It was queued again if it has more to send.
        match self.sockets.schedule().is_sending(key.place()) {
            _ if self.device.is_full() => Turn::Full,
            // A segment that cannot be made, whatever the reason, must not keep the driver busy.
            true if stuck => Turn::Unreachable,
            true => Turn::More,
            false => Turn::Done,
        }
    }

    /// Asks for the route again, since the tables have changed.
    #[inline(never)]
    fn refresh_path(&mut self, key: TcpSocketId) -> Result<(), RouteError> {
        let path = ask_path(self.sockets, key, self.env)?;
        let Some(flow) = self.sockets.tcp_mut(key) else { return Ok(()) };
        let shrunk_or_grown = path.payload_limit_bytes() != flow.path().payload_limit_bytes();
        flow.set_path(&path);
        if shrunk_or_grown {
            flow.connection_mut().set_path_mtu_mss(segment_limit(&path), &mut self.env.tcp(key.key()));
        }
        Ok(())
    }

    /// Tells a connection that it has no route, or that its first hop does not answer: that ends an attempt to open, and
    /// nothing else.
    fn flow_unreachable(&mut self, key: TcpSocketId, what: SoftError, ends_opening: bool) -> Turn {
        let Some(flow) = self.sockets.tcp_mut(key) else { return Turn::Done };
        if flow.is_opening() && !ends_opening {
            return Turn::Unreachable;
        }
        let outcome = flow.connection_mut().cannot_leave(what, &mut self.env.tcp(key.key()));
        apply(self.sockets, key, &outcome, self.env);
        Turn::Unreachable
    }
}
