//! Echo sockets: ping, with identifiers that nobody can guess.

use crate::error::{BindError, DatagramError, SocketError};
use crate::output::{Counting, Turn};
use crate::parts::{Parts, ip_environment};
use crate::recent::RecentlySent;
use crate::sockets::{AnySocketId, EchoInfo, EchoSocketId, Readiness, Socket, SocketId, SocketOption};
use inhost_base::{Endpoint, Instant, IpAddr, LinkId};
use inhost_buf::{Packet, Pool};
use inhost_event::{Drop, Sink};
use inhost_ip::{EchoReply, Path, SendDatagramError, TransportError};
use std::collections::VecDeque;

/// Requests, and answers, that a socket may hold.
const QUEUED: usize = 64;
/// Memory that answers may pin.
const INCOMING_BYTES: usize = 256 << 10;
/// Identifiers that are tried for a free one.
const TRIES: usize = 64;
/// The most data in a request.
const LARGEST_BYTES: usize = 65_535 - inhost_wire::ipv4::LENGTH - 8;

/// An echo socket.
#[derive(Debug)]
pub(crate) struct Echo {
    pub(crate) identifier: u16,
    pub(crate) opened: Instant,
    incoming: VecDeque<(Packet, EchoInfo)>,
    incoming_capacity: usize,
    pub(crate) outgoing: VecDeque<Request>,
    /// Whom it asked, and with which number.
    pub(crate) recent: RecentlySent,
    /// Broadcast destinations are allowed.
    broadcast: bool,
    error: Option<DatagramError>,
}

#[derive(Debug)]
pub(crate) struct Request {
    data: Packet,
    pub(crate) path: Path,
    sequence: u16,
}

impl Echo {
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

/// Calls on echo sockets: see [`crate::Stack::echo`].
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
            let (incoming, outgoing) = (VecDeque::new(), VecDeque::new());
            let recent = RecentlySent::new(QUEUED);
            let echo = Echo {
                identifier,
                opened: now,
                incoming,
                incoming_capacity: 0,
                outgoing,
                recent,
                broadcast: false,
                error: None,
            };
            match self.parts.demux.bind(&mut self.parts.sockets, Socket::Echo(Box::new(echo))) {
                Ok(SocketId(key)) => {
                    self.parts.population.datagram_sockets += 1;
                    return Ok(EchoSocketId::of(key));
                }
                Err(BindError::InUse) => {}
                Err(why) => return Err(why),
            }
        }
        Err(BindError::NoPort)
    }
    /// Asks `to` for an echo of `data`. The request leaves with the next [`Stack::transmit`].
    pub fn send(
        self,
        socket: EchoSocketId,
        to: IpAddr,
        sequence: u16,
        data: &[u8],
        now: Instant,
    ) -> Result<(), DatagramError> {
        self.parts.tick(now);
        let echo = self.parts.echo_mut(socket)?;
        if let Some(error) = echo.error.take() {
            return Err(error);
        }
        if echo.outgoing.len() >= QUEUED {
            return Err(DatagramError::WouldBlock);
        }
        if data.len() > LARGEST_BYTES {
            return Err(DatagramError::TooLong);
        }
        let broadcast = echo.broadcast;
        let path = self.parts.ip.route(to, None, None, now)?;
        if !broadcast && self.parts.is_broadcast(&path, to) {
            return Err(DatagramError::Broadcast);
        }
        let is_first = self.parts.echo_mut(socket)?.outgoing.is_empty();
        let Some(mut copied) = self.parts.memory.take_to_send(is_first, data.len()) else {
            self.parts.memory.wait(socket.into(), now);
            return Err(DatagramError::WouldBlock);
        };
        copied.append(data);
        let echo = self.parts.echo_mut(socket)?;
        let first = echo.outgoing.is_empty();
        echo.outgoing.push_back(Request { data: copied, path, sequence });
        if first {
            self.parts.schedule.make_ready(path.link, socket.place());
        }
        Ok(())
    }
    /// Takes the next answer: as much of its data as `into` has room for, and what came with it.
    pub fn receive(
        self,
        socket: EchoSocketId,
        into: &mut [u8],
        now: Instant,
    ) -> Result<EchoInfo, DatagramError> {
        self.parts.tick(now);
        let echo = self.parts.echo_mut(socket)?;
        if let Some(error) = echo.error.take() {
            return Err(error);
        }
        let (data, info) = echo.incoming.pop_front().ok_or(DatagramError::WouldBlock)?;
        echo.incoming_capacity -= data.capacity();
        inhost_buf::copy(into, data.bytes());
        self.parts.memory.pool_mut().give(data);
        Ok(info)
    }
}

