//! TCP segments on their way up: what must be checked before a connection sees them, and what is answered when there
//! is none.

use crate::demux::NameHash;
use crate::icmp::ProbeSockets;
use crate::listen::IncomingSyn;
use crate::parts::{Parts, tcp_environment};
use crate::sockets::{AnySocketId, ConnectionFlags, ListenerId, TcpSocket, TcpSocketId};
use inhost_base::{Endpoint, Instant, IpAddr, LinkId, Sequence};
use inhost_buf::Packet;
use inhost_event::{Drop, Sink};
use inhost_ip::{Datagram, Path};
use inhost_tcp::{Ecn, Header, Open, Outcome, ResetReply};
use inhost_wire::protocol;
use inhost_wire::tcp::{Flags, Segment, TcpView};

/// What a peer takes that names no maximum (RFC 9293 §3.7.1).
// spec: RFC9293 MUST-15
const DEFAULT_MSS_V4: u16 = 536;
const DEFAULT_MSS_V6: u16 = 1220;

impl Parts {
    /// Takes a segment; an error says why it went no further.
    pub(crate) fn tcp_input(
        &mut self,
        datagram: &Datagram,
        packet: &mut Packet,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
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
        if !packet.checksum.is_good() && !view.checksum_ok(datagram.source, datagram.destination) {
            return Err(Drop::Checksum);
        }
        let header = Segment::parse(&view).header();
        let header_bytes = view.header_length();
        if header.source_port == 0 || header.destination_port == 0 {
            return Err(Drop::Malformed);
        }
        let local = Endpoint { address: datagram.destination, port: header.destination_port };
        let remote = Endpoint { address: datagram.source, port: header.source_port };
        packet.trim_front(header_bytes);

        let mut least_sequence = None;
        if let Some(key) = self.demux.find_tcp(&self.sockets, local, remote) {
            self.demux.note_tcp(key);
            match self.yield_time_wait(key, &header, datagram.link) {
                Some(sequence) => least_sequence = Some(sequence),
                None => return self.flow_input(key, &header, packet, datagram, now, sink),
            }
        }
        match self.find_call_taker(datagram.link, local) {
            Some(AnySocketId::Listener(listener)) => {
                let call = IncomingSyn { header: &header, datagram, least_sequence, name_hash: None };
                self.listener_input(listener, call, packet, now, sink)
            }
            other => {
                // Whoever sent a probe will not talk, and a reset says so (RFC 9293 §3.10.7.1).
                if let Some(AnySocketId::Probe(probe)) = other {
                    ProbeSockets::new(self).tcp_input(probe, &header, local, remote);
                }
                self.no_connection(&header, packet.len(), datagram.link, local, remote, now);
                Err(Drop::NoSocket)
            }
        }
    }

