//! UDP input.

use crate::icmp::ProbeSockets;
use crate::parts::{Parts, ip_environment};
use crate::sockets::{AnySocketId, DatagramInfo, UdpSocketId};
use crate::tcp::can_talk;
use crate::udp::UdpSockets;
use crate::udp::socket::LEAST_BYTES;
use inhost_base::{Endpoint, Instant, LinkId};
use inhost_buf::Packet;
use inhost_event::{Drop, Sink};
use inhost_ip::Datagram;
use inhost_wire::protocol;
use inhost_wire::udp::{self, UdpHeader, UdpView};

impl UdpSockets<'_> {
    /// Takes a datagram; an error says why it went no further.
    // spec: RFC1122 4.1.3.4-2, 4.1.3.6-1
    pub(crate) fn input(
        &mut self,
        datagram: &Datagram,
        packet: &mut Packet,
        now: Instant,
        sink: &mut dyn Sink,
    ) -> Result<(), Drop> {
        if !can_talk(datagram.source) {
            return Err(Drop::BadSource);
        }
        let view = UdpView::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
        if !packet.checksum.is_good() && !view.checksum_ok(datagram.source, datagram.destination) {
            return Err(Drop::Checksum);
        }
        let header = UdpHeader::parse(&view);
        let length_bytes = view.payload().len();
        let local = Endpoint { address: datagram.destination, port: header.destination_port };
        let remote = Endpoint { address: datagram.source, port: header.source_port };
        let Some(key) = self.find(datagram.link, local, remote) else {
            if ProbeSockets::new(self.parts).udp_input(datagram.link, local, remote) {
                return Ok(());
            }
            // spec: RFC1122 4.1.3.1-1
            if datagram.to_unicast {
                let mut environment = ip_environment!(self.parts, now, sink);
                self.parts.ip.port_unreachable(
                    datagram,
                    packet,
                    udp::LENGTH + length_bytes,
                    &mut environment,
                );
            }
            return Err(Drop::NoSocket);
        };
        packet.trim_front(udp::LENGTH);
        packet.truncate(length_bytes);
        let (link, hop_limit) = (datagram.link, datagram.hop_limit);
        let info = DatagramInfo { length_bytes, from: remote, to: local, link, hop_limit, ecn: datagram.ecn };
        match usize::from(packet.segment_bytes) {
            0 => self.deliver(key, packet, info),
            each => self.deliver_each(key, packet, info, each),
        }
    }
    /// Delivers the datagrams of `each` bytes that a device has put together.
    fn deliver_each(
        &mut self,
        key: UdpSocketId,
        packet: &mut Packet,
        info: DatagramInfo,
        each: usize,
    ) -> Result<(), Drop> {
        let mut result = Ok(());
        while !packet.is_empty() {
            let length_bytes = each.min(packet.len());
            let Some(mut one) = self.parts.memory.pool_mut().take_bare(length_bytes.max(LEAST_BYTES)) else {
                return Err(Drop::NoMemory);
            };
            one.append(packet.bytes().get(..length_bytes).unwrap_or(&[]));
            packet.trim_front(length_bytes);
            result = result.and(self.deliver(key, &mut one, DatagramInfo { length_bytes, ..info }));
            self.parts.memory.pool_mut().give(one);
        }
        result
    }
    /// The socket that takes what `remote` sends to `local`.
    fn find(&mut self, link: LinkId, local: Endpoint, remote: Endpoint) -> Option<UdpSocketId> {
        if let Some(key) = self.parts.demux.find_connected_udp(&self.parts.sockets, local, remote) {
            return Some(key);
        }
        let key = self.find_bound(link, local)?;
        // A connected socket receives only from its peer.
        self.parts.sockets.udp(key).is_some_and(|udp| udp.remote().is_none()).then_some(key)
    }
    /// The UDP socket that is bound to `local`.
    pub(crate) fn find_bound(&mut self, link: LinkId, local: Endpoint) -> Option<UdpSocketId> {
        let found =
            self.parts.demux.find_binding(&self.parts.sockets, &self.parts.ip, protocol::UDP, link, local)?;
        match self.parts.sockets.typed(found)? {
            AnySocketId::Udp(id) => Some(id),
            _ => None,
        }
    }
    fn deliver(&mut self, key: UdpSocketId, packet: &mut Packet, info: DatagramInfo) -> Result<(), Drop> {
        let Parts { memory, sockets, now, .. } = &mut *self.parts;
        let share = memory.pool().is_under_pressure().then(|| memory.share_bytes(sockets));
        let udp = sockets.udp_mut(key).ok_or(Drop::NoSocket)?;
        udp.deliver(packet, info, share, *now, memory.pool_mut())?;
        self.parts.counters.datagrams_received += 1;
        self.parts.notify(key.into());
        Ok(())
    }
}
