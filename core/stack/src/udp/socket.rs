//! A UDP socket: its ends, its options and its queues.

use crate::error::{DatagramError, SocketError};
use crate::options::UdpOptions;
use crate::socket::{DatagramInfo, Datagrams, Outgoing, Readiness, Sent, SocketOption, Strangers};
use inhost_base::{Endpoint, Instant};
use inhost_buf::{COPY_BELOW_BYTES, HEADROOM_BYTES, Packet, Pool};
use inhost_event::Drop;
use inhost_ip::Path;
use inhost_wire::udp;

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
    /// Datagrams that arrived and were dropped for want of room or memory.
    dropped: u64,
    strangers: Strangers,
    /// A send found no room.
    writer_waits: bool,
    /// The application has let go of it, and its last datagrams are on their way out.
    closed: bool,
    datagrams: Datagrams,
}

impl Udp {
    pub(crate) fn new(local: Endpoint, options: UdpOptions, takes_group: bool, now: Instant) -> Udp {
        Udp {
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
    pub(crate) fn datagrams(&self) -> &Datagrams {
        &self.datagrams
    }
    pub(crate) fn datagrams_mut(&mut self) -> &mut Datagrams {
        &mut self.datagrams
    }
    /// Checks what is its own of a thawed socket.
    #[cfg(feature = "freeze")]
    pub(crate) fn check(&self) -> Result<(), crate::Invalid> {
        self.strangers.check()
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
    /// Connects it.
    pub(crate) fn connect(&mut self, local: Endpoint, remote: Endpoint) {
        (self.local, self.remote) = (local, Some(remote));
    }
    /// Undoes [`connect`](crate::UdpSockets::connect).
    pub(crate) fn disconnect(&mut self) {
        (self.local, self.remote) = (self.bound, None);
    }
    /// Whether there is room for so many bytes to send; else the application is told when there is.
    pub(crate) fn await_room(&mut self, bytes: usize) -> Result<(), DatagramError> {
        let has_room = self.has_room(bytes + HEADROOM_BYTES);
        self.writer_waits |= !has_room;
        if has_room { Ok(()) } else { Err(DatagramError::WouldBlock) }
    }
    /// The datagram that is sent next, to change, and the options.
    pub(crate) fn first_mut(&mut self) -> Option<(&mut Packet, &mut Outgoing, &UdpOptions)> {
        self.datagrams.first_mut().map(|(payload, first)| (payload, first, &self.options))
    }
    /// Is done with the first datagram, which has left or failed with `error`. Whether there is news for the application.
    pub(crate) fn finish_first(
        &mut self,
        error: Option<DatagramError>,
        now: Instant,
        pool: &mut Pool,
    ) -> bool {
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
    /// Datagrams that arrived and were dropped for want of room or memory.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
    /// Drops received datagrams. The socket is no longer bound, so no more arrive.
    pub(crate) fn close(&mut self, pool: &mut Pool) {
        self.closed = true;
        self.datagrams.clear_incoming(pool);
    }
    /// Whether no application holds it.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }
    pub(crate) fn readiness(&self) -> Readiness {
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
        let packet_bytes = path.ip_header_bytes() + udp::LENGTH + payload_bytes;
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
    pub(crate) fn keeps_whole(&self, packet_bytes: usize, path: &Path) -> bool {
        self.dont_fragment || (self.fragments_at_source && packet_bytes <= usize::from(path.mtu_bytes))
    }
}
