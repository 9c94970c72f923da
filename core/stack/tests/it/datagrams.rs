//! UDP and echo sockets, and ICMP errors on their way to the socket that they concern.

use crate::common::packets::{SingleHost, emit, header, ip_frame};
use crate::common::{LINK, Net, address, address_v6, endpoint};
use inhost_base::{Duration, Endpoint, IpAddr, Ipv4Addr, Ipv6Addr};
use inhost_event::{Drop, Ignore};
use inhost_stack::{
    BindError, ConnectOptions, ConnectionError, DatagramError, ErrorKind, Readiness, SocketOption, SoftError,
    StackConfig, UdpOptions, UdpSocketId, Unreachable,
};
use inhost_wire::icmpv4::{Icmpv4Message, UnreachableCode};
use inhost_wire::ipv4::Ipv4View;
use inhost_wire::protocol;
use inhost_wire::tcp::Flags;

fn peer(port: u16) -> Endpoint {
    endpoint(1, port)
}
fn here(port: u16) -> Endpoint {
    endpoint(0, port)
}
fn bind(host: &mut SingleHost, port: u16, options: UdpOptions) -> UdpSocketId {
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, port);
    host.stack.udp(host.now, &mut Ignore).bind(any, options).unwrap()
}
fn receive(
    host: &mut SingleHost,
    socket: UdpSocketId,
) -> Result<(Vec<u8>, Endpoint, Endpoint), DatagramError> {
    let mut place = [0; 2000];
    let info = host.stack.udp(host.now, &mut Ignore).receive_from(socket, &mut place)?;
    Ok((place[..info.length_bytes.min(2000)].to_vec(), info.from, info.to))
}
fn send(
    host: &mut SingleHost,
    socket: UdpSocketId,
    bytes: &[u8],
    to: Option<Endpoint>,
) -> Result<(), DatagramError> {
    let done = host.stack.udp(host.now, &mut Ignore).send_to(socket, bytes, to, None);
    host.flush();
    done
}
/// An unreachable message about a frame that the host sent.
fn unreachable(host: &mut SingleHost, from: IpAddr, code: UnreachableCode, frame: &[u8]) {
    let invoking = &frame[..frame.len().min(28)];
    let next_hop_mtu = if code == UnreachableCode::FragmentationNeeded { 1000 } else { 0 };
    let message = emit(&Icmpv4Message::DestinationUnreachable { code, next_hop_mtu, invoking });
    host.icmp(from, &message);
}

// spec: RFC1122 4.1.3.5-1, 4.1.3.6-2
#[test]
fn datagrams_go_both_ways_with_checksum_and_addresses() {
    let mut host = SingleHost::new();
    let socket = bind(&mut host, 53, UdpOptions::default());
    host.datagram(peer(4000), here(53), b"question");
    let (socket_ready, ready) = host.stack.ready().unwrap();
    assert!(socket_ready == socket && ready.contains(Readiness::READABLE));
    assert_eq!(receive(&mut host, socket), Ok((b"question".to_vec(), peer(4000), here(53))));
    assert_eq!(receive(&mut host, socket), Err(DatagramError::WouldBlock));
    send(&mut host, socket, b"answer", Some(peer(4000))).unwrap();
    assert_eq!(host.datagrams(), [(here(53), peer(4000), b"answer".to_vec())]);
    send(&mut host, socket, b"", Some(peer(4000))).unwrap();
    assert_eq!(host.datagrams(), [(here(53), peer(4000), Vec::new())]);
    assert_eq!(send(&mut host, socket, b"x", None), Err(DatagramError::NoDestination));
    assert_eq!(send(&mut host, socket, &[0; 65_508], Some(peer(1))), Err(DatagramError::TooLong));
    host.stack.close(socket, host.now, &mut Ignore).unwrap();
    assert_eq!((host.stack.instruments().socket_count(), host.stack.memory().outstanding_bytes()), (0, 0));
}

