//! What sockets can be asked, as far as it is the host's to do.

mod common;

use common::packets::{Lone, Sent, header};
use common::{Net, endpoint};
use inhost_base::{Duration, Endpoint, Ipv4Addr};
use inhost_event::{Ignore, TcpState};
use inhost_stack::StackConfig;
use inhost_stack::{
    CongestionChoice, ListenOptions, ListenerId, Queued, Readiness, SocketError, SocketId, SocketOption,
    TcpSocketId,
};
use inhost_wire::ipv4::Ipv4View;
use inhost_wire::tcp::Flags;

fn peer(port: u16) -> Endpoint {
    endpoint(1, port)
}
fn here() -> Endpoint {
    endpoint(0, 23)
}
fn listen(lone: &mut Lone, options: ListenOptions) -> ListenerId {
    lone.stack.tcp().listen(Endpoint::new(Ipv4Addr::UNSPECIFIED, 23), options, lone.now).unwrap()
}
fn set(lone: &mut Lone, socket: impl Into<SocketId>, option: SocketOption) {
    lone.stack.set_option(socket, option, lone.now, &mut Ignore).unwrap();
}
/// A peer's call, with its last step: the sequence numbers that follow, ours and the peer's.
fn call(lone: &mut Lone, from: u16) -> (u32, u32) {
    lone.segment(peer(from), here(), header(Flags::SYN, 100, 0), b"");
    let answer: Sent = lone.segment_sent();
    let next = answer.header.sequence.0.wrapping_add(1);
    lone.segment(peer(from), here(), header(Flags::ACK, 101, next), b"");
    (next, 101)
}
fn accepted(lone: &mut Lone, listener: ListenerId) -> Option<TcpSocketId> {
    lone.stack.tcp().accept(listener, lone.now).unwrap().map(|accepted| accepted.socket)
}
fn opened(lone: &mut Lone) -> (TcpSocketId, u32, u32) {
    let listener = listen(lone, ListenOptions::default());
    let (ours, theirs) = call(lone, 1);
    let socket = accepted(lone, listener).unwrap();
    (socket, ours, theirs)
}

#[test]
fn lingering_for_no_time_is_resetting() {
    let mut lone = Lone::new();
    let (socket, ..) = opened(&mut lone);
    set(&mut lone, socket, SocketOption::Linger(Some(Duration::ZERO)));
    lone.stack.tcp().send(socket, b"lost", lone.now, &mut Ignore).unwrap();
    lone.stack.close(socket, lone.now, &mut Ignore).unwrap();
    lone.flush();
    assert!(lone.segment_sent().header.flags.rst());
    assert_eq!(lone.stack.instruments().socket_count(), 1);
}

#[test]
fn what_lingers_is_given_up_when_its_time_is_over() {
    let mut lone = Lone::new();
    let (socket, ..) = opened(&mut lone);
    set(&mut lone, socket, SocketOption::Linger(Some(Duration::from_secs(3))));
    assert_eq!(lone.stack.options(socket).unwrap().linger, Some(Duration::from_secs(3)));
    lone.stack.tcp().send(socket, b"late", lone.now, &mut Ignore).unwrap();
    lone.stack.close(socket, lone.now, &mut Ignore).unwrap();
    lone.pass(Duration::from_millis(2_900));
    assert!(lone.segments().iter().all(|sent| !sent.header.flags.rst()));
    assert_eq!(lone.stack.instruments().socket_count(), 2);
    lone.pass(Duration::from_millis(200));
    assert!(lone.segments().iter().any(|sent| sent.header.flags.rst()));
    assert_eq!(lone.stack.instruments().socket_count(), 1);
}

#[test]
fn what_is_delivered_in_time_lingers_no_more() {
    let mut lone = Lone::new();
    let (socket, ours, theirs) = opened(&mut lone);
    set(&mut lone, socket, SocketOption::Linger(Some(Duration::from_secs(3))));
    lone.stack.tcp().send(socket, b"soon", lone.now, &mut Ignore).unwrap();
    lone.stack.close(socket, lone.now, &mut Ignore).unwrap();
    lone.flush();
    lone.segment(peer(1), here(), header(Flags::ACK, theirs, ours + 5), b"");
    lone.pass(Duration::from_secs(10));
    assert!(lone.segments().iter().all(|sent| !sent.header.flags.rst()));
    let closing = lone.stack.instruments().sockets(lone.now).filter_map(|info| info.state);
    assert_eq!(closing.collect::<Vec<_>>(), [TcpState::FinWait2]);
}

