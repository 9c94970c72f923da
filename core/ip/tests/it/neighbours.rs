//! ARP and neighbour discovery as frames show them.

use crate::common::*;
use inhost_base::{HardwareAddress, LinkId};
use inhost_event::Drop;
use inhost_ip::*;
use inhost_wire::arp::ArpOperation;
use inhost_wire::icmpv6::Icmpv6Message;
use inhost_wire::ndp::{NdpMessage, NdpOptions};

// spec: RFC1122 2.3.3-5, 3.2.2.6-2, 3.2.2.6-5
#[test]
fn two_hosts_find_each_other_and_ping() {
    for (a_address, b_address, to) in
        [("10.0.0.1/24", "10.0.0.2/24", "10.0.0.2"), ("fd00::1/64", "fd00::2/64", "fd00::2")]
    {
        let mut a = Host::on_ethernet(1, CARD, &[a_address]);
        let mut b = Host::on_ethernet(2, PEER_CARD, &[b_address]);
        let path = a.route(to).unwrap();
        assert_eq!(a.resolve(&path), Resolution::Pending);
        assert_eq!(a.ip.paths_mut().take_resolved(), None);
        settle(&mut [&mut a, &mut b]);
        assert_eq!(a.ip.paths_mut().take_resolved(), Some((LinkId(1), ip(to))));
        assert!(matches!(a.resolve(&path), Resolution::Ready(header) if header.bytes()[..6] == PEER_CARD.0));
        let mut wire = Wire::default();
        a.with(|ip, env| {
            ip.echo_request(
                &path,
                &EchoMessage { identifier: 0xbeef, sequence: 3, data: b"hello" },
                env,
                &mut wire,
            )
        })
        .unwrap();
        // b learnt of a from the question, so that it answers at once.
        assert_eq!(b.receive(&wire.frames[0]), Received::Handled);
        let answers = b.sent();
        assert_eq!(answers.len(), 1);
        let (received, data) = a.receive_all(LinkId(1), &answers[0]);
        let Received::EchoReply(reply) = received else { panic!("{received:?}") };
        assert_eq!((reply.source, reply.identifier, reply.sequence), (ip(to), 0xbeef, 3));
        assert_eq!(data, b"hello");
        a.assert_no_leaks();
        b.assert_no_leaks();
    }
}

// spec: RFC826
#[test]
fn a_request_for_us_is_answered_and_its_sender_learnt_and_no_other() {
    let mut host = Host::on_ethernet(1, CARD, &["10.0.0.1/24"]);
    host.receive(&arp_request(PEER_CARD, "10.0.0.2", "10.0.0.77"));
    assert!(host.sent().is_empty() && host.ip.interface(LinkId(1)).unwrap().neighbours().is_empty());
    host.receive(&arp_request(PEER_CARD, "10.0.0.2", "10.0.0.1"));
    let sent = host.sent();
    let reply = as_arp(&sent[0]).unwrap();
    assert_eq!((sent.len(), card_of(&sent[0]), reply.operation), (1, PEER_CARD, ArpOperation::Reply));
    assert_eq!((reply.sender_hardware, reply.sender_protocol), (CARD, v4("10.0.0.1")));
    assert_eq!((reply.target_hardware, reply.target_protocol), (PEER_CARD, v4("10.0.0.2")));
    assert_eq!(host.ip.interface(LinkId(1)).unwrap().neighbours().len(), 1);
    // Not from another network, though it asks for us.
    host.receive(&arp_request(PEER_CARD, "192.0.2.9", "10.0.0.1"));
    assert_eq!(host.ip.interface(LinkId(1)).unwrap().neighbours().len(), 1);
}

#[test]
fn forged_claims_do_not_move_a_neighbour() {
    let mut host = Host::on_ethernet(1, CARD, &["10.0.0.1/24"]);
    let path = host.route("10.0.0.2").unwrap();
    host.resolve(&path);
    host.sent();
    let at = |host: &mut Host| match host.resolve(&path) {
        Resolution::Ready(header) => HardwareAddress(*header.bytes().first_chunk().unwrap()),
        other => panic!("{other:?}"),
    };
    host.receive(&arp_reply(PEER_CARD, "10.0.0.2", CARD, "10.0.0.1"));
    assert_eq!(at(&mut host), PEER_CARD);
    // A reply, a gratuitous announcement, a request: none is believed, the old card is asked.
    for forged in [
        arp_reply(THIRD_CARD, "10.0.0.2", CARD, "10.0.0.1"),
        arp_request(THIRD_CARD, "10.0.0.2", "10.0.0.2"),
        arp_request(THIRD_CARD, "10.0.0.2", "10.0.0.1"),
    ] {
        host.receive(&forged);
        assert_eq!(at(&mut host), PEER_CARD);
    }
    let asked: Vec<_> = host
        .sent()
        .iter()
        .filter(|f| as_arp(f).unwrap().operation == ArpOperation::Request)
        .map(|f| card_of(f))
        .collect();
    assert_eq!(asked, [PEER_CARD]);
    // The neighbour has really moved: it does not answer at its old card, is given up and found at the new one.
    host.secs(4);
    assert_eq!(host.resolve(&path), Resolution::Failed);
    host.secs(3);
    assert_eq!(host.resolve(&path), Resolution::Pending);
    host.receive(&arp_reply(THIRD_CARD, "10.0.0.2", CARD, "10.0.0.1"));
    assert_eq!(at(&mut host), THIRD_CARD);
    // What contradicts itself is refused.
    let mut odd = arp_reply(PEER_CARD, "10.0.0.9", CARD, "10.0.0.1");
    odd[11] ^= 1;
    assert_eq!(host.receive(&odd), Received::Dropped(Drop::NotCredible));
}

