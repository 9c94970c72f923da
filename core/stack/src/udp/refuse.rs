//! Datagrams that a gateway does not want.

use crate::error::DatagramError;
use crate::parts::ip_environment;
use crate::quote;
use crate::udp::UdpSockets;
use inhost_base::{Endpoint, Instant};
use inhost_event::Sink;
use inhost_ip::Unreachable;
use inhost_wire::checksum::Sum;
use inhost_wire::protocol;
use inhost_wire::udp::{self, UdpHeader};

impl UdpSockets<'_> {
    /// Tells who sent a datagram `from` there `to` here that it is refused, by an ICMP error that quotes its headers. For
    /// sockets with [`crate::UdpOptions::any_address`], which have received it. Above the host's rate limits of ICMP errors
    /// nothing is sent.
    ///
    /// # Errors
    /// When there is no route back.
    // spec: RFC1122 4.1.3.1-1
    pub fn refuse(
        self,
        from: Endpoint,
        to: Endpoint,
        why: Unreachable,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), DatagramError> {
        self.parts.tick(now);
        let path = self.parts.ip.paths_mut().route(from.address, Some(to.address), None, now)?;
        let mut header = [0; udp::LENGTH];
        let ports = UdpHeader { source_port: from.port, destination_port: to.port };
        ports.emit(from.address, to.address, 0, Sum::of(&[]), &mut header);
        let quoted = quote::packet(from.address, to.address, protocol::UDP, &header);
        let mut environment = ip_environment!(self.parts, now, sink);
        self.parts.ip.unreachable(path.link, why, &quoted, &mut environment);
        Ok(())
    }
}
