//! UDP sockets (RFC 768): connected and not, with the checksum always on.

use crate::datagram_run::MAX_RUN_DATAGRAMS;
use crate::error::{BindError, DatagramError, SocketError};
use crate::input::can_talk;
use crate::options::UdpOptions;
use crate::output::{Counting, Turn};
use crate::parts::{Parts, ip_environment};
use crate::recent::RecentlySent;
use crate::sockets::{AnySocketId, DatagramInfo, Readiness, Socket, SocketId, UdpSocketId};
use inhost_base::{Endpoint, Instant, IpAddr, LinkId};
use inhost_buf::{COPY_BELOW_BYTES, Packet, Pool, Slices};
use inhost_event::{Drop, Sink};
use inhost_ip::{Datagram, HeaderHow, Path, SendDatagramError};
use inhost_wire::checksum::Sum;
use inhost_wire::large::segments;
use inhost_wire::protocol;
use inhost_wire::udp::{self, UdpHeader, UdpView};
use std::collections::VecDeque;

/// The most that a length field can say. Over IPv4 the IP header is counted with the datagram, over IPv6 not.
const LONGEST_BYTES: usize = u16::MAX as usize;
/// Datagrams that a socket may hold in each direction, whatever they pin.
const QUEUED_DATAGRAMS: usize = 4096;
/// Destinations of which a socket remembers that it sent there.
const RECENT_DESTINATIONS: usize = 32;
/// No path is narrower than this, so no report about a shorter packet is believed.
const LEAST_PATH_MTU: u16 = 552;
/// Memory that a datagram of no bytes counts.
const LEAST_BYTES: usize = 64;

/// A UDP socket.
#[derive(Debug)]
pub(crate) struct Udp {
    /// The end that it was bound to, under which it is found in the table of bindings.
    pub(crate) bound: Endpoint,
    /// Our end: as bound, or with the source address chosen when it was connected.
    pub(crate) local: Endpoint,
    pub(crate) remote: Option<Endpoint>,
    /// It is bound to a group or to a broadcast address.
    takes_group: bool,
    pub(crate) options: UdpOptions,
    pub(crate) opened: Instant,
    incoming: VecDeque<Incoming>,
    incoming_capacity: usize,
    pub(crate) outgoing: VecDeque<Outgoing>,
    outgoing_capacity: usize,
    /// To be reported once.
    pub(crate) error: Option<DatagramError>,
    /// To judge ICMP errors by.
    pub(crate) recent: RecentlySent,
    /// A send found no room.
    writer_waits: bool,
    /// The application has let go of it, and its last datagrams are on their way out.
    pub(crate) closed: bool,
}

#[derive(Debug)]
struct Incoming {
    payload: Packet,
    info: DatagramInfo,
}

#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) payload: Packet,
    pub(crate) path: Path,
    pub(crate) source_port: u16,
    pub(crate) destination: Endpoint,
    /// Of a run of datagrams, the payload of each but the last; 0 of one datagram.
    pub(crate) segment_bytes: u16,
}

