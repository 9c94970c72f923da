//! IPv4 options: source routes, records of routes and times, and ICMP timestamps.

use crate::common::*;
use inhost_base::{Duration, IpAddr, LinkId};
use inhost_buf::Slices;
use inhost_event::Drop;
use inhost_ip::*;
use inhost_wire::ethernet::EthernetView;
use inhost_wire::icmpv4::{Icmpv4Message, Icmpv4View, NONSTANDARD_TIME, Times, UnreachableCode};
use inhost_wire::ipv4::{
    Ipv4Header, Ipv4View, OptionBytes, OptionPlaces, SourceRoute, TimestampKind, TimestampOption,
};
use inhost_wire::protocol;

const GATEWAY: &str = "10.0.0.9";

/// 10.0.0.1, whose neighbour 10.0.0.9 leads everywhere; the card is known.
fn host(change: impl FnOnce(&mut IpConfig)) -> Host {
    let mut config = IpConfig::default();
    change(&mut config);
    let mut host = Host::with_config(1, config);
    let link = InterfaceConfig::new("ethernet", Medium::Ethernet(CARD)).with_gateway(ip(GATEWAY));
    host.add(quiet(link, &["10.0.0.1/24", "fd00::1/64"]));
    for neighbour in [GATEWAY, "10.0.0.2"] {
        host.receive(&arp_request(PEER_CARD, neighbour, "10.0.0.1"));
    }
    host.sent();
    host
}
/// A packet with options as a far sender's, `data` of UDP or ICMP.
fn packet(destination: &str, number: u8, options: &[u8], data: &[u8]) -> Vec<u8> {
    ipv4_packet(Ipv4Header::new(v4("192.0.2.7"), v4(destination), number, 0), options, data)
}
fn echo_bytes() -> Vec<u8> {
    let request = Icmpv4Message::EchoRequest { identifier: 1, sequence: 2, data: b"by whom?" };
    let mut bytes = vec![0; request.length()];
    request.emit(&mut bytes);
    bytes
}
/// A source route as it arrives: past these hops, all of them done with.
fn completed(kind: u8, hops: &[&str]) -> Vec<u8> {
    let length = 3 + 4 * hops.len();
    let mut option = vec![1, kind, length as u8, length as u8 + 1];
    hops.iter().for_each(|hop| option.extend(v4(hop).octets()));
    option
}
/// The one packet that the host says.
fn frames(host: &mut Host) -> Vec<u8> {
    let frames = host.sent();
    assert_eq!(frames.len(), 1);
    EthernetView::new(&frames[0]).unwrap().payload().to_vec()
}
fn message(packet: &[u8]) -> Icmpv4Message<'_> {
    let view = Ipv4View::new(packet).unwrap();
    assert!(view.checksum_ok());
    let icmp = Icmpv4View::new(view.payload()).unwrap();
    assert!(icmp.checksum_ok());
    Icmpv4Message::parse(&icmp)
}
fn hops_of(host: &Host) -> Option<Vec<String>> {
    host.ip.return_route().map(|route| route.hops().map(|hop| hop.to_string()).collect())
}

// spec: RFC1122 3.2.1.8-5
#[test]
fn a_source_route_is_refused_unless_the_owner_takes_it() {
    let mut host = host(|_| {});
    for kind in [131, 137] {
        let bytes = packet("10.0.0.1", protocol::UDP, &completed(kind, &["10.9.9.9"]), &[0; 8]);
        assert_eq!(host.receive(&ipv4_frame(&bytes)), Received::Dropped(Drop::BadOption));
    }
    assert!(host.sent().is_empty() && hops_of(&host).is_none());
}

