//! The host part of IGMPv2 (RFC 2236). It runs on Ethernet links only.

use crate::interface::Interface;
use crate::{IpEnvironment, scope};
use inhost_base::{Instant, Ipv4Addr};
use inhost_buf::Pool;
use inhost_event::Drop;
use inhost_wire::ethernet::EtherType;
use inhost_wire::igmp::{self, IgmpMessage, IgmpView, QueryVersion};
use inhost_wire::ipv4::{self, Ipv4Header};
use inhost_wire::protocol;

/// Tells the link's routers that `group` has a member.
// spec: RFC2236 3
pub(crate) fn send_report(interface: &mut Interface, group: Ipv4Addr, now: Instant, pool: &mut Pool) {
    let message = match interface.speaks_version_1(now) {
        true => IgmpMessage::ReportV1 { group },
        false => IgmpMessage::Report { group },
    };
    send(interface, group, &message, pool);
}

/// Tells them that `group` may have none any more.
// spec: RFC2236 3
pub(crate) fn send_leave(interface: &mut Interface, group: Ipv4Addr, pool: &mut Pool) {
    send(interface, scope::ALL_ROUTERS_V4, &IgmpMessage::Leave { group }, pool);
}

// spec: RFC2236 2
fn send(interface: &mut Interface, destination: Ipv4Addr, message: &IgmpMessage, pool: &mut Pool) {
    if interface.hardware().is_none() {
        return;
    }
    let source = interface.own_ipv4(|_| true).unwrap_or(Ipv4Addr::UNSPECIFIED);
    let room = ipv4::LENGTH + ipv4::ROUTER_ALERT.len() + message.length();
    let Some(mut packet) = interface.take_packet(room, pool) else { return };
    let header = Ipv4Header {
        time_to_live: igmp::TIME_TO_LIVE,
        ..Ipv4Header::new(source, destination, protocol::IGMP, message.length() as u16)
    };
    packet.append_with(|into| header.emit_with_options(&ipv4::ROUTER_ALERT, into));
    packet.append_with(|into| message.emit(into));
    let to = scope::group_hardware(destination.into());
    interface.push_frame(packet, EtherType::IPV4, to, pool);
}

impl Interface {
    /// Takes a message.
    // spec: RFC2236 3, 4
    pub(crate) fn receive_igmp(&mut self, bytes: &[u8], env: &mut IpEnvironment<'_>) -> Result<(), Drop> {
        let view = IgmpView::new(bytes).map_err(|_| Drop::Malformed)?;
        if !view.checksum_ok() {
            return Err(Drop::Checksum);
        }
        let message = IgmpMessage::parse(&view).map_err(|_| Drop::Malformed)?;
        match message {
            IgmpMessage::Query { version, group, .. } => {
                if version == QueryVersion::V1 {
                    self.querier_is_version_1(env.now());
                }
                self.group_queried(group.into(), message.max_response(), env.now(), env.random());
            }
            IgmpMessage::Report { group } | IgmpMessage::ReportV1 { group } => {
                self.group_reported(group.into());
            }
            // For routers.
            IgmpMessage::Leave { .. } => {}
        }
        Ok(())
    }
}
