//! Fall-over between gateways, redirects, several links, and the choice of addresses.

use crate::common::*;
use inhost_base::{HardwareAddress, LinkId};
use inhost_event::Drop;
use inhost_ip::*;
use inhost_wire::icmpv4::{Icmpv4Message, RedirectCode};
use inhost_wire::icmpv6::Icmpv6Message;
use inhost_wire::ndp::{NdpMessage, NdpOptions};

fn with_gateways() -> Host {
    let mut host = Host::new(1);
    let config = quiet(InterfaceConfig::new("ethernet", Medium::Ethernet(CARD)), &["10.0.0.1/24"])
        .with_gateway(v4("10.0.0.2"))
        .with_gateway(v4("10.0.0.3"));
    host.add(config);
    host
}
fn answer(host: &mut Host, gateway: &str) {
    host.receive(&arp_reply(PEER_CARD, gateway, CARD, "10.0.0.1"));
    host.sent();
}

// spec: RFC1122 3.3.1.4-1, 3.3.1.4-3, 3.3.1.5-1, 3.3.1.6-1
#[test]
fn a_silent_gateway_is_left_for_the_next_and_taken_back_when_it_speaks() {
    let mut host = with_gateways();
    let path = host.route("192.0.2.1").unwrap();
    assert_eq!(path.next_hop, ip("10.0.0.2"));
    assert_eq!(host.resolve(&path), Resolution::Pending);
    host.sent();
    host.secs(4);
    assert_eq!(host.ip.paths_mut().take_resolved(), Some((LinkId(1), ip("10.0.0.2"))));
    assert_ne!(host.ip.paths().generation(), path.generation);
    let path = host.route("192.0.2.1").unwrap();
    assert_eq!(path.next_hop, ip("10.0.0.3"));
    host.resolve(&path);
    answer(&mut host, "10.0.0.3");
    // The silent one is asked now and then, and is preferred again once it answers.
    let sent = host.secs(31);
    assert!(sent.iter().any(|frame| as_arp(frame).is_some_and(|p| p.target_protocol == v4("10.0.0.2"))));
    assert_eq!(host.next_hop("192.0.2.1"), "10.0.0.3");
    answer(&mut host, "10.0.0.2");
    assert_eq!(host.next_hop("192.0.2.1"), "10.0.0.2");
}

// spec: RFC1122 3.3.1.4-2, 3.3.1.4-4
#[test]
fn a_gateway_that_answers_but_does_not_forward_is_left_on_the_transports_advice() {
    let mut host = with_gateways();
    let path = host.route("192.0.2.1").unwrap();
    host.resolve(&path);
    answer(&mut host, "10.0.0.2");
    for round in 0..3 {
        assert_eq!(host.next_hop("192.0.2.1"), "10.0.0.2", "{round}");
        host.with(|ip, env| ip.paths_mut().suspect(&path, env));
        // It is asked as a neighbour, and answers.
        assert!(host.sent().iter().any(|frame| card_of(frame) == PEER_CARD));
        answer(&mut host, "10.0.0.2");
    }
    assert_eq!(host.next_hop("192.0.2.1"), "10.0.0.3");
    // With only one it is kept.
    let mut host = Host::new(1);
    let config = quiet(InterfaceConfig::new("ethernet", Medium::Ethernet(CARD)), &["10.0.0.1/24"]);
    host.add(config.with_gateway(v4("10.0.0.2")));
    let path = host.route("192.0.2.1").unwrap();
    for _ in 0..10 {
        host.with(|ip, env| ip.paths_mut().suspect(&path, env));
    }
    assert_eq!(host.next_hop("192.0.2.1"), "10.0.0.2");
}

/// A datagram from beyond the gateway whose card is `card`.
fn through(card: HardwareAddress, source: &str) -> Vec<u8> {
    let mut frame = ipv4_frame(&udp4(source, "10.0.0.1", &[0; 8]));
    frame[6..12].copy_from_slice(&card.0);
    frame
}