fn solicitation(source: &str, destination: &str, hop_limit: u8, target: &str) -> Vec<u8> {
    let options = NdpOptions { source_link_layer: Some(PEER_CARD), ..NdpOptions::default() };
    let message = NdpMessage::NeighbourSolicitation { target: v6(target), options };
    ipv6_frame(&icmp6(source, destination, hop_limit, Icmpv6Message::Ndp(message)))
}

// spec: RFC4861 7.1.1, 7.2.4
#[test]
fn a_solicitation_is_answered_unless_it_comes_from_elsewhere() {
    let mut host = Host::on_ethernet(1, CARD, &["fd00::1/64"]);
    assert_eq!(
        host.receive(&solicitation("fd00::2", "ff02::1:ff00:1", 254, "fd00::1")),
        Received::Dropped(Drop::NotCredible)
    );
    assert_eq!(host.receive(&solicitation("fd00::2", "ff02::1:ff00:1", 255, "fd00::1")), Received::Handled);
    let sent = host.sent();
    assert_eq!((sent.len(), card_of(&sent[0])), (1, PEER_CARD));
    with_icmp6(&sent[0], |header, message| {
        assert_eq!((header.hop_limit, header.destination), (255, v6("fd00::2")));
        let Icmpv6Message::Ndp(NdpMessage::NeighbourAdvertisement {
            solicited, target, options, router, ..
        }) = message
        else {
            panic!("{message:?}");
        };
        assert_eq!((solicited, router, target), (true, false, v6("fd00::1")));
        assert_eq!(options.target_link_layer, Some(CARD));
    })
    .unwrap();
    assert_eq!(
        host.receive(&solicitation("fd00::2", "ff02::1:ff00:1", 255, "fd00::5")),
        Received::Dropped(Drop::NotForUs)
    );
    assert!(host.sent().is_empty());
}

// spec: RFC4861 7.2.4
#[test]
fn whoever_does_not_say_where_it_is_is_asked_before_it_is_answered() {
    let mut host = Host::on_ethernet(1, CARD, &["fd00::1/64"]);
    host.secs(30);
    let message = NdpMessage::NeighbourSolicitation { target: v6("fd00::1"), options: NdpOptions::default() };
    let packet = icmp6("fd00::2", "fd00::1", 255, Icmpv6Message::Ndp(message));
    assert_eq!(host.receive(&ipv6_frame(&packet)), Received::Handled);
    let target_of = |frame: &Vec<u8>| {
        with_icmp6(frame, |_, message| match message {
            Icmpv6Message::Ndp(NdpMessage::NeighbourSolicitation { target, .. }) => (true, target),
            Icmpv6Message::Ndp(NdpMessage::NeighbourAdvertisement { target, .. }) => (false, target),
            other => panic!("{other:?}"),
        })
        .unwrap()
    };
    assert_eq!(host.sent().iter().map(target_of).collect::<Vec<_>>(), [(true, v6("fd00::2"))]);
    let options = NdpOptions { target_link_layer: Some(PEER_CARD), ..NdpOptions::default() };
    let message = NdpMessage::NeighbourAdvertisement {
        router: false,
        solicited: true,
        override_cache: true,
        target: v6("fd00::2"),
        options,
    };
    host.receive(&ipv6_frame(&icmp6("fd00::2", "fd00::1", 255, Icmpv6Message::Ndp(message))));
    assert_eq!(host.sent().iter().map(target_of).collect::<Vec<_>>(), [(false, v6("fd00::1"))]);
}

// spec: RFC4861 7.2.5
#[test]
fn advertisements_that_nobody_asked_for_make_no_entry() {
    let mut host = Host::on_ethernet(1, CARD, &["fd00::1/64"]);
    let options = NdpOptions { target_link_layer: Some(THIRD_CARD), ..NdpOptions::default() };
    for i in 2..100 {
        let target = v6(&format!("fd00::{i}"));
        let message = NdpMessage::NeighbourAdvertisement {
            router: true,
            solicited: false,
            override_cache: true,
            target,
            options,
        };
        let packet = icmp6(&target.to_string(), "ff02::1", 255, Icmpv6Message::Ndp(message));
        assert_eq!(host.receive(&ipv6_frame(&packet)), Received::Dropped(Drop::NotCredible));
    }
    assert!(host.ip.interface(LinkId(1)).unwrap().neighbours().is_empty());
}

// spec: RFC1122 2.3.2.2-1
#[test]
fn our_own_answer_waits_for_the_neighbour_and_a_flood_does_not_grow_it() {
    let mut host = Host::on_ethernet(1, CARD, &["10.0.0.1/24"]);
    let request = inhost_wire::icmpv4::Icmpv4Message::EchoRequest { identifier: 1, sequence: 1, data: b"x" };
    for _ in 0..100 {
        host.receive(&ipv4_frame(&icmp4("10.0.0.2", "10.0.0.1", request)));
    }
    let sent = host.sent();
    assert_eq!(sent.len(), 1, "one question");
    assert_eq!(as_arp(&sent[0]).unwrap().target_protocol, v4("10.0.0.2"));
    host.receive(&arp_reply(PEER_CARD, "10.0.0.2", CARD, "10.0.0.1"));
    assert_eq!(host.sent().len(), limits::CONTROL_PACKETS_WAITING);
    host.receive(&ipv4_frame(&icmp4("10.0.0.3", "10.0.0.1", request)));
    host.secs(4);
    assert!(host.sent().is_empty(), "given up with the neighbour");
    assert_eq!(host.pool.outstanding_bytes(), 0);
}