// spec: RFC1122 3.2.1.8-2, 3.2.1.8-6, 3.2.1.8-7
#[test]
fn the_way_back_is_handed_up_backwards_without_the_sender() {
    let mut host = host(|config| config.accept_source_routes = true);
    let route = completed(131, &["192.0.2.1", "198.51.100.1", GATEWAY]);
    let (received, _) =
        host.receive_all(LinkId(1), &ipv4_frame(&packet("10.0.0.1", protocol::UDP, &route, &[0; 8])));
    let Received::Datagram(datagram) = received else { panic!("{received:?}") };
    assert_eq!(datagram.header_bytes, 36);
    let back = [GATEWAY, "198.51.100.1", "192.0.2.1"].map(str::to_owned).to_vec();
    assert_eq!(hops_of(&host), Some(back.clone()));
    // The same from a sender that put itself first (case B).
    let route = completed(131, &["192.0.2.7", "192.0.2.1", "198.51.100.1", GATEWAY]);
    host.receive(&ipv4_frame(&packet("10.0.0.1", protocol::UDP, &route, &[0; 8])));
    assert_eq!(hops_of(&host), Some(back));
    // A route past nobody is none, and the next datagram without one has none.
    host.receive(&ipv4_frame(&packet("10.0.0.1", protocol::UDP, &completed(131, &["192.0.2.7"]), &[0; 8])));
    assert_eq!(hops_of(&host), None);
    host.receive(&ipv4_frame(&udp4("10.0.0.2", "10.0.0.1", &[0; 8])));
    assert_eq!(hops_of(&host), None);
}

// spec: RFC1122 3.2.2.6-7
#[test]
fn an_echo_reply_goes_back_by_the_route_by_which_the_request_came() {
    for (kind, strict) in [(131, false), (137, true)] {
        let mut host = host(|config| config.accept_source_routes = true);
        let route = completed(kind, &["192.0.2.1", GATEWAY]);
        host.receive(&ipv4_frame(&packet("10.0.0.1", protocol::ICMPV4, &route, &echo_bytes())));
        let reply = frames(&mut host);
        let view = Ipv4View::new(&reply).unwrap();
        assert!(matches!(message(&reply), Icmpv4Message::EchoReply { data: b"by whom?", .. }));
        assert_eq!((view.source(), view.destination()), (v4("10.0.0.1"), v4(GATEWAY)));
        let place = OptionPlaces::find(view.options()).unwrap().source_route.unwrap();
        assert_eq!(place.is_strict(&reply), strict);
        assert_eq!(place.next_hop(&reply), Ok(Some(v4("192.0.2.1"))));
        assert_eq!(place.final_hop(&reply), Some(v4("192.0.2.7")));
    }
}

// spec: RFC1122 3.2.2.6-6, 3.2.1.8-10, 3.2.2.8-3
#[test]
fn records_of_route_and_time_are_carried_on_in_the_reply() {
    let mut host = host(|config| config.record_options = true);
    let now = host.now;
    host.ip.set_time_of_day(now, Some(3_600_000));
    let mut options = OptionBytes::new();
    assert!(options.add_record_route(3));
    assert!(options.add_timestamp(TimestampKind::Addresses, 2, v4("192.0.2.7"), 5));
    let request = packet("10.0.0.1", protocol::ICMPV4, options.as_bytes(), &echo_bytes());
    host.receive(&ipv4_frame(&request));
    let reply = frames(&mut host);
    let view = Ipv4View::new(&reply).unwrap();
    assert_eq!(view.options().len(), options.as_bytes().len(), "nothing is truncated");
    let places = OptionPlaces::find(view.options()).unwrap();
    let route: Vec<_> = places.record_route.unwrap().recorded(&reply).collect();
    assert_eq!(route, [v4("10.0.0.1")]);
    let times = TimestampOption::new(&reply, places.timestamp.unwrap()).unwrap();
    let times: Vec<_> = times.entries().map(|entry| (entry.address, entry.time)).collect();
    assert_eq!(times, [(Some(v4("192.0.2.7")), 5), (Some(v4("10.0.0.1")), 3_600_000)]);
    // Without the knob they are ignored.
    let mut host = self::host(|_| {});
    host.receive(&ipv4_frame(&request));
    assert!(Ipv4View::new(&frames(&mut host)).unwrap().options().is_empty());
}

