//! Probe sockets: packets that are meant to die on their way, and the news of where they did. A trace of a route is made
//! of them.

use crate::demux::NOWHERE;
use crate::echo::Echo;
use crate::error::{BindError, DatagramError, SocketError};
use crate::output::{Counting, Turn};
use crate::parts::{Parts, ip_environment};
use crate::recent::RecentlySent;
use crate::sockets::{AnySocketId, ProbeSocketId, Readiness, Socket, SocketId};
use inhost_base::{Endpoint, Instant, IpAddr, Ipv6Addr, LinkId, Sequence};
use inhost_buf::{Packet, Pool, Slices};
use inhost_event::Sink;
use inhost_ip::{Datagram, ErrorKind, HeaderHow, Path, SendDatagramError, TransportError};
use inhost_tcp::Header;
use inhost_wire::checksum::Sum;
use inhost_wire::icmpv4::{self, Icmpv4Message};
use inhost_wire::icmpv6::Icmpv6Message;
use inhost_wire::protocol;
use inhost_wire::quoted::Quoted;
use inhost_wire::tcp::{Flags, Segment};
use inhost_wire::udp::{self, UdpHeader};
use std::collections::VecDeque;

/// Probes, and answers, that a socket may hold.
const QUEUED: usize = 256;
/// Ports or identifiers that are tried for free ones.
const TRIES: usize = 64;
/// Ports that the calls of one socket come from, each in turn: every call is a connection of its own to who answers.
const CALL_PORTS: u16 = 8192;
/// The first port that calls may come from; above it lies room for [`CALL_PORTS`], three times over.
const FIRST_CALL_PORT: u16 = 36_864;
/// What a probe is filled with.
static ZEROS: [u8; u16::MAX as usize] = [0; u16::MAX as usize];
/// The window that a call offers.
const CALL_WINDOW: u16 = 5840;

/// What a probe looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeMethod {
    /// An ICMP echo request. All have the same identifier and checksum, so that routers that share out the load by
    /// these send them the same way.
    Echo,
    /// A UDP datagram, to this port and as many more as the probe's number says.
    Datagram {
        /// The port of number 0.
        port: u16,
    },
    /// A TCP SYN to this port, each from a port of its own. A connection that it opens is reset at once.
    Call {
        /// The port that is called.
        port: u16,
    },
}

/// One probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Where it would go.
    pub to: IpAddr,
    /// What its answer is known by.
    pub number: u16,
    /// Hops that it may take.
    pub hop_limit: u8,
    /// Its length with its IP header; made longer where its headers need more.
    pub packet_bytes: u16,
}

/// An answer to a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbeAnswer {
    /// The probe's number.
    pub number: u16,
    /// Whom the probe was for.
    pub to: IpAddr,
    /// Who answers.
    pub from: IpAddr,
    /// What.
    pub news: ProbeNews,
}

/// What became of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeNews {
    /// It arrived, and its destination answers: an echo, a datagram, a SYN accepted.
    Answered,
    /// It arrived, and its destination refuses the connection.
    Refused,
    /// It came to grief on its way, or where it arrived.
    Error {
        /// Why.
        kind: ErrorKind,
        /// The largest packet that would have gone on, where `kind` is [`ErrorKind::PacketTooBig`].
        mtu_bytes: Option<u16>,
    },
}

/// A probe socket.
#[derive(Debug)]
pub(crate) struct Prober {
    pub(crate) method: ProbeMethod,
    /// The identifier or source port of all probes, or the first port that calls come from.
    pub(crate) port: u16,
    /// Of calls; nobody can guess it.
    sequence: Sequence,
    pub(crate) opened: Instant,
    incoming: VecDeque<ProbeAnswer>,
    pub(crate) outgoing: VecDeque<Outgoing>,
    /// Where its probes went, and their numbers.
    recent: RecentlySent,
    error: Option<DatagramError>,
}

#[derive(Debug)]
pub(crate) struct Outgoing {
    message: Packet,
    pub(crate) path: Path,
    number: u16,
    hop_limit: u8,
}

