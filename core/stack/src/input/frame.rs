//! The slow path of input: through IP to the transport.

use crate::demux::Name;
use crate::input::{Reception, count_frame};
use crate::socket::AnySocketId;
use crate::sockets::Socket;
use inhost_base::{Endpoint, LinkId};
use inhost_buf::Packet;
use inhost_event::{Drop, Layer, Mask};
use inhost_ip::{Datagram, Received, Redirect, TransportError};
use inhost_wire::protocol;
use inhost_wire::quoted::Quoted;

impl Reception<'_, '_> {
    /// Takes one frame, to its end.
    pub(crate) fn frame(&mut self, mut packet: Packet) {
        self.env.begin_layer(Layer::Ip);
        count_frame(self.link, packet.len(), self.mask, self.env);
        if self.mask.intersects(Mask::DROP) {
            self.env.sink().looks_at(packet.bytes());
        }
        let link = self.link;
        let (ip, mut environment) = self.env.ip();
        let received = ip.receive(link, &mut packet, &mut environment);
        match received {
            Received::Handled => {}
            Received::Dropped(why) => self.env.network_mut().links_mut().count_drop(link, why),
            Received::Error(error) => self.network_error(&error),
            Received::Redirect(redirect) => self.redirected(&redirect),
            // A gateway does not answer pings for other hosts yet.
            Received::EchoRequest(_) => self.drop(link, Err(Drop::NoSocket)),
            Received::EchoReply(reply) => {
                let taken = self.echo_input(&reply, &mut packet);
                self.drop(reply.link, taken);
            }
            Received::Datagram(datagram) => {
                let done = self.datagram(&datagram, &mut packet);
                self.drop(link, done);
            }
        }
        self.give(packet);
        self.env.end_layer();
    }
    /// Hands a datagram to its transport; an error says why it went no further.
    fn datagram(&mut self, datagram: &Datagram, packet: &mut Packet) -> Result<(), Drop> {
        match datagram.protocol {
            protocol::TCP => {
                self.env.begin_layer(Layer::Tcp);
                let done = self.tcp_input(datagram, packet);
                self.env.end_layer();
                done
            }
            protocol::UDP => {
                self.env.begin_layer(Layer::Udp);
                let done = self.udp_input(datagram, packet);
                self.env.end_layer();
                done
            }
            _ => {
                let (ip, mut environment) = self.env.ip();
                ip.protocol_unreachable(datagram, packet, &mut environment);
                Err(Drop::UnknownProtocol)
            }
        }
    }
    /// Counts and reports a frame that went no further.
    fn drop(&mut self, link: LinkId, done: Result<(), Drop>) {
        if let Err(why) = done {
            self.env.drop_frame(link, why);
        }
    }
    /// Hands an error to the socket that it concerns.
    // spec: RFC9293 MUST-54
    // spec: RFC1122 3.2.2.1-3
    fn network_error(&mut self, error: &TransportError) {
        let done = self.find_quoted(error.link, &error.quoted).and_then(|found| match found {
            AnySocketId::Tcp(key) => self.tcp_error(error, key),
            AnySocketId::Udp(key) => self.udp_error(error, key),
            AnySocketId::Echo(key) => self.echo_error(error, key),
            AnySocketId::Probe(key) => self.probe_error(error, key),
            AnySocketId::Listener(_) => Err(Drop::NoSocket),
        });
        self.drop(error.link, done);
    }
    /// The socket that may have sent what is quoted.
    fn find_quoted(&mut self, link: LinkId, quoted: &Quoted) -> Result<AnySocketId, Drop> {
        let name = quoted_name(quoted);
        let found = match quoted.protocol {
            protocol::ICMPV4 | protocol::ICMPV6 => self.sockets.find_echo(quoted.source_port),
            protocol::TCP => self.sockets.find_tcp(&name).map(AnySocketId::Tcp),
            protocol::UDP => self.sockets.find_connected_udp(&name).map(AnySocketId::Udp),
            _ => return Err(Drop::UnknownProtocol),
        };
        let found = found.or_else(|| self.sockets.find_binding(self.env.paths(), link, &name));
        found.ok_or(Drop::NoSocket)
    }

    /// Accepts a redirect if it quotes a packet that was sent recently: a router sends a redirect at once.
    // spec: RFC5927 4
    // spec: RFC1122 3.2.2.2-2
    fn redirected(&mut self, redirect: &Redirect) {
        let now = self.env.now();
        let done = match self.was_sent_recently(redirect.link, &redirect.quoted) {
            true => self.env.paths_mut().redirect_confirmed(redirect, now),
            false => Err(Drop::NotCredible),
        };
        self.drop(redirect.link, done);
    }
    /// Whether a packet like the quoted one has left within the last seconds.
    fn was_sent_recently(&mut self, link: LinkId, quoted: &Quoted) -> bool {
        let now = self.env.now();
        let remote = quoted_name(quoted).remote;
        let found = self.find_quoted(link, quoted);
        match found.ok().and_then(|found| self.sockets.any(found.into())) {
            Some(Socket::Tcp(flow)) => quoted
                .tcp_sequence
                .is_some_and(|sequence| flow.connection().sender().was_sent_lately(sequence)),
            Some(Socket::Probe(prober)) => prober.has_sent_recently(quoted, now),
            Some(socket) => socket.datagrams().is_some_and(|sent| sent.recent().has_recent(remote, now)),
            None => false,
        }
    }
}

/// Our end and the other of a packet that was ours.
pub(super) fn quoted_name(quoted: &Quoted) -> Name {
    Name {
        protocol: quoted.protocol,
        local: Endpoint { address: quoted.source, port: quoted.source_port },
        remote: Endpoint { address: quoted.destination, port: quoted.destination_port },
    }
}
