//! A host on explicit time, and the frames that are frames to it.
#![allow(dead_code)] // Each test file uses its part.

use inhost_base::{Duration, HardwareAddress, Instant, IpAddr, Ipv4Addr, Ipv6Addr, LinkId, Random};
use inhost_buf::{Device, Frame, Full, Packet, Pool};
use inhost_event::{Drop, Mask, Recorded};
use inhost_ip::*;
use inhost_wire::arp::{ArpOperation, ArpPacket, ArpView};
use inhost_wire::ethernet::{self, EtherType, EthernetHeader, EthernetView};
use inhost_wire::icmpv6::{Icmpv6Message, Icmpv6View};
use inhost_wire::ipv4::{Ipv4Header, Ipv4View};
use inhost_wire::ipv6::{self, Ipv6Header, Ipv6View};
use inhost_wire::protocol;

pub const CARD: HardwareAddress = HardwareAddress([2, 0, 0, 0, 0, 1]);
pub const PEER_CARD: HardwareAddress = HardwareAddress([2, 0, 0, 0, 0, 2]);
pub const THIRD_CARD: HardwareAddress = HardwareAddress([2, 0, 0, 0, 0, 3]);

pub fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}
pub fn v4(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}
pub fn v6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// A device that keeps what it gets, up to `room` frames.
#[derive(Default)]
pub struct Wire {
    pub frames: Vec<Vec<u8>>,
    pub room: Option<usize>,
}
impl Device for Wire {
    fn transmit(&mut self, frame: &Frame<'_>) -> Result<(), Full> {
        if self.room.is_some_and(|room| self.frames.len() >= room) {
            return Err(Full);
        }
        let mut bytes = vec![0; frame.len()];
        frame.write_to(&mut bytes).unwrap();
        self.frames.push(bytes);
        Ok(())
    }
}

pub struct Host {
    pub ip: Ip,
    pub pool: Pool,
    pub random: Random,
    pub sink: Recorded,
    pub now: Instant,
}

