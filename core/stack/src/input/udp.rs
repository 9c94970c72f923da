//! UDP datagrams, and ICMP errors about them.

use crate::demux::Name;
use crate::input::{Reception, name_of};
use crate::socket::{AnySocketId, UdpSocketId};
use crate::tcp::can_talk;
use inhost_base::LinkId;
use inhost_buf::Packet;
use inhost_datagram::{DatagramInfo, LEAST_BYTES};
use inhost_event::Drop;
use inhost_ip::{Datagram, TransportError};
use inhost_wire::udp::{self, UdpHeader, UdpView};

impl Reception<'_, '_> {
    /// Takes a datagram; an error says why it went no further.
    // spec: RFC1122 4.1.3.4-2, 4.1.3.6-1
    pub(super) fn udp_input(&mut self, datagram: &Datagram, packet: &mut Packet) -> Result<(), Drop> {
        if !can_talk(datagram.source) {
            return Err(Drop::BadSource);
        }
        let view = UdpView::new(packet.bytes()).map_err(|_| Drop::Malformed)?;
        if !packet.checksum().is_good() && !view.checksum_ok(datagram.source, datagram.destination) {
            return Err(Drop::Checksum);
        }
        let header = UdpHeader::parse(&view);
        let length_bytes = view.payload().len();
        let name = name_of(datagram, header.source_port, header.destination_port);
        let Some(key) = self.find_udp(datagram.link, &name) else {
            if self.probe_answered_by_udp(datagram.link, &name) {
                return Ok(());
            }
            // spec: RFC1122 4.1.3.1-1
            if datagram.to_unicast {
                let bytes = udp::LENGTH + length_bytes;
                let (ip, mut environment) = self.env.ip();
                ip.port_unreachable(datagram, packet, bytes, &mut environment);
            }
            return Err(Drop::NoSocket);
        };
        packet.trim_front(udp::LENGTH);
        packet.truncate(length_bytes);
        let (link, hop_limit) = (datagram.link, datagram.hop_limit);
        let info = DatagramInfo {
            length_bytes,
            from: name.remote,
            to: name.local,
            link,
            hop_limit,
            ecn: datagram.ecn,
        };
        match usize::from(packet.segment_bytes()) {
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
            let Some(mut one) = self.env.pool().take_bare(length_bytes.max(LEAST_BYTES)) else {
                return Err(Drop::NoMemory);
            };
            one.append(packet.bytes().get(..length_bytes).unwrap_or(&[]));
            packet.trim_front(length_bytes);
            result = result.and(self.deliver(key, &mut one, DatagramInfo { length_bytes, ..info }));
            self.env.pool().give(one);
        }
        result
    }
    /// The socket that takes what the remote end of `name` sends to its local one.
    fn find_udp(&mut self, link: LinkId, name: &Name) -> Option<UdpSocketId> {
        if let Some(key) = self.sockets.find_connected_udp(name) {
            return Some(key);
        }
        let found = self.sockets.find_binding(self.env.paths(), link, name);
        let Some(AnySocketId::Udp(key)) = found else { return None };
        // A connected socket receives only from its peer.
        self.sockets.udp(key).is_some_and(|udp| udp.remote().is_none()).then_some(key)
    }
    fn deliver(&mut self, key: UdpSocketId, packet: &mut Packet, info: DatagramInfo) -> Result<(), Drop> {
        let share = self.share_bytes();
        let udp = self.sockets.udp_mut(key).ok_or(Drop::NoSocket)?;
        udp.deliver(packet, info, share, self.env.resources().now(), self.env.pool())?;
        self.env.counters().datagrams_received += 1;
        self.sockets.notify(key.into());
        Ok(())
    }
    /// What a socket may pin while memory is short.
    pub(super) fn share_bytes(&mut self) -> Option<usize> {
        let is_short = self.env.pool().is_under_pressure();
        is_short.then(|| self.env.resources().memory().share_bytes(self.sockets.connections()))
    }
    /// Takes an ICMP error about a datagram.
    pub(super) fn udp_error(&mut self, error: &TransportError, key: UdpSocketId) -> Result<(), Drop> {
        let udp = self.sockets.udp_mut(key).ok_or(Drop::NoSocket)?;
        let now = self.env.now();
        if udp.take_error(error, self.env.paths_mut(), now)? {
            self.sockets.notify(key.into());
        }
        Ok(())
    }
}
