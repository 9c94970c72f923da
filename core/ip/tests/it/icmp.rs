//! ICMP errors, ours and others'.

use crate::common::*;
use inhost_base::{HardwareAddress, LinkId};
use inhost_event::Drop;
use inhost_ip::*;
use inhost_wire::ethernet::EtherType;
use inhost_wire::icmpv4::{self, Icmpv4Message, Icmpv4View, TimeExceededCode, UnreachableCode};
use inhost_wire::icmpv6::{self, Icmpv6Message};
use inhost_wire::ipv4::Ipv4Header;
use inhost_wire::protocol;

/// Knows its neighbour in both families.
fn host() -> Host {
    let mut host = Host::on_ethernet(1, CARD, &["10.0.0.1/24", "fd00::1/64"]);
    host.receive(&arp_request(PEER_CARD, "10.0.0.2", "10.0.0.1"));
    let options = inhost_wire::ndp::NdpOptions { source_link_layer: Some(PEER_CARD), ..Default::default() };
    let message = inhost_wire::ndp::NdpMessage::NeighbourSolicitation { target: v6("fd00::1"), options };
    host.receive(&ipv6_frame(&icmp6("fd00::2", "ff02::1:ff00:1", 255, Icmpv6Message::Ndp(message))));
    host.sent();
    host
}
/// Hears a frame, and complains that nobody listens if it comes up.
fn refuse(host: &mut Host, frame: &[u8]) -> Vec<Vec<u8>> {
    let (received, mut packet) = host.receive_packet(frame);
    if let Received::Datagram(datagram) = received {
        let length = packet.len();
        host.with(|ip, env| ip.port_unreachable(&datagram, &mut packet, length, env));
    }
    host.pool.give(packet);
    host.sent()
}

// spec: RFC1122 3.2.2-2, 3.2.2-4, 3.3.8-1; RFC4443 2.4
#[test]
fn an_error_quotes_as_much_as_is_allowed() {
    let mut host = host();
    for payload_bytes in [0, 8, 100, 1400] {
        let payload = vec![7; payload_bytes];
        let packet = udp4("10.0.0.2", "10.0.0.1", &payload);
        let frames = refuse(&mut host, &ipv4_frame(&packet));
        let (header, body) = as_ipv4(&frames[0]).unwrap();
        assert_eq!((header.source, header.destination), (v4("10.0.0.1"), v4("10.0.0.2")));
        assert!(Icmpv4View::new(&body).unwrap().checksum_ok());
        let Icmpv4Message::DestinationUnreachable { code: UnreachableCode::Port, invoking, .. } =
            Icmpv4Message::parse(&Icmpv4View::new(&body).unwrap())
        else {
            panic!("{body:?}");
        };
        assert_eq!(invoking, &packet[..packet.len().min(576 - 28)]);

        let packet = udp6("fd00::2", "fd00::1", &payload);
        let frames = refuse(&mut host, &ipv6_frame(&packet));
        with_icmp6(&frames[0], |_, message| match message {
            Icmpv6Message::DestinationUnreachable { code: icmpv6::UnreachableCode::Port, invoking } => {
                assert_eq!(invoking, &packet[..packet.len().min(1280 - 48)]);
            }
            other => panic!("{other:?}"),
        })
        .unwrap();
    }
    host.assert_no_leaks();
}

// spec: RFC1122 3.2.2-5, 3.2.2-6, 3.2.2-8, 3.2.2-1, 3.2.2.7-1; RFC4443 2.4
#[test]
fn no_error_is_sent_about_errors_groups_or_bad_sources() {
    let mut host = host();
    let broadcast = frame(
        HardwareAddress::BROADCAST,
        PEER_CARD,
        EtherType::IPV4,
        &udp4("10.0.0.2", "10.0.0.255", &[0; 8]),
    );
    assert!(refuse(&mut host, &broadcast).is_empty());
    let group = frame(
        HardwareAddress([1, 0, 0x5e, 0, 0, 1]),
        PEER_CARD,
        EtherType::IPV4,
        &udp4("10.0.0.2", "224.0.0.1", &[0; 8]),
    );
    assert!(refuse(&mut host, &group).is_empty());
    assert!(refuse(&mut host, &ipv6_frame(&udp6("fd00::2", "ff02::1", &[0; 8]))).is_empty());
    // Unknown ICMP, and an error about what we never sent, are dropped in silence.
    let other = Icmpv4Message::Other { kind: 15, code: 0, body: &[0; 16] };
    assert_eq!(
        host.receive(&ipv4_frame(&icmp4("10.0.0.2", "10.0.0.1", other))),
        Received::Dropped(Drop::UnknownProtocol)
    );
    assert!(host.sent().is_empty());
}

