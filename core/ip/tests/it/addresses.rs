//! Tests for doubles, conflicts, router discovery and stateless addresses, as frames show them.

use crate::common::*;
use inhost_base::{Duration, Instant, IpAddr, LinkId};
use inhost_event::Drop;
use inhost_ip::*;
use inhost_wire::arp::ArpOperation;
use inhost_wire::icmpv6::Icmpv6Message;
use inhost_wire::ndp::{NdpMessage, NdpOptions, PrefixInformation};

fn tested(addresses: &[&str]) -> (Host, LinkId) {
    let mut host = Host::new(3);
    let mut config = quiet(InterfaceConfig::new("ethernet", Medium::Ethernet(CARD)), addresses);
    config.duplicate_detection = DuplicateDetection::BeforeUse;
    let link = host.add(config);
    (host, link)
}
fn state(host: &Host, address: &str) -> AddressState {
    let found = host
        .ip
        .interface(LinkId(1))
        .unwrap()
        .addresses()
        .iter()
        .find(|assigned| assigned.address() == ip(address));
    found.expect("assigned").state()
}

// spec: RFC5227 2.1, 2.3
#[test]
fn an_ipv4_address_is_probed_then_announced_then_used() {
    let (mut host, _) = tested(&["10.0.0.1/24"]);
    assert_eq!(host.route("10.0.0.2"), Err(RouteError::Tentative));
    assert_eq!(host.receive(&arp_request(PEER_CARD, "10.0.0.2", "10.0.0.1")), Received::Handled);
    assert!(host.sent().is_empty(), "not ours yet");
    let sent = host.secs(12);
    let sent: Vec<_> = sent.iter().filter_map(|frame| as_arp(frame)).collect();
    assert_eq!(sent.len(), 5);
    for packet in &sent[..3] {
        assert!(packet.sender_protocol.is_unspecified() && packet.target_protocol == v4("10.0.0.1"));
    }
    for packet in &sent[3..] {
        assert_eq!((packet.sender_protocol, packet.target_protocol), (v4("10.0.0.1"), v4("10.0.0.1")));
    }
    assert_eq!(host.route("10.0.0.2").unwrap().source, ip("10.0.0.1"));
    assert!(host.ip.addresses_are_tested());
}

// spec: RFC5227 2.1.1
#[test]
fn a_conflict_during_the_test_loses_the_address() {
    // Somebody has it; or somebody tests it too.
    let answers = [
        arp_reply(PEER_CARD, "10.0.0.1", CARD, "0.0.0.0"),
        arp_request(PEER_CARD, "10.0.0.1", "10.0.0.1"),
        arp_request(PEER_CARD, "0.0.0.0", "10.0.0.1"),
    ];
    for answer in answers {
        let (mut host, _) = tested(&["10.0.0.1/24"]);
        host.secs(2);
        host.receive(&answer);
        assert_eq!(state(&host, "10.0.0.1"), AddressState::Duplicate);
        assert!(host.secs(60).is_empty());
        assert_eq!(host.route("10.0.0.2"), Err(RouteError::NoSource));
        assert!(!host.ip.paths().is_local(ip("10.0.0.1")));
    }
}

// spec: RFC5227 2.4
#[test]
fn an_address_in_use_is_defended_at_most_every_ten_seconds() {
    let mut host = Host::on_ethernet(1, CARD, &["10.0.0.1/24"]);
    host.secs(10);
    let mut defences = 0;
    for _ in 0..30 {
        for _ in 0..5 {
            host.receive(&arp_request(PEER_CARD, "10.0.0.1", "10.0.0.9"));
        }
        defences += host.sent().len();
        host.secs(1);
    }
    assert_eq!(defences, 3);
    assert_eq!(state(&host, "10.0.0.1"), AddressState::Preferred);
    assert_eq!(host.ip.interface(LinkId(1)).unwrap().counters().address_conflicts, 150);
}

