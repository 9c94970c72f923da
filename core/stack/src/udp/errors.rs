//! ICMP errors about UDP datagrams.

use crate::error::DatagramError;
use crate::udp::UdpSockets;
use inhost_base::{Endpoint, Instant};
use inhost_event::Drop;
use inhost_ip::{ErrorKind, TransportError};

impl UdpSockets<'_> {
    /// Takes an ICMP error about a datagram.
    pub(crate) fn error(
        mut self,
        error: &TransportError,
        local: Endpoint,
        remote: Endpoint,
        now: Instant,
    ) -> Result<(), Drop> {
        let key = match self.parts.demux.find_connected_udp(&self.parts.sockets, local, remote) {
            Some(key) => key,
            None => self.find_bound(error.link, local).ok_or(Drop::NoSocket)?,
        };
        let Some(udp) = self.parts.sockets.udp_mut(key) else { return Err(Drop::NoSocket) };
        let packet_bytes = error.quoted.packet_length;
        let is_credible = match (error.kind, error.mtu_bytes) {
            // A datagram that fits was not the one refused.
            // spec: RFC5927 7
            (ErrorKind::PacketTooBig, Some(mtu_bytes)) => {
                u32::from(mtu_bytes) < packet_bytes && udp.recent().has_whole(remote, packet_bytes, now)
            }
            _ => udp.recent().has(remote, now),
        };
        if !is_credible {
            return Err(Drop::NotCredible);
        }
        // What answers a stranger may have been provoked to change the path for others.
        if error.kind == ErrorKind::PacketTooBig && udp.recent().has_begun(remote, now) {
            self.parts.ip.paths_mut().path_mtu_confirmed(error, now);
        }
        let Some(udp) = self.parts.sockets.udp_mut(key) else { return Err(Drop::NoSocket) };
        // spec: RFC1122 4.1.3.3-1
        let all = udp.options().report_unconnected_errors;
        let connected = udp.remote() == Some(remote);
        let is_soft = match error.kind {
            // Without don't-fragment the path MTU does not matter to the socket.
            ErrorKind::PacketTooBig => !udp.options().dont_fragment && !udp.options().fragments_at_source,
            kind => may_pass(kind),
        };
        let is_asked_for = all || !(is_soft && udp.options().soft_errors_on_request);
        let reported = connected || (udp.remote().is_none() && all);
        if !reported || !is_asked_for {
            return Ok(());
        }
        udp.set_error(DatagramError::Unreachable(error.kind));
        self.parts.notify(key.into());
        Ok(())
    }
}

/// Whether the next datagram may arrive all the same.
fn may_pass(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NetworkUnreachable
            | ErrorKind::HostUnreachable
            | ErrorKind::TimeExceeded
            | ErrorKind::ReassemblyTimeExceeded
    )
}
