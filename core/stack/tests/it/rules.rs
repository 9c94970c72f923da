//! What the host answers to segments that belong to no connection, and what it takes no notice of.

use crate::common::packets::{SingleHost, header, ip_frame, parse_segment, segment_frame};
use crate::common::{LINK, address, endpoint};
use inhost_base::{Duration, Endpoint, HardwareAddress, Ipv4Addr, Sequence};
use inhost_event::{Drop, Ignore, TcpState};
use inhost_ip::{PREFERENCE_CONFIGURED, Route, RouteError, RouteOrigin};
use inhost_stack::{
    AnySocketId, ConnectError, ConnectOptions, ConnectionError, ListenOptions, Local, Medium, Readiness,
    StackConfig, StreamError,
};
use inhost_wire::arp::{self, ArpOperation, ArpPacket};
use inhost_wire::ethernet::{self, EtherType, EthernetHeader};
use inhost_wire::protocol;
use inhost_wire::tcp::{Flags, TcpHeader, TcpOptions};

fn peer(port: u16) -> Endpoint {
    endpoint(1, port)
}
fn here(port: u16) -> Endpoint {
    endpoint(0, port)
}
fn listening(port: u16) -> SingleHost {
    let mut host = SingleHost::new();
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, port);
    host.stack.tcp(host.now, &mut Ignore).listen(any, ListenOptions::default()).unwrap();
    host
}
fn dropped(host: &SingleHost, why: Drop) -> u64 {
    host.stack.instruments().link_counters(LINK).unwrap().dropped_for(why)
}
/// A connection that the peer opened: the host's next sequence number, and the peer's.
fn opened(host: &mut SingleHost, port: u16) -> (u32, u32) {
    host.segment(peer(2000), here(port), header(Flags::SYN, 100, 0), b"");
    let reply = host.segment_sent().header;
    assert_eq!((reply.flags, reply.acknowledgment), (Flags::SYN | Flags::ACK, Sequence(101)));
    let next = reply.sequence.0.wrapping_add(1);
    host.segment(peer(2000), here(port), header(Flags::ACK, 101, next), b"");
    (next, 101)
}

#[test]
fn a_closed_port_answers_as_the_standard_says() {
    let mut host = SingleHost::new();
    // RFC 9293 §3.10.7.1: without ACK the answer acknowledges all of the segment.
    host.segment(peer(2000), here(80), header(Flags::SYN, 700, 0), b"abc");
    let reset = host.segment_sent();
    assert_eq!((reset.from, reset.to), (here(80), peer(2000)));
    assert_eq!(reset.header.flags, Flags::RST | Flags::ACK);
    assert_eq!((reset.header.sequence, reset.header.acknowledgment), (Sequence(0), Sequence(704)));
    host.segment(peer(2000), here(80), header(Flags::FIN, 700, 0), b"");
    assert_eq!(host.segment_sent().header.acknowledgment, Sequence(701));
    // With ACK it takes its number from there, and has no ACK of its own.
    host.segment(peer(2000), here(80), header(Flags::ACK, 700, 4711), b"");
    let reset = host.segment_sent().header;
    assert_eq!((reset.flags, reset.sequence), (Flags::RST, Sequence(4711)));
    // A reset is never answered.
    for flags in [Flags::RST, Flags::RST | Flags::ACK, Flags::RST | Flags::SYN] {
        host.segment(peer(2000), here(80), header(flags, 1, 1), b"");
        assert!(host.segments().is_empty());
    }
    assert_eq!(dropped(&host, Drop::NoSocket), 6);
}

#[test]
fn resets_are_limited_in_rate_and_the_limit_recovers() {
    let mut config = StackConfig::default();
    config.resets_per_second = 20;
    let mut host = SingleHost::with(config, |link| link);
    for port in 1..100 {
        host.segment(peer(2000), here(port), header(Flags::SYN, 1, 0), b"");
    }
    let first = host.segments().len();
    assert!((12..=30).contains(&first), "{first} resets: about twenty, but not to be counted on");
    assert_eq!(host.stack.instruments().counters().resets_limited, 99 - first as u64);
    host.pass(Duration::from_millis(500));
    for port in 1..100 {
        host.segment(peer(2000), here(port), header(Flags::SYN, 1, 0), b"");
    }
    let second = host.segments().len();
    assert!((5..=18).contains(&second), "{second} resets in half a second");
}

