//! The queues of a UDP, an echo or a probe socket: what came in, what waits to leave, and what left.

use crate::recent::{RecentlySent, Sent};
use crate::{DatagramError, DatagramInfo};
use alloc::collections::VecDeque;
use inhost_base::{Endpoint, Instant};
use inhost_buf::{Packet, Pool};
use inhost_event::{Drop, Readiness};
use inhost_ip::Path;
use inhost_wire::Ecn;

/// How a datagram, a GSO datagram or an ICMP request leaves.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Outgoing {
    /// The way there.
    pub path: Path,
    /// 0 for a request.
    pub source_port: u16,
    /// A request has the number that its answer is recognised by in place of a port.
    pub destination: Endpoint,
    /// GSO size: the payload of each datagram but the last; 0 for a single datagram.
    pub segment_bytes: u16,
    /// The congestion mark.
    pub ecn: Ecn,
    /// Hops that a probe may take.
    pub hop_limit: Option<u8>,
}

impl Outgoing {
    /// A single datagram without a source port.
    pub fn to(path: Path, destination: Endpoint) -> Outgoing {
        Outgoing {
            path,
            source_port: 0,
            destination,
            segment_bytes: 0,
            ecn: Ecn::NotCapable,
            hop_limit: None,
        }
    }
    /// A request with the number that its answer is recognised by.
    pub fn request(path: Path, number: u16) -> Outgoing {
        Outgoing::to(path, Endpoint { address: path.destination, port: number })
    }
}

/// What left of the first in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// Frames that the device was given.
    pub frames: usize,
    /// Datagrams in them.
    pub datagrams: usize,
    /// Whether nothing of it is left.
    pub is_all: bool,
}

impl Departure {
    /// A single datagram.
    pub const ONE: Departure = Departure { frames: 1, datagrams: 1, is_all: true };
    /// Nothing was there.
    pub const NOTHING: Departure = Departure { frames: 0, datagrams: 0, is_all: false };
}

/// The queues of a socket, and the error that waits to be reported.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct Datagrams {
    /// Datagrams that wait in each direction, whatever they pin.
    limit: usize,
    opened: Instant,
    incoming: Packets<DatagramInfo>,
    outgoing: Packets<Outgoing>,
    /// To judge ICMP errors by.
    recent: RecentlySent,
    /// To be reported once.
    error: Option<DatagramError>,
}

