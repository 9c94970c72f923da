use super::*;
use crate::ndp::{NdpOptions, PrefixInformation, RecursiveDnsServer};
use inhost_base::HardwareAddress;

const A: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const B: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

fn survives(message: Icmpv6Message<'_>) -> Vec<u8> {
    let mut buffer = vec![0xee; message.length()];
    assert_eq!(message.emit(A, B, &mut buffer), buffer.len(), "{message:?}");
    let view = Icmpv6View::new(&buffer).unwrap();
    // spec: RFC4443 2.3
    assert!(view.checksum_ok(A, B) && !view.checksum_ok(A, A));
    assert_eq!(Icmpv6Message::parse(&view), Ok(message));
    assert_eq!(message.emit(A, B, &mut vec![0; buffer.len() - 1]), 0);
    buffer
}

#[test]
fn every_message_survives_the_wire() {
    // spec: RFC4443 3, 4
    let invoking = &[0x60; 48][..];
    for code in 0..=255 {
        survives(Icmpv6Message::DestinationUnreachable { code: UnreachableCode::from_u8(code), invoking });
        survives(Icmpv6Message::ParameterProblem { code, pointer: 1 << 20, invoking });
    }
    survives(Icmpv6Message::PacketTooBig { mtu: 1280, invoking });
    for code in [TimeExceededCode::InTransit, TimeExceededCode::Reassembly] {
        survives(Icmpv6Message::TimeExceeded { code, invoking });
    }
    survives(Icmpv6Message::EchoRequest { identifier: 1, sequence: 2, data: b"ping!" });
    survives(Icmpv6Message::EchoReply { identifier: 1, sequence: 2, data: b"" });
    survives(Icmpv6Message::Other { kind: 200, code: 7, body: b"" });
}

fn all_options(packet: &[u8]) -> NdpOptions<'_> {
    let mut options = NdpOptions {
        source_link_layer: Some(HardwareAddress([2, 0, 0, 0, 0, 1])),
        target_link_layer: Some(HardwareAddress([2, 0, 0, 0, 0, 2])),
        mtu: Some(1400),
        redirected: Some(packet),
        ..NdpOptions::default()
    };
    for i in 0..3 {
        options.prefixes.push(PrefixInformation {
            prefix: Ipv6Addr::new(0xfd00, i, 0, 0, 0, 0, 0, 0),
            prefix_bits: 64,
            on_link: true,
            autonomous: i == 1,
            valid_lifetime_s: u32::MAX,
            preferred_lifetime_s: 3600,
        });
    }
    for last in [53, 54] {
        let address = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last);
        options.dns_servers.push(RecursiveDnsServer { address, lifetime_s: 600 });
    }
    options
}

#[test]
fn neighbour_discovery_survives_the_wire() {
    // spec: RFC4861 4
    let options = all_options(&[0x60; 48]);
    survives(Icmpv6Message::Ndp(NdpMessage::RouterSolicitation { options }));
    survives(Icmpv6Message::Ndp(NdpMessage::RouterAdvertisement {
        hop_limit: 64,
        managed: true,
        other_configuration: false,
        router_lifetime_s: 1800,
        reachable_time_ms: 30_000,
        retransmit_timer_ms: 1000,
        options,
    }));
    let options = NdpOptions { source_link_layer: options.source_link_layer, ..NdpOptions::default() };
    survives(Icmpv6Message::Ndp(NdpMessage::NeighbourSolicitation { target: B, options }));
    for bits in 0..8 {
        survives(Icmpv6Message::Ndp(NdpMessage::NeighbourAdvertisement {
            router: bits & 1 != 0,
            solicited: bits & 2 != 0,
            override_cache: bits & 4 != 0,
            target: B,
            options,
        }));
    }
    survives(Icmpv6Message::Ndp(NdpMessage::Redirect { target: A, destination: B, options }));
}

#[test]
fn discovery_with_a_code_is_refused() {
    // spec: RFC4861 7.1.1
    let bytes = [135, 1, 0, 0, 0, 0, 0, 0];
    assert_eq!(Icmpv6Message::parse(&Icmpv6View::new(&bytes).unwrap()), Err(Malformed::Value));
}

#[test]
fn short_messages_are_refused() {
    for kind in [1, 2, 3, 4, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137] {
        let message = [kind, 0, 0, 0, 0, 0, 0];
        let view = Icmpv6View::new(&message).unwrap();
        assert_eq!(Icmpv6Message::parse(&view), Err(Malformed::Truncated), "type {kind}");
    }
    assert_eq!(Icmpv6View::new(&[1, 2, 3]).err(), Some(Malformed::Truncated));
}

#[test]
fn errors_are_told_from_queries() {
    // spec: RFC4443 2.4
    let other = |kind| Icmpv6Message::Other { kind, code: 0, body: &[] };
    assert!(other(127).is_error() && !other(128).is_error());
    let redirect = NdpMessage::Redirect { target: A, destination: B, options: NdpOptions::default() };
    assert!(Icmpv6Message::Ndp(redirect).is_error());
}