#[test]
fn a_listener_takes_a_syn_and_nothing_else() {
    let mut host = listening(23);
    host.segment(peer(2000), here(23), header(Flags::RST, 1, 0), b"");
    host.segment(peer(2000), here(23), header(Flags::FIN, 1, 0), b"");
    host.segment(peer(2000), here(23), header(Flags::PSH, 1, 0), b"text");
    assert!(host.segments().is_empty());
    host.segment(peer(2000), here(23), header(Flags::ACK, 1, 99), b"");
    assert_eq!(host.segment_sent().header.flags, Flags::RST);
    host.segment(peer(2000), here(23), header(Flags::SYN | Flags::ACK, 1, 99), b"");
    assert_eq!(host.segment_sent().header.flags, Flags::RST);
    assert_eq!(host.stack.instruments().socket_count(), 1);
    opened(&mut host, 23);
    assert_eq!(host.stack.instruments().socket_count(), 2);
}

// spec: RFC9293 MUST-3
#[test]
fn a_bad_checksum_changes_nothing() {
    let mut host = listening(23);
    let mut frame = segment_frame(peer(2000), here(23), header(Flags::SYN, 1, 0), b"");
    let last = frame.len() - 1;
    frame[last - 3] ^= 1;
    host.deliver(&frame);
    assert!(host.segments().is_empty());
    assert_eq!((dropped(&host, Drop::Checksum), host.stack.instruments().socket_count()), (1, 1));
}

// spec: RFC9293 MUST-50
#[test]
fn ip_options_do_not_disturb_a_segment() {
    use inhost_wire::ipv4::Ipv4Header;
    let mut host = listening(23);
    let plain = segment_frame(peer(2000), here(23), header(Flags::SYN, 1, 0), b"");
    let (std::net::IpAddr::V4(from), std::net::IpAddr::V4(to)) = (address(1), address(0)) else { panic!() };
    // No operation, a record of the route, a time stamp, the end.
    let options = [1, 7, 7, 4, 0, 0, 0, 0, 68, 8, 5, 0, 0, 0, 0, 0];
    let mut frame = vec![0; 20 + options.len()];
    let ip = Ipv4Header::new(from, to, protocol::TCP, plain.len() as u16 - 20);
    assert_eq!(ip.emit_with_options(&options, &mut frame), frame.len());
    frame.extend_from_slice(&plain[20..]);
    host.deliver(&frame);
    assert_eq!(host.segment_sent().header.flags, Flags::SYN | Flags::ACK);
}

// spec: RFC9293 MUST-57
#[test]
fn a_syn_to_a_broadcast_or_group_address_is_dropped_silently() {
    let mut host = listening(23);
    for to in [Ipv4Addr::BROADCAST, Ipv4Addr::new(10, 0, 0, 255), Ipv4Addr::new(224, 0, 0, 1)] {
        host.segment(peer(2000), Endpoint::new(to, 23), header(Flags::SYN, 1, 0), b"");
    }
    assert!(host.sent.is_empty());
    assert_eq!(host.stack.instruments().socket_count(), 1);
}

// spec: RFC9293 MUST-63
#[test]
fn a_syn_from_an_address_that_cannot_be_a_source_is_dropped_silently() {
    let mut host = listening(23);
    let sources = [
        Ipv4Addr::BROADCAST,
        Ipv4Addr::new(224, 0, 0, 1),
        Ipv4Addr::UNSPECIFIED,
        Ipv4Addr::new(10, 0, 0, 255),
    ];
    for from in sources {
        host.segment(Endpoint::new(from, 2000), here(23), header(Flags::SYN, 1, 0), b"");
    }
    assert!(host.sent.is_empty());
    assert_eq!(host.stack.instruments().socket_count(), 1);
}

