//! TCP segments on the slow path, and ICMP errors about segments.

use crate::flows::{IncomingSyn, apply, ask_path, flow_input, yield_time_wait};
use crate::input::{Reception, name_of};
use crate::socket::{AnySocketId, TcpSocketId};
use crate::tcp::{TcpSocket, TcpSocketFlags, can_talk, segment_limit};
use inhost_buf::Packet;
use inhost_event::Drop;
use inhost_ip::{Datagram, ErrorKind, TransportError};
use inhost_tcp::{ConnectionError, NetworkError, ResetReply, SoftError};
use inhost_wire::tcp::{Segment, TcpView};

impl Reception<'_, '_> {
    /// Takes a segment; an error says why it went no further.
    pub(super) fn tcp_input(&mut self, datagram: &Datagram, packet: &mut Packet) -> Result<(), Drop> {
        // spec: RFC9293 MUST-57
        if !datagram.to_unicast {
            return Err(Drop::NotForUs);
        }
        // spec: RFC9293 MUST-63
        if !can_talk(datagram.source) {
            return Err(Drop::BadSource);
        }
        let view = TcpView::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
        // spec: RFC9293 MUST-3
        let check = || view.checksum_ok(datagram.source, datagram.destination);
        if !self.env.is_good(packet.checksum(), check) {
            return Err(Drop::Checksum);
        }
        let header = Segment::parse(&view).header();
        let header_bytes = view.header_length();
        if header.source_port == 0 || header.destination_port == 0 {
            return Err(Drop::Malformed);
        }
        let name = name_of(datagram, header.source_port, header.destination_port);
        packet.trim_front(header_bytes);

        let is_it = |flow: &TcpSocket| flow.name() == name;
        let whose = self.sockets.find_segment(is_it, || name);
        let mut least_sequence = None;
        if let Ok(key) = whose {
            least_sequence = yield_time_wait(self.sockets, key, (&header, datagram.link), self.env);
            if least_sequence.is_none() {
                return flow_input(self.sockets, key, &header, packet, datagram.ecn, self.env);
            }
        }
        match self.sockets.find_binding(self.env.paths(), datagram.link, &name) {
            Some(AnySocketId::Listener(listener)) => {
                let call = IncomingSyn {
                    listener,
                    name: &name,
                    header: &header,
                    datagram,
                    least_sequence,
                    name_hash: whose.err(),
                };
                call.input(self.sockets, packet, self.env)
            }
            other => {
                // The answer to a TCP probe gets a reset (RFC 9293 §3.10.7.1).
                if let Some(AnySocketId::Probe(probe)) = other {
                    self.probe_answered_by_tcp(probe, &header, &name);
                }
                // A reset is never answered.
                if let Some(reset) = ResetReply::to(&header, packet.len()) {
                    self.env.answer_with_reset(datagram.link, &name, reset);
                }
                Err(Drop::NoSocket)
            }
        }
    }
    /// Takes an ICMP error about a segment.
    pub(super) fn tcp_error(&mut self, error: &TransportError, key: TcpSocketId) -> Result<(), Drop> {
        let sequence = error.quoted.tcp_sequence.ok_or(Drop::Malformed)?;
        let flow = self.sockets.tcp(key).ok_or(Drop::NotCredible)?;
        // Routers fragment such a flow's packets, so that none is too big for them.
        let is_fragmented = flow.has(TcpSocketFlags::FRAGMENTS) && flow.remote().address.is_ipv4();
        if !flow.connection().sender().is_in_flight(sequence)
            || error.kind == ErrorKind::PacketTooBig && is_fragmented
        {
            return Err(Drop::NotCredible);
        }
        let what = match error.kind {
            ErrorKind::PacketTooBig => {
                // It quotes what is in flight, so the path's estimate may follow it (RFC 5927 §7).
                let now = self.env.now();
                self.env.paths_mut().path_mtu_confirmed(error, now);
                let Ok(path) = ask_path(self.sockets, key, self.env) else { return Ok(()) };
                if let Some(flow) = self.sockets.tcp_mut(key) {
                    flow.set_path(&path);
                }
                NetworkError::TooBig { path_mtu_mss: segment_limit(&path) }
            }
            ErrorKind::PortUnreachable => NetworkError::Hard(ConnectionError::Refused),
            ErrorKind::ProtocolUnreachable => NetworkError::Hard(ConnectionError::ProtocolUnreachable),
            // spec: RFC9293 MUST-56
            // spec: RFC9293 SHLD-25
            ErrorKind::NetworkUnreachable => NetworkError::Soft(SoftError::NetworkUnreachable),
            ErrorKind::HostUnreachable => NetworkError::Soft(SoftError::Unreachable),
            ErrorKind::Prohibited => NetworkError::Soft(SoftError::Prohibited),
            ErrorKind::TimeExceeded | ErrorKind::ReassemblyTimeExceeded => {
                NetworkError::Soft(SoftError::TimeExceeded)
            }
            ErrorKind::ParameterProblem => NetworkError::Soft(SoftError::ParameterProblem),
        };
        let waits = self.sockets.is_given_out_all_the_same(key);
        let Some(flow) = self.sockets.tcp_mut(key) else { return Err(Drop::NoSocket) };
        let what = match what {
            // Linux closes a connection that is not yet accepted, and keeps the data of its SYN readable.
            NetworkError::Soft(_) if waits && flow.connection().sender().is_early() => {
                NetworkError::Hard(ConnectionError::Unreachable)
            }
            what => what,
        };
        let outcome = flow.connection_mut().unreachable(sequence, what, &mut self.env.tcp(key.key()));
        apply(self.sockets, key, &outcome, self.env);
        Ok(())
    }
}
