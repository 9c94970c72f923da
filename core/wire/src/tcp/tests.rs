use super::*;
use inhost_base::{Ipv4Addr, Ipv6Addr, Random};

const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1));
const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2));
const A6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
const B6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));

fn syn() -> Segment<'static> {
    Segment {
        source_port: 40_000,
        destination_port: 23,
        sequence: Sequence(u32::MAX),
        flags: Flags::SYN,
        window: 65_535,
        options: TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some((0x01020304, 0)),
            ..TcpOptions::NONE
        },
        ..Segment::default()
    }
}

fn blocks(count: u32) -> SackBlocks {
    let mut list = SackBlocks::new();
    for i in 0..count {
        assert!(list.push((Sequence(100 * i), Sequence(100 * i + 50))));
    }
    list
}

#[test]
fn a_syn_is_laid_out_as_the_field_does() {
    let mut buffer = [0xee; 60];
    let length = syn().emit(A, B, &mut buffer);
    assert_eq!(length, 40);
    let layout = [
        2, 4, 0x05, 0xb4, // MSS 1460
        4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, // SACK permitted, timestamps
        1, 3, 3, 7, // no-operation, window scale
    ];
    assert_eq!(buffer[20..40], layout);
    let view = TcpView::new(&buffer[..length]).unwrap();
    assert!(view.checksum_ok(A, B));
    assert_eq!(Segment::parse(&view), syn());
}