#[test]
fn headers_that_lie_are_dropped() {
    let mut host = listening(23);
    let whole = segment_frame(peer(2000), here(23), header(Flags::SYN, 1, 0), b"");
    for length in 0..20 {
        let frame = ip_frame(address(1), address(0), protocol::TCP, &whole[20..20 + length]);
        host.deliver(&frame);
    }
    host.segment(peer(0), here(23), header(Flags::SYN, 1, 0), b"");
    host.segment(peer(2000), here(0), header(Flags::SYN, 1, 0), b"");
    assert!(host.segments().is_empty());
    assert_eq!((dropped(&host, Drop::Malformed), host.stack.instruments().socket_count()), (22, 1));
}

// spec: RFC9293 MUST-46
#[test]
fn a_call_to_where_nobody_can_be_is_refused_at_once() {
    let mut host = SingleHost::new();
    let mut call = |to: Endpoint| {
        host.stack.tcp(host.now, &mut Ignore).connect(to, ConnectOptions::default()).unwrap_err()
    };
    for to in ["255.255.255.255", "224.0.0.1", "0.0.0.0", "ff02::1", "::"] {
        let why = call(Endpoint::new(to.parse::<std::net::IpAddr>().unwrap(), 80));
        assert_eq!(why, ConnectError::BadRemote, "{to}");
    }
    assert_eq!(call(Endpoint::new(Ipv4Addr::new(10, 0, 0, 255), 80)), ConnectError::BadRemote);
    assert_eq!(call(peer(0)), ConnectError::BadRemote);
    assert_eq!(host.stack.instruments().socket_count(), 0);
}

// spec: RFC9293 MUST-43
// spec: RFC9293 MUST-44
// spec: RFC9293 MUST-45
#[test]
fn the_local_end_is_as_asked_for_or_chosen_and_stays() {
    let mut host = SingleHost::new();
    let chosen = host.stack.tcp(host.now, &mut Ignore).connect(peer(80), ConnectOptions::default()).unwrap();
    let local = Local { address: Some(address(0)), port: 4444 };
    let options = || {
        let mut options = ConnectOptions::default();
        options.local = local;
        options
    };
    let asked = host.stack.tcp(host.now, &mut Ignore).connect(peer(80), options()).unwrap();
    let again = host.stack.tcp(host.now, &mut Ignore).connect(peer(80), options());
    assert_eq!(again.unwrap_err(), ConnectError::InUse);
    let (chosen, _) = host.stack.endpoints(chosen).unwrap();
    assert_eq!(chosen.address, address(0));
    assert!(chosen.port >= 49_152);
    assert_eq!(host.stack.endpoints(asked), Some((here(4444), Some(peer(80)))));
    host.flush();
    assert!(host.segments().iter().all(|sent| sent.from == chosen || sent.from == here(4444)));
    host.pass(Duration::from_secs(10));
    let again = host.segments();
    assert!(again.len() > 2 && again.iter().all(|sent| sent.from == chosen || sent.from == here(4444)));
}

// spec: RFC9293 MUST-41
// spec: RFC9293 MUST-42
#[test]
fn a_listener_and_connections_share_a_port() {
    let mut host = SingleHost::new();
    let local = Local { address: None, port: 23 };
    let mut options = ConnectOptions::default();
    options.local = local;
    let caller = host.stack.tcp(host.now, &mut Ignore).connect(peer(80), options).unwrap();
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, 23);
    let listener = host.stack.tcp(host.now, &mut Ignore).listen(any, ListenOptions::default()).unwrap();
    host.flush();
    let syn = host.segment_sent().header;
    opened(&mut host, 23);
    assert!(host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap().is_some());
    // The call that was there before goes on as if nothing had happened.
    let answer = header(Flags::SYN | Flags::ACK, 900, syn.sequence.0.wrapping_add(1));
    host.segment(peer(80), here(23), answer, b"");
    assert!(host.stack.readiness(caller).contains(Readiness::CONNECTED));
}

