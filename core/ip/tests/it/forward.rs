//! Packets for others, through a router with two Ethernets and a line.

use crate::common::*;
use inhost_base::{HardwareAddress, LinkId};
use inhost_event::Drop;
use inhost_ip::*;
use inhost_wire::ethernet::{EtherType, EthernetView};
use inhost_wire::icmpv4::{Icmpv4Message, Icmpv4View, RedirectCode, TimeExceededCode, UnreachableCode};
use inhost_wire::icmpv6::{self, Icmpv6Message};
use inhost_wire::ipv4::{Ipv4Header, Ipv4View};
use inhost_wire::ipv6::{Ipv6Header, Ipv6View};
use inhost_wire::ndp::{NdpMessage, NdpOptions};
use inhost_wire::protocol;

const WEST: LinkId = LinkId(1);
const EAST: LinkId = LinkId(2);
const LINE: LinkId = LinkId(3);
const EAST_CARD: HardwareAddress = HardwareAddress([2, 0, 0, 0, 1, 1]);
const FAR_CARD: HardwareAddress = HardwareAddress([2, 0, 0, 0, 1, 2]);

/// 10.1.0.1 on the west, 10.2.0.1 on the east, a narrow line with 10.3.0.1; fd01::1 and fd02::1. Both neighbours known.
fn router_with(forwarding: Option<Forwarding>) -> Host {
    let mut ip = IpConfig::default();
    ip.forwarding = forwarding;
    let mut host = Host::with_config(1, ip);
    let mut west =
        quiet(InterfaceConfig::new("west", Medium::Ethernet(CARD)), &["10.1.0.1/24", "fd01::1/64"]);
    west.addresses.push("fe80::1/64".parse().unwrap());
    host.add(west);
    let east = InterfaceConfig::new("east", Medium::Ethernet(EAST_CARD));
    host.add(quiet(east, &["10.2.0.1/24", "fd02::1/64"]));
    let mut line = quiet(InterfaceConfig::new("line", Medium::Ip), &["10.3.0.1/24", "fd03::1/64"]);
    line.mtu_bytes = 1300;
    host.add(line);
    meet(&mut host, WEST, CARD, PEER_CARD, "10.1.0.2", "10.1.0.1", "fd01::2", "fd01::1");
    meet(&mut host, EAST, EAST_CARD, FAR_CARD, "10.2.0.2", "10.2.0.1", "fd02::2", "fd02::1");
    host.sent_on(WEST);
    host.sent_on(EAST);
    host
}
fn router() -> Host {
    router_with(Some(Forwarding::default()))
}
/// Both sides of a link learn of each other.
#[allow(clippy::too_many_arguments)]
fn meet(
    host: &mut Host,
    link: LinkId,
    own: HardwareAddress,
    card: HardwareAddress,
    peer4: &str,
    own4: &str,
    peer6: &str,
    own6: &str,
) {
    host.receive_all(link, &arp_request(card, peer4, own4));
    let options = NdpOptions { source_link_layer: Some(card), ..Default::default() };
    let message = NdpMessage::NeighbourSolicitation { target: v6(own6), options };
    let packet = icmp6(peer6, own6, 255, Icmpv6Message::Ndp(message));
    host.receive_all(link, &frame(own, card, EtherType::IPV6, &packet));
}
fn from_west(host: &mut Host, packet: &[u8]) -> Received {
    let ethertype = if packet[0] >> 4 == 4 { EtherType::IPV4 } else { EtherType::IPV6 };
    host.receive_all(WEST, &frame(CARD, PEER_CARD, ethertype, packet)).0
}
/// The packets in Ethernet frames.
fn packets(frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    frames.iter().map(|frame| EthernetView::new(frame).unwrap().payload().to_vec()).collect()
}
fn with_hops(source: &str, destination: &str, hops: u8, payload: usize) -> Vec<u8> {
    let header = Ipv4Header {
        time_to_live: hops,
        dont_fragment: false,
        identification: 7,
        ..Ipv4Header::new(v4(source), v4(destination), protocol::UDP, 0)
    };
    ipv4_packet(header, &[], &vec![5; payload])
}
/// The ICMP error that the router says on the west, and the packet that it quotes.
fn error_on(host: &mut Host, link: LinkId) -> (Ipv4Header, Vec<u8>) {
    let frames = host.sent_on(link);
    assert_eq!(frames.len(), 1, "one error and nothing else");
    let (header, body) = as_ipv4(&frames[0]).unwrap();
    assert_eq!(header.protocol, protocol::ICMPV4);
    assert!(Icmpv4View::new(&body).unwrap().checksum_ok());
    (header, body)
}
fn message(body: &[u8]) -> Icmpv4Message<'_> {
    Icmpv4Message::parse(&Icmpv4View::new(body).unwrap())
}

