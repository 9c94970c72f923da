//! A probe socket: packets sent to expire on their way, as traceroute needs, and the ICMP errors that they cause. Its method, its
//! queues, how its probes are written and how quoted ones are recognised.

use crate::queues::{Datagrams, Departure, Outgoing};
use crate::{DatagramError, SocketError};
use alloc::collections::VecDeque;
use inhost_base::{Endpoint, Instant, IpAddr, Sequence};
use inhost_buf::{Device, Slices};
use inhost_event::{Drop, Readiness};
use inhost_ip::{ErrorKind, HeaderHow, Ip, IpEnvironment, Path, Paths, SendDatagramError, TransportError};
use inhost_wire::checksum::Sum;
use inhost_wire::icmpv4::{self, Icmpv4Message};
use inhost_wire::icmpv6::Icmpv6Message;
use inhost_wire::protocol;
use inhost_wire::quoted::Quoted;
use inhost_wire::tcp::{self, Flags, Segment, TcpHeader};
use inhost_wire::udp::{self, UdpHeader};

/// Probes, and answers, that a socket may hold.
const QUEUED: usize = 256;
/// Ports that the calls of one socket come from, each in turn: every call is a connection of its own to who answers.
pub const CALL_PORTS: u16 = 8192;
/// The payload pattern of a probe.
static ZEROS: [u8; u16::MAX as usize] = [0; u16::MAX as usize];
/// The window that a call offers.
const CALL_WINDOW: u16 = 5840;

/// The protocol of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
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
    /// The key by which its answer is recognised.
    pub number: u16,
    /// Hops that it may take.
    pub hop_limit: u8,
    /// Its length with its IP header; made longer where its headers need more.
    pub packet_bytes: u16,
}

/// An answer to a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct ProbeAnswer {
    /// The probe's number.
    pub number: u16,
    /// Whom the probe was for.
    pub to: IpAddr,
    /// Source of the answer.
    pub from: IpAddr,
    /// Kind of answer.
    pub news: ProbeNews,
}

/// The result of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub enum ProbeNews {
    /// It arrived, and the destination answered: an echo reply, a datagram, or a SYN-ACK.
    Answered,
    /// It arrived, and the destination refused the connection.
    Refused,
    /// An ICMP error from a router or the destination.
    Error {
        /// Why.
        kind: ErrorKind,
        /// The largest packet that would have gone on, where `kind` is [`ErrorKind::PacketTooBig`].
        mtu_bytes: Option<u16>,
    },
}

/// A probe socket.
#[derive(Debug)]
#[cfg_attr(feature = "freeze", derive(serde::Serialize, serde::Deserialize))]
pub struct ProbeSocket {
    method: ProbeMethod,
    /// The identifier or source port of all probes, or the first port that calls come from.
    port: u16,
    /// Initial sequence number of SYN probes, unpredictable.
    sequence: Sequence,
    answers: VecDeque<ProbeAnswer>,
    /// Its probes, by their numbers as far as answers can tell these.
    datagrams: Datagrams,
}