    pub(crate) fn flow_input(
        &mut self,
        key: TcpSocketId,
        header: &Header,
        packet: &mut Packet,
        datagram: &Datagram,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        let outcome = self.flow_segment(key, header, packet, datagram.ecn, now, sink)?;
        if self.ip.return_route().is_some() && outcome.dropped.is_none() {
            self.learn_route(key, now);
        }
        self.apply(key, outcome, now, sink);
        Ok(())
    }
    /// Gives a segment to its connection; what follows from it is for the caller to do.
    #[inline]
    pub(crate) fn flow_segment(
        &mut self,
        key: TcpSocketId,
        header: &Header,
        packet: &mut Packet,
        ecn: Ecn,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Drop> {
        let pressed = !packet.is_empty() && self.memory.pool().is_under_pressure();
        let Some(flow) = self.sockets.tcp_mut(key) else { return Err(Drop::NoSocket) };
        if flow.has(ConnectionFlags::CHECK_INPUT) {
            let (flags, listener) = (flow.flags(), flow.listener());
            self.check_half_open(flags, listener, header)?;
        }
        if pressed && self.takes_more_than_its_share(key, now, sink) {
            return Err(Drop::NoMemory);
        }
        let Some(flow) = self.sockets.tcp_mut(key) else { return Err(Drop::NoSocket) };
        Ok(flow.connection_mut().receive(header, packet, ecn, &mut tcp_environment!(self, now, key, sink)))
    }

    /// What an unfinished handshake does not get to see.
    fn check_half_open(
        &self,
        flags: ConnectionFlags,
        listener: Option<ListenerId>,
        header: &Header,
    ) -> Result<(), Drop> {
        if header.flags.rst() {
            return Ok(());
        }
        // Nothing was answered yet, so nothing but the SYN once more, or a mistake, can come.
        if flags.any(ConnectionFlags::HELD) {
            return Err(Drop::NotCredible);
        }
        // The last step of the handshake waits for room to be accepted in; the caller sends it again.
        let Some(listener) = listener else { return Ok(()) };
        let Some(held) = self.sockets.listener(listener) else { return Ok(()) };
        let full = self.listening.acceptable(listener) >= held.backlog();
        if flags.any(ConnectionFlags::UNCLAIMED) && header.flags.ack() && full {
            return Err(Drop::QueueFull);
        }
        Ok(())
    }

    /// The answer where there is neither connection nor listener.
    pub(crate) fn no_connection(
        &mut self,
        header: &Header,
        payload_bytes: usize,
        link: LinkId,
        local: Endpoint,
        remote: Endpoint,
        now: Instant,
    ) {
        // RFC 9293 §3.10.7.1; a reset is never answered.
        if let Some(reply) = ResetReply::to(header, payload_bytes) {
            self.answer_with_reset(link, local, remote, reply, now);
        }
    }

    /// The listener, or the socket for probes, that takes calls to `local` on `link`.
    pub(crate) fn find_call_taker(&mut self, link: LinkId, local: Endpoint) -> Option<AnySocketId> {
        let found = self.demux.find_binding(&self.sockets, &self.ip, protocol::TCP, link, local)?;
        self.sockets.typed(found)
    }

    /// Puts a flow into the tables; `None` when they are full or its ends are taken. `name_hash` is that of its ends,
    /// where it is known.
    #[inline]
    pub(crate) fn add_flow(&mut self, flow: TcpSocket, name_hash: Option<NameHash>) -> Option<TcpSocketId> {
        let key = self.sockets.insert_tcp(flow, self.memory.pool_mut())?;
        if !self.demux.list_tcp(&mut self.sockets, key, name_hash) {
            if let Some(flow) = self.sockets.tcp_mut(key) {
                flow.connection_mut().clear(self.memory.pool_mut());
            }
            self.sockets.discard_tcp(key);
            return None;
        }
        Some(key)
    }

    /// Lets a connection in TIME-WAIT give way to a new one of the same ends, where that is safe and somebody listens:
    /// the least initial sequence number that the new one may choose.
    // spec: RFC9293 MAY-2
    fn yield_time_wait(&mut self, key: TcpSocketId, header: &Header, link: LinkId) -> Option<Sequence> {
        if !header.flags.contains(Flags::SYN) {
            return None;
        }
        let flow = self.sockets.tcp(key)?;
        let (least, local) = (flow.connection().yields_to(header)?, flow.local());
        self.find_call_taker(link, local)?;
        if self.sockets.tcp(key)?.has(ConnectionFlags::ORPHAN) {
            self.reap(key);
        } else {
            // The application still holds it, and keeps what it can read of it.
            self.demux.unlist_tcp(&mut self.sockets, key);
        }
        self.counters.time_wait_reused += 1;
        Some(least)
    }

    /// What the host decides for a new connection.
    pub(crate) fn open(&self, path: &Path, local: Endpoint, remote: Endpoint, now: Instant) -> Open {
        let (initial_sequence, timestamp_offset) = self.demux.initial_sequence(local, remote, now);
        let default_mss = if remote.address.is_ipv4() { DEFAULT_MSS_V4 } else { DEFAULT_MSS_V6 };
        Open { initial_sequence, timestamp_offset, path_mtu_mss: segment_limit(path), default_mss }
    }
}

/// The largest payload of a segment without options (RFC 9293 §3.7.1, RFC 6691).
// spec: RFC9293 MUST-67, SHLD-6; RFC1122 3.3.2-3
// spec: RFC4821 5.1-1
pub(crate) fn segment_limit(path: &Path) -> u16 {
    path.payload_limit_bytes().saturating_sub(inhost_wire::tcp::LENGTH) as u16
}

/// Whether an address can be one end of a TCP connection.
pub(crate) fn can_talk(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            !address.is_unspecified() && !address.is_multicast() && !address.is_broadcast()
        }
        IpAddr::V6(address) => !address.is_unspecified() && !address.is_multicast(),
    }
}
