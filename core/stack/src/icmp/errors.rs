//! ICMP errors on their way to the socket whose packet they quote.

use crate::icmp::echo::EchoSockets;
use crate::icmp::probe::ProbeSockets;
use crate::input::segment_limit;
use crate::parts::{Parts, tcp_environment};
use crate::sockets::{ConnectionFlags, Socket, SocketId, TcpSocket, TcpSocketId};
use crate::udp::UdpSockets;
use inhost_base::{Endpoint, Instant, LinkId};
use inhost_event::{Drop, Sink};
use inhost_ip::{ErrorKind, Redirect, TransportError};
use inhost_tcp::{ConnectionError, NetworkError, NetworkErrorKind, SoftError};
use inhost_wire::protocol;
use inhost_wire::quoted::Quoted;

impl Parts {
    /// Hands an error to the socket that it concerns.
    // spec: RFC9293 MUST-54
    // spec: RFC1122 3.2.2.1-3
    pub(crate) fn network_error(&mut self, error: &TransportError, now: Instant, sink: &mut dyn Sink) {
        let local = Endpoint { address: error.quoted.source, port: error.quoted.source_port };
        let remote = Endpoint { address: error.quoted.destination, port: error.quoted.destination_port };
        if ProbeSockets::new(self).error(error, now) {
            return;
        }
        let done = match error.quoted.protocol {
            protocol::TCP => self.tcp_error(error, local, remote, now, sink),
            protocol::UDP => UdpSockets::new(self).error(error, local, remote, now),
            protocol::ICMPV4 | protocol::ICMPV6 => EchoSockets::new(self).error(error, now),
            _ => Err(Drop::UnknownProtocol),
        };
        if let Err(why) = done {
            self.drop_frame(error.link, why, now, sink);
        }
    }

    /// Takes a router's word for a better first hop, if it quotes what was sent just now: a router that forwards a packet
    /// by a detour says so at once.
    // spec: RFC5927 4
    // spec: RFC1122 3.2.2.2-2
    pub(crate) fn redirected(&mut self, redirect: &Redirect, now: Instant, sink: &mut dyn Sink) {
        let done = match self.was_sent_lately(redirect.link, &redirect.quoted, now) {
            true => self.ip.redirect_confirmed(redirect, now),
            false => Err(Drop::NotCredible),
        };
        if let Err(why) = done {
            self.drop_frame(redirect.link, why, now, sink);
        }
    }
    /// Whether a packet like the quoted one has left within the last seconds.
    fn was_sent_lately(&mut self, link: LinkId, quoted: &Quoted, now: Instant) -> bool {
        let local = Endpoint { address: quoted.source, port: quoted.source_port };
        let remote = Endpoint { address: quoted.destination, port: quoted.destination_port };
        let Parts { demux, sockets, ip, .. } = self;
        let found = match quoted.protocol {
            protocol::ICMPV4 | protocol::ICMPV6 => demux.find_echo(sockets, quoted.source_port),
            protocol::TCP => demux.search_tcp(sockets, local, remote).map(SocketId::from),
            protocol::UDP => demux.find_connected_udp(sockets, local, remote).map(SocketId::from),
            _ => None,
        };
        let found = found.or_else(|| demux.find_binding(sockets, ip, quoted.protocol, link, local));
        let Some(found) = found else { return false };
        match sockets.any(found) {
            Some(Socket::Tcp(flow)) => {
                quoted.tcp_sequence.is_some_and(|sequence| flow.connection().was_sent_lately(sequence))
            }
            Some(Socket::Udp(udp)) => udp.recent().has_lately(remote, now),
            Some(Socket::Echo(echo)) => echo.recent().has_lately(remote, now),
            Some(Socket::Probe(prober)) => prober.has_sent_lately(quoted, now),
            Some(Socket::Listener(_)) | None => false,
        }
    }

    fn tcp_error(
        &mut self,
        error: &TransportError,
        local: Endpoint,
        remote: Endpoint,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let key = self.demux.search_tcp(&self.sockets, local, remote).ok_or(Drop::NoSocket)?;
        let sequence = error.quoted.tcp_sequence.ok_or(Drop::Malformed)?;
        if !self.sockets.tcp(key).is_some_and(|flow| flow.connection().is_in_flight(sequence)) {
            return Err(Drop::NotCredible);
        }
        if error.kind == ErrorKind::PacketTooBig && self.may_be_fragmented(key) {
            return Err(Drop::NotCredible);
        }
        let kind = match error.kind {
            ErrorKind::PacketTooBig => {
                // It quotes what is in flight, so the path's estimate may follow it (RFC 5927 §7).
                self.ip.path_mtu_confirmed(error, now);
                let Some(path_mtu_mss) = self.new_segment_limit(key, now) else { return Ok(()) };
                NetworkErrorKind::TooBig { path_mtu_mss }
            }
            ErrorKind::PortUnreachable => NetworkErrorKind::Hard(ConnectionError::Refused),
            ErrorKind::ProtocolUnreachable => NetworkErrorKind::Hard(ConnectionError::Unreachable),
            // spec: RFC9293 MUST-56
            // spec: RFC9293 SHLD-25
            ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => {
                NetworkErrorKind::Soft(SoftError::Unreachable)
            }
            ErrorKind::Prohibited => NetworkErrorKind::Soft(SoftError::Prohibited),
            ErrorKind::TimeExceeded | ErrorKind::ReassemblyTimeExceeded => {
                NetworkErrorKind::Soft(SoftError::TimeExceeded)
            }
            ErrorKind::ParameterProblem => NetworkErrorKind::Soft(SoftError::ParameterProblem),
        };
        let waits = self.is_given_out_all_the_same(key);
        let Some(flow) = self.sockets.tcp_mut(key) else { return Err(Drop::NoSocket) };
        let kind = match kind {
            // Linux gives up a caller before it is accepted, and leaves what came with its SYN to be read.
            NetworkErrorKind::Soft(_) if waits && flow.connection().is_early() => {
                NetworkErrorKind::Hard(ConnectionError::Unreachable)
            }
            kind => kind,
        };
        let error = NetworkError { sequence, kind };
        let outcome = flow.connection_mut().unreachable(error, &mut tcp_environment!(self, now, key, sink));
        self.apply(key, outcome, now, sink);
        Ok(())
    }

    /// Whether routers fragment a flow's packets, so that none is too big for them.
    fn may_be_fragmented(&self, key: TcpSocketId) -> bool {
        let fragments =
            |flow: &TcpSocket| flow.has(ConnectionFlags::FRAGMENTS) && flow.remote().address.is_ipv4();
        self.sockets.tcp(key).is_some_and(fragments)
    }
    /// A flow's largest segment after its path was asked for again.
    fn new_segment_limit(&mut self, key: TcpSocketId, now: Instant) -> Option<u16> {
        let flow = self.sockets.tcp(key)?;
        let (remote, local, link) = (flow.remote().address, flow.local().address, flow.bound_link());
        let path = self.ip.route(remote, Some(local), link, now).ok()?;
        self.sockets.tcp_mut(key)?.set_path(&path);
        Some(segment_limit(&path))
    }
}
