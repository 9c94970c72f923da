//! ICMP redirects sent by a router: the sender has a better next hop on its own link.

use super::Forwarder;
use crate::output::IcmpMessage;
use crate::path::HeaderHow;
use crate::{IpEnvironment, scope};
use inhost_base::{IpAddr, LinkId};
use inhost_buf::Packet;
use inhost_wire::icmpv4::{Icmpv4Message, RedirectCode};
use inhost_wire::icmpv6::Icmpv6Message;
use inhost_wire::ipv6;
use inhost_wire::ndp::{self, NdpMessage, NdpOptions};

/// The front of an IPv4 packet that is quoted: header with all options, and 8 bytes.
const IPV4_QUOTE_BYTES: usize = 68;
/// The front of an IPv6 packet that is quoted, so that the redirect stays within 1280 bytes: IPv6 header, redirect, and
/// the heads of two options are 96.
const IPV6_QUOTE_BYTES: usize = ipv6::MINIMUM_MTU_BYTES - 96;

impl Forwarder<'_> {
    /// Tells `source` that `next_hop` is on the link by which its packet came in and leaves again, if both are there, and
    /// as often as errors may be sent.
    // spec: RFC1812 5.2.7.2, RFC4861 8.2
    pub(super) fn redirect(
        &mut self,
        link: LinkId,
        source: IpAddr,
        destination: IpAddr,
        next_hop: IpAddr,
        packet: &Packet,
        env: &mut IpEnvironment<'_>,
    ) {
        let Some(interface) = self.output.paths().interface(link) else { return };
        // spec: RFC1122 3.2.2.2-1
        let may_tell = self.forwarding.redirects
            && interface.hardware().is_some()
            && interface.is_on_link(source)
            && interface.is_on_link(next_hop);
        // A host believes a router only by its link-local address.
        let is_tellable = next_hop.is_ipv4() || next_hop == destination || scope::is_link_local(next_hop);
        let own = interface.link_local().filter(|_| source.is_ipv6()).map(IpAddr::V6);
        if !may_tell || !is_tellable || source.is_ipv6() && own.is_none() {
            return;
        }
        let Ok(path) = self.output.paths_mut().route(source, own, Some(link), env.now()) else { return };
        if path.next_hop != source || !self.output.is_within_limit(env.now(), env.random()) {
            return;
        }
        let (message, hop_limit) = match (next_hop, destination) {
            (IpAddr::V6(target), IpAddr::V6(destination)) => {
                let interface = self.output.paths().interface(link);
                let target_link_layer = interface.and_then(|link| link.known_hardware(next_hop));
                let redirected = Some(front(packet, IPV6_QUOTE_BYTES));
                let options = NdpOptions { target_link_layer, redirected, ..NdpOptions::default() };
                let message = NdpMessage::Redirect { target, destination, options };
                (IcmpMessage::V6(Icmpv6Message::Ndp(message)), Some(ndp::HOP_LIMIT))
            }
            (IpAddr::V4(gateway), _) => {
                let invoking = front(packet, IPV4_QUOTE_BYTES);
                // spec: RFC1812 4.3.3.2
                let message = Icmpv4Message::Redirect { code: RedirectCode::Host, gateway, invoking };
                (IcmpMessage::V4(message), None)
            }
            _ => return,
        };
        let how = HeaderHow { hop_limit, ..HeaderHow::new(message.protocol()) };
        let queued = self.output.queue_message(&path, &how, None, &message, env);
        if queued.is_ok() {
            self.output.paths_mut().count(link, |counters| counters.sent_redirects += 1);
        }
    }
}

fn front(packet: &Packet, bytes: usize) -> &[u8] {
    packet.bytes().get(..bytes).unwrap_or(packet.bytes())
}