// spec: RFC9293 MUST-15
// spec: RFC9293 MUST-67; RFC1122 3.3.2-3, 3.3.3-1
#[test]
fn segment_sizes_follow_the_path_and_the_peer() {
    let mut host = listening(23);
    let (next, _) = opened(&mut host, 23);
    let socket = accepted(&mut host);
    host.stack.tcp(host.now, &mut Ignore).send(socket, &[7; 4000]).unwrap();
    host.flush();
    // The peer named no size.
    assert!(host.segments().iter().all(|sent| sent.payload.len() <= 536));
    let _ = next;
    let call = host.stack.tcp(host.now, &mut Ignore).connect(peer(80), ConnectOptions::default()).unwrap();
    host.flush();
    let syn = host.segment_sent();
    assert_eq!(syn.header.options.mss, Some(1460));
    host.stack.tcp(host.now, &mut Ignore).abort(call).unwrap();
}

fn accepted(host: &mut SingleHost) -> inhost_stack::TcpSocketId {
    let first = host.stack.instruments().sockets(host.now).next().unwrap().socket;
    let Some(AnySocketId::Listener(listener)) = host.stack.typed(first) else { panic!("no listener") };
    host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap().unwrap().socket
}

// spec: RFC9293 SHLD-3
#[test]
fn closing_with_unread_data_resets() {
    let mut host = listening(23);
    let (next, peer_next) = opened(&mut host, 23);
    let socket = accepted(&mut host);
    host.segment(peer(2000), here(23), header(Flags::ACK | Flags::PSH, peer_next, next), b"unread");
    host.segments();
    host.stack.close(socket, host.now, &mut Ignore).unwrap();
    host.flush();
    assert!(host.segment_sent().header.flags.rst());
    assert_eq!(host.stack.instruments().socket_count(), 1);
    assert_eq!(host.stack.memory().outstanding_bytes(), 0);
}

#[test]
fn a_closed_socket_is_gone_and_its_connection_finishes_by_itself() {
    let mut host = listening(23);
    let (next, peer_next) = opened(&mut host, 23);
    let socket = accepted(&mut host);
    host.stack.tcp(host.now, &mut Ignore).send(socket, b"bye").unwrap();
    host.stack.close(socket, host.now, &mut Ignore).unwrap();
    assert_eq!(host.stack.readiness(socket), Readiness::empty());
    let sent = host.stack.tcp(host.now, &mut Ignore).send(socket, b"x");
    assert!(matches!(sent, Err(StreamError::Socket(_))));
    assert!(host.stack.close(socket, host.now, &mut Ignore).is_err());
    host.flush();
    let last = host.segments().pop().unwrap();
    assert!(last.header.flags.fin() && last.payload == b"bye");
    let end = next.wrapping_add(4);
    host.segment(peer(2000), here(23), header(Flags::ACK | Flags::FIN, peer_next, end), b"");
    let info = host.stack.instruments().info(socket, host.now).unwrap();
    assert_eq!((info.state, info.is_held), (Some(TcpState::TimeWait), false));
    host.pass(Duration::from_secs(61));
    assert_eq!(host.stack.instruments().socket_count(), 1);
}

// spec: RFC9293 MAY-2
// spec: RFC9293 MUST-13
#[test]
fn time_wait_lasts_and_gives_way_to_a_newer_syn_only() {
    let mut host = listening(23);
    let (next, peer_next) = opened(&mut host, 23);
    let socket = accepted(&mut host);
    host.stack.close(socket, host.now, &mut Ignore).unwrap();
    host.flush();
    let end = next.wrapping_add(1);
    host.segment(peer(2000), here(23), header(Flags::ACK | Flags::FIN, peer_next, end), b"");
    host.pass(Duration::from_secs(50));
    assert_eq!(host.stack.instruments().info(socket, host.now).unwrap().state, Some(TcpState::TimeWait));
    host.segments();
    // An old SYN is answered by an acknowledgment and changes nothing.
    host.segment(peer(2000), here(23), header(Flags::SYN, 50, 0), b"");
    assert!(host.segments().iter().all(|sent| !sent.header.flags.syn()));
    assert!(host.stack.instruments().info(socket, host.now).is_some());
    host.segment(peer(2000), here(23), header(Flags::SYN, 90_000, 0), b"");
    let reply = host.segment_sent().header;
    assert_eq!((reply.flags, reply.acknowledgment), (Flags::SYN | Flags::ACK, Sequence(90_001)));
    assert!(Sequence(end).precedes(reply.sequence));
    assert!(host.stack.instruments().info(socket, host.now).is_none());
    assert_eq!(host.stack.instruments().counters().time_wait_reused, 1);
}

