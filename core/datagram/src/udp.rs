//! A UDP socket (RFC 768): its ends, its options and its queues. Checksums are always on.

use crate::gso::{MAX_GSO_DATAGRAMS, RunHeaders};
use crate::queues::{Datagrams, Departure, Outgoing};
use crate::recent::{Sent, Strangers, destination_of};
use crate::{DatagramError, DatagramInfo, SendDatagrams, SocketError, UdpOptions};
use inhost_base::{Endpoint, Instant, LinkId, unspecified_like};
use inhost_buf::{COPY_BELOW_BYTES, Device, HEADROOM_BYTES, Packet, Pool, Slices};
use inhost_event::{Drop, Readiness};
use inhost_ip::{ErrorKind, HeaderHow, Ip, IpEnvironment, Path, Paths, SendDatagramError, TransportError};
use inhost_wire::checksum::Sum;
use inhost_wire::offload::segments;
use inhost_wire::udp::{self, UdpHeader};
use inhost_wire::{ipv4, protocol};

/// Datagrams that a socket may hold in each direction, whatever they pin.
const QUEUED_DATAGRAMS: usize = 4096;
/// Destinations of which a socket remembers that it sent there.
const RECENT_DESTINATIONS: usize = 32;
/// Most strangers remembered.
const STRANGERS: usize = 32;
/// No path MTU is smaller than this, so errors about shorter packets are ignored.
const LEAST_PATH_MTU: u16 = 552;
/// Memory that a datagram of no bytes counts.
pub const LEAST_BYTES: usize = 64;
/// The most that a length field can say. Over IPv4 the IP header is counted with the datagram, over IPv6 not.
const LONGEST_BYTES: usize = u16::MAX as usize;

/// A UDP socket.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct UdpSocket {
    /// The end that it was bound to, under which it is found in the table of bindings.
    bound: Endpoint,
    /// Our end: as bound, or with the source address chosen when it was connected.
    local: Endpoint,
    remote: Option<Endpoint>,
    /// Bound to a multicast group or a broadcast address.
    takes_group: bool,
    options: UdpOptions,
    /// Datagrams that arrived and were dropped for want of room or memory.
    dropped: u64,
    strangers: Strangers,
    /// A send found no room.
    writer_waits: bool,
    /// The application has let go of it, and its last datagrams are on their way out.
    closed: bool,
    datagrams: Datagrams,
}