impl Prober {
    pub(crate) fn readiness(&self) -> Readiness {
        let failed = self.error.is_some();
        Readiness::NONE
            .with_if(Readiness::READABLE, failed || !self.incoming.is_empty())
            .with_if(Readiness::WRITABLE, failed || self.outgoing.len() < QUEUED)
            .with_if(Readiness::ERROR, failed)
    }
    /// Memory that it pins.
    pub(crate) fn held_bytes(&self) -> usize {
        self.outgoing.iter().map(|probe| probe.message.capacity()).sum()
    }
    /// Answers that wait for the application, and bytes that wait for the link.
    pub(crate) fn queued(&self) -> (usize, usize) {
        (self.incoming.len(), self.outgoing.iter().map(|probe| probe.message.len()).sum())
    }
    pub(crate) fn clear(self, pool: &mut Pool) {
        self.outgoing.into_iter().for_each(|probe| pool.give(probe.message));
    }
    /// Under which it stands in the table of bindings.
    pub(crate) fn binding(&self) -> (u8, Endpoint, bool) {
        let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        match self.method {
            ProbeMethod::Echo => (protocol::ICMPV4, Endpoint { port: self.port, ..NOWHERE }, false),
            ProbeMethod::Datagram { .. } => {
                (protocol::UDP, Endpoint { address: any, port: self.port }, false)
            }
            // It takes what comes to any port that nobody else has.
            ProbeMethod::Call { .. } => (protocol::TCP, Endpoint { address: any, port: 0 }, true),
        }
    }
    fn protocol(&self, to: IpAddr) -> u8 {
        match self.method {
            ProbeMethod::Echo if to.is_ipv4() => protocol::ICMPV4,
            ProbeMethod::Echo => protocol::ICMPV6,
            ProbeMethod::Datagram { .. } => protocol::UDP,
            ProbeMethod::Call { .. } => protocol::TCP,
        }
    }
    /// A probe's number, as far as its answer can tell it.
    fn told_apart(&self, number: u16) -> u16 {
        if matches!(self.method, ProbeMethod::Call { .. }) { number % CALL_PORTS } else { number }
    }
    /// The number of the probe that `quoted` may be.
    // spec: RFC5927 4
    fn quoted_number(&self, quoted: &Quoted) -> Option<u16> {
        self.number_of(quoted.source_port, quoted.destination_port)
            .filter(|_| self.protocol(quoted.destination) == quoted.protocol)
            .filter(|_| quoted.tcp_sequence.is_none_or(|sequence| sequence == self.sequence))
    }
    /// Whether `quoted` was sent just now.
    pub(crate) fn has_sent_lately(&self, quoted: &Quoted, now: Instant) -> bool {
        self.quoted_number(quoted).is_some_and(|number| {
            self.recent.has_lately(Endpoint { address: quoted.destination, port: number }, now)
        })
    }
    /// The number of the probe that went from port `own` to port `other`.
    fn number_of(&self, own: u16, other: u16) -> Option<u16> {
        match self.method {
            // What stands for ports in an echo request.
            ProbeMethod::Echo => (own == self.port).then_some(other),
            ProbeMethod::Datagram { port } => (own == self.port).then_some(other.wrapping_sub(port)),
            ProbeMethod::Call { port } => {
                let number = own.wrapping_sub(self.port);
                (other == port && number < CALL_PORTS).then_some(number)
            }
        }
    }
    /// Writes the transport's part of a probe; its length, 0 when it does not fit.
    fn write(&self, probe: &Probe, path: &Path, into: &mut [u8]) -> usize {
        let (source, destination, number) = (path.source, path.destination, probe.number);
        let data_bytes = |header_bytes: usize| {
            usize::from(probe.packet_bytes).saturating_sub(path.ip_header_bytes() + header_bytes)
        };
        match self.method {
            ProbeMethod::Echo => {
                let mut data = ZEROS;
                let data = data.get_mut(..data_bytes(icmpv4::LENGTH)).unwrap_or_default();
                if let Some((front, _)) = data.split_first_chunk_mut::<2>() {
                    *front = (!number).to_be_bytes();
                }
                let identifier = self.port;
                match (source, destination) {
                    (IpAddr::V6(source), IpAddr::V6(destination)) => {
                        let echo = Icmpv6Message::EchoRequest { identifier, sequence: number, data };
                        echo.emit(source, destination, into)
                    }
                    _ => Icmpv4Message::EchoRequest { identifier, sequence: number, data }.emit(into),
                }
            }
            ProbeMethod::Datagram { port } => {
                let data = ZEROS.get(..data_bytes(udp::LENGTH)).unwrap_or_default();
                let Some(place) = into.get_mut(..udp::LENGTH + data.len()) else { return 0 };
                place.fill(0);
                let header =
                    UdpHeader { source_port: self.port, destination_port: port.wrapping_add(number) };
                header.emit(source, destination, data.len(), Sum::of(data), place);
                udp::LENGTH + data.len()
            }
            ProbeMethod::Call { port } => {
                let segment = Segment {
                    source_port: self.port + number % CALL_PORTS,
                    destination_port: port,
                    sequence: self.sequence,
                    flags: Flags::SYN,
                    window: CALL_WINDOW,
                    payload: ZEROS.get(..data_bytes(inhost_wire::tcp::LENGTH)).unwrap_or_default(),
                    ..Segment::default()
                };
                segment.emit(source, destination, into)
            }
        }
    }
}

/// Calls on probe sockets: see [`crate::Stack::probe`].
#[derive(Debug)]
pub struct ProbeSockets<'a> {
    parts: &'a mut Parts,
}