impl Udp {
    pub(crate) fn readiness(&self) -> Readiness {
        if self.closed {
            return Readiness::NONE;
        }
        let failed = self.error.is_some();
        Readiness::NONE
            .with_if(Readiness::READABLE, failed || !self.incoming.is_empty())
            .with_if(Readiness::WRITABLE, failed || self.has_room(1))
            .with_if(Readiness::CONNECTED, self.remote.is_some())
            .with_if(Readiness::ERROR, failed)
    }
    fn has_room(&self, bytes: usize) -> bool {
        self.outgoing.is_empty()
            || (self.outgoing.len() < QUEUED_DATAGRAMS
                && self.outgoing_capacity + bytes <= self.options.send_limit_bytes)
    }
    /// Memory that its datagrams pin.
    pub(crate) fn held_bytes(&self) -> usize {
        self.incoming_capacity + self.outgoing_capacity
    }
    /// Bytes that wait for the application, and for the link.
    pub(crate) fn queued_bytes(&self) -> (usize, usize) {
        let incoming = self.incoming.iter().map(|datagram| datagram.payload.len()).sum();
        (incoming, self.outgoing.iter().map(|datagram| datagram.payload.len()).sum())
    }
    fn take_outgoing(&mut self) -> Option<Outgoing> {
        let datagram = self.outgoing.pop_front()?;
        self.outgoing_capacity -= datagram.payload.capacity();
        Some(datagram)
    }
    /// Remembers that the first datagram left, where an error about it may matter, or a gateway may know a better one.
    #[inline]
    fn note_sent(&mut self, now: Instant) {
        let Some(datagram) = self.outgoing.front() else { return };
        let (path, options) = (&datagram.path, &self.options);
        let payload_bytes = match datagram.segment_bytes {
            0 => datagram.payload.len(),
            each => usize::from(each),
        };
        let packet_bytes = path.ip_header_bytes() + udp::LENGTH + payload_bytes;
        let is_whole = options.keeps_whole(packet_bytes, path)
            || datagram.segment_bytes > 0
            || path.destination.is_ipv6();
        // A longer one left in fragments, of which each is a packet.
        let longest = if options.beyond_path_mtu { u16::MAX } else { path.mtu_bytes };
        let packet_bytes = packet_bytes.min(usize::from(longest));
        let whole_bytes = if is_whole { packet_bytes as u16 } else { 0 };
        if self.remote.is_some()
            || options.report_unconnected_errors
            || whole_bytes > LEAST_PATH_MTU
            || path.next_hop != path.destination
        {
            self.recent.note(datagram.destination, whole_bytes, now);
        } else {
            self.recent.note_aside(datagram.destination, whole_bytes, now);
        }
    }
    /// Gives the memory of what came in back.
    pub(crate) fn discard_incoming(&mut self, pool: &mut Pool) {
        self.incoming.drain(..).for_each(|datagram| pool.give(datagram.payload));
        self.incoming_capacity = 0;
    }
    /// Gives all its memory back.
    pub(crate) fn clear(mut self, pool: &mut Pool) {
        self.discard_incoming(pool);
        self.outgoing.into_iter().for_each(|datagram| pool.give(datagram.payload));
    }
}

/// Calls on UDP sockets: see [`crate::Stack::udp`].
#[derive(Debug)]
pub struct UdpSockets<'a> {
    parts: &'a mut Parts,
}