impl ProbeSocket {
    /// A socket whose probes have the identifier or source port `port`, and as SYNs begin at `sequence`.
    pub fn new(method: ProbeMethod, port: u16, sequence: Sequence, now: Instant) -> ProbeSocket {
        let datagrams = Datagrams::new(QUEUED, QUEUED, now);
        ProbeSocket { method, port, sequence, answers: VecDeque::new(), datagrams }
    }
    /// The identifier or source port of all probes, or the first port that calls come from.
    pub fn port(&self) -> u16 {
        self.port
    }
    /// Its queues.
    pub fn datagrams(&self) -> &Datagrams {
        &self.datagrams
    }
    /// Its queues, to change.
    pub fn datagrams_mut(&mut self) -> &mut Datagrams {
        &mut self.datagrams
    }
    /// How a probe leaves.
    ///
    /// # Errors
    /// It takes no hop, there is no room or no route, it would go to many, or an earlier error was not reported yet.
    pub fn prepare(
        &mut self,
        probe: &Probe,
        paths: &mut Paths,
        now: Instant,
    ) -> Result<Outgoing, DatagramError> {
        self.datagrams.begin_request()?;
        if probe.hop_limit == 0 {
            return Err(SocketError::Invalid.into());
        }
        let path = paths.route(probe.to, None, None, now)?;
        if probe.to.is_multicast() || paths.is_broadcast(path.link, probe.to) {
            return Err(DatagramError::Broadcast);
        }
        // The number, as far as its answer can tell it.
        let number = match self.method {
            ProbeMethod::Call { .. } => probe.number % CALL_PORTS,
            ProbeMethod::Echo | ProbeMethod::Datagram { .. } => probe.number,
        };
        Ok(Outgoing { hop_limit: Some(probe.hop_limit), ..Outgoing::request(path, number) })
    }
    /// Sends the probe that is first in the queue.
    ///
    /// # Errors
    /// It cannot leave now, or at all.
    pub fn send_first(
        &self,
        ip: &mut Ip,
        env: &mut IpEnvironment<'_>,
        device: &mut dyn Device,
    ) -> Result<Departure, SendDatagramError> {
        let Some((message, next)) = self.datagrams.first() else { return Ok(Departure::NOTHING) };
        let mut how = HeaderHow::new(self.protocol(next.path.destination));
        how.hop_limit = next.hop_limit;
        (how.dont_fragment, how.beyond_path_mtu) = (true, true);
        ip.send_datagram(&next.path, &how, Slices::one(message.bytes()), env, device)?;
        Ok(Departure::ONE)
    }
    /// Takes the answer to probe `number` from `from`, to whom it was sent. Whether there was room for it.
    pub fn answered(&mut self, number: u16, from: IpAddr) -> bool {
        self.keep(ProbeAnswer { number, to: from, from, news: ProbeNews::Answered })
    }
    /// Takes a datagram from `remote` to `local` in answer to a probe. Whether there was room for it; `None` if no probe was
    /// sent there.
    pub fn take_datagram(&mut self, local: Endpoint, remote: Endpoint) -> Option<bool> {
        let number = self.number_of(local.port, remote.port)?;
        Some(self.answered(number, remote.address))
    }
    /// Takes a segment from `remote` to `local`. Whether there is news: it answers a call that was a probe.
    pub fn take_segment(&mut self, header: &TcpHeader, local: Endpoint, remote: Endpoint) -> bool {
        // The SYN takes one sequence number; its data may be acknowledged, too.
        let acknowledged = header.acknowledgment.since(self.sequence);
        let answers = header.flags.ack() && (1..=1 + u32::from(u16::MAX)).contains(&acknowledged);
        let news = match header.flags {
            flags if flags.rst() => ProbeNews::Refused,
            flags if flags.contains(Flags::SYN) => ProbeNews::Answered,
            _ => return false,
        };
        let number = self.number_of(local.port, remote.port).filter(|_| answers);
        let (to, from) = (remote.address, remote.address);
        number.is_some_and(|number| self.keep(ProbeAnswer { number, to, from, news }))
    }
    /// Takes an ICMP error about a probe. Whether there was room for it.
    ///
    /// # Errors
    /// [`Drop::NoSocket`]: no such probe was sent.
    pub fn take_error(&mut self, error: &TransportError, now: Instant) -> Result<bool, Drop> {
        let quoted = &error.quoted;
        let was_sent = |number: &u16| {
            self.datagrams.recent().has(Endpoint { address: quoted.destination, port: *number }, now)
        };
        let number = self.quoted_number(quoted).filter(was_sent).ok_or(Drop::NoSocket)?;
        let news = ProbeNews::Error { kind: error.kind, mtu_bytes: error.mtu_bytes };
        Ok(self.keep(ProbeAnswer { number, to: quoted.destination, from: error.reporter, news }))
    }
    fn keep(&mut self, answer: ProbeAnswer) -> bool {
        let has_room = self.answers.len() < QUEUED;
        if has_room {
            self.answers.push_back(answer);
        }
        has_room
    }
    /// Takes the next answer for the application.
    ///
    /// # Errors
    /// [`DatagramError::WouldBlock`]: there is none; or an earlier error that was not reported yet.
    pub fn receive(&mut self) -> Result<ProbeAnswer, DatagramError> {
        self.datagrams.take_error()?;
        self.answers.pop_front().ok_or(DatagramError::WouldBlock)
    }
    /// Which calls would not block.
    pub fn readiness(&self) -> Readiness {
        self.datagrams.readiness(!self.answers.is_empty(), self.datagrams.takes_request())
    }
    /// Answers that wait for the application.
    pub fn answers(&self) -> usize {
        self.answers.len()
    }
    /// Its method.
    pub fn method(&self) -> ProbeMethod {
        self.method
    }
    fn protocol(&self, to: IpAddr) -> u8 {
        match self.method {
            ProbeMethod::Echo if to.is_ipv4() => protocol::ICMPV4,
            ProbeMethod::Echo => protocol::ICMPV6,
            ProbeMethod::Datagram { .. } => protocol::UDP,
            ProbeMethod::Call { .. } => protocol::TCP,
        }
    }
    /// The number of the probe that `quoted` may be.
    // spec: RFC5927 4
    fn quoted_number(&self, quoted: &Quoted) -> Option<u16> {
        self.number_of(quoted.source_port, quoted.destination_port)
            .filter(|_| self.protocol(quoted.destination) == quoted.protocol)
            .filter(|_| quoted.tcp_sequence.is_none_or(|sequence| sequence == self.sequence))
    }
    /// Whether `quoted` was sent just now.
    pub fn has_sent_recently(&self, quoted: &Quoted, now: Instant) -> bool {
        self.quoted_number(quoted).is_some_and(|number| {
            self.datagrams.recent().has_recent(Endpoint { address: quoted.destination, port: number }, now)
        })
    }
    /// The number of the probe that went from port `own` to port `other`.
    fn number_of(&self, own: u16, other: u16) -> Option<u16> {
        match self.method {
            // The identifier of an echo request, in place of ports.
            ProbeMethod::Echo => (own == self.port).then_some(other),
            ProbeMethod::Datagram { port } => (own == self.port).then_some(other.wrapping_sub(port)),
            ProbeMethod::Call { port } => {
                let number = own.wrapping_sub(self.port);
                (other == port && number < CALL_PORTS).then_some(number)
            }
        }
    }
    /// Bytes that a probe over `path` takes at the most, whatever its method.
    pub fn room_bytes(probe: &Probe, path: &Path) -> usize {
        usize::from(probe.packet_bytes).max(path.ip_header_bytes() + tcp::LENGTH)
    }
    /// Writes the transport's part of a probe; its length, 0 when it does not fit.
    pub fn write(&self, probe: &Probe, path: &Path, into: &mut [u8]) -> usize {
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
                    payload: ZEROS.get(..data_bytes(tcp::LENGTH)).unwrap_or_default(),
                    ..Segment::default()
                };
                segment.emit(source, destination, into)
            }
        }
    }
}