impl Parts {
    /// Takes an answer.
    pub(crate) fn echo_input(
        &mut self,
        reply: &EchoReply,
        packet: &mut Packet,
        now: Instant,
        sink: &mut dyn Sink,
    ) {
        let most = if self.memory.pool().is_under_pressure() {
            self.memory.share_bytes(&self.sockets)
        } else {
            INCOMING_BYTES
        };
        let found = self.demux.find_echo(&self.sockets, reply.identifier);
        let taken = match found.and_then(|found| self.sockets.typed(found)) {
            None => Err(Drop::NoSocket),
            Some(AnySocketId::Probe(key)) => {
                self.probe_echo_input(key, reply.source, reply.sequence);
                Ok(())
            }
            Some(AnySocketId::Echo(key)) => match self.sockets.echo_mut(key) {
                Some(echo) if echo.takes(packet, most) => {
                    echo.incoming_capacity += packet.capacity();
                    let info = EchoInfo {
                        length_bytes: packet.len(),
                        from: reply.source,
                        sequence: reply.sequence,
                        hop_limit: reply.hop_limit,
                    };
                    echo.incoming.push_back((packet.take(), info));
                    self.tell(key.into());
                    Ok(())
                }
                _ => Err(Drop::QueueFull),
            },
            Some(_) => Err(Drop::QueueFull),
        };
        if let Err(why) = taken {
            self.drop_frame(reply.link, why, now, sink);
        }
    }
    /// Takes an error about a request; a quoted request's identifier stands where ports do.
    pub(crate) fn echo_error(&mut self, error: &TransportError, now: Instant) -> Result<(), Drop> {
        let found = self.demux.find_echo(&self.sockets, error.quoted.source_port).ok_or(Drop::NoSocket)?;
        let Some(AnySocketId::Echo(key)) = self.sockets.typed(found) else { return Err(Drop::NoSocket) };
        let Some(echo) = self.sockets.echo_mut(key) else { return Err(Drop::NoSocket) };
        let request = Endpoint { address: error.quoted.destination, port: error.quoted.destination_port };
        if !echo.recent.has(request, now) {
            return Err(Drop::NotCredible);
        }
        echo.error = Some(DatagramError::Unreachable(error.kind));
        self.tell(key.into());
        Ok(())
    }
    /// Sends some of a socket's requests.
    pub(crate) fn echo_turn(
        &mut self,
        link: LinkId,
        key: EchoSocketId,
        now: Instant,
        budget: usize,
        device: &mut Counting<'_>,
        sink: &mut dyn Sink,
    ) -> Turn {
        for _ in 0..budget {
            let Some(echo) = self.sockets.echo_mut(key) else { return Turn::Done };
            let identifier = echo.identifier;
            let Some(next) = echo.outgoing.front() else { return Turn::Done };
            if next.path.link != link {
                self.schedule.make_ready(next.path.link, key.place());
                return Turn::Done;
            }
            let mut environment = ip_environment!(self, now, sink);
            let data = next.data.bytes();
            let sent =
                self.ip.echo_request(&next.path, identifier, next.sequence, data, &mut environment, device);
            let failure = match sent {
                Ok(()) => None,
                Err(SendDatagramError::Full) => return Turn::Full,
                Err(SendDatagramError::Pending) => return Turn::Pending,
                Err(why) => Some(DatagramError::from(why)),
            };
            let full = echo.outgoing.len() >= QUEUED;
            let Some(request) = echo.outgoing.pop_front() else { return Turn::Done };
            if failure.is_none() {
                let asked = Endpoint { address: request.path.destination, port: request.sequence };
                echo.recent.note(asked, 0, now);
            }
            let failed = failure.is_some();
            echo.error = failure.or(echo.error);
            self.memory.pool_mut().give(request.data);
            if full || failed {
                self.tell(key.into());
            }
        }
        match self.sockets.echo(key) {
            Some(echo) if !echo.outgoing.is_empty() => Turn::More,
            _ => Turn::Done,
        }
    }
    fn echo_mut(&mut self, socket: EchoSocketId) -> Result<&mut Echo, SocketError> {
        self.sockets.echo_mut(socket).ok_or(SocketError::NoSocket)
    }
}
