//! An echo socket: its identifier and its queues.

use crate::error::{DatagramError, SocketError};
use crate::socket::{EchoInfo, Readiness, RecentlySent, SocketOption};
use alloc::collections::VecDeque;
use inhost_base::{Endpoint, Instant};
use inhost_buf::{Packet, Pool};
use inhost_event::Drop;
use inhost_ip::Path;

/// Requests, and answers, that a socket may hold.
const QUEUED: usize = 64;
/// Memory that answers may pin.
const INCOMING_BYTES: usize = 256 << 10;

/// An echo socket.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Echo {
    identifier: u16,
    opened: Instant,
    incoming: VecDeque<(Packet, EchoInfo)>,
    incoming_capacity: usize,
    outgoing: VecDeque<Request>,
    /// Whom it asked, and with which number.
    recent: RecentlySent,
    /// Broadcast destinations are allowed.
    broadcast: bool,
    error: Option<DatagramError>,
}

#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Request {
    pub(crate) data: Packet,
    pub(crate) path: Path,
    pub(crate) sequence: u16,
}

impl Echo {
    pub(crate) fn new(identifier: u16, now: Instant) -> Echo {
        Echo {
            identifier,
            opened: now,
            incoming: VecDeque::new(),
            incoming_capacity: 0,
            outgoing: VecDeque::new(),
            recent: RecentlySent::new(QUEUED),
            broadcast: false,
            error: None,
        }
    }
    /// Calls `act` with each packet of a thawed socket, and checks the socket.
    #[cfg(feature = "freeze")]
    pub(crate) fn thaw(
        &mut self,
        act: inhost_buf::freeze::ThawPacket<'_>,
    ) -> Result<(), inhost_base::freeze::Invalid> {
        self.incoming.iter_mut().map(|(data, _)| data).try_for_each(&mut *act)?;
        self.outgoing.iter_mut().map(|request| &mut request.data).try_for_each(act)?;
        let incoming: usize = self.incoming.iter().map(|(data, _)| data.capacity()).sum();
        inhost_base::freeze::require(incoming == self.incoming_capacity, "the counts of an echo socket")?;
        self.recent.check()
    }
    pub(crate) fn identifier(&self) -> u16 {
        self.identifier
    }
    pub(crate) fn opened(&self) -> Instant {
        self.opened
    }
    /// Whom it asked, and with which number.
    pub(crate) fn recent(&self) -> &RecentlySent {
        &self.recent
    }
    /// Whether broadcast destinations are allowed.
    pub(crate) fn broadcast(&self) -> bool {
        self.broadcast
    }
    /// The error that waits to be reported, which counts as reported then.
    pub(crate) fn take_error(&mut self) -> Option<DatagramError> {
        self.error.take()
    }
    /// Keeps an error to be reported once.
    pub(crate) fn set_error(&mut self, error: DatagramError) {
        self.error = Some(error);
    }
    /// Whether there is no room for another request.
    pub(crate) fn is_full(&self) -> bool {
        self.outgoing.len() >= QUEUED
    }
    /// Whether no request waits to be sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.outgoing.is_empty()
    }
    /// The request that is sent next.
    pub(crate) fn first(&self) -> Option<&Request> {
        self.outgoing.front()
    }
    /// Queues a request.
    pub(crate) fn push(&mut self, request: Request) {
        self.outgoing.push_back(request);
    }
    /// Is done with the first request, which has left or failed with `failure`. Whether there is news for the
    /// application.
    pub(crate) fn finish_first(
        &mut self,
        failure: Option<DatagramError>,
        now: Instant,
        pool: &mut Pool,
    ) -> bool {
        let full = self.is_full();
        let Some(request) = self.outgoing.pop_front() else { return false };
        if failure.is_none() {
            let asked = Endpoint { address: request.path.destination, port: request.sequence };
            self.recent.note(asked, 0, false, now);
        }
        self.error = failure.or(self.error);
        pool.give(request.data);
        full || failure.is_some()
    }
    /// Takes an answer; with memory short answers may pin `share` bytes at most.
    pub(crate) fn deliver(
        &mut self,
        packet: &mut Packet,
        info: EchoInfo,
        share: Option<usize>,
    ) -> Result<(), Drop> {
        if !self.takes(packet, share.unwrap_or(INCOMING_BYTES)) {
            return Err(Drop::QueueFull);
        }
        self.incoming_capacity += packet.capacity();
        self.incoming.push_back((packet.take(), info));
        Ok(())
    }
    /// Takes the next answer for the application: as much of its data as `into` has room for.
    pub(crate) fn receive(&mut self, into: &mut [u8], pool: &mut Pool) -> Result<EchoInfo, DatagramError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let (data, info) = self.incoming.pop_front().ok_or(DatagramError::WouldBlock)?;
        self.incoming_capacity -= data.capacity();
        inhost_buf::copy(into, data.bytes());
        pool.give(data);
        Ok(info)
    }
    pub(crate) fn readiness(&self) -> Readiness {
        let failed = self.error.is_some();
        Readiness::NONE
            .with_if(Readiness::READABLE, failed || !self.incoming.is_empty())
            .with_if(Readiness::WRITABLE, failed || self.outgoing.len() < QUEUED)
            .with_if(Readiness::ERROR, failed)
    }
    /// Whether there is room for an answer, where `most` bytes of memory may be pinned. The first is always taken.
    fn takes(&self, packet: &Packet, most: usize) -> bool {
        let pinned = self.incoming_capacity + packet.capacity();
        self.incoming.is_empty() || (self.incoming.len() < QUEUED && pinned <= most.min(INCOMING_BYTES))
    }
    /// Memory that it pins.
    pub(crate) fn held_bytes(&self) -> usize {
        let outgoing = self.outgoing.iter().map(|request| request.data.capacity());
        self.incoming_capacity + outgoing.sum::<usize>()
    }
    /// Bytes that wait for the application, and for the link.
    pub(crate) fn queued_bytes(&self) -> (usize, usize) {
        let incoming = self.incoming.iter().map(|(data, _)| data.len()).sum();
        (incoming, self.outgoing.iter().map(|request| request.data.len()).sum())
    }
    pub(crate) fn set_option(&mut self, option: SocketOption) -> Result<(), SocketError> {
        match option {
            SocketOption::Broadcast(on) => self.broadcast = on,
            _ => return Err(SocketError::WrongKind),
        }
        Ok(())
    }
    pub(crate) fn clear(self, pool: &mut Pool) {
        self.incoming.into_iter().for_each(|(data, _)| pool.give(data));
        self.outgoing.into_iter().for_each(|request| pool.give(request.data));
    }
}
