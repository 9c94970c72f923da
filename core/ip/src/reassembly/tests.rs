use super::*;
use inhost_base::Random;
use inhost_wire::ipv4::{Ipv4Header, Ipv4View};

fn key(source: u32, identification: u32) -> Key {
    Key {
        link: LinkId(1),
        source: IpAddr::V4(source.into()),
        destination: "10.0.0.1".parse().unwrap(),
        protocol: 17,
        identification,
    }
}
fn header() -> [u8; 20] {
    let mut header = [0; 20];
    let (a, b) = ("10.0.0.2".parse().unwrap(), "10.0.0.1".parse().unwrap());
    Ipv4Header { dscp_ecn: Ecn::Capable0.bits(), ..Ipv4Header::new(a, b, 17, 0) }.emit(&mut header);
    header
}
fn setup() -> (Reassembly, Pool) {
    (Reassembly::new(Keyed::new(&mut Random::from_number(4))), Pool::new(64 << 20))
}
fn piece<'a>(header: &'a [u8], offset_bytes: usize, more_fragments: bool, payload: &'a [u8]) -> Piece<'a> {
    Piece { header, named: None, offset_bytes, more_fragments, payload, ecn: Ecn::Capable0 }
}

// spec: RFC791 3.2
#[test]
fn in_any_order_and_with_repetitions_the_datagram_comes_out_whole() {
    let data: Vec<u8> = (0..4001u32).map(|i| (i * 7) as u8).collect();
    let header = header();
    for seed in 0..200 {
        let (mut all, mut pool) = setup();
        let mut random = Random::from_number(seed);
        let mut order: Vec<usize> = (0..data.len().div_ceil(400)).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, random.public_below(i as u32 + 1) as usize);
        }
        let mut done = None;
        for index in order {
            let bytes = &data[index * 400..data.len().min(index * 400 + 400)];
            let part = piece(&header, index * 400, index * 400 + 400 < data.len(), bytes);
            for _ in 0..=random.public_below(2) {
                if let Insertion::Complete(packet) = all.insert(key(9, 1), &part, Instant::ZERO, &mut pool) {
                    done = Some(packet);
                    break;
                }
            }
        }
        let packet = done.expect("complete");
        let view = Ipv4View::new(packet.bytes()).unwrap();
        assert!(view.checksum_ok() && !view.is_fragment());
        assert_eq!(view.payload(), data);
        pool.give(packet);
        all.clear(&mut pool);
        assert_eq!((pool.outstanding_bytes(), all.len(), all.memory_bytes()), (0, 0, 0));
    }
}

// spec: RFC5722 3
#[test]
fn an_overlap_discards_the_datagram_and_what_is_still_to_come() {
    let (mut all, mut pool) = setup();
    let header = header();
    let mut put = |part: &Piece<'_>| all.insert(key(9, 1), part, Instant::ZERO, &mut pool);
    assert!(matches!(put(&piece(&header, 0, true, &[1; 16])), Insertion::Kept));
    assert!(matches!(put(&piece(&header, 8, true, &[2; 16])), Insertion::Dropped(Drop::Fragment)));
    assert!(matches!(put(&piece(&header, 0, true, &[1; 16])), Insertion::Dropped(_)));
    assert!(matches!(put(&piece(&header, 16, false, &[1; 16])), Insertion::Dropped(_)));
    assert_eq!((pool.outstanding_bytes(), all.memory_bytes(), all.len()), (0, 0, 1));
    assert!(all.pop_expired(Instant::ZERO + IPV4_LIFETIME).is_some());
    assert_eq!(all.len(), 0);
}

