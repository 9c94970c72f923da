//! Replies with options as servers write them, and as nobody should.

use super::*;

const CARD: HardwareAddress = HardwareAddress([2, 0, 0, 0, 0, 1]);
const IDENTIFIER: [u8; 3] = [255, 1, 2];

/// An acknowledgment of 10.0.0.9 with these options behind the least that there must be.
fn message(options: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; FIXED_BYTES];
    bytes[..3].copy_from_slice(&[2, 1, 6]);
    bytes[16..20].copy_from_slice(&[10, 0, 0, 9]);
    bytes[28..34].copy_from_slice(&CARD.0);
    bytes[236..].copy_from_slice(&dhcproto::v4::MAGIC);
    bytes.extend_from_slice(&[53, 1, 5, 54, 4, 10, 0, 0, 1, 51, 4, 0, 0, 1, 0]);
    bytes.extend_from_slice(options);
    bytes
}
fn parse(options: &[u8]) -> Result<Reply, Refused> {
    Reply::parse(&message(options), CARD, &IDENTIFIER)
}
fn granted(options: &[u8]) -> Grant {
    parse(options).unwrap().grant.unwrap()
}
fn routes_of(options: &[u8]) -> Vec<String> {
    let text = |route: &LeasedRoute| match route.gateway {
        Some(gateway) => format!("{} {gateway}", route.destination),
        None => route.destination.to_string(),
    };
    granted(options).settings.routes.iter().map(text).collect()
}

const MASK: [u8; 6] = [1, 4, 255, 255, 255, 0];

// RFC 3442
#[test]
fn routes_of_any_length_go_before_all_others() {
    let routers =
        [3, 8, 10, 0, 0, 1, 10, 0, 0, 2, 33, 16, 172, 16, 0, 0, 10, 0, 0, 3, 0, 0, 0, 0, 10, 0, 0, 4];
    assert_eq!(routes_of(&routers), ["0.0.0.0/0 10.0.0.1", "0.0.0.0/0 10.0.0.2", "172.16.0.0/16 10.0.0.3"]);
    let classless = [121, 20, 0, 10, 0, 0, 7, 24, 192, 0, 2, 10, 0, 0, 8, 16, 169, 254, 0, 0, 0, 0];
    let both = [&routers[..], &classless].concat();
    assert_eq!(routes_of(&both), ["0.0.0.0/0 10.0.0.7", "192.0.2.0/24 10.0.0.8", "169.254.0.0/16"]);
    // A prefix of nine bits has two octets, of which the last seven bits count for nothing.
    let ignored_bits = [121, 7, 9, 10, 0xff, 10, 0, 0, 8];
    assert_eq!(routes_of(&ignored_bits), ["10.128.0.0/9 10.0.0.8"]);
    // One that does not add up is none, and the others hold.
    for spoilt in [&[121, 4, 0, 10, 0, 0][..], &[121, 5, 33, 1, 2, 3, 4], &[121, 0]] {
        assert_eq!(routes_of(&[&routers[..10], spoilt].concat()).len(), 2, "{spoilt:?}");
    }
    // We are nobody's gateway to ourselves, and neither is nobody.
    assert!(routes_of(&[3, 12, 10, 0, 0, 9, 0, 0, 0, 0, 255, 255, 255, 255]).is_empty());
    let many: Vec<u8> =
        (0..150u8).flat_map(|i| [121, 7, 16, 172, i, 10, 0, 0, 1].into_iter().skip(2)).collect();
    let parts: Vec<u8> =
        many.chunks(240).flat_map(|part| [&[121, part.len() as u8][..], part].concat()).collect();
    assert!(parts.len() < limits::REPLY_BYTES - 300);
    assert_eq!(routes_of(&parts).len(), limits::ROUTES);
}

// RFC 3396, RFC 2132 §9.3
#[test]
fn long_options_are_put_together_and_the_name_fields_are_read_when_the_message_says_so() {
    let halves = [6, 3, 10, 0, 0, 15, 1, b'x', 6, 5, 53, 10, 0, 0, 54];
    assert_eq!(
        granted(&halves).settings.name_servers,
        [Ipv4Addr::new(10, 0, 0, 53), Ipv4Addr::new(10, 0, 0, 54)]
    );
    for (bits, expected) in [(0, 0), (1, 1), (2, 1), (3, 2)] {
        let mut bytes = message(&[52, 1, bits, 255]);
        bytes[108..115].copy_from_slice(&[6, 4, 10, 0, 0, 53, 255]);
        bytes[44..51].copy_from_slice(&[6, 4, 10, 0, 0, 54, 255]);
        let reply = Reply::parse(&bytes, CARD, &IDENTIFIER).unwrap();
        assert_eq!(reply.grant.unwrap().settings.name_servers.len(), expected, "{bits}");
    }
}

