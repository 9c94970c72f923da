//! SYN cookies: calls answered from nothing, and connections made of what comes back.

use crate::common::packets::{Sent, SingleHost, header, segment_frame};
use crate::common::{LINK, Net, endpoint};
use inhost_base::{Duration, Endpoint, Ipv4Addr, Sequence};
use inhost_event::Ignore;
use inhost_ip::{PREFERENCE_CONFIGURED, Route, RouteOrigin};
use inhost_stack::{ListenOptions, ListenerId, Readiness, Stack, SynCookies, TcpSocketId};
use inhost_wire::tcp::{Flags, TcpHeader, TcpOptions};

const STAMP: u32 = 5_000;

fn peer(port: u16) -> Endpoint {
    endpoint(1, port)
}
fn here() -> Endpoint {
    endpoint(0, 23)
}
fn listen(host: &mut SingleHost, options: ListenOptions) -> ListenerId {
    let any = Endpoint::new(Ipv4Addr::UNSPECIFIED, 23);
    host.stack.tcp(host.now, &mut Ignore).listen(any, options).unwrap()
}
/// Everybody is reached by the link.
fn reach_everybody(stack: &mut Stack) {
    let everywhere = Route {
        destination: "0.0.0.0/0".parse().unwrap(),
        gateway: None,
        link: LINK,
        preference: PREFERENCE_CONFIGURED,
        origin: RouteOrigin::Configured,
    };
    stack.ip_mut().add_route(everywhere).unwrap();
}
fn always() -> ListenOptions {
    let mut options = ListenOptions::default();
    options.syn_cookies = SynCookies::Always;
    options
}
/// A SYN with all that our timestamp can remember.
fn syn() -> TcpHeader {
    TcpHeader {
        options: TcpOptions {
            mss: Some(1460),
            window_scale: Some(9),
            sack_permitted: true,
            timestamps: Some((STAMP, 0)),
            ..TcpOptions::NONE
        },
        ..header(Flags::SYN, 100, 0)
    }
}
fn call(host: &mut SingleHost, from: u16, syn: TcpHeader) -> Sent {
    host.segment(peer(from), here(), syn, b"");
    host.segment_sent()
}
/// The last step of the handshake in answer to `answer`, with the echo that belongs there.
fn last_step(answer: &Sent) -> TcpHeader {
    let next = answer.header.sequence.0.wrapping_add(1);
    let timestamps = answer.header.options.timestamps.map(|(value, _)| (STAMP + 1, value));
    let options = TcpOptions { timestamps, ..TcpOptions::NONE };
    TcpHeader { options, ..header(Flags::ACK, 101, next) }
}
fn accepted(host: &mut SingleHost, listener: ListenerId) -> Option<TcpSocketId> {
    host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap().map(|accepted| accepted.socket)
}

#[test]
fn a_syn_without_room_gets_a_cookie_and_the_connection_is_like_any_other() {
    let mut host = SingleHost::new();
    let mut options = ListenOptions::default();
    options.syn_queue = 1;
    let listener = listen(&mut host, options);
    let kept = call(&mut host, 1, syn());
    assert_eq!(host.stack.instruments().socket_count(), 2);
    let answer = call(&mut host, 2, syn());
    assert_eq!(
        (host.stack.instruments().socket_count(), host.stack.instruments().counters().cookies_sent),
        (2, 1),
        "nothing is kept"
    );
    // Both answers offer the same.
    let offered = |sent: &Sent| TcpOptions { timestamps: None, ..sent.header.options };
    assert_eq!(offered(&kept), offered(&answer));
    assert_eq!((kept.header.flags, kept.header.window), (answer.header.flags, answer.header.window));
    let (value, echo) = answer.header.options.timestamps.unwrap();
    assert_eq!((echo, value & 0xf), (STAMP, 9));

    host.segment(peer(2), here(), TcpHeader { window: 1000, ..last_step(&answer) }, b"hello");
    assert_eq!(host.stack.instruments().counters().cookies_accepted, 1);
    let socket = accepted(&mut host, listener).unwrap();
    let mut place = [0; 9];
    assert_eq!(host.stack.tcp(host.now, &mut Ignore).read(socket, &mut place), Ok(5));
    let info = host.stack.instruments().info(socket, host.now).unwrap().tcp.unwrap();
    assert!(info.timestamps);
    assert_eq!((info.send_window_scale, info.send_window_bytes), (9, 1000 << 9));
    assert_eq!(info.send_segment_bytes, 1448);
    assert_eq!(info.smoothed_round_trip, None, "an altered timestamp measures nothing");
    assert_eq!(host.stack.tcp(host.now, &mut Ignore).send(socket, &[7; 2896]), Ok(2896));
    host.flush();
    let sent = host.segments();
    assert_eq!(sent.iter().map(|sent| sent.payload.len()).sum::<usize>(), 2896);
    let data = sent.iter().find(|sent| !sent.payload.is_empty()).unwrap();
    assert_eq!(data.header.sequence, answer.header.sequence + 1);
    let (later, _) = data.header.options.timestamps.unwrap();
    assert!(later.wrapping_sub(value) < 64, "our clock does not go back");
}