impl Host {
    pub fn new(seed: u64) -> Host {
        Host::with_config(seed, IpConfig::default())
    }
    pub fn with_config(seed: u64, config: IpConfig) -> Host {
        let mut random = Random::from_number(seed);
        Host {
            ip: Ip::new(config, &mut random),
            pool: Pool::new(16 << 20),
            random,
            sink: Recorded::new(Mask::all(), 1000),
            now: Instant::from_millis(1000),
        }
    }
    /// With one Ethernet, whose addresses are used at once.
    pub fn on_ethernet(seed: u64, card: HardwareAddress, addresses: &[&str]) -> Host {
        let mut host = Host::new(seed);
        host.add(quiet(InterfaceConfig::new("ethernet", Medium::Ethernet(card)), addresses));
        host
    }
    pub fn add(&mut self, config: InterfaceConfig) -> LinkId {
        let link = self.with(|ip, env| ip.add_interface(config, env)).unwrap();
        self.sent_on(link);
        link
    }
    pub fn with<R>(&mut self, f: impl FnOnce(&mut Ip, &mut IpEnvironment<'_>) -> R) -> R {
        let mut env = IpEnvironment::new(self.now, &mut self.pool, &mut self.random, &mut self.sink);
        f(&mut self.ip, &mut env)
    }
    /// Receives a frame; also returns the rest of it.
    pub fn receive_all(&mut self, link: LinkId, frame: &[u8]) -> (Received, Vec<u8>) {
        let mut packet = self.pool.take(frame.len()).unwrap();
        packet.append(frame);
        let received = self.with(|ip, env| ip.receive(link, &mut packet, env));
        let rest = packet.bytes().to_vec();
        self.pool.give(packet);
        (received, rest)
    }
    pub fn receive(&mut self, frame: &[u8]) -> Received {
        self.receive_all(LinkId(1), frame).0
    }
    /// Receives a redirect about a packet that this host has sent.
    pub fn receive_redirect(&mut self, frame: &[u8]) -> Result<(), Drop> {
        match self.receive(frame) {
            Received::Redirect(redirect) => self.ip.paths_mut().redirect_confirmed(&redirect, self.now),
            Received::Dropped(why) => Err(why),
            other => panic!("{other:?}"),
        }
    }
    pub fn receive_packet(&mut self, frame: &[u8]) -> (Received, Packet) {
        let mut packet = self.pool.take(frame.len()).unwrap();
        packet.append(frame);
        let received = self.with(|ip, env| ip.receive(LinkId(1), &mut packet, env));
        (received, packet)
    }
    /// IP's own frames that are due on a link.
    pub fn sent_on(&mut self, link: LinkId) -> Vec<Vec<u8>> {
        let mut wire = Wire::default();
        while self.with(|ip, env| ip.transmit(link, env, 16, &mut wire)) {}
        wire.frames
    }
    pub fn sent(&mut self) -> Vec<Vec<u8>> {
        self.sent_on(LinkId(1))
    }
    /// Lets time pass, with every timer at its instant; gives what was frames, and when.
    pub fn pass(&mut self, duration: Duration) -> Vec<(Instant, Vec<u8>)> {
        let end = self.now + duration;
        let mut frames = Vec::new();
        for step in 0.. {
            assert!(step < 10_000, "timers without end");
            let due = self.ip.deadline().max(self.now);
            if due > end {
                break;
            }
            self.now = due;
            self.with(|ip, env| ip.timeout(env));
            assert!(self.ip.deadline() > due || step % 100 != 99, "a timer that fires for ever");
            let now = self.now;
            frames.extend(self.sent().into_iter().map(|frame| (now, frame)));
        }
        self.now = end;
        frames
    }
    pub fn secs(&mut self, seconds: u64) -> Vec<Vec<u8>> {
        self.pass(Duration::from_secs(seconds)).into_iter().map(|(_, frame)| frame).collect()
    }
    pub fn route(&mut self, destination: &str) -> Result<Path, RouteError> {
        let now = self.now;
        self.ip.paths_mut().route(ip(destination), None, None, now)
    }
    pub fn resolve(&mut self, path: &Path) -> Resolution {
        self.with(|ip, env| ip.paths_mut().resolve(path, env))
    }
    pub fn next_hop(&mut self, destination: &str) -> String {
        self.route(destination).unwrap().next_hop.to_string()
    }
    pub fn drops(&self, why: Drop) -> u64 {
        self.ip.interface(LinkId(1)).unwrap().counters().drops(why)
    }
    /// Nothing is held any more that was taken from the pool.
    pub fn assert_no_leaks(&mut self) {
        let Host { ip, pool, .. } = self;
        ip.clear(pool);
        assert_eq!(self.pool.outstanding_bytes(), 0);
    }
}

/// No duplicate address detection, no routers, no generated link-local address.
pub fn quiet(mut config: InterfaceConfig, addresses: &[&str]) -> InterfaceConfig {
    config.duplicate_detection = DuplicateDetection::Off;
    config.accept_router_advertisements = false;
    config.link_local = false;
    config.addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    config
}

pub fn frame(to: HardwareAddress, from: HardwareAddress, ethertype: EtherType, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; ethernet::LENGTH];
    EthernetHeader { destination: to, source: from, ethertype }.emit(&mut bytes);
    bytes.extend_from_slice(body);
    bytes
}

pub fn arp(from: HardwareAddress, to: HardwareAddress, packet: ArpPacket) -> Vec<u8> {
    let mut body = [0; 28];
    packet.emit(&mut body);
    frame(to, from, EtherType::ARP, &body)
}
pub fn arp_request(from: HardwareAddress, sender: &str, target: &str) -> Vec<u8> {
    let packet = ArpPacket {
        operation: ArpOperation::Request,
        sender_hardware: from,
        sender_protocol: v4(sender),
        target_hardware: HardwareAddress::default(),
        target_protocol: v4(target),
    };
    arp(from, HardwareAddress::BROADCAST, packet)
}
pub fn arp_reply(from: HardwareAddress, sender: &str, to: HardwareAddress, target: &str) -> Vec<u8> {
    let packet = ArpPacket {
        operation: ArpOperation::Reply,
        sender_hardware: from,
        sender_protocol: v4(sender),
        target_hardware: to,
        target_protocol: v4(target),
    };
    arp(from, to, packet)
}
pub fn as_arp(bytes: &[u8]) -> Option<ArpPacket> {
    let view = EthernetView::new(bytes).unwrap();
    (view.ethertype() == EtherType::ARP).then(|| ArpPacket::parse(&ArpView::new(view.payload()).unwrap()))
}