// UCLA §2.3
#[test]
fn a_call_is_answered_through_the_gateway_that_brought_it() {
    let mut host = with_gateways();
    let second = THIRD_CARD;
    for (gateway, card) in [("10.0.0.2", PEER_CARD), ("10.0.0.3", second)] {
        host.receive(&arp_request(card, gateway, "10.0.0.1"));
    }
    host.sent();
    let link = LinkId(1);
    let came = |host: &mut Host, card, source: &str| {
        host.receive(&through(card, source));
        host.ip.gateway_towards(link, ip(source))
    };
    assert_eq!(came(&mut host, PEER_CARD, "192.0.2.1"), Some(ip("10.0.0.2")));
    assert_eq!(came(&mut host, HardwareAddress([2, 9, 9, 9, 9, 9]), "192.0.2.1"), None, "a stranger");
    let gateway = came(&mut host, second, "192.0.2.1");
    assert_eq!(gateway, Some(ip("10.0.0.3")));
    assert_eq!(host.ip.gateway_towards(LinkId(0), ip("192.0.2.1")), None);
    assert_eq!(host.ip.gateway_towards(link, ip("2001:db8::1")), None, "of the other family");
    let now = host.now;
    let route = |host: &mut Host, gateway, to: &str| {
        host.ip.paths_mut().route_through(gateway, ip(to), None, Some(link), now).unwrap().next_hop
    };
    assert_eq!(route(&mut host, gateway, "192.0.2.1"), ip("10.0.0.3"));
    assert_eq!(route(&mut host, Some(ip("10.0.0.9")), "192.0.2.1"), ip("10.0.0.2"), "no route names it");
    assert_eq!(route(&mut host, gateway, "10.0.0.77"), ip("10.0.0.77"), "on the link itself");
    assert_eq!(host.next_hop("192.0.2.1"), "10.0.0.2", "calls of our own go the preferred way");
    // When it does not forward, the other takes over.
    let path = host.ip.paths_mut().route_through(gateway, ip("192.0.2.1"), None, None, now).unwrap();
    for _ in 0..3 {
        host.with(|ip, env| ip.paths_mut().suspect(&path, env));
    }
    assert_eq!(route(&mut host, gateway, "192.0.2.1"), ip("10.0.0.2"));
}

fn redirect(from: &str, about: &str, to: &str) -> Vec<u8> {
    let invoking = udp4("10.0.0.1", about, &[0; 8]);
    let message = Icmpv4Message::Redirect { code: RedirectCode::Host, gateway: v4(to), invoking: &invoking };
    ipv4_frame(&icmp4(from, "10.0.0.1", message))
}

// spec: RFC1122 3.2.2.2-2, 3.2.2.2-3, 3.2.2.2-4, 3.3.1.2-1, 3.3.1.2-2
#[test]
fn a_redirect_is_accepted_from_the_current_gateway_only() {
    let mut host = with_gateways();
    let refused = [
        redirect("10.0.0.3", "192.0.2.1", "10.0.0.4"), // not the current gateway
        redirect("10.0.0.2", "192.0.2.1", "192.0.2.9"), // not on the link
        redirect("10.0.0.2", "192.0.2.1", "10.0.0.1"), // ourselves
        redirect("10.0.0.2", "192.0.2.1", "10.0.0.255"), // everybody
        redirect("10.0.0.2", "192.0.2.1", "10.0.0.2"), // no change
        redirect("10.0.0.2", "10.0.0.9", "10.0.0.4"),  // a neighbour
    ];
    for frame in &refused {
        assert_eq!(host.receive_redirect(frame), Err(Drop::NotCredible));
    }
    let generation = host.ip.paths().generation();
    assert_eq!(host.receive_redirect(&redirect("10.0.0.2", "192.0.2.1", "10.0.0.4")), Ok(()));
    assert_ne!(host.ip.paths().generation(), generation);
    assert_eq!(
        (host.next_hop("192.0.2.1"), host.next_hop("192.0.2.2")),
        ("10.0.0.4".into(), "10.0.0.2".into())
    );
    // From the new one it is believed again; a dead one is forgotten; and all end in time.
    assert_eq!(host.receive_redirect(&redirect("10.0.0.4", "192.0.2.1", "10.0.0.5")), Ok(()));
    let path = host.route("192.0.2.1").unwrap();
    host.resolve(&path);
    host.sent();
    host.secs(4);
    assert_eq!(host.next_hop("192.0.2.1"), "10.0.0.2");
    host.receive_redirect(&redirect("10.0.0.2", "192.0.2.1", "10.0.0.4")).unwrap();
    host.secs(601);
    assert_eq!((host.ip.paths().redirects(), host.next_hop("192.0.2.1")), (0, "10.0.0.2".into()));
}

#[test]
fn redirects_are_bounded() {
    let mut host = with_gateways();
    for i in 0..1000u32 {
        let about = std::net::Ipv4Addr::from(0xc000_0200 + i).to_string();
        host.receive_redirect(&redirect("10.0.0.2", &about, "10.0.0.4")).unwrap();
    }
    assert_eq!(host.ip.paths().redirects(), limits::REDIRECTS);
}

