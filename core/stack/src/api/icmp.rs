//! Echo sockets, for ping, and probe sockets: packets sent to expire on their way, as traceroute needs, and the ICMP errors that
//! they cause. Identifiers and ports are unpredictable.

use crate::api::{EchoSockets, ProbeSockets};
use crate::error::BindError;
use crate::socket::{EchoSocketId, ProbeSocketId, SocketId};
use crate::sockets::Socket;
use alloc::boxed::Box;
use inhost_base::{IpAddr, Ipv6Addr, Sequence};
use inhost_datagram::{
    CALL_PORTS, DatagramError, EchoInfo, EchoSocket, Probe, ProbeAnswer, ProbeMethod, ProbeSocket,
    SocketError,
};
use inhost_wire::protocol;

/// Ports or identifiers that are tried for free ones.
const TRIES: usize = 64;
/// The first source port of SYN probes; above it is room for three times [`CALL_PORTS`].
const FIRST_CALL_PORT: u16 = 36_864;

impl EchoSockets<'_> {
    /// An echo socket. Answers to its requests come to it alone.
    pub fn open(&mut self) -> Result<EchoSocketId, BindError> {
        self.sockets.make_room_for_datagrams(self.env.resources())?;
        for _ in 0..TRIES {
            let identifier = self.env.random().private_u32() as u16;
            let echo = EchoSocket::new(identifier, self.env.now());
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
        let echo = self.sockets.echo_mut(socket).ok_or(SocketError::NoSocket)?;
        let now = self.env.now();
        let request = echo.prepare((to, sequence), data.len(), self.env.paths_mut(), now)?;
        let request = (data.len(), request);
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

impl ProbeSockets<'_> {
    /// A socket for probes of one method.
    pub fn open(&mut self, method: ProbeMethod) -> Result<ProbeSocketId, BindError> {
        self.sockets.make_room_for_datagrams(self.env.resources())?;
        for _ in 0..TRIES {
            let any = self.env.random().private_u32() as u16;
            let port = match method {
                ProbeMethod::Echo => any,
                ProbeMethod::Datagram { .. } => {
                    let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
                    self.sockets.choose_bound_port(protocol::UDP, any, self.env.random())?
                }
                ProbeMethod::Call { .. } => FIRST_CALL_PORT + any % (2 * CALL_PORTS),
            };
            let sequence = Sequence(self.env.random().private_u32());
            let prober = ProbeSocket::new(method, port, sequence, self.env.now());
            match self.sockets.bind(Socket::Probe(Box::new(prober))) {
                Err(BindError::InUse) => {}
                bound => return bound.map(|SocketId(key)| ProbeSocketId::of(key)),
            }
        }
        Err(BindError::InUse)
    }
    /// Sends a probe. It leaves with the next [`crate::Stack::transmit`], unfragmented, if it fits the link. The known
    /// path MTU is ignored, and don't-fragment is set.
    pub fn send(&mut self, socket: ProbeSocketId, probe: &Probe) -> Result<(), DatagramError> {
        let prober = self.sockets.probe_mut(socket).ok_or(SocketError::NoSocket)?;
        let now = self.env.now();
        let request = prober.prepare(probe, self.env.paths_mut(), now)?;
        let path = request.path;
        let request = (ProbeSocket::room_bytes(probe, &path), request);
        self.sockets.queue_datagram(socket.into(), request, &mut self.env, |socket, message| {
            if let Socket::Probe(prober) = socket {
                message.append_with(|into| prober.write(probe, &path, into));
            }
        })
    }
    /// Takes the next answer; or the error that kept a probe from leaving.
    pub fn receive(&mut self, socket: ProbeSocketId) -> Result<ProbeAnswer, DatagramError> {
        self.sockets.probe_mut(socket).ok_or(SocketError::NoSocket)?.receive()
    }
}
