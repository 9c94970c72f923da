//! Frames that mean harm: nothing panics, nothing grows beyond its limit, and afterwards everything works.

use crate::common::*;
use inhost_base::{Duration, LinkId, Random};
use inhost_ip::*;
use inhost_wire::ethernet::EtherType;
use inhost_wire::icmpv4::Icmpv4Message;
use inhost_wire::icmpv6::Icmpv6Message;
use inhost_wire::igmp::{IgmpMessage, QueryVersion};
use inhost_wire::ipv4::Ipv4Header;
use inhost_wire::ipv6::{self, Ipv6Header};
use inhost_wire::ndp::{NdpMessage, NdpOptions, PrefixInformation};
use inhost_wire::{checksum::Sum, protocol};

const MUTATED_FRAMES: u32 = 100_000;

fn seeds() -> Vec<Vec<u8>> {
    let options = NdpOptions {
        source_link_layer: Some(PEER_CARD),
        target_link_layer: Some(PEER_CARD),
        ..NdpOptions::default()
    };
    let mut router = options;
    router.prefixes.push(PrefixInformation {
        prefix: v6("2001:db8:5::"),
        prefix_bits: 64,
        on_link: true,
        autonomous: true,
        valid_lifetime_s: 1000,
        preferred_lifetime_s: 500,
    });
    let ndp = |source: &str, destination: &str, message| {
        ipv6_frame(&icmp6(source, destination, 255, Icmpv6Message::Ndp(message)))
    };
    let udp = udp4("10.0.0.1", "192.0.2.1", &[0; 20]);
    let udp_v6 = udp6("fd00::1", "2001:db8::1", &[0; 20]);
    let fragment = Ipv4Header {
        dont_fragment: false,
        more_fragments: true,
        identification: 7,
        ..Ipv4Header::new(v4("10.0.0.2"), v4("10.0.0.1"), protocol::UDP, 0)
    };
    let mut part = vec![0; 8];
    ipv6::emit_fragment_header(protocol::UDP, 0, true, 9, &mut part);
    part.extend_from_slice(&[1; 64]);
    let mut query = vec![0; 8];
    IgmpMessage::Query { version: QueryVersion::V2, group: v4("0.0.0.0"), max_response_code: 10 }
        .emit(&mut query);
    vec![
        arp_request(PEER_CARD, "10.0.0.2", "10.0.0.1"),
        arp_reply(PEER_CARD, "10.0.0.2", CARD, "10.0.0.1"),
        ipv4_frame(&udp4("10.0.0.2", "10.0.0.1", &[3; 40])),
        ipv4_frame(&ipv4_packet(fragment, &[], &[1; 64])),
        ipv4_frame(&ipv4_packet(Ipv4Header { fragment_offset_bytes: 64, ..fragment }, &[], &[1; 64])),
        ipv4_frame(&icmp4(
            "10.0.0.2",
            "10.0.0.1",
            Icmpv4Message::EchoRequest { identifier: 1, sequence: 2, data: &[9; 30] },
        )),
        ipv4_frame(&icmp4(
            "10.0.0.2",
            "10.0.0.1",
            Icmpv4Message::Redirect {
                code: inhost_wire::icmpv4::RedirectCode::Host,
                gateway: v4("10.0.0.3"),
                invoking: &udp,
            },
        )),
        ipv4_frame(&icmp4(
            "10.0.0.2",
            "10.0.0.1",
            Icmpv4Message::DestinationUnreachable {
                code: inhost_wire::icmpv4::UnreachableCode::FragmentationNeeded,
                next_hop_mtu: 600,
                invoking: &udp,
            },
        )),
        ipv4_frame(&ipv4_packet(
            Ipv4Header::new(v4("10.0.0.2"), v4("224.0.0.1"), protocol::IGMP, 0),
            &[0x94, 4, 0, 0],
            &query,
        )),
        ipv6_frame(&udp6("fd00::2", "fd00::1", &[3; 40])),
        ipv6_frame(&ipv6_packet(Ipv6Header::new(v6("fd00::2"), v6("fd00::1"), protocol::FRAGMENT, 0), &part)),
        ipv6_frame(&icmp6(
            "fd00::2",
            "fd00::1",
            64,
            Icmpv6Message::EchoRequest { identifier: 1, sequence: 2, data: &[9; 30] },
        )),
        ipv6_frame(&icmp6(
            "fd00::2",
            "fd00::1",
            64,
            Icmpv6Message::PacketTooBig { mtu: 1300, invoking: &udp_v6 },
        )),
        ndp(
            "fd00::2",
            "ff02::1:ff00:1",
            NdpMessage::NeighbourSolicitation { target: v6("fd00::1"), options },
        ),
        ndp(
            "fd00::2",
            "fd00::1",
            NdpMessage::NeighbourAdvertisement {
                router: true,
                solicited: true,
                override_cache: true,
                target: v6("fd00::2"),
                options,
            },
        ),
        ndp(
            "fe80::2",
            "ff02::1",
            NdpMessage::RouterAdvertisement {
                hop_limit: 9,
                managed: false,
                other_configuration: false,
                router_lifetime_s: 100,
                reachable_time_ms: 5,
                retransmit_timer_ms: 1,
                options: router,
            },
        ),
        ndp(
            "fe80::2",
            "fd00::1",
            NdpMessage::Redirect { target: v6("fe80::3"), destination: v6("2001:db8::9"), options },
        ),
    ]
}