// spec: RFC1122 4.1.3.4-2
#[test]
fn a_bad_udp_checksum_or_length_is_dropped() {
    let mut host = SingleHost::new();
    let socket = bind(&mut host, 53, UdpOptions::default());
    let body = [0x0f, 0xa0, 0, 53, 0, 9, 0xab, 0xcd, 1];
    host.deliver(&ip_frame(address(1), address(0), protocol::UDP, &body));
    host.deliver(&ip_frame(address(1), address(0), protocol::UDP, &[0x0f, 0xa0, 0, 53, 0, 99, 0, 0, 1]));
    host.deliver(&ip_frame(address(1), address(0), protocol::UDP, &body[..7]));
    assert_eq!(receive(&mut host, socket), Err(DatagramError::WouldBlock));
    let counters = host.stack.instruments().link_counters(LINK).unwrap();
    assert_eq!((counters.dropped_for(Drop::Checksum), counters.dropped_for(Drop::Malformed)), (1, 2));
    // IPv4 allows none to have been computed.
    host.deliver(&ip_frame(address(1), address(0), protocol::UDP, &[0x0f, 0xa0, 0, 53, 0, 9, 0, 0, 1]));
    assert_eq!(receive(&mut host, socket).unwrap().0, [1]);
}

// spec: RFC1122 3.2.2.1-1, 3.4-2, 4.1.3.1-1
#[test]
fn a_port_without_a_socket_answers_that_it_is_unreachable() {
    let mut host = SingleHost::new();
    host.datagram(peer(4000), here(99), b"anybody?");
    let messages = host.messages();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0][..2], [3, 3]);
    // The IP header and what follows it are quoted.
    assert_eq!(messages[0][8 + 20..8 + 24], [0x0f, 0xa0, 0, 99]);
    host.datagram(peer(4000), Endpoint::new(Ipv4Addr::BROADCAST, 99), b"anybody?");
    assert!(host.messages().is_empty(), "never to what was sent to many");
}

#[test]
fn the_receive_queue_counts_memory_and_its_limit_holds() {
    let mut host = SingleHost::new();
    let mut options = UdpOptions::default();
    options.receive_limit_bytes = 10_000;
    let socket = bind(&mut host, 53, options);
    for _ in 0..100 {
        host.datagram(peer(4000), here(53), &[9; 1000]);
    }
    assert!(host.stack.memory().outstanding_bytes() <= 10_000);
    let kept = core::iter::from_fn(|| receive(&mut host, socket).ok()).count();
    assert!((3..10).contains(&kept), "{kept}");
    let full = host.stack.instruments().link_counters(LINK).unwrap().dropped_for(Drop::QueueFull);
    assert_eq!(full as usize, 100 - kept);
    assert_eq!(host.stack.memory().outstanding_bytes(), 0);
}

// spec: RFC1122 4.1.3.3-1
#[test]
fn a_connected_socket_takes_from_its_peer_only_and_hears_of_errors() {
    let mut host = SingleHost::new();
    let socket = bind(&mut host, 53, UdpOptions::default());
    host.stack.udp(host.now, &mut Ignore).connect(socket, peer(4000)).unwrap();
    host.datagram(peer(4001), here(53), b"stranger");
    assert_eq!(receive(&mut host, socket), Err(DatagramError::WouldBlock));
    host.datagram(peer(4000), here(53), b"friend");
    assert_eq!(receive(&mut host, socket).unwrap().0, b"friend");
    host.sent.clear();
    send(&mut host, socket, b"hello", None).unwrap();
    let frame = host.sent.pop().unwrap();
    unreachable(&mut host, address(1), UnreachableCode::Port, &frame);
    assert!(host.stack.readiness(socket).contains(Readiness::ERROR));
    let refused = DatagramError::Unreachable(ErrorKind::PortUnreachable);
    assert_eq!(receive(&mut host, socket), Err(refused), "reported once");
    assert_eq!(receive(&mut host, socket), Err(DatagramError::WouldBlock));
    host.stack.udp(host.now, &mut Ignore).connect(socket, peer(5000)).unwrap();
    assert_eq!(host.stack.endpoints(socket), Some((here(53), Some(peer(5000)))));
}

/// Whether each packet that was sent may be fragmented by routers.
fn may_be_fragmented(host: &mut SingleHost) -> Vec<bool> {
    host.sent.drain(..).map(|frame| !Ipv4View::new(&frame).unwrap().dont_fragment()).collect()
}

