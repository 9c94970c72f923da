//! Probe sockets: packets sent to expire on their way, as traceroute needs, and the ICMP errors that they cause.

use crate::error::{BindError, DatagramError, SocketError};
use crate::icmp::probe_socket::{CALL_PORTS, Outgoing, Probe, ProbeAnswer, ProbeMethod, ProbeNews, Prober};
use crate::output::{Counting, Turn};
use crate::parts::{Parts, ip_environment};
use crate::sockets::{AnySocketId, ProbeSocketId, Socket, SocketId};
use alloc::boxed::Box;
use inhost_base::{Endpoint, Instant, IpAddr, Ipv6Addr, LinkId, Sequence};
use inhost_buf::Slices;
use inhost_event::Sink;
use inhost_ip::{HeaderHow, SendDatagramError, TransportError};
use inhost_tcp::Header;
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
    parts: &'a mut Parts,
}

impl<'a> ProbeSockets<'a> {
    pub(crate) fn new(parts: &'a mut Parts) -> ProbeSockets<'a> {
        ProbeSockets { parts }
    }
    /// A socket for probes of one method.
    pub fn open(mut self, method: ProbeMethod, now: Instant) -> Result<ProbeSocketId, BindError> {
        self.parts.tick(now);
        if !self.parts.has_room_for_datagram_socket() {
            return Err(BindError::TooManySockets);
        }
        for _ in 0..TRIES {
            let any = self.parts.random.private_u32() as u16;
            let port = match method {
                ProbeMethod::Echo => any,
                ProbeMethod::Datagram { .. } => self.choose_port().ok_or(BindError::NoPort)?,
                ProbeMethod::Call { .. } => FIRST_CALL_PORT + any % (2 * CALL_PORTS),
            };
            let sequence = Sequence(self.parts.random.private_u32());
            let prober = Prober::new(method, port, sequence, now);
            match self.parts.demux.bind(&mut self.parts.sockets, Socket::Probe(Box::new(prober))) {
                Ok(SocketId(key)) => {
                    return Ok(ProbeSocketId::of(key));
                }
                Err(BindError::InUse) => {}
                Err(why) => return Err(why),
            }
        }
        Err(BindError::InUse)
    }
    /// Sends a probe. It leaves with the next [`crate::Stack::transmit`], unfragmented, if it fits the link. The known
    /// path MTU is ignored, and don't-fragment is set.
    pub fn send(self, socket: ProbeSocketId, probe: &Probe, now: Instant) -> Result<(), DatagramError> {
        self.parts.tick(now);
        let prober = self.parts.sockets.probe_mut(socket).ok_or(SocketError::NoSocket)?;
        if let Some(error) = prober.take_error() {
            return Err(error);
        }
        if prober.is_full() {
            return Err(DatagramError::WouldBlock);
        }
        if probe.hop_limit == 0 {
            return Err(SocketError::Invalid.into());
        }
        let path = self.parts.ip.paths_mut().route(probe.to, None, None, now)?;
        if probe.to.is_multicast() || self.parts.ip.paths().is_broadcast(path.link, probe.to) {
            return Err(DatagramError::Broadcast);
        }
        // The longest header of the three methods.
        let room_bytes =
            usize::from(probe.packet_bytes).max(path.ip_header_bytes() + inhost_wire::tcp::LENGTH);
        let is_first = self.parts.sockets.probe_mut(socket).ok_or(SocketError::NoSocket)?.is_idle();
        let Some(mut message) = self.parts.memory.take_to_send(is_first, room_bytes) else {
            self.parts.memory.wait(socket.into(), now);
            return Err(DatagramError::WouldBlock);
        };
        let prober = self.parts.sockets.probe_mut(socket).ok_or(SocketError::NoSocket)?;
        let written = prober.write(probe, &path, message.spare_mut());
        message.extend(written);
        let first = prober.is_idle();
        let Probe { number, hop_limit, .. } = *probe;
        prober.push(Outgoing { message, path, number, hop_limit });
        if first {
            self.parts.schedule.queue_sender(path.link, socket.place());
        }
        Ok(())
    }
    /// Takes the next answer; or the error that kept a probe from leaving.
    pub fn receive(self, socket: ProbeSocketId, now: Instant) -> Result<ProbeAnswer, DatagramError> {
        self.parts.tick(now);
        self.parts.sockets.probe_mut(socket).ok_or(SocketError::NoSocket)?.receive()
    }

    fn choose_port(&mut self) -> Option<u16> {
        let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let Parts { demux, config, sockets, random, .. } = &mut *self.parts;
        demux.choose_bound_port(sockets, config, (protocol::UDP, any), random)
    }
    /// Queues an answer on its socket. It is dropped when the queue is full.
    fn answered(self, id: ProbeSocketId, answer: ProbeAnswer) {
        if self.parts.sockets.probe_mut(id).is_some_and(|prober| prober.deliver(answer)) {
            self.parts.notify(id.into());
        }
    }
    /// Takes the echo of a probe.
    pub(crate) fn echo_input(self, id: ProbeSocketId, from: IpAddr, number: u16) {
        self.answered(id, ProbeAnswer { number, to: from, from, news: ProbeNews::Answered });
    }
    /// Handles a datagram in answer to a probe; false when no socket sent one there.
    pub(crate) fn udp_input(self, link: LinkId, local: Endpoint, remote: Endpoint) -> bool {
        let found =
            self.parts.demux.find_binding(&self.parts.sockets, &self.parts.ip, protocol::UDP, link, local);
        let Some(found) = found else { return false };
        let Some(AnySocketId::Probe(key)) = self.parts.sockets.typed(found) else { return false };
        let Some(prober) = self.parts.sockets.probe(key) else { return false };
        let Some(number) = prober.number_of(local.port, remote.port) else { return false };
        let (to, from) = (remote.address, remote.address);
        self.answered(key, ProbeAnswer { number, to, from, news: ProbeNews::Answered });
        true
    }
    /// Takes the answer to a call that was a probe.
    pub(crate) fn tcp_input(self, id: ProbeSocketId, header: &Header, local: Endpoint, remote: Endpoint) {
        let Some(prober) = self.parts.sockets.probe(id) else { return };
        if let Some((number, news)) = prober.call_answer(header, local.port, remote.port) {
            self.answered(id, ProbeAnswer { number, to: remote.address, from: remote.address, news });
        }
    }
    /// Takes an error about a probe; false when it is about none.
    pub(crate) fn error(self, error: &TransportError, now: Instant) -> bool {
        let quoted = &error.quoted;
        let local = Endpoint { address: quoted.source, port: quoted.source_port };
        let Parts { demux, sockets, ip, .. } = &mut *self.parts;
        let found = match quoted.protocol {
            protocol::ICMPV4 | protocol::ICMPV6 => demux.find_echo(sockets, quoted.source_port),
            number => demux.find_binding(sockets, ip, number, error.link, local),
        };
        let Some(found) = found else { return false };
        let Some(AnySocketId::Probe(key)) = sockets.typed(found) else { return false };
        let Some(prober) = sockets.probe(key) else { return false };
        let number = prober.sent_number(quoted, now);
        if let Some(number) = number {
            let news = ProbeNews::Error { kind: error.kind, mtu_bytes: error.mtu_bytes };
            self.answered(key, ProbeAnswer { number, to: quoted.destination, from: error.reporter, news });
        }
        number.is_some()
    }
    /// Sends some of a socket's probes.
    pub(crate) fn turn(
        self,
        link: LinkId,
        key: ProbeSocketId,
        now: Instant,
        budget: usize,
        device: &mut Counting<'_>,
        sink: &mut dyn Sink,
    ) -> Turn {
        for _ in 0..budget {
            let Some(prober) = self.parts.sockets.probe_mut(key) else { return Turn::Done };
            let Some(next) = prober.first() else { return Turn::Done };
            if next.path.link != link {
                self.parts.schedule.queue_sender(next.path.link, key.place());
                return Turn::Done;
            }
            let mut how = HeaderHow::new(prober.protocol(next.path.destination));
            how.hop_limit = Some(next.hop_limit);
            (how.dont_fragment, how.beyond_path_mtu) = (true, true);
            let mut environment = ip_environment!(self.parts, now, sink);
            let message = Slices::one(next.message.bytes());
            let sent = self.parts.ip.send_datagram(&next.path, &how, message, &mut environment, device);
            let failure = match sent {
                Ok(()) => None,
                Err(SendDatagramError::Full) => return Turn::Full,
                Err(SendDatagramError::Pending) => return Turn::Pending,
                Err(why) => Some(DatagramError::from(why)),
            };
            if prober.finish_first(failure, now, self.parts.memory.pool_mut()) {
                self.parts.notify(key.into());
            }
        }
        match self.parts.sockets.probe(key) {
            Some(prober) if !prober.is_idle() => Turn::More,
            _ => Turn::Done,
        }
    }
}
