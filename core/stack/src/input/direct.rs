//! The direct path of a TCP segment to its connection or listener, from any packet without IP options or fragments that
//! the fast path leaves. It skips the steps of IP whose result is known.

use crate::demux::NameHash;
use crate::input::Reception;
use crate::input::fast::is_good;
use crate::listen::IncomingSyn;
use crate::sockets::{AnySocketId, ListenerId, TcpSocket, TcpSocketId};
use crate::tcp::can_talk;
use inhost_base::{Endpoint, LinkId};
use inhost_buf::{Checksum, Packet};
use inhost_event::{Event, FrameReceived, Mask};
use inhost_ip::Datagram;
use inhost_wire::packet::TcpPacket;
use inhost_wire::tcp::{Flags, TcpHeader};
use inhost_wire::{ipv4, protocol};

impl Reception<'_> {
    /// Takes a frame that came in on `link`. False leaves the packet as it was.
    #[inline(always)]
    pub(super) fn direct_input(&mut self, packet: &mut Packet) -> bool {
        let (link, now) = (self.link, self.now);
        let Some(at) = self.parts.ip.plain_offset(link, packet.bytes()) else { return false };
        let Some(bytes) = packet.bytes().get(at..) else { return false };
        let Some(direct) = TcpPacket::of(bytes) else { return false };
        let is_good = packet.checksum != Checksum::Unknown
            || match self.marks() {
                false => direct.ip.checksum_ok(bytes),
                true => is_good(direct.ip, bytes, &mut *self.sink),
            };
        if !is_good {
            return false;
        }
        match self.direct_flow(&direct) {
            Ok(key) => {
                // That the addresses are good for this link was checked when the flow's path was found.
                let is_known = self.parts.sockets.tcp(key).is_some_and(|flow| {
                    flow.has_path_of(self.parts.ip.paths().generation()) && flow.link() == link
                });
                // A SYN may mean that a connection in TIME-WAIT is to give way.
                if !is_known || direct.tcp.flags() & (Flags::SYN | Flags::ACK) == Flags::SYN {
                    return false;
                }
                let (header, ecn) = (direct.tcp.header(), direct.ip.ecn());
                let span = (at + direct.header_bytes(), at + direct.ip.total_bytes);
                self.parts.ip.count_delivered(link, 1);
                self.arrived(packet, span);
                self.parts.demux.remember_last_flow(key);
                match self.parts.flow_segment(key, &header, packet, ecn, now, &mut *self.sink) {
                    Ok(outcome) => self.parts.apply(key, outcome, now, &mut *self.sink),
                    Err(why) => self.parts.links.drop_frame(link, why, now, &mut *self.sink),
                }
            }
            Err(name_hash) => {
                if direct.tcp.flags() & (Flags::SYN | Flags::ACK | Flags::RST | Flags::FIN) != Flags::SYN {
                    return false;
                }
                let header = direct.tcp.header();
                let datagram = datagram_of(link, &direct);
                let Some(listener) = self.called(&header, &datagram) else { return false };
                if !self.parts.ip.receives_directly(packet.bytes(), at, &datagram) {
                    return false;
                }
                let span = (at + direct.header_bytes(), at + direct.ip.total_bytes);
                self.arrived(packet, span);
                let name_hash = Some(name_hash);
                let call =
                    IncomingSyn { header: &header, datagram: &datagram, least_sequence: None, name_hash };
                if let Err(why) = call.input(self.parts, listener, packet, now, &mut *self.sink) {
                    self.parts.links.drop_frame(link, why, now, &mut *self.sink);
                }
            }
        }
        if packet.capacity() > 0 {
            self.parts.memory.pool_mut().give(packet.take());
        }
        true
    }
    /// The listener that a SYN calls. Other segments without a connection are left to the slow path.
    fn called(&mut self, header: &TcpHeader, datagram: &Datagram) -> Option<ListenerId> {
        let has_ports = header.source_port != 0 && header.destination_port != 0;
        if !has_ports || !can_talk(datagram.source) {
            return None;
        }
        let local = Endpoint { address: datagram.destination, port: header.destination_port };
        match self.parts.find_call_taker(datagram.link, local)? {
            AnySocketId::Listener(listener) => Some(listener),
            _ => None,
        }
    }
    /// Counts and reports a frame, and trims it to the segment's payload, `from..to`.
    fn arrived(&mut self, packet: &mut Packet, (from, to): (usize, usize)) {
        let link = self.link;
        let length_bytes = packet.len() as u32;
        self.parts.links.count_received(link, 1, u64::from(length_bytes));
        if self.mask.wants(Mask::LINK) {
            self.sink
                .emit(Mask::LINK, self.now, || Event::FrameReceived(FrameReceived { link, length_bytes }));
        }
        packet.truncate(to);
        packet.trim_front(from);
    }
    /// The connection that a segment is for, mostly that of the last; or the hash of its name.
    #[inline]
    fn direct_flow(&self, direct: &TcpPacket<'_>) -> Result<TcpSocketId, NameHash> {
        let is_it = |flow: &TcpSocket| {
            flow.matches(&direct.ip, direct.tcp.source_port(), direct.tcp.destination_port())
        };
        if let Some(id) = self.parts.demux.last_tcp(&self.parts.sockets, is_it) {
            return Ok(id);
        }
        let (source, destination) = direct.ip.addresses();
        let local = Endpoint { address: destination, port: direct.tcp.destination_port() };
        let remote = Endpoint { address: source, port: direct.tcp.source_port() };
        let hash = self.parts.demux.tcp_hash(local, remote);
        self.parts.demux.find_tcp_hashed(&self.parts.sockets, hash, is_it).ok_or(hash)
    }
}

/// Whether a packet has SYN, FIN or RST at the usual place of TCP's flags. It is only a hint: either path handles the
/// packet.
#[inline]
pub(super) fn opens_or_closes(packet: &Packet) -> bool {
    const FLAGS_AT: usize = ipv4::LENGTH + 13;
    let flags = (Flags::SYN | Flags::FIN | Flags::RST).bits() as u8;
    match packet.bytes() {
        [0x45, rest @ ..] => rest.get(FLAGS_AT - 1).is_some_and(|bits| bits & flags != 0),
        _ => false,
    }
}

/// The IP fields of such a segment.
fn datagram_of(link: LinkId, direct: &TcpPacket<'_>) -> Datagram {
    let (source, destination) = direct.ip.addresses();
    Datagram {
        link,
        source,
        destination,
        protocol: protocol::TCP,
        ecn: direct.ip.ecn(),
        hop_limit: direct.ip.hop_limit,
        to_unicast: true,
        header_bytes: direct.ip.ip_bytes as u16,
        protocol_offset: if source.is_ipv4() { 9 } else { 6 },
    }
}