#[test]
fn lengths_that_contradict_each_other_discard_it() {
    for parts in
        [[(0, false, 16), (16, true, 8)], [(16, false, 8), (16, false, 16)], [(24, true, 8), (8, false, 8)]]
    {
        let (mut all, mut pool) = setup();
        let (header, data) = (header(), [0; 64]);
        let mut last = Insertion::Kept;
        // The first of the first pair is whole by itself, so a lead fragment keeps it waiting.
        for (offset, more, bytes) in parts {
            let shift = 8;
            last = all.insert(
                key(9, 1),
                &piece(&header, offset + shift, more, &data[..bytes]),
                Instant::ZERO,
                &mut pool,
            );
        }
        assert!(matches!(last, Insertion::Dropped(Drop::Fragment)), "{parts:?}");
        assert_eq!(pool.outstanding_bytes(), 0);
    }
}

#[test]
fn count_and_memory_stay_within_limits_and_everything_expires() {
    let (mut all, mut pool) = setup();
    let header = header();
    let data = [0; 1480];
    for i in 0..20_000u32 {
        let offset = ((i as usize * 1480 * 7) % 60_000) & !7;
        let now = Instant::from_nanos(u64::from(i));
        all.insert(key(i % 50, i), &piece(&header, offset, true, &data), now, &mut pool);
        assert!(all.len() <= DATAGRAM_LIMIT && all.memory_bytes() <= MEMORY_LIMIT_BYTES);
        assert_eq!(pool.outstanding_bytes(), all.memory_bytes());
    }
    let (mut many, mut pool) = setup();
    for i in 0..100 {
        many.insert(key(7, i), &piece(&header, 0, true, &data[..8]), Instant::ZERO, &mut pool);
    }
    assert_eq!(many.len(), SOURCE_LIMIT);
    while let Some(expired) = many.pop_expired(many.deadline()) {
        pool.give(expired.packet.unwrap());
    }
    assert_eq!((many.len(), pool.outstanding_bytes(), many.deadline()), (0, 0, Instant::FAR_FUTURE));
}

// spec: RFC3168 5.3
#[test]
fn a_congestion_mark_on_any_part_marks_the_whole() {
    let (mut all, mut pool) = setup();
    let header = header();
    let marked = Piece { ecn: Ecn::CongestionExperienced, ..piece(&header, 8, false, &[0; 8]) };
    all.insert(key(9, 1), &marked, Instant::ZERO, &mut pool);
    let Insertion::Complete(packet) =
        all.insert(key(9, 1), &piece(&header, 0, true, &[0; 8]), Instant::ZERO, &mut pool)
    else {
        panic!("complete");
    };
    assert_eq!(Ecn::of(Ipv4View::new(packet.bytes()).unwrap().dscp_ecn()), Ecn::CongestionExperienced);
}

// spec: RFC8200 4.5
#[test]
fn the_longest_datagram_of_either_family_is_put_together() {
    let mut header_v6 = [0; ipv6::LENGTH];
    let (a, b) = ("fd00::2".parse().unwrap(), "fd00::1".parse().unwrap());
    ipv6::Ipv6Header::new(a, b, inhost_wire::protocol::FRAGMENT, 0).emit(&mut header_v6);
    let key_v6 = Key { source: IpAddr::V6(a), destination: IpAddr::V6(b), protocol: 0, ..key(9, 1) };
    let data = vec![0; 65_536];
    for (key, header, longest) in [(key(9, 1), &header()[..], 65_515), (key_v6, &header_v6[..], 65_535)] {
        for (bytes, fits) in [(longest, true), (longest + 1, false)] {
            let (mut all, mut pool) = setup();
            let named = key.source.is_ipv6().then_some((6, 17));
            let part =
                |from: usize, to: usize| Piece { named, ..piece(header, from, to < bytes, &data[from..to]) };
            assert!(matches!(all.insert(key, &part(0, 65_504), Instant::ZERO, &mut pool), Insertion::Kept));
            let last = all.insert(key, &part(65_504, bytes), Instant::ZERO, &mut pool);
            match last {
                Insertion::Complete(packet) => {
                    assert!(fits, "{bytes}");
                    assert_eq!(packet.len(), header.len() + bytes);
                    pool.give(packet);
                }
                _ => assert!(!fits, "{bytes}"),
            }
        }
    }
}