/// Changes bytes, lengths, or order; and often mends the checksums, so that what lies deeper is reached.
fn mutate(frame: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.public_below(4) {
        let length = frame.len() as u32;
        let at = random.public_below(length.max(1)) as usize;
        match random.public_below(8) {
            0 => frame.truncate(at),
            1 => frame.extend((0..random.public_below(64)).map(|i| i as u8)),
            2 | 3 => {
                if let Some(byte) = frame.get_mut(at) {
                    *byte ^= 1 << random.public_below(8);
                }
            }
            4 => {
                if let Some(byte) = frame.get_mut(at) {
                    *byte = [0, 1, 0x7f, 0x80, 0xff][random.public_below(5) as usize];
                }
            }
            5 if frame.len() > 4 => {
                let other = random.public_below(length) as usize;
                frame.swap(at, other);
            }
            // Other sources, identifications and addresses.
            6 if frame.len() > 34 => {
                frame[14 + 4 + random.public_below(16) as usize] = random.public_below(256) as u8
            }
            _ => {
                if let Some(byte) = frame.get_mut(at) {
                    *byte = random.public_below(256) as u8;
                }
            }
        }
    }
    if random.public_chance(0.8) {
        mend(frame);
    }
}

fn mend(frame: &mut [u8]) {
    let Some((header, packet)) = frame.split_at_mut_checked(14) else { return };
    let ethertype = EtherType(u16::from_be_bytes([header[12], header[13]]));
    if ethertype == EtherType::IPV4 && packet.len() >= 20 {
        let header_bytes = (usize::from(packet[0] & 0xf) * 4).clamp(20, packet.len());
        if packet[9] == protocol::ICMPV4 || packet[9] == protocol::IGMP {
            let body = &mut packet[header_bytes..];
            if body.len() >= 4 {
                body[2..4].fill(0);
                let sum = Sum::of(body).finish();
                body[2..4].copy_from_slice(&sum.to_be_bytes());
            }
        }
        packet[10..12].fill(0);
        let sum = Sum::of(&packet[..header_bytes]).finish();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    } else if ethertype == EtherType::IPV6 && packet.len() > 44 && packet[6] == protocol::ICMPV6 {
        let source: [u8; 16] = packet[8..24].try_into().unwrap();
        let destination: [u8; 16] = packet[24..40].try_into().unwrap();
        packet[42..44].fill(0);
        let length = (packet.len() - 40) as u32;
        let sum = inhost_wire::checksum::pseudo_header(
            std::net::Ipv6Addr::from(source).into(),
            std::net::Ipv6Addr::from(destination).into(),
            protocol::ICMPV6,
            length,
        );
        let sum = sum.add_bytes(&packet[40..]).finish();
        packet[42..44].copy_from_slice(&sum.to_be_bytes());
    }
}

fn victim(seed: u64) -> Host {
    let mut host = Host::new(seed);
    let mut config = quiet(
        InterfaceConfig::new("ethernet", Medium::Ethernet(CARD)),
        &["10.0.0.1/24", "fd00::1/64", "fe80::1/64"],
    );
    config.accept_router_advertisements = true;
    host.add(config.with_gateway(v4("10.0.0.2")).with_gateway(v6("fe80::2")));
    host
}

fn within_limits(host: &Host) {
    let link = LinkId(1);
    let ip = &host.ip;
    assert!(ip.interface(link).unwrap().neighbours().len() <= limits::NEIGHBOURS);
    assert!(ip.interface(link).unwrap().addresses().len() <= limits::ADDRESSES);
    assert!(ip.paths().routes().len() <= limits::ROUTES);
    assert!(ip.paths().redirects() <= limits::REDIRECTS);
    assert!(ip.interface(link).unwrap().groups().len() <= limits::GROUPS);
    let (datagrams, bytes) = ip.reassemblies();
    assert!(datagrams <= limits::REASSEMBLIES && bytes <= limits::REASSEMBLY_BYTES);
    let most_frames = limits::CONTROL_FRAMES + limits::CONTROL_PACKETS_WAITING;
    assert!(host.pool.outstanding_bytes() <= bytes + most_frames * 16_384);
}

