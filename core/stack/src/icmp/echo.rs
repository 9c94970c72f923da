//! Echo sockets: ping, with unpredictable identifiers.

use crate::error::{BindError, DatagramError, SocketError};
use crate::icmp::echo_socket::{Echo, Request};
use crate::output::{Counting, Turn};
use crate::parts::{Parts, ip_environment};
use crate::sockets::{AnySocketId, EchoInfo, EchoSocketId, Socket, SocketId};
use alloc::boxed::Box;
use inhost_base::{Endpoint, Instant, IpAddr, LinkId};
use inhost_buf::Packet;
use inhost_event::{Drop, Sink};
use inhost_ip::{EchoMessage, EchoReply, SendDatagramError, TransportError};

/// Identifiers that are tried for a free one.
const TRIES: usize = 64;
/// The most data in a request.
const LARGEST_BYTES: usize = 65_535 - inhost_wire::ipv4::LENGTH - 8;

/// Calls on echo sockets (ping): see [`crate::Stack::echo`].
///
/// ```
/// use inhost_base::{Instant, Ipv4Addr};
/// use inhost_event::Ignore;
/// use inhost_stack::{Stack, StackConfig};
///
/// let now = Instant::ZERO;
/// let mut host = Stack::new(StackConfig::default(), [7; 32], now);
/// let socket = host.echo().open(now).unwrap();
/// host.echo().send(socket, Ipv4Addr::LOCALHOST.into(), 1, b"anybody there?", now).unwrap();
/// host.timeout(now, &mut Ignore); // The request and its reply, over the loopback.
/// let mut place = [0; 64];
/// assert_eq!(host.echo().receive(socket, &mut place, now).unwrap().sequence, 1);
/// ```
#[derive(Debug)]
pub struct EchoSockets<'a> {
    parts: &'a mut Parts,
}

