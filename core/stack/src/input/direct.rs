//! The direct path of a TCP segment to its connection or listener, from any packet without IP options or fragments that
//! the fast path leaves. It skips the steps of IP whose result is known.

use crate::demux::Name;
use crate::flows::{IncomingSyn, apply, flow_segment};
use crate::input::{Reception, count_frame, name_of};
use crate::socket::{AnySocketId, ListenerId, TcpSocketId};
use crate::sockets::Target;
use crate::tcp::{TcpSocketFlags, can_talk};
use inhost_base::LinkId;
use inhost_buf::Packet;
use inhost_ip::Datagram;
use inhost_wire::packet::TcpPacket;
use inhost_wire::protocol;
use inhost_wire::tcp::Flags;

impl Reception<'_, '_> {
    /// Takes a frame that came in on the link, where the fast path may have found already `whose` it is. False leaves the
    /// packet as it was.
    #[inline(always)]
    pub(super) fn direct_input(&mut self, packet: &mut Packet, whose: Option<Target>) -> bool {
        let link = self.link;
        let Some(at) = self.env.network().ip().plain_offset(link, packet.bytes()) else { return false };
        let Some(bytes) = packet.bytes().get(at..) else { return false };
        let Some(direct) = TcpPacket::of(bytes) else { return false };
        let ip = direct.ip;
        if !self.env.is_good(packet.checksum(), move || ip.checksum_ok(bytes)) {
            return false;
        }
        let (from, to) = (at + direct.header_bytes(), at + direct.ip.total_bytes());
        let flags = direct.tcp.flags();
        let whose = whose.unwrap_or_else(|| {
            let (from, to) = (direct.tcp.source_port(), direct.tcp.destination_port());
            self.sockets.whose(&direct.ip, from, to)
        });
        match whose {
            Ok(key) => {
                // A SYN may mean that a connection in TIME-WAIT is to give way.
                if !self.is_known(key) || flags & (Flags::SYN | Flags::ACK) == Flags::SYN {
                    return false;
                }
                let (header, ecn) = (direct.tcp.header(), direct.ip.ecn());
                self.env.network_mut().ip_mut().count_delivered(link, 1);
                self.arrived(packet, from, to);
                match flow_segment(self.sockets, key, &header, packet, ecn, self.env) {
                    Ok(outcome) => apply(self.sockets, key, &outcome, self.env),
                    Err(why) => self.env.drop_frame(link, why),
                }
            }
            Err(name_hash) => {
                if flags & (Flags::SYN | Flags::ACK | Flags::RST | Flags::FIN) != Flags::SYN {
                    return false;
                }
                let header = direct.tcp.header();
                let datagram = datagram_of(link, &direct);
                let name = name_of(&datagram, header.source_port, header.destination_port);
                let Some(listener) = self.called(&name, link) else { return false };
                if !self.env.network_mut().ip_mut().receives_directly(packet.bytes(), at, &datagram) {
                    return false;
                }
                self.arrived(packet, from, to);
                let call = IncomingSyn {
                    listener,
                    name: &name,
                    header: &header,
                    datagram: &datagram,
                    least_sequence: None,
                    name_hash: Some(name_hash),
                };
                if let Err(why) = call.input(self.sockets, packet, self.env) {
                    self.env.drop_frame(link, why);
                }
            }
        }
        if packet.capacity() > 0 {
            self.give(packet.take());
        }
        true
    }
    /// Whether the addresses of a connection's segments are good for this link: that was checked when its path was found.
    #[inline]
    fn is_known(&self, key: TcpSocketId) -> bool {
        self.sockets.tcp(key).is_some_and(|flow| {
            flow.has_path_of(self.env.paths().generation())
                && flow.link() == self.link
                && !flow.has(TcpSocketFlags::UNLISTED)
        })
    }
    /// The listener that a SYN calls. Other segments without a connection are left to the slow path.
    fn called(&mut self, name: &Name, link: LinkId) -> Option<ListenerId> {
        let has_ports = name.local.port != 0 && name.remote.port != 0;
        if !has_ports || !can_talk(name.remote.address) {
            return None;
        }
        match self.sockets.find_binding(self.env.paths(), link, name)? {
            AnySocketId::Listener(listener) => Some(listener),
            _ => None,
        }
    }
    /// Counts and reports a frame, and trims it to the segment's payload.
    fn arrived(&mut self, packet: &mut Packet, from: usize, to: usize) {
        count_frame(self.link, packet.len(), self.mask, self.env);
        packet.truncate(to);
        packet.trim_front(from);
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
        hop_limit: direct.ip.hop_limit(),
        to_unicast: true,
        header_bytes: direct.ip.ip_bytes() as u16,
        protocol_offset: if source.is_ipv4() { 9 } else { 6 },
    }
}