#[test]
fn a_hundred_thousand_mutated_frames() {
    let seeds = seeds();
    for seed in 0..4 {
        let mut host = victim(seed);
        let mut random = Random::from_number(seed ^ 0x5eed);
        let (mut errors, mut datagrams, mut handled) = (0, 0, 0);
        for i in 0..MUTATED_FRAMES / 4 {
            let mut frame = seeds[random.public_below(seeds.len() as u32) as usize].clone();
            mutate(&mut frame, &mut random);
            let (received, mut packet) = host.receive_packet(&frame);
            match received {
                Received::Datagram(datagram) => {
                    datagrams += 1;
                    let before = packet.len();
                    let length = packet.len();
                    host.with(|ip, env| ip.port_unreachable(&datagram, &mut packet, length, env));
                    host.with(|ip, env| ip.protocol_unreachable(&datagram, &mut packet, env));
                    assert_eq!(packet.len(), before);
                }
                Received::Error(error) => {
                    errors += 1;
                    let now = host.now;
                    host.ip.paths_mut().path_mtu_confirmed(&error, now);
                }
                Received::Redirect(redirect) => {
                    let now = host.now;
                    let _ = host.ip.paths_mut().redirect_confirmed(&redirect, now);
                }
                Received::Handled => handled += 1,
                _ => {}
            }
            host.pool.give(packet);
            if i % 7 == 0 {
                host.sent();
            }
            if i % 100 == 0 {
                within_limits(&host);
                host.pass(Duration::from_millis(u64::from(random.public_below(2000))));
            }
        }
        // The mutations reach every depth.
        assert!(errors > 100 && datagrams > 1000 && handled > 1000, "{seed}: {errors} {datagrams} {handled}");
        // Once it is over, everything works as before.
        host.pass(Duration::from_secs(4000));
        within_limits(&host);
        assert_eq!(host.ip.reassemblies(), (0, 0));
        host.receive(&arp_request(PEER_CARD, "10.0.0.2", "10.0.0.1"));
        let path = host.route("10.0.0.2").unwrap();
        assert!(
            matches!(host.resolve(&path), Resolution::Ready(header) if header.bytes()[..6] == PEER_CARD.0)
        );
        host.assert_no_leaks();
    }
}

#[test]
fn random_bytes_change_nothing_but_counters() {
    let mut host = victim(9);
    host.sent();
    let mut random = Random::from_number(77);
    let generation = host.ip.paths().generation();
    let mut buffer = Vec::new();
    for _ in 0..50_000 {
        buffer.clear();
        buffer.extend((0..random.public_below(120)).map(|_| random.public_below(256) as u8));
        // Half of them for our card, with a type that is spoken.
        if buffer.len() > 14 && random.public_chance(0.5) {
            buffer[..6].copy_from_slice(&CARD.0);
            let kinds: [[u8; 2]; 3] = [[8, 0], [8, 6], [0x86, 0xdd]];
            buffer[12..14].copy_from_slice(&kinds[random.public_below(3) as usize]);
        }
        assert!(matches!(host.receive(&buffer), Received::Dropped(_)));
    }
    assert_eq!(
        (host.ip.paths().generation(), host.ip.interface(LinkId(1)).unwrap().neighbours().len()),
        (generation, 0)
    );
    assert!(host.sent().is_empty());
    let counters = host.ip.interface(LinkId(1)).unwrap().counters();
    let counted: u64 = inhost_event::Drop::ALL.iter().map(|&why| counters.drops(why)).sum();
    assert_eq!(counted, 50_000);
}

#[test]
fn the_same_seed_sends_the_same_frames() {
    let run = || {
        let seeds = seeds();
        let mut host = victim(4);
        let mut random = Random::from_number(4);
        let mut sent = Vec::new();
        for _ in 0..3000 {
            let mut frame = seeds[random.public_below(seeds.len() as u32) as usize].clone();
            mutate(&mut frame, &mut random);
            host.receive(&frame);
            sent.extend(host.sent());
            sent.extend(host.pass(Duration::from_millis(50)).into_iter().map(|(_, frame)| frame));
        }
        sent
    };
    assert!(run() == run());
}

#[test]
fn without_memory_nothing_is_sent_and_nothing_breaks() {
    let mut host = victim(1);
    host.sent();
    host.pool.set_limit_bytes(1024);
    for frame in seeds() {
        let Some(mut packet) = host.pool.take(frame.len()) else { continue };
        packet.append(&frame);
        host.with(|ip, env| ip.receive(LinkId(1), &mut packet, env));
        host.pool.give(packet);
    }
    host.pass(Duration::from_secs(100));
    host.pool.set_limit_bytes(1 << 20);
    host.receive(&arp_request(PEER_CARD, "10.0.0.2", "10.0.0.1"));
    assert!(!host.sent().is_empty());
}