// spec: RFC4443 2.4, RFC1812 4.3.2.8
#[test]
fn errors_are_limited_in_rate_and_the_limit_refills() {
    let mut host = host();
    let frame = ipv4_frame(&udp4("10.0.0.2", "10.0.0.1", &[0; 8]));
    let sent: usize = (0..1000).map(|_| refuse(&mut host, &frame).len()).sum();
    assert!((10..=50).contains(&sent), "{sent}");
    let counters = *host.ip.interface(LinkId(1)).unwrap().counters();
    assert_eq!(counters.sent_errors + counters.suppressed_errors, 1000);
    host.secs(5);
    assert_eq!(refuse(&mut host, &frame).len(), 1);
}

fn transport_error(received: Received) -> TransportError {
    match received {
        Received::Error(error) => error,
        other => panic!("{other:?}"),
    }
}
fn tcp_packet(source: &str, destination: &str) -> Vec<u8> {
    let ports_and_sequence = [0x30, 0x39, 0, 23, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0];
    ipv4_packet(Ipv4Header::new(v4(source), v4(destination), protocol::TCP, 0), &[], &ports_and_sequence)
}

// spec: RFC1122 3.2.2-3, 3.2.2.1-2, 3.2.2.1-4, 3.2.2.4-1, 3.2.2.5-2, 3.4-3
#[test]
fn errors_reach_the_transport_with_what_they_quote_and_how_grave_they_are() {
    let mut host = host();
    let invoking = tcp_packet("10.0.0.1", "192.0.2.1");
    use UnreachableCode as Code;
    for (code, kind, soft) in [
        (Code::Network, ErrorKind::NetworkUnreachable, true),
        (Code::Host, ErrorKind::HostUnreachable, true),
        (Code::Protocol, ErrorKind::ProtocolUnreachable, false),
        (Code::Port, ErrorKind::PortUnreachable, false),
        (Code::SourceRouteFailed, ErrorKind::HostUnreachable, true),
        (Code::Prohibited, ErrorKind::Prohibited, true),
    ] {
        let message = Icmpv4Message::DestinationUnreachable { code, next_hop_mtu: 0, invoking: &invoking };
        let error = transport_error(host.receive(&ipv4_frame(&icmp4("10.0.0.9", "10.0.0.1", message))));
        assert_eq!((error.kind, error.soft, error.mtu_bytes), (kind, soft, None));
        assert_eq!((error.reporter, error.quoted.destination), (ip("10.0.0.9"), ip("192.0.2.1")));
        assert_eq!((error.quoted.source_port, error.quoted.destination_port), (12345, 23));
        assert_eq!(error.quoted.tcp_sequence.unwrap().0, 0xdead_beef);
    }
    for (message, kind) in [
        (
            Icmpv4Message::TimeExceeded { code: TimeExceededCode::InTransit, invoking: &invoking },
            ErrorKind::TimeExceeded,
        ),
        (
            Icmpv4Message::ParameterProblem { code: 0, pointer: 1, invoking: &invoking },
            ErrorKind::ParameterProblem,
        ),
    ] {
        let error = transport_error(host.receive(&ipv4_frame(&icmp4("10.0.0.9", "10.0.0.1", message))));
        assert_eq!((error.kind, error.soft), (kind, true));
    }
    // What we cannot have sent: not from us, or too short to tell.
    for (about, why) in
        [(tcp_packet("10.0.0.7", "192.0.2.1"), Drop::NotCredible), (invoking[..19].to_vec(), Drop::Malformed)]
    {
        let message =
            Icmpv4Message::DestinationUnreachable { code: Code::Port, next_hop_mtu: 0, invoking: &about };
        let frame = ipv4_frame(&icmp4("10.0.0.9", "10.0.0.1", message));
        assert_eq!(host.receive(&frame), Received::Dropped(why));
    }
    let mut bad = ipv4_frame(&icmp4(
        "10.0.0.9",
        "10.0.0.1",
        Icmpv4Message::TimeExceeded { code: TimeExceededCode::InTransit, invoking: &invoking },
    ));
    *bad.last_mut().unwrap() ^= 1;
    assert_eq!(host.receive(&bad), Received::Dropped(Drop::Checksum));
}

