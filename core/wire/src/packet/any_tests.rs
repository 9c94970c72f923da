//! [`TcpPacket`] beside the views, and [`FlowHeader::emit_any`] beside [`Segment::emit`].

use super::*;
use crate::ipv4::Ipv4Header;
use crate::ipv6::Ipv6Header;
use crate::tcp::Flags;
use crate::tcp::TcpOptions;
use crate::tcp::{SackBlocks, Segment, TcpView};
use inhost_base::Sequence;

fn ends(v6: bool) -> (IpAddr, IpAddr) {
    if v6 {
        (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(), Ipv6Addr::LOCALHOST.into())
    } else {
        (Ipv4Addr::new(192, 0, 2, 1).into(), Ipv4Addr::new(198, 51, 100, 7).into())
    }
}
fn packet(v6: bool, segment: &Segment<'_>) -> Vec<u8> {
    let mut bytes = vec![0; 300];
    let at = if v6 { ipv6::LENGTH } else { ipv4::LENGTH };
    let (a, b) = ends(v6);
    let length = segment.emit(a, b, &mut bytes[at..]);
    bytes.truncate(at + length);
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let mut header = Ipv4Header::new(a, b, protocol::TCP, length as u16);
            header.dscp_ecn = 3;
            header.emit(&mut bytes)
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let mut header = Ipv6Header::new(a, b, protocol::TCP, length as u16);
            header.dscp_ecn = 3;
            header.emit(&mut bytes)
        }
        _ => 0,
    };
    bytes
}
fn segments() -> Vec<Segment<'static>> {
    let base = Segment {
        source_port: 4711,
        destination_port: 80,
        sequence: Sequence(0xfedc_ba98),
        acknowledgment: Sequence(0x0123_4567),
        window: 0xabcd,
        ..Segment::default()
    };
    let syn = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some((0xdead_beef, 0x0bad_cafe)),
        ..TcpOptions::NONE
    };
    let stamped = TcpOptions { timestamps: syn.timestamps, ..TcpOptions::NONE };
    let sack = SackBlocks::from_slice(&[(Sequence(5), Sequence(9))]).unwrap();
    let sacked = TcpOptions { sack, ..stamped };
    let bare = TcpOptions { sack_permitted: false, timestamps: None, ..syn };
    let mut all = Vec::new();
    for options in [TcpOptions::NONE, stamped, syn, sacked, bare] {
        for flags in [Flags::SYN, Flags::SYN | Flags::ACK, Flags::FIN | Flags::ACK, Flags::RST, Flags::ACK] {
            for payload in [&b""[..], b"odd"] {
                all.push(Segment { flags, options, payload, ..base });
            }
        }
        let flags = Flags::ACK | Flags::URG | Flags::CWR | Flags::NS;
        all.push(Segment { flags, options, urgent_pointer: 9, ..base });
    }
    all
}

#[test]
fn it_reads_what_the_views_read() {
    for (v6, segment) in [false, true].into_iter().flat_map(|v6| segments().into_iter().map(move |s| (v6, s)))
    {
        let mut bytes = packet(v6, &segment);
        let length = bytes.len();
        // The padding of a short Ethernet frame.
        bytes.extend_from_slice(&[0xee; 6]);
        let packet = TcpPacket::of(&bytes).unwrap();
        let view = TcpView::new(&bytes[packet.ip.ip_bytes..length]).unwrap();
        assert_eq!(packet.tcp.header(), Segment::parse(&view).header());
        assert_eq!((packet.ip.addresses(), packet.ip.total_bytes), (ends(v6), length));
        assert_eq!((packet.ip.ecn(), packet.ip.addresses_v4().is_some()), (Ecn::CongestionExperienced, !v6));
        assert_eq!(&bytes[packet.header_bytes()..packet.ip.total_bytes], segment.payload);
        assert!(packet.ip.checksum_ok(&bytes));
        let mut spoilt = bytes.clone();
        spoilt[length - 1] ^= 0x10;
        assert!(!TcpPacket::of(&spoilt).is_some_and(|packet| packet.ip.checksum_ok(&spoilt)));
    }
}

#[test]
fn it_writes_what_the_segment_writes() {
    for (v6, segment) in [false, true].into_iter().flat_map(|v6| segments().into_iter().map(move |s| (v6, s)))
    {
        let (source, destination) = ends(v6);
        let ends = FlowHeader {
            source,
            destination,
            source_port: 4711,
            destination_port: 80,
            dscp_ecn: 0,
            hop_limit: 64,
        };
        let mut bytes = [0xcc; 200];
        let written = ends.emit_any(&segment.header(), segment.payload.len(), &mut bytes).unwrap();
        let mut expected = vec![0; 300];
        let length = segment.emit(source, destination, &mut expected);
        let sum =
            written.pseudo_sum.combine(written.header_sum, false).combine(Sum::of(segment.payload), false);
        bytes[written.ip_bytes + 16..][..2].copy_from_slice(&sum.finish().to_be_bytes());
        let header_bytes = length - segment.payload.len();
        assert_eq!(written.header_bytes - written.ip_bytes, header_bytes);
        assert_eq!(bytes[written.ip_bytes..written.header_bytes], expected[..header_bytes], "{segment:?}");
        bytes[written.header_bytes..][..segment.payload.len()].copy_from_slice(segment.payload);
        let read = TcpPacket::of(&bytes).unwrap();
        assert_eq!((read.tcp.header(), read.ip.hop_limit), (segment.header(), 64));
    }
}

#[test]
fn other_packets_are_refused() {
    let segment = segments()[0];
    for (v6, at, bits) in [
        (false, 0, 0x06), // Options.
        (false, 6, 0x20), // More fragments.
        (false, 7, 0x01), // A later fragment.
        (false, 9, 0x10), // UDP, nearly.
        (false, 2, 0xff), // Too long.
        (false, 10, 1),   // The header's checksum.
        (true, 6, 0x10),
        (true, 4, 0xff),
    ] {
        let mut bytes = packet(v6, &segment);
        bytes[at] ^= bits;
        assert!(TcpPacket::of(&bytes).is_none(), "{at}");
    }
    let short = packet(false, &segment);
    for length in 0..short.len() {
        assert!(TcpPacket::of(&short[..length]).is_none());
    }
}
