//! The host part of MLDv1 (RFC 2710). It runs on Ethernet links only.

use crate::arrival::Envelope;
use crate::interface::Interface;
use crate::{IpEnvironment, scope};
use inhost_base::{IpAddr, Ipv6Addr};
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
    let source = match interface.link_local() {
        Some(IpAddr::V6(source)) => source,
        _ => Ipv6Addr::UNSPECIFIED,
    };
    let message = Icmpv6Message::Mld(message);
    let length = ipv6::MLD_HOP_BY_HOP_LENGTH + message.length();
    let Some(mut packet) = pool.take(ipv6::LENGTH + length) else {
        interface.counters.lost_control_frames += 1;
        return;
    };
    let header = Ipv6Header {
        hop_limit: mld::HOP_LIMIT,
        ..Ipv6Header::new(source, destination, protocol::HOP_BY_HOP, length as u16)
    };
    packet.append_with(|into| header.emit(into));
    packet.append_with(|into| ipv6::emit_mld_hop_by_hop(into));
    packet.append_with(|into| message.emit(source, destination, into));
    let to = scope::group_hardware(destination.into());
    interface.push_frame(packet, EtherType::IPV6, to, pool);
}

impl Interface {
    /// Takes a message. It must come from the link itself, with a router alert.
    // spec: RFC2710 3, 4, 5
    pub(crate) fn receive_mld(
        &mut self,
        envelope: &Envelope,
        has_router_alert: bool,
        message: &MldMessage,
        env: &mut IpEnvironment<'_>,
    ) -> Result<(), Drop> {
        let is_local = envelope.source.is_unicast_link_local()
            || envelope.source.is_unspecified() && !matches!(message, MldMessage::Query { .. });
        if envelope.hop_limit != mld::HOP_LIMIT || !has_router_alert || !is_local {
            return Err(Drop::NotCredible);
        }
        match *message {
            MldMessage::Query { group, .. } => {
                let group = Some(IpAddr::V6(group)).filter(|group| !group.is_unspecified());
                self.groups.queried(group, true, message.max_response(), env.now(), env.random());
            }
            MldMessage::Report { group } => self.groups.reported_by_other(group.into()),
            // For routers.
            MldMessage::Done { .. } => {}
        }
        Ok(())
    }
}