// spec: RFC4861 8.1, 8.3
#[test]
fn an_ipv6_redirect_is_accepted_from_the_current_router_only() {
    let mut host = Host::new(1);
    let config =
        quiet(InterfaceConfig::new("ethernet", Medium::Ethernet(CARD)), &["fd00::1/64", "fe80::1/64"]);
    host.add(config.with_gateway(v6("fe80::2")));
    let redirect = |from: &str, hops: u8| {
        let invoking = udp6("fd00::1", "2001:db8::1", &[0; 8]);
        let (target_link_layer, redirected) = (Some(THIRD_CARD), Some(&invoking[..]));
        let options = NdpOptions { target_link_layer, redirected, ..NdpOptions::default() };
        let message = NdpMessage::Redirect { target: v6("fe80::3"), destination: v6("2001:db8::1"), options };
        ipv6_frame(&icmp6(from, "fd00::1", hops, Icmpv6Message::Ndp(message)))
    };
    assert_eq!(host.receive_redirect(&redirect("fe80::4", 255)), Err(Drop::NotCredible));
    assert_eq!(host.receive_redirect(&redirect("fe80::2", 64)), Err(Drop::NotCredible));
    assert_eq!(host.next_hop("2001:db8::1"), "fe80::2");
    assert_eq!(host.receive_redirect(&redirect("fe80::2", 255)), Ok(()));
    let path = host.route("2001:db8::1").unwrap();
    assert_eq!(path.next_hop, ip("fe80::3"));
    assert!(matches!(host.resolve(&path), Resolution::Ready(header) if header.bytes()[..6] == THIRD_CARD.0));
}

// spec: RFC1122 3.2.1.3-2, 3.3.4.2-2
#[test]
fn packets_keep_to_the_link_of_their_address() {
    let mut host = Host::on_ethernet(1, CARD, &["10.0.0.1/24"]);
    let second = host.add(quiet(InterfaceConfig::new("line", Medium::Ip), &["10.1.0.1/24"]));
    let now = host.now;
    let mut route = |to: &str, from: Option<&str>, by: Option<LinkId>| {
        host.ip.paths_mut().route(ip(to), from.map(ip), by, now).map(|path| (path.link, path.source))
    };
    assert_eq!(route("10.1.0.2", None, None), Ok((second, ip("10.1.0.1"))));
    assert_eq!(route("10.1.0.2", Some("10.0.0.1"), None), Err(RouteError::NoRoute));
    assert_eq!(route("10.1.0.2", None, Some(LinkId(1))), Err(RouteError::NoRoute));
    assert_eq!(route("10.1.0.2", Some("10.7.0.1"), None), Err(RouteError::NotOurs));
    assert_eq!(route("10.1.0.2", None, Some(LinkId(9))), Err(RouteError::NoLink));
    // Our own addresses are reached within the host, whatever link has them.
    assert_eq!(route("10.1.0.1", None, None), Ok((LinkId(0), ip("10.1.0.1"))));
    assert_eq!(route("10.1.0.1", Some("10.0.0.1"), None), Ok((LinkId(0), ip("10.0.0.1"))));
    assert_eq!(route("127.0.0.1", None, None), Ok((LinkId(0), ip("127.0.0.1"))));
    assert_eq!(route("::1", None, None), Ok((LinkId(0), ip("::1"))));
    for bad in ["0.0.0.0", "0.1.2.3", "240.0.0.1", "::", "::ffff:10.0.0.1"] {
        assert_eq!(route(bad, None, None), Err(RouteError::BadDestination), "{bad}");
    }
    // A packet for one link's address that comes by another is not for us.
    assert_eq!(
        host.receive(&ipv4_frame(&udp4("10.0.0.2", "10.1.0.1", &[0; 8]))),
        Received::Dropped(Drop::NotForUs)
    );
}

#[test]
fn a_link_that_takes_any_address_answers_from_any() {
    let mut host = Host::new(1);
    let mut config = InterfaceConfig::new("user", Medium::Ip);
    config.any_address = true;
    let link = host.add(config.with_address("10.9.0.1/24".parse().unwrap()));
    let (received, _) = host.receive_all(link, &udp4("10.9.0.2", "93.184.216.34", &[0; 12]));
    let Received::Datagram(datagram) = received else { panic!("{received:?}") };
    assert!(datagram.to_unicast);
    let now = host.now;
    let path =
        host.ip.paths_mut().route(datagram.source, Some(datagram.destination), Some(link), now).unwrap();
    assert_eq!((path.source, path.link), (ip("93.184.216.34"), link));
    // Pings to other addresses are left to the gateway; to the link's own address they are answered here.
    let ping = Icmpv4Message::EchoRequest { identifier: 5, sequence: 6, data: b"who" };
    let (received, data) = host.receive_all(link, &icmp4("10.9.0.2", "93.184.216.34", ping));
    let Received::EchoRequest(request) = received else { panic!("{received:?}") };
    assert_eq!((request.identifier, request.sequence, data.as_slice()), (5, 6, b"who".as_slice()));
    host.with(|ip, env| ip.echo_reply(&path, &EchoMessage { identifier: 5, sequence: 6, data: &data }, env))
        .unwrap();
    assert_eq!(host.sent_on(link).len(), 1);
    assert_eq!(host.receive_all(link, &icmp4("10.9.0.2", "10.9.0.1", ping)).0, Received::Handled);
    assert_eq!(host.sent_on(link).len(), 1);
    for bad in ["127.0.0.1", "0.0.0.0", "240.1.1.1", "224.0.0.9"] {
        let (received, _) = host.receive_all(link, &udp4("10.9.0.2", bad, &[0; 12]));
        assert_eq!(received, Received::Dropped(Drop::NotForUs), "{bad}");
    }
}

