//! IPv6 forwarding (RFC 8200, RFC 4443).

use super::Forwarder;
use crate::output::errors::IcmpError;
use crate::received::Received;
use crate::{IpEnvironment, scope};
use inhost_base::{IpAddr, LinkId};
use inhost_buf::Packet;
use inhost_event::Drop;
use inhost_wire::ipv6::{self, ExtensionError, Ipv6Header, Ipv6View};

impl Forwarder<'_> {
    /// Sends a packet on. Its window begins at its header and ends where the packet does. Of its extension headers only
    /// the hop-by-hop options are looked at.
    // spec: RFC8200 3, 4
    pub(crate) fn forward_ipv6(
        &mut self,
        link: LinkId,
        packet: &mut Packet,
        env: &mut IpEnvironment<'_>,
    ) -> Result<Received, Drop> {
        let view = Ipv6View::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
        let (header, total_bytes) = (Ipv6Header::parse(&view), view.total_length());
        match ipv6::check_hop_by_hop(&view) {
            Ok(()) => {}
            Err(ExtensionError::ParameterProblem { code, pointer, .. }) => {
                let error = IcmpError::ParameterProblem { code, pointer };
                return Err(self.output.refuse(link, Drop::BadOption, error, packet, env));
            }
            Err(ExtensionError::Discard(_)) => return Err(Drop::BadOption),
        }
        // spec: RFC4443 3.3
        if header.hop_limit <= 1 {
            return Err(self.output.refuse(link, Drop::HopLimit, IcmpError::TimeExceeded, packet, env));
        }
        let (source, destination) = (IpAddr::V6(header.source), IpAddr::V6(header.destination));
        let Some(route) = self.output.paths_mut().forwarding_decision(destination, env.now()) else {
            return Err(self.output.refuse(link, Drop::NoRoute, IcmpError::NetworkUnreachable, packet, env));
        };
        let interface = self.output.paths().interface(route.link).filter(|interface| interface.config().ipv6);
        let mtu_bytes = interface.ok_or(Drop::NoRoute)?.mtu_bytes(true);
        // spec: RFC8200 5, RFC4443 3.2
        if total_bytes > usize::from(mtu_bytes) {
            let error = IcmpError::TooBig { mtu_bytes };
            return Err(self.output.refuse(link, Drop::TooBig, error, packet, env));
        }
        if route.link == link {
            self.redirect(link, source, destination, route.next_hop, packet, env);
        }
        if let Some(hops) = packet.bytes_mut().get_mut(7) {
            *hops = header.hop_limit - 1;
        }
        self.send_on(link, route, packet.take(), env)?;
        Ok(Received::Handled)
    }
    /// Tells the sender of a packet that its link-local source means nothing where the packet is for.
    // spec: RFC4443 3.1, RFC4291 2.5.6
    pub(crate) fn refuse_beyond_scope(
        &mut self,
        link: LinkId,
        source: IpAddr,
        destination: IpAddr,
        packet: &Packet,
        env: &mut IpEnvironment<'_>,
    ) {
        let is_beyond =
            source.is_ipv6() && scope::is_link_local(source) && scope::is_forwardable(destination);
        if is_beyond {
            self.output.send_error(link, IcmpError::BeyondScope, packet.bytes(), env);
        }
    }
}
