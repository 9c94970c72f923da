//! Bodies for the formats of `inhost-wire`: no bytes cause a panic, and a parsed value can be written and parses to the
//! same value. Each returns whether the bytes were taken for what the target is about.

use inhost_base::{Duration, Instant, IpAddr, Ipv4Addr, Ipv6Addr};
use inhost_wire::arp::{ArpPacket, ArpView};
use inhost_wire::ethernet::{EtherType, EthernetHeader, EthernetView};
use inhost_wire::icmpv4::{Icmpv4Message, Icmpv4View};
use inhost_wire::icmpv6::{Icmpv6Message, Icmpv6View};
use inhost_wire::igmp::{IgmpMessage, IgmpView};
use inhost_wire::ipv4::{
    self, Ipv4Header, Ipv4View, OptionBytes, OptionPlaces, SourceRoute, TimestampOption, record_time,
};
use inhost_wire::ipv6::{ExtensionError, Ipv6Header, Ipv6View, walk};
use inhost_wire::llp::{self, Config, Event, Line, Packet};
use inhost_wire::quoted::Quoted;
use inhost_wire::slip;
use inhost_wire::tcp::{Segment, TcpView};
use inhost_wire::udp::{UdpHeader, UdpView};

/// A body: asserts, and tells whether the bytes were taken.
pub type Body = fn(&[u8]) -> bool;

/// Every target by name; its corpus is the folder of that name.
pub const TARGETS: [(&str, Body); 12] = [
    ("ethernet", ethernet),
    ("icmpv4", icmpv4),
    ("icmpv6", icmpv6),
    ("igmp", igmp),
    ("ipv4", ipv4),
    ("ipv4_options", ipv4_options),
    ("ipv6", ipv6),
    ("llp", llp),
    ("quoted", quoted),
    ("slip", slip),
    ("tcp", tcp),
    ("udp", udp),
];

const A4: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const B4: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const A6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const B6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

/// An Ethernet frame, and what is in it.
pub fn ethernet(bytes: &[u8]) -> bool {
    let Ok(view) = EthernetView::new(bytes) else { return false };
    let header = EthernetHeader::parse(&view);
    let mut out = [0; 14];
    assert_eq!(header.emit(&mut out), 14);
    assert_eq!(out, bytes[..14]);
    match header.ethertype {
        EtherType::ARP => arp(view.payload()),
        EtherType::IPV4 => ipv4(view.payload()),
        EtherType::IPV6 => ipv6(view.payload()),
        _ => true,
    }
}

fn arp(bytes: &[u8]) -> bool {
    let Ok(view) = ArpView::new(bytes) else { return false };
    let mut out = [0; 28];
    assert_eq!(ArpPacket::parse(&view).emit(&mut out), 28);
    assert_eq!(out, bytes[..28]);
    true
}

/// An IPv4 packet, and what is in it.
pub fn ipv4(bytes: &[u8]) -> bool {
    let Ok(view) = Ipv4View::new(bytes) else { return false };
    assert_eq!(view.header_length() + view.payload().len(), view.total_length());
    assert!(view.total_length() <= bytes.len());
    let header = Ipv4Header::parse(&view);
    let mut out = vec![0; view.header_length()];
    assert_eq!(header.emit_with_options(view.options(), &mut out), out.len());
    out.extend(view.payload());
    let again = Ipv4View::new(&out).expect("what was written is a packet");
    assert!(again.checksum_ok());
    assert_eq!(Ipv4Header::parse(&again), header);
    assert_eq!((again.options(), again.payload()), (view.options(), view.payload()));
    ipv4_options(view.options());
    match (view.is_fragment(), view.protocol()) {
        (false, 1) => icmpv4(view.payload()),
        (false, 2) => igmp(view.payload()),
        (false, 6) => tcp(view.payload()),
        (false, 17) => udp(view.payload()),
        _ => true,
    }
}

