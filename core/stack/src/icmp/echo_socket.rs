//! An echo socket: its identifier and its queues.

use crate::error::{DatagramError, SocketError};
use crate::icmp::requests::Requests;
use crate::socket::{EchoInfo, Packets, Readiness, SocketOption};
use inhost_base::Instant;
use inhost_buf::{Packet, Pool};
use inhost_event::Drop;

/// Requests, and answers, that a socket may hold.
const QUEUED: usize = 64;
/// Memory that answers may pin.
const INCOMING_BYTES: usize = 256 << 10;

/// An echo socket.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Echo {
    identifier: u16,
    incoming: Packets<EchoInfo>,
    requests: Requests,
    /// Broadcast destinations are allowed.
    broadcast: bool,
}

impl Echo {
    pub(crate) fn new(identifier: u16, now: Instant) -> Echo {
        let (incoming, requests) = (Packets::new(), Requests::new(QUEUED, now));
        Echo { identifier, incoming, requests, broadcast: false }
    }
    /// Calls `act` with each packet of a thawed socket, and checks the socket.
    #[cfg(feature = "freeze")]
    pub(crate) fn thaw(
        &mut self,
        act: inhost_buf::freeze::ThawPacket<'_>,
    ) -> Result<(), inhost_base::freeze::Invalid> {
        self.incoming.thaw(&mut *act)?;
        self.requests.thaw(act)
    }
    pub(crate) fn identifier(&self) -> u16 {
        self.identifier
    }
    pub(crate) fn requests(&self) -> &Requests {
        &self.requests
    }
    pub(crate) fn requests_mut(&mut self) -> &mut Requests {
        &mut self.requests
    }
    /// Whether broadcast destinations are allowed.
    pub(crate) fn broadcast(&self) -> bool {
        self.broadcast
    }
    /// Takes an answer; with memory short answers may pin `share` bytes at most. The first is always taken.
    pub(crate) fn deliver(
        &mut self,
        packet: &mut Packet,
        info: EchoInfo,
        share: Option<usize>,
    ) -> Result<(), Drop> {
        let pinned = self.incoming.capacity_bytes() + packet.capacity();
        let most = share.unwrap_or(INCOMING_BYTES).min(INCOMING_BYTES);
        if !self.incoming.is_empty() && (self.incoming.len() >= QUEUED || pinned > most) {
            return Err(Drop::QueueFull);
        }
        self.incoming.push(packet.take(), info);
        Ok(())
    }
    /// Takes the next answer for the application: as much of its data as `into` has room for.
    pub(crate) fn receive(&mut self, into: &mut [u8], pool: &mut Pool) -> Result<EchoInfo, DatagramError> {
        self.requests.take_error()?;
        self.incoming.read(into, pool).ok_or(DatagramError::WouldBlock)
    }
    pub(crate) fn readiness(&self) -> Readiness {
        self.requests.readiness(!self.incoming.is_empty())
    }
    /// Memory that it pins.
    pub(crate) fn held_bytes(&self) -> usize {
        self.incoming.capacity_bytes() + self.requests.held_bytes()
    }
    /// Bytes that wait for the application, and for the link.
    pub(crate) fn queued_bytes(&self) -> (usize, usize) {
        (self.incoming.bytes(), self.requests.queued_bytes())
    }
    pub(crate) fn set_option(&mut self, option: SocketOption) -> Result<(), SocketError> {
        match option {
            SocketOption::Broadcast(on) => self.broadcast = on,
            _ => return Err(SocketError::WrongKind),
        }
        Ok(())
    }
    pub(crate) fn clear(mut self, pool: &mut Pool) {
        self.incoming.clear(pool);
        self.requests.clear(pool);
    }
}
