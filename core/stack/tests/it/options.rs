//! What sockets can be asked, as far as it is the host's to do.

use crate::common::packets::{Sent, SingleHost, header};
use crate::common::{Net, endpoint};
use inhost_base::{Duration, Endpoint, Ipv4Addr};
use inhost_event::{Ignore, TcpState};
use inhost_stack::StackConfig;
use inhost_stack::{
    CongestionChoice, ConnectionOption, ListenOptions, ListenerId, Queued, Readiness, SocketError, SocketId,
    SocketOption, TcpSocketId,
};
use inhost_wire::ipv4::Ipv4View;
use inhost_wire::tcp::Flags;

fn peer(port: u16) -> Endpoint {
    endpoint(1, port)
}
fn here() -> Endpoint {
    endpoint(0, 23)
}
fn listen(host: &mut SingleHost, options: ListenOptions) -> ListenerId {
    host.stack.tcp(host.now, &mut Ignore).listen(Endpoint::new(Ipv4Addr::UNSPECIFIED, 23), options).unwrap()
}
fn set(host: &mut SingleHost, socket: impl Into<SocketId>, option: SocketOption) {
    host.stack.set_option(socket, option, host.now, &mut Ignore).unwrap();
}
/// A peer's call, with its last step: the sequence numbers that follow, ours and the peer's.
fn call(host: &mut SingleHost, from: u16) -> (u32, u32) {
    host.segment(peer(from), here(), header(Flags::SYN, 100, 0), b"");
    let answer: Sent = host.segment_sent();
    let next = answer.header.sequence.0.wrapping_add(1);
    host.segment(peer(from), here(), header(Flags::ACK, 101, next), b"");
    (next, 101)
}
fn accepted(host: &mut SingleHost, listener: ListenerId) -> Option<TcpSocketId> {
    host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap().map(|accepted| accepted.socket)
}
fn opened(host: &mut SingleHost) -> (TcpSocketId, u32, u32) {
    let listener = listen(host, ListenOptions::default());
    let (ours, theirs) = call(host, 1);
    let socket = accepted(host, listener).unwrap();
    (socket, ours, theirs)
}

#[test]
fn lingering_for_no_time_is_resetting() {
    let mut host = SingleHost::new();
    let (socket, ..) = opened(&mut host);
    set(&mut host, socket, SocketOption::Linger(Some(Duration::ZERO)));
    host.stack.tcp(host.now, &mut Ignore).send(socket, b"lost").unwrap();
    host.stack.close(socket, host.now, &mut Ignore).unwrap();
    host.flush();
    assert!(host.segment_sent().header.flags.rst());
    assert_eq!(host.stack.instruments().socket_count(), 1);
}

#[test]
fn what_lingers_is_given_up_when_its_time_is_over() {
    let mut host = SingleHost::new();
    let (socket, ..) = opened(&mut host);
    set(&mut host, socket, SocketOption::Linger(Some(Duration::from_secs(3))));
    assert_eq!(host.stack.instruments().options(socket).unwrap().linger, Some(Duration::from_secs(3)));
    host.stack.tcp(host.now, &mut Ignore).send(socket, b"late").unwrap();
    host.stack.close(socket, host.now, &mut Ignore).unwrap();
    host.pass(Duration::from_millis(2_900));
    assert!(host.segments().iter().all(|sent| !sent.header.flags.rst()));
    assert_eq!(host.stack.instruments().socket_count(), 2);
    host.pass(Duration::from_millis(200));
    assert!(host.segments().iter().any(|sent| sent.header.flags.rst()));
    assert_eq!(host.stack.instruments().socket_count(), 1);
}