#[test]
fn the_linux_choices_of_datagram_sockets() {
    for (options, whole, parts) in [
        (UdpOptions::default(), vec![true], vec![true, true]),
        (UdpOptions::linux(), vec![false], vec![true, true]),
    ] {
        let mut host = SingleHost::new();
        let socket = bind(&mut host, 53, options);
        send(&mut host, socket, &[0; 1000], Some(peer(7))).unwrap();
        assert_eq!(may_be_fragmented(&mut host), whole);
        send(&mut host, socket, &[0; 2000], Some(peer(7))).unwrap();
        assert_eq!(may_be_fragmented(&mut host), parts);
        let dont_fragment = SocketOption::DontFragment(false);
        host.stack.set_option(socket, dont_fragment, host.now, &mut Ignore).unwrap();
        send(&mut host, socket, &[0; 1000], Some(peer(7))).unwrap();
        assert_eq!(may_be_fragmented(&mut host), [true]);
    }
}

// spec: RFC1122 4.1.3.3-1
#[test]
fn every_error_is_heard_of_by_a_connected_socket_unless_it_is_linux_like() {
    for (options, hears) in [(UdpOptions::default(), true), (UdpOptions::linux(), false)] {
        let mut host = SingleHost::new();
        let socket = bind(&mut host, 53, options);
        host.stack.udp(host.now, &mut Ignore).connect(socket, peer(7)).unwrap();
        send(&mut host, socket, b"hello", None).unwrap();
        let frame = host.sent.pop().unwrap();
        unreachable(&mut host, address(1), UnreachableCode::Host, &frame);
        assert_eq!(host.stack.udp(host.now, &mut Ignore).take_error(socket).unwrap().is_some(), hears);
        unreachable(&mut host, address(1), UnreachableCode::Port, &frame);
        let refused = Some(DatagramError::Unreachable(ErrorKind::PortUnreachable));
        assert_eq!(host.stack.udp(host.now, &mut Ignore).take_error(socket), Ok(refused));
        assert_eq!(host.stack.udp(host.now, &mut Ignore).take_error(socket), Ok(None));
    }
}

#[test]
fn an_unconnected_socket_hears_of_errors_when_it_asks() {
    for asks in [false, true] {
        let mut host = SingleHost::new();
        let mut options = UdpOptions::default();
        options.report_unconnected_errors = asks;
        let socket = bind(&mut host, 53, options);
        send(&mut host, socket, b"hello", Some(peer(7))).unwrap();
        let frame = host.sent.pop().unwrap();
        unreachable(&mut host, address(1), UnreachableCode::Host, &frame);
        let expected = match asks {
            true => DatagramError::Unreachable(ErrorKind::HostUnreachable),
            false => DatagramError::WouldBlock,
        };
        assert_eq!(receive(&mut host, socket), Err(expected));
    }
}

#[test]
fn broadcast_needs_leave() {
    let mut host = SingleHost::new();
    let socket = bind(&mut host, 68, UdpOptions::default());
    for to in [Ipv4Addr::BROADCAST, Ipv4Addr::new(10, 0, 0, 255)] {
        let port = 1000 + to.to_string().len() as u16;
        let to = Some(Endpoint::new(to, 67));
        let mut link = UdpOptions::default();
        link.broadcast = true;
        link.link = Some(LINK);
        let refused = send(&mut host, socket, b"x", to);
        assert!(matches!(refused, Err(DatagramError::Broadcast | DatagramError::Route(_))), "{refused:?}");
        let allowed = bind(&mut host, port, link);
        send(&mut host, allowed, b"x", to).unwrap();
        assert_eq!(host.datagrams().len(), 1);
    }
}