// spec: RFC1812 5.3.1, RFC8200 3
#[test]
fn a_packet_goes_on_with_one_hop_less_and_its_checksum_mended() {
    let mut host = router();
    for hops in [2, 64, 128, 255] {
        let packet = with_hops("10.1.0.2", "10.2.0.2", hops, 100);
        assert_eq!(from_west(&mut host, &packet), Received::Handled);
        assert!(host.sent_on(WEST).is_empty());
        let frames = host.sent_on(EAST);
        assert_eq!((frames.len(), card_of(&frames[0])), (1, FAR_CARD));
        let (header, payload) = as_ipv4(&frames[0]).unwrap();
        assert_eq!((header.time_to_live, payload.len()), (hops - 1, 100));
        assert_eq!((header.source, header.destination), (v4("10.1.0.2"), v4("10.2.0.2")));
    }
    let packet = udp6("fd01::2", "fd02::2", &[1; 50]);
    assert_eq!(from_west(&mut host, &packet), Received::Handled);
    let frames = packets(host.sent_on(EAST));
    let view = Ipv6View::new(&frames[0]).unwrap();
    assert_eq!((view.hop_limit(), view.payload()), (63, &[1; 50][..]));
    assert_eq!(host.ip.interface(EAST).unwrap().counters().forwarded_datagrams, 5);
    host.assert_no_leaks();
}

// spec: RFC1122 3.1-2, 3.1-3, 3.2.2.2-1
#[test]
fn a_host_forwards_nothing() {
    let mut host = router_with(None);
    let dropped = Received::Dropped(Drop::NotForUs);
    assert_eq!(from_west(&mut host, &with_hops("10.1.0.2", "10.2.0.2", 64, 10)), dropped);
    assert_eq!(from_west(&mut host, &with_hops("10.1.0.2", "10.2.0.1", 64, 10)), dropped);
    assert_eq!(from_west(&mut host, &udp6("fd01::2", "fd02::2", &[0; 8])), dropped);
    assert!(host.sent_on(EAST).is_empty() && host.sent_on(WEST).is_empty());
}

// spec: RFC1812 5.3.1, RFC4443 3.3
#[test]
fn an_exhausted_hop_limit_is_reported_to_the_sender() {
    let mut host = router();
    for hops in [0, 1] {
        let packet = with_hops("10.1.0.2", "10.2.0.2", hops, 10);
        assert_eq!(from_west(&mut host, &packet), Received::Dropped(Drop::HopLimit));
        let (header, body) = error_on(&mut host, WEST);
        assert_eq!((header.source, header.dscp_ecn), (v4("10.1.0.1"), 0xc0));
        let expected = Icmpv4Message::TimeExceeded { code: TimeExceededCode::InTransit, invoking: &packet };
        assert_eq!(message(&body), expected);
    }
    let mut packet = udp6("fd01::2", "fd02::2", &[0; 8]);
    packet[7] = 1;
    assert_eq!(from_west(&mut host, &packet), Received::Dropped(Drop::HopLimit));
    with_icmp6(&host.sent_on(WEST)[0], |header, message| {
        assert_eq!(header.source, v6("fd01::1"));
        assert_eq!(
            message,
            Icmpv6Message::TimeExceeded { code: TimeExceededCode::InTransit, invoking: &packet }
        );
    })
    .unwrap();
    assert!(host.sent_on(EAST).is_empty());
}