impl<'a> EchoSockets<'a> {
    pub(crate) fn new(parts: &'a mut Parts) -> EchoSockets<'a> {
        EchoSockets { parts }
    }
    /// An echo socket. Answers to its requests come to it alone.
    pub fn open(self, now: Instant) -> Result<EchoSocketId, BindError> {
        self.parts.tick(now);
        if !self.parts.has_room_for_datagram_socket() {
            return Err(BindError::TooManySockets);
        }
        for _ in 0..TRIES {
            let identifier = self.parts.random.private_u32() as u16;
            let echo = Echo::new(identifier, now);
            match self.parts.demux.bind(&mut self.parts.sockets, Socket::Echo(Box::new(echo))) {
                Ok(SocketId(key)) => {
                    return Ok(EchoSocketId::of(key));
                }
                Err(BindError::InUse) => {}
                Err(why) => return Err(why),
            }
        }
        Err(BindError::NoPort)
    }
    /// Asks `to` for an echo of `data`. The request leaves with the next [`crate::Stack::transmit`].
    pub fn send(
        self,
        socket: EchoSocketId,
        to: IpAddr,
        sequence: u16,
        data: &[u8],
        now: Instant,
    ) -> Result<(), DatagramError> {
        self.parts.tick(now);
        let echo = self.parts.sockets.echo_mut(socket).ok_or(SocketError::NoSocket)?;
        if let Some(error) = echo.take_error() {
            return Err(error);
        }
        if echo.is_full() {
            return Err(DatagramError::WouldBlock);
        }
        if data.len() > LARGEST_BYTES {
            return Err(DatagramError::TooLong);
        }
        let broadcast = echo.broadcast();
        let path = self.parts.ip.paths_mut().route(to, None, None, now)?;
        if !broadcast && self.parts.ip.paths().is_broadcast(path.link, to) {
            return Err(DatagramError::Broadcast);
        }
        let is_first = self.parts.sockets.echo_mut(socket).ok_or(SocketError::NoSocket)?.is_idle();
        let Some(mut copied) = self.parts.memory.take_to_send(is_first, data.len()) else {
            self.parts.memory.wait(socket.into(), now);
            return Err(DatagramError::WouldBlock);
        };
        copied.append(data);
        let echo = self.parts.sockets.echo_mut(socket).ok_or(SocketError::NoSocket)?;
        let first = echo.is_idle();
        echo.push(Request { data: copied, path, sequence });
        if first {
            self.parts.schedule.queue_sender(path.link, socket.place());
        }
        Ok(())
    }
    /// Receives the next reply: as much of its data as `into` has room for, and its addresses.
    pub fn receive(
        self,
        socket: EchoSocketId,
        into: &mut [u8],
        now: Instant,
    ) -> Result<EchoInfo, DatagramError> {
        self.parts.tick(now);
        let Parts { sockets, memory, .. } = self.parts;
        let echo = sockets.echo_mut(socket).ok_or(SocketError::NoSocket)?;
        echo.receive(into, memory.pool_mut())
    }

    /// Takes an answer.
    pub(crate) fn input(self, id: EchoSocketId, reply: &EchoReply, packet: &mut Packet) -> Result<(), Drop> {
        let Parts { memory, sockets, .. } = &mut *self.parts;
        let share = memory.pool().is_under_pressure().then(|| memory.share_bytes(sockets));
        let info = EchoInfo {
            length_bytes: packet.len(),
            from: reply.source,
            sequence: reply.sequence,
            hop_limit: reply.hop_limit,
        };
        sockets.echo_mut(id).ok_or(Drop::QueueFull)?.deliver(packet, info, share)?;
        self.parts.notify(id.into());
        Ok(())
    }
    /// Handles an error about a request. A quoted request has its identifier in place of ports.
    pub(crate) fn error(self, error: &TransportError, now: Instant) -> Result<(), Drop> {
        let found = self
            .parts
            .demux
            .find_echo(&self.parts.sockets, error.quoted.source_port)
            .ok_or(Drop::NoSocket)?;
        let Some(AnySocketId::Echo(key)) = self.parts.sockets.typed(found) else {
            return Err(Drop::NoSocket);
        };
        let Some(echo) = self.parts.sockets.echo_mut(key) else { return Err(Drop::NoSocket) };
        let request = Endpoint { address: error.quoted.destination, port: error.quoted.destination_port };
        if !echo.recent().has(request, now) {
            return Err(Drop::NotCredible);
        }
        echo.set_error(DatagramError::Unreachable(error.kind));
        self.parts.notify(key.into());
        Ok(())
    }
    /// Sends some of a socket's requests.
    pub(crate) fn turn(
        self,
        link: LinkId,
        key: EchoSocketId,
        now: Instant,
        budget: usize,
        device: &mut Counting<'_>,
        sink: &mut dyn Sink,
    ) -> Turn {
        for _ in 0..budget {
            let Some(echo) = self.parts.sockets.echo_mut(key) else { return Turn::Done };
            let identifier = echo.identifier();
            let Some(next) = echo.first() else { return Turn::Done };
            if next.path.link != link {
                self.parts.schedule.queue_sender(next.path.link, key.place());
                return Turn::Done;
            }
            let mut environment = ip_environment!(self.parts, now, sink);
            let message = EchoMessage { identifier, sequence: next.sequence, data: next.data.bytes() };
            let sent = self.parts.ip.echo_request(&next.path, &message, &mut environment, device);
            let failure = match sent {
                Ok(()) => None,
                Err(SendDatagramError::Full) => return Turn::Full,
                Err(SendDatagramError::Pending) => return Turn::Pending,
                Err(why) => Some(DatagramError::from(why)),
            };
            if echo.finish_first(failure, now, self.parts.memory.pool_mut()) {
                self.parts.notify(key.into());
            }
        }
        match self.parts.sockets.echo(key) {
            Some(echo) if !echo.is_idle() => Turn::More,
            _ => Turn::Done,
        }
    }
}
