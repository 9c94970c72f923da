//! Probe sockets: packets sent to expire on their way, as traceroute needs, and the ICMP errors that they cause.

use crate::error::{BindError, DatagramError, SocketError};
use crate::icmp::{CALL_PORTS, Probe, ProbeAnswer, ProbeMethod, Prober};
use crate::network::Network;
use crate::resources::Resources;
use crate::socket::{ProbeSocketId, SocketId};
use crate::sockets::{Socket, Sockets};
use alloc::boxed::Box;
use inhost_base::{Instant, IpAddr, Ipv6Addr, Sequence};
use inhost_wire::protocol;

/// Ports or identifiers that are tried for free ones.
const TRIES: usize = 64;
/// The first source port of SYN probes; above it is room for three times [`CALL_PORTS`].
const FIRST_CALL_PORT: u16 = 36_864;

/// Calls on probe sockets (traceroute): see [`crate::Stack::probe`].
///
/// ```
/// use inhost_base::Instant;
/// use inhost_stack::{ProbeMethod, Stack, StackConfig};
///
/// let now = Instant::ZERO;
/// let mut host = Stack::new(StackConfig::default(), [7; 32], now);
/// let socket = host.probe().open(ProbeMethod::Echo, now).unwrap();
/// assert!(host.probe().receive(socket, now).is_err()); // Nothing was sent.
/// ```
#[derive(Debug)]
pub struct ProbeSockets<'a> {
    sockets: &'a mut Sockets,
    network: &'a mut Network,
    resources: &'a mut Resources,
}

impl<'a> ProbeSockets<'a> {
    pub(crate) fn new(
        sockets: &'a mut Sockets,
        network: &'a mut Network,
        resources: &'a mut Resources,
    ) -> ProbeSockets<'a> {
        ProbeSockets { sockets, network, resources }
    }
    /// A socket for probes of one method.
    pub fn open(self, method: ProbeMethod, now: Instant) -> Result<ProbeSocketId, BindError> {
        self.resources.tick(now);
        self.sockets.make_room_for_datagrams(self.resources)?;
        for _ in 0..TRIES {
            let any = self.resources.random_mut().private_u32() as u16;
            let port = match method {
                ProbeMethod::Echo => any,
                ProbeMethod::Datagram { .. } => {
                    let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
                    self.sockets.choose_bound_port(protocol::UDP, any, self.resources.random_mut())?
                }
                ProbeMethod::Call { .. } => FIRST_CALL_PORT + any % (2 * CALL_PORTS),
            };
            let sequence = Sequence(self.resources.random_mut().private_u32());
            let prober = Prober::new(method, port, sequence, now);
            match self.sockets.bind(Socket::Probe(Box::new(prober))) {
                Err(BindError::InUse) => {}
                bound => return bound.map(|SocketId(key)| ProbeSocketId::of(key)),
            }
        }
        Err(BindError::InUse)
    }
    /// Sends a probe. It leaves with the next [`crate::Stack::transmit`], unfragmented, if it fits the link. The known
    /// path MTU is ignored, and don't-fragment is set.
    pub fn send(self, socket: ProbeSocketId, probe: &Probe, now: Instant) -> Result<(), DatagramError> {
        self.resources.tick(now);
        self.sockets.requests_mut(socket.into()).ok_or(SocketError::NoSocket)?.begin()?;
        if probe.hop_limit == 0 {
            return Err(SocketError::Invalid.into());
        }
        let path = self.network.paths_mut().route(probe.to, None, None, now)?;
        if probe.to.is_multicast() || self.network.paths().is_broadcast(path.link, probe.to) {
            return Err(DatagramError::Broadcast);
        }
        // The longest header of the three methods.
        let room_bytes =
            usize::from(probe.packet_bytes).max(path.ip_header_bytes() + inhost_wire::tcp::LENGTH);
        let mut message = self.sockets.take_to_ask(socket.into(), room_bytes, now, self.resources)?;
        let prober = self.sockets.probe(socket).ok_or(SocketError::NoSocket)?;
        message.append_with(|into| prober.write(probe, &path, into));
        let request = prober.request(probe, path);
        self.sockets.ask(socket.into(), message, request)
    }
    /// Takes the next answer; or the error that kept a probe from leaving.
    pub fn receive(self, socket: ProbeSocketId, now: Instant) -> Result<ProbeAnswer, DatagramError> {
        self.resources.tick(now);
        self.sockets.probe_mut(socket).ok_or(SocketError::NoSocket)?.receive()
    }
}
