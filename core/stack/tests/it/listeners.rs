//! Listeners: their two queues, held SYNs, and any address.

use crate::common::packets::{Sent, SingleHost, header};
use crate::common::{LINK, endpoint};
use inhost_base::{Duration, Endpoint, Ipv4Addr, Ipv6Addr, Sequence};
use inhost_event::Ignore;
use inhost_stack::{
    BindError, ListenOptions, ListenerId, Readiness, Refusal, SocketError, StackConfig, SynCookies,
};
use inhost_wire::tcp::Flags;

fn peer(port: u16) -> Endpoint {
    endpoint(1, port)
}
fn here(port: u16) -> Endpoint {
    endpoint(0, port)
}
fn listen(host: &mut SingleHost, port: u16, options: ListenOptions) -> ListenerId {
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, port);
    host.stack.tcp(host.now, &mut Ignore).listen(any, options).unwrap()
}
fn syn(host: &mut SingleHost, from: u16) -> Vec<Sent> {
    host.segment(peer(from), here(23), header(Flags::SYN, 100, 0), b"");
    host.segments()
}
fn finish(host: &mut SingleHost, from: u16, answer: &Sent) {
    let next = answer.header.sequence.0.wrapping_add(1);
    host.segment(peer(from), here(23), header(Flags::ACK, 101, next), b"");
}

#[test]
fn a_full_syn_queue_leaves_syns_unanswered_until_the_oldest_is_old() {
    let mut host = SingleHost::new();
    let mut options = ListenOptions::default();
    options.syn_queue = 3;
    options.syn_cookies = SynCookies::Off;
    let listener = listen(&mut host, 23, options);
    for from in 1..=3 {
        assert_eq!(syn(&mut host, from).len(), 1);
    }
    assert!(syn(&mut host, 4).is_empty());
    assert_eq!(host.stack.instruments().counters().listen_overflows, 1);
    assert_eq!(host.stack.instruments().info(listener, host.now).unwrap().send_queue, 3);
    host.pass(Duration::from_millis(3_100));
    host.segments();
    let answer = syn(&mut host, 4);
    assert_eq!(answer.len(), 1);
    assert_eq!(host.stack.instruments().info(listener, host.now).unwrap().send_queue, 3);
    finish(&mut host, 4, &answer[0]);
    let accepted = host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap().unwrap();
    assert_eq!((accepted.remote, accepted.local, accepted.held), (peer(4), here(23), false));
}

#[test]
fn a_full_accept_queue_delays_the_last_step_of_the_handshake() {
    let mut host = SingleHost::new();
    let mut options = ListenOptions::default();
    options.backlog = 1;
    let listener = listen(&mut host, 23, options);
    let (first, second) = (syn(&mut host, 1), syn(&mut host, 2));
    finish(&mut host, 1, &first[0]);
    finish(&mut host, 2, &second[0]);
    assert!(syn(&mut host, 3).is_empty(), "no new handshake while nobody accepts");
    let accepted = host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap().unwrap();
    assert_eq!(accepted.remote, peer(1));
    assert_eq!(host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap(), None);
    // The SYN and ACK goes again, the caller answers it again, and now there is room.
    host.pass(Duration::from_millis(1_100));
    let again: Vec<Sent> = host.segments().into_iter().filter(|sent| sent.to == peer(2)).collect();
    assert!(again.iter().any(|sent| sent.header.flags.contains(Flags::SYN | Flags::ACK)));
    finish(&mut host, 2, &second[0]);
    assert_eq!(host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap().unwrap().remote, peer(2));
}

#[test]
fn a_listener_becomes_ready_and_takes_its_unaccepted_connections_with_it() {
    let mut host = SingleHost::new();
    let listener = listen(&mut host, 23, ListenOptions::default());
    let first = syn(&mut host, 1);
    finish(&mut host, 1, &first[0]);
    assert_eq!(host.stack.ready(), Some((listener.into(), Readiness::ACCEPTABLE)));
    assert_eq!(host.stack.ready(), None, "the connection is nobody's yet");
    syn(&mut host, 2);
    host.stack.close(listener, host.now, &mut Ignore).unwrap();
    host.flush();
    let resets = host.segments();
    assert_eq!(resets.len(), 2);
    assert!(resets.iter().all(|sent| sent.header.flags.rst()));
    assert_eq!(host.stack.instruments().socket_count(), 0);
    assert!(syn(&mut host, 3)[0].header.flags.rst());
}