impl Datagrams {
    /// At most `limit` wait in each direction, and `remembered` destinations are remembered.
    pub(crate) fn new(limit: usize, remembered: usize, now: Instant) -> Datagrams {
        Datagrams {
            limit,
            opened: now,
            incoming: Packets::new(),
            outgoing: Packets::new(),
            recent: RecentlySent::new(remembered),
            error: None,
        }
    }
    /// Calls `act` with each packet of a thawed socket, and checks the socket.
    ///
    /// # Errors
    /// What was thawed is not the queues of a socket.
    #[cfg(feature = "freeze")]
    pub fn thaw(
        &mut self,
        act: inhost_buf::freeze::ThawPacket<'_>,
    ) -> Result<(), inhost_base::freeze::Invalid> {
        self.incoming.thaw(&mut *act)?;
        self.outgoing.thaw(act)?;
        self.recent.check()
    }
    /// When the socket was opened.
    pub fn opened(&self) -> Instant {
        self.opened
    }
    /// Where it has sent to of late, to judge ICMP errors by.
    pub fn recent(&self) -> &RecentlySent {
        &self.recent
    }
    pub(crate) fn recent_mut(&mut self) -> &mut RecentlySent {
        &mut self.recent
    }
    /// Reports the error that waits for that, once.
    ///
    /// # Errors
    /// That error.
    pub fn take_error(&mut self) -> Result<(), DatagramError> {
        self.error.take().map_or(Ok(()), Err)
    }
    /// Keeps an error to be reported once.
    pub(crate) fn set_error(&mut self, error: DatagramError) {
        self.error = Some(error);
    }
    /// Whether so many bytes more may wait to leave, of `limit_bytes`.
    pub(crate) fn has_room(&self, bytes: usize, limit_bytes: usize) -> bool {
        self.outgoing.queue.is_empty()
            || (self.outgoing.queue.len() < self.limit && self.outgoing.capacity_bytes + bytes <= limit_bytes)
    }
    /// Whether the application may add a request; or the error that waits to be reported.
    pub(crate) fn begin_request(&mut self) -> Result<(), DatagramError> {
        self.take_error()?;
        if self.takes_request() { Ok(()) } else { Err(DatagramError::WouldBlock) }
    }
    /// Whether one more request may wait, whatever it pins.
    pub(crate) fn takes_request(&self) -> bool {
        self.has_room(0, usize::MAX)
    }
    /// Whether nothing waits to leave.
    pub fn is_idle(&self) -> bool {
        self.outgoing.queue.is_empty()
    }
    /// What leaves next.
    pub fn first(&self) -> Option<&(Packet, Outgoing)> {
        self.outgoing.queue.front()
    }
    /// What leaves next, to change.
    pub fn first_mut(&mut self) -> Option<&mut (Packet, Outgoing)> {
        self.outgoing.queue.front_mut()
    }
    /// Queues what is to leave.
    pub fn push(&mut self, payload: Packet, datagram: Outgoing) {
        self.outgoing.push(payload, datagram);
    }
    /// Is done with the first datagram.
    pub(crate) fn drop_first(&mut self, pool: &mut Pool) {
        if let Some((payload, _)) = self.outgoing.pop() {
            pool.give(payload);
        }
    }
    /// Is done with the first request, which has left or failed with `failure`. Whether there is news for the
    /// application.
    pub fn finish_request(&mut self, failure: Option<DatagramError>, now: Instant, pool: &mut Pool) -> bool {
        let was_full = !self.takes_request();
        match (self.outgoing.queue.front(), failure) {
            (Some((_, request)), None) => self.recent.note(Sent::new(request.destination, 0, false, now)),
            _ => self.error = failure.or(self.error),
        }
        self.drop_first(pool);
        was_full || failure.is_some()
    }
    /// Whether a packet of this capacity may be received, where packets received pin `limit_bytes` at most, and with memory
    /// short `share` bytes. The first is taken whatever it pins, or a small limit would take none at all.
    pub(crate) fn admits(
        &self,
        capacity: usize,
        limit_bytes: usize,
        share: Option<usize>,
    ) -> Result<(), Drop> {
        let pinned = self.incoming.capacity_bytes + capacity;
        let fits = self.incoming.queue.is_empty() || pinned <= limit_bytes;
        match () {
            _ if !fits || self.incoming.queue.len() >= self.limit => Err(Drop::QueueFull),
            _ if share.is_some_and(|share| pinned > share) => Err(Drop::NoMemory),
            _ => Ok(()),
        }
    }
    /// Keeps what was received.
    pub(crate) fn deliver(&mut self, payload: Packet, info: DatagramInfo) {
        self.incoming.push(payload, info);
    }
    /// The datagram that the application gets next, which stays.
    pub fn next_incoming(&self) -> Option<&DatagramInfo> {
        self.incoming.queue.front().map(|(_, info)| info)
    }
    /// Takes the next datagram for the application: as much of it as `into` has room for.
    ///
    /// # Errors
    /// [`DatagramError::WouldBlock`]: there is none; or an earlier error that was not reported yet.
    pub fn receive(&mut self, into: &mut [u8], pool: &mut Pool) -> Result<DatagramInfo, DatagramError> {
        self.take_error()?;
        let (packet, info) = self.incoming.pop().ok_or(DatagramError::WouldBlock)?;
        inhost_buf::copy(into, packet.bytes());
        pool.give(packet);
        Ok(info)
    }
    /// Of a socket that has an answer besides those in its queue, or not, and room to send, or not.
    pub(crate) fn readiness(&self, is_answered: bool, has_room: bool) -> Readiness {
        let failed = self.error.is_some();
        Readiness::empty()
            .with_if(Readiness::READABLE, failed || is_answered || !self.incoming.queue.is_empty())
            .with_if(Readiness::WRITABLE, failed || has_room)
            .with_if(Readiness::ERROR, failed)
    }
    /// Memory that its datagrams pin in both directions, in bytes of buffer capacity.
    pub fn held_bytes(&self) -> usize {
        self.incoming.capacity_bytes + self.outgoing.capacity_bytes
    }
    /// Bytes of data that wait for the application, and for the link.
    pub fn queued_bytes(&self) -> (usize, usize) {
        (self.incoming.bytes(), self.outgoing.bytes())
    }
    /// Drops what was received.
    pub(crate) fn clear_incoming(&mut self, pool: &mut Pool) {
        self.incoming.clear(pool);
    }
    /// Gives all its memory back.
    pub fn clear(&mut self, pool: &mut Pool) {
        self.incoming.clear(pool);
        self.outgoing.clear(pool);
    }
}

/// Packets in order, each with what it is.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
struct Packets<T> {
    queue: VecDeque<(Packet, T)>,
    /// Memory that they pin.
    capacity_bytes: usize,
}

impl<T> Packets<T> {
    fn new() -> Packets<T> {
        Packets { queue: VecDeque::new(), capacity_bytes: 0 }
    }
    /// Calls `act` with each packet of a thawed queue, and checks the queue.
    #[cfg(feature = "freeze")]
    fn thaw(&mut self, act: inhost_buf::freeze::ThawPacket<'_>) -> Result<(), inhost_base::freeze::Invalid> {
        self.queue.iter_mut().map(|(packet, _)| packet).try_for_each(act)?;
        let capacity_bytes: usize = self.queue.iter().map(|(packet, _)| packet.capacity()).sum();
        inhost_base::freeze::require(capacity_bytes == self.capacity_bytes, "the memory of a queue")
    }
    /// Bytes in them.
    fn bytes(&self) -> usize {
        self.queue.iter().map(|(packet, _)| packet.len()).sum()
    }
    fn push(&mut self, packet: Packet, of: T) {
        self.capacity_bytes += packet.capacity();
        self.queue.push_back((packet, of));
    }
    fn pop(&mut self) -> Option<(Packet, T)> {
        let (packet, of) = self.queue.pop_front()?;
        self.capacity_bytes -= packet.capacity();
        Some((packet, of))
    }
    /// Gives all their memory back.
    fn clear(&mut self, pool: &mut Pool) {
        self.queue.drain(..).for_each(|(packet, _)| pool.give(packet));
        self.capacity_bytes = 0;
    }
}