// spec: RFC1122 3.2.2.5-1
#[test]
fn an_option_that_makes_no_sense_is_pointed_at() {
    let mut host = host(|_| {});
    for (options, at) in [([7, 9, 4, 0], 21), ([68, 4, 4, 0], 22), ([131, 3, 2, 0], 22)] {
        let bytes = packet("10.0.0.1", protocol::UDP, &options, &[0; 8]);
        assert_eq!(host.receive(&ipv4_frame(&bytes)), Received::Dropped(Drop::BadOption));
        let error = frames(&mut host);
        let Icmpv4Message::ParameterProblem { code: 0, pointer, invoking } = message(&error) else {
            panic!("{error:?}");
        };
        assert_eq!((pointer, invoking), (at, &bytes[..]));
    }
    // Nothing is frames of what went to many, nor of a fragment that is not the first.
    let to_all =
        ipv4_packet(Ipv4Header::new(v4("10.0.0.2"), v4("10.0.0.255"), 17, 0), &[7, 9, 4, 0], &[0; 8]);
    host.receive(&frame(
        inhost_base::HardwareAddress::BROADCAST,
        PEER_CARD,
        inhost_wire::ethernet::EtherType::IPV4,
        &to_all,
    ));
    let mut header = Ipv4Header::new(v4("192.0.2.7"), v4("10.0.0.1"), 17, 0);
    (header.fragment_offset_bytes, header.dont_fragment) = (8, false);
    host.receive(&ipv4_frame(&ipv4_packet(header, &[7, 9, 4, 0], &[0; 8])));
    assert!(host.sent().is_empty());
}

// spec: RFC1122 3.3.5-3
#[test]
fn an_unfinished_route_that_we_do_not_follow_has_failed() {
    let mut host = host(|config| config.accept_source_routes = true);
    let mut options = OptionBytes::new();
    options.add_source_route(&SourceRoute::new(false, [v4("10.0.0.1")]).unwrap(), v4("10.0.0.2"));
    let bytes = packet("10.0.0.1", protocol::UDP, options.as_bytes(), &[0; 8]);
    assert_eq!(host.receive(&ipv4_frame(&bytes)), Received::Dropped(Drop::BadOption));
    let error = frames(&mut host);
    let failed = UnreachableCode::SourceRouteFailed;
    let expected = Icmpv4Message::DestinationUnreachable { code: failed, next_hop_mtu: 0, invoking: &bytes };
    assert_eq!(message(&error), expected);
}

// spec: RFC1122 3.3.5-1, 3.3.5-2
#[test]
fn a_router_that_may_follows_the_route_and_records_itself() {
    let mut forwarding = Forwarding::default();
    forwarding.source_routes = true;
    let mut router = host(|config| {
        config.forwarding = Some(forwarding);
        config.record_options = true;
    });
    let now = router.now;
    router.ip.set_time_of_day(now, Some(1000));
    let line = router.add(quiet(InterfaceConfig::new("line", Medium::Ip), &["10.5.0.1/24"]));
    let mut options = OptionBytes::new();
    options
        .add_source_route(&SourceRoute::new(true, [v4("10.0.0.1"), v4("10.5.0.2")]).unwrap(), v4("10.6.0.1"));
    options.add_timestamp(TimestampKind::Addresses, 2, v4("192.0.2.7"), 5);
    let bytes = packet("10.0.0.1", protocol::UDP, options.as_bytes(), &[0; 8]);
    assert_eq!(router.receive(&ipv4_frame(&bytes)), Received::Handled);
    let sent = router.sent_on(line).remove(0);
    let view = Ipv4View::new(&sent).unwrap();
    assert!(view.checksum_ok());
    assert_eq!((view.destination(), view.time_to_live()), (v4("10.5.0.2"), 63));
    let places = OptionPlaces::find(view.options()).unwrap();
    let route = places.source_route.unwrap();
    assert_eq!(route.recorded(&sent).collect::<Vec<_>>(), [v4("10.5.0.1")], "the address by which it left");
    assert_eq!(route.next_hop(&sent), Ok(Some(v4("10.6.0.1"))));
    let times = TimestampOption::new(&sent, places.timestamp.unwrap()).unwrap();
    assert_eq!(times.entries().nth(1).unwrap().address, Some(v4("10.5.0.1")));

    // A strict route goes to neighbours only; a loose one may pass others.
    for (strict, goes) in [(true, false), (false, true)] {
        let mut options = OptionBytes::new();
        options.add_source_route(&SourceRoute::new(strict, [v4("10.0.0.1")]).unwrap(), v4("203.0.113.1"));
        let bytes = packet("10.0.0.1", protocol::UDP, options.as_bytes(), &[0; 8]);
        let received = router.receive(&ipv4_frame(&bytes));
        assert_eq!(received == Received::Handled, goes, "{received:?}");
        assert_eq!(router.sent().len(), 1, "the packet, or that its route failed");
    }
}

