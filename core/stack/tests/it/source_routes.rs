//! Connections by source routes, spoken to in packets.

use crate::blind_icmp::{quote, too_big};
use crate::common::packets::{SingleHost, header, segment_frame};
use crate::common::{LINK, address};
use inhost_base::{Endpoint, Ipv4Addr, Sequence};
use inhost_event::Ignore;
use inhost_stack::{
    ConnectError, ConnectOptions, IpConfig, ListenOptions, RouteError, SourceRoute, StackConfig,
};
use inhost_wire::ipv4::{Ipv4Header, Ipv4View, OptionPlaces};
use inhost_wire::protocol;
use inhost_wire::tcp::{Flags, Segment, TcpHeader, TcpView};

const CALLER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 8);

/// A host that takes source routes and has a gateway.
fn host() -> SingleHost {
    let mut ip = IpConfig::default();
    ip.accept_source_routes = true;
    let mut stack_config = StackConfig::default();
    stack_config.ip = ip;
    SingleHost::with(stack_config, |config| config.with_gateway(address(8)))
}
fn caller() -> Endpoint {
    Endpoint::new(CALLER, 4000)
}
fn here() -> Endpoint {
    Endpoint { address: address(0), port: 23 }
}
/// A segment of the caller's that came past `hops`.
fn arrive(host: &mut SingleHost, hops: &[Ipv4Addr], header: TcpHeader) {
    let frame = segment_frame(caller(), here(), header, b"");
    let view = Ipv4View::new(&frame).unwrap();
    let length = 3 + 4 * hops.len() as u8;
    let mut options = vec![1, 131, length, length + 1];
    hops.iter().for_each(|hop| options.extend(hop.octets()));
    let mut routed = vec![0; 20 + options.len()];
    let bytes = view.payload().len() as u16;
    let (source, destination) = (view.source(), view.destination());
    Ipv4Header::new(source, destination, protocol::TCP, bytes).emit_with_options(&options, &mut routed);
    routed.extend_from_slice(view.payload());
    host.deliver(&routed);
}
/// The hops of the one segment sent, the one that it is addressed to first, its final destination, and its header.
fn sent(host: &mut SingleHost) -> (Vec<Ipv4Addr>, TcpHeader) {
    host.flush();
    let frame = host.sent.pop().unwrap();
    assert!(host.sent.is_empty());
    let view = Ipv4View::new(&frame).unwrap();
    assert!(view.checksum_ok() && frame.len() <= 1500);
    let mut hops = vec![view.destination()];
    let place = OptionPlaces::find(view.options()).unwrap().source_route;
    if let Some(place) = place {
        let (addresses, _) =
            frame[usize::from(place.offset) + 3..][..usize::from(place.length) - 3].as_chunks();
        hops.extend(addresses.iter().map(|octets: &[u8; 4]| Ipv4Addr::from(*octets)));
    }
    let tcp = TcpView::new(view.payload()).unwrap();
    let end = *hops.last().unwrap();
    assert!(tcp.checksum_ok(view.source().into(), end.into()), "the checksum is over the final destination");
    (hops, Segment::parse(&tcp).header())
}

// spec: RFC9293 MUST-53, SHLD-24
#[test]
fn a_caller_by_a_source_route_is_answered_by_the_reverse_route() {
    let mut host = host();
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, 23);
    let listener = host.stack.tcp(host.now, &mut Ignore).listen(any, ListenOptions::default()).unwrap();
    arrive(&mut host, &[FAR, NEAR], header(Flags::SYN, 100, 0));
    let (hops, answer) = sent(&mut host);
    assert!(answer.flags.contains(Flags::SYN | Flags::ACK));
    assert_eq!(hops, [NEAR, FAR, CALLER]);
    let next = answer.sequence.0.wrapping_add(1);
    arrive(&mut host, &[FAR, NEAR], header(Flags::ACK, 101, next));
    let socket = host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap().unwrap().socket;
    host.stack.tcp(host.now, &mut Ignore).send(socket, &[1; 536]).unwrap();
    assert_eq!(sent(&mut host).0, [NEAR, FAR, CALLER]);
    // A later segment by another route overrides; one that the connection refuses does not.
    arrive(&mut host, &[OTHER], header(Flags::ACK, 90_000_000, next));
    assert_eq!(sent(&mut host).0, [NEAR, FAR, CALLER]);
    arrive(&mut host, &[OTHER], header(Flags::ACK, 101, next.wrapping_add(536)));
    host.stack.tcp(host.now, &mut Ignore).send(socket, &[1; 100]).unwrap();
    assert_eq!(sent(&mut host).0, [OTHER, CALLER]);
    host.stack.tcp(host.now, &mut Ignore).abort(socket).unwrap();
    host.flush();
}

