//! ICMP messages of our own, for either family.

use crate::path::Path;
use inhost_base::IpAddr;
use inhost_buf::{Packet, Pool};
use inhost_wire::icmpv4::Icmpv4Message;
use inhost_wire::icmpv6::Icmpv6Message;
use inhost_wire::protocol;

/// An ICMP message of the family of its path.
#[expect(clippy::large_enum_variant, reason = "it lives for one call; a box would cost an allocation")]
#[derive(Clone, Copy, Debug)]
pub(crate) enum IcmpMessage<'a> {
    V4(Icmpv4Message<'a>),
    V6(Icmpv6Message<'a>),
}

impl IcmpMessage<'_> {
    /// The protocol number of its family.
    pub fn protocol(&self) -> u8 {
        match self {
            IcmpMessage::V4(_) => protocol::ICMPV4,
            IcmpMessage::V6(_) => protocol::ICMPV6,
        }
    }
    /// The message as it goes over `path`, without an IP header; `None` without memory.
    pub fn packet(&self, path: &Path, pool: &mut Pool) -> Option<Packet> {
        let mut packet = match self {
            IcmpMessage::V4(message) => pool.take(message.length())?,
            IcmpMessage::V6(message) => pool.take(message.length())?,
        };
        packet.append_with(|into| match (self, path.source, path.destination) {
            (IcmpMessage::V4(message), ..) => message.emit(into),
            (IcmpMessage::V6(message), IpAddr::V6(source), IpAddr::V6(to)) => message.emit(source, to, into),
            (IcmpMessage::V6(_), ..) => 0,
        });
        Some(packet)
    }
}