#[test]
fn what_is_delivered_in_time_lingers_no_more() {
    let mut host = SingleHost::new();
    let (socket, ours, theirs) = opened(&mut host);
    set(&mut host, socket, SocketOption::Linger(Some(Duration::from_secs(3))));
    host.stack.tcp(host.now, &mut Ignore).send(socket, b"soon").unwrap();
    host.stack.close(socket, host.now, &mut Ignore).unwrap();
    host.flush();
    host.segment(peer(1), here(), header(Flags::ACK, theirs, ours + 5), b"");
    host.pass(Duration::from_secs(10));
    assert!(host.segments().iter().all(|sent| !sent.header.flags.rst()));
    let closing = host.stack.instruments().sockets(host.now).filter_map(|info| info.state);
    assert_eq!(closing.collect::<Vec<_>>(), [TcpState::FinWait2]);
}

#[test]
fn a_connection_without_data_is_not_given_out_for_a_while() {
    let mut host = SingleHost::new();
    let timeout = Some(Duration::from_secs(5));
    let mut options = ListenOptions::default();
    options.defer_accept = timeout;
    let listener = listen(&mut host, options);
    let (ours, theirs) = call(&mut host, 1);
    call(&mut host, 2);
    assert_eq!(accepted(&mut host, listener), None);
    assert_eq!(
        host.stack.instruments().info(listener, host.now).unwrap().send_queue,
        2,
        "both count as handshakes"
    );
    host.segment(peer(1), here(), header(Flags::ACK, theirs, ours), b"hello");
    let first = accepted(&mut host, listener).unwrap();
    assert_eq!(host.stack.tcp(host.now, &mut Ignore).read(first, &mut [0; 9]), Ok(5));
    host.pass(Duration::from_millis(4_900));
    assert_eq!(accepted(&mut host, listener), None);
    host.pass(Duration::from_millis(200));
    assert!(accepted(&mut host, listener).is_some(), "the timeout has passed");
    host.sent.clear();
    // One that ends before it says anything is nobody's; one that says good-bye is given out.
    let (_, theirs) = call(&mut host, 3);
    host.segment(peer(3), here(), header(Flags::RST, theirs, 0), b"");
    host.sent.clear();
    let (ours, theirs) = call(&mut host, 4);
    host.segment(peer(4), here(), header(Flags::ACK | Flags::FIN, theirs, ours), b"");
    let last = accepted(&mut host, listener).unwrap();
    assert!(host.stack.readiness(last).contains(Readiness::PEER_CLOSED));
    assert_eq!(accepted(&mut host, listener), None);
    host.pass(Duration::from_secs(10));
    assert_eq!(accepted(&mut host, listener), None);
}

#[test]
fn connections_that_await_data_make_room_in_a_full_queue() {
    let mut host = SingleHost::new();
    let timeout = Some(Duration::from_secs(60));
    let mut options = ListenOptions::default();
    options.defer_accept = timeout;
    options.syn_queue = 2;
    let listener = listen(&mut host, options);
    for from in 1..=3 {
        call(&mut host, from);
    }
    assert!(accepted(&mut host, listener).is_some(), "the oldest is given out");
    assert_eq!(accepted(&mut host, listener), None);
}