impl<'a> UdpSockets<'a> {
    pub(crate) fn new(parts: &'a mut Parts) -> UdpSockets<'a> {
        UdpSockets { parts }
    }
    /// A UDP socket at `local`. An unspecified address stands for every address of ours (`::` for both families), port
    /// 0 for one that the host chooses, and on an any-address socket for every port. An address that is still tested for
    /// a double can be bound; datagrams come and go when the test has passed.
    // spec: RFC1122 4.1.3.5-2
    pub fn bind(self, local: Endpoint, options: UdpOptions, now: Instant) -> Result<UdpSocketId, BindError> {
        self.parts.tick(now);
        if !self.parts.has_room_for_datagram_socket() {
            return Err(BindError::TooManySockets);
        }
        let Endpoint { address, port } = local;
        if !address.is_unspecified()
            && !options.any_address
            && !self.parts.can_bind(address, options.broadcast)
        {
            return Err(BindError::NotOurs);
        }
        let port = match port {
            0 if options.any_address => 0,
            0 => self.parts.choose_udp_port(address).ok_or(BindError::NoPort)?,
            port => port,
        };
        let local = Endpoint { address, port };
        let takes_group = address.is_multicast() || self.parts.is_broadcast_somewhere(address);
        let udp = Udp {
            bound: local,
            local,
            remote: None,
            takes_group,
            options,
            opened: now,
            incoming: VecDeque::new(),
            incoming_capacity: 0,
            outgoing: VecDeque::new(),
            outgoing_capacity: 0,
            error: None,
            recent: RecentlySent::new(RECENT_DESTINATIONS),
            writer_waits: false,
            closed: false,
        };
        let SocketId(key) = self.parts.demux.bind(&mut self.parts.sockets, Socket::Udp(Box::new(udp)))?;
        self.parts.population.datagram_sockets += 1;
        Ok(UdpSocketId::of(key))
    }

    /// Connects a UDP socket: it sends to `remote`, takes datagrams from nowhere else, and hears of ICMP errors. Its
    /// source address is chosen now. A connected socket can be connected anew.
    pub fn connect(self, socket: UdpSocketId, remote: Endpoint, now: Instant) -> Result<(), DatagramError> {
        self.parts.tick(now);
        let udp = self.parts.udp(socket)?;
        let (bound, link, any_address) = (udp.bound, udp.options.link, udp.options.any_address);
        if any_address {
            return Err(SocketError::WrongKind.into());
        }
        if remote.port == 0 {
            return Err(DatagramError::NoDestination);
        }
        let source = (!bound.address.is_unspecified()).then_some(bound.address);
        let path = self.parts.ip.route(remote.address, source, link, now)?;
        let local = Endpoint { address: path.source, port: bound.port };
        self.parts.demux.unlist_udp(&self.parts.sockets, socket.into());
        let udp = self.parts.udp_mut(socket)?;
        (udp.local, udp.remote) = (local, Some(remote));
        if self.parts.demux.list_udp(&self.parts.sockets, socket) {
            return Ok(());
        }
        let udp = self.parts.udp_mut(socket)?;
        (udp.local, udp.remote) = (udp.bound, None);
        Err(DatagramError::InUse)
    }

    /// Sends one datagram: to `to`, or where the socket is connected; from `from`, where the socket's own end leaves
    /// that open. It is queued and leaves with the next [`Stack::transmit`].
    pub fn send_to(
        self,
        socket: UdpSocketId,
        bytes: &[u8],
        to: Option<Endpoint>,
        from: Option<Endpoint>,
        now: Instant,
    ) -> Result<(), DatagramError> {
        self.queue_to(socket, (bytes, 0), to, from, now)
    }
    /// Sends `bytes` as datagrams of `segment_bytes` each, the last of which may be shorter: at most
    /// [`MAX_RUN_DATAGRAMS`], 65,507 bytes in all, to where and from where [`Stack::udp_send_to`] would. They are queued
    /// together and leave with the next [`Stack::transmit`], as one frame where the device cuts it. None of them is ever
    /// fragmented, here or on the way (RFC 8085 §3.2): each must fit the path, or the error is
    /// [`DatagramError::TooLong`].
    ///
    /// What fits one datagram is sent as one, with all that its socket's options say.
    ///
    /// # Errors
    /// [`DatagramError::TooLong`] also for more datagrams than that, and for bytes in datagrams of none; the others are
    /// those of [`Stack::udp_send_to`]. Nothing of the run is sent then.
    pub fn send_run(
        self,
        socket: UdpSocketId,
        bytes: &[u8],
        segment_bytes: u16,
        to: Option<Endpoint>,
        from: Option<Endpoint>,
        now: Instant,
    ) -> Result<(), DatagramError> {
        if segment_bytes == 0 || bytes.len() <= usize::from(segment_bytes) {
            return match segment_bytes {
                0 if !bytes.is_empty() => Err(DatagramError::TooLong),
                _ => self.queue_to(socket, (bytes, 0), to, from, now),
            };
        }
        if segments(bytes.len(), usize::from(segment_bytes)) > MAX_RUN_DATAGRAMS {
            return Err(DatagramError::TooLong);
        }
        self.queue_to(socket, (bytes, segment_bytes), to, from, now)
    }
    /// Sends one datagram to `port` of everybody on `link`, from 0.0.0.0: what a host may say on a link that has given
    /// it no address yet (RFC 2131 §4.1). The socket is bound to its port at any address.
    pub fn send_unaddressed(
        self,
        socket: UdpSocketId,
        bytes: &[u8],
        link: LinkId,
        port: u16,
        now: Instant,
    ) -> Result<(), DatagramError> {
        self.parts.tick(now);
        let udp = self.parts.udp_mut(socket)?;
        if !udp.local.address.is_unspecified() || udp.local.port == 0 || port == 0 {
            return Err(DatagramError::NoDestination);
        }
        if bytes.len() > largest_bytes(udp.local.address) {
            return Err(DatagramError::TooLong);
        }
        if !udp.has_room(bytes.len() + inhost_buf::HEADROOM_BYTES) {
            udp.writer_waits = true;
            return Err(DatagramError::WouldBlock);
        }
        let source_port = udp.local.port;
        let path = self.parts.ip.route_unaddressed(link)?;
        let destination = Endpoint { address: path.destination, port };
        self.queue(socket, (bytes, 0), (path, source_port, destination), now)
    }

    /// As [`UdpSockets::send_to`], with the bytes of each datagram where they are several, else 0.
    fn queue_to(
        self,
        socket: UdpSocketId,
        (bytes, segment_bytes): (&[u8], u16),
        to: Option<Endpoint>,
        from: Option<Endpoint>,
        now: Instant,
    ) -> Result<(), DatagramError> {
        self.parts.tick(now);
        let udp = self.parts.udp(socket)?;
        let (error, has_room) = (udp.error, udp.has_room(bytes.len() + inhost_buf::HEADROOM_BYTES));
        let (local, link, any_address) = (udp.local, udp.options.link, udp.options.any_address);
        let (broadcast_allowed, takes_group) = (udp.options.broadcast, udp.takes_group);
        let (dont_fragment, beyond_path_mtu) = (udp.options.dont_fragment, udp.options.beyond_path_mtu);
        let destination = to.or(udp.remote).ok_or(DatagramError::NoDestination)?;
        if destination.port == 0 || destination.address.is_unspecified() {
            return Err(DatagramError::NoDestination);
        }
        if bytes.len() > largest_bytes(destination.address) {
            return Err(DatagramError::TooLong);
        }
        let source = source_of(local, from, (any_address, takes_group))?;
        let address = (!source.address.is_unspecified()).then_some(source.address);
        let path = self.parts.ip.route(destination.address, address, link, now)?;
        if !broadcast_allowed && self.parts.is_broadcast(&path, destination.address) {
            return Err(DatagramError::Broadcast);
        }
        let is_whole = segment_bytes > 0 || (dont_fragment && !beyond_path_mtu);
        let each = if segment_bytes > 0 { usize::from(segment_bytes) } else { bytes.len() };
        if is_whole && udp::LENGTH + each > path.payload_limit_bytes() {
            return Err(DatagramError::TooLong);
        }
        // A call that could not be done anyway tells nothing of earlier ones.
        if let Some(error) = error {
            self.parts.udp_mut(socket)?.error = None;
            return Err(error);
        }
        if !has_room {
            self.parts.udp_mut(socket)?.writer_waits = true;
            return Err(DatagramError::WouldBlock);
        }
        self.queue(socket, (bytes, segment_bytes), (path, source.port, destination), now)
    }
    fn queue(
        self,
        socket: UdpSocketId,
        (bytes, segment_bytes): (&[u8], u16),
        (path, source_port, destination): (Path, u16, Endpoint),
        now: Instant,
    ) -> Result<(), DatagramError> {
        let is_first = self.parts.udp(socket)?.outgoing.is_empty();
        let Some(mut payload) = self.parts.memory.take_to_send(is_first, bytes.len().max(LEAST_BYTES)) else {
            self.parts.memory.wait(socket.into(), now);
            return Err(DatagramError::WouldBlock);
        };
        payload.append(bytes);
        let udp = self.parts.udp_mut(socket)?;
        udp.outgoing_capacity += payload.capacity();
        let first = udp.outgoing.is_empty();
        udp.outgoing.push_back(Outgoing { payload, path, source_port, destination, segment_bytes });
        if first {
            self.parts.schedule.make_ready(path.link, socket.place());
        }
        Ok(())
    }

    /// Takes the next datagram: as much of it as `into` has room for, and what came with it.
    pub fn receive_from(
        self,
        socket: UdpSocketId,
        into: &mut [u8],
        now: Instant,
    ) -> Result<DatagramInfo, DatagramError> {
        self.parts.tick(now);
        let udp = self.parts.udp_mut(socket)?;
        if let Some(error) = udp.error.take() {
            return Err(error);
        }
        let Incoming { payload, info } = udp.incoming.pop_front().ok_or(DatagramError::WouldBlock)?;
        udp.incoming_capacity -= payload.capacity();
        inhost_buf::copy(into, payload.bytes());
        self.parts.memory.pool_mut().give(payload);
        Ok(info)
    }

    /// The error that waits to be reported, which counts as reported then.
    pub fn take_error(self, socket: UdpSocketId, now: Instant) -> Result<Option<DatagramError>, SocketError> {
        self.parts.tick(now);
        Ok(self.parts.udp_mut(socket)?.error.take())
    }
}

impl Parts {
    fn can_bind(&self, address: IpAddr, broadcast: bool) -> bool {
        address.is_multicast()
            || self.ip.is_local_or_tentative(address)
            || (broadcast && self.is_broadcast_somewhere(address))
    }
    fn is_broadcast_somewhere(&self, address: IpAddr) -> bool {
        self.link_ids().any(|link| self.ip.is_broadcast(link, address))
    }
    fn choose_udp_port(&mut self, address: IpAddr) -> Option<u16> {
        let Parts { demux, config, sockets, random, .. } = self;
        demux.choose_udp_port(sockets, config, address, random)
    }