impl<'a> ProbeSockets<'a> {
    pub(crate) fn new(parts: &'a mut Parts) -> ProbeSockets<'a> {
        ProbeSockets { parts }
    }
    /// A socket for probes of one method.
    pub fn open(self, method: ProbeMethod, now: Instant) -> Result<ProbeSocketId, BindError> {
        self.parts.tick(now);
        if !self.parts.has_room_for_datagram_socket() {
            return Err(BindError::TooManySockets);
        }
        for _ in 0..TRIES {
            let any = self.parts.random.private_u32() as u16;
            let port = match method {
                ProbeMethod::Echo => any,
                ProbeMethod::Datagram { .. } => self.parts.choose_probe_port().ok_or(BindError::NoPort)?,
                ProbeMethod::Call { .. } => FIRST_CALL_PORT + any % (2 * CALL_PORTS),
            };
            let sequence = Sequence(self.parts.random.private_u32());
            let (incoming, outgoing) = (VecDeque::new(), VecDeque::new());
            let recent = RecentlySent::new(QUEUED);
            let prober =
                Prober { method, port, sequence, opened: now, incoming, outgoing, recent, error: None };
            match self.parts.demux.bind(&mut self.parts.sockets, Socket::Probe(Box::new(prober))) {
                Ok(SocketId(key)) => {
                    self.parts.population.datagram_sockets += 1;
                    return Ok(ProbeSocketId::of(key));
                }
                Err(BindError::InUse) => {}
                Err(why) => return Err(why),
            }
        }
        Err(BindError::InUse)
    }
    /// Sends a probe. It leaves with the next [`Stack::transmit`], whole, as long as the link takes it: what is known
    /// of the path behind it does not count, and no router is to fragment it.
    pub fn send(self, socket: ProbeSocketId, probe: &Probe, now: Instant) -> Result<(), DatagramError> {
        self.parts.tick(now);
        let prober = self.parts.prober_mut(socket)?;
        if let Some(error) = prober.error.take() {
            return Err(error);
        }
        if prober.outgoing.len() >= QUEUED {
            return Err(DatagramError::WouldBlock);
        }
        if probe.hop_limit == 0 {
            return Err(SocketError::Invalid.into());
        }
        let path = self.parts.ip.route(probe.to, None, None, now)?;
        if probe.to.is_multicast() || self.parts.is_broadcast(&path, probe.to) {
            return Err(DatagramError::Broadcast);
        }
        // The longest header of the three methods.
        let room_bytes =
            usize::from(probe.packet_bytes).max(path.ip_header_bytes() + inhost_wire::tcp::LENGTH);
        let is_first = self.parts.prober_mut(socket)?.outgoing.is_empty();
        let Some(mut message) = self.parts.memory.take_to_send(is_first, room_bytes) else {
            self.parts.memory.wait(socket.into(), now);
            return Err(DatagramError::WouldBlock);
        };
        let prober = self.parts.prober_mut(socket)?;
        let written = prober.write(probe, &path, message.spare_mut());
        message.extend(written);
        let first = prober.outgoing.is_empty();
        let Probe { number, hop_limit, .. } = *probe;
        prober.outgoing.push_back(Outgoing { message, path, number, hop_limit });
        if first {
            self.parts.schedule.make_ready(path.link, socket.place());
        }
        Ok(())
    }
    /// Takes the next answer; or the error that kept a probe from leaving.
    pub fn receive(self, socket: ProbeSocketId, now: Instant) -> Result<ProbeAnswer, DatagramError> {
        self.parts.tick(now);
        let prober = self.parts.prober_mut(socket)?;
        if let Some(error) = prober.error.take() {
            return Err(error);
        }
        prober.incoming.pop_front().ok_or(DatagramError::WouldBlock)
    }
}

impl Parts {
    fn choose_probe_port(&mut self) -> Option<u16> {
        let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let Parts { demux, config, sockets, random, .. } = self;
        demux.choose_udp_port(sockets, config, any, random)
    }

