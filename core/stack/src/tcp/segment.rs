//! Segments for a connection: checks before the connection receives them, and new table entries.

use crate::demux::NameHash;
use crate::parts::{Parts, tcp_environment};
use crate::sockets::{AnySocketId, ListenerId, TcpSocket, TcpSocketFlags, TcpSocketId};
use inhost_base::{Endpoint, Instant, IpAddr, LinkId, Sequence};
use inhost_buf::Packet;
use inhost_event::{Drop, Sink};
use inhost_ip::{Datagram, Path};
use inhost_tcp::{Ecn, Header, Open, Outcome, ResetReply};
use inhost_wire::protocol;
use inhost_wire::tcp::Flags;

/// The MSS of a peer without an MSS option (RFC 9293 §3.7.1).
// spec: RFC9293 MUST-15
const DEFAULT_MSS_V4: u16 = 536;
const DEFAULT_MSS_V6: u16 = 1220;

impl Parts {
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
    /// Passes a segment to its connection. The caller applies the outcome.
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
        if flow.has(TcpSocketFlags::CHECK_INPUT) {
            let (flags, listener) = (flow.flags(), flow.listener());
            self.check_half_open(flags, listener, header)?;
        }
        let keeps_data = !pressed || !self.takes_more_than_its_share(key, now, sink);
        let Some(flow) = self.sockets.tcp_mut(key) else { return Err(Drop::NoSocket) };
        let connection = flow.connection_mut();
        let env = &mut tcp_environment!(self, now, key, sink);
        Ok(match keeps_data {
            true => connection.receive(header, packet, ecn, env),
            false => connection.receive_without_data(header, packet, ecn, env),
        })
    }

    /// Checks of a segment before a half-open connection receives it.
    fn check_half_open(
        &self,
        flags: TcpSocketFlags,
        listener: Option<ListenerId>,
        header: &Header,
    ) -> Result<(), Drop> {
        if header.flags.rst() {
            return Ok(());
        }
        // Nothing was answered yet, so nothing but the SYN once more, or a mistake, can come.
        if flags.any(TcpSocketFlags::HELD) {
            return Err(Drop::NotCredible);
        }
        // The last step of the handshake waits for room to be accepted in; the caller sends it again.
        let Some(listener) = listener else { return Ok(()) };
        let Some(held) = self.sockets.listener(listener) else { return Ok(()) };
        let full = self.listening.acceptable(listener) >= held.backlog();
        if flags.any(TcpSocketFlags::UNCLAIMED) && header.flags.ack() && full {
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

    /// Ends a connection in TIME-WAIT in favour of a new one with the same endpoints, where that is safe and a listener
    /// exists. Returns the least initial sequence number of the new one.
    // spec: RFC9293 MAY-2
    pub(crate) fn yield_time_wait(
        &mut self,
        key: TcpSocketId,
        header: &Header,
        link: LinkId,
    ) -> Option<Sequence> {
        if !header.flags.contains(Flags::SYN) {
            return None;
        }
        let flow = self.sockets.tcp(key)?;
        let (least, local) = (flow.connection().yields_to(header)?, flow.local());
        self.find_call_taker(link, local)?;
        if self.sockets.tcp(key)?.has(TcpSocketFlags::ORPHAN) {
            self.reap(key);
        } else {
            // The application still holds the socket and can read its received data.
            self.demux.unlist_tcp(&mut self.sockets, key);
        }
        self.counters.time_wait_reused += 1;
        Some(least)
    }

    /// Parameters of a new connection that the host chooses.
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
