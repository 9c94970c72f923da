//! ICMP errors about TCP segments.

use crate::parts::{Parts, tcp_environment};
use crate::sockets::{TcpSocket, TcpSocketFlags, TcpSocketId};
use crate::tcp::segment::segment_limit;
use inhost_base::{Endpoint, Instant};
use inhost_event::{Drop, Sink};
use inhost_ip::{ErrorKind, TransportError};
use inhost_tcp::{ConnectionError, NetworkError, NetworkErrorKind, SoftError};

impl Parts {
    pub(crate) fn tcp_error(
        &mut self,
        error: &TransportError,
        local: Endpoint,
        remote: Endpoint,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let key = self.demux.search_tcp(&self.sockets, local, remote).ok_or(Drop::NoSocket)?;
        let sequence = error.quoted.tcp_sequence.ok_or(Drop::Malformed)?;
        if !self.sockets.tcp(key).is_some_and(|flow| flow.connection().sender().is_in_flight(sequence)) {
            return Err(Drop::NotCredible);
        }
        if error.kind == ErrorKind::PacketTooBig && self.may_be_fragmented(key) {
            return Err(Drop::NotCredible);
        }
        let kind = match error.kind {
            ErrorKind::PacketTooBig => {
                // It quotes what is in flight, so the path's estimate may follow it (RFC 5927 §7).
                self.ip.paths_mut().path_mtu_confirmed(error, now);
                let Some(path_mtu_mss) = self.new_segment_limit(key, now) else { return Ok(()) };
                NetworkErrorKind::TooBig { path_mtu_mss }
            }
            ErrorKind::PortUnreachable => NetworkErrorKind::Hard(ConnectionError::Refused),
            ErrorKind::ProtocolUnreachable => NetworkErrorKind::Hard(ConnectionError::ProtocolUnreachable),
            // spec: RFC9293 MUST-56
            // spec: RFC9293 SHLD-25
            ErrorKind::NetworkUnreachable => NetworkErrorKind::Soft(SoftError::NetworkUnreachable),
            ErrorKind::HostUnreachable => NetworkErrorKind::Soft(SoftError::Unreachable),
            ErrorKind::Prohibited => NetworkErrorKind::Soft(SoftError::Prohibited),
            ErrorKind::TimeExceeded | ErrorKind::ReassemblyTimeExceeded => {
                NetworkErrorKind::Soft(SoftError::TimeExceeded)
            }
            ErrorKind::ParameterProblem => NetworkErrorKind::Soft(SoftError::ParameterProblem),
        };
        let waits = self.is_given_out_all_the_same(key);
        let Some(flow) = self.sockets.tcp_mut(key) else { return Err(Drop::NoSocket) };
        let kind = match kind {
            // Linux closes a connection that is not yet accepted, and keeps the data of its SYN readable.
            NetworkErrorKind::Soft(_) if waits && flow.connection().sender().is_early() => {
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
            |flow: &TcpSocket| flow.has(TcpSocketFlags::FRAGMENTS) && flow.remote().address.is_ipv4();
        self.sockets.tcp(key).is_some_and(fragments)
    }
    /// A flow's largest segment after its path was asked for again.
    fn new_segment_limit(&mut self, key: TcpSocketId, now: Instant) -> Option<u16> {
        let flow = self.sockets.tcp(key)?;
        let (remote, local, link) = (flow.remote().address, flow.local().address, flow.bound_link());
        let path = self.ip.paths_mut().route(remote, Some(local), link, now).ok()?;
        self.sockets.tcp_mut(key)?.set_path(&path);
        Some(segment_limit(&path))
    }
}