/// The options of an IPv4 header: what a host and what a router does with each.
pub fn ipv4_options(bytes: &[u8]) -> bool {
    let options = bytes.get(..40).unwrap_or(bytes);
    let copied = OptionBytes::copied(options);
    assert!(copied.as_bytes().len() <= 40 && copied.as_bytes().len().is_multiple_of(4));
    let Ok(places) = OptionPlaces::find(options) else { return false };
    let mut header = [&[0x45; ipv4::LENGTH][..], options].concat();
    let length = header.len();
    for place in [places.source_route, places.record_route].into_iter().flatten() {
        let back = SourceRoute::back(&header, place, A4);
        assert!(back.is_none_or(|route| (1..=ipv4::MAX_ROUTE_HOPS).contains(&route.hops().len())));
        let before = place.recorded(&header).count();
        let next = place.next_hop(&header);
        match place.record(&mut header, B4) {
            Ok(true) => {
                assert!(next.is_ok_and(|next| next.is_some()));
                assert_eq!(place.recorded(&header).count(), before + 1);
            }
            Ok(false) => assert_eq!(next, Ok(None)),
            Err(bad) => assert!(usize::from(bad.pointer) < length && next == Err(bad)),
        }
    }
    if let Some(place) = places.timestamp {
        let entries = |header: &[u8]| TimestampOption::new(header, place).map(|o| o.entries().count());
        let before = entries(&header);
        match record_time(&mut header, place, A4, |address| address == A4, 7) {
            Ok(()) => {
                assert!(entries(&header) >= before && entries(&header) <= before.map(|count| count + 1))
            }
            Err(bad) => assert!(usize::from(bad.pointer) < length),
        }
    }
    ipv4::renew_checksum(&mut header);
    ipv4::decrement_time_to_live(&mut header);
    assert_eq!(header.len(), length);
    assert!(OptionPlaces::find(&header[ipv4::LENGTH..]).is_ok(), "what is written can be read");
    true
}

/// An IPv6 packet with its extension headers, and what is in it.
pub fn ipv6(bytes: &[u8]) -> bool {
    let Ok(view) = Ipv6View::new(bytes) else { return false };
    let header = Ipv6Header::parse(&view);
    let mut out = [0; 40];
    assert_eq!(header.emit(&mut out), 40);
    assert_eq!(out, bytes[..40]);
    match walk(&view) {
        Ok(upper) => {
            assert_eq!(upper.offset + upper.payload.len(), view.total_length());
            assert_eq!(bytes.get(upper.offset..view.total_length()), Some(upper.payload));
            assert_eq!(bytes[upper.next_header_offset], upper.protocol);
            if let Some(fragment) = upper.fragment {
                assert_eq!(bytes[fragment.named_at], 44);
                assert_eq!(fragment.header_offset + 8, upper.offset);
                let end = usize::from(fragment.offset_bytes) + upper.payload.len();
                assert!(fragment.header_offset - 40 + end <= 65_535);
                return true;
            }
            match upper.protocol {
                6 => tcp(upper.payload),
                17 => udp(upper.payload),
                58 => icmpv6(upper.payload),
                _ => true,
            }
        }
        Err(ExtensionError::ParameterProblem { pointer, code, .. }) => {
            assert!((pointer as usize) < view.total_length() && code <= 3);
            false
        }
        Err(ExtensionError::Discard(_)) => false,
    }
}

/// An ICMPv4 message, and what it quotes.
pub fn icmpv4(bytes: &[u8]) -> bool {
    let Ok(view) = Icmpv4View::new(bytes) else { return false };
    view.checksum_ok();
    let message = Icmpv4Message::parse(&view);
    let mut out = vec![0; message.length()];
    assert_eq!(message.emit(&mut out), out.len());
    let again = Icmpv4View::new(&out).expect("what was written is a message");
    assert!(again.checksum_ok());
    assert_eq!(Icmpv4Message::parse(&again), message);
    assert!(message.quoted().is_none() || message.is_error());
    true
}