// spec: RFC1812 5.2.7.1, RFC4443 3.1
#[test]
fn no_route_and_a_silent_neighbour_are_reported_to_the_sender() {
    let mut host = router();
    let packet = with_hops("10.1.0.2", "192.0.2.1", 64, 10);
    assert_eq!(from_west(&mut host, &packet), Received::Dropped(Drop::NoRoute));
    let unreachable =
        |code, invoking| Icmpv4Message::DestinationUnreachable { code, next_hop_mtu: 0, invoking };
    assert_eq!(message(&error_on(&mut host, WEST).1), unreachable(UnreachableCode::Network, &packet[..]));

    let packet = with_hops("10.1.0.2", "10.2.0.77", 64, 10);
    assert_eq!(from_west(&mut host, &packet), Received::Handled);
    assert_eq!(as_arp(&host.sent_on(EAST)[0]).unwrap().target_protocol, v4("10.2.0.77"));
    let mut frames = Vec::new();
    for _ in 0..4 {
        host.pass(inhost_base::Duration::from_secs(1));
        host.sent_on(EAST);
        frames.append(&mut host.sent_on(WEST));
    }
    let (_, body) = as_ipv4(&frames[0]).unwrap();
    let Icmpv4Message::DestinationUnreachable { code: UnreachableCode::Host, invoking, .. } = message(&body)
    else {
        panic!("{body:?}");
    };
    assert_eq!(invoking.len(), packet.len());
    assert_eq!(host.drops(Drop::NoRoute), 2);

    let packet = udp6("fd01::2", "2001:db8::1", &[0; 8]);
    assert_eq!(from_west(&mut host, &packet), Received::Dropped(Drop::NoRoute));
    let found = with_icmp6(&host.sent_on(WEST)[0], |_, message| match message {
        Icmpv6Message::DestinationUnreachable { code, .. } => code,
        other => panic!("{other:?}"),
    });
    assert_eq!(found, Some(icmpv6::UnreachableCode::NoRoute));
    host.assert_no_leaks();
}

// spec: RFC1122 2.3.2.2-1
#[test]
fn packets_wait_for_a_neighbour_within_limits_and_the_newest_are_kept() {
    let mut host = router();
    for number in 0..20u8 {
        let header = Ipv4Header {
            identification: u16::from(number),
            ..Ipv4Header::new(v4("10.1.0.2"), v4("10.2.0.9"), protocol::UDP, 0)
        };
        from_west(&mut host, &ipv4_packet(header, &[], &[number; 9]));
    }
    assert_eq!(host.sent_on(EAST).len(), 1, "one question");
    host.receive_all(EAST, &arp_reply(FAR_CARD, "10.2.0.9", EAST_CARD, "10.2.0.1"));
    let numbers: Vec<u16> = host
        .sent_on(EAST)
        .iter()
        .filter_map(|f| as_ipv4(f))
        .map(|(header, _)| header.identification)
        .collect();
    assert_eq!(numbers, (12..20).collect::<Vec<u16>>());
    // Many silent neighbours together hold no more than the limit.
    for number in 0..200u8 {
        from_west(&mut host, &with_hops("10.1.0.2", &format!("10.2.0.{}", 20 + number), 64, 1000));
    }
    assert!(host.pool.outstanding_bytes() <= limits::FORWARDED_WAITING * 3000);
    assert!(host.drops(Drop::QueueFull) >= 100);
    host.assert_no_leaks();
}

#[test]
fn the_queue_to_a_device_is_bounded_and_leaves_room_for_the_hosts_own() {
    let mut forwarding = Forwarding::default();
    forwarding.queue_packets = 10;
    let mut host = router_with(Some(forwarding));
    for number in 0..30 {
        let received = from_west(&mut host, &with_hops("10.1.0.2", "10.2.0.2", 64, 500));
        let expected = if number < 10 { Received::Handled } else { Received::Dropped(Drop::QueueFull) };
        assert_eq!(received, expected);
    }
    let mut wire = Wire::default();
    assert!(host.with(|ip, env| ip.transmit(EAST, env, 8, &mut wire)));
    assert_eq!(wire.frames.len(), 6, "a quarter of the budget is left to transports");
    // A device that is full refuses, and what it refused stays first.
    let mut full = Wire { room: Some(1), ..Wire::default() };
    assert!(host.with(|ip, env| ip.transmit(EAST, env, 8, &mut full)));
    assert_eq!((full.frames.len(), host.sent_on(EAST).len()), (1, 3));
    host.assert_no_leaks();
}