// spec: RFC9293 MUST-51, MUST-52
#[test]
fn an_application_chooses_the_route_and_nothing_that_comes_changes_it() {
    let mut host = host();
    let source_route = SourceRoute::new(false, [NEAR, FAR]);
    let mut options = ConnectOptions::default();
    options.source_route = source_route;
    let socket = host.stack.tcp(host.now, &mut Ignore).connect(caller(), options.clone()).unwrap();
    let (hops, syn) = sent(&mut host);
    assert_eq!(hops, [NEAR, FAR, CALLER]);
    let local = host.stack.endpoints(socket).unwrap().0;
    let answer = TcpHeader {
        source_port: caller().port,
        destination_port: local.port,
        ..header(Flags::SYN | Flags::ACK, 500, syn.sequence.0.wrapping_add(1))
    };
    let frame = segment_frame(caller(), local, answer, b"");
    host.deliver(&frame);
    let (hops, acknowledgment) = sent(&mut host);
    assert_eq!((hops, acknowledgment.acknowledgment), (vec![NEAR, FAR, CALLER], Sequence(501)));
    // A change of the tables does not lose it.
    host.stack.ip_mut().add_gateway(LINK, address(6), 1).unwrap();
    host.stack.tcp(host.now, &mut Ignore).send(socket, &[1; 100]).unwrap();
    assert_eq!(sent(&mut host).0, [NEAR, FAR, CALLER]);
    // The first hop of a strict route is a neighbour.
    let mut strict = options;
    strict.source_route = SourceRoute::new(true, [FAR]);
    let refused = host.stack.tcp(host.now, &mut Ignore).connect(caller(), strict);
    assert_eq!(refused.unwrap_err(), ConnectError::Route(RouteError::NoRoute));
}

#[test]
fn what_is_too_big_behind_the_last_hop_is_cut_and_goes_by_the_route() {
    let mut host = host();
    let mut options = ConnectOptions::default();
    options.source_route = SourceRoute::new(false, [NEAR, FAR]);
    let socket = host.stack.tcp(host.now, &mut Ignore).connect(caller(), options).unwrap();
    let (_, syn) = sent(&mut host);
    let local = host.stack.endpoints(socket).unwrap().0;
    let mut answer = TcpHeader {
        source_port: caller().port,
        destination_port: local.port,
        ..header(Flags::SYN | Flags::ACK, 500, syn.sequence.0.wrapping_add(1))
    };
    answer.options.mss = Some(1400);
    host.deliver(&segment_frame(caller(), local, answer, b""));
    sent(&mut host);
    host.stack.tcp(host.now, &mut Ignore).send(socket, &[1; 1300]).unwrap();
    let (_, long) = sent(&mut host);
    // The router quotes the packet as it goes to the caller.
    too_big(&mut host, 600, &quote(local, caller(), protocol::TCP, 1400, long.sequence.0.to_be_bytes()));
    host.flush();
    assert!(host.sent.len() >= 3);
    for frame in host.sent.drain(..) {
        let view = Ipv4View::new(&frame).unwrap();
        assert!(frame.len() <= 600 && view.destination() == NEAR, "{} bytes", frame.len());
        assert!(OptionPlaces::find(view.options()).unwrap().source_route.is_some());
    }
}

// spec: RFC1122 3.2.1.8-5
#[test]
fn by_default_a_source_route_is_not_taken() {
    let mut host = SingleHost::new();
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, 23);
    host.stack.tcp(host.now, &mut Ignore).listen(any, ListenOptions::default()).unwrap();
    arrive(&mut host, &[FAR, NEAR], header(Flags::SYN, 100, 0));
    assert!(host.sent.is_empty());
}