    /// Takes a datagram; an error says why it went no further.
    // spec: RFC1122 4.1.3.4-2, 4.1.3.6-1
    pub(crate) fn udp_input(
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
        let Some(key) = self.find_udp(datagram.link, local, remote) else {
            if self.probe_udp_input(datagram.link, local, remote) {
                return Ok(());
            }
            // spec: RFC1122 4.1.3.1-1
            if datagram.to_unicast {
                let mut environment = ip_environment!(self, now, sink);
                self.ip.port_unreachable(datagram, packet, udp::LENGTH + length_bytes, &mut environment);
            }
            return Err(Drop::NoSocket);
        };
        packet.trim_front(udp::LENGTH);
        packet.truncate(length_bytes);
        let (link, hop_limit) = (datagram.link, datagram.hop_limit);
        let info = DatagramInfo { length_bytes, from: remote, to: local, link, hop_limit };
        match usize::from(packet.segment_bytes) {
            0 => self.udp_deliver(key, packet, info),
            each => self.udp_deliver_each(key, packet, info, each),
        }
    }
    /// Delivers the datagrams of `each` bytes that a device has put together.
    fn udp_deliver_each(
        &mut self,
        key: UdpSocketId,
        packet: &mut Packet,
        info: DatagramInfo,
        each: usize,
    ) -> Result<(), Drop> {
        let mut result = Ok(());
        while !packet.is_empty() {
            let length_bytes = each.min(packet.len());
            let Some(mut one) = self.memory.pool_mut().take_bare(length_bytes.max(LEAST_BYTES)) else {
                return Err(Drop::NoMemory);
            };
            one.append(packet.bytes().get(..length_bytes).unwrap_or(&[]));
            packet.trim_front(length_bytes);
            result = result.and(self.udp_deliver(key, &mut one, DatagramInfo { length_bytes, ..info }));
            self.memory.pool_mut().give(one);
        }
        result
    }
    /// The socket that takes what `remote` sends to `local`.
    fn find_udp(&mut self, link: LinkId, local: Endpoint, remote: Endpoint) -> Option<UdpSocketId> {
        if let Some(key) = self.demux.find_connected_udp(&self.sockets, local, remote) {
            return Some(key);
        }
        let key = self.find_bound_udp(link, local)?;
        // A connected socket takes from nobody else.
        self.sockets.udp(key).is_some_and(|udp| udp.remote.is_none()).then_some(key)
    }
    /// The UDP socket that is bound to `local`.
    pub(crate) fn find_bound_udp(&mut self, link: LinkId, local: Endpoint) -> Option<UdpSocketId> {
        let found = self.demux.find_binding(&self.sockets, &self.ip, protocol::UDP, link, local)?;
        match self.sockets.typed(found)? {
            AnySocketId::Udp(id) => Some(id),
            _ => None,
        }
    }
    // spec: RFC1122 4.1.3.5-1
    fn udp_deliver(&mut self, key: UdpSocketId, packet: &mut Packet, info: DatagramInfo) -> Result<(), Drop> {
        let pressed = self.memory.pool().is_under_pressure();
        let share = self.memory.share_bytes(&self.sockets);
        let Some(udp) = self.sockets.udp_mut(key) else { return Err(Drop::NoSocket) };
        let small = packet.len() < COPY_BELOW_BYTES;
        let copied = match small {
            true => self.memory.pool_mut().take_bare(packet.len().max(LEAST_BYTES)),
            false => None,
        };
        let capacity = copied.as_ref().map_or(packet.capacity(), Packet::capacity);
        let pinned = udp.incoming_capacity + capacity;
        // The first datagram is taken whatever it pins, or a small limit would take none at all.
        let fits = udp.incoming.is_empty() || pinned <= udp.options.receive_limit_bytes;
        let refused = match () {
            _ if !fits || udp.incoming.len() >= QUEUED_DATAGRAMS => Some(Drop::QueueFull),
            _ if pressed && pinned > share => Some(Drop::NoMemory),
            _ => None,
        };
        if let Some(why) = refused {
            self.memory.pool_mut().give(copied.unwrap_or_default());
            return Err(why);
        }
        let payload = match copied {
            Some(mut payload) => {
                payload.append(packet.bytes());
                payload
            }
            None => packet.take(),
        };
        udp.incoming_capacity = pinned;
        udp.incoming.push_back(Incoming { payload, info });
        self.counters.datagrams_received += 1;
        self.tell(key.into());
        Ok(())
    }