#[test]
fn a_group_is_heard_while_the_host_is_a_member() {
    let mut net = Net::ethernet(9);
    let group = Endpoint::new(Ipv4Addr::new(239, 1, 2, 3), 5000);
    let listener = net.stacks[1].udp(net.now, &mut Ignore).bind(group, UdpOptions::default()).unwrap();
    let mut options = UdpOptions::default();
    options.link = Some(LINK);
    let speaker = net.stacks[0].udp(net.now, &mut Ignore).bind(here(5001), options).unwrap();
    let say = |net: &mut Net, text: &[u8]| {
        net.stacks[0].udp(net.now, &mut Ignore).send_to(speaker, text, Some(group), None).unwrap();
        net.pass(Duration::from_secs(1));
        let mut place = [0; 20];
        let info = net.stacks[1].udp(net.now, &mut Ignore).receive_from(listener, &mut place).ok()?;
        assert_eq!((info.from, info.to), (here(5001), group));
        Some(place[..info.length_bytes].to_vec())
    };
    assert_eq!(say(&mut net, b"before"), None);
    let now = net.now;
    net.stacks[1].with_ip(now, &mut Ignore, |ip, env| ip.join_group(LINK, group.address, env)).unwrap();
    assert_eq!(say(&mut net, b"within"), Some(b"within".to_vec()));
    let now = net.now;
    net.stacks[1].with_ip(now, &mut Ignore, |ip, env| ip.leave_group(LINK, group.address, env)).unwrap();
    assert_eq!(say(&mut net, b"after"), None);
}

// spec: RFC1122 4.1.3.5-2
#[test]
fn local_ends_of_datagram_sockets() {
    let mut host = SingleHost::new();
    bind(&mut host, 53, UdpOptions::default());
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, 53);
    let mut bind = |local| host.stack.udp(host.now, &mut Ignore).bind(local, UdpOptions::default());
    assert_eq!(bind(any), Err(BindError::InUse));
    assert_eq!(bind(Endpoint::new(Ipv4Addr::new(9, 9, 9, 9), 53)), Err(BindError::NotOurs));
    let chosen = bind(Endpoint { port: 0, ..any }).unwrap();
    assert!(host.stack.endpoints(chosen).unwrap().0.port >= 49_152);
}

#[test]
fn a_gateway_answers_from_any_address_and_port() {
    let mut host = SingleHost::with(StackConfig::default(), |mut link| {
        link.any_address = true;
        link
    });
    let mut options = UdpOptions::default();
    options.any_address = true;
    let socket = bind(&mut host, 0, options);
    let far = Endpoint::new(Ipv4Addr::new(8, 8, 8, 8), 53);
    host.datagram(peer(4000), far, b"question");
    assert_eq!(receive(&mut host, socket), Ok((b"question".to_vec(), peer(4000), far)));
    host.stack.udp(host.now, &mut Ignore).send_to(socket, b"answer", Some(peer(4000)), Some(far)).unwrap();
    host.flush();
    assert_eq!(host.datagrams(), [(far, peer(4000), b"answer".to_vec())]);
    let nameless = host.stack.udp(host.now, &mut Ignore).send_to(socket, b"?", Some(peer(4000)), None);
    assert_eq!(nameless, Err(DatagramError::NotOurs));
}

#[test]
fn a_gateway_refuses_a_datagram_by_an_error_that_quotes_it() {
    let mut host = SingleHost::with(StackConfig::default(), |mut link| {
        link.any_address = true;
        link
    });
    let mut options = UdpOptions::default();
    options.any_address = true;
    bind(&mut host, 0, options);
    for (port, why, code) in
        [(53, Unreachable::Port, 3), (161, Unreachable::Host, 1), (137, Unreachable::Prohibited, 13)]
    {
        let far = Endpoint::new(Ipv4Addr::new(8, 8, 8, 8), port);
        host.datagram(peer(4000), far, b"question");
        host.sent.clear();
        host.stack.udp(host.now, &mut Ignore).refuse(peer(4000), far, why).unwrap();
        host.flush();
        let frame = host.sent.last().unwrap().clone();
        let ip = Ipv4View::new(&frame).unwrap();
        // Who has no such port says so himself; what is refused on the way, somebody there says.
        assert_eq!(ip.source() == Ipv4Addr::new(8, 8, 8, 8), why == Unreachable::Port, "{why:?}");
        let message = host.messages().remove(0);
        assert_eq!(message[..2], [3, code]);
        let quoted = Ipv4View::new(&message[8..]).unwrap();
        assert_eq!(
            (IpAddr::from(quoted.source()), IpAddr::from(quoted.destination())),
            (peer(4000).address, far.address)
        );
        assert_eq!(quoted.payload()[..4], [15, 160, 0, port as u8]);
        host.now += Duration::from_secs(1);
    }
}

