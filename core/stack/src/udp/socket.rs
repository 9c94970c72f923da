//! A UDP socket: its ends, its options and its queues.

use crate::error::{DatagramError, SocketError};
use crate::options::UdpOptions;
use crate::socket::{DatagramInfo, Readiness, RecentlySent, SocketOption, Strangers};
use alloc::collections::VecDeque;
use inhost_base::{Endpoint, Instant};
use inhost_buf::{COPY_BELOW_BYTES, Packet, Pool};
use inhost_event::Drop;
use inhost_ip::Path;
use inhost_wire::{Ecn, udp};

/// Datagrams that a socket may hold in each direction, whatever they pin.
const QUEUED_DATAGRAMS: usize = 4096;
/// Destinations of which a socket remembers that it sent there.
const RECENT_DESTINATIONS: usize = 32;
/// Most strangers remembered.
const STRANGERS: usize = 32;
/// No path MTU is smaller than this, so errors about shorter packets are ignored.
const LEAST_PATH_MTU: u16 = 552;
/// Memory that a datagram of no bytes counts.
pub(crate) const LEAST_BYTES: usize = 64;

/// A UDP socket.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Udp {
    /// The end that it was bound to, under which it is found in the table of bindings.
    bound: Endpoint,
    /// Our end: as bound, or with the source address chosen when it was connected.
    local: Endpoint,
    remote: Option<Endpoint>,
    /// Bound to a multicast group or a broadcast address.
    takes_group: bool,
    options: UdpOptions,
    opened: Instant,
    incoming: VecDeque<Incoming>,
    incoming_capacity: usize,
    /// Datagrams that arrived and were dropped for want of room or memory.
    dropped: u64,
    outgoing: VecDeque<Outgoing>,
    outgoing_capacity: usize,
    /// To be reported once.
    error: Option<DatagramError>,
    /// To judge ICMP errors by.
    recent: RecentlySent,
    strangers: Strangers,
    /// A send found no room.
    writer_waits: bool,
    /// The application has let go of it, and its last datagrams are on their way out.
    closed: bool,
}

#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Incoming {
    payload: Packet,
    info: DatagramInfo,
}

#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Outgoing {
    pub(crate) payload: Packet,
    pub(crate) path: Path,
    pub(crate) source_port: u16,
    pub(crate) destination: Endpoint,
    /// GSO size: the payload of each datagram but the last; 0 for a single datagram.
    pub(crate) segment_bytes: u16,
    /// The congestion mark.
    pub(crate) ecn: Ecn,
}

