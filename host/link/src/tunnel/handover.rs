//! Handing a TUN or TAP device over to another process.
//!
//! The process that gives the device away keeps what it has begun: its connections and datagram sockets go on behind a
//! channel, on which frames have the form that they have on the device. The process that takes the device over sends
//! what is kept through the channel, and writes what comes out of it to the device. When the channel ends, whoever is
//! left has the device to itself.

use crate::FrameFormat;
use inhost_base::{Duration, Endpoint, Instant, IpAddr};
use inhost_wire::ethernet::{EtherType, EthernetView};
use inhost_wire::ipv4::Ipv4View;
use inhost_wire::ipv6::Ipv6View;
use inhost_wire::protocol;
use inhost_wire::quoted::Quoted;
use inhost_wire::tcp::{Flags, TcpView};
use inhost_wire::udp::UdpView;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// For so long a segment of a connection that neither process is known to have goes to the one that gave the device
/// away: its handshake may have been under way there.
const HANDSHAKES_LAST: Duration = Duration::from_secs(10);
/// Connections of its own that the new process notes in that time. At the limit the time is over.
const OWN_LIMIT: usize = 65_536;
/// Bytes that wait for the channel; what comes then is lost, as in a router.
const WAITING_LIMIT_BYTES: usize = 4 << 20;
/// Frames that are moved from the channel to the device at a time.
const FRAMES_A_LOOK: usize = 64;
/// Wait until the channel, which was full, is tried again.
pub(super) const TRY_AGAIN_AFTER: Duration = Duration::from_millis(1);

/// A connection by its ends.
pub type KeptFlow = (Endpoint, Endpoint);

/// What the process that gave a device away still has. Clones are the same.
#[derive(Clone, Default, Debug)]
pub struct Kept(Arc<Mutex<Names>>);

#[derive(Default, Debug)]
struct Names {
    flows: HashMap<KeptFlow, Progress>,
    udp_ports: HashSet<u16>,
}

/// How far a kept connection is, as its segments show on their way. Only what that process itself sent is believed, and
/// what fits it.
#[derive(Clone, Copy, Default, Debug)]
struct Progress {
    /// What that process acknowledged last.
    acknowledged: Option<u32>,
    sent_fin: bool,
    received_fin: bool,
    was_reset: bool,
}

impl Progress {
    /// Nothing but its last state is left, so that its peer may begin another one.
    fn is_over(self) -> bool {
        self.was_reset || (self.sent_fin && self.received_fin)
    }
    fn sent(&mut self, segment: &Segment) {
        if segment.flags.ack() {
            self.acknowledged = Some(segment.acknowledgment);
        }
        self.sent_fin |= segment.flags.fin();
        self.was_reset |= segment.flags.rst();
    }
    fn received(&mut self, segment: &Segment) {
        let Some(expected) = self.acknowledged else { return };
        self.was_reset |= segment.flags.rst() && segment.sequence == expected;
        self.received_fin |= segment.flags.fin() && segment.sequence.wrapping_sub(expected) < 1 << 30;
    }
}

