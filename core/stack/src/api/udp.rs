//! The calls on UDP sockets (RFC 768), connected and unconnected, with checksums always on.

use crate::api::UdpSockets;
use crate::error::BindError;
use crate::quote;
use crate::socket::{SocketId, UdpSocketId};
use crate::sockets::Socket;
use alloc::boxed::Box;
use inhost_base::{Endpoint, IpAddr, LinkId};
use inhost_datagram::{
    DatagramError, DatagramInfo, LEAST_BYTES, Outgoing, SendDatagrams, SocketError, UdpOptions, UdpSocket,
};
use inhost_ip::Unreachable;
use inhost_wire::checksum::Sum;
use inhost_wire::protocol;
use inhost_wire::udp::{self, UdpHeader};

impl UdpSockets<'_> {
    /// A UDP socket at `local`. An unspecified address stands for every address of ours (`::` for both families), port
    /// 0 for one that the host chooses, and on an any-address socket for every port. A tentative address can be bound;
    /// datagrams are sent and received when duplicate address detection has passed.
    // spec: RFC1122 4.1.3.5-2
    pub fn bind(&mut self, local: Endpoint, options: UdpOptions) -> Result<UdpSocketId, BindError> {
        self.sockets.make_room_for_datagrams(self.env.resources())?;
        let Endpoint { address, port } = local;
        if !address.is_unspecified() && !options.any_address && !self.can_bind(address, options.broadcast) {
            return Err(BindError::NotOurs);
        }
        let port = match port {
            0 if options.any_address => 0,
            0 => self.sockets.choose_bound_port(protocol::UDP, address, self.env.random())?,
            port => port,
        };
        let local = Endpoint { address, port };
        let takes_group = address.is_multicast() || self.env.network().is_broadcast_somewhere(address);
        let udp = UdpSocket::new(local, options, takes_group, self.env.now());
        let SocketId(key) = self.sockets.bind(Socket::Udp(Box::new(udp)))?;
        Ok(UdpSocketId::of(key))
    }

    /// Connects a UDP socket: it sends to `remote`, receives only from there, and gets ICMP errors. Its source address
    /// is chosen now. A connected socket can be connected anew.
    pub fn connect(&mut self, socket: UdpSocketId, remote: Endpoint) -> Result<(), DatagramError> {
        let udp = self.sockets.held_udp(socket)?;
        let now = self.env.now();
        let local = udp.end_towards(remote, self.env.paths_mut(), now)?;
        match self.sockets.connect_udp(socket, local, remote) {
            true => Ok(()),
            false => Err(DatagramError::InUse),
        }
    }

    /// Sends one datagram: to `to`, or where the socket is connected; from `from`, where the socket's own end leaves
    /// that open. It is queued and leaves with the next [`crate::Stack::transmit`].
    pub fn send_to(
        &mut self,
        socket: UdpSocketId,
        bytes: &[u8],
        to: Option<Endpoint>,
        from: Option<Endpoint>,
    ) -> Result<(), DatagramError> {
        self.send_with(socket, bytes, &SendDatagrams::between(from, to))
    }
    /// Sends `bytes` as datagrams of `segment_bytes` each, the last of which may be shorter: at most
    /// [`crate::MAX_GSO_DATAGRAMS`], 65,507 bytes in all, to where and from where [`UdpSockets::send_to`] would. They are queued
    /// together and leave with the next [`crate::Stack::transmit`], as one frame where the device cuts it. None of them is ever
    /// fragmented, here or on the way (RFC 8085 §3.2): each must fit the path, or the error is
    /// [`DatagramError::TooLong`].
    ///
    /// Data that fits one datagram is sent as one, as [`UdpSockets::send_to`] does.
    ///
    /// # Errors
    /// [`DatagramError::TooLong`] also for more datagrams than that, and for bytes in datagrams of none; the others are
    /// those of [`UdpSockets::send_to`]. Nothing is sent then.
    pub fn send_gso(
        &mut self,
        socket: UdpSocketId,
        bytes: &[u8],
        segment_bytes: u16,
        to: Option<Endpoint>,
        from: Option<Endpoint>,
    ) -> Result<(), DatagramError> {
        if segment_bytes == 0 && !bytes.is_empty() {
            return Err(DatagramError::TooLong);
        }
        let mut how = SendDatagrams::between(from, to);
        how.segment_bytes = segment_bytes;
        self.send_with(socket, bytes, &how)
    }
    /// Sends one datagram as [`UdpSockets::send_to`] does, or several as [`UdpSockets::send_gso`] does, with a
    /// congestion mark.
    ///
    /// # Errors
    /// As those.
    pub fn send_with(
        &mut self,
        socket: UdpSocketId,
        bytes: &[u8],
        how: &SendDatagrams,
    ) -> Result<(), DatagramError> {
        let udp = self.sockets.held_udp_mut(socket)?;
        let now = self.env.now();
        let datagram = udp.prepare(bytes.len(), how, self.env.paths_mut(), now)?;
        self.queue(socket, bytes, datagram)
    }
    /// Broadcasts one datagram to `port` on `link`, from 0.0.0.0: allowed on a link without an address (RFC 2131 §4.1).
    /// The socket is bound to its port at any address.
    pub fn send_unaddressed(
        &mut self,
        socket: UdpSocketId,
        bytes: &[u8],
        link: LinkId,
        port: u16,
    ) -> Result<(), DatagramError> {
        let udp = self.sockets.held_udp_mut(socket)?;
        let datagram = udp.prepare_unaddressed(bytes.len(), (link, port), self.env.paths())?;
        self.queue(socket, bytes, datagram)
    }

    /// Queues a datagram, or several for GSO.
    fn queue(&mut self, socket: UdpSocketId, bytes: &[u8], datagram: Outgoing) -> Result<(), DatagramError> {
        let datagram = (bytes.len().max(LEAST_BYTES), datagram);
        self.sockets.queue_datagram(socket.into(), datagram, &mut self.env, |_, payload| {
            payload.append(bytes);
        })
    }

    /// Receives the next datagram: as much of it as `into` has room for, and its addresses.
    pub fn receive_from(
        &mut self,
        socket: UdpSocketId,
        into: &mut [u8],
    ) -> Result<DatagramInfo, DatagramError> {
        self.sockets.held_udp_mut(socket)?.datagrams_mut().receive(into, self.env.pool())
    }

    /// The datagram that [`UdpSockets::receive_from`] gives next, which stays; `None` when there is none.
    pub fn next_received(&self, socket: UdpSocketId) -> Option<DatagramInfo> {
        self.sockets.held_udp(socket).ok()?.datagrams().next_incoming().copied()
    }
    /// Datagrams that arrived for the socket and were dropped: its receive limit was reached, or memory was short.
    pub fn dropped(&self, socket: UdpSocketId) -> u64 {
        self.sockets.held_udp(socket).map_or(0, UdpSocket::dropped)
    }
    /// The error that waits to be reported, which counts as reported then.
    pub fn take_error(&mut self, socket: UdpSocketId) -> Result<Option<DatagramError>, SocketError> {
        Ok(self.sockets.held_udp_mut(socket)?.datagrams_mut().take_error().err())
    }

    /// Tells who sent a datagram `from` there `to` here that it is refused, by an ICMP error that quotes its headers. For
    /// sockets with [`crate::UdpOptions::any_address`], which have received it. Above the host's rate limits of ICMP errors
    /// nothing is sent.
    ///
    /// # Errors
    /// When there is no route back.
    // spec: RFC1122 4.1.3.1-1
    pub fn refuse(&mut self, from: Endpoint, to: Endpoint, why: Unreachable) -> Result<(), DatagramError> {
        let path = self.env.route(from.address, Some(to.address), None)?;
        let mut header = [0; udp::LENGTH];
        let ports = UdpHeader { source_port: from.port, destination_port: to.port };
        ports.emit(from.address, to.address, 0, Sum::of(&[]), &mut header);
        let quoted = quote::packet(from.address, to.address, protocol::UDP, &header);
        let (ip, mut environment) = self.env.ip();
        ip.unreachable(path.link, why, &quoted, &mut environment);
        Ok(())
    }

    fn can_bind(&self, address: IpAddr, broadcast: bool) -> bool {
        address.is_multicast()
            || self.env.paths().is_local_or_tentative(address)
            || (broadcast && self.env.network().is_broadcast_somewhere(address))
    }
}