impl UdpSocket {
    /// A socket bound to `local`; `takes_group` if that is a group or a broadcast address.
    pub fn new(local: Endpoint, options: UdpOptions, takes_group: bool, now: Instant) -> UdpSocket {
        UdpSocket {
            bound: local,
            local,
            remote: None,
            takes_group,
            options,
            dropped: 0,
            strangers: Strangers::new(STRANGERS),
            writer_waits: false,
            closed: false,
            datagrams: Datagrams::new(QUEUED_DATAGRAMS, RECENT_DESTINATIONS, now),
        }
    }
    /// Its queues.
    pub fn datagrams(&self) -> &Datagrams {
        &self.datagrams
    }
    /// Its queues, to change.
    pub fn datagrams_mut(&mut self) -> &mut Datagrams {
        &mut self.datagrams
    }
    /// Checks what is its own of a thawed socket.
    ///
    /// # Errors
    /// What was thawed is not such a socket.
    #[cfg(feature = "freeze")]
    pub fn check(&self) -> Result<(), inhost_base::freeze::Invalid> {
        self.strangers.check()
    }
    /// The end that it was bound to, under which it is found in the table of bindings.
    pub fn bound(&self) -> Endpoint {
        self.bound
    }
    /// Our end: as bound, or with the source address chosen when it was connected.
    pub fn local(&self) -> Endpoint {
        self.local
    }
    /// The end that it is connected to.
    pub fn remote(&self) -> Option<Endpoint> {
        self.remote
    }
    /// Its options.
    pub fn options(&self) -> &UdpOptions {
        &self.options
    }
    /// The options, to change.
    pub fn options_mut(&mut self) -> &mut UdpOptions {
        &mut self.options
    }
    /// Connects it.
    pub fn connect(&mut self, local: Endpoint, remote: Endpoint) {
        (self.local, self.remote) = (local, Some(remote));
    }
    /// Undoes [`UdpSocket::connect`].
    pub fn disconnect(&mut self) {
        (self.local, self.remote) = (self.bound, None);
    }
    /// Whether there is room for so many bytes to send; else the application is told when there is.
    fn await_room(&mut self, bytes: usize) -> Result<(), DatagramError> {
        let has_room = self.has_room(bytes + HEADROOM_BYTES);
        self.writer_waits |= !has_room;
        if has_room { Ok(()) } else { Err(DatagramError::WouldBlock) }
    }
    /// How the local end looks when the socket is connected to `remote`, for [`UdpSocket::connect`].
    ///
    /// # Errors
    /// There is no route, or no such end, or the socket takes datagrams to every address.
    pub fn end_towards(
        &self,
        remote: Endpoint,
        paths: &mut Paths,
        now: Instant,
    ) -> Result<Endpoint, DatagramError> {
        if self.options.any_address {
            return Err(SocketError::WrongKind.into());
        }
        if remote.port == 0 {
            return Err(DatagramError::NoDestination);
        }
        let source = (!self.bound.address.is_unspecified()).then_some(self.bound.address);
        let path = paths.route(remote.address, source, self.options.link, now)?;
        Ok(Endpoint { address: path.source, port: self.bound.port })
    }
    /// How `bytes` of data leave, sent as `how` says: one datagram, or several by GSO.
    ///
    /// # Errors
    /// What `how` asks for cannot be, there is no room, which readiness will tell, or an earlier error was not reported yet.
    pub fn prepare(
        &mut self,
        bytes: usize,
        how: &SendDatagrams,
        paths: &mut Paths,
        now: Instant,
    ) -> Result<Outgoing, DatagramError> {
        let &SendDatagrams { to, from, segment_bytes, ecn } = how;
        let segment_bytes = if bytes <= usize::from(segment_bytes) { 0 } else { segment_bytes };
        let is_run = segment_bytes > 0;
        if is_run && segments(bytes, usize::from(segment_bytes)) > MAX_GSO_DATAGRAMS {
            return Err(DatagramError::TooLong);
        }
        let destination = to.or(self.remote).ok_or(DatagramError::NoDestination)?;
        if destination.port == 0 || destination.address.is_unspecified() {
            return Err(DatagramError::NoDestination);
        }
        is_of_length(bytes, destination)?;
        let source = self.source(from)?;
        let address = (!source.address.is_unspecified()).then_some(source.address);
        let path = paths.route(destination.address, address, self.options.link, now)?;
        if !self.options.broadcast && paths.is_broadcast(path.link, destination.address) {
            return Err(DatagramError::Broadcast);
        }
        let is_whole = is_run || (self.options.dont_fragment && !self.options.beyond_path_mtu);
        let each = if is_run { usize::from(segment_bytes) } else { bytes };
        if is_whole && udp::LENGTH + each > path.payload_limit_bytes() {
            return Err(DatagramError::TooLong);
        }
        // A call that fails anyway does not report earlier errors.
        self.datagrams.take_error()?;
        self.await_room(bytes)?;
        Ok(Outgoing { source_port: source.port, segment_bytes, ecn, ..Outgoing::to(path, destination) })
    }
    /// How a broadcast of `bytes` to `port` leaves by `link`, from 0.0.0.0.
    ///
    /// # Errors
    /// The socket is not bound to a port at any address, there is no room, or no such link.
    pub fn prepare_unaddressed(
        &mut self,
        bytes: usize,
        (link, port): (LinkId, u16),
        paths: &Paths,
    ) -> Result<Outgoing, DatagramError> {
        if !self.local.address.is_unspecified() || self.local.port == 0 || port == 0 {
            return Err(DatagramError::NoDestination);
        }
        is_of_length(bytes, self.local)?;
        self.await_room(bytes)?;
        let path = paths.route_unaddressed(link)?;
        let destination = Endpoint { address: path.destination, port };
        Ok(Outgoing { source_port: self.local.port, ..Outgoing::to(path, destination) })
    }
    /// The local endpoint to send from, given the requested one.
    // spec: RFC1122 4.1.3.6-2
    fn source(&self, from: Option<Endpoint>) -> Result<Endpoint, DatagramError> {
        // Neither a group that the socket listens to nor a broadcast address can be a source.
        let local = match self.takes_group {
            true => Endpoint { address: unspecified_like(self.local.address), ..self.local },
            false => self.local,
        };
        let Some(from) = from else {
            return if local.port == 0 { Err(DatagramError::NotOurs) } else { Ok(local) };
        };
        let address = if from.address.is_unspecified() { local.address } else { from.address };
        let port = if from.port == 0 { local.port } else { from.port };
        let port_fits = port != 0 && (local.port == 0 || port == local.port);
        let address_fits =
            self.options.any_address || local.address.is_unspecified() || address == local.address;
        if port_fits && address_fits { Ok(Endpoint { address, port }) } else { Err(DatagramError::NotOurs) }
    }
    /// Sends what is first in the queue: one datagram, or of several by GSO at most `most`, where the device does not cut
    /// them itself; the rest stays first.
    ///
    /// # Errors
    /// It cannot leave now, or at all.
    pub fn send_first(
        &mut self,
        ip: &mut Ip,
        env: &mut IpEnvironment<'_>,
        device: &mut dyn Device,
        most: usize,
    ) -> Result<Departure, SendDatagramError> {
        let options = &self.options;
        let Some((payload, next)) = self.datagrams.first_mut() else { return Ok(Departure::NOTHING) };
        let mut how = HeaderHow::new(protocol::UDP);
        how.dscp_ecn = options.differentiated_services << 2 | next.ecn.bits();
        how.hop_limit = options.hop_limit;
        if next.segment_bytes > 0 {
            how.dont_fragment = true;
            let headers = RunHeaders::of(next, payload.len(), &how, ip, env)?;
            return headers.send(payload, next.segment_bytes, device, most);
        }
        how.dont_fragment = options.keeps_whole(packet_bytes(&next.path, payload.len()), &next.path);
        how.beyond_path_mtu = options.beyond_path_mtu;
        let mut header = [0; udp::LENGTH];
        let bytes = payload.bytes();
        UdpHeader { source_port: next.source_port, destination_port: next.destination.port }.emit(
            next.path.source,
            next.destination.address,
            bytes.len(),
            Sum::of(bytes),
            &mut header,
        );
        let payload = Slices::one(&header);
        ip.send_datagram(&next.path, &how, payload.with(bytes).unwrap_or(payload), env, device)?;
        Ok(Departure::ONE)
    }
    /// Is done with the first datagram, which has left or failed with `error`. Whether there is news for the application.
    pub fn finish_first(&mut self, error: Option<DatagramError>, now: Instant, pool: &mut Pool) -> bool {
        if error.is_none() {
            self.note_sent(now);
        }
        self.datagrams.drop_first(pool);
        if self.closed {
            return false;
        }
        let woken = core::mem::take(&mut self.writer_waits);
        let reported = error.filter(|_| self.remote.is_some() || self.options.report_unconnected_errors);
        if let Some(error) = reported {
            self.datagrams.set_error(error);
        }
        reported.is_some() || woken
    }
    /// Takes a datagram that came in; with memory short what came in may pin `share` bytes at most.
    ///
    /// # Errors
    /// [`Drop::QueueFull`] or [`Drop::NoMemory`]: there is no room.
    // spec: RFC1122 4.1.3.5-1
    pub fn deliver(
        &mut self,
        packet: &mut Packet,
        info: DatagramInfo,
        share: Option<usize>,
        now: Instant,
        pool: &mut Pool,
    ) -> Result<(), Drop> {
        if self.remote.is_none() && !self.datagrams.recent().has_begun(info.from, now) {
            self.strangers.note(info.from, now);
        }
        let small = packet.len() < COPY_BELOW_BYTES;
        let copied = match small {
            true => pool.take_bare(packet.len().max(LEAST_BYTES)),
            false => None,
        };
        let capacity = copied.as_ref().map_or(packet.capacity(), Packet::capacity);
        let limit_bytes = self.options.receive_limit_bytes;
        if let Err(why) = self.datagrams.admits(capacity, limit_bytes, share) {
            self.dropped += 1;
            pool.give(copied.unwrap_or_default());
            return Err(why);
        }
        let payload = match copied {
            Some(mut payload) => {
                payload.append(packet.bytes());
                payload
            }
            None => packet.take(),
        };
        self.datagrams.deliver(payload, info);
        Ok(())
    }
    /// Takes an ICMP error about a datagram. Whether there is news for the application; what a believed one says about the path,
    /// `paths` is told.
    ///
    /// # Errors
    /// [`Drop::NotCredible`]: anyone may have made it up.
    pub fn take_error(
        &mut self,
        error: &TransportError,
        paths: &mut Paths,
        now: Instant,
    ) -> Result<bool, Drop> {
        let remote = destination_of(&error.quoted);
        let packet_bytes = error.quoted.packet_length;
        let recent = self.datagrams.recent();
        let is_credible = match (error.kind, error.mtu_bytes) {
            // A datagram that fits was not the one refused.
            // spec: RFC5927 7
            (ErrorKind::PacketTooBig, Some(mtu_bytes)) => {
                u32::from(mtu_bytes) < packet_bytes && recent.has_whole(remote, packet_bytes, now)
            }
            _ => recent.has(remote, now),
        };
        if !is_credible {
            return Err(Drop::NotCredible);
        }
        // What answers a stranger may have been provoked to change the path for others.
        if error.kind == ErrorKind::PacketTooBig && recent.has_begun(remote, now) {
            paths.path_mtu_confirmed(error, now);
        }
        // spec: RFC1122 4.1.3.3-1
        let options = &self.options;
        let all = options.report_unconnected_errors;
        let is_soft = match error.kind {
            // Without don't-fragment the path MTU does not matter to the socket.
            ErrorKind::PacketTooBig => !options.dont_fragment && !options.fragments_at_source,
            ErrorKind::NetworkUnreachable
            | ErrorKind::HostUnreachable
            | ErrorKind::TimeExceeded
            | ErrorKind::ReassemblyTimeExceeded => true,
            _ => false,
        };
        let is_asked_for = all || !(is_soft && options.soft_errors_on_request);
        let is_reported = self.remote.map_or(all, |connected| connected == remote) && is_asked_for;
        if is_reported {
            self.datagrams.set_error(DatagramError::Unreachable(error.kind));
        }
        Ok(is_reported)
    }
    /// Datagrams that arrived and were dropped for want of room or memory.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
    /// Drops received datagrams. The socket is no longer bound, so no more arrive.
    pub fn close(&mut self, pool: &mut Pool) {
        self.closed = true;
        self.datagrams.clear_incoming(pool);
    }
    /// Whether no application holds it.
    pub fn is_closed(&self) -> bool {
        self.closed
    }
    /// Which calls would not block.
    pub fn readiness(&self) -> Readiness {
        if self.closed {
            return Readiness::empty();
        }
        let readiness = self.datagrams.readiness(false, self.has_room(1));
        readiness.with_if(Readiness::CONNECTED, self.remote.is_some())
    }
    fn has_room(&self, bytes: usize) -> bool {
        self.datagrams.has_room(bytes, self.options.send_limit_bytes)
    }
    /// Remembers that the first datagram left, where an error about it may matter, or a gateway may know a better one.
    #[inline]
    fn note_sent(&mut self, now: Instant) {
        let Some((payload, datagram)) = self.datagrams.first() else { return };
        let (path, options) = (&datagram.path, &self.options);
        let payload_bytes = match datagram.segment_bytes {
            0 => payload.len(),
            each => usize::from(each),
        };
        let packet_bytes = packet_bytes(path, payload_bytes);
        let is_whole = options.keeps_whole(packet_bytes, path)
            || datagram.segment_bytes > 0
            || path.destination.is_ipv6();
        // A longer one left in fragments, of which each is a packet.
        let longest = if options.beyond_path_mtu { u16::MAX } else { path.mtu_bytes };
        let packet_bytes = packet_bytes.min(usize::from(longest));
        let whole_bytes = if is_whole { packet_bytes as u16 } else { 0 };
        let (to, is_near) = (datagram.destination, path.next_hop == path.destination);
        let is_answer =
            self.options.answers_strangers || self.remote.is_none() && self.strangers.may_include(to, now);
        let sent = Sent::new(to, whole_bytes, is_answer, now);
        if !is_answer
            || self.remote.is_some()
            || options.report_unconnected_errors
            || whole_bytes > LEAST_PATH_MTU
            || !is_near
        {
            self.datagrams.recent_mut().note(sent);
        } else {
            self.datagrams.recent_mut().note_aside(sent);
        }
    }
}

impl UdpOptions {
    /// Whether routers are kept from fragmenting a packet of this length.
    fn keeps_whole(&self, packet_bytes: usize, path: &Path) -> bool {
        self.dont_fragment || (self.fragments_at_source && packet_bytes <= usize::from(path.mtu_bytes))
    }
}

/// The length of a packet with so much data.
fn packet_bytes(path: &Path, payload_bytes: usize) -> usize {
    path.ip_header_bytes() + udp::LENGTH + payload_bytes
}

/// That a datagram to `destination` carries so much.
fn is_of_length(bytes: usize, destination: Endpoint) -> Result<(), DatagramError> {
    let counted_bytes = if destination.address.is_ipv4() { ipv4::LENGTH } else { 0 };
    let most_bytes = LONGEST_BYTES - counted_bytes - udp::LENGTH;
    if bytes <= most_bytes { Ok(()) } else { Err(DatagramError::TooLong) }
}