#[test]
fn connections_begin_with_what_their_listener_was_asked_for() {
    let mut host = SingleHost::new();
    let listener = listen(&mut host, ListenOptions::default());
    let timeout = Duration::from_secs(9);
    for option in [
        SocketOption::Tcp(ConnectionOption::Nagle(false)),
        SocketOption::Tcp(ConnectionOption::UserTimeout(timeout)),
        SocketOption::Tcp(ConnectionOption::Congestion(CongestionChoice::NewReno)),
        SocketOption::Linger(Some(timeout)),
        SocketOption::DifferentiatedServices(46),
        SocketOption::HopLimit(Some(7)),
        SocketOption::DontFragment(false),
        SocketOption::Tcp(ConnectionOption::MaxSegment(900)),
        SocketOption::SendBufferLimit(10_000),
    ] {
        set(&mut host, listener, option);
    }
    let wrong = host.stack.set_option(
        listener,
        SocketOption::Tcp(ConnectionOption::Cork(true)),
        host.now,
        &mut Ignore,
    );
    assert_eq!(wrong, Err(SocketError::WrongKind));
    call(&mut host, 1);
    let socket = accepted(&mut host, listener).unwrap();
    let options = host.stack.instruments().options(socket).unwrap();
    assert_eq!((options.tcp.nagle, options.tcp.user_timeout), (false, timeout));
    // A buffer begins with no more than its limit.
    assert_eq!(
        host.stack.instruments().info(socket, host.now).unwrap().tcp.unwrap().send_buffer_bytes,
        10_000
    );
    assert_eq!(options.tcp.send_buffer_initial_bytes, 10_000);
    assert_eq!((options.linger, options.differentiated_services), (Some(timeout), 46));
    assert_eq!((options.hop_limit, options.dont_fragment), (Some(7), false));
    let info = host.stack.instruments().info(socket, host.now).unwrap().tcp.unwrap();
    assert_ne!(info.congestion_control, "CUBIC");
    host.stack.tcp(host.now, &mut Ignore).send(socket, &[1; 900]).unwrap();
    host.flush();
    let frames = core::mem::take(&mut host.sent);
    let ip = Ipv4View::new(frames.last().unwrap()).unwrap();
    assert_eq!((ip.time_to_live(), ip.dont_fragment()), (7, false));
    // Set on the connection itself, too, and readable there.
    set(&mut host, socket, SocketOption::DontFragment(true));
    set(&mut host, socket, SocketOption::Tcp(ConnectionOption::Cork(true)));
    let options = host.stack.instruments().options(socket).unwrap();
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
    let mut config = StackConfig::default();
    config.orphan_limit = 3;
    let mut host = SingleHost::with(config, |link| link);
    let listener = listen(&mut host, ListenOptions::default());
    for from in 1..=8 {
        let (ours, theirs) = call(&mut host, from);
        let socket = accepted(&mut host, listener).unwrap();
        host.stack.close(socket, host.now, &mut Ignore).unwrap();
        host.flush();
        let fin = host.segments();
        assert!(fin.iter().all(|sent| !sent.header.flags.rst()), "{from}: {fin:?}");
        if from <= 6 {
            // The peer closes too: TIME-WAIT.
            host.segment(peer(from), here(), header(Flags::ACK | Flags::FIN, theirs, ours + 1), b"");
        }
        host.sent.clear();
    }
    let counters = *host.stack.instruments().counters();
    assert_eq!((counters.time_waits_cut_short, counters.orphans_aborted), (5, 0));
    // Three are closing now, two of them for good, and one waits; then nobody's wait is left to end.
    for (from, is_reset) in [(9, false), (10, true)] {
        call(&mut host, from);
        let socket = accepted(&mut host, listener).unwrap();
        host.stack.close(socket, host.now, &mut Ignore).unwrap();
        host.flush();
        assert_eq!(host.segments().iter().any(|sent| sent.header.flags.rst()), is_reset, "{from}");
    }
    assert_eq!(host.stack.instruments().counters().orphans_aborted, 1);
}

#[test]
fn a_reset_does_not_cut_time_wait_short() {
    // RFC 1337 §3: neither the exact number nor any other.
    let mut host = SingleHost::new();
    let (socket, ours, theirs) = opened(&mut host);
    host.stack.close(socket, host.now, &mut Ignore).unwrap();
    host.flush();
    host.segment(peer(1), here(), header(Flags::ACK | Flags::FIN, theirs, ours + 1), b"");
    host.sent.clear();
    for sequence in [theirs + 1, theirs + 2, theirs] {
        host.segment(peer(1), here(), header(Flags::RST, sequence, 0), b"");
        host.segment(peer(1), here(), header(Flags::RST | Flags::ACK, sequence, ours + 1), b"");
    }
    assert!(host.segments().is_empty());
    let states: Vec<_> = host.stack.instruments().sockets(host.now).filter_map(|info| info.state).collect();
    assert_eq!(states, [TcpState::TimeWait]);
    host.pass(Duration::from_secs(61));
    assert_eq!(host.stack.instruments().socket_count(), 1);
}