impl Udp {
    pub(crate) fn new(local: Endpoint, options: UdpOptions, takes_group: bool, now: Instant) -> Udp {
        Udp {
            bound: local,
            local,
            remote: None,
            takes_group,
            options,
            opened: now,
            incoming: VecDeque::new(),
            incoming_capacity: 0,
            dropped: 0,
            outgoing: VecDeque::new(),
            outgoing_capacity: 0,
            error: None,
            recent: RecentlySent::new(RECENT_DESTINATIONS),
            strangers: Strangers::new(STRANGERS),
            writer_waits: false,
            closed: false,
        }
    }
    /// Calls `act` with each packet of a thawed socket, and checks the socket.
    #[cfg(feature = "freeze")]
    pub(crate) fn thaw(
        &mut self,
        act: inhost_buf::freeze::ThawPacket<'_>,
    ) -> Result<(), inhost_base::freeze::Invalid> {
        self.incoming.iter_mut().map(|incoming| &mut incoming.payload).try_for_each(&mut *act)?;
        self.outgoing.iter_mut().map(|datagram| &mut datagram.payload).try_for_each(act)?;
        let incoming: usize = self.incoming.iter().map(|incoming| incoming.payload.capacity()).sum();
        let outgoing: usize = self.outgoing.iter().map(|datagram| datagram.payload.capacity()).sum();
        let is_true = (incoming, outgoing) == (self.incoming_capacity, self.outgoing_capacity);
        inhost_base::freeze::require(is_true, "the counts of a UDP socket")?;
        self.strangers.check()?;
        self.recent.check()
    }
    /// The end that it was bound to, under which it is found in the table of bindings.
    pub(crate) fn bound(&self) -> Endpoint {
        self.bound
    }
    /// Our end: as bound, or with the source address chosen when it was connected.
    pub(crate) fn local(&self) -> Endpoint {
        self.local
    }
    pub(crate) fn remote(&self) -> Option<Endpoint> {
        self.remote
    }
    /// Whether it is bound to a group or to a broadcast address.
    pub(crate) fn takes_group(&self) -> bool {
        self.takes_group
    }
    pub(crate) fn options(&self) -> &UdpOptions {
        &self.options
    }
    pub(crate) fn set_option(&mut self, option: SocketOption) -> Result<(), SocketError> {
        let options = &mut self.options;
        match option {
            SocketOption::SendBufferLimit(bytes) => options.send_limit_bytes = bytes,
            SocketOption::ReceiveBufferLimit(bytes) => options.receive_limit_bytes = bytes,
            SocketOption::DifferentiatedServices(bits) => options.differentiated_services = bits,
            SocketOption::HopLimit(limit) => options.hop_limit = limit,
            SocketOption::Broadcast(on) => options.broadcast = on,
            SocketOption::ReportUnconnectedErrors(on) => options.report_unconnected_errors = on,
            SocketOption::DontFragment(on) => {
                (options.dont_fragment, options.fragments_at_source) = (on, false);
            }
            _ => return Err(SocketError::WrongKind),
        }
        Ok(())
    }
    pub(crate) fn opened(&self) -> Instant {
        self.opened
    }
    /// Where it has sent to of late, to judge ICMP errors by.
    pub(crate) fn recent(&self) -> &RecentlySent {
        &self.recent
    }
    /// Connects it.
    pub(crate) fn connect(&mut self, local: Endpoint, remote: Endpoint) {
        (self.local, self.remote) = (local, Some(remote));
    }
    /// Undoes [`connect`](crate::UdpSockets::connect).
    pub(crate) fn disconnect(&mut self) {
        (self.local, self.remote) = (self.bound, None);
    }
    /// The error that waits to be reported.
    pub(crate) fn error(&self) -> Option<DatagramError> {
        self.error
    }
    /// The error that waits to be reported, which counts as reported then.
    pub(crate) fn take_error(&mut self) -> Option<DatagramError> {
        self.error.take()
    }
    /// Keeps an error to be reported once.
    pub(crate) fn set_error(&mut self, error: DatagramError) {
        self.error = Some(error);
    }
    /// Notes that a send found no room.
    pub(crate) fn wait_for_room(&mut self) {
        self.writer_waits = true;
    }
    /// Whether nothing waits to be sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.outgoing.is_empty()
    }
    /// The datagram, or GSO datagram, that is sent next.
    pub(crate) fn first(&self) -> Option<&Outgoing> {
        self.outgoing.front()
    }
    /// The datagram that is sent next, to change, and the options.
    pub(crate) fn first_mut(&mut self) -> Option<(&mut Outgoing, &UdpOptions)> {
        self.outgoing.front_mut().map(|first| (first, &self.options))
    }
    /// Queues a datagram.
    pub(crate) fn push(&mut self, datagram: Outgoing) {
        self.outgoing_capacity += datagram.payload.capacity();
        self.outgoing.push_back(datagram);
    }
    /// Is done with the first datagram, which has left or failed with `error`. Whether there is news for the application.
    pub(crate) fn finish_first(&mut self, error: Option<DatagramError>, pool: &mut Pool) -> bool {
        if let Some(datagram) = self.take_outgoing() {
            pool.give(datagram.payload);
        }
        if self.closed {
            return false;
        }
        let woken = core::mem::take(&mut self.writer_waits);
        let reported = error.is_some() && (self.remote.is_some() || self.options.report_unconnected_errors);
        if reported {
            self.error = error;
        }
        reported || woken
    }
    /// Takes a datagram that came in; with memory short it may pin `share` bytes at most.
    // spec: RFC1122 4.1.3.5-1
    pub(crate) fn deliver(
        &mut self,
        packet: &mut Packet,
        info: DatagramInfo,
        share: Option<usize>,
        now: Instant,
        pool: &mut Pool,
    ) -> Result<(), Drop> {
        if self.remote.is_none() && !self.recent.has_begun(info.from, now) {
            self.strangers.note(info.from, now);
        }
        let small = packet.len() < COPY_BELOW_BYTES;
        let copied = match small {
            true => pool.take_bare(packet.len().max(LEAST_BYTES)),
            false => None,
        };
        let capacity = copied.as_ref().map_or(packet.capacity(), Packet::capacity);
        let pinned = self.incoming_capacity + capacity;
        // The first datagram is taken whatever it pins, or a small limit would take none at all.
        let fits = self.incoming.is_empty() || pinned <= self.options.receive_limit_bytes;
        let refused = match () {
            _ if !fits || self.incoming.len() >= QUEUED_DATAGRAMS => Some(Drop::QueueFull),
            _ if share.is_some_and(|share| pinned > share) => Some(Drop::NoMemory),
            _ => None,
        };
        if let Some(why) = refused {
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
        self.incoming_capacity = pinned;
        self.incoming.push_back(Incoming { payload, info });
        Ok(())
    }
    /// Datagrams that arrived and were dropped for want of room or memory.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
    /// The datagram that the application gets next, which stays.
    pub(crate) fn next_incoming(&self) -> Option<&DatagramInfo> {
        self.incoming.front().map(|incoming| &incoming.info)
    }
    /// Takes the next datagram for the application: as much of it as `into` has room for.
    pub(crate) fn receive(
        &mut self,
        into: &mut [u8],
        pool: &mut Pool,
    ) -> Result<DatagramInfo, DatagramError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let Incoming { payload, info } = self.incoming.pop_front().ok_or(DatagramError::WouldBlock)?;
        self.incoming_capacity -= payload.capacity();
        inhost_buf::copy(into, payload.bytes());
        pool.give(payload);
        Ok(info)
    }
    /// Drops received datagrams. The socket is no longer bound, so no more arrive.
    pub(crate) fn close(&mut self, pool: &mut Pool) {
        self.closed = true;
        self.discard_incoming(pool);
    }
    /// Whether no application holds it.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }
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
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
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
    pub(crate) fn note_sent(&mut self, now: Instant) {
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
        let to = datagram.destination;
        let is_answer =
            self.options.answers_strangers || self.remote.is_none() && self.strangers.may_include(to, now);
        if !is_answer
            || self.remote.is_some()
            || options.report_unconnected_errors
            || whole_bytes > LEAST_PATH_MTU
            || path.next_hop != path.destination
        {
            self.recent.note(to, whole_bytes, is_answer, now);
        } else {
            self.recent.note_aside(to, whole_bytes, is_answer, now);
        }
    }
    /// Releases the memory of received datagrams.
    fn discard_incoming(&mut self, pool: &mut Pool) {
        self.incoming.drain(..).for_each(|datagram| pool.give(datagram.payload));
        self.incoming_capacity = 0;
    }
    /// Gives all its memory back.
    pub(crate) fn clear(mut self, pool: &mut Pool) {
        self.discard_incoming(pool);
        self.outgoing.into_iter().for_each(|datagram| pool.give(datagram.payload));
    }
}

impl UdpOptions {
    /// Whether routers are kept from fragmenting a packet of this length.
    pub(crate) fn keeps_whole(&self, packet_bytes: usize, path: &Path) -> bool {
        self.dont_fragment || (self.fragments_at_source && packet_bytes <= usize::from(path.mtu_bytes))
    }
}