#[test]
fn too_many_closing_connections_end_those_that_have_waited_longest() {
    let mut config = StackConfig::default();
    config.orphan_limit = 2;
    let mut host = SingleHost::with(config, |link| link);
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, 23);
    let listener = host.stack.tcp(host.now, &mut Ignore).listen(any, ListenOptions::default()).unwrap();
    for port in 1..=4 {
        host.segment(peer(port), here(23), header(Flags::SYN, 100, 0), b"");
        let next = host.segment_sent().header.sequence.0.wrapping_add(1);
        host.segment(peer(port), here(23), header(Flags::ACK, 101, next), b"");
        let socket = host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap().unwrap().socket;
        host.stack.close(socket, host.now, &mut Ignore).unwrap();
        host.flush();
        let ends = host.segments();
        let finished = ends.iter().filter(|sent| sent.header.flags.fin()).map(|sent| sent.to.port);
        assert_eq!(finished.collect::<Vec<_>>(), [port], "whoever closes does so in good order");
        let reset = ends.iter().filter(|sent| sent.header.flags.rst()).map(|sent| sent.to.port);
        assert_eq!(reset.collect::<Vec<_>>(), if port > 2 { vec![port - 2] } else { vec![] });
        host.pass(Duration::from_millis(10));
    }
    assert_eq!(
        (host.stack.instruments().socket_count(), host.stack.instruments().counters().orphans_aborted),
        (3, 2)
    );
}

// spec: RFC9293 MUST-48
// spec: RFC9293 MUST-49
// spec: RFC9293 SHLD-21, SHLD-22
#[test]
fn options_show_in_the_header() {
    use inhost_stack::SocketOption::{DifferentiatedServices, HopLimit};
    let mut host = listening(23);
    opened(&mut host, 23);
    let socket = accepted(&mut host);
    host.stack.set_option(socket, DifferentiatedServices(46), host.now, &mut Ignore).unwrap();
    host.stack.set_option(socket, HopLimit(Some(3)), host.now, &mut Ignore).unwrap();
    assert!(host.stack.set_option(socket, DifferentiatedServices(64), host.now, &mut Ignore).is_err());
    host.sent.clear();
    host.stack.tcp(host.now, &mut Ignore).send(socket, b"urgent business").unwrap();
    host.flush();
    let frame = host.sent.pop().unwrap();
    assert_eq!((frame[1], frame[8]), (46 << 2, 3));
}

// spec: RFC9293 MUST-8
#[test]
fn initial_sequence_numbers_move_with_the_clock() {
    let mut host = listening(23);
    let syn =
        TcpHeader { options: TcpOptions { mss: Some(1460), ..TcpOptions::NONE }, ..header(Flags::SYN, 1, 0) };
    host.segment(peer(2000), here(23), syn, b"");
    let first = host.segment_sent().header.sequence;
    host.segment(peer(2000), here(23), header(Flags::RST, 2, 0), b"");
    assert_eq!(host.stack.instruments().socket_count(), 1);
    host.pass(Duration::from_secs(2));
    host.segment(peer(2000), here(23), syn, b"");
    assert_eq!(host.segment_sent().header.sequence.since(first), 500_000);
    host.segment(peer(2001), here(23), syn, b"");
    assert_ne!(host.segment_sent().header.sequence.since(first), 500_000);
}