// spec: RFC1812 4.2.2.7, RFC791 3.2
#[test]
fn a_long_packet_is_cut_where_that_is_allowed() {
    let mut host = router();
    let header = Ipv4Header {
        dont_fragment: false,
        identification: 9,
        more_fragments: true,
        fragment_offset_bytes: 800,
        ..Ipv4Header::new(v4("10.1.0.2"), v4("10.3.0.2"), protocol::UDP, 0)
    };
    let payload: Vec<u8> = (0..1440u32).map(|i| i as u8).collect();
    // A router alert goes into every fragment, a record of the route into the first.
    let options = [0x94, 4, 0, 0, 7, 7, 4, 0, 0, 0, 0, 1];
    from_west(&mut host, &ipv4_packet(header, &options, &payload));
    let frames = host.sent_on(LINE);
    let mut whole = Vec::new();
    for (packet, option_bytes) in frames.iter().zip([12, 4]) {
        let view = Ipv4View::new(packet).unwrap();
        assert!(view.checksum_ok() && view.total_length() <= 1300 && view.more_fragments());
        assert_eq!((view.identification(), view.time_to_live()), (9, 63));
        assert_eq!(view.options().len(), option_bytes);
        assert_eq!(usize::from(view.fragment_offset_bytes()), 800 + whole.len());
        whole.extend_from_slice(view.payload());
    }
    assert_eq!((frames.len(), whole), (2, payload));
    host.assert_no_leaks();
}

// spec: RFC1191 4, RFC4443 3.2, RFC8200 5
#[test]
fn what_must_not_be_cut_is_refused_with_the_links_mtu() {
    let mut host = router();
    let packet = udp4("10.1.0.2", "10.3.0.2", &[1; 1400]);
    assert_eq!(from_west(&mut host, &packet), Received::Dropped(Drop::TooBig));
    let (_, body) = error_on(&mut host, WEST);
    let Icmpv4Message::DestinationUnreachable { code, next_hop_mtu, invoking } = message(&body) else {
        panic!("{body:?}");
    };
    assert_eq!((code, next_hop_mtu), (UnreachableCode::FragmentationNeeded, 1300));
    assert_eq!(invoking, &packet[..548]);
    let packet = udp6("fd01::2", "fd03::2", &[1; 1300]);
    assert_eq!(from_west(&mut host, &packet), Received::Dropped(Drop::TooBig));
    let mtu = with_icmp6(&host.sent_on(WEST)[0], |_, message| match message {
        Icmpv6Message::PacketTooBig { mtu, .. } => mtu,
        other => panic!("{other:?}"),
    });
    assert_eq!(mtu, Some(1300));
    assert!(host.sent_on(LINE).is_empty());
    assert_eq!(from_west(&mut host, &udp6("fd01::2", "fd03::2", &[1; 1260])), Received::Handled);
    assert_eq!(host.sent_on(LINE).len(), 1);
}

// spec: RFC1812 5.3.7, 5.3.4, 5.3.5; RFC4291 2.5.6; RFC1122 3.1-1
#[test]
fn what_belongs_to_a_link_stays_there() {
    let mut host = router();
    let martians = [
        ("10.1.0.2", "10.2.0.255"),
        ("10.1.0.2", "224.1.2.3"),
        ("10.1.0.2", "127.0.0.1"),
        ("10.1.0.2", "0.1.2.3"),
        ("10.1.0.2", "240.0.0.1"),
        ("10.1.0.2", "169.254.3.4"),
        ("169.254.3.4", "10.2.0.2"),
        ("127.0.0.1", "10.2.0.2"),
        ("224.0.0.1", "10.2.0.2"),
        ("255.255.255.255", "10.2.0.2"),
        ("10.1.0.255", "10.2.0.2"),
        ("0.0.0.0", "10.2.0.2"),
        ("10.2.0.1", "10.2.0.2"),
    ];
    for (source, destination) in martians {
        let received = from_west(&mut host, &with_hops(source, destination, 64, 10));
        assert!(
            matches!(received, Received::Dropped(Drop::NotForUs | Drop::BadSource)),
            "{source} to {destination}: {received:?}"
        );
    }
    let martians = [
        ("fd01::2", "ff0e::1"),
        ("fd01::2", "fe80::9"),
        ("fd01::2", "::1"),
        ("::", "fd02::2"),
        ("::1", "fd02::2"),
    ];
    for (source, destination) in martians {
        let received = from_west(&mut host, &udp6(source, destination, &[0; 8]));
        assert!(
            matches!(received, Received::Dropped(Drop::NotForUs | Drop::BadSource)),
            "{source} to {destination}: {received:?}"
        );
    }
    // A frame for all is for nobody alone.
    let packet = with_hops("10.1.0.2", "10.2.0.2", 64, 10);
    let to_all = frame(HardwareAddress::BROADCAST, PEER_CARD, EtherType::IPV4, &packet);
    assert_eq!(host.receive_all(WEST, &to_all).0, Received::Dropped(Drop::NotForUs));
    for link in [WEST, EAST, LINE] {
        assert!(host.sent_on(link).is_empty(), "and nothing is frames about any of them");
    }
    // A link-local source has no meaning beyond, and is told so.
    assert_eq!(from_west(&mut host, &udp6("fe80::9", "fd02::2", &[0; 8])), Received::Dropped(Drop::NotForUs));
    host.receive_all(WEST, &neighbour_advertisement("fe80::9", "fe80::1"));
    let code = host.sent_on(WEST).iter().find_map(|frame| {
        with_icmp6(frame, |_, message| match message {
            Icmpv6Message::DestinationUnreachable { code, .. } => Some(code),
            _ => None,
        })?
    });
    assert_eq!(code, Some(icmpv6::UnreachableCode::BeyondScope));
}