pub fn ipv4_packet(header: Ipv4Header, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 20 + options.len()];
    let header = Ipv4Header { payload_length: payload.len() as u16, ..header };
    assert!(header.emit_with_options(options, &mut bytes) > 0);
    bytes.extend_from_slice(payload);
    bytes
}
pub fn udp4(source: &str, destination: &str, payload: &[u8]) -> Vec<u8> {
    ipv4_packet(Ipv4Header::new(v4(source), v4(destination), protocol::UDP, 0), &[], payload)
}
pub fn ipv4_frame(packet: &[u8]) -> Vec<u8> {
    frame(CARD, PEER_CARD, EtherType::IPV4, packet)
}
pub fn icmp4(source: &str, destination: &str, message: inhost_wire::icmpv4::Icmpv4Message<'_>) -> Vec<u8> {
    let mut body = vec![0; message.length()];
    message.emit(&mut body);
    ipv4_packet(Ipv4Header::new(v4(source), v4(destination), protocol::ICMPV4, 0), &[], &body)
}

pub fn ipv6_packet(header: Ipv6Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    Ipv6Header { payload_length: payload.len() as u16, ..header }.emit(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}
pub fn udp6(source: &str, destination: &str, payload: &[u8]) -> Vec<u8> {
    ipv6_packet(Ipv6Header::new(v6(source), v6(destination), protocol::UDP, 0), payload)
}
pub fn ipv6_frame(packet: &[u8]) -> Vec<u8> {
    ipv6_frame_from(PEER_CARD, packet)
}
/// To the card, or to the group's, that the destination asks for.
pub fn ipv6_frame_from(from: HardwareAddress, packet: &[u8]) -> Vec<u8> {
    let destination = Ipv6View::new(packet).unwrap().destination();
    let to = if destination.is_multicast() {
        let [.., a, b, c, d] = destination.octets();
        HardwareAddress([0x33, 0x33, a, b, c, d])
    } else {
        CARD
    };
    frame(to, from, EtherType::IPV6, packet)
}
pub fn icmp6(source: &str, destination: &str, hop_limit: u8, message: Icmpv6Message<'_>) -> Vec<u8> {
    let (source, destination) = (v6(source), v6(destination));
    let mut body = vec![0; message.length()];
    message.emit(source, destination, &mut body);
    let header = Ipv6Header { hop_limit, ..Ipv6Header::new(source, destination, protocol::ICMPV6, 0) };
    ipv6_packet(header, &body)
}

/// Source, destination, protocol and payload of an Ethernet frame's IPv4 packet.
pub fn as_ipv4(bytes: &[u8]) -> Option<(Ipv4Header, Vec<u8>)> {
    let view = EthernetView::new(bytes).unwrap();
    if view.ethertype() != EtherType::IPV4 {
        return None;
    }
    let view = Ipv4View::new(view.payload()).unwrap();
    assert!(view.checksum_ok());
    Some((Ipv4Header::parse(&view), view.payload().to_vec()))
}
/// Header and ICMPv6 message of an Ethernet frame, checksum verified.
pub fn with_icmp6<R>(bytes: &[u8], f: impl FnOnce(Ipv6Header, Icmpv6Message<'_>) -> R) -> Option<R> {
    let view = EthernetView::new(bytes).unwrap();
    if view.ethertype() != EtherType::IPV6 {
        return None;
    }
    let view = Ipv6View::new(view.payload()).unwrap();
    let upper = ipv6::walk(&view).unwrap();
    if upper.protocol != protocol::ICMPV6 || upper.fragment.is_some() {
        return None;
    }
    let icmp = Icmpv6View::new(upper.payload).unwrap();
    assert!(icmp.checksum_ok(view.source(), view.destination()));
    Some(f(Ipv6Header::parse(&view), Icmpv6Message::parse(&icmp).unwrap()))
}
pub fn card_of(frame: &[u8]) -> HardwareAddress {
    EthernetView::new(frame).unwrap().destination()
}

/// Carries frames between hosts on one Ethernet until all is quiet.
pub fn settle(hosts: &mut [&mut Host]) {
    for round in 0.. {
        assert!(round < 100, "frames without end");
        let mut is_quiet = true;
        for from in 0..hosts.len() {
            for frame in hosts[from].sent() {
                is_quiet = false;
                for (to, host) in hosts.iter_mut().enumerate() {
                    if to != from {
                        host.receive(&frame);
                    }
                }
            }
        }
        if is_quiet {
            return;
        }
    }
}