// RFC 3397
#[test]
fn search_domains_are_names_and_nothing_else() {
    let list =
        [119, 18, 3, b'm', b'i', b't', 3, b'e', b'd', b'u', 0, 3, b'l', b'c', b's', 0xc0, 0, 1, b'x', 0];
    assert_eq!(granted(&list).settings.search, ["mit.edu", "lcs.mit.edu", "x"]);
    assert_eq!(granted(&[15, 8, b'm', b'i', b't', b'.', b'e', b'd', b'u', 0]).settings.search, ["mit.edu"]);
    for hostile in ["a b", "a/b", "a\nnameserver 6.6.6.6", "", "..", "\u{e9}"] {
        let option = [&[15, hostile.len() as u8][..], hostile.as_bytes()].concat();
        assert!(granted(&option).settings.search.is_empty(), "{hostile:?}");
    }
    // A name that points to itself ends the list.
    assert!(granted(&[119, 4, 1, b'a', 0xc0, 0]).settings.search.len() <= 1);
}

#[test]
fn what_a_host_cannot_have_is_refused() {
    let with_address = |address: [u8; 4], options: &[u8]| {
        let mut bytes = message(options);
        bytes[16..20].copy_from_slice(&address);
        Reply::parse(&bytes, CARD, &IDENTIFIER).map(|_| ())
    };
    for address in
        [[0; 4], [127, 0, 0, 1], [224, 0, 0, 1], [255; 4], [10, 0, 0, 0], [10, 0, 0, 255], [169, 254, 1, 1]]
    {
        assert_eq!(with_address(address, &MASK), Err(Refused::Address), "{address:?}");
    }
    assert_eq!(with_address([10, 0, 0, 0], &[1, 4, 255, 255, 255, 254]), Ok(()), "RFC 3021");
    for mask in [[255, 0, 255, 0], [0, 0, 0, 0], [0, 255, 255, 255]] {
        assert_eq!(
            with_address([10, 0, 0, 9], &[1, 4, mask[0], mask[1], mask[2], mask[3]]),
            Err(Refused::Malformed)
        );
    }
    assert_eq!(granted(&[]).prefix_bits, 8, "by its class");
    assert_eq!(granted(&[26, 2, 0, 68]).settings.mtu_bytes, None);
    assert_eq!(granted(&[26, 2, 5, 120]).settings.mtu_bytes, Some(1400));
    // Without a server, a kind, a time; and for no time.
    let without = |number: u8| {
        let mut bytes = message(&[]);
        let place = FIXED_BYTES
            + match number {
                53 => 0,
                54 => 3,
                _ => 9,
            };
        bytes[place] = 200;
        Reply::parse(&bytes, CARD, &IDENTIFIER).map(|_| ())
    };
    assert_eq!(
        [without(53), without(54), without(51)],
        [Err(Refused::NotAReply), Err(Refused::NoServer), Err(Refused::Time)]
    );
    let mut brief = message(&[]);
    brief[FIXED_BYTES + 13..FIXED_BYTES + 15].copy_from_slice(&[0, 1]);
    assert_eq!(Reply::parse(&brief, CARD, &IDENTIFIER).map(|_| ()), Err(Refused::Time));
}

#[test]
fn a_message_cut_off_anywhere_is_refused_or_read_and_never_more() {
    let whole = message(&[6, 4, 10, 0, 0, 53, 121, 5, 0, 10, 0, 0, 1, 119, 3, 1, b'x', 0, 255]);
    for length in 0..whole.len() {
        let read = Reply::parse(&whole[..length], CARD, &IDENTIFIER);
        assert_eq!(read.is_err(), length < FIXED_BYTES + 15, "{length}: {read:?}");
    }
    let mut other = whole.clone();
    other[236] = 0;
    assert_eq!(Reply::parse(&other, CARD, &IDENTIFIER), Err(Refused::Malformed));
    other = whole.clone();
    other[2] = 255;
    assert_eq!(Reply::parse(&other, CARD, &IDENTIFIER), Err(Refused::NotForUs), "a length beyond the field");
    let twice = [&whole[..], &[0; 1500]].concat();
    assert_eq!(Reply::parse(&twice, CARD, &IDENTIFIER), Err(Refused::TooLong));
}