#[test]
fn timestamps_alone_follow_two_no_operations() {
    // RFC 7323 appendix A
    let options = TcpOptions { timestamps: Some((1, 2)), ..TcpOptions::NONE };
    let mut buffer = [0; 12];
    assert_eq!(options.emit(&mut buffer), 12);
    assert_eq!(buffer, [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    assert_eq!(TcpOptions::parse(&buffer), options);
}

#[test]
fn sack_blocks_give_way_to_timestamps() {
    let mut options = TcpOptions { sack: blocks(4), ..TcpOptions::NONE };
    assert_eq!((options.length(), options.fits()), (36, true));
    options.timestamps = Some((1, 2));
    assert_eq!((options.length(), options.fits()), (40, false));
    let mut buffer = [0; 40];
    assert_eq!(options.emit(&mut buffer), 40);
    assert_eq!(TcpOptions::parse(&buffer), TcpOptions { sack: blocks(3), ..options });
}

#[test]
fn what_fits_only_packed_is_packed() {
    let options =
        TcpOptions { sack_permitted: true, window_scale: Some(1), sack: blocks(4), ..TcpOptions::NONE };
    let mut buffer = [0; 40];
    assert_eq!((options.emit(&mut buffer), options.fits()), (40, true));
    assert_eq!(TcpOptions::parse(&buffer), options);
}

#[test]
fn the_mandatory_options_are_read_wherever_they_stand() {
    // spec: RFC9293 MUST-4
    // spec: RFC9293 MUST-64
    let list = [1, 2, 4, 0x02, 0x18, 1, 1, 0];
    assert_eq!(TcpOptions::parse(&list), TcpOptions { mss: Some(536), ..TcpOptions::NONE });
    // After the end of the list nothing counts.
    assert_eq!(TcpOptions::parse(&[0, 2, 4, 2, 0x18]), TcpOptions::NONE);
}

#[test]
fn options_are_read_in_any_segment() {
    // spec: RFC9293 MUST-5
    let mut bytes = [0; 24];
    for bits in 0..512 {
        let segment = Segment {
            flags: Flags::from_bits_truncate(bits),
            options: TcpOptions { mss: Some(900), ..TcpOptions::NONE },
            ..Segment::default()
        };
        assert_eq!(segment.emit(A, B, &mut bytes), 24);
        assert_eq!(Segment::parse(&TcpView::new(&bytes).unwrap()), segment);
    }
}

#[test]
fn unknown_options_are_stepped_over() {
    // spec: RFC9293 MUST-6
    // spec: RFC9293 MUST-68
    let list = [253, 6, 2, 4, 9, 9, 2, 4, 0x05, 0xb4];
    assert_eq!(TcpOptions::parse(&list).mss, Some(1460));
}

#[test]
fn an_illegal_length_ends_the_list() {
    // spec: RFC9293 MUST-7
    for bad in [&[254, 0][..], &[254, 1], &[254, 41], &[254], &[2, 200]] {
        let mut list = vec![3, 3, 5];
        list.extend(bad);
        let read = TcpOptions::parse(&list);
        assert_eq!(read, TcpOptions { window_scale: Some(5), ..TcpOptions::NONE }, "{bad:?}");
        list.extend([2, 4, 5, 0xb4]);
        assert_eq!(TcpOptions::parse(&list).window_scale, Some(5));
    }
    // A known kind of an unsuitable length is left out; the rest of the list still counts.
    assert_eq!(TcpOptions::parse(&[2, 3, 9, 3, 3, 5]).window_scale, Some(5));
    assert_eq!(TcpOptions::parse(&[5, 9, 0, 0, 0, 0, 0, 0, 0]), TcpOptions::NONE);
}

#[test]
fn padding_is_zeros() {
    // spec: RFC9293 MUST-69
    let options =
        TcpOptions { sack_permitted: true, window_scale: Some(1), sack: blocks(4), ..TcpOptions::NONE };
    let mut buffer = [0xee; 40];
    assert_eq!(options.emit(&mut buffer), 40);
    assert_eq!(buffer[39..], [0]);
}

#[test]
fn a_fast_open_cookie_has_two_forms() {
    // spec: RFC7413 4.1.1
    let mut options = TcpOptions { fast_open: FastOpenCookie::from_slice(&[7; 8]), ..TcpOptions::NONE };
    let mut buffer = [0xee; 12];
    assert_eq!(options.emit(&mut buffer), 12);
    assert_eq!(buffer[..], [34, 10, 7, 7, 7, 7, 7, 7, 7, 7, 1, 1]);
    assert_eq!(TcpOptions::parse(&buffer), options);
    options.fast_open_experimental = true;
    assert_eq!(options.emit(&mut buffer), 12);
    assert_eq!(buffer[..], [254, 12, 0xf9, 0x89, 7, 7, 7, 7, 7, 7, 7, 7]);
    assert_eq!(TcpOptions::parse(&buffer), options);
    // Another experiment's option says nothing, and so does an odd cookie.
    assert_eq!(TcpOptions::parse(&[254, 6, 0xf9, 0x88, 7, 7]), TcpOptions::NONE);
    assert_eq!(TcpOptions::parse(&[254, 7, 0xf9, 0x89, 7, 7, 7]), TcpOptions::NONE);
    // Beside everything else that a SYN has, the longest cookie just fits.
    let most = TcpOptions { fast_open: FastOpenCookie::from_slice(&[7; 16]), ..syn().options };
    assert_eq!((most.length(), most.fits()), (40, true));
}

#[test]
fn the_checksum_covers_everything() {
    // spec: RFC9293 MUST-2
    // spec: RFC9293 MUST-3
    for (source, destination) in [(A, B), (A6, B6)] {
        let segment = Segment { payload: b"every bit counts.", ..syn() };
        let mut bytes = vec![0; segment.length()];
        assert_eq!(segment.emit(source, destination, &mut bytes), bytes.len());
        assert!(TcpView::new(&bytes).unwrap().checksum_ok(source, destination));
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(view) = TcpView::new(&bytes) {
                assert!(!view.checksum_ok(source, destination), "bit {bit}");
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(!TcpView::new(&bytes).unwrap().checksum_ok(source, source), "a wrong address");
    }
}

#[test]
fn a_header_written_apart_sums_with_its_data() {
    let segment = Segment { payload: b"odd", ..syn() };
    let mut whole = [0; 64];
    let length = segment.emit(A, B, &mut whole);
    let mut header = [0; MAX_LENGTH];
    let header_length = segment.header().emit(&mut header);
    let pseudo = pseudo_header(A, B, protocol::TCP, (header_length + 3) as u32);
    fill_checksum(&mut header[..header_length], pseudo, Sum::of(b"odd"));
    assert_eq!(header[..header_length], whole[..header_length]);
    assert_eq!(length, header_length + 3);
    assert_eq!(segment.header().with_payload(b"odd"), segment);
}

#[test]
fn syn_and_fin_take_a_number_each() {
    // RFC 9293 §3.4
    let segment = Segment { payload: b"abc", flags: Flags::SYN | Flags::FIN, ..syn() };
    assert_eq!(segment.sequence_length(), 5);
    assert_eq!(segment.sequence_end(), Sequence(4));
    assert_eq!(Segment { flags: Flags::ACK, ..segment }.sequence_length(), 3);
}

#[test]
fn lengths_are_checked() {
    let mut bytes = [0; 40];
    syn().emit(A, B, &mut bytes);
    assert_eq!(TcpView::new(&bytes[..19]).err(), Some(Malformed::Truncated));
    assert_eq!(TcpView::new(&bytes[..39]).err(), Some(Malformed::HeaderLength));
    bytes[12] = 0x40;
    assert_eq!(TcpView::new(&bytes).err(), Some(Malformed::HeaderLength));
    for short in 0..40 {
        assert_eq!(syn().emit(A, B, &mut bytes[..short]), 0);
    }
}

#[test]
fn any_option_list_is_read_and_survives_the_wire() {
    let mut random = Random::from_number(9293);
    for _ in 0..200_000 {
        let length = random.public_below(11) as usize * 4;
        let kinds = [0, 1, 2, 3, 4, 5, 8, 34, 10, 18, 26, 254, 0xf9, 0x89];
        let list: Vec<u8> = (0..length)
            .map(|_| match random.public_below(2) {
                0 => kinds[random.public_below(kinds.len() as u32) as usize],
                _ => random.public_u64() as u8,
            })
            .collect();
        let options = TcpOptions::parse(&list);
        let mut buffer = [0; MAX_OPTIONS_BYTES];
        let written = options.emit(&mut buffer);
        assert_eq!(written, options.length());
        assert!(options.fits());
        assert_eq!(TcpOptions::parse(&buffer[..written]), options);
    }
}

#[test]
fn flags_have_names() {
    assert_eq!(format!("{:?}", Flags::SYN | Flags::ACK), "SYN|ACK");
    assert_eq!(format!("{:?}", Flags::empty()), "-");
    assert_eq!(!Flags::empty(), Flags::from_bits_truncate(u16::MAX));
}