    /// Gives an answer to its socket; what there is no room for is lost, as on the way.
    fn probe_answered(&mut self, key: ProbeSocketId, answer: ProbeAnswer) {
        if let Some(prober) = self.sockets.probe_mut(key)
            && prober.incoming.len() < QUEUED
        {
            prober.incoming.push_back(answer);
            self.tell(key.into());
        }
    }
    /// Takes the echo of a probe.
    pub(crate) fn probe_echo_input(&mut self, key: ProbeSocketId, from: IpAddr, number: u16) {
        self.probe_answered(key, ProbeAnswer { number, to: from, from, news: ProbeNews::Answered });
    }
    /// Takes a datagram in answer to a probe; false when nobody has sent one there.
    pub(crate) fn probe_udp_input(&mut self, link: LinkId, local: Endpoint, remote: Endpoint) -> bool {
        let found = self.demux.find_binding(&self.sockets, &self.ip, protocol::UDP, link, local);
        let Some(found) = found else { return false };
        let Some(AnySocketId::Probe(key)) = self.sockets.typed(found) else { return false };
        let Some(prober) = self.sockets.probe(key) else { return false };
        let Some(number) = prober.number_of(local.port, remote.port) else { return false };
        let (to, from) = (remote.address, remote.address);
        self.probe_answered(key, ProbeAnswer { number, to, from, news: ProbeNews::Answered });
        true
    }
    /// Takes the answer to a call that was a probe.
    pub(crate) fn probe_tcp_input(
        &mut self,
        key: ProbeSocketId,
        header: &Header,
        local: Endpoint,
        remote: Endpoint,
    ) {
        let Some(prober) = self.sockets.probe(key) else { return };
        // The SYN is one number, and what it bore may count as well.
        let acknowledged = header.acknowledgment.since(prober.sequence);
        let answers = header.flags.ack() && (1..=1 + u32::from(u16::MAX)).contains(&acknowledged);
        let number = prober.number_of(local.port, remote.port).filter(|_| answers);
        let news = match header.flags {
            flags if flags.rst() => Some(ProbeNews::Refused),
            flags if flags.contains(Flags::SYN) => Some(ProbeNews::Answered),
            _ => None,
        };
        if let (Some(number), Some(news)) = (number, news) {
            self.probe_answered(key, ProbeAnswer { number, to: remote.address, from: remote.address, news });
        }
    }
    /// Takes an error about a probe; false when it is about none.
    pub(crate) fn probe_error(&mut self, error: &TransportError, now: Instant) -> bool {
        let quoted = &error.quoted;
        let local = Endpoint { address: quoted.source, port: quoted.source_port };
        let Parts { demux, sockets, ip, .. } = self;
        let found = match quoted.protocol {
            protocol::ICMPV4 | protocol::ICMPV6 => demux.find_echo(sockets, quoted.source_port),
            number => demux.find_binding(sockets, ip, number, error.link, local),
        };
        let Some(found) = found else { return false };
        let Some(AnySocketId::Probe(key)) = sockets.typed(found) else { return false };
        let Some(prober) = self.sockets.probe(key) else { return false };
        let number = prober
            .quoted_number(quoted)
            .filter(|&number| prober.recent.has(Endpoint { address: quoted.destination, port: number }, now));
        if let Some(number) = number {
            let news = ProbeNews::Error { kind: error.kind, mtu_bytes: error.mtu_bytes };
            self.probe_answered(
                key,
                ProbeAnswer { number, to: quoted.destination, from: error.reporter, news },
            );
        }
        number.is_some()
    }
    /// Sends some of a socket's probes.
    pub(crate) fn probe_turn(
        &mut self,
        link: LinkId,
        key: ProbeSocketId,
        now: Instant,
        budget: usize,
        device: &mut Counting<'_>,
        sink: &mut dyn Sink,
    ) -> Turn {
        for _ in 0..budget {
            let Some(prober) = self.sockets.probe_mut(key) else { return Turn::Done };
            let Some(next) = prober.outgoing.front() else { return Turn::Done };
            if next.path.link != link {
                self.schedule.make_ready(next.path.link, key.place());
                return Turn::Done;
            }
            let mut how = HeaderHow::new(prober.protocol(next.path.destination));
            how.hop_limit = Some(next.hop_limit);
            (how.dont_fragment, how.beyond_path_mtu) = (true, true);
            let mut environment = ip_environment!(self, now, sink);
            let message = Slices::one(next.message.bytes());
            let sent = self.ip.send_datagram(&next.path, &how, message, &mut environment, device);
            let failure = match sent {
                Ok(()) => None,
                Err(SendDatagramError::Full) => return Turn::Full,
                Err(SendDatagramError::Pending) => return Turn::Pending,
                Err(why) => Some(DatagramError::from(why)),
            };
            let full = prober.outgoing.len() >= QUEUED;
            let Some(probe) = prober.outgoing.pop_front() else { return Turn::Done };
            let failed = failure.is_some();
            if !failed {
                let probed =
                    Endpoint { address: probe.path.destination, port: prober.told_apart(probe.number) };
                prober.recent.note(probed, 0, now);
            }
            prober.error = failure.or(prober.error);
            self.memory.pool_mut().give(probe.message);
            if full || failed {
                self.tell(key.into());
            }
        }
        match self.sockets.probe(key) {
            Some(prober) if !prober.outgoing.is_empty() => Turn::More,
            _ => Turn::Done,
        }
    }
    fn prober_mut(&mut self, socket: ProbeSocketId) -> Result<&mut Prober, SocketError> {
        self.sockets.probe_mut(socket).ok_or(SocketError::NoSocket)
    }
}