/// An ICMPv6 message: errors, echo, neighbour and listener discovery.
pub fn icmpv6(bytes: &[u8]) -> bool {
    let Ok(view) = Icmpv6View::new(bytes) else { return false };
    view.checksum_ok(A6, B6);
    let Ok(message) = Icmpv6Message::parse(&view) else { return false };
    let mut out = vec![0; message.length()];
    assert_eq!(message.emit(A6, B6, &mut out), out.len(), "{message:?}");
    let again = Icmpv6View::new(&out).expect("what was written is a message");
    assert!(again.checksum_ok(A6, B6));
    assert_eq!(Icmpv6Message::parse(&again), Ok(message));
    assert!(message.quoted().is_none() || message.is_error());
    match message {
        Icmpv6Message::Ndp(message) => {
            assert!(message.acceptable(254, A6, B6).is_err());
            let _ = message.acceptable(255, A6, B6);
            let _ = message.acceptable(255, Ipv6Addr::UNSPECIFIED, B6);
        }
        Icmpv6Message::Mld(message) => {
            assert!(message.max_response() <= Duration::from_millis(8_387_584));
        }
        _ => {}
    }
    true
}

/// An IGMP message.
pub fn igmp(bytes: &[u8]) -> bool {
    let Ok(view) = IgmpView::new(bytes) else { return false };
    view.checksum_ok();
    let Ok(message) = IgmpMessage::parse(&view) else { return false };
    let mut out = vec![0; message.length()];
    assert_eq!(message.emit(&mut out), out.len());
    let again = IgmpView::new(&out).expect("what was written is a message");
    assert!(again.checksum_ok());
    assert_eq!(IgmpMessage::parse(&again), Ok(message));
    assert!(message.max_response() <= Duration::from_millis(3_174_400));
    true
}

/// A UDP datagram.
pub fn udp(bytes: &[u8]) -> bool {
    let Ok(view) = UdpView::new(bytes) else { return false };
    let header = UdpHeader::parse(&view);
    let mut out = vec![0; view.length()];
    for (source, destination) in [(IpAddr::V4(A4), IpAddr::V4(B4)), (IpAddr::V6(A6), IpAddr::V6(B6))] {
        view.checksum_ok(source, destination);
        assert_eq!(header.emit_datagram(source, destination, view.payload(), &mut out), out.len());
        let again = UdpView::new(&out).expect("what was written is a datagram");
        assert!(again.checksum() != 0 && again.checksum_ok(source, destination));
        assert_eq!((UdpHeader::parse(&again), again.payload()), (header, view.payload()));
    }
    true
}

/// A TCP segment with its options.
pub fn tcp(bytes: &[u8]) -> bool {
    let Ok(view) = TcpView::new(bytes) else { return false };
    let segment = Segment::parse(&view);
    assert!(segment.options.fits(), "{:?}", segment.options);
    let mut out = vec![0; segment.length()];
    for (source, destination) in [(IpAddr::V4(A4), IpAddr::V4(B4)), (IpAddr::V6(A6), IpAddr::V6(B6))] {
        view.checksum_ok(source, destination);
        assert_eq!(segment.emit(source, destination, &mut out), out.len());
        let again = TcpView::new(&out).expect("what was written is a segment");
        assert!(again.checksum_ok(source, destination));
        assert_eq!(Segment::parse(&again), segment);
    }
    true
}

/// A packet as an ICMP error quotes it, cut off anywhere.
pub fn quoted(bytes: &[u8]) -> bool {
    let cut = |length: usize| bytes.get(..length).unwrap_or(bytes);
    let as_ipv4 = quoted_as(bytes.len(), |length| Quoted::of_ipv4(cut(length)));
    let as_ipv6 = quoted_as(bytes.len(), |length| Quoted::of_ipv6(cut(length)));
    as_ipv4 || as_ipv6
}

fn quoted_as(length: usize, parse: impl Fn(usize) -> Option<Quoted>) -> bool {
    let whole = parse(length);
    for part in (0..length.min(96)).filter_map(&parse) {
        let whole = whole.expect("more bytes tell no less");
        assert_eq!((part.source, part.destination), (whole.source, whole.destination));
        assert!(part.tcp_sequence.is_none() || part == whole);
    }
    whole.is_some()
}