impl Kept {
    /// Connections, each by its local and its remote end, and local ports of UDP.
    pub fn new(flows: impl IntoIterator<Item = KeptFlow>, udp_ports: impl IntoIterator<Item = u16>) -> Kept {
        let flows = flows.into_iter().map(|flow| (flow, Progress::default())).collect();
        let names = Names { flows, udp_ports: udp_ports.into_iter().collect() };
        Kept(Arc::new(Mutex::new(names)))
    }
    /// Nothing but the last state of `flow` is left (TIME-WAIT): a new connection from the same port is this process's.
    pub fn note_over(&self, flow: &KeptFlow) {
        self.names(|names| {
            if let Some(progress) = names.flows.get_mut(flow) {
                progress.was_reset = true;
            }
        });
    }
    /// Takes a UDP port over: a service of this process is bound to it.
    pub fn take_udp_port(&self, port: u16) {
        self.names(|names| names.udp_ports.remove(&port));
    }
    fn names<R>(&self, look: impl FnOnce(&mut Names) -> R) -> R {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whom a frame is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Whose {
    /// The process that has the device.
    Ours,
    /// The process that gave it away.
    Theirs,
    /// Neighbour discovery, and fragments, whose ports only the first one has.
    Both,
}

/// The channel as the process sees it that has the device.
#[derive(Debug)]
pub(super) struct Diversion {
    channel: OwnedFd,
    kept: Kept,
    /// Connections that this process began or was called by, while it matters.
    own: HashSet<KeptFlow>,
    /// When it no longer does; none before the time is known.
    own_until: Option<Instant>,
    /// Frames that wait until the channel takes more.
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    now: Instant,
}

/// Both ends of a channel.
pub(super) fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// A descriptor that is readable when one of two is.
pub(super) fn either(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let either = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (number, descriptor) in [one, other].into_iter().enumerate() {
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&either, descriptor, data, epoll::EventFlags::IN)?;
    }
    Ok(either)
}

impl Diversion {
    pub(super) fn new(channel: OwnedFd, kept: Kept) -> Diversion {
        Diversion {
            channel,
            kept,
            own: HashSet::new(),
            own_until: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            now: Instant::ZERO,
        }
    }
    pub(super) fn advance(&mut self, now: Instant) {
        self.now = now;
        let until = *self.own_until.get_or_insert(now + HANDSHAKES_LAST);
        if now >= until && self.own.capacity() > 0 {
            self.own = HashSet::new();
        }
    }
    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then(|| self.now + TRY_AGAIN_AFTER)
    }
    fn own_matters(&self) -> bool {
        self.own_until.is_none_or(|until| self.now < until) && self.own.len() < OWN_LIMIT
    }
    /// Whom a frame from the device is for.
    pub(super) fn whose(&mut self, frame: &[u8], format: FrameFormat) -> Whose {
        let Some(packet) = network_packet(frame, format) else { return Whose::Both };
        self.whose_packet(packet).unwrap_or(Whose::Ours)
    }
    fn whose_packet(&mut self, packet: &[u8]) -> Option<Whose> {
        let upper = Upper::of(packet)?;
        if upper.is_fragment {
            return Some(Whose::Both);
        }
        match upper.protocol {
            protocol::TCP => {
                let segment = Segment::of(upper.payload)?;
                let flow =
                    (Endpoint::new(upper.destination, segment.to), Endpoint::new(upper.source, segment.from));
                Some(self.whose_flow(flow, &segment))
            }
            protocol::UDP => Some(self.whose_udp(UdpView::new(upper.payload).ok()?.destination_port())),
            protocol::ICMPV4 | protocol::ICMPV6 => {
                let is_v4 = upper.protocol == protocol::ICMPV4;
                let quoted = match (is_v4, *upper.payload.first()?) {
                    (true, 3 | 4 | 5 | 11 | 12) => Quoted::of_ipv4(upper.payload.get(8..)?)?,
                    (false, 1..=4) => Quoted::of_ipv6(upper.payload.get(8..)?)?,
                    // Neighbours, routers, redirects.
                    (false, 133..=137) => return Some(Whose::Both),
                    _ => return Some(Whose::Ours),
                };
                Some(self.whose_quoted(&quoted))
            }
            _ => Some(Whose::Ours),
        }
    }
    fn whose_flow(&mut self, flow: KeptFlow, segment: &Segment) -> Whose {
        let is_syn = segment.is_call();
        let is_kept = self.kept.names(|names| {
            let Some(progress) = names.flows.get_mut(&flow) else { return false };
            let begins_anew = is_syn && progress.is_over();
            match begins_anew {
                true => drop(names.flows.remove(&flow)),
                false => progress.received(segment),
            }
            !begins_anew
        });
        if is_kept {
            return Whose::Theirs;
        }
        if !self.own_matters() {
            return Whose::Ours;
        }
        if is_syn {
            self.own.insert(flow);
        }
        if self.own.contains(&flow) { Whose::Ours } else { Whose::Theirs }
    }
    fn whose_udp(&self, port: u16) -> Whose {
        if self.kept.names(|names| names.udp_ports.contains(&port)) { Whose::Theirs } else { Whose::Ours }
    }
    /// Of an error about a packet that this address sent.
    fn whose_quoted(&self, quoted: &Quoted) -> Whose {
        match quoted.protocol {
            protocol::TCP => {
                let local = Endpoint::new(quoted.source, quoted.source_port);
                let flow = (local, Endpoint::new(quoted.destination, quoted.destination_port));
                let is_theirs = self.kept.names(|names| names.flows.contains_key(&flow));
                if is_theirs { Whose::Theirs } else { Whose::Ours }
            }
            protocol::UDP => self.whose_udp(quoted.source_port),
            _ => Whose::Ours,
        }
    }
    /// Notes a connection that this process opens.
    pub(super) fn sends(&mut self, header: &[u8], format: FrameFormat) {
        if !self.own_matters() {
            return;
        }
        let flow = || {
            let upper = Upper::of(network_packet(header, format)?)?;
            let segment = Segment::of(upper.payload).filter(|_| upper.protocol == protocol::TCP)?;
            segment.is_call().then(|| segment.flow_of_sender(&upper))
        };
        self.own.extend(flow());
    }
    /// Notes what the other process sends.
    fn relays(&self, packet: &[u8]) {
        let Some(upper) = Upper::of(packet).filter(|upper| upper.protocol == protocol::TCP) else { return };
        let Some(segment) = Segment::of(upper.payload).filter(|_| !upper.is_fragment) else { return };
        self.kept.names(|names| {
            if let Some(progress) = names.flows.get_mut(&segment.flow_of_sender(&upper)) {
                progress.sent(&segment);
            }
        });
    }
    /// Gives a frame, as it was read from the device, to the other process.
    pub(super) fn divert(&mut self, frame: &[u8]) {
        self.flush();
        if self.waiting.is_empty() && write(&self.channel, frame) {
            return;
        }
        if self.waiting_bytes + frame.len() <= WAITING_LIMIT_BYTES {
            self.waiting_bytes += frame.len();
            self.waiting.push_back(frame.to_vec());
        }
    }
    /// Gives the channel what waits for it.
    pub(super) fn flush(&mut self) {
        while let Some(frame) = self.waiting.front() {
            if !write(&self.channel, frame) {
                return;
            }
            self.waiting_bytes -= frame.len();
            self.waiting.pop_front();
        }
    }
    /// Writes what the other process sends to the device, as far as it takes it; false when that process has ended.
    pub(super) fn relay(
        &mut self,
        device: BorrowedFd<'_>,
        scratch: &mut [u8],
        (front, format): (usize, FrameFormat),
    ) -> bool {
        self.flush();
        for _ in 0..FRAMES_A_LOOK {
            match rustix::io::read(&self.channel, &mut *scratch) {
                Ok(0) | Err(Errno::CONNRESET | Errno::PIPE) => return false,
                Ok(length) => {
                    let frame = scratch.get(..length).unwrap_or(&[]);
                    if let Some(packet) = frame.get(front..).and_then(|frame| network_packet(frame, format)) {
                        self.relays(packet);
                    }
                    // What the device does not take is lost, as on any wire.
                    let _ = rustix::io::write(device, frame);
                }
                Err(_) => return true,
            }
        }
        true
    }
}