#[test]
fn a_connection_without_data_is_not_given_out_for_a_while() {
    let mut lone = Lone::new();
    let patience = Some(Duration::from_secs(5));
    let listener = listen(&mut lone, ListenOptions { defer_accept: patience, ..ListenOptions::default() });
    let (ours, theirs) = call(&mut lone, 1);
    call(&mut lone, 2);
    assert_eq!(accepted(&mut lone, listener), None);
    assert_eq!(
        lone.stack.instruments().info(listener, lone.now).unwrap().send_queue,
        2,
        "both count as handshakes"
    );
    lone.segment(peer(1), here(), header(Flags::ACK, theirs, ours), b"hello");
    let first = accepted(&mut lone, listener).unwrap();
    assert_eq!(lone.stack.tcp().read(first, &mut [0; 9], lone.now, &mut Ignore), Ok(5));
    lone.pass(Duration::from_millis(4_900));
    assert_eq!(accepted(&mut lone, listener), None);
    lone.pass(Duration::from_millis(200));
    assert!(accepted(&mut lone, listener).is_some(), "patience is over");
    lone.sent.clear();
    // One that ends before it says anything is nobody's; one that says good-bye is given out.
    let (_, theirs) = call(&mut lone, 3);
    lone.segment(peer(3), here(), header(Flags::RST, theirs, 0), b"");
    lone.sent.clear();
    let (ours, theirs) = call(&mut lone, 4);
    lone.segment(peer(4), here(), header(Flags::ACK | Flags::FIN, theirs, ours), b"");
    let last = accepted(&mut lone, listener).unwrap();
    assert!(lone.stack.readiness(last).contains(Readiness::PEER_CLOSED));
    assert_eq!(accepted(&mut lone, listener), None);
    lone.pass(Duration::from_secs(10));
    assert_eq!(accepted(&mut lone, listener), None);
}

#[test]
fn connections_that_await_data_make_room_in_a_full_queue() {
    let mut lone = Lone::new();
    let patience = Some(Duration::from_secs(60));
    let options = ListenOptions { defer_accept: patience, syn_queue: 2, ..ListenOptions::default() };
    let listener = listen(&mut lone, options);
    for from in 1..=3 {
        call(&mut lone, from);
    }
    assert!(accepted(&mut lone, listener).is_some(), "the oldest is given out");
    assert_eq!(accepted(&mut lone, listener), None);
}

#[test]
fn connections_begin_with_what_their_listener_was_asked_for() {
    let mut lone = Lone::new();
    let listener = listen(&mut lone, ListenOptions::default());
    let timeout = Duration::from_secs(9);
    for option in [
        SocketOption::Nagle(false),
        SocketOption::UserTimeout(timeout),
        SocketOption::Congestion(CongestionChoice::NewReno),
        SocketOption::Linger(Some(timeout)),
        SocketOption::DifferentiatedServices(46),
        SocketOption::HopLimit(Some(7)),
        SocketOption::DontFragment(false),
        SocketOption::MaxSegment(900),
    ] {
        set(&mut lone, listener, option);
    }
    let wrong = lone.stack.set_option(listener, SocketOption::Cork(true), lone.now, &mut Ignore);
    assert_eq!(wrong, Err(SocketError::WrongKind));
    call(&mut lone, 1);
    let socket = accepted(&mut lone, listener).unwrap();
    let options = lone.stack.options(socket).unwrap();
    assert_eq!((options.tcp.nagle, options.tcp.user_timeout), (false, timeout));
    assert_eq!((options.linger, options.differentiated_services), (Some(timeout), 46));
    assert_eq!((options.hop_limit, options.dont_fragment), (Some(7), false));
    let info = lone.stack.instruments().info(socket, lone.now).unwrap().tcp.unwrap();
    assert_ne!(info.congestion_control, "CUBIC");
    lone.stack.tcp().send(socket, &[1; 900], lone.now, &mut Ignore).unwrap();
    lone.flush();
    let frames = core::mem::take(&mut lone.sent);
    let ip = Ipv4View::new(frames.last().unwrap()).unwrap();
    assert_eq!((ip.time_to_live(), ip.dont_fragment()), (7, false));
    // Set on the connection itself, too, and readable there.
    set(&mut lone, socket, SocketOption::DontFragment(true));
    set(&mut lone, socket, SocketOption::Cork(true));
    let options = lone.stack.options(socket).unwrap();
    assert!(options.dont_fragment && options.cork);
}

