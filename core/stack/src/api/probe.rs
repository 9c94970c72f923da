//! Probe sockets: packets sent to expire on their way, as traceroute needs, and the ICMP errors that they cause.

use crate::api::ProbeSockets;
use crate::error::{BindError, DatagramError, SocketError};
use crate::icmp::{CALL_PORTS, Probe, ProbeAnswer, ProbeMethod, Prober};
use crate::socket::{ProbeSocketId, SocketId};
use crate::sockets::Socket;
use alloc::boxed::Box;
use inhost_base::{IpAddr, Ipv6Addr, Sequence};
use inhost_wire::protocol;

/// Ports or identifiers that are tried for free ones.
const TRIES: usize = 64;
/// The first source port of SYN probes; above it is room for three times [`CALL_PORTS`].
const FIRST_CALL_PORT: u16 = 36_864;

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
            let prober = Prober::new(method, port, sequence, self.env.now());
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
        self.sockets.datagrams_mut(socket.into())?.begin_request()?;
        if probe.hop_limit == 0 {
            return Err(SocketError::Invalid.into());
        }
        let path = self.env.route(probe.to, None, None)?;
        if probe.to.is_multicast() || self.env.paths().is_broadcast(path.link, probe.to) {
            return Err(DatagramError::Broadcast);
        }
        // The longest header of the three methods.
        let room_bytes =
            usize::from(probe.packet_bytes).max(path.ip_header_bytes() + inhost_wire::tcp::LENGTH);
        let prober = self.sockets.probe(socket).ok_or(SocketError::NoSocket)?;
        let request = (room_bytes, prober.request(probe, path));
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
