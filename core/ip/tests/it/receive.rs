//! What is taken and what is refused, fragments, and groups.

use crate::common::*;
use inhost_base::{HardwareAddress, LinkId};
use inhost_buf::Slices;
use inhost_event::Drop;
use inhost_ip::*;
use inhost_wire::ethernet::EtherType;
use inhost_wire::icmpv4::{Icmpv4Message, Icmpv4View, TimeExceededCode};
use inhost_wire::icmpv6::Icmpv6Message;
use inhost_wire::igmp::{IgmpMessage, IgmpView, QueryVersion};
use inhost_wire::ipv4::{Ipv4Header, Ipv4View};
use inhost_wire::ipv6::{self, Ipv6Header, Ipv6View};
use inhost_wire::mld::{self, MldMessage};
use inhost_wire::{Ecn, protocol};

fn host() -> Host {
    Host::on_ethernet(1, CARD, &["10.0.0.1/24", "fd00::1/64", "fe80::1/64"])
}
fn datagram(received: Received) -> Datagram {
    match received {
        Received::Datagram(datagram) => datagram,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_datagram_comes_up_with_its_headers_behind_it() {
    let mut host = host();
    let header = Ipv4Header {
        dscp_ecn: Ecn::CongestionExperienced.bits(),
        time_to_live: 9,
        ..Ipv4Header::new(v4("10.0.0.2"), v4("10.0.0.1"), protocol::UDP, 0)
    };
    let packet = ipv4_packet(header, &[1, 1, 1, 0], b"payload!");
    let mut bytes = ipv4_frame(&packet);
    bytes.extend_from_slice(&[0xee; 14]); // the link's padding
    let (received, mut rest) = host.receive_packet(&bytes);
    let datagram = datagram(received);
    assert_eq!((datagram.source, datagram.destination), (ip("10.0.0.2"), ip("10.0.0.1")));
    assert_eq!(
        (datagram.ecn, datagram.hop_limit, datagram.to_unicast),
        (Ecn::CongestionExperienced, 9, true)
    );
    assert_eq!(rest.bytes(), b"payload!");
    rest.prepend(usize::from(datagram.header_bytes)).unwrap();
    assert_eq!(rest.bytes(), packet);
    host.pool.give(rest);
    host.assert_no_leaks();
}

// spec: RFC1122 3.2.1.3-3, 3.2.1.3-4, 3.2.1.3-6, 3.3.6-1, 3.3.6-4, 4.1.3.6-1
#[test]
fn addresses_that_make_no_sense_are_refused() {
    let mut host = host();
    for (source, why) in [
        ("0.0.0.0", Drop::BadSource),
        ("0.0.0.7", Drop::BadSource),
        ("127.0.0.1", Drop::BadSource),
        ("224.0.0.1", Drop::BadSource),
        ("255.255.255.255", Drop::BadSource),
        ("240.0.0.1", Drop::BadSource),
        ("10.0.0.255", Drop::BadSource),
        ("10.0.0.0", Drop::BadSource),
        ("10.0.0.1", Drop::BadSource),
    ] {
        let frame = ipv4_frame(&udp4(source, "10.0.0.1", &[0; 8]));
        assert_eq!(host.receive(&frame), Received::Dropped(why), "from {source}");
    }
    for source in ["::", "::1", "ff02::1", "::ffff:10.0.0.2", "fd00::1"] {
        let frame = ipv6_frame(&udp6(source, "fd00::1", &[0; 8]));
        assert_eq!(host.receive(&frame), Received::Dropped(Drop::BadSource), "from {source}");
    }
    for destination in ["10.0.0.9", "127.0.0.1", "0.0.0.0", "239.1.2.3", "192.0.2.255"] {
        let frame = ipv4_frame(&udp4("10.0.0.2", destination, &[0; 8]));
        assert_eq!(host.receive(&frame), Received::Dropped(Drop::NotForUs), "to {destination}");
    }
    for destination in ["fd00::9", "::1", "::", "ff02::9"] {
        let frame = frame(CARD, PEER_CARD, EtherType::IPV6, &udp6("fd00::2", destination, &[0; 8]));
        assert_eq!(host.receive(&frame), Received::Dropped(Drop::NotForUs), "to {destination}");
    }
    for destination in ["10.0.0.255", "255.255.255.255", "10.0.0.0", "224.0.0.1"] {
        let packet = udp4("10.0.0.2", destination, &[0; 8]);
        let frame = frame(HardwareAddress::BROADCAST, PEER_CARD, EtherType::IPV4, &packet);
        assert!(!datagram(host.receive(&frame)).to_unicast, "to {destination}");
    }
    // For us alone, but in a frame for all.
    let packet = udp4("10.0.0.2", "10.0.0.1", &[0; 8]);
    let all = frame(HardwareAddress::BROADCAST, PEER_CARD, EtherType::IPV4, &packet);
    assert_eq!(host.receive(&all), Received::Dropped(Drop::NotForUs));
    let other = frame(THIRD_CARD, PEER_CARD, EtherType::IPV4, &packet);
    assert_eq!(host.receive(&other), Received::Dropped(Drop::NotForUs));
    for from in [CARD, HardwareAddress::BROADCAST, HardwareAddress::default()] {
        let odd = frame(CARD, from, EtherType::IPV4, &packet);
        assert_eq!(host.receive(&odd), Received::Dropped(Drop::BadSource));
    }
    assert!(host.sent().is_empty(), "and nothing is frames to any of it");
}

// spec: RFC1122 3.2.1.2-1
#[test]
fn headers_and_options_are_checked() {
    let mut host = host();
    let header = Ipv4Header::new(v4("10.0.0.2"), v4("10.0.0.1"), protocol::UDP, 0);
    let with = |options: &[u8]| ipv4_frame(&ipv4_packet(header, options, &[0; 8]));
    assert!(matches!(host.receive(&with(&[7, 4, 4, 0])), Received::Datagram(_)), "record route is read past");
    assert!(matches!(host.receive(&with(&[0x94, 4, 0, 0])), Received::Datagram(_)));
    assert!(matches!(host.receive(&with(&[0, 131, 3, 4])), Received::Datagram(_)), "behind the end");
    for bad in [[131, 4, 4, 0], [137, 4, 4, 0], [7, 1, 0, 0], [7, 9, 0, 0], [1, 1, 1, 7]] {
        assert_eq!(host.receive(&with(&bad)), Received::Dropped(Drop::BadOption), "{bad:?}");
    }
    let good = with(&[]);
    let mut bad = good.clone();
    bad[24] ^= 1;
    assert_eq!(host.receive(&bad), Received::Dropped(Drop::Checksum));
    for length in 0..good.len() {
        assert_eq!(host.receive(&good[..length]), Received::Dropped(Drop::Malformed), "{length}");
    }
    let unknown = frame(CARD, PEER_CARD, EtherType(0x88cc), &[0; 50]);
    assert_eq!(host.receive(&unknown), Received::Dropped(Drop::UnknownProtocol));
    assert_eq!(host.drops(Drop::BadOption), 5);
}

/// An IPv6 packet with headers behind the fixed one.
fn chained(destination: &str, next: u8, body: &[u8]) -> Vec<u8> {
    ipv6_frame(&ipv6_packet(Ipv6Header::new(v6("fd00::2"), v6(destination), next, 0), body))
}

// spec: RFC8200 4
#[test]
fn extension_headers_are_walked_and_errors_point_at_the_byte() {
    let mut host = host();
    host.receive(&{
        let options =
            inhost_wire::ndp::NdpOptions { source_link_layer: Some(PEER_CARD), ..Default::default() };
        let message = inhost_wire::ndp::NdpMessage::NeighbourSolicitation { target: v6("fd00::1"), options };
        ipv6_frame(&icmp6("fd00::2", "ff02::1:ff00:1", 255, Icmpv6Message::Ndp(message)))
    });
    host.sent();
    let body = [&[protocol::UDP, 0, 1, 4, 0, 0, 0, 0][..], &[7; 8]].concat();
    let taken = datagram(host.receive(&chained("fd00::1", protocol::DESTINATION_OPTIONS, &body)));
    assert_eq!((taken.protocol, taken.header_bytes, taken.protocol_offset), (protocol::UDP, 48, 40));
    let error = |host: &mut Host| {
        let frames = host.sent();
        assert!(frames.len() <= 1);
        frames.first().and_then(|frame| {
            with_icmp6(frame, |_, message| match message {
                Icmpv6Message::ParameterProblem { code, pointer, .. } => (code, pointer),
                other => panic!("{other:?}"),
            })
        })
    };
    // An unknown option by its two high bits: skipped, dropped, or answered with an error.
    for (option, destination, taken, frames) in [
        (0x1e, "fd00::1", true, None),
        (0x5e, "fd00::1", false, None),
        (0x9e, "fd00::1", false, Some((2, 42))),
        (0xde, "fd00::1", false, Some((2, 42))),
        (0x9e, "ff02::1", false, Some((2, 42))),
        (0xde, "ff02::1", false, None),
    ] {
        let body = [&[protocol::UDP, 0, option, 4, 0, 0, 0, 0][..], &[7; 8]].concat();
        let received = host.receive(&chained(destination, protocol::DESTINATION_OPTIONS, &body));
        assert_eq!(matches!(received, Received::Datagram(_)), taken, "{option:#x} {destination}");
        assert_eq!(error(&mut host), frames, "{option:#x} {destination}");
    }
    // A routing header of type 0 with segments left (RFC 5095).
    let body = [&[protocol::UDP, 2, 0, 1, 0, 0, 0, 0][..], &[0; 16], &[7; 8]].concat();
    assert_eq!(
        host.receive(&chained("fd00::1", protocol::ROUTING, &body)),
        Received::Dropped(Drop::BadOption)
    );
    assert_eq!(error(&mut host), Some((0, 42)));
    // A transport that nobody speaks: the stack asks for the error.
    let (received, mut packet) = host.receive_packet(&chained("fd00::1", 253, &[1, 2, 3]));
    let unknown = datagram(received);
    host.with(|ip, env| ip.protocol_unreachable(&unknown, &mut packet, env));
    assert_eq!(packet.bytes(), [1, 2, 3], "the packet is as before");
    host.pool.give(packet);
    assert_eq!(error(&mut host), Some((1, 6)));
    host.assert_no_leaks();
}

// spec: RFC791 3.2; RFC8200 4.5; RFC1122 3.2.1.4-1, 3.3.2-1, 3.3.2-2, 3.3.3-1
#[test]
fn what_one_host_cuts_another_puts_together() {
    for (here, there) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
        let mut a = host();
        let mut b = Host::on_ethernet(2, PEER_CARD, &["10.0.0.2/24", "fd00::2/64"]);
        let path = a.route(there).unwrap();
        a.resolve(&path);
        settle(&mut [&mut a, &mut b]);
        let data: Vec<u8> = (0..9001u32).map(|i| (i * 31) as u8).collect();
        let mut wire = Wire { frames: Vec::new(), room: Some(3) };
        let how = HeaderHow::new(protocol::UDP);
        a.with(|ip, env| ip.send_datagram(&path, &how, Slices::one(&data), env, &mut wire)).unwrap();
        // The device had room for three; the rest comes with our own frames.
        let mut frames = wire.frames;
        frames.extend(a.sent());
        assert_eq!(frames.len(), 7);
        frames.reverse();
        let last = frames.pop().unwrap();
        for frame in &frames {
            assert!(frame.len() <= 1514);
            assert_eq!(b.receive(frame), Received::Handled);
        }
        let (received, rest) = b.receive_all(LinkId(1), &last);
        let whole = datagram(received);
        assert_eq!((whole.source, rest == data), (ip(here), true));
        assert_eq!(b.ip.interface(LinkId(1)).unwrap().counters().reassembled_datagrams, 1);
        a.assert_no_leaks();
        b.assert_no_leaks();
    }
}

// spec: RFC1122 3.3.2-4; RFC8200 4.5
#[test]
fn an_incomplete_datagram_is_discarded_and_reported_to_its_sender() {
    let mut host = host();
    host.secs(30);
    host.receive(&arp_request(PEER_CARD, "10.0.0.2", "10.0.0.1"));
    host.sent();
    let header = Ipv4Header {
        identification: 77,
        dont_fragment: false,
        more_fragments: true,
        ..Ipv4Header::new(v4("10.0.0.2"), v4("10.0.0.1"), protocol::UDP, 0)
    };
    assert_eq!(host.receive(&ipv4_frame(&ipv4_packet(header, &[], &[9; 64]))), Received::Handled);
    // Of this one the first part is missing, so that nothing is frames.
    let later = Ipv4Header { identification: 78, fragment_offset_bytes: 64, ..header };
    assert_eq!(host.receive(&ipv4_frame(&ipv4_packet(later, &[], &[9; 64]))), Received::Handled);
    assert_eq!(host.ip.reassemblies().0, 2);
    let frames = host.secs(31);
    assert_eq!((frames.len(), host.ip.reassemblies()), (1, (0, 0)));
    let (header, body) = as_ipv4(&frames[0]).unwrap();
    assert_eq!(header.destination, v4("10.0.0.2"));
    match Icmpv4Message::parse(&Icmpv4View::new(&body).unwrap()) {
        Icmpv4Message::TimeExceeded { code: TimeExceededCode::Reassembly, invoking } => {
            assert_eq!(Ipv4View::new(invoking).unwrap().identification(), 77);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(host.drops(Drop::Fragment), 2);
    host.assert_no_leaks();
}

// spec: RFC8200 4.5
#[test]
fn time_exceeded_quotes_the_first_fragment_of_an_incomplete_ipv6_datagram() {
    let neighbour = inhost_wire::ndp::NdpMessage::NeighbourSolicitation {
        target: v6("fd00::1"),
        options: inhost_wire::ndp::NdpOptions { source_link_layer: Some(PEER_CARD), ..Default::default() },
    };
    // A destination options header of padding stands before the fragment header, or nothing does.
    for (options, bytes) in [(&[][..], 64), (&[protocol::FRAGMENT, 0, 1, 4, 0, 0, 0, 0][..], 1400)] {
        let fragment = |offset: u16, part: &[u8]| {
            let mut body = vec![0; options.len() + 8];
            body[..options.len()].copy_from_slice(options);
            let place = &mut body[options.len()..];
            ipv6::emit_fragment_header(protocol::UDP, offset, true, 0x8877_6655, place);
            body.extend_from_slice(part);
            let next = if options.is_empty() { protocol::FRAGMENT } else { protocol::DESTINATION_OPTIONS };
            ipv6_packet(Ipv6Header::new(v6("fd00::2"), v6("fd00::1"), next, 0), &body)
        };
        let mut host = host();
        host.secs(30);
        host.receive(&ipv6_frame(&icmp6("fd00::2", "fd00::1", 255, Icmpv6Message::Ndp(neighbour))));
        let first = fragment(0, &vec![9; bytes]);
        assert_eq!(host.receive(&ipv6_frame(&first)), Received::Handled);
        // The third, and one that joins the first, whose last part is missing.
        for offset in [bytes as u16, 4000] {
            assert_eq!(host.receive(&ipv6_frame(&fragment(offset, &[9; 64]))), Received::Handled);
        }
        let frames = host.secs(61);
        let told: Vec<_> = frames.iter().filter_map(|frame| as_icmpv6(frame)).collect();
        let [message] = &told[..] else { panic!("{} messages", told.len()) };
        assert_eq!(message[..2], [3, 1]);
        // As much of the packet as fits, as it came.
        let quoted = &message[8..];
        assert_eq!(quoted.len(), first.len().min(1280 - 48));
        assert!(first.starts_with(quoted));
        assert_eq!(host.ip.reassemblies(), (0, 0));
        host.assert_no_leaks();
    }
    // Nothing is frames where the first fragment is missing.
    let mut host = host();
    let mut body = vec![0; 8];
    ipv6::emit_fragment_header(protocol::UDP, 64, true, 7, &mut body);
    body.extend_from_slice(&[9; 64]);
    let packet = ipv6_packet(Ipv6Header::new(v6("fd00::2"), v6("fd00::1"), protocol::FRAGMENT, 0), &body);
    assert_eq!(host.receive(&ipv6_frame(&packet)), Received::Handled);
    assert!(host.secs(61).iter().all(|frame| as_icmpv6(frame).is_none()));
    host.assert_no_leaks();
}

/// An ICMPv6 message other than neighbour discovery that is sent to the peer.
fn as_icmpv6(frame: &[u8]) -> Option<Vec<u8>> {
    let view = Ipv6View::new(frame.get(14..)?).ok()?;
    let body = view.payload();
    let is_error = view.next_header() == protocol::ICMPV6 && body.first().is_some_and(|kind| *kind < 128);
    (is_error && view.destination() == v6("fd00::2")).then(|| body.to_vec())
}

// spec: RFC6980 5
#[test]
fn neighbour_discovery_in_fragments_is_refused() {
    let mut host = host();
    let options = inhost_wire::ndp::NdpOptions { source_link_layer: Some(PEER_CARD), ..Default::default() };
    let message = inhost_wire::ndp::NdpMessage::NeighbourSolicitation { target: v6("fd00::1"), options };
    let whole = icmp6("fd00::2", "ff02::1:ff00:1", 255, Icmpv6Message::Ndp(message));
    let body = &whole[40..];
    let mut last = Received::Handled;
    for (part, more) in [(&body[..16], true), (&body[16..], false)] {
        let mut piece = vec![0; 8];
        let offset = if more { 0 } else { 16 };
        ipv6::emit_fragment_header(protocol::ICMPV6, offset, more, 5, &mut piece);
        piece.extend_from_slice(part);
        let header = Ipv6Header {
            hop_limit: 255,
            ..Ipv6Header::new(v6("fd00::2"), v6("ff02::1:ff00:1"), protocol::FRAGMENT, 0)
        };
        last = host.receive(&ipv6_frame(&ipv6_packet(header, &piece)));
    }
    assert_eq!(last, Received::Dropped(Drop::NotCredible));
    assert!(host.sent().is_empty());
}

fn igmp_of(frame: &[u8]) -> Option<(Ipv4Header, IgmpMessage)> {
    let (header, body) = as_ipv4(frame)?;
    if header.protocol != protocol::IGMP {
        return None;
    }
    let view = IgmpView::new(&body).unwrap();
    assert!(view.checksum_ok());
    assert_eq!(frame[14] & 0xf, 6, "a router alert");
    Some((header, IgmpMessage::parse(&view).unwrap()))
}

// spec: RFC2236 2, 3; RFC1122 3.3.7-1
#[test]
fn a_group_is_reported_asked_about_and_left() {
    let mut host = host();
    let group = ip("239.1.2.3");
    let datagram_to_group = |host: &mut Host| {
        let packet = udp4("10.0.0.2", "239.1.2.3", &[0; 8]);
        let card = HardwareAddress([0x01, 0x00, 0x5e, 1, 2, 3]);
        host.receive(&frame(card, PEER_CARD, EtherType::IPV4, &packet))
    };
    host.secs(30);
    assert_eq!(datagram_to_group(&mut host), Received::Dropped(Drop::NotForUs));
    host.with(|ip, env| ip.join_group(LinkId(1), group, env)).unwrap();
    let frames: Vec<_> = host.secs(11).iter().filter_map(|frame| igmp_of(frame)).collect();
    assert_eq!(frames.len(), 2);
    for (header, message) in frames {
        assert_eq!((header.time_to_live, header.destination), (1, v4("239.1.2.3")));
        assert_eq!(message, IgmpMessage::Report { group: v4("239.1.2.3") });
    }
    assert!(matches!(datagram_to_group(&mut host), Received::Datagram(_)));
    let query = IgmpMessage::Query {
        version: QueryVersion::V2,
        group: std::net::Ipv4Addr::UNSPECIFIED,
        max_response_code: 100,
    };
    let sent_as = |message: &IgmpMessage, to: &str| {
        let mut body = vec![0; message.length()];
        message.emit(&mut body);
        let packet =
            ipv4_packet(Ipv4Header::new(v4("10.0.0.2"), v4(to), protocol::IGMP, 0), &[0x94, 4, 0, 0], &body);
        let [_, b, c, d] = v4(to).octets();
        frame(HardwareAddress([0x01, 0, 0x5e, b & 0x7f, c, d]), PEER_CARD, EtherType::IPV4, &packet)
    };
    assert_eq!(host.receive(&sent_as(&query, "224.0.0.1")), Received::Handled);
    assert_eq!(host.secs(11).iter().filter_map(|frame| igmp_of(frame)).count(), 1);
    // Somebody else answers first.
    host.receive(&sent_as(&query, "224.0.0.1"));
    host.receive(&sent_as(&IgmpMessage::Report { group: v4("239.1.2.3") }, "239.1.2.3"));
    assert!(host.secs(11).iter().filter_map(|frame| igmp_of(frame)).next().is_none());
    // A router of version 1 is answered in its own version.
    let old = IgmpMessage::Query {
        version: QueryVersion::V1,
        group: std::net::Ipv4Addr::UNSPECIFIED,
        max_response_code: 0,
    };
    host.receive(&sent_as(&old, "224.0.0.1"));
    let frames: Vec<_> = host.secs(11).iter().filter_map(|frame| igmp_of(frame)).collect();
    assert_eq!(frames[0].1, IgmpMessage::ReportV1 { group: v4("239.1.2.3") });
    host.secs(500);
    host.receive(&sent_as(&query, "224.0.0.1"));
    host.secs(11);
    host.with(|ip, env| ip.leave_group(LinkId(1), group, env)).unwrap();
    let (header, message) = igmp_of(&host.sent()[0]).unwrap();
    assert_eq!(
        (header.destination, message),
        (v4("224.0.0.2"), IgmpMessage::Leave { group: v4("239.1.2.3") })
    );
    assert_eq!(datagram_to_group(&mut host), Received::Dropped(Drop::NotForUs));
}

// spec: RFC2710 3, 4, 5
#[test]
fn ipv6_groups_are_reported_with_a_router_alert_from_the_link_local_address() {
    let mut host = host();
    host.secs(30);
    host.with(|ip, env| ip.join_group(LinkId(1), ip_of("ff05::5"), env)).unwrap();
    let reports = |frames: Vec<Vec<u8>>| -> Vec<MldMessage> {
        frames
            .iter()
            .filter_map(|frame| {
                with_icmp6(frame, |header, message| match message {
                    Icmpv6Message::Mld(message) => {
                        assert_eq!((header.hop_limit, header.source), (mld::HOP_LIMIT, v6("fe80::1")));
                        assert_eq!(header.next_header, protocol::HOP_BY_HOP);
                        Some(message)
                    }
                    _ => None,
                })
                .flatten()
            })
            .collect()
    };
    assert_eq!(reports(host.secs(11)), [MldMessage::Report { group: v6("ff05::5") }; 2]);
    let query = |alert: bool, source: &str| {
        let (source, all) = (v6(source), v6("ff02::1"));
        let message = Icmpv6Message::Mld(MldMessage::Query {
            version: mld::QueryVersion::V1,
            group: std::net::Ipv6Addr::UNSPECIFIED,
            max_response_code: 1000,
        });
        let mut body = vec![0; if alert { 8 } else { 0 }];
        ipv6::emit_mld_hop_by_hop(&mut body);
        let mut icmp = vec![0; message.length()];
        message.emit(source, all, &mut icmp);
        body.extend_from_slice(&icmp);
        let next = if alert { protocol::HOP_BY_HOP } else { protocol::ICMPV6 };
        let header = Ipv6Header { hop_limit: 1, ..Ipv6Header::new(source, all, next, 0) };
        ipv6_frame(&ipv6_packet(header, &body))
    };
    assert_eq!(host.receive(&query(false, "fe80::2")), Received::Dropped(Drop::NotCredible));
    assert_eq!(host.receive(&query(true, "fd00::2")), Received::Dropped(Drop::NotCredible));
    assert_eq!(host.receive(&query(true, "fe80::2")), Received::Handled);
    // The group, and those of our two addresses, which share one.
    let mut frames = reports(host.secs(2));
    frames.sort_by_key(|message| format!("{message:?}"));
    assert_eq!(
        frames,
        [MldMessage::Report { group: v6("ff02::1:ff00:1") }, MldMessage::Report { group: v6("ff05::5") }]
    );
    host.with(|ip, env| ip.leave_group(LinkId(1), ip_of("ff05::5"), env)).unwrap();
    assert_eq!(reports(host.sent()), [MldMessage::Done { group: v6("ff05::5") }]);
}
fn ip_of(text: &str) -> std::net::IpAddr {
    ip(text)
}

#[test]
fn within_the_host_everything_of_ours_can_be_reached() {
    let mut host = host();
    let own = LinkId(0);
    for (from, to) in [("127.0.0.1", "127.0.0.1"), ("10.0.0.1", "10.0.0.1"), ("127.0.0.1", "10.0.0.1")] {
        let (received, _) = host.receive_all(own, &udp4(from, to, &[0; 8]));
        assert!(datagram(received).to_unicast);
    }
    let (received, _) = host.receive_all(own, &udp6("::1", "fd00::1", &[0; 8]));
    datagram(received);
    let (received, _) = host.receive_all(own, &udp4("10.0.0.2", "10.0.0.1", &[0; 8]));
    assert_eq!(received, Received::Dropped(Drop::NotForUs));
    let path = host.route("10.0.0.1").unwrap();
    assert_eq!((path.link, host.resolve(&path)), (own, Resolution::Ready(LinkHeader::NONE)));
    // A ping to ourselves goes round.
    let mut wire = Wire::default();
    host.with(|ip, env| {
        ip.echo_request(&path, &EchoMessage { identifier: 1, sequence: 2, data: b"me" }, env, &mut wire)
    })
    .unwrap();
    assert_eq!(host.receive_all(own, &wire.frames[0]).0, Received::Handled);
    let answer = host.sent_on(own).remove(0);
    assert!(matches!(host.receive_all(own, &answer).0, Received::EchoReply(_)));
}

#[test]
fn the_longest_echo_waits_for_memory_and_a_longer_one_is_too_long() {
    let mut host = host();
    host.pool.set_limit_bytes(4096);
    for (to, most) in [("10.0.0.1", 65_507), ("fd00::1", 65_527)] {
        let path = host.route(to).unwrap();
        let mut ask = |data: &[u8]| {
            let echo = EchoMessage { identifier: 1, sequence: 2, data };
            host.with(|ip, env| ip.echo_request(&path, &echo, env, &mut Wire::default()))
        };
        let data = vec![0; most + 1];
        assert_eq!(ask(&data[..most]), Err(SendDatagramError::NoMemory), "{to}");
        assert_eq!(ask(&data), Err(SendDatagramError::TooLong), "{to}");
    }
}

#[test]
fn an_answer_to_many_is_nobodys() {
    let mut host = host();
    let (identifier, sequence, data) = (1, 2, &b"who"[..]);
    let answer = Icmpv4Message::EchoReply { identifier, sequence, data };
    for to in ["10.0.0.255", "255.255.255.255", "224.0.0.1"] {
        let packet = ipv4_frame(&icmp4("10.0.0.2", to, answer));
        assert_eq!(host.receive(&packet), Received::Dropped(Drop::NotForUs), "{to}");
    }
    let answer = Icmpv6Message::EchoReply { identifier, sequence, data };
    let packet = ipv6_frame(&icmp6("fe80::2", "ff02::1", 64, answer));
    assert_eq!(host.receive(&packet), Received::Dropped(Drop::NotForUs));
}
