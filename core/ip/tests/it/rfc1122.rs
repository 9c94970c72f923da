//! What RFC 1122 asks of a host's IP and no other test shows.

use crate::common::*;
use inhost_base::{HardwareAddress, LinkId};
use inhost_buf::Slices;
use inhost_event::Drop;
use inhost_ip::*;
use inhost_wire::ethernet::{EtherType, EthernetView};
use inhost_wire::ipv4::Ipv4Header;
use inhost_wire::protocol;

/// Knows its neighbour 10.0.0.2.
fn host_with(config: IpConfig) -> Host {
    let mut host = Host::with_config(1, config);
    let link = InterfaceConfig::new("ethernet", Medium::Ethernet(CARD));
    host.add(quiet(link, &["10.0.0.1/24", "10.8.0.1/16", "fd00::1/64"]));
    host.receive(&arp_request(PEER_CARD, "10.0.0.2", "10.0.0.1"));
    host.sent();
    host
}
/// The frame in which a datagram to `destination` leaves.
fn sent(host: &mut Host, destination: &str, how: HeaderHow) -> Vec<u8> {
    let now = host.now;
    let path = host.ip.paths_mut().route(ip(destination), None, Some(LinkId(1)), now).unwrap();
    let mut wire = Wire::default();
    host.with(|ip, env| ip.send_datagram(&path, &how, Slices::one(&[7; 8]), env, &mut wire)).unwrap();
    wire.frames.remove(0)
}

// spec: RFC1122 3.2.1.7-2
#[test]
fn the_last_hop_is_no_reason_to_drop_what_is_for_us() {
    let mut host = host_with(IpConfig::default());
    for hops in [0, 1] {
        let header = Ipv4Header {
            time_to_live: hops,
            ..Ipv4Header::new(v4("10.0.0.2"), v4("10.0.0.1"), protocol::UDP, 0)
        };
        let received = host.receive(&ipv4_frame(&ipv4_packet(header, &[], &[0; 8])));
        assert!(matches!(received, Received::Datagram(d) if d.hop_limit == hops), "{received:?}");
    }
}

// spec: RFC1122 3.2.1.7-1, 3.2.1.7-3, 3.2.1.7-4, 3.2.1.6-1, 3.4-1
#[test]
fn hops_are_the_transports_or_the_configured_ones_and_never_none() {
    let mut ip = IpConfig::default();
    ip.hop_limit = 99;
    let mut host = host_with(ip);
    let how = HeaderHow::new(protocol::UDP);
    for (asked, hops) in [(None, 99), (Some(3), 3), (Some(0), 1)] {
        let how = HeaderHow { hop_limit: asked, dscp_ecn: 0xb8, ..how };
        let (header, _) = as_ipv4(&sent(&mut host, "10.0.0.2", how)).unwrap();
        assert_eq!((header.time_to_live, header.dscp_ecn), (hops, 0xb8));
    }
}

// spec: RFC1122 2.3.3-1, 3.3.6-3
#[test]
fn broadcasts_and_groups_go_in_frames_of_their_kind() {
    let mut host = host_with(IpConfig::default());
    let how = HeaderHow::new(protocol::UDP);
    let group = HardwareAddress([1, 0, 0x5e, 1, 2, 3]);
    let all = HardwareAddress::BROADCAST;
    for (to, card) in [
        ("10.0.0.2", PEER_CARD),
        ("10.0.0.255", all),
        ("10.8.255.255", all),
        ("255.255.255.255", all),
        ("224.1.2.3", group),
    ] {
        let frame = sent(&mut host, to, how);
        let view = EthernetView::new(&frame).unwrap();
        assert_eq!(
            (view.destination(), view.source(), view.ethertype()),
            (card, CARD, EtherType::IPV4),
            "{to}"
        );
    }
}

// spec: RFC1122 2.4-1, 3.2.1.3-1, 3.3.1.1-2
#[test]
fn what_is_on_a_link_follows_from_masks_and_needs_no_gateway() {
    let mut host = host_with(IpConfig::default());
    for near in ["10.0.0.77", "10.8.200.1"] {
        assert_eq!(host.next_hop(near), near);
    }
    assert_eq!(host.route("10.9.0.1"), Err(RouteError::NoRoute));
    // The same packet in a frame for all is not taken for one that was sent to us alone.
    let packet = udp4("10.0.0.2", "10.0.0.1", &[0; 8]);
    assert!(matches!(host.receive(&ipv4_frame(&packet)), Received::Datagram(d) if d.to_unicast));
    let to_all = frame(HardwareAddress::BROADCAST, PEER_CARD, EtherType::IPV4, &packet);
    assert_eq!(host.receive(&to_all), Received::Dropped(Drop::NotForUs));
}

// spec: RFC1122 3.2.1.3-5, 3.2.2.9-1, 3.2.2.9-3
#[test]
fn no_broadcast_address_can_be_ours() {
    let mut host = host_with(IpConfig::default());
    for wrong in
        ["10.3.0.255/24", "10.3.0.0/24", "255.255.255.255/32", "224.0.0.5/24", "127.0.0.9/8", "0.0.0.0/0"]
    {
        let address = wrong.parse().unwrap();
        let added = host.with(|ip, env| ip.add_address(LinkId(1), address, env));
        assert_eq!(added, Err(ConfigureError::Invalid), "{wrong}");
    }
    let now = host.now;
    let from = host.ip.paths_mut().route(ip("10.0.0.2"), Some(ip("10.0.0.255")), None, now);
    assert_eq!(from, Err(RouteError::NotOurs));
    // On a link between two every address is a host's (RFC 3021).
    let address = "10.3.0.1/31".parse().unwrap();
    assert_eq!(host.with(|ip, env| ip.add_address(LinkId(1), address, env)), Ok(()));
}

// spec: RFC1122 3.2.2-7
#[test]
fn a_later_fragment_brings_no_error_about_its_options_or_its_hops() {
    let forwarding = Some(Forwarding::default());
    let mut ip = IpConfig::default();
    ip.forwarding = forwarding;
    let mut host = host_with(ip);
    let header = Ipv4Header {
        dont_fragment: false,
        fragment_offset_bytes: 800,
        time_to_live: 1,
        ..Ipv4Header::new(v4("10.0.0.2"), v4("192.0.2.1"), protocol::UDP, 0)
    };
    let dropped = host.receive(&ipv4_frame(&ipv4_packet(header, &[], &[0; 8])));
    assert_eq!(dropped, Received::Dropped(Drop::HopLimit));
    assert!(host.sent().is_empty());
    let first = Ipv4Header { fragment_offset_bytes: 0, more_fragments: true, ..header };
    host.receive(&ipv4_frame(&ipv4_packet(first, &[], &[0; 8])));
    assert_eq!(host.sent().len(), 1);
}

// spec: RFC1122 3.2.2.9-2
#[test]
fn address_mask_requests_are_not_answered() {
    let mut host = host_with(IpConfig::default());
    for kind in [15, 17] {
        let request = inhost_wire::icmpv4::Icmpv4Message::Other { kind, code: 0, body: &[0; 8] };
        let received = host.receive(&ipv4_frame(&icmp4("10.0.0.2", "10.0.0.1", request)));
        assert_eq!(received, Received::Dropped(Drop::UnknownProtocol));
    }
    assert!(host.sent().is_empty());
    assert_eq!(host.drops(Drop::UnknownProtocol), 2);
}
