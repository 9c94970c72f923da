//! The host part of MLDv1 (RFC 2710). It runs on Ethernet links only.

use crate::arrival::Arrival;
use crate::interface::Interface;
use crate::{IpEnvironment, scope};
use inhost_base::Ipv6Addr;
use inhost_buf::Pool;
use inhost_event::Drop;
use inhost_wire::ethernet::EtherType;
use inhost_wire::icmpv6::Icmpv6Message;
use inhost_wire::ipv6::{self, Ipv6Header};
use inhost_wire::mld::{self, MldMessage};
use inhost_wire::protocol;

/// Tells the link's routers that `group` has a listener.
// spec: RFC2710 4
pub(crate) fn send_report(interface: &mut Interface, group: Ipv6Addr, pool: &mut Pool) {
    send(interface, group, MldMessage::Report { group }, pool);
}

/// Tells them that `group` may have none any more.
// spec: RFC2710 4
pub(crate) fn send_done(interface: &mut Interface, group: Ipv6Addr, pool: &mut Pool) {
    send(interface, scope::ALL_ROUTERS, MldMessage::Done { group }, pool);
}

/// From the link-local address, or from none while that is being tested (RFC 3590 §4).
// spec: RFC2710 3, RFC3590 4
fn send(interface: &mut Interface, destination: Ipv6Addr, message: MldMessage, pool: &mut Pool) {
    if interface.hardware().is_none() {
        return;
    }
    let source = interface.link_local().unwrap_or(Ipv6Addr::UNSPECIFIED);
    let message = Icmpv6Message::Mld(message);
    let length = ipv6::MLD_HOP_BY_HOP_LENGTH + message.length();
    let Some(mut packet) = interface.take_packet(ipv6::LENGTH + length, pool) else { return };
    let header = Ipv6Header {
        hop_limit: mld::HOP_LIMIT,
        ..Ipv6Header::new(source, destination, protocol::HOP_BY_HOP, length as u16)
    };
    packet.append_with(|into| header.emit(into));
    packet.append_with(ipv6::emit_mld_hop_by_hop);
    packet.append_with(|into| message.emit(source, destination, into));
    let to = scope::group_hardware(destination.into());
    interface.push_frame(packet, EtherType::IPV6, to, pool);
}

impl Interface {
    /// Takes a message. It must come from the link itself, with a router alert.
    // spec: RFC2710 3, 4, 5
    pub(crate) fn receive_mld(
        &mut self,
        arrival: &Arrival,
        source: Ipv6Addr,
        message: &MldMessage,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), Drop> {
        let is_local = source.is_unicast_link_local()
            || source.is_unspecified() && !matches!(message, MldMessage::Query { .. });
        if arrival.hop_limit != mld::HOP_LIMIT || !arrival.has_router_alert || !is_local {
            return Err(Drop::NotCredible);
        }
        match *message {
            MldMessage::Query { group, .. } => {
                self.group_queried(group.into(), message.max_response(), env.now(), env.random());
            }
            MldMessage::Report { group } => self.group_reported(group.into()),
            // For routers.
            MldMessage::Done { .. } => {}
        }
        Ok(())
    }
}