#[test]
fn without_timestamps_nothing_is_offered_that_could_not_be_remembered() {
    let mut host = SingleHost::new();
    let listener = listen(&mut host, always());
    let mut plain = syn();
    plain.options.timestamps = None;
    plain.options.mss = Some(1450);
    let answer = call(&mut host, 1, plain);
    let options = answer.header.options;
    assert_eq!((options.window_scale, options.sack_permitted, options.timestamps), (None, false, None));
    assert!(options.mss.is_some());
    host.segment(peer(1), here(), last_step(&answer), b"");
    let socket = accepted(&mut host, listener).unwrap();
    let info = host.stack.instruments().info(socket, host.now).unwrap().tcp.unwrap();
    assert_eq!((info.send_segment_bytes, info.send_window_bytes), (1440, 60_000), "rounded down");
    assert_eq!(info.receive_window_scale, 0);
}

#[test]
fn a_hundred_thousand_calls_leave_no_trace() {
    let mut host = SingleHost::new();
    reach_everybody(&mut host.stack);
    let mut options = ListenOptions::default();
    options.syn_queue = 16;
    listen(&mut host, options);
    let flood = |host: &mut SingleHost, count: u32| {
        for number in 0..count {
            let from = Endpoint::new(Ipv4Addr::from(0x0b00_0000 + number * 7), (number % 60_000 + 1) as u16);
            host.segment(from, here(), TcpHeader { sequence: Sequence(number * 977), ..syn() }, b"");
            host.sent.clear();
        }
    };
    flood(&mut host, 100);
    let (sockets, memory) =
        (host.stack.instruments().socket_count(), host.stack.memory().outstanding_bytes());
    flood(&mut host, 100_000);
    assert_eq!(
        (host.stack.instruments().socket_count(), host.stack.memory().outstanding_bytes()),
        (sockets, memory)
    );
    // Sixteen have their entry, and call again.
    assert_eq!(host.stack.instruments().counters().cookies_sent, 100_100 - 2 * 16);
}

#[test]
fn a_cookie_is_for_one_call_and_for_two_minutes() {
    let mut host = SingleHost::new();
    let listener = listen(&mut host, always());
    let answer = call(&mut host, 1, syn());
    let good = last_step(&answer);
    // Another port, another number, and an echo that was never ours.
    host.segment(peer(2), here(), good, b"");
    assert!(host.segment_sent().header.flags.rst());
    let plain = TcpHeader { options: TcpOptions::NONE, ..good };
    host.segment(peer(1), here(), plain, b"");
    assert!(host.segment_sent().header.flags.rst());
    let guess = TcpHeader { acknowledgment: good.acknowledgment + 1, options: TcpOptions::NONE, ..good };
    host.segment(peer(1), here(), guess, b"");
    assert!(host.segment_sent().header.flags.rst());
    assert_eq!(accepted(&mut host, listener), None);
    assert_eq!(host.stack.instruments().counters().cookies_refused, 2);
    host.pass(Duration::from_secs(150));
    host.segment(peer(1), here(), good, b"");
    assert!(host.segment_sent().header.flags.rst());
    // Where cookies are off, or none went out, an acknowledgment gets what RFC 9293 §3.10.7.2 says.
    host.pass(Duration::from_secs(200));
    let refused = host.stack.instruments().counters().cookies_refused;
    host.segment(peer(1), here(), good, b"");
    assert!(host.segment_sent().header.flags.rst());
    assert_eq!(host.stack.instruments().counters().cookies_refused, refused);
}

