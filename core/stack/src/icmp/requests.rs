//! The requests of an echo or a probe socket: those that wait to leave, and those that left.

use crate::error::DatagramError;
use crate::socket::{Packets, Readiness, RecentlySent};
use inhost_base::{Endpoint, Instant};
use inhost_buf::{Packet, Pool};
use inhost_ip::Path;

/// What a request that waits to leave is, beside its message.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Request {
    pub(crate) path: Path,
    /// What its answer is recognised by.
    pub(crate) number: u16,
    /// Hops that it may take, if not as many as its path says.
    pub(crate) hop_limit: Option<u8>,
}

/// The requests of a socket, and the error that one of them met.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Requests {
    limit: usize,
    opened: Instant,
    waiting: Packets<Request>,
    /// Whom it asked, and with which number in place of a port.
    recent: RecentlySent,
    error: Option<DatagramError>,
}

impl Requests {
    /// At most `limit` wait, and as many are remembered.
    pub(super) fn new(limit: usize, now: Instant) -> Requests {
        let recent = RecentlySent::new(limit);
        Requests { limit, opened: now, waiting: Packets::new(), recent, error: None }
    }
    /// Calls `act` with each packet of a thawed socket, and checks the socket.
    #[cfg(feature = "freeze")]
    pub(super) fn thaw(
        &mut self,
        act: inhost_buf::freeze::ThawPacket<'_>,
    ) -> Result<(), inhost_base::freeze::Invalid> {
        self.waiting.thaw(act)?;
        self.recent.check()
    }
    /// When the socket was opened.
    pub(crate) fn opened(&self) -> Instant {
        self.opened
    }
    /// Whom it asked, and with which number in place of a port.
    pub(crate) fn recent(&self) -> &RecentlySent {
        &self.recent
    }
    /// The error that waits to be reported, which counts as reported then.
    pub(super) fn take_error(&mut self) -> Result<(), DatagramError> {
        self.error.take().map_or(Ok(()), Err)
    }
    /// Keeps an error to be reported once.
    pub(crate) fn set_error(&mut self, error: DatagramError) {
        self.error = Some(error);
    }
    /// Whether the application may add a request; or the error that waits to be reported.
    pub(crate) fn begin(&mut self) -> Result<(), DatagramError> {
        self.take_error()?;
        if self.is_full() { Err(DatagramError::WouldBlock) } else { Ok(()) }
    }
    #[inline]
    fn is_full(&self) -> bool {
        self.waiting.len() >= self.limit
    }
    /// Whether none waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }
    /// The request that leaves next.
    pub(crate) fn first(&self) -> Option<&(Packet, Request)> {
        self.waiting.front()
    }
    /// Queues a request.
    pub(crate) fn push(&mut self, message: Packet, request: Request) {
        self.waiting.push(message, request);
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
        let Some((message, request)) = self.waiting.pop() else { return false };
        if failure.is_none() {
            let asked = Endpoint { address: request.path.destination, port: request.number };
            self.recent.note(asked, 0, false, now);
        }
        self.error = failure.or(self.error);
        pool.give(message);
        full || failure.is_some()
    }
    /// Of a socket for which an answer waits, or not.
    pub(super) fn readiness(&self, is_answered: bool) -> Readiness {
        let failed = self.error.is_some();
        Readiness::empty()
            .with_if(Readiness::READABLE, failed || is_answered)
            .with_if(Readiness::WRITABLE, failed || !self.is_full())
            .with_if(Readiness::ERROR, failed)
    }
    /// Memory that they pin.
    pub(super) fn held_bytes(&self) -> usize {
        self.waiting.capacity_bytes()
    }
    /// Bytes that wait for the link.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.waiting.bytes()
    }
    pub(super) fn clear(mut self, pool: &mut Pool) {
        self.waiting.clear(pool);
    }
}