#[test]
fn pings_to_any_address_are_answered_where_that_is_asked_for() {
    let mut host = Host::new(1);
    let mut config = InterfaceConfig::new("user", Medium::Ip);
    config.any_address = true;
    config.answer_any_echo = true;
    let link = host.add(config.with_address("10.9.0.1/24".parse().unwrap()));
    let ping = Icmpv4Message::EchoRequest { identifier: 5, sequence: 6, data: b"who" };
    let (received, _) = host.receive_all(link, &icmp4("10.9.0.2", "93.184.216.34", ping));
    assert_eq!(received, Received::Handled);
    let sent = host.sent_on(link);
    assert_eq!(sent.len(), 1);
    assert_eq!((&sent[0][12..16], &sent[0][16..20]), (&[93, 184, 216, 34][..], &[10, 9, 0, 2][..]));
}

// spec: RFC6724 5
#[test]
fn the_source_suits_the_destination() {
    let addresses = ["2001:db8:1::1/64", "fd00:1::1/64", "fe80::1/64", "2002:c000:204::1/64", "10.0.0.1/8"];
    let mut host = Host::new(1);
    let config = quiet(InterfaceConfig::new("ethernet", Medium::Ethernet(CARD)), &addresses);
    host.add(config.with_gateway(v6("fe80::2")).with_gateway(v4("10.0.0.2")));
    for (to, from) in [
        ("2001:db8:9::1", "2001:db8:1::1"),
        ("fd00:1::9", "fd00:1::1"),
        ("fd77::9", "fd00:1::1"),
        ("fe80::9", "fe80::1"),
        ("2002:c633:6401::1", "2002:c000:204::1"),
        ("ff02::5", "fe80::1"),
        ("192.0.2.1", "10.0.0.1"),
    ] {
        assert_eq!(host.route(to).unwrap().source, ip(from), "{to}");
    }
}

// spec: RFC6724 6
#[test]
fn destinations_are_tried_in_the_order_that_suits_our_addresses() {
    let order = |addresses: &[&str], gateways: &[&str], destinations: &[&str]| {
        let mut host = Host::new(1);
        let mut config = quiet(InterfaceConfig::new("ethernet", Medium::Ethernet(CARD)), addresses);
        config.gateways = gateways.iter().map(|gateway| ip(gateway)).collect();
        host.add(config);
        let mut list: Vec<_> = destinations.iter().map(|destination| ip(destination)).collect();
        let now = host.now;
        host.ip.paths_mut().order_destinations(&mut list, now);
        list.iter().map(|address| address.to_string()).collect::<Vec<_>>()
    };
    let both = ["198.51.100.121", "2001:db8:1::1"];
    let dual = ["2001:db8:1::2/64", "fe80::1/64", "10.1.2.4/24"];
    assert_eq!(order(&dual, &["fe80::2", "10.1.2.1"], &both), ["2001:db8:1::1", "198.51.100.121"]);
    // Without a global IPv6 address IPv4 comes first (rules 1 and 2).
    assert_eq!(order(&["fe80::1/64", "10.1.2.4/24"], &["fe80::2", "10.1.2.1"], &both), both);
    assert_eq!(
        order(&["10.1.2.4/24"], &["10.1.2.1"], &["2001:db8::1", "198.51.100.121"])[0],
        "198.51.100.121"
    );
    // The smaller scope (rule 8), and the longer shared prefix (rule 9).
    assert_eq!(order(&dual, &["fe80::2"], &["2001:db8:1::1", "fe80::7"])[0], "fe80::7");
    let near = order(&dual, &["fe80::2"], &["2001:db8:ffff::1", "2001:db8:1::9"]);
    assert_eq!(near, ["2001:db8:1::9", "2001:db8:ffff::1"]);
    // Equals keep their order.
    let same = ["203.0.113.9", "198.51.100.121", "203.0.113.1"];
    assert_eq!(order(&["10.1.2.4/24"], &["10.1.2.1"], &same), same);
}