// spec: RFC1191 3; RFC8201 4; RFC5927 7; RFC4821 4-8
#[test]
fn a_smaller_mtu_counts_once_the_transport_has_verified_it() {
    let mut host = host();
    host.ip.add_gateway(LinkId(1), ip("10.0.0.2"), 100).unwrap();
    host.ip.add_gateway(LinkId(1), ip("fd00::2"), 100).unwrap();
    let invoking = tcp_packet("10.0.0.1", "192.0.2.1");
    let report = |host: &mut Host, next_hop_mtu| {
        let message = Icmpv4Message::DestinationUnreachable {
            code: UnreachableCode::FragmentationNeeded,
            next_hop_mtu,
            invoking: &invoking,
        };
        transport_error(host.receive(&ipv4_frame(&icmp4("10.0.0.9", "10.0.0.1", message))))
    };
    let error = report(&mut host, 1400);
    assert_eq!((error.kind, error.mtu_bytes), (ErrorKind::PacketTooBig, Some(1400)));
    assert_eq!(host.route("192.0.2.1").unwrap().mtu_bytes, 1500, "a report alone changes nothing");
    let (now, generation) = (host.now, host.ip.paths().generation());
    assert!(host.ip.paths_mut().path_mtu_confirmed(&error, now));
    assert_ne!(host.ip.paths().generation(), generation);
    assert_eq!(host.route("192.0.2.1").unwrap().mtu_bytes, 1400);
    assert_eq!(host.route("192.0.2.2").unwrap().mtu_bytes, 1500);
    assert!(!host.ip.paths_mut().path_mtu_confirmed(&error, now));
    let error = report(&mut host, 68);
    assert!(host.ip.paths_mut().path_mtu_confirmed(&error, now));
    assert_eq!(host.route("192.0.2.1").unwrap().mtu_bytes, 552, "held to a floor");
    host.secs(601);
    assert_eq!(host.route("192.0.2.1").unwrap().mtu_bytes, 1500, "and forgotten in time");
    // IPv6: never below 1280.
    let invoking = udp6("fd00::1", "2001:db8::1", &[0; 8]);
    for (mtu, expected) in [(1279, None), (1280, Some(1280)), (1_000_000, Some(u16::MAX))] {
        let message = Icmpv6Message::PacketTooBig { mtu, invoking: &invoking };
        let received = host.receive(&ipv6_frame(&icmp6("fd00::2", "fd00::1", 64, message)));
        match expected {
            None => assert_eq!(received, Received::Dropped(Drop::NotCredible)),
            some => assert_eq!(transport_error(received).mtu_bytes, some),
        }
    }
}

// spec: RFC1122 3.2.2.6-1, 3.2.2.6-3, 3.2.2.6-4, 3.3.4.2-1; RFC4443 4.2
#[test]
fn pings_are_answered_with_their_data_in_fragments_if_need_be_and_never_to_everybody() {
    let mut host = host();
    for bytes in [0, 56, 1472, 1473, 4000] {
        let data = vec![5; bytes];
        let ping = Icmpv4Message::EchoRequest { identifier: 9, sequence: 1, data: &data };
        host.receive(&ipv4_frame(&icmp4("10.0.0.2", "10.0.0.1", ping)));
        let frames = host.sent();
        assert_eq!(frames.len(), (bytes + 8).div_ceil(1480));
        let body: Vec<u8> = frames.iter().flat_map(|frame| as_ipv4(frame).unwrap().1).collect();
        assert!(Icmpv4View::new(&body).unwrap().checksum_ok());
        assert_eq!(body[icmpv4::LENGTH..], data);
    }
    let ping = Icmpv4Message::EchoRequest { identifier: 9, sequence: 1, data: b"" };
    let packet = icmp4("10.0.0.2", "10.0.0.255", ping);
    host.receive(&frame(HardwareAddress::BROADCAST, PEER_CARD, EtherType::IPV4, &packet));
    assert!(host.sent().is_empty());
    let ping = Icmpv6Message::EchoRequest { identifier: 9, sequence: 1, data: b"all" };
    host.receive(&ipv6_frame(&icmp6("fd00::2", "ff02::1", 64, ping)));
    let frames = host.sent();
    with_icmp6(&frames[0], |header, _| assert_eq!(header.source, v6("fd00::1"))).unwrap();
    host.assert_no_leaks();
}

