use super::super::{OptionBytes, SourceRoute, TimestampKind, TimestampOption, record_time};
use super::*;

const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const C: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const D: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);

/// A header with these options, and where they stand.
fn header(options: &[u8]) -> (Vec<u8>, OptionPlaces) {
    let places = OptionPlaces::find(options).unwrap();
    ([&[0; LENGTH][..], options].concat(), places)
}

// spec: RFC791 3.1
#[test]
fn a_source_route_is_followed_recorded_and_reversed() {
    let route = SourceRoute::new(true, [A, B, C]).unwrap();
    assert_eq!((route.first(), route.length()), (A, 16));
    let mut options = OptionBytes::new();
    assert!(options.add_source_route(&route, D));
    let wire = [1, 137, 15, 4, 10, 1, 0, 1, 10, 2, 0, 1, 10, 3, 0, 1];
    assert_eq!(options.as_bytes(), wire);
    let (mut header, places) = header(&wire);
    let place = places.source_route.unwrap();
    assert!(place.is_strict(&header) && place.final_hop(&header) == Some(D));
    // Each hop writes the address by which it sends on.
    for (next, own) in [(B, [1, 1, 1, 1]), (C, [2, 2, 2, 2]), (D, [3, 3, 3, 3])] {
        assert_eq!(place.next_hop(&header), Ok(Some(next)));
        assert_eq!(place.record(&mut header, own.into()), Ok(true));
    }
    assert_eq!(place.next_hop(&header), Ok(None));
    assert_eq!(place.record(&mut header, A), Ok(false), "there is no room left, which is not a mistake");
    let back = SourceRoute::back(&header, place, Ipv4Addr::new(9, 9, 9, 9)).unwrap();
    let hops: Vec<Ipv4Addr> = back.hops().collect();
    assert_eq!(hops, [[3, 3, 3, 3], [2, 2, 2, 2], [1, 1, 1, 1]].map(Ipv4Addr::from));
    assert!(back.is_strict());
    // A sender that put itself first is not a hop of the way back.
    let back = SourceRoute::back(&header, place, Ipv4Addr::new(1, 1, 1, 1)).unwrap();
    assert_eq!(back.hops().count(), 2);
}

#[test]
fn routes_have_one_to_nine_hops() {
    assert_eq!(SourceRoute::new(false, []), None);
    assert_eq!(SourceRoute::new(false, [A; 10]), None);
    let route = SourceRoute::new(false, [A; 9]).unwrap();
    let mut options = OptionBytes::new();
    assert!(options.add_source_route(&route, D) && !options.add_record_route(1));
    assert_eq!(options.as_bytes().len(), 40);
}

// spec: RFC791 3.1
#[test]
fn times_are_written_by_whom_they_are_for() {
    let mut options = OptionBytes::new();
    assert!(options.add_timestamp(TimestampKind::Addresses, 2, C, 76));
    let (mut bytes, places) = header(options.as_bytes());
    let place = places.timestamp.unwrap();
    assert_eq!(record_time(&mut bytes, place, A, |_| false, 77), Ok(()));
    for _ in 0..15 {
        assert_eq!(record_time(&mut bytes, place, B, |_| false, 78), Ok(()));
    }
    let option = TimestampOption::new(&bytes, place).unwrap();
    assert_eq!((option.overflow(), option.kind()), (15, Some(TimestampKind::Addresses)));
    let entries: Vec<_> = option.entries().map(|entry| (entry.address, entry.time)).collect();
    assert_eq!(entries, [(Some(C), 76), (Some(A), 77)]);
    let full = record_time(&mut bytes, place, B, |_| false, 78);
    assert_eq!(full, Err(BadOption { pointer: 23 }), "the sixteenth that has no room is a mistake");

    let mut options = OptionBytes::new();
    assert!(options.add_timestamps_of(&[A, B]) && options.add_timestamp(TimestampKind::Times, 3, C, 1));
    let (mut bytes, _) = header(&options.as_bytes()[..20]);
    let place = place_of(&bytes);
    // It is not B's turn yet, nor ever C's.
    for (own, time) in [(B, 5), (A, 6), (B, 7), (C, 8)] {
        assert_eq!(record_time(&mut bytes, place, own, |address| address == own, time), Ok(()));
    }
    let option = TimestampOption::new(&bytes, place_of(&bytes)).unwrap();
    assert_eq!(option.entries().map(|entry| entry.time).collect::<Vec<_>>(), [6, 7]);
    assert_eq!(option.overflow(), 0);
}

fn place_of(header: &[u8]) -> OptionPlace {
    OptionPlaces::find(&header[LENGTH..]).unwrap().timestamp.unwrap()
}

// spec: RFC791 3.1
#[test]
fn nonsense_is_pointed_at() {
    let cases: [(&[u8], u8); 9] = [
        (&[7, 1, 0, 0], 21),
        (&[7, 5, 4, 0], 21),
        (&[1, 1, 1, 7], 24),
        (&[1, 131, 3, 3], 23),
        (&[137, 2, 1, 1], 21),
        (&[68, 4, 4, 0], 22),
        (&[68, 3, 5, 1], 21),
        (&[131, 3, 4, 137, 3, 4, 0, 0], 23),
        (&[7, 3, 4, 7, 3, 4, 0, 0], 23),
    ];
    for (options, pointer) in cases {
        assert_eq!(OptionPlaces::find(options), Err(BadOption { pointer }), "{options:?}");
    }
    // A pointer between two addresses is found when somebody wants to write there.
    let (mut bytes, places) = header(&[7, 7, 6, 0, 0, 0, 0, 0]);
    let place = places.record_route.unwrap();
    assert_eq!(place.record(&mut bytes, A), Err(BadOption { pointer: 22 }));
    let (bytes, places) = header(&[131, 7, 6, 0, 0, 0, 0, 0]);
    assert_eq!(places.source_route.unwrap().next_hop(&bytes), Err(BadOption { pointer: 22 }));
}

// spec: RFC791 3.2
#[test]
fn unknown_options_are_read_past_and_some_go_into_every_fragment() {
    let options = [0x94, 4, 0, 0, 7, 7, 4, 0, 0, 0, 0, 1, 131, 7, 4, 10, 0, 0, 1, 0];
    let (_, places) = header(&options);
    assert!(places.router_alert && places.record_route.is_some() && places.source_route.is_some());
    assert!(OptionPlaces::find(&[130, 3, 0, 1]).unwrap().is_empty());
    let copied = OptionBytes::copied(&options);
    assert_eq!(copied.as_bytes(), [0x94, 4, 0, 0, 131, 7, 4, 10, 0, 0, 1, 1]);
    assert!(OptionBytes::copied(&[131, 40, 4]).as_bytes().is_empty());
}
