//! Echo sockets: ping, with unpredictable identifiers.

use crate::api::EchoSockets;
use crate::error::{BindError, DatagramError, SocketError};
use crate::icmp::Echo;
use crate::socket::{EchoInfo, EchoSocketId, Outgoing, SocketId};
use crate::sockets::Socket;
use alloc::boxed::Box;
use inhost_base::IpAddr;

/// Identifiers that are tried for a free one.
const TRIES: usize = 64;
/// The most data in a request.
const LARGEST_BYTES: usize = 65_535 - inhost_wire::ipv4::LENGTH - 8;

impl EchoSockets<'_> {
    /// An echo socket. Answers to its requests come to it alone.
    pub fn open(&mut self) -> Result<EchoSocketId, BindError> {
        self.sockets.make_room_for_datagrams(self.env.resources())?;
        for _ in 0..TRIES {
            let identifier = self.env.random().private_u32() as u16;
            let echo = Echo::new(identifier, self.env.now());
            match self.sockets.bind(Socket::Echo(Box::new(echo))) {
                Err(BindError::InUse) => {}
                bound => return bound.map(|SocketId(key)| EchoSocketId::of(key)),
            }
        }
        Err(BindError::NoPort)
    }
    /// Asks `to` for an echo of `data`. The request leaves with the next [`crate::Stack::transmit`].
    pub fn send(
        &mut self,
        socket: EchoSocketId,
        to: IpAddr,
        sequence: u16,
        data: &[u8],
    ) -> Result<(), DatagramError> {
        self.sockets.datagrams_mut(socket.into())?.begin_request()?;
        if data.len() > LARGEST_BYTES {
            return Err(DatagramError::TooLong);
        }
        let path = self.env.route(to, None, None)?;
        let echo = self.sockets.echo(socket).ok_or(SocketError::NoSocket)?;
        if !echo.broadcast() && self.env.paths().is_broadcast(path.link, to) {
            return Err(DatagramError::Broadcast);
        }
        let request = (data.len(), Outgoing::request(path, sequence));
        self.sockets.queue_datagram(socket.into(), request, &mut self.env, |_, message| {
            message.append(data);
        })
    }
    /// Receives the next reply: as much of its data as `into` has room for, and its addresses.
    pub fn receive(&mut self, socket: EchoSocketId, into: &mut [u8]) -> Result<EchoInfo, DatagramError> {
        let echo = self.sockets.echo_mut(socket).ok_or(SocketError::NoSocket)?;
        echo.receive(into, self.env.pool())
    }
}