/// Packets that a router meets: for others, by source routes, with records, too long, in fragments.
fn seeds_of_a_router() -> Vec<Vec<u8>> {
    let udp = |source: &str, destination: &str| Ipv4Header {
        dont_fragment: false,
        ..Ipv4Header::new(v4(source), v4(destination), protocol::UDP, 0)
    };
    let here = udp("10.0.0.2", "10.0.0.1");
    let there = udp("10.0.0.2", "10.7.0.2");
    let route = [1, 131, 15, 4, 10, 7, 0, 2, 10, 7, 0, 3, 10, 7, 0, 4];
    let done = [1, 137, 11, 12, 10, 7, 0, 2, 10, 0, 0, 2];
    let record =
        [1, 7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, 68, 20, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let echo = Icmpv4Message::EchoRequest { identifier: 1, sequence: 2, data: &[9; 30] };
    let mut ping = vec![0; echo.length()];
    echo.emit(&mut ping);
    let icmp = Ipv4Header { protocol: protocol::ICMPV4, ..here };
    let mut v6_options = vec![protocol::UDP, 0, 5, 2, 0, 0, 1, 0];
    v6_options.extend_from_slice(&[0; 40]);
    vec![
        ipv4_frame(&ipv4_packet(there, &[], &[1; 60])),
        ipv4_frame(&ipv4_packet(there, &record, &[1; 1400])),
        ipv4_frame(&ipv4_packet(Ipv4Header { more_fragments: true, ..there }, &route, &[1; 1400])),
        ipv4_frame(&ipv4_packet(here, &route, &[1; 60])),
        ipv4_frame(&ipv4_packet(here, &done, &[1; 60])),
        ipv4_frame(&ipv4_packet(icmp, &record, &ping)),
        ipv4_frame(&ipv4_packet(icmp, &done, &ping)),
        ipv4_frame(&ipv4_packet(udp("10.0.0.2", "10.0.0.9"), &[], &[1; 60])),
        ipv6_frame(&udp6("fd00::2", "fd07::2", &[3; 40])),
        ipv6_frame(&udp6("fd00::2", "fd00::9", &[3; 1400])),
        ipv6_frame(&ipv6_packet(
            Ipv6Header::new(v6("fd00::2"), v6("fd07::2"), protocol::HOP_BY_HOP, 0),
            &v6_options,
        )),
    ]
}

#[test]
fn a_router_in_a_storm_of_mutated_packets() {
    let seeds = [seeds_of_a_router(), seeds_of_a_router(), seeds()].concat();
    for seed in 0..2 {
        let mut forwarding = Forwarding::default();
        forwarding.source_routes = true;
        forwarding.queue_packets = 50;
        let mut config = IpConfig::default();
        config.accept_source_routes = true;
        config.record_options = true;
        config.forwarding = Some(forwarding);
        let mut host = Host::with_config(seed, config);
        let west = InterfaceConfig::new("west", Medium::Ethernet(CARD));
        host.add(quiet(west, &["10.0.0.1/24", "fd00::1/64", "fe80::1/64"]));
        let mut line = InterfaceConfig::new("line", Medium::Ip);
        line.mtu_bytes = 600;
        let line = host.add(quiet(line, &["10.7.0.1/24"]));
        let east = InterfaceConfig::new("east", Medium::Ethernet(THIRD_CARD));
        let east = host.add(quiet(east, &["10.8.0.1/24", "fd07::1/64"]));
        host.receive(&arp_request(PEER_CARD, "10.0.0.2", "10.0.0.1"));
        let mut random = Random::from_number(seed ^ 0x5eed);
        for i in 0..30_000 {
            let mut frame = seeds[random.public_below(seeds.len() as u32) as usize].clone();
            mutate(&mut frame, &mut random);
            host.receive(&frame);
            if i % 7 == 0 {
                host.sent();
                // What goes on is well formed and no longer than its link takes.
                for packet in host.sent_on(line) {
                    let view = inhost_wire::ipv4::Ipv4View::new(&packet).unwrap();
                    assert!(view.checksum_ok() && packet.len() <= 600);
                    assert!(inhost_wire::ipv4::OptionPlaces::find(view.options()).is_ok());
                }
                host.sent_on(east);
            }
            if i % 100 == 0 {
                host.pass(Duration::from_millis(u64::from(random.public_below(2000))));
                let (_, bytes) = host.ip.reassemblies();
                let packets = 3 * (limits::CONTROL_FRAMES + limits::CONTROL_PACKETS_WAITING)
                    + 3 * (50 + limits::FORWARDED_WAITING);
                assert!(host.pool.outstanding_bytes() <= bytes + packets * 16_384);
            }
        }
        assert!(host.ip.interface(line).unwrap().counters().forwarded_datagrams > 1000);
        assert!(host.ip.interface(east).unwrap().counters().forwarded_datagrams > 100);
        host.assert_no_leaks();
    }
}