#[test]
fn local_ends_are_taken_once_and_must_be_ours() {
    let mut host = SingleHost::new();
    listen(&mut host, 23, ListenOptions::default());
    let mut listen =
        |local: Endpoint| host.stack.tcp(host.now, &mut Ignore).listen(local, ListenOptions::default());
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, 23);
    assert_eq!(listen(any), Err(BindError::InUse));
    assert_eq!(listen(Endpoint::new(Ipv4Addr::new(9, 9, 9, 9), 23)), Err(BindError::NotOurs));
    assert!(listen(here(23)).is_ok(), "one address beside any address");
    assert!(listen(Endpoint::new(Ipv6Addr::UNSPECIFIED, 23)).is_ok());
}

#[test]
fn port_zero_lets_the_host_choose_a_free_one() {
    let mut host = SingleHost::new();
    let mut ports: Vec<u16> = (0..100)
        .map(|_| {
            let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, 0);
            let listener =
                host.stack.tcp(host.now, &mut Ignore).listen(any, ListenOptions::default()).unwrap();
            host.stack.endpoints(listener).unwrap().0.port
        })
        .collect();
    assert!(ports.iter().all(|&port| port >= 49_152));
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 100);
}

#[test]
fn the_more_particular_listener_gets_the_call() {
    let mut host = SingleHost::new();
    let both = Endpoint::new(Ipv6Addr::UNSPECIFIED, 23);
    let both = host.stack.tcp(host.now, &mut Ignore).listen(both, ListenOptions::default()).unwrap();
    let answer = syn(&mut host, 1);
    finish(&mut host, 1, &answer[0]);
    assert!(host.stack.tcp(host.now, &mut Ignore).accept(both).unwrap().is_some(), "both families");
    let any = listen(&mut host, 23, ListenOptions::default());
    let answer = syn(&mut host, 2);
    finish(&mut host, 2, &answer[0]);
    assert!(host.stack.tcp(host.now, &mut Ignore).accept(any).unwrap().is_some());
    let one = host.stack.tcp(host.now, &mut Ignore).listen(here(23), ListenOptions::default()).unwrap();
    let answer = syn(&mut host, 3);
    finish(&mut host, 3, &answer[0]);
    assert!(host.stack.tcp(host.now, &mut Ignore).accept(one).unwrap().is_some());
}

#[test]
fn a_held_syn_waits_for_a_word() {
    let mut host = SingleHost::new();
    let mut options = ListenOptions::default();
    options.hold_syn = true;
    let listener = listen(&mut host, 23, options);
    assert!(syn(&mut host, 1).is_empty());
    let held = host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap().unwrap();
    assert!(held.held);
    // The caller sends its SYN again, and again, for as long as it takes.
    for _ in 0..5 {
        assert!(syn(&mut host, 1).is_empty());
        host.pass(Duration::from_secs(3));
    }
    assert!(host.segments().is_empty());
    host.stack.tcp(host.now, &mut Ignore).proceed(held.socket).unwrap();
    assert_eq!(host.stack.tcp(host.now, &mut Ignore).proceed(held.socket), Err(SocketError::WrongKind));
    host.flush();
    let answer = host.segment_sent();
    assert_eq!(answer.header.flags, Flags::SYN | Flags::ACK);
    while host.stack.ready().is_some() {}
    finish(&mut host, 1, &answer);
    let (socket, ready) = host.stack.ready().unwrap();
    assert!(socket == held.socket && ready.contains(Readiness::CONNECTED.union(Readiness::WRITABLE)));
    assert_eq!(host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap(), None);
}

#[test]
fn a_held_syn_can_be_refused_or_withdrawn() {
    let mut host = SingleHost::new();
    let mut options = ListenOptions::default();
    options.hold_syn = true;
    let listener = listen(&mut host, 23, options);
    syn(&mut host, 1);
    let held = host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap().unwrap();
    host.stack.tcp(host.now, &mut Ignore).refuse(held.socket, Refusal::Reset).unwrap();
    host.flush();
    let reset = host.segment_sent().header;
    assert_eq!((reset.flags, reset.acknowledgment), (Flags::RST | Flags::ACK, Sequence(101)));
    assert_eq!(host.stack.instruments().socket_count(), 1);
    syn(&mut host, 2);
    let held = host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap().unwrap();
    host.segment(peer(2), here(23), header(Flags::RST, 101, 0), b"");
    assert!(host.stack.readiness(held.socket).contains(Readiness::CLOSED));
    host.stack.close(held.socket, host.now, &mut Ignore).unwrap();
    // One that nobody has taken yet goes without a trace.
    syn(&mut host, 3);
    host.segment(peer(3), here(23), header(Flags::RST, 101, 0), b"");
    assert_eq!(host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap(), None);
    assert_eq!((host.stack.instruments().socket_count(), host.segments().len()), (1, 0));
}