#[test]
fn who_asks_for_it_answers_pings_to_everybody_at_a_bounded_rate() {
    let mut config = IpConfig::default();
    config.answer_broadcast_echoes = true;
    let mut host = Host::with_config(1, config);
    host.add(quiet(InterfaceConfig::new("ethernet", Medium::Ethernet(CARD)), &["10.0.0.1/24"]));
    host.secs(30);
    host.receive(&arp_request(PEER_CARD, "10.0.0.2", "10.0.0.1"));
    host.sent();
    let ping = Icmpv4Message::EchoRequest { identifier: 9, sequence: 1, data: b"all" };
    let mut answers = 0;
    for _ in 0..500 {
        for to in ["10.0.0.255", "255.255.255.255"] {
            let packet = icmp4("10.0.0.2", to, ping);
            host.receive(&frame(HardwareAddress::BROADCAST, PEER_CARD, EtherType::IPV4, &packet));
            for frame in host.sent() {
                let (header, body) = as_ipv4(&frame).unwrap();
                assert_eq!((header.source, header.destination), (v4("10.0.0.1"), v4("10.0.0.2")));
                assert_eq!((body[0], &body[icmpv4::LENGTH..]), (0, &b"all"[..]));
                answers += 1;
            }
        }
    }
    assert!((1..100).contains(&answers), "{answers}");
    host.assert_no_leaks();
}

#[test]
fn a_host_s_errors_have_precedence_where_that_is_asked_for() {
    for (config, expected) in [(IpConfig::default(), 0), (IpConfig::linux(), 6 << 5)] {
        let mut host = Host::with_config(1, config);
        host.add(quiet(InterfaceConfig::new("ethernet", Medium::Ethernet(CARD)), &["10.0.0.1/24"]));
        host.secs(30);
        host.receive(&arp_request(PEER_CARD, "10.0.0.2", "10.0.0.1"));
        host.sent();
        let frames = refuse(&mut host, &ipv4_frame(&udp4("10.0.0.2", "10.0.0.1", &[7; 10])));
        assert_eq!(as_ipv4(&frames[0]).unwrap().0.dscp_ecn, expected);
    }
}

// spec: RFC4821 4-9, 9-1
#[test]
fn a_datagram_may_probe_beyond_what_is_known_of_the_path() {
    let mut host = host();
    host.ip.add_gateway(LinkId(1), ip("10.0.0.2"), 100).unwrap();
    let invoking = tcp_packet("10.0.0.1", "192.0.2.1");
    let code = UnreachableCode::FragmentationNeeded;
    let message = Icmpv4Message::DestinationUnreachable { code, next_hop_mtu: 1000, invoking: &invoking };
    let error = transport_error(host.receive(&ipv4_frame(&icmp4("10.0.0.9", "10.0.0.1", message))));
    let now = host.now;
    assert!(host.ip.paths_mut().path_mtu_confirmed(&error, now));
    let path = host.route("192.0.2.1").unwrap();
    let how = HeaderHow { dont_fragment: true, ..HeaderHow::new(protocol::UDP) };
    let mut send = |how: HeaderHow, bytes: usize| {
        let (mut wire, data) = (Wire::default(), vec![1; bytes]);
        let data = inhost_buf::Slices::one(&data);
        host.with(|ip, env| ip.send_datagram(&path, &how, data, env, &mut wire))
            .map(|()| wire.frames.remove(0))
    };
    let refused = SendDatagramError::WouldFragment { mtu_bytes: 1000 };
    assert_eq!(send(how, 981), Err(refused));
    let probe = HeaderHow { beyond_path_mtu: true, ..how };
    let (header, payload) = as_ipv4(&send(probe, 1480).unwrap()).unwrap();
    assert_eq!((header.dont_fragment, header.more_fragments, payload.len()), (true, false, 1480));
    assert_eq!(send(probe, 1481), Err(SendDatagramError::WouldFragment { mtu_bytes: 1500 }));
}