// spec: RFC1122 3.2.1.8-1, 3.2.1.8-5, 3.2.1.8-8, 3.2.1.8-9
#[test]
fn a_datagram_of_ours_takes_the_route_that_it_is_given() {
    let mut host = host(|_| {});
    let now = host.now;
    host.ip.set_time_of_day(now, Some(7));
    let route = SourceRoute::new(true, [v4(GATEWAY), v4("198.51.100.1")]).unwrap();
    let path = host.ip.paths_mut().route_by(&route, ip("203.0.113.1"), None, None, now).unwrap();
    assert_eq!((path.destination, path.next_hop), (ip("203.0.113.1"), ip(GATEWAY)));
    assert_eq!(path.payload_limit_bytes(), 1500 - 32);
    let mut wanted = Ipv4Options::default();
    wanted.source_route = Some(route);
    wanted.record_route = 2;
    wanted.timestamps = Some((TimestampKind::Times, 2));
    let options = host.ip.header_options(&wanted, &path, now).unwrap();
    assert_eq!(options.length(), 12 + 12 + 12);
    let mut wire = Wire::default();
    let data = vec![1; 3000];
    let how = HeaderHow::new(protocol::UDP);
    host.with(|ip, env| {
        ip.send_datagram_with(&path, &how, Some(&options), Slices::one(&data), env, &mut wire)
    })
    .unwrap();
    for (index, frame) in wire.frames.iter().enumerate() {
        let packet = EthernetView::new(frame).unwrap().payload();
        let view = Ipv4View::new(packet).unwrap();
        assert!(view.checksum_ok() && view.total_length() <= 1500);
        assert_eq!(view.destination(), v4(GATEWAY));
        let places = OptionPlaces::find(view.options()).unwrap();
        assert_eq!(places.source_route.unwrap().final_hop(packet), Some(v4("203.0.113.1")));
        assert_eq!(places.record_route.is_some(), index == 0, "only the route goes into every fragment");
        if let Some(place) = places.timestamp {
            let times = TimestampOption::new(packet, place).unwrap();
            assert_eq!(times.entries().map(|entry| entry.time).collect::<Vec<_>>(), [7]);
        }
    }
    assert_eq!(wire.frames.len(), 3);
    // What cannot be.
    let mut too_much = wanted;
    too_much.record_route = 9;
    assert_eq!(host.ip.header_options(&too_much, &path, now), None);
    let far = SourceRoute::new(true, [v4("198.51.100.1")]).unwrap();
    assert_eq!(
        host.ip.paths_mut().route_by(&far, ip("203.0.113.1"), None, None, now),
        Err(RouteError::NoRoute)
    );
    let loose = SourceRoute::new(false, far.hops()).unwrap();
    assert_eq!(
        host.ip.paths_mut().route_by(&loose, ip("203.0.113.1"), None, None, now).unwrap().next_hop,
        ip(GATEWAY)
    );
    let ourselves = SourceRoute::new(false, [v4("10.0.0.1")]).unwrap();
    let refused = host.ip.paths_mut().route_by(&ourselves, ip("203.0.113.1"), None, None, now);
    assert_eq!(refused, Err(RouteError::BadDestination));
}