#[test]
fn a_socket_that_asks_for_it_is_bound_to_a_broadcast_address() {
    let mut host = SingleHost::new();
    let (all, network) = (Ipv4Addr::BROADCAST, Ipv4Addr::new(10, 0, 0, 255));
    for address in [all, network] {
        let local = Endpoint::new(address, 67);
        let refused = host.stack.udp(host.now, &mut Ignore).bind(local, UdpOptions::default());
        assert_eq!(refused, Err(BindError::NotOurs));
        let mut options = UdpOptions::default();
        options.broadcast = true;
        let socket = host.stack.udp(host.now, &mut Ignore).bind(local, options).unwrap();
        let other = if address == all { network } else { all };
        for to in [Endpoint::new(other, 67), here(67), local] {
            host.datagram(peer(68), to, b"where am I?");
        }
        assert_eq!(receive(&mut host, socket), Ok((b"where am I?".to_vec(), peer(68), local)));
        assert_eq!(receive(&mut host, socket), Err(DatagramError::WouldBlock), "nothing but that");
        host.sent.clear();
        // It sends from an address that is its host's.
        send(&mut host, socket, b"there", Some(local)).unwrap();
        assert_eq!(host.datagrams(), [(here(67), local, b"there".to_vec())]);
        host.stack.close(socket, host.now, &mut Ignore).unwrap();
    }
    let stranger = Endpoint::new(Ipv4Addr::new(10, 0, 1, 255), 67);
    let mut options = UdpOptions::default();
    options.broadcast = true;
    assert_eq!(host.stack.udp(host.now, &mut Ignore).bind(stranger, options), Err(BindError::NotOurs));
}

#[test]
fn an_echo_socket_that_asks_for_it_asks_everybody() {
    let mut host = SingleHost::new();
    let socket = host.stack.echo(host.now, &mut Ignore).open().unwrap();
    let all = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 255));
    let refused = host.stack.echo(host.now, &mut Ignore).send(socket, all, 1, b"all");
    assert_eq!(refused, Err(DatagramError::Broadcast));
    host.stack.set_option(socket, SocketOption::Broadcast(true), host.now, &mut Ignore).unwrap();
    host.stack.echo(host.now, &mut Ignore).send(socket, all, 1, b"all").unwrap();
    host.flush();
    let asked = host.sent.pop().unwrap();
    assert_eq!((&asked[16..20], asked[20]), (&[10, 0, 0, 255][..], 8));
    for number in [1, 2] {
        let mut reply = asked[20..].to_vec();
        reply[0] = 0;
        reply[2] += 8;
        host.icmp(address(number), &reply);
        let mut place = [0; 9];
        assert_eq!(
            host.stack.echo(host.now, &mut Ignore).receive(socket, &mut place).unwrap().from,
            address(number)
        );
    }
}

#[test]
fn large_datagrams_travel_in_fragments_over_both_families() {
    for mut net in [Net::new(3), Net::ethernet(4)] {
        let any = Endpoint::new(Ipv6Addr::UNSPECIFIED, 9);
        let sockets: Vec<UdpSocketId> = (0..2)
            .map(|host| net.stacks[host].udp(net.now, &mut Ignore).bind(any, UdpOptions::default()).unwrap())
            .collect();
        let text: Vec<u8> = (0..9_000u32).map(|i| ((i * 31) >> 2) as u8).collect();
        for to in [address(1), address_v6(1)] {
            let to = Some(Endpoint::new(to, 9));
            net.stacks[0].udp(net.now, &mut Ignore).send_to(sockets[0], &text, to, None).unwrap();
            let mut place = vec![0; 10_000];
            let mut got = None;
            let done = net.run(Duration::from_secs(10), |net| {
                got = net.stacks[1].udp(net.now, &mut Ignore).receive_from(sockets[1], &mut place).ok();
                got.is_some()
            });
            assert!(done, "nothing at {to:?}");
            assert_eq!(&place[..got.unwrap().length_bytes], &text[..]);
        }
        for (host, &socket) in sockets.iter().enumerate() {
            net.close(host, socket);
        }
        net.pass(Duration::from_secs(1));
        net.assert_clean();
    }
}

