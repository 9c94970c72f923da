use super::*;
use crate::ipv6::Ipv6Header;
use inhost_base::Ipv6Addr;

/// A packet whose fixed header names `first` and whose payload is `payload`.
fn packet(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; LENGTH];
    Ipv6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, first, payload.len() as u16).emit(&mut packet);
    packet.extend(payload);
    packet
}

fn walked(first: u8, payload: &[u8]) -> Result<(u8, usize), ExtensionError> {
    let packet = packet(first, payload);
    walk(&Ipv6View::new(&packet).unwrap()).map(|upper| (upper.protocol, upper.offset))
}

#[test]
fn a_plain_packet_has_no_chain() {
    assert_eq!(walked(protocol::UDP, &[0; 8]), Ok((protocol::UDP, 40)));
    assert_eq!(walked(protocol::NO_NEXT_HEADER, &[]), Ok((protocol::NO_NEXT_HEADER, 40)));
}

#[test]
fn a_chain_is_walked_to_its_end() {
    let payload = [
        43, 0, 5, 2, 0, 0, 1, 0, // hop-by-hop with a router alert
        60, 0, 4, 0, 0, 0, 0, 0, // routing of an unknown type, no segments left
        6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // destination options, one PadN
        0xaa,
    ];
    let packet = packet(protocol::HOP_BY_HOP, &payload);
    let upper = walk(&Ipv6View::new(&packet).unwrap()).unwrap();
    assert_eq!((upper.protocol, upper.offset, upper.payload), (6, 72, &[0xaa][..]));
    assert_eq!((upper.next_header_offset, upper.router_alert), (56, Some(0)));
    assert_eq!(upper.fragment, None);
}

#[test]
fn the_mld_header_is_a_router_alert() {
    // spec: RFC2710 3
    let mut header = [0; 8];
    assert_eq!(emit_mld_hop_by_hop(&mut header), 8);
    let packet = packet(protocol::HOP_BY_HOP, &header);
    let upper = walk(&Ipv6View::new(&packet).unwrap()).unwrap();
    assert_eq!((upper.protocol, upper.router_alert), (protocol::ICMPV6, Some(0)));
}

#[test]
fn hop_by_hop_stands_first_or_nowhere() {
    // spec: RFC8200 4.1
    let payload = [0, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0];
    assert_eq!(walked(60, &payload), Err(problem(UNRECOGNISED_NEXT_HEADER, 40)));
    assert_eq!(walked(0, &payload), Err(problem(UNRECOGNISED_NEXT_HEADER, 40)));
}

#[test]
fn unknown_options_are_treated_as_they_ask() {
    // spec: RFC8200 4.2
    let of = |kind: u8| walked(60, &[17, 0, 0, kind, 3, 9, 9, 9]);
    assert_eq!(of(0x1e), Ok((17, 48)));
    assert_eq!(of(0x5e), Err(ExtensionError::Discard(Discard::OptionAsked)));
    let told =
        |even_if_multicast| Err(ExtensionError::ParameterProblem { code: 2, pointer: 43, even_if_multicast });
    assert_eq!(of(0x9e), told(true));
    assert_eq!(of(0xde), told(false));
}

#[test]
fn routing_with_segments_left_is_refused() {
    // spec: RFC8200 4.4
    // spec: RFC5095 3
    for kind in [0, 2, 3, 4, 253] {
        assert_eq!(walked(43, &[17, 0, kind, 1, 0, 0, 0, 0]), Err(problem(ERRONEOUS_FIELD, 42)));
    }
}

#[test]
fn options_stay_within_their_header() {
    assert_eq!(walked(60, &[17, 0, 30, 5, 0, 0, 0, 0]), Err(problem(ERRONEOUS_FIELD, 43)));
    // Where the length would stand, the header has ended: the option itself is pointed to.
    assert_eq!(walked(60, &[17, 0, 1, 3, 0, 0, 0, 30]), Err(problem(ERRONEOUS_FIELD, 47)));
    let truncated = Err(ExtensionError::Discard(Discard::Truncated));
    assert_eq!(walked(60, &[17, 1, 1, 4, 0, 0, 0, 0]), truncated);
    assert_eq!(walked(60, &[17]), truncated);
    assert_eq!(walked(44, &[17, 0, 0, 1, 0, 0, 0]), truncated);
}

#[test]
fn the_chain_and_its_options_are_bounded() {
    let link = [60, 0, 1, 4, 0, 0, 0, 0];
    let mut payload = link.repeat(MAX_EXTENSION_HEADERS);
    payload[8 * (MAX_EXTENSION_HEADERS - 1)] = 17;
    assert_eq!(walked(60, &payload), Ok((17, LENGTH + payload.len())));
    let payload = link.repeat(MAX_EXTENSION_HEADERS + 2);
    assert_eq!(walked(60, &payload), Err(ExtensionError::Discard(Discard::TooManyHeaders)));
    let mut options = vec![17, 3];
    options.extend([0x1e, 0].repeat(15));
    assert_eq!(walked(60, &options), Err(ExtensionError::Discard(Discard::TooManyOptions)));
}

#[test]
fn a_fragment_tells_where_it_belongs() {
    // spec: RFC8200 4.5
    let mut payload = [0; 24];
    assert_eq!(emit_fragment_header(17, 1480, true, 0xdead_beef, &mut payload), 8);
    let packet = packet(44, &payload);
    let upper = walk(&Ipv6View::new(&packet).unwrap()).unwrap();
    let expected = Fragment {
        offset_bytes: 1480,
        more_fragments: true,
        identification: 0xdead_beef,
        header_offset: 40,
        named_at: 6,
    };
    assert_eq!((upper.protocol, upper.offset, upper.fragment), (17, 48, Some(expected)));
}

#[test]
fn an_atomic_fragment_is_a_datagram() {
    // spec: RFC6946 4
    let mut payload = [0; 16];
    emit_fragment_header(17, 0, false, 1, &mut payload);
    let packet = packet(44, &payload);
    let upper = walk(&Ipv6View::new(&packet).unwrap()).unwrap();
    assert_eq!((upper.fragment, upper.protocol, upper.next_header_offset), (None, 17, 40));
}

#[test]
fn impossible_fragments_are_refused() {
    // spec: RFC8200 4.5
    let mut payload = [0; 17];
    emit_fragment_header(17, 0, true, 1, &mut payload);
    assert_eq!(walked(44, &payload), Err(problem(ERRONEOUS_FIELD, 4)));
    emit_fragment_header(17, 65_528, false, 1, &mut payload);
    assert_eq!(walked(44, &payload), Err(problem(ERRONEOUS_FIELD, 42)));
    // spec: RFC7112 5
    let mut payload = [0; 24];
    emit_fragment_header(6, 0, true, 1, &mut payload);
    assert_eq!(walked(44, &payload), Err(problem(INCOMPLETE_CHAIN, 0)));
}
