//! Calls on our datagram sockets.

use super::{Ours, Slot};
use crate::language::{Failure, SocketCall};
use crate::side::{Came, PEER_PORTS};
use inhost_base::Endpoint;
use inhost_stack::{AnySocketId, BindError, DatagramError, ErrorKind, Ignore, UdpSocketId};

impl Ours {
    pub(super) fn open_datagrams(&mut self, call: &SocketCall, port: u16) -> Result<Came, String> {
        let local = Endpoint::new(self.any(), port);
        match self.stack.udp(self.now, &mut Ignore).bind(local, self.datagram_options.clone()) {
            Ok(socket) => {
                self.sockets.insert(call.on.clone(), Slot::Live(AnySocketId::Udp(socket)));
                self.datagrams.insert(call.on.clone());
                Ok(Came::Done)
            }
            Err(BindError::InUse) => Ok(Came::Failed(Failure::InUse)),
            Err(error) => Err(error.to_string()),
        }
    }
    fn datagram_socket(&self, name: &str) -> Result<UdpSocketId, String> {
        match self.socket(name)? {
            AnySocketId::Udp(id) => Ok(id),
            _ => Err(format!("the socket {name} takes no datagrams")),
        }
    }
    fn peer(&self, number: u8) -> Endpoint {
        Endpoint::new(self.ends.peer, PEER_PORTS + u16::from(number))
    }
    pub(super) fn connect_datagrams(&mut self, call: &SocketCall, peer: u8) -> Result<Came, String> {
        let socket = self.datagram_socket(&call.on)?;
        let peer = self.peer(peer);
        let done = self.stack.udp(self.now, &mut Ignore).connect(socket, peer);
        done.map_or_else(failed, |()| Ok(Came::Done))
    }
    pub(super) fn send_datagram(
        &mut self,
        call: &SocketCall,
        to: Option<u8>,
        data: &[u8],
    ) -> Result<Came, String> {
        let socket = self.datagram_socket(&call.on)?;
        let to = to.map(|peer| self.peer(peer));
        let done = self.stack.udp(self.now, &mut Ignore).send_to(socket, data, to, None);
        done.map_or_else(failed, |()| Ok(Came::Taken(data.len())))
    }
    pub(super) fn receive_datagram(&mut self, call: &SocketCall, bytes: usize) -> Result<Came, String> {
        let socket = self.datagram_socket(&call.on)?;
        let mut place = vec![0; bytes];
        match self.stack.udp(self.now, &mut Ignore).receive_from(socket, &mut place) {
            Ok(info) => {
                place.truncate(info.length_bytes);
                Ok(Came::Received { bytes: place, whole: info.length_bytes, from: info.from.port })
            }
            Err(error) => failed(error),
        }
    }
    pub(super) fn datagram_error(&mut self, call: &SocketCall) -> Result<Came, String> {
        let socket = self.datagram_socket(&call.on)?;
        let error =
            self.stack.udp(self.now, &mut Ignore).take_error(socket).map_err(|error| error.to_string())?;
        error.map_or(Ok(Came::Done), failed)
    }
}

fn failed(error: DatagramError) -> Result<Came, String> {
    Ok(Came::Failed(match error {
        DatagramError::WouldBlock => Failure::WouldBlock,
        DatagramError::NoDestination => Failure::NoDestination,
        DatagramError::TooLong | DatagramError::Unreachable(ErrorKind::PacketTooBig) => Failure::TooLong,
        DatagramError::Unreachable(ErrorKind::PortUnreachable) => Failure::Refused,
        DatagramError::Route(_) | DatagramError::Unreachable(_) | DatagramError::NoNeighbour => {
            Failure::Unreachable
        }
        DatagramError::InUse => Failure::InUse,
        other => return Err(other.to_string()),
    }))
}