/// Whether the channel took the frame, or can never take it.
fn write(channel: &OwnedFd, frame: &[u8]) -> bool {
    !matches!(rustix::io::write(channel, frame), Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR))
}

/// The packet of a frame; none of one that bears neither IPv4 nor IPv6.
fn network_packet(frame: &[u8], format: FrameFormat) -> Option<&[u8]> {
    match format {
        FrameFormat::Ip => Some(frame),
        FrameFormat::Ethernet(_) => {
            let view = EthernetView::new(frame).ok()?;
            matches!(view.ethertype(), EtherType::IPV4 | EtherType::IPV6).then(|| view.payload())
        }
    }
}

/// A packet as far as its ports.
struct Upper<'a> {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    payload: &'a [u8],
    is_fragment: bool,
}

impl<'a> Upper<'a> {
    fn of(packet: &'a [u8]) -> Option<Upper<'a>> {
        Some(match packet.first()? >> 4 {
            4 => {
                let view = Ipv4View::of_front(packet).ok()?;
                Upper {
                    source: IpAddr::V4(view.source()),
                    destination: IpAddr::V4(view.destination()),
                    protocol: view.protocol(),
                    payload: view.payload(),
                    is_fragment: view.is_fragment(),
                }
            }
            _ => {
                let view = Ipv6View::of_front(packet).ok()?;
                Upper {
                    source: IpAddr::V6(view.source()),
                    destination: IpAddr::V6(view.destination()),
                    protocol: view.next_header(),
                    payload: view.payload(),
                    is_fragment: view.next_header() == protocol::FRAGMENT,
                }
            }
        })
    }
}

/// What is looked at of a segment.
struct Segment {
    from: u16,
    to: u16,
    sequence: u32,
    acknowledgment: u32,
    flags: Flags,
}

impl Segment {
    fn of(segment: &[u8]) -> Option<Segment> {
        let view = TcpView::new(segment).ok()?;
        Some(Segment {
            from: view.source_port(),
            to: view.destination_port(),
            sequence: view.sequence().0,
            acknowledgment: view.acknowledgment().0,
            flags: view.flags(),
        })
    }
    /// Whether it begins a connection.
    fn is_call(&self) -> bool {
        self.flags.syn() && !self.flags.ack()
    }
    /// The connection, as it is called where the segment was sent.
    fn flow_of_sender(&self, upper: &Upper<'_>) -> KeptFlow {
        (Endpoint::new(upper.source, self.from), Endpoint::new(upper.destination, self.to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "10.9.0.2";

    fn end(port: u16) -> Endpoint {
        Endpoint::new(OURS.parse::<IpAddr>().unwrap(), port)
    }
    fn peer(port: u16) -> Endpoint {
        Endpoint::new("10.9.0.1".parse::<IpAddr>().unwrap(), port)
    }
    /// A packet from the peer to us.
    fn packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2];
        packet.extend(payload);
        let length = packet.len() as u16;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet
    }
    fn segment(from: u16, to: u16, flags: u8) -> Vec<u8> {
        let mut segment = [from.to_be_bytes(), to.to_be_bytes()].concat();
        segment.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        segment
    }
    fn diversion() -> (Diversion, OwnedFd) {
        let (here, there) = channel().unwrap();
        let kept = Kept::new([(end(7), peer(4000))], [5000, 69]);
        kept.take_udp_port(69);
        let mut diversion = Diversion::new(here, kept);
        diversion.advance(Instant::ZERO + Duration::from_secs(1));
        (diversion, there)
    }

    #[test]
    fn what_was_begun_goes_to_who_began_it() {
        let (ack, syn) = (0x10, 0x02);
        let (mut diversion, _there) = diversion();
        let mut whose = |packet: &[u8]| diversion.whose(packet, FrameFormat::Ip);
        assert_eq!(whose(&packet(protocol::TCP, &segment(4000, 7, ack))), Whose::Theirs);
        // A handshake may have been under way there; a new one is ours, and so is all that follows it.
        assert_eq!(whose(&packet(protocol::TCP, &segment(4001, 7, ack))), Whose::Theirs);
        assert_eq!(whose(&packet(protocol::TCP, &segment(4002, 7, syn))), Whose::Ours);
        assert_eq!(whose(&packet(protocol::TCP, &segment(4002, 7, ack))), Whose::Ours);
        let datagram = |port: u16| [&[0, 53][..], &port.to_be_bytes(), &[0, 8, 0, 0]].concat();
        assert_eq!(whose(&packet(protocol::UDP, &datagram(5000))), Whose::Theirs);
        assert_eq!(whose(&packet(protocol::UDP, &datagram(69))), Whose::Ours);
        let mut fragment = packet(protocol::UDP, &datagram(69));
        fragment[6] = 0x20;
        assert_eq!(whose(&fragment), Whose::Both);
        assert_eq!(whose(&[]), Whose::Ours);
    }

    #[test]
    fn a_call_from_the_port_of_a_connection_that_is_over_is_ours() {
        let (ack, syn, fin, rst) = (0x10, 0x02, 0x11, 0x14);
        let numbered = |flags, sequence: u32| {
            let mut segment = segment(4000, 7, flags);
            segment[4..8].copy_from_slice(&sequence.to_be_bytes());
            packet(protocol::TCP, &segment)
        };
        let sent = |flags, acknowledgment: u32| {
            let mut segment = segment(7, 4000, flags);
            segment[8..12].copy_from_slice(&acknowledgment.to_be_bytes());
            let mut packet = packet(protocol::TCP, &segment);
            packet[12..20].copy_from_slice(&[10, 9, 0, 2, 10, 9, 0, 1]);
            packet
        };
        let call = packet(protocol::TCP, &segment(4000, 7, syn));
        let (mut diversion, _there) = diversion();
        let whose = |diversion: &mut Diversion, packet: &[u8]| diversion.whose(packet, FrameFormat::Ip);
        // Of one that lives, a SYN is that process's to judge (RFC 5961), and nobody ends it by a guess.
        diversion.relays(&sent(ack, 1000));
        assert_eq!(whose(&mut diversion, &numbered(rst, 999)), Whose::Theirs);
        assert_eq!(whose(&mut diversion, &numbered(fin, 0)), Whose::Theirs);
        diversion.relays(&sent(fin, 1000));
        assert_eq!(whose(&mut diversion, &call), Whose::Theirs);
        // The peer's end comes, and its last acknowledgment may be asked for again.
        assert_eq!(whose(&mut diversion, &numbered(fin, 1000)), Whose::Theirs);
        assert_eq!(whose(&mut diversion, &numbered(fin, 1000)), Whose::Theirs);
        assert_eq!(whose(&mut diversion, &call), Whose::Ours);
        assert_eq!(whose(&mut diversion, &numbered(ack, 1)), Whose::Ours);
        // So it is of one that was in its last state when the device changed hands.
        let (mut diversion, _there) = self::diversion();
        diversion.kept.note_over(&(end(7), peer(4000)));
        assert_eq!(whose(&mut diversion, &numbered(ack, 1)), Whose::Theirs);
        assert_eq!(whose(&mut diversion, &call), Whose::Ours);
    }

    #[test]
    fn errors_go_to_whose_packet_they_quote() {
        let (mut diversion, _there) = diversion();
        let error = |from: u16, to: u16| {
            let mut quoted = packet(protocol::TCP, &segment(from, to, 0x10));
            quoted[12..20].copy_from_slice(&[10, 9, 0, 2, 10, 9, 0, 1]);
            packet(protocol::ICMPV4, &[&[3, 4, 0, 0, 0, 0, 5, 0][..], &quoted].concat())
        };
        assert_eq!(diversion.whose(&error(7, 4000), FrameFormat::Ip), Whose::Theirs);
        assert_eq!(diversion.whose(&error(7, 4001), FrameFormat::Ip), Whose::Ours);
        let echo = packet(protocol::ICMPV4, &[8, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(diversion.whose(&echo, FrameFormat::Ip), Whose::Ours);
    }

    #[test]
    fn the_time_of_handshakes_ends() {
        let (mut diversion, _there) = diversion();
        let stray = packet(protocol::TCP, &segment(4001, 7, 0x10));
        assert_eq!(diversion.whose(&stray, FrameFormat::Ip), Whose::Theirs);
        diversion.advance(Instant::ZERO + Duration::from_secs(12));
        assert_eq!(diversion.whose(&stray, FrameFormat::Ip), Whose::Ours);
        assert_eq!(diversion.own.capacity(), 0);
    }

    #[test]
    fn a_call_of_our_own_is_ours() {
        let (mut diversion, _there) = diversion();
        let mut call = packet(protocol::TCP, &segment(40_000, 80, 0x02));
        call[12..20].copy_from_slice(&[10, 9, 0, 2, 10, 9, 0, 1]);
        diversion.sends(&call, FrameFormat::Ip);
        let answer = packet(protocol::TCP, &segment(80, 40_000, 0x12));
        assert_eq!(diversion.whose(&answer, FrameFormat::Ip), Whose::Ours);
    }

    #[test]
    fn what_waits_for_the_channel_is_bounded_and_keeps_its_order() {
        let (mut diversion, there) = diversion();
        let frame = |number: u32| [&number.to_be_bytes()[..], &[0; 60_000]].concat();
        for number in 0..1000 {
            diversion.divert(&frame(number));
        }
        assert!(diversion.waiting_bytes <= WAITING_LIMIT_BYTES);
        assert!(diversion.deadline().is_some());
        let mut place = vec![0; 65_536];
        let mut next = 0;
        while !diversion.waiting.is_empty() {
            while let Ok(length @ 1..) = rustix::io::read(&there, &mut place) {
                assert_eq!((length, &place[..4]), (60_004, &u32::to_be_bytes(next)[..]));
                next += 1;
            }
            diversion.flush();
        }
        assert_eq!((diversion.waiting_bytes, diversion.deadline()), (0, None));
        assert!(next > 60);
    }
}