/// A listener for every address and port, which holds SYNs, and an end that is nobody's here and was called.
fn called_far_away(host: &mut SingleHost) -> (ListenerId, Endpoint) {
    let mut options = ListenOptions::default();
    options.any_address = true;
    options.hold_syn = true;
    let every = listen(host, 0, options);
    let far = Endpoint::new(Ipv4Addr::new(93, 184, 216, 34), 443);
    host.segment(peer(1), far, header(Flags::SYN, 100, 0), b"");
    (every, far)
}

#[test]
fn a_gateway_takes_calls_to_every_address_and_port() {
    let mut host = SingleHost::with(StackConfig::default(), |mut link| {
        link.any_address = true;
        link
    });
    let ours = listen(&mut host, 23, ListenOptions::default());
    let (every, far) = called_far_away(&mut host);
    assert!(host.segments().is_empty());
    let held = host.stack.tcp(host.now, &mut Ignore).accept(every).unwrap().unwrap();
    assert_eq!((held.local, held.remote), (far, peer(1)));
    host.stack.tcp(host.now, &mut Ignore).proceed(held.socket).unwrap();
    host.flush();
    let answer = host.segment_sent();
    assert_eq!((answer.from, answer.to), (far, peer(1)));
    // At our own address our own services come first, at another's they do not exist.
    assert_eq!(syn(&mut host, 2).len(), 1);
    host.segment(peer(3), Endpoint { port: 23, ..far }, header(Flags::SYN, 100, 0), b"");
    assert!(host.segments().is_empty());
    assert_eq!(host.stack.tcp(host.now, &mut Ignore).accept(every).unwrap().unwrap().local.port, 23);
    host.segment(peer(4), here(99), header(Flags::SYN, 100, 0), b"");
    assert_eq!(host.stack.tcp(host.now, &mut Ignore).accept(every).unwrap().unwrap().local, here(99));
    assert_eq!(host.stack.instruments().info(ours, host.now).unwrap().send_queue, 1);
    let _ = LINK;
}

#[test]
fn a_listener_bound_to_another_link_does_not_hear() {
    let mut host = SingleHost::new();
    let mut options = ListenOptions::default();
    options.link = Some(inhost_stack::LinkId(0));
    listen(&mut host, 23, options);
    assert!(syn(&mut host, 1)[0].header.flags.rst());
}

#[test]
fn a_gateway_without_an_address_of_its_own_refuses_from_the_one_that_was_meant() {
    let mut host = SingleHost::with(StackConfig::default(), |mut link| {
        link.any_address = true;
        link.addresses.clear();
        link
    });
    let route = inhost_stack::Route {
        destination: "0.0.0.0/0".parse().unwrap(),
        link: LINK,
        gateway: None,
        preference: 0,
        origin: inhost_stack::RouteOrigin::Configured,
    };
    host.stack.ip_mut().add_route(route).unwrap();
    let (every, _) = called_far_away(&mut host);
    let held = host.stack.tcp(host.now, &mut Ignore).accept(every).unwrap().unwrap();
    host.stack.tcp(host.now, &mut Ignore).refuse(held.socket, Refusal::Unreachable).unwrap();
    host.flush();
    assert_eq!(
        host.sent[0][12..20],
        [93, 184, 216, 34, 10, 0, 0, 2],
        "from whom it was meant for, to the caller"
    );
    assert_eq!(host.messages().remove(0)[..2], [3, 1], "host unreachable");
}

#[test]
fn a_held_syn_can_end_in_silence_or_by_a_routers_word() {
    let mut host = SingleHost::new();
    let mut options = ListenOptions::default();
    options.hold_syn = true;
    let listener = listen(&mut host, 23, options);
    syn(&mut host, 1);
    let held = host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap().unwrap();
    host.stack.tcp(host.now, &mut Ignore).refuse(held.socket, Refusal::Silence).unwrap();
    host.flush();
    assert!(host.sent.is_empty());
    assert_eq!(host.stack.instruments().socket_count(), 1);
    // It tries again, and is held again.
    syn(&mut host, 1);
    let held = host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap().unwrap();
    host.stack.tcp(host.now, &mut Ignore).refuse(held.socket, Refusal::Unreachable).unwrap();
    host.flush();
    let message = host.messages().remove(0);
    let quoted = &message[8..];
    assert_eq!(message[..2], [3, 1], "host unreachable");
    assert_eq!(quoted[12..20], [10, 0, 0, 2, 10, 0, 0, 1]);
    assert_eq!(quoted[20..28], [0, 1, 0, 23, 0, 0, 0, 100], "ports, and the number of the SYN");
    assert!(host.segments().is_empty());
    assert_eq!(host.stack.instruments().socket_count(), 1);
}