// spec: RFC1122 3.2.2.8-2, 3.2.2.8-6
#[test]
fn a_time_stamp_is_marked_nonstandard_until_the_time_of_day_is_set() {
    let mut host = host(|_| {});
    let ask = |host: &mut Host| {
        let times = Times { identifier: 3, sequence: 4, originate: 99, ..Times::default() };
        host.receive(&ipv4_frame(&icmp4("10.0.0.2", "10.0.0.1", Icmpv4Message::TimestampRequest(times))));
        let reply = frames(host);
        let Icmpv4Message::TimestampReply(times) = message(&reply) else { panic!("{reply:?}") };
        let view = Ipv4View::new(&reply).unwrap();
        assert_eq!((view.source(), view.destination()), (v4("10.0.0.1"), v4("10.0.0.2")));
        assert_eq!((times.identifier, times.sequence, times.originate), (3, 4, 99));
        assert_eq!(times.receive, times.transmit);
        times.receive
    };
    assert_eq!(ask(&mut host), NONSTANDARD_TIME | 1000);
    let now = host.now;
    host.ip.set_time_of_day(now, Some(86_399_000));
    assert_eq!(ask(&mut host), 86_399_000);
    host.pass(Duration::from_millis(2500));
    assert_eq!(ask(&mut host), 1500, "a day later it begins anew");
    // Not to a group, not without limit, and not where the owner does not want it.
    let request = Icmpv4Message::TimestampRequest(Times::default());
    let to_all = icmp4("10.0.0.2", "10.0.0.255", request);
    let everybody = inhost_base::HardwareAddress::BROADCAST;
    host.receive(&frame(everybody, PEER_CARD, inhost_wire::ethernet::EtherType::IPV4, &to_all));
    assert!(host.sent().is_empty());
    let answered = (0..1000)
        .filter(|_| {
            host.receive(&ipv4_frame(&icmp4("10.0.0.2", "10.0.0.1", request)));
            !host.sent().is_empty()
        })
        .count();
    assert!((1..=50).contains(&answered), "{answered}");
    let mut host = self::host(|config| config.answer_timestamps = false);
    host.receive(&ipv4_frame(&icmp4("10.0.0.2", "10.0.0.1", request)));
    assert!(host.sent().is_empty());
}

// spec: RFC1122 3.2.2.8-4
#[test]
fn a_timestamp_reply_takes_the_way_back_too() {
    let mut host = host(|config| config.accept_source_routes = true);
    let request = Icmpv4Message::TimestampRequest(Times::default());
    let mut bytes = vec![0; request.length()];
    request.emit(&mut bytes);
    let route = completed(131, &["192.0.2.1", GATEWAY]);
    host.receive(&ipv4_frame(&packet("10.0.0.1", protocol::ICMPV4, &route, &bytes)));
    let reply = frames(&mut host);
    assert!(matches!(message(&reply), Icmpv4Message::TimestampReply(_)));
    let view = Ipv4View::new(&reply).unwrap();
    let place = OptionPlaces::find(view.options()).unwrap().source_route.unwrap();
    assert_eq!(place.final_hop(&reply), Some(v4("192.0.2.7")));
}

// spec: RFC1122 3.2.1.8-3, 3.2.1.8-4; RFC9293 MUST-50
#[test]
fn other_options_are_ignored_and_the_data_is_delivered() {
    let mut host = host(|_| {});
    // Security, stream identifier, an unknown one, router alert.
    for options in
        [&[130, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &[136, 4, 0, 1], &[0x5e, 3, 9, 1], &[0x94, 4, 0, 0]]
    {
        let (received, rest) = host
            .receive_all(LinkId(1), &ipv4_frame(&packet("10.0.0.1", protocol::UDP, options, b"12345678")));
        assert!(matches!(received, Received::Datagram(_)), "{received:?}");
        assert_eq!(rest, b"12345678");
    }
}

#[test]
fn an_error_about_a_routed_datagram_names_its_destination() {
    let mut host = host(|_| {});
    let mut options = OptionBytes::new();
    let route = SourceRoute::new(false, [v4(GATEWAY)]).unwrap();
    options.add_source_route(&route, v4("203.0.113.1"));
    let ours = ipv4_packet(Ipv4Header::new(v4("10.0.0.1"), v4(GATEWAY), 17, 0), options.as_bytes(), &[0; 8]);
    let code = UnreachableCode::Host;
    let error = Icmpv4Message::DestinationUnreachable { code, next_hop_mtu: 0, invoking: &ours };
    let received = host.receive(&ipv4_frame(&icmp4(GATEWAY, "10.0.0.1", error)));
    let Received::Error(error) = received else { panic!("{received:?}") };
    assert_eq!(error.quoted.destination, IpAddr::V4(v4("203.0.113.1")));
}
