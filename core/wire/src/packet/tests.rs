use super::*;
use crate::ipv4::Ipv4Header;
use crate::ipv6::Ipv6Header;
use crate::tcp::{Flags, Segment, TcpOptions, TcpView};
use inhost_base::Sequence;

fn packet(v6: bool, segment: &Segment<'_>) -> Vec<u8> {
    let mut bytes = vec![0; 2000];
    let at = if v6 { ipv6::LENGTH } else { ipv4::LENGTH };
    let (a, b) = ends(v6);
    let length = segment.emit(a, b, &mut bytes[at..]);
    bytes.truncate(at + length);
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            Ipv4Header::new(a, b, protocol::TCP, length as u16).emit(&mut bytes)
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            Ipv6Header::new(a, b, protocol::TCP, length as u16).emit(&mut bytes)
        }
        _ => 0,
    };
    bytes
}

fn ends(v6: bool) -> (IpAddr, IpAddr) {
    if v6 {
        (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(), Ipv6Addr::LOCALHOST.into())
    } else {
        (Ipv4Addr::new(192, 0, 2, 1).into(), Ipv4Addr::new(198, 51, 100, 7).into())
    }
}

fn segment(timestamps: Option<(u32, u32)>, payload: &[u8]) -> Segment<'_> {
    Segment {
        source_port: 4711,
        destination_port: 80,
        sequence: Sequence(0xfedc_ba98),
        acknowledgment: Sequence(0x0123_4567),
        flags: Flags::ACK | Flags::PSH,
        window: 0xabcd,
        options: TcpOptions { timestamps, ..TcpOptions::NONE },
        payload,
        ..Segment::default()
    }
}

#[test]
fn it_reads_what_the_views_read() {
    for v6 in [false, true] {
        for timestamps in [None, Some((0xdead_beef, 0x0bad_cafe))] {
            for payload in [&b""[..], b"x", &[7; 1448]] {
                let mut bytes = packet(v6, &segment(timestamps, payload));
                let length = bytes.len();
                // The padding of a short Ethernet frame.
                bytes.extend_from_slice(&[0xee; 6]);
                let packet = PlainPacket::of(&bytes).unwrap();
                let view = TcpView::new(&bytes[packet.ip.ip_bytes..length]).unwrap();
                let general = Segment::parse(&view).header();
                assert_eq!(
                    packet.header.full(),
                    crate::tcp::TcpHeader { source_port: 0, destination_port: 0, ..general }
                );
                assert_eq!((packet.source_port, packet.destination_port), (4711, 80));
                assert_eq!(packet.ip.addresses(), ends(v6));
                assert_eq!(packet.ip.addresses_v4().is_some(), !v6);
                assert_eq!(&bytes[packet.header_bytes..packet.ip.total_bytes], payload);
                assert_eq!(packet.payload_bytes(), payload.len());
                assert!(packet.ip.checksum_ok(&bytes));
                let mut spoilt = bytes.clone();
                spoilt[length - 1] ^= 0x10;
                assert!(!packet.ip.checksum_ok(&spoilt));
            }
        }
    }
}

/// Every bit of the headers but those that only carry values turns a packet away, or leaves its checksum wrong.
#[test]
fn no_spoilt_header_passes() {
    for v6 in [false, true] {
        let good = packet(v6, &segment(Some((1, 2)), b"hello"));
        for bit in 0..8 * (good.len() - 5) {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let passes = PlainPacket::of(&bytes).is_some_and(|packet| packet.ip.checksum_ok(&bytes));
            // IPv6 protects neither traffic class, flow label nor hop limit.
            let unprotected = v6 && (matches!(bit / 8, 1..4 | 7) || bit < 4);
            assert!(!passes || unprotected, "bit {bit}, IPv6 {v6}");
        }
    }
}

#[test]
fn other_packets_are_refused() {
    let with = |change: fn(&mut Segment<'_>)| {
        let mut segment = segment(None, b"hello");
        change(&mut segment);
        packet(false, &segment)
    };
    let cases: &[Vec<u8>] = &[
        with(|segment| segment.flags = Flags::SYN),
        with(|segment| segment.flags = Flags::ACK | Flags::FIN),
        with(|segment| segment.flags = Flags::ACK | Flags::URG),
        with(|segment| segment.flags = Flags::ACK | Flags::ECE),
        with(|segment| segment.flags = Flags::PSH),
        with(|segment| segment.options.mss = Some(1460)),
        with(|segment| {
            segment.options.sack.push((Sequence(1), Sequence(2)));
        }),
    ];
    for bytes in cases {
        assert!(PlainPacket::of(bytes).is_none());
    }
    let good = with(|_| {});
    assert!(PlainPacket::of(&good).is_some());
    for length in 0..good.len() {
        assert!(PlainPacket::of(&good[..length]).is_none(), "cut to {length} bytes");
    }
    let (IpAddr::V4(a), IpAddr::V4(b)) = ends(false) else { unreachable!() };
    let plain = Ipv4Header::new(a, b, protocol::TCP, (good.len() - ipv4::LENGTH) as u16);
    for header in [
        Ipv4Header { more_fragments: true, ..plain },
        Ipv4Header { fragment_offset_bytes: 8, ..plain },
        Ipv4Header { dscp_ecn: 3, ..plain },
        Ipv4Header { protocol: protocol::UDP, ..plain },
    ] {
        let mut bytes = good.clone();
        header.emit(&mut bytes);
        assert!(PlainPacket::of(&bytes).is_none(), "{header:?}");
    }
}

/// The fast path writes the same bytes as the slow path.
#[test]
fn it_writes_what_the_slow_path_writes() {
    for v6 in [false, true] {
        for timestamps in [None, Some((0xffff_ffff, 0x8000_0001))] {
            for push in [false, true] {
                let payload = [0xa5; 301];
                let mut segment = segment(timestamps, &payload);
                segment.flags = if push { Flags::ACK | Flags::PSH } else { Flags::ACK };
                let (source, destination) = ends(v6);
                let mut expected = packet(v6, &segment);
                if let (IpAddr::V4(a), IpAddr::V4(b)) = (source, destination) {
                    let length = (expected.len() - ipv4::LENGTH) as u16;
                    let plain = Ipv4Header::new(a, b, protocol::TCP, length);
                    Ipv4Header { dscp_ecn: 0x2a, time_to_live: 9, dont_fragment: true, ..plain }
                        .emit(&mut expected);
                } else {
                    (expected[0], expected[1], expected[7]) = (0x62, 0xa0, 9);
                }
                let header = segment.header().plain().unwrap();
                let ends = FlowHeader {
                    source,
                    destination,
                    source_port: 4711,
                    destination_port: 80,
                    dscp_ecn: 0x2a,
                    hop_limit: 9,
                };
                let mut bytes = vec![0xee; 2000];
                let written = ends.emit(&header, payload.len(), &mut bytes).unwrap();
                let sum =
                    written.pseudo_sum.combine(written.header_sum, false).combine(Sum::of(&payload), false);
                bytes[written.ip_bytes + 16..][..2].copy_from_slice(&sum.finish().to_be_bytes());
                bytes.truncate(written.header_bytes);
                bytes.extend_from_slice(&payload);
                assert_eq!(bytes, expected, "IPv6 {v6}, {timestamps:?}");
                assert!(ends.emit(&header, 65_535, &mut [0; 100]).is_none());
                assert!(ends.emit(&header, 1, &mut [0; 39]).is_none());
            }
        }
    }
}