fn neighbour_advertisement(from: &str, to: &str) -> Vec<u8> {
    let options = NdpOptions { target_link_layer: Some(PEER_CARD), ..Default::default() };
    let message = NdpMessage::NeighbourAdvertisement {
        router: false,
        solicited: true,
        override_cache: true,
        target: v6(from),
        options,
    };
    frame(CARD, PEER_CARD, EtherType::IPV6, &icmp6(from, to, 255, Icmpv6Message::Ndp(message)))
}

// spec: RFC1812 5.2.7.2, 4.3.3.2
#[test]
fn a_sender_gets_a_redirect_to_a_better_next_hop_on_its_own_link() {
    let mut host = router();
    let route = Route {
        destination: "192.0.2.0/24".parse().unwrap(),
        link: WEST,
        gateway: Some(ip("10.1.0.9")),
        preference: 100,
        origin: RouteOrigin::Configured,
    };
    host.ip.add_route(route).unwrap();
    host.receive_all(WEST, &arp_request(THIRD_CARD, "10.1.0.9", "10.1.0.1"));
    host.sent_on(WEST);
    let packet = with_hops("10.1.0.2", "192.0.2.5", 64, 100);
    assert_eq!(from_west(&mut host, &packet), Received::Handled);
    let frames = host.sent_on(WEST);
    let (header, body) = as_ipv4(&frames[0]).unwrap();
    assert_eq!((header.source, header.destination), (v4("10.1.0.1"), v4("10.1.0.2")));
    let Icmpv4Message::Redirect { code, gateway, invoking } = message(&body) else { panic!("{body:?}") };
    assert_eq!((code, gateway), (RedirectCode::Host, v4("10.1.0.9")));
    assert_eq!(invoking, &packet[..68]);
    assert_eq!((frames.len(), card_of(&frames[1])), (2, THIRD_CARD), "and the packet went on all the same");
    // Not to a sender that is not a neighbour, and not without limit.
    host.ip.add_route(Route { destination: "198.51.100.0/24".parse().unwrap(), ..route }).unwrap();
    from_west(&mut host, &with_hops("198.51.100.1", "192.0.2.5", 64, 10));
    assert_eq!(host.sent_on(WEST).len(), 1);
    let sent = host.ip.interface(WEST).unwrap().counters().sent_redirects;
    for _ in 0..1000 {
        from_west(&mut host, &packet);
        host.sent_on(WEST);
    }
    assert!(host.ip.interface(WEST).unwrap().counters().sent_redirects - sent <= 50);

    let mut forwarding = Forwarding::default();
    forwarding.redirects = false;
    let mut host = router_with(Some(forwarding));
    host.ip.add_route(route).unwrap();
    host.receive_all(WEST, &arp_request(THIRD_CARD, "10.1.0.9", "10.1.0.1"));
    host.sent_on(WEST);
    from_west(&mut host, &packet);
    assert_eq!(host.sent_on(WEST).len(), 1);
}