// spec: RFC4862 5.4
#[test]
fn an_ipv6_address_is_tested_and_lost_to_whoever_has_it() {
    let test_of = |frame: &Vec<u8>| {
        with_icmp6(frame, |header, message| match message {
            Icmpv6Message::Ndp(NdpMessage::NeighbourSolicitation { target, options }) => {
                assert!(header.source.is_unspecified() && options.source_link_layer.is_none());
                Some(target)
            }
            _ => None,
        })
        .flatten()
    };
    let (mut host, _) = tested(&["fd00::1/64"]);
    let sent = host.secs(1);
    assert_eq!(sent.iter().filter_map(test_of).collect::<Vec<_>>(), [v6("fd00::1")]);
    let options = NdpOptions { target_link_layer: Some(PEER_CARD), ..NdpOptions::default() };
    let theirs = NdpMessage::NeighbourAdvertisement {
        router: false,
        solicited: false,
        override_cache: true,
        target: v6("fd00::1"),
        options,
    };
    host.receive(&ipv6_frame(&icmp6("fd00::1", "ff02::1", 255, Icmpv6Message::Ndp(theirs))));
    assert_eq!(state(&host, "fd00::1"), AddressState::Duplicate);

    let (mut host, _) = tested(&["fd00::1/64"]);
    let same = NdpMessage::NeighbourSolicitation { target: v6("fd00::1"), options: NdpOptions::default() };
    host.receive(&ipv6_frame(&icmp6("::", "ff02::1:ff00:1", 255, Icmpv6Message::Ndp(same))));
    assert_eq!(state(&host, "fd00::1"), AddressState::Duplicate, "both test it");

    let (mut host, _) = tested(&["fd00::1/64"]);
    host.secs(3);
    assert_eq!(state(&host, "fd00::1"), AddressState::Preferred);
}

// spec: RFC7217 5, 6
#[test]
fn stable_addresses_follow_from_secret_name_and_prefix_and_step_aside() {
    let link_local = |secret: u8, name: &str, seed: u64| {
        let mut host = Host::new(seed);
        let mut config = IpConfig::default();
        config.stable_secret = Some([secret; 16]);
        host.ip = Ip::new(config, &mut host.random);
        host.add(InterfaceConfig::new(name, Medium::Ethernet(CARD)));
        let address = host.ip.interface(LinkId(1)).unwrap().addresses()[0].address();
        (host, address)
    };
    let (mut host, first) = link_local(1, "a", 1);
    assert_eq!(first, link_local(1, "a", 99).1, "whatever the seed");
    assert_ne!(first, link_local(1, "b", 1).1);
    assert_ne!(first, link_local(2, "a", 1).1);
    let mut seen = vec![first];
    for _ in 0..3 {
        let IpAddr::V6(taken) = *seen.last().unwrap() else { panic!() };
        let message = NdpMessage::NeighbourAdvertisement {
            router: false,
            solicited: false,
            override_cache: true,
            target: taken,
            options: NdpOptions::default(),
        };
        host.receive(&ipv6_frame(&icmp6(&taken.to_string(), "ff02::1", 255, Icmpv6Message::Ndp(message))));
        let next = host.ip.interface(LinkId(1)).unwrap().addresses()[0].address();
        assert!(!seen.contains(&next));
        seen.push(next);
    }
    assert_eq!(host.ip.interface(LinkId(1)).unwrap().addresses().len(), 1);
}

fn advertisement(router: &str, lifetime_s: u16, prefixes: &[PrefixInformation]) -> Vec<u8> {
    let mut options =
        NdpOptions { source_link_layer: Some(PEER_CARD), mtu: Some(1400), ..NdpOptions::default() };
    for prefix in prefixes {
        assert!(options.prefixes.push(*prefix));
    }
    let message = NdpMessage::RouterAdvertisement {
        hop_limit: 33,
        managed: false,
        other_configuration: false,
        router_lifetime_s: lifetime_s,
        reachable_time_ms: 0,
        retransmit_timer_ms: 0,
        options,
    };
    ipv6_frame(&icmp6(router, "ff02::1", 255, Icmpv6Message::Ndp(message)))
}
fn prefix(text: &str, valid_lifetime_s: u32, preferred_lifetime_s: u32) -> PrefixInformation {
    PrefixInformation {
        prefix: v6(text),
        prefix_bits: 64,
        on_link: true,
        autonomous: true,
        valid_lifetime_s,
        preferred_lifetime_s,
    }
}
fn listening() -> Host {
    let mut host = Host::new(5);
    host.add(InterfaceConfig::new("ethernet", Medium::Ethernet(CARD)));
    host
}

// spec: RFC4861 6.3.7
#[test]
fn routers_are_solicited_three_times() {
    let mut host = listening();
    let count = host
        .secs(60)
        .iter()
        .filter_map(|frame| {
            with_icmp6(frame, |_, message| {
                matches!(message, Icmpv6Message::Ndp(NdpMessage::RouterSolicitation { .. }))
            })
        })
        .filter(|is| *is)
        .count();
    assert_eq!(count, 3);
}

