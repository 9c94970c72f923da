//! The slow path of input: through IP to the transport and its socket.

use crate::icmp::{EchoSockets, ProbeSockets};
use crate::input::Reception;
use crate::listen::IncomingSyn;
use crate::parts::{Parts, ip_environment};
use crate::sockets::{AnySocketId, Socket, SocketId};
use crate::tcp::can_talk;
use crate::udp::UdpSockets;
use inhost_base::{Endpoint, LinkId};
use inhost_buf::Packet;
use inhost_event::{Drop, Event, FrameReceived, Layer, Mask, Sink};
use inhost_ip::{Datagram, Received, Redirect, TransportError};
use inhost_wire::protocol;
use inhost_wire::quoted::Quoted;
use inhost_wire::tcp::{Segment, TcpView};

impl Reception<'_> {
    /// Takes one frame, to its end.
    pub(crate) fn frame(&mut self, packet: Packet) {
        let marks = self.marks();
        if marks {
            self.sink.begin_layer(Layer::Ip);
        }
        self.frame_through_ip(packet);
        if marks {
            self.sink.end_layer();
        }
    }
    #[inline]
    fn frame_through_ip(&mut self, mut packet: Packet) {
        let (link, now) = (self.link, self.now);
        let length_bytes = packet.len() as u32;
        self.parts.links.count_received(link, 1, u64::from(length_bytes));
        self.sink.emit(Mask::LINK, now, || Event::FrameReceived(FrameReceived { link, length_bytes }));
        if self.mask.wants(Mask::DROP) {
            self.sink.looks_at(packet.bytes());
        }
        match self.parts.ip.receive(
            link,
            &mut packet,
            &mut ip_environment!(self.parts, self.now, &mut *self.sink),
        ) {
            Received::Handled => {}
            Received::Dropped(why) => self.parts.links.count_drop(link, why),
            Received::Error(error) => self.network_error(&error),
            Received::Redirect(redirect) => self.redirected(&redirect),
            // A gateway does not answer pings for other hosts yet.
            Received::EchoRequest(_) => self.drop(link, Drop::NoSocket),
            Received::EchoReply(reply) => {
                let found = self.parts.demux.find_echo(&self.parts.sockets, reply.identifier);
                let taken = match found.and_then(|found| self.parts.sockets.typed(found)) {
                    None => Err(Drop::NoSocket),
                    Some(AnySocketId::Probe(id)) => {
                        ProbeSockets::new(self.parts).echo_input(id, reply.source, reply.sequence);
                        Ok(())
                    }
                    Some(AnySocketId::Echo(id)) => {
                        EchoSockets::new(self.parts).input(id, &reply, &mut packet)
                    }
                    Some(_) => Err(Drop::QueueFull),
                };
                if let Err(why) = taken {
                    self.drop(reply.link, why);
                }
            }
            Received::Datagram(datagram) => {
                let marks = self.marks();
                let done = match datagram.protocol {
                    protocol::TCP => {
                        if marks {
                            self.sink.begin_layer(Layer::Tcp);
                        }
                        let done = self.tcp_input(&datagram, &mut packet);
                        if marks {
                            self.sink.end_layer();
                        }
                        done
                    }
                    protocol::UDP => {
                        let mut udp = UdpSockets::new(self.parts);
                        let input = |sink: &mut dyn Sink| udp.input(&datagram, &mut packet, now, sink);
                        self.sink.within(marks, Layer::Udp, input)
                    }
                    _ => {
                        let mut environment = ip_environment!(self.parts, self.now, &mut *self.sink);
                        self.parts.ip.protocol_unreachable(&datagram, &mut packet, &mut environment);
                        Err(Drop::UnknownProtocol)
                    }
                };
                if let Err(why) = done {
                    self.drop(link, why);
                }
            }
        }
        self.parts.memory.pool_mut().give(packet);
    }
    fn drop(&mut self, link: LinkId, why: Drop) {
        self.parts.links.drop_frame(link, why, self.now, &mut *self.sink);
    }

    /// Takes a segment; an error says why it went no further.
    fn tcp_input(&mut self, datagram: &Datagram, packet: &mut Packet) -> Result<(), Drop> {
        let now = self.now;
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
        let marks = self.marks();
        let is_good = |_: &mut dyn Sink| view.checksum_ok(datagram.source, datagram.destination);
        if !packet.checksum.is_good() && !self.sink.within(marks, Layer::Checksum, is_good) {
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
        if let Some(key) = self.parts.demux.find_tcp(&self.parts.sockets, local, remote) {
            self.parts.demux.remember_last_flow(key);
            match self.parts.yield_time_wait(key, &header, datagram.link) {
                Some(sequence) => least_sequence = Some(sequence),
                None => return self.parts.flow_input(key, &header, packet, datagram, now, &mut *self.sink),
            }
        }
        match self.parts.find_call_taker(datagram.link, local) {
            Some(AnySocketId::Listener(listener)) => {
                let call = IncomingSyn { header: &header, datagram, least_sequence, name_hash: None };
                call.input(self.parts, listener, packet, now, &mut *self.sink)
            }
            other => {
                // The answer to a TCP probe gets a reset (RFC 9293 §3.10.7.1).
                if let Some(AnySocketId::Probe(probe)) = other {
                    ProbeSockets::new(self.parts).tcp_input(probe, &header, local, remote);
                }
                self.parts.no_connection(&header, packet.len(), datagram.link, local, remote, now);
                Err(Drop::NoSocket)
            }
        }
    }
    /// Hands an error to the socket that it concerns.
    // spec: RFC9293 MUST-54
    // spec: RFC1122 3.2.2.1-3
    fn network_error(&mut self, error: &TransportError) {
        let now = self.now;
        let local = Endpoint { address: error.quoted.source, port: error.quoted.source_port };
        let remote = Endpoint { address: error.quoted.destination, port: error.quoted.destination_port };
        if ProbeSockets::new(self.parts).error(error, now) {
            return;
        }
        let done = match error.quoted.protocol {
            protocol::TCP => self.parts.tcp_error(error, local, remote, now, &mut *self.sink),
            protocol::UDP => UdpSockets::new(self.parts).error(error, local, remote, now),
            protocol::ICMPV4 | protocol::ICMPV6 => EchoSockets::new(self.parts).error(error, now),
            _ => Err(Drop::UnknownProtocol),
        };
        if let Err(why) = done {
            self.drop(error.link, why);
        }
    }

    /// Accepts a redirect if it quotes a packet that was sent recently: a router sends a redirect at once.
    // spec: RFC5927 4
    // spec: RFC1122 3.2.2.2-2
    fn redirected(&mut self, redirect: &Redirect) {
        let now = self.now;
        let done = match self.was_sent_recently(redirect.link, &redirect.quoted) {
            true => self.parts.ip.paths_mut().redirect_confirmed(redirect, now),
            false => Err(Drop::NotCredible),
        };
        if let Err(why) = done {
            self.drop(redirect.link, why);
        }
    }
    /// Whether a packet like the quoted one has left within the last seconds.
    fn was_sent_recently(&mut self, link: LinkId, quoted: &Quoted) -> bool {
        let now = self.now;
        let local = Endpoint { address: quoted.source, port: quoted.source_port };
        let remote = Endpoint { address: quoted.destination, port: quoted.destination_port };
        let Parts { demux, sockets, ip, .. } = &mut *self.parts;
        let found = match quoted.protocol {
            protocol::ICMPV4 | protocol::ICMPV6 => demux.find_echo(sockets, quoted.source_port),
            protocol::TCP => demux.search_tcp(sockets, local, remote).map(SocketId::from),
            protocol::UDP => demux.find_connected_udp(sockets, local, remote).map(SocketId::from),
            _ => None,
        };
        let found = found.or_else(|| demux.find_binding(sockets, ip, quoted.protocol, link, local));
        let Some(found) = found else { return false };
        match sockets.any(found) {
            Some(Socket::Tcp(flow)) => quoted
                .tcp_sequence
                .is_some_and(|sequence| flow.connection().sender().was_sent_lately(sequence)),
            Some(Socket::Udp(udp)) => udp.recent().has_recent(remote, now),
            Some(Socket::Echo(echo)) => echo.recent().has_recent(remote, now),
            Some(Socket::Probe(prober)) => prober.has_sent_recently(quoted, now),
            Some(Socket::Listener(_)) | None => false,
        }
    }
}