#[test]
fn what_waits_is_told_without_a_look_at_everything() {
    let mut net = Net::new(6);
    let (caller, called) = net.connected(80);
    net.send(0, caller, &[1; 100]);
    let queued = |net: &Net, host: usize, socket| net.stacks[host].instruments().queued(socket).unwrap();
    let written = Queued { not_sent_bytes: 100, unacknowledged_bytes: 100, ..Queued::default() };
    assert_eq!(queued(&net, 0, caller), written);
    net.transmit();
    assert_eq!(queued(&net, 0, caller), Queued { not_sent_bytes: 0, ..written });
    net.pass(Duration::from_secs(1));
    assert_eq!(queued(&net, 0, caller), Queued::default());
    assert_eq!(queued(&net, 1, called), Queued { readable_bytes: 100, ..Queued::default() });
}

#[test]
fn closing_ends_another_connections_time_wait_before_it_is_aborting() {
    let config = StackConfig { orphan_limit: 3, ..StackConfig::default() };
    let mut lone = Lone::with(config, |link| link);
    let listener = listen(&mut lone, ListenOptions::default());
    for from in 1..=8 {
        let (ours, theirs) = call(&mut lone, from);
        let socket = accepted(&mut lone, listener).unwrap();
        lone.stack.close(socket, lone.now, &mut Ignore).unwrap();
        lone.flush();
        let fin = lone.segments();
        assert!(fin.iter().all(|sent| !sent.header.flags.rst()), "{from}: {fin:?}");
        if from <= 6 {
            // The peer closes too: TIME-WAIT.
            lone.segment(peer(from), here(), header(Flags::ACK | Flags::FIN, theirs, ours + 1), b"");
        }
        lone.sent.clear();
    }
    let counters = *lone.stack.instruments().counters();
    assert_eq!((counters.time_waits_cut_short, counters.orphans_aborted), (5, 0));
    // Three are closing now, two of them for good, and one waits; then nobody's wait is left to end.
    for (from, is_reset) in [(9, false), (10, true)] {
        call(&mut lone, from);
        let socket = accepted(&mut lone, listener).unwrap();
        lone.stack.close(socket, lone.now, &mut Ignore).unwrap();
        lone.flush();
        assert_eq!(lone.segments().iter().any(|sent| sent.header.flags.rst()), is_reset, "{from}");
    }
    assert_eq!(lone.stack.instruments().counters().orphans_aborted, 1);
}

#[test]
fn a_reset_does_not_cut_time_wait_short() {
    // RFC 1337 §3: neither the exact number nor any other.
    let mut lone = Lone::new();
    let (socket, ours, theirs) = opened(&mut lone);
    lone.stack.close(socket, lone.now, &mut Ignore).unwrap();
    lone.flush();
    lone.segment(peer(1), here(), header(Flags::ACK | Flags::FIN, theirs, ours + 1), b"");
    lone.sent.clear();
    for sequence in [theirs + 1, theirs + 2, theirs] {
        lone.segment(peer(1), here(), header(Flags::RST, sequence, 0), b"");
        lone.segment(peer(1), here(), header(Flags::RST | Flags::ACK, sequence, ours + 1), b"");
    }
    assert!(lone.segments().is_empty());
    let states: Vec<_> = lone.stack.instruments().sockets(lone.now).filter_map(|info| info.state).collect();
    assert_eq!(states, [TcpState::TimeWait]);
    lone.pass(Duration::from_secs(61));
    assert_eq!(lone.stack.instruments().socket_count(), 1);
}