/// Bytes from a SLIP line, and bytes as a packet for one.
pub fn slip(bytes: &[u8]) -> bool {
    const LIMIT_BYTES: usize = 64;
    let mut decoder = slip::Decoder::new(LIMIT_BYTES);
    let mut taken = false;
    for octet in bytes {
        if let Some(frame) = decoder.push(*octet) {
            assert!(!frame.is_empty() && frame.len() <= LIMIT_BYTES);
            let frame = frame.to_vec();
            assert_eq!(through_slip(&mut slip::Decoder::new(LIMIT_BYTES), &frame), [frame]);
            taken = true;
        }
    }
    // Whatever state the line is in, the next frame but the spoiled one comes through.
    let packet = [1, slip::END, slip::ESC, 2];
    assert_eq!(through_slip(&mut decoder, &packet).last().map(Vec::as_slice), Some(&packet[..]));
    let expected: &[&[u8]] = if bytes.is_empty() { &[] } else { &[bytes] };
    assert_eq!(through_slip(&mut slip::Decoder::new(bytes.len()), bytes), expected);
    taken
}

fn through_slip(decoder: &mut slip::Decoder, packet: &[u8]) -> Vec<Vec<u8>> {
    let mut line = Vec::new();
    slip::encode(packet, &mut line);
    assert_eq!(line.len(), slip::encoded_length(packet));
    line.iter().filter_map(|octet| decoder.push(*octet).map(<[u8]>::to_vec)).collect()
}

/// Bytes from an LLP line, bytes as a packet, and bytes as the moves of a line's driver.
pub fn llp(bytes: &[u8]) -> bool {
    if let Ok(packet) = llp::decode(bytes) {
        let mut line = Vec::new();
        llp::encode(&packet, &mut line);
        assert_eq!(llp::decode(&line), Ok(packet));
    }
    let parsed = Packet::parse(bytes);
    if let Ok(packet) = parsed {
        let mut out = vec![0; packet.length()];
        assert_eq!(packet.emit(&mut out), out.len());
        assert_eq!(Packet::parse(&out), Ok(packet));
    }
    let mut out = vec![0; bytes.len() + llp::LENGTH];
    assert_eq!(Packet::Data(bytes).emit(&mut out), out.len());
    assert_eq!(Packet::parse(&out), Ok(Packet::Data(bytes)));
    let received = llp_line(bytes);
    parsed.is_ok() || received
}

/// Drives one end of a line by pairs of a move and an octet, then sees that it still works.
fn llp_line(moves: &[u8]) -> bool {
    let config = Config { payload_limit_bytes: 64, packet_buffers: 2, ..Config::default() };
    let mut line = Line::new(config);
    let mut now = Instant::ZERO;
    let mut received = false;
    let (pairs, _) = moves.as_chunks::<2>();
    for &[step, octet] in pairs {
        match step % 8 {
            0 => now += Duration::from_millis(u64::from(octet) * 20),
            1 => received |= matches!(line.poll_event(), Some(Event::Data(_))),
            2 => drop(line.send(Packet::Data(&moves[..usize::from(octet).min(moves.len())]), now)),
            3 => drop(line.next_octet(now)),
            4 => line.timeout(now),
            _ => line.receive(octet, now),
        }
        line.timeout(now);
        assert!(line.deadline().is_none_or(|deadline| deadline > now));
    }
    now += Duration::from_secs(10);
    line.timeout(now);
    let mut pending = 0;
    while line.next_octet(now).is_some() {}
    line.receive(llp::ACK, now);
    while line.next_octet(now).is_some() {}
    while let Some(event) = line.poll_event() {
        pending += 1;
        received |= matches!(event, Event::Data(_));
    }
    assert!(pending <= 3, "two packets and one outcome at most");
    llp_still_works(&mut line, now);
    received
}

fn llp_still_works(line: &mut Line, now: Instant) {
    let mut packet = [0; 9];
    Packet::Data(b"still").emit(&mut packet);
    let mut octets = vec![llp::REQ];
    llp::encode(&packet, &mut octets);
    octets.push(llp::END);
    for octet in octets {
        line.receive(octet, now);
    }
    assert_eq!(line.poll_event(), Some(Event::Data(b"still".to_vec())));
    assert!(line.is_idle() && line.send(Packet::Data(b"here"), now).is_ok());
    assert_eq!([line.next_octet(now), line.next_octet(now)], [Some(llp::ACK), Some(llp::REQ)]);
}