    /// Sends some of a socket's datagrams.
    pub(crate) fn udp_turn(
        &mut self,
        link: LinkId,
        key: UdpSocketId,
        now: Instant,
        budget: usize,
        device: &mut Counting<'_>,
        sink: &mut dyn Sink,
    ) -> Turn {
        let mut left = budget;
        while left > 0 {
            let Some(udp) = self.sockets.udp_mut(key) else { return Turn::Done };
            let Some(next) = udp.outgoing.front_mut() else { return Turn::Done };
            if next.path.generation != self.ip.generation() {
                let Path { source, destination, link, .. } = next.path;
                let way = match source.is_unspecified() {
                    true => self.ip.route_unaddressed(link),
                    false => self.ip.route(destination, Some(source), udp.options.link, now),
                };
                match way {
                    Ok(path) => next.path = path,
                    Err(why) => {
                        self.udp_give_up(key, Some(DatagramError::Route(why)));
                        continue;
                    }
                }
            }
            if next.path.link != link {
                self.schedule.make_ready(next.path.link, key.place());
                return Turn::Done;
            }
            if next.segment_bytes > 0 {
                match self.udp_run_turn(key, left, now, device, sink) {
                    Ok(frames) => left -= frames.clamp(1, left),
                    Err(SendDatagramError::Full) => return Turn::Full,
                    Err(SendDatagramError::Pending) => return Turn::Pending,
                    Err(why) => self.udp_give_up(key, Some(why.into())),
                }
                continue;
            }
            left -= 1;
            let mut how = HeaderHow::new(protocol::UDP);
            how.dscp_ecn = udp.options.differentiated_services << 2;
            how.hop_limit = udp.options.hop_limit;
            let packet_bytes = next.path.ip_header_bytes() + udp::LENGTH + next.payload.len();
            how.dont_fragment = udp.options.keeps_whole(packet_bytes, &next.path);
            how.beyond_path_mtu = udp.options.beyond_path_mtu;
            let mut header = [0; udp::LENGTH];
            let (source, destination) = (next.path.source, next.destination);
            let bytes = next.payload.bytes();
            UdpHeader { source_port: next.source_port, destination_port: destination.port }.emit(
                source,
                destination.address,
                bytes.len(),
                Sum::of(bytes),
                &mut header,
            );
            let mut payload = Slices::one(&header);
            payload.push(bytes);
            let mut environment = ip_environment!(self, now, sink);
            let sent = self.ip.send_datagram(&next.path, &how, payload, &mut environment, device);
            match sent {
                Ok(()) => {
                    self.counters.datagrams_sent += 1;
                    self.udp_sent(key, now);
                }
                Err(SendDatagramError::Full) => return Turn::Full,
                Err(SendDatagramError::Pending) => return Turn::Pending,
                Err(why) => self.udp_give_up(key, Some(why.into())),
            }
        }
        match self.sockets.udp(key) {
            Some(udp) if !udp.outgoing.is_empty() => Turn::More,
            _ => Turn::Done,
        }
    }
    /// A socket's first datagram has left.
    pub(crate) fn udp_sent(&mut self, key: UdpSocketId, now: Instant) {
        if let Some(udp) = self.sockets.udp_mut(key) {
            udp.note_sent(now);
        }
        self.udp_give_up(key, None);
    }
    /// Is done with a socket's first datagram.
    pub(crate) fn udp_give_up(&mut self, key: UdpSocketId, error: Option<DatagramError>) {
        let Some(udp) = self.sockets.udp_mut(key) else { return };
        if let Some(datagram) = udp.take_outgoing() {
            self.memory.pool_mut().give(datagram.payload);
        }
        if udp.closed {
            if udp.outgoing.is_empty() {
                self.remove_datagram_socket(key.into());
            }
            return;
        }
        let woken = udp.writer_waits;
        udp.writer_waits = false;
        let reported = error.is_some() && (udp.remote.is_some() || udp.options.report_unconnected_errors);
        if reported {
            udp.error = error;
        }
        if reported || woken {
            self.tell(key.into());
        }
    }
    fn udp(&self, socket: UdpSocketId) -> Result<&Udp, SocketError> {
        self.sockets.udp(socket).filter(|udp| !udp.closed).ok_or(SocketError::NoSocket)
    }
    pub(crate) fn udp_mut(&mut self, socket: UdpSocketId) -> Result<&mut Udp, SocketError> {
        self.sockets.udp_mut(socket).filter(|udp| !udp.closed).ok_or(SocketError::NoSocket)
    }
}

impl UdpOptions {
    /// Whether routers are kept from fragmenting a packet of this length.
    fn keeps_whole(&self, packet_bytes: usize, path: &Path) -> bool {
        self.dont_fragment || (self.fragments_at_source && packet_bytes <= usize::from(path.mtu_bytes))
    }
}

impl From<SendDatagramError> for DatagramError {
    fn from(why: SendDatagramError) -> Self {
        match why {
            SendDatagramError::Pending | SendDatagramError::Full | SendDatagramError::NoMemory => {
                DatagramError::WouldBlock
            }
            SendDatagramError::Unreachable => DatagramError::NoNeighbour,
            SendDatagramError::TooLong | SendDatagramError::WouldFragment { .. } => DatagramError::TooLong,
        }
    }
}

/// The most that a datagram to `address` carries.
fn largest_bytes(address: IpAddr) -> usize {
    let counted_bytes = if address.is_ipv4() { inhost_wire::ipv4::LENGTH } else { 0 };
    LONGEST_BYTES - counted_bytes - udp::LENGTH
}

fn unspecified_like(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => IpAddr::V4(inhost_base::Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(inhost_base::Ipv6Addr::UNSPECIFIED),
    }
}

/// The end to send from, of what the socket has and what is asked for.
// spec: RFC1122 4.1.3.6-2
fn source_of(
    local: Endpoint,
    from: Option<Endpoint>,
    (any_address, takes_group): (bool, bool),
) -> Result<Endpoint, DatagramError> {
    // Neither a group that the socket listens to nor a broadcast address can be a source.
    let local = match takes_group {
        true => Endpoint { address: unspecified_like(local.address), ..local },
        false => local,
    };
    let Some(from) = from else {
        return if local.port == 0 { Err(DatagramError::NotOurs) } else { Ok(local) };
    };
    let address = if from.address.is_unspecified() { local.address } else { from.address };
    let port = if from.port == 0 { local.port } else { from.port };
    let port_fits = port != 0 && (local.port == 0 || port == local.port);
    let address_fits = any_address || local.address.is_unspecified() || address == local.address;
    if port_fits && address_fits { Ok(Endpoint { address, port }) } else { Err(DatagramError::NotOurs) }
}