// spec: RFC4861 8.2
#[test]
fn an_ipv6_redirect_is_one_that_a_host_believes() {
    let mut host = router();
    let packet = udp6("fd01::2", "fd01::7", &[3; 1200]);
    assert_eq!(from_west(&mut host, &packet), Received::Handled);
    let redirects: Vec<bool> = host
        .sent_on(WEST)
        .iter()
        .filter_map(|frame| {
            with_icmp6(frame, |header, message| {
                let Icmpv6Message::Ndp(message @ NdpMessage::Redirect { target, destination, options }) =
                    message
                else {
                    return None;
                };
                assert_eq!((target, destination), (v6("fd01::7"), v6("fd01::7")));
                assert_eq!(message.acceptable(header.hop_limit, header.source, header.destination), Ok(()));
                assert!(frame.len() - 14 <= 1280);
                let redirected = options.redirected.unwrap();
                assert_eq!(redirected, &packet[..redirected.len()]);
                Some(true)
            })?
        })
        .collect();
    assert_eq!(redirects, [true]);
}

// spec: RFC1812 5.2.3
#[test]
fn a_router_answers_at_each_of_its_addresses_on_every_link() {
    let mut host = router();
    let request = Icmpv4Message::EchoRequest { identifier: 1, sequence: 2, data: b"far side" };
    assert_eq!(from_west(&mut host, &icmp4("10.1.0.2", "10.2.0.1", request)), Received::Handled);
    let (header, _) = error_or_reply(&mut host);
    assert_eq!((header.source, header.destination), (v4("10.2.0.1"), v4("10.1.0.2")));
    let received = from_west(&mut host, &udp4("10.1.0.2", "10.2.0.1", &[0; 8]));
    assert!(matches!(received, Received::Datagram(_)), "{received:?}");
}
fn error_or_reply(host: &mut Host) -> (Ipv4Header, Vec<u8>) {
    as_ipv4(&host.sent_on(WEST)[0]).unwrap()
}

// spec: RFC4861 4.4, 6.2.7
#[test]
fn a_router_advertises_that_it_is_one_and_ignores_other_routers() {
    let mut host = router();
    let options = NdpOptions { source_link_layer: Some(PEER_CARD), ..Default::default() };
    let message = NdpMessage::NeighbourSolicitation { target: v6("fd01::1"), options };
    host.receive_all(
        WEST,
        &ipv6_frame(&icmp6("fd01::2", "ff02::1:ff00:1", 255, Icmpv6Message::Ndp(message))),
    );
    let frames = host.sent_on(WEST);
    let is_router = with_icmp6(&frames[0], |_, message| match message {
        Icmpv6Message::Ndp(NdpMessage::NeighbourAdvertisement { router, .. }) => router,
        other => panic!("{other:?}"),
    });
    assert_eq!(is_router, Some(true));
    assert!(
        host.ip.interface(WEST).unwrap().groups().contains(&ip("224.0.0.2"))
            && host.ip.interface(WEST).unwrap().groups().contains(&ip("ff02::2"))
    );
}

// spec: RFC8200 4, 4.3
#[test]
fn only_hop_by_hop_options_are_looked_at() {
    let mut host = router();
    let with_header = |first: u8, body: [u8; 8]| {
        let header = Ipv6Header::new(v6("fd01::2"), v6("fd02::2"), first, 0);
        ipv6_packet(header, &[&body[..], &[0; 8]].concat())
    };
    // An unknown hop-by-hop option that asks for a parameter problem gets one; among destination options it passes.
    let unknown = [protocol::UDP, 0, 0xc5, 4, 0, 0, 0, 0];
    let packet = with_header(protocol::HOP_BY_HOP, unknown);
    assert_eq!(from_west(&mut host, &packet), Received::Dropped(Drop::BadOption));
    let pointer = with_icmp6(&host.sent_on(WEST)[0], |_, message| match message {
        Icmpv6Message::ParameterProblem { code: 2, pointer, .. } => pointer,
        other => panic!("{other:?}"),
    });
    assert_eq!(pointer, Some(42));
    assert_eq!(from_west(&mut host, &with_header(protocol::DESTINATION_OPTIONS, unknown)), Received::Handled);
    assert_eq!(
        from_west(&mut host, &with_header(protocol::ROUTING, [17, 0, 0, 1, 0, 0, 0, 0])),
        Received::Handled
    );
    assert_eq!(host.sent_on(EAST).len(), 2);
}