// spec: RFC1122 2.4-3
#[test]
fn a_socket_waits_for_its_neighbour_and_hears_when_there_is_none() {
    let mut net = Net::ethernet(8);
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, 0);
    let socket = net.stacks[0].udp(net.now, &mut Ignore).bind(any, UdpOptions::default()).unwrap();
    let nobody = Endpoint::new(Ipv4Addr::new(10, 0, 0, 99), 9);
    net.stacks[0].udp(net.now, &mut Ignore).connect(socket, nobody).unwrap();
    net.stacks[0].udp(net.now, &mut Ignore).send_to(socket, b"hello?", None, None).unwrap();
    let call = net.connect(0, Endpoint { port: 80, ..nobody });
    net.pass(Duration::from_secs(20));
    let error = net.stacks[0].udp(net.now, &mut Ignore).receive_from(socket, &mut [0; 9]).unwrap_err();
    assert_eq!(error, DatagramError::NoNeighbour);
    assert_eq!(
        net.stacks[0].instruments().connection(call).and_then(|connection| connection.error()),
        Some(ConnectionError::Unreachable)
    );
    assert_eq!(net.stacks[0].memory().outstanding_bytes(), 0);
}

// spec: RFC1122 3.2.2.1-3
#[test]
fn a_refused_call_fails_and_a_doubtful_message_does_not() {
    let mut host = SingleHost::new();
    let call = |host: &mut SingleHost| {
        let options = ConnectOptions::default();
        let socket = host.stack.tcp(host.now, &mut Ignore).connect(peer(80), options).unwrap();
        host.flush();
        (socket, host.sent.pop().unwrap())
    };
    let (first, frame) = call(&mut host);
    let mut stale = frame.clone();
    stale[24] ^= 0x80;
    unreachable(&mut host, address(1), UnreachableCode::Port, &stale);
    assert_eq!(
        host.stack.instruments().connection(first).and_then(|connection| connection.error()),
        None,
        "not a number in flight"
    );
    unreachable(&mut host, address(1), UnreachableCode::Network, &frame);
    assert_eq!(host.stack.instruments().connection(first).and_then(|connection| connection.error()), None);
    assert_eq!(
        host.stack.instruments().connection(first).and_then(|connection| connection.soft_error()),
        Some(SoftError::NetworkUnreachable)
    );
    unreachable(&mut host, address(1), UnreachableCode::Port, &frame);
    assert_eq!(
        host.stack.instruments().connection(first).and_then(|connection| connection.error()),
        Some(ConnectionError::Refused)
    );
    assert!(host.stack.readiness(first).contains(Readiness::ERROR));
}

// spec: RFC9293 MUST-54
// spec: RFC9293 MUST-56
// spec: RFC9293 SHLD-25
#[test]
fn messages_reach_an_open_connection_and_do_not_end_it() {
    let mut host = SingleHost::new();
    let socket = host.stack.tcp(host.now, &mut Ignore).connect(peer(80), ConnectOptions::default()).unwrap();
    host.flush();
    let syn = host.segment_sent();
    let next = syn.header.sequence.0.wrapping_add(1);
    host.segment(peer(80), syn.from, header(Flags::SYN | Flags::ACK, 900, next), b"");
    host.sent.clear();
    host.stack.tcp(host.now, &mut Ignore).send(socket, &[7; 536]).unwrap();
    host.flush();
    let frame = host.sent.pop().unwrap();
    for code in [UnreachableCode::Host, UnreachableCode::Port, UnreachableCode::Protocol] {
        unreachable(&mut host, address(1), code, &frame);
        assert_eq!(
            host.stack.instruments().connection(socket).and_then(|connection| connection.error()),
            None
        );
        assert!(
            host.stack
                .instruments()
                .connection(socket)
                .and_then(|connection| connection.soft_error())
                .is_some()
        );
    }
    assert!(host.stack.readiness(socket).contains(Readiness::CONNECTED));
}