// spec: RFC4861 6.3.4, RFC4862 5.5.3
#[test]
fn a_router_gives_a_gateway_an_address_an_mtu_and_takes_them_back() {
    let mut host = listening();
    host.secs(3);
    host.receive(&advertisement("fe80::99", 1800, &[prefix("2001:db8:1::", 86_400, 3600)]));
    host.secs(3);
    let path = host.route("2001:db8:f::1").unwrap();
    assert_eq!((path.next_hop, path.mtu_bytes, path.hop_limit), (ip("fe80::99"), 1400, 33));
    assert_eq!(path.source.to_string()[..11], *"2001:db8:1:");
    assert_eq!(host.next_hop("2001:db8:1::5"), "2001:db8:1::5", "on the link");
    assert!(matches!(host.resolve(&path), Resolution::Ready(_)), "learnt from the advertisement");
    // Deprecated in time: still ours.
    host.secs(3600);
    let made = *host
        .ip
        .interface(LinkId(1))
        .unwrap()
        .addresses()
        .iter()
        .find(|a| a.address() == path.source)
        .unwrap();
    assert_eq!(made.state(), AddressState::Deprecated);
    assert_eq!(host.route("2001:db8:f::1"), Err(RouteError::NoRoute), "the router's time is over");
    host.receive(&advertisement("fe80::99", 1800, &[]));
    assert_eq!(host.next_hop("2001:db8:f::1"), "fe80::99");
    host.receive(&advertisement("fe80::99", 0, &[]));
    assert_eq!(host.route("2001:db8:f::1"), Err(RouteError::NoRoute));
    host.secs(90_000);
    assert!(!host.ip.paths().is_local(path.source), "its lifetime is over");
}

// spec: RFC4862 5.5.3
#[test]
fn a_forged_lifetime_cannot_cut_an_address_short() {
    let mut host = listening();
    host.receive(&advertisement("fe80::99", 1800, &[prefix("2001:db8:1::", 86_400, 3600)]));
    host.receive(&advertisement("fe80::99", 1800, &[prefix("2001:db8:1::", 1, 1)]));
    let made = host
        .ip
        .interface(LinkId(1))
        .unwrap()
        .addresses()
        .iter()
        .find(|a| a.router().is_some())
        .copied()
        .unwrap();
    assert_eq!(made.valid_until(), host.now + Duration::from_secs(7200));
}

#[test]
fn advertisements_cannot_grow_the_tables() {
    let mut host = listening();
    for i in 0..1000 {
        let prefixes: Vec<_> =
            (0..8).map(|j| prefix(&format!("2001:db8:{:x}::", i * 8 + j), 86_400, 3600)).collect();
        host.receive(&advertisement(&format!("fe80::{i:x}"), 1800, &prefixes));
    }
    assert!(host.ip.interface(LinkId(1)).unwrap().addresses().len() <= limits::ADDRESSES);
    let routers = host.ip.paths().routes().iter().filter(|route| route.gateway.is_some()).count();
    assert_eq!(routers, limits::ADVERTISED_ROUTERS);
    assert!(host.ip.paths().routes().len() < 40);
    let before = host.ip.paths().routes().len();
    host.receive(&ipv6_frame(&{
        let message = NdpMessage::RouterAdvertisement {
            hop_limit: 0,
            managed: false,
            other_configuration: false,
            router_lifetime_s: 9000,
            reachable_time_ms: 0,
            retransmit_timer_ms: 0,
            options: NdpOptions::default(),
        };
        icmp6("2001:db8::1", "ff02::1", 255, Icmpv6Message::Ndp(message))
    }));
    assert_eq!((host.ip.paths().routes().len(), host.drops(Drop::NotCredible)), (before, 1));
}

#[test]
fn in_use_detection_gives_an_address_up_after_all() {
    let mut host = Host::new(3);
    let mut config = quiet(InterfaceConfig::new("ethernet", Medium::Ethernet(CARD)), &["10.0.0.1/24"]);
    config.duplicate_detection = DuplicateDetection::WhileInUse;
    host.add(config);
    assert!(host.route("10.0.0.2").is_ok());
    host.secs(2);
    let generation = host.ip.paths().generation();
    host.receive(&arp_reply(PEER_CARD, "10.0.0.1", CARD, "0.0.0.0"));
    assert_ne!(host.ip.paths().generation(), generation);
    assert_eq!(host.route("10.0.0.2"), Err(RouteError::NoSource));
    assert!(host.now > Instant::ZERO);
    let asks =
        |frame: &Vec<u8>| as_arp(frame).is_some_and(|packet| packet.operation == ArpOperation::Request);
    assert!(!host.secs(30).iter().any(asks));
}