#[test]
fn a_changed_route_is_seen_at_once() {
    let mut host = router();
    let packet = with_hops("10.1.0.2", "10.2.0.2", 64, 10);
    from_west(&mut host, &packet);
    assert_eq!(host.sent_on(EAST).len(), 1);
    let route = Route {
        destination: "10.2.0.2/32".parse().unwrap(),
        link: LINE,
        gateway: None,
        preference: 1,
        origin: RouteOrigin::Configured,
    };
    host.ip.add_route(route).unwrap();
    from_west(&mut host, &packet);
    assert_eq!((host.sent_on(EAST).len(), host.sent_on(LINE).len()), (0, 1));
    host.ip.remove_route(&route).unwrap();
    from_west(&mut host, &packet);
    assert_eq!((host.sent_on(EAST).len(), host.sent_on(LINE).len()), (1, 0));
}

#[test]
fn a_links_mtu_may_change_while_it_runs() {
    let mut host = router();
    let packet = udp4("10.1.0.2", "10.2.0.2", &[1; 1400]);
    assert_eq!(from_west(&mut host, &packet), Received::Handled);
    let path = host.route("10.2.0.2").unwrap();
    host.ip.set_mtu(EAST, 1280).unwrap();
    assert_ne!(host.ip.paths().generation(), path.generation);
    assert_eq!(host.route("10.2.0.2").unwrap().mtu_bytes, 1280);
    assert_eq!(from_west(&mut host, &packet), Received::Dropped(Drop::TooBig));
    assert_eq!(host.ip.set_mtu(EAST, 1279), Err(ConfigureError::Invalid), "it speaks IPv6");
    assert_eq!(host.ip.set_mtu(LinkId(0), 1500), Err(ConfigureError::Invalid));
    assert_eq!(host.ip.set_mtu(LinkId(9), 1500), Err(ConfigureError::NoLink));
    host.assert_no_leaks();
}

/// A TCP packet of `payload` bytes whose checksum is left to a device, and whose segments bear `segment_bytes`.
fn unfinished(payload_bytes: usize) -> Vec<u8> {
    let tcp = inhost_wire::tcp::TcpHeader { window: 9, ..Default::default() };
    let mut segment = vec![0; 20];
    assert_eq!(tcp.emit(&mut segment), 20);
    segment.extend((0..payload_bytes).map(|i| i as u8));
    let (source, destination) = (v4("10.1.0.2").into(), v4("10.2.0.2").into());
    let sum = inhost_wire::checksum::pseudo_header(source, destination, protocol::TCP, segment.len() as u32);
    segment[16..18].copy_from_slice(&sum.folded().to_be_bytes());
    let header = Ipv4Header::new(v4("10.1.0.2"), v4("10.2.0.2"), protocol::TCP, 0);
    ipv4_packet(header, &[], &segment)
}
fn receive_unfinished(host: &mut Host, packet: &[u8], segment_bytes: u16) {
    let bytes = frame(CARD, PEER_CARD, EtherType::IPV4, packet);
    let mut packet = host.pool.take(bytes.len()).unwrap();
    packet.append(&bytes);
    packet.set_segment_bytes(segment_bytes);
    packet.set_checksum(inhost_buf::Checksum::Partial);
    host.with(|ip, env| ip.receive(WEST, &mut packet, env));
    host.pool.give(packet);
}

#[test]
fn what_a_device_put_together_goes_on_as_the_packets_that_it_was() {
    let mut host = router();
    receive_unfinished(&mut host, &unfinished(4_000), 1_400);
    let sent = packets(host.sent_on(EAST));
    let mut data = Vec::new();
    for packet in &sent {
        let view = Ipv4View::new(packet).unwrap();
        assert!(view.checksum_ok() && packet.len() <= 1_500 && view.time_to_live() == 63);
        let segment = inhost_wire::tcp::TcpView::new(view.payload()).unwrap();
        assert!(segment.checksum_ok(view.source().into(), view.destination().into()));
        assert_eq!(segment.sequence().0 as usize, data.len());
        data.extend_from_slice(segment.payload());
    }
    assert_eq!((sent.len(), data), (3, (0..4_000).map(|i| i as u8).collect::<Vec<u8>>()));
    assert_eq!(host.pool.outstanding_bytes(), 0);
}

#[test]
fn a_checksum_that_was_left_to_the_device_is_made_before_a_packet_goes_on() {
    let mut host = router();
    receive_unfinished(&mut host, &unfinished(333), 0);
    let sent = packets(host.sent_on(EAST));
    let view = Ipv4View::new(&sent[0]).unwrap();
    let segment = inhost_wire::tcp::TcpView::new(view.payload()).unwrap();
    assert!(sent.len() == 1 && segment.checksum_ok(view.source().into(), view.destination().into()));
}
