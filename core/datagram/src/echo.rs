//! An echo socket: ping, with an unpredictable identifier.

use crate::queues::{Datagrams, Departure, Outgoing};
use crate::recent::destination_of;
use crate::{DatagramError, DatagramInfo, EchoInfo};
use inhost_base::{Endpoint, Instant, IpAddr};
use inhost_buf::{Device, Packet, Pool};
use inhost_event::{Drop, Readiness};
use inhost_ip::{EchoMessage, EchoReply, Ip, IpEnvironment, Paths, SendDatagramError, TransportError};
use inhost_wire::{Ecn, icmpv4, ipv4};

/// The most data that an echo request over either protocol takes.
const LARGEST_BYTES: usize = u16::MAX as usize - ipv4::LENGTH - icmpv4::LENGTH;
/// Requests, and answers, that a socket may hold.
const QUEUED: usize = 64;
/// Memory that answers may pin.
const INCOMING_BYTES: usize = 256 << 10;

/// An echo socket.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct EchoSocket {
    identifier: u16,
    /// Requests, by sequence number in place of a port, and answers.
    datagrams: Datagrams,
    /// Broadcast destinations are allowed.
    broadcast: bool,
}

impl EchoSocket {
    /// A socket whose requests have this identifier.
    pub fn new(identifier: u16, now: Instant) -> EchoSocket {
        EchoSocket { identifier, datagrams: Datagrams::new(QUEUED, QUEUED, now), broadcast: false }
    }
    /// That of its requests.
    pub fn identifier(&self) -> u16 {
        self.identifier
    }
    /// Its queues.
    pub fn datagrams(&self) -> &Datagrams {
        &self.datagrams
    }
    /// Its queues, to change.
    pub fn datagrams_mut(&mut self) -> &mut Datagrams {
        &mut self.datagrams
    }
    /// Allows broadcast destinations, or not.
    pub fn set_broadcast(&mut self, allowed: bool) {
        self.broadcast = allowed;
    }
    /// How a request with so much data leaves.
    ///
    /// # Errors
    /// It is too long, there is no room or no route, or an earlier error was not reported yet.
    pub fn prepare(
        &mut self,
        (to, sequence): (IpAddr, u16),
        bytes: usize,
        paths: &mut Paths,
        now: Instant,
    ) -> Result<Outgoing, DatagramError> {
        self.datagrams.begin_request()?;
        if bytes > LARGEST_BYTES {
            return Err(DatagramError::TooLong);
        }
        let path = paths.route(to, None, None, now)?;
        if !self.broadcast && paths.is_broadcast(path.link, to) {
            return Err(DatagramError::Broadcast);
        }
        Ok(Outgoing::request(path, sequence))
    }
    /// Sends the request that is first in the queue.
    ///
    /// # Errors
    /// It cannot leave now, or at all.
    pub fn send_first(
        &self,
        ip: &mut Ip,
        env: &mut IpEnvironment<'_>,
        device: &mut dyn Device,
    ) -> Result<Departure, SendDatagramError> {
        let Some((message, next)) = self.datagrams.first() else { return Ok(Departure::NOTHING) };
        let (identifier, sequence) = (self.identifier, next.destination.port);
        let echo = EchoMessage { identifier, sequence, data: message.bytes() };
        ip.echo_request(&next.path, &echo, env, device).map(|()| Departure::ONE)
    }
    /// Takes an answer; with memory short answers may pin `share` bytes at most. The first is always taken.
    ///
    /// # Errors
    /// There is no room.
    pub fn deliver(
        &mut self,
        reply: &EchoReply,
        packet: &mut Packet,
        share: Option<usize>,
    ) -> Result<(), Drop> {
        let limit_bytes = share.unwrap_or(INCOMING_BYTES).min(INCOMING_BYTES);
        self.datagrams.admits(packet.capacity(), limit_bytes, None)?;
        let info = DatagramInfo {
            length_bytes: packet.len(),
            from: Endpoint { address: reply.source, port: reply.sequence },
            to: Endpoint { address: reply.destination, port: reply.identifier },
            link: reply.link,
            hop_limit: reply.hop_limit,
            ecn: Ecn::NotCapable,
        };
        self.datagrams.deliver(packet.take(), info);
        Ok(())
    }
    /// Takes an ICMP error about a request. A quoted request has its identifier in place of ports.
    ///
    /// # Errors
    /// [`Drop::NotCredible`]: nothing was sent there.
    pub fn take_error(&mut self, error: &TransportError, now: Instant) -> Result<(), Drop> {
        if !self.datagrams.recent().has(destination_of(&error.quoted), now) {
            return Err(Drop::NotCredible);
        }
        self.datagrams.set_error(DatagramError::Unreachable(error.kind));
        Ok(())
    }
    /// Takes the next answer for the application: as much of its data as `into` has room for.
    ///
    /// # Errors
    /// As [`Datagrams::receive`].
    pub fn receive(&mut self, into: &mut [u8], pool: &mut Pool) -> Result<EchoInfo, DatagramError> {
        let DatagramInfo { length_bytes, from, hop_limit, .. } = self.datagrams.receive(into, pool)?;
        Ok(EchoInfo { length_bytes, from: from.address, sequence: from.port, hop_limit })
    }
    /// Which calls would not block.
    pub fn readiness(&self) -> Readiness {
        self.datagrams.readiness(false, self.datagrams.takes_request())
    }
}
