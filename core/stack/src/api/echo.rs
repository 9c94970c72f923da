//! Echo sockets: ping, with unpredictable identifiers.

use crate::api::EchoSockets;
use crate::error::{BindError, DatagramError, SocketError};
use crate::icmp::Echo;
use crate::socket::{EchoInfo, EchoSocketId, Outgoing, SocketId};
use crate::sockets::Socket;
use alloc::boxed::Box;
use inhost_base::{Instant, IpAddr};

/// Identifiers that are tried for a free one.
const TRIES: usize = 64;
/// The most data in a request.
const LARGEST_BYTES: usize = 65_535 - inhost_wire::ipv4::LENGTH - 8;

impl EchoSockets<'_> {
    /// An echo socket. Answers to its requests come to it alone.
    pub fn open(self, now: Instant) -> Result<EchoSocketId, BindError> {
        self.resources.tick(now);
        self.sockets.make_room_for_datagrams(self.resources)?;
        for _ in 0..TRIES {
            let identifier = self.resources.random_mut().private_u32() as u16;
            let echo = Echo::new(identifier, now);
            match self.sockets.bind(Socket::Echo(Box::new(echo))) {
                Err(BindError::InUse) => {}
                bound => return bound.map(|SocketId(key)| EchoSocketId::of(key)),
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
        self.resources.tick(now);
        self.sockets.datagrams_mut(socket.into())?.begin_request()?;
        if data.len() > LARGEST_BYTES {
            return Err(DatagramError::TooLong);
        }
        let path = self.network.ip_mut().paths_mut().route(to, None, None, now)?;
        let echo = self.sockets.echo(socket).ok_or(SocketError::NoSocket)?;
        if !echo.broadcast() && self.network.ip().paths().is_broadcast(path.link, to) {
            return Err(DatagramError::Broadcast);
        }
        let request = (data.len(), Outgoing::request(path, sequence));
        self.sockets.queue_datagram(socket.into(), request, now, self.resources, |_, message| {
            message.append(data);
        })
    }
    /// Receives the next reply: as much of its data as `into` has room for, and its addresses.
    pub fn receive(
        self,
        socket: EchoSocketId,
        into: &mut [u8],
        now: Instant,
    ) -> Result<EchoInfo, DatagramError> {
        self.resources.tick(now);
        let echo = self.sockets.echo_mut(socket).ok_or(SocketError::NoSocket)?;
        echo.receive(into, self.resources.pool_mut())
    }
}