// UCLA §2.3
#[test]
fn a_call_through_the_second_gateway_is_answered_through_it() {
    let own = HardwareAddress([2, 0, 0, 0, 0, 1]);
    let cards = [HardwareAddress([2, 0, 0, 0, 0, 8]), HardwareAddress([2, 0, 0, 0, 0, 9])];
    let gateways = [Ipv4Addr::new(10, 0, 0, 8), Ipv4Addr::new(10, 0, 0, 9)];
    let mut host = SingleHost::with(StackConfig::default(), |mut config| {
        config.medium = Medium::Ethernet(own);
        config.with_gateway(gateways[0]).with_gateway(gateways[1])
    });
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, 23);
    host.stack.tcp(host.now, &mut Ignore).listen(any, ListenOptions::default()).unwrap();
    let frame_from = |card: HardwareAddress, ethertype: EtherType, body: &[u8]| {
        let mut frame = vec![0; ethernet::LENGTH];
        EthernetHeader { destination: own, source: card, ethertype }.emit(&mut frame);
        frame.extend_from_slice(body);
        frame
    };
    for (card, gateway) in cards.into_iter().zip(gateways) {
        let request = ArpPacket {
            operation: ArpOperation::Request,
            sender_hardware: card,
            sender_protocol: gateway,
            target_hardware: HardwareAddress::default(),
            target_protocol: Ipv4Addr::new(10, 0, 0, 1),
        };
        let mut body = [0; arp::LENGTH];
        request.emit(&mut body);
        host.deliver(&frame_from(card, EtherType::ARP, &body));
    }
    host.sent.clear();
    let answered_to = |host: &mut SingleHost| {
        let frames: Vec<_> = host.sent.drain(..).collect();
        assert_eq!(frames.len(), 1, "{frames:?}");
        (frames[0][..6].to_vec(), parse_segment(&frames[0][ethernet::LENGTH..]).unwrap())
    };
    let far = Endpoint::new(Ipv4Addr::new(192, 0, 2, 1), 2000);
    for (port, card) in [(2000, cards[1]), (2001, cards[0])] {
        let far = Endpoint { port, ..far };
        let syn = segment_frame(far, here(23), header(Flags::SYN, 100, 0), b"");
        host.deliver(&frame_from(card, EtherType::IPV4, &syn));
        let (to, reply) = answered_to(&mut host);
        assert_eq!((to, reply.header.flags), (card.0.to_vec(), Flags::SYN | Flags::ACK));
        // It stays so when the tables change.
        let generation = host.stack.ip().paths().generation();
        let elsewhere = Route {
            destination: format!("198.51.{}.0/24", port % 256).parse().unwrap(),
            gateway: Some(gateways[0].into()),
            link: LINK,
            preference: PREFERENCE_CONFIGURED,
            origin: RouteOrigin::Configured,
        };
        host.stack.ip_mut().add_route(elsewhere).unwrap();
        assert_ne!(host.stack.ip().paths().generation(), generation);
        host.pass(Duration::from_millis(1_100));
        assert_eq!(answered_to(&mut host).0, card.0.to_vec(), "the SYN and ACK again");
        let next = reply.header.sequence.0.wrapping_add(1);
        let ack = segment_frame(far, here(23), header(Flags::ACK, 101, next), b"");
        host.deliver(&frame_from(card, EtherType::IPV4, &ack));
        assert!(host.sent.is_empty());
    }
}

#[test]
fn what_has_no_route_says_so() {
    let mut host = SingleHost::new();
    for far in ["192.0.2.1", "2001:db8::1"] {
        let to = Endpoint { address: far.parse().unwrap(), port: 80 };
        let called = host.stack.tcp(host.now, &mut Ignore).connect(to, ConnectOptions::default());
        assert_eq!(called.unwrap_err(), ConnectError::Route(RouteError::NoRoute), "{far}");
    }
    // A route that goes away while the call is open.
    let route = Route {
        destination: "0.0.0.0/0".parse().unwrap(),
        link: LINK,
        gateway: Some(address(6)),
        preference: PREFERENCE_CONFIGURED,
        origin: RouteOrigin::Configured,
    };
    host.stack.ip_mut().add_route(route).unwrap();
    let to = Endpoint { address: "192.0.2.1".parse().unwrap(), port: 80 };
    let socket = host.stack.tcp(host.now, &mut Ignore).connect(to, ConnectOptions::default()).unwrap();
    host.flush();
    host.stack.ip_mut().remove_route(&route).unwrap();
    host.pass(Duration::from_secs(2));
    let error = host.stack.instruments().connection(socket).and_then(|connection| connection.error());
    assert_eq!(error, Some(ConnectionError::NetworkUnreachable));
}