#[test]
fn what_overtakes_the_last_step_waits_for_it() {
    // Who uses no timestamps echoes nothing by which it could be told.
    let without = TcpHeader { options: TcpOptions { timestamps: None, ..syn().options }, ..syn() };
    for syn in [syn(), without] {
        let mut host = SingleHost::new();
        let listener = listen(&mut host, always());
        let answer = call(&mut host, 1, syn);
        let ahead = TcpHeader { sequence: Sequence(105), ..last_step(&answer) };
        host.segment(peer(1), here(), ahead, b"there");
        assert!(host.segments().is_empty(), "no reset for a caller whose first segment is lost");
        host.segment(peer(1), here(), last_step(&answer), b"over");
        let socket = accepted(&mut host, listener).unwrap();
        host.segment(peer(1), here(), ahead, b"there");
        let mut place = [0; 16];
        assert_eq!(host.stack.tcp(host.now, &mut Ignore).read(socket, &mut place), Ok(9));
    }
}

#[test]
fn a_full_accept_queue_takes_no_cookie_until_there_is_room() {
    let mut host = SingleHost::new();
    let mut options = always();
    options.backlog = 1;
    let listener = listen(&mut host, options);
    let (first, second) = (call(&mut host, 1, syn()), call(&mut host, 2, syn()));
    host.segment(peer(1), here(), last_step(&first), b"");
    host.segment(peer(2), here(), last_step(&second), b"hello");
    assert!(host.segments().iter().all(|sent| sent.to != peer(2)));
    host.segment(peer(3), here(), syn(), b"");
    assert!(host.segments().is_empty(), "nor a new call");
    assert!(accepted(&mut host, listener).is_some());
    assert!(accepted(&mut host, listener).is_none());
    host.segment(peer(2), here(), last_step(&second), b"hello");
    assert!(accepted(&mut host, listener).is_some());
}

#[test]
fn cookies_can_be_switched_off() {
    let mut host = SingleHost::new();
    let mut options = ListenOptions::default();
    options.syn_queue = 1;
    options.syn_cookies = SynCookies::Off;
    listen(&mut host, options);
    call(&mut host, 1, syn());
    host.segment(peer(2), here(), syn(), b"");
    assert!(host.segments().is_empty());
    assert_eq!(host.stack.instruments().counters().listen_overflows, 1);
}

/// Bytes that reach host 1 in two seconds of a transfer, with so many SYNs a second beside it.
fn transferred(syns_per_second: u64) -> (usize, usize) {
    let mut net = Net::new(9);
    let (caller, called) = net.connected(80);
    reach_everybody(&mut net.stacks[1]);
    net.listen_with(1, 23, ListenOptions::default());
    let text = vec![7; 64 << 10];
    let (mut received, mut sent) = (0, 0u64);
    let mut place = vec![0; 64 << 10];
    let mut most_memory = 0;
    for _ in 0..2000 {
        net.now += Duration::from_millis(1);
        for _ in 0..syns_per_second / 1000 {
            sent += 1;
            let from = Endpoint::new(Ipv4Addr::from(0x0b00_0000 + sent as u32), 1000);
            net.inject(1, &segment_frame(from, endpoint(1, 23), syn(), b""));
        }
        let (now, [here, there]) = (net.now, &mut net.stacks);
        while here.tcp(now, &mut Ignore).send(caller, &text).is_ok() {}
        while let Ok(count @ 1..) = there.tcp(now, &mut Ignore).read(called, &mut place) {
            received += count;
        }
        while net.stacks.iter_mut().any(|stack| stack.ready().is_some()) {}
        net.receive();
        net.transmit();
        most_memory = most_memory.max(net.stacks[1].memory().outstanding_bytes());
    }
    assert!(net.stacks[1].readiness(called).contains(Readiness::CONNECTED));
    let counters = *net.stacks[1].instruments().counters();
    assert_eq!(counters.cookies_sent + 1, (sent + 1).saturating_sub(256).max(1), "{counters:?}");
    (received, most_memory)
}

#[test]
fn a_flood_leaves_a_transfer_its_rate_and_memory_flat() {
    let ((quiet, quiet_bytes), (flooded, flooded_bytes)) = (transferred(0), transferred(100_000));
    println!("{quiet} bytes quiet, {flooded} bytes flooded; memory {quiet_bytes} and {flooded_bytes}");
    assert!(flooded * 10 > quiet * 9, "{flooded} of {quiet} bytes");
    assert!(flooded_bytes < quiet_bytes + (256 << 10), "{flooded_bytes} instead of {quiet_bytes} bytes");
}
