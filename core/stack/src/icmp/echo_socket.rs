//! An echo socket: its identifier and its queues.

use crate::error::{DatagramError, SocketError};
use crate::socket::{DatagramInfo, Datagrams, EchoInfo, Readiness, SocketOption};
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
    /// Requests, by sequence number in place of a port, and answers.
    datagrams: Datagrams,
    /// Broadcast destinations are allowed.
    broadcast: bool,
}

impl Echo {
    pub(crate) fn new(identifier: u16, now: Instant) -> Echo {
        Echo { identifier, datagrams: Datagrams::new(QUEUED, QUEUED, now), broadcast: false }
    }
    pub(crate) fn identifier(&self) -> u16 {
        self.identifier
    }
    pub(crate) fn datagrams(&self) -> &Datagrams {
        &self.datagrams
    }
    pub(crate) fn datagrams_mut(&mut self) -> &mut Datagrams {
        &mut self.datagrams
    }
    /// Whether broadcast destinations are allowed.
    pub(crate) fn broadcast(&self) -> bool {
        self.broadcast
    }
    /// Takes an answer; with memory short answers may pin `share` bytes at most. The first is always taken.
    pub(crate) fn deliver(
        &mut self,
        packet: &mut Packet,
        info: DatagramInfo,
        share: Option<usize>,
    ) -> Result<(), Drop> {
        let limit_bytes = share.unwrap_or(INCOMING_BYTES).min(INCOMING_BYTES);
        self.datagrams.admits(packet.capacity(), limit_bytes, None)?;
        self.datagrams.deliver(packet.take(), info);
        Ok(())
    }
    /// Takes the next answer for the application: as much of its data as `into` has room for.
    pub(crate) fn receive(&mut self, into: &mut [u8], pool: &mut Pool) -> Result<EchoInfo, DatagramError> {
        let DatagramInfo { length_bytes, from, hop_limit, .. } = self.datagrams.receive(into, pool)?;
        Ok(EchoInfo { length_bytes, from: from.address, sequence: from.port, hop_limit })
    }
    pub(crate) fn readiness(&self) -> Readiness {
        self.datagrams.readiness(false, self.datagrams.takes_request())
    }
    pub(crate) fn set_option(&mut self, option: SocketOption) -> Result<(), SocketError> {
        match option {
            SocketOption::Broadcast(on) => self.broadcast = on,
            _ => return Err(SocketError::WrongKind),
        }
        Ok(())
    }
}