// spec: RFC9293 MUST-55
#[test]
fn a_source_quench_is_nothing() {
    let mut host = SingleHost::new();
    let socket = host.stack.tcp(host.now, &mut Ignore).connect(peer(80), ConnectOptions::default()).unwrap();
    host.flush();
    let frame = host.sent.pop().unwrap();
    let before = format!("{:?}", host.stack.instruments().info(socket, host.now));
    let body: Vec<u8> = [0; 4].iter().chain(&frame[..28]).copied().collect();
    host.icmp(address(1), &emit(&Icmpv4Message::Other { kind: 4, code: 0, body: &body }));
    assert_eq!(format!("{:?}", host.stack.instruments().info(socket, host.now)), before);
    assert!(host.sent.is_empty());
}

#[test]
fn a_narrow_path_is_learnt_from_what_is_in_flight() {
    let mut host = SingleHost::new();
    let far = Endpoint::new(Ipv4Addr::new(10, 0, 0, 2), 80);
    let socket = host.stack.tcp(host.now, &mut Ignore).connect(far, ConnectOptions::default()).unwrap();
    host.flush();
    let syn = host.segment_sent();
    let next = syn.header.sequence.0.wrapping_add(1);
    let mut answer = header(Flags::SYN | Flags::ACK, 900, next);
    answer.options.mss = Some(1460);
    host.segment(far, syn.from, answer, b"");
    host.sent.clear();
    host.stack.tcp(host.now, &mut Ignore).send(socket, &[7; 5000]).unwrap();
    host.flush();
    let frame = host.sent.first().unwrap().clone();
    assert_eq!(frame.len(), 1500);
    host.sent.clear();
    unreachable(&mut host, address(1), UnreachableCode::FragmentationNeeded, &frame);
    host.pass(Duration::from_secs(1));
    let again = host.sent.clone();
    assert!(
        !again.is_empty() && again.iter().all(|frame| frame.len() <= 1000),
        "sent again in smaller pieces"
    );
}

#[test]
fn echo_goes_out_and_comes_back_to_its_own_socket() {
    for mut net in [Net::new(6), Net::ethernet(7)] {
        let first = net.stacks[0].echo(net.now, &mut Ignore).open().unwrap();
        let second = net.stacks[0].echo(net.now, &mut Ignore).open().unwrap();
        let mut place = [0; 100];
        for to in [address(1), address_v6(1), address(0)] {
            assert_eq!(net.stacks[0].readiness(first), Readiness::WRITABLE);
            net.stacks[0].echo(net.now, &mut Ignore).send(first, to, 7, b"ping").unwrap();
            let mut got = None;
            net.run(Duration::from_secs(5), |net| {
                net.stacks[0].readiness(first).contains(Readiness::READABLE)
            });
            net.run(Duration::from_secs(5), |net| {
                got = net.stacks[0].echo(net.now, &mut Ignore).receive(first, &mut place).ok();
                got.is_some()
            });
            let got = got.unwrap_or_else(|| panic!("no echo from {to}"));
            assert_eq!((got.from, got.sequence, &place[..got.length_bytes]), (to, 7, &b"ping"[..]));
        }
        let nothing = net.stacks[0].echo(net.now, &mut Ignore).receive(second, &mut place);
        assert_eq!(nothing, Err(DatagramError::WouldBlock));
        net.close(0, first);
        net.close(0, second);
        net.pass(Duration::from_secs(1));
        net.assert_clean();
    }
}

#[test]
fn an_echo_that_cannot_be_delivered_says_so() {
    let mut host = SingleHost::new();
    let socket = host.stack.echo(host.now, &mut Ignore).open().unwrap();
    host.stack.echo(host.now, &mut Ignore).send(socket, address(1), 1, b"ping").unwrap();
    host.flush();
    let frame = host.sent.pop().unwrap();
    unreachable(&mut host, address(1), UnreachableCode::Host, &frame);
    let error = host.stack.echo(host.now, &mut Ignore).receive(socket, &mut [0; 9]);
    assert_eq!(error, Err(DatagramError::Unreachable(ErrorKind::HostUnreachable)));
}
