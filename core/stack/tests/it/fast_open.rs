//! Data in SYNs (RFC 7413), between hosts: cookies, limits, and what is done where it does not work.

use crate::common::packets::{Sent, SingleHost, emit, header, segment_frame};
use crate::common::{Net, endpoint};
use inhost_base::{Duration, Endpoint, Ipv4Addr};
use inhost_event::{Ignore, TcpState};
use inhost_stack::{
    ConnectOptions, FastOpenCall, ListenOptions, ListenerId, Readiness, StackConfig, TcpSocketId,
};
use inhost_wire::icmpv4::{Icmpv4Message, UnreachableCode};
use inhost_wire::tcp::{FastOpenCookie, Flags, TcpHeader, TcpOptions};

fn peer(port: u16) -> Endpoint {
    endpoint(1, port)
}
fn here(port: u16) -> Endpoint {
    endpoint(0, port)
}
fn fast(call: FastOpenCall) -> ConnectOptions {
    let mut options = ConnectOptions::default();
    options.fast_open = call;
    options
}
fn queue(length: usize) -> ListenOptions {
    let mut options = ListenOptions::default();
    options.fast_open_queue = length;
    options
}
fn listen(host: &mut SingleHost, options: ListenOptions) -> ListenerId {
    host.stack.tcp(host.now, &mut Ignore).listen(Endpoint::new(Ipv4Addr::UNSPECIFIED, 23), options).unwrap()
}
fn syn(cookie: Option<FastOpenCookie>) -> TcpHeader {
    let options = TcpOptions { mss: Some(1460), fast_open: cookie, ..TcpOptions::NONE };
    TcpHeader { options, ..header(Flags::SYN, 100, 0) }
}
fn call(host: &mut SingleHost, from: u16, syn: TcpHeader, data: &[u8]) -> Sent {
    host.segment(peer(from), here(23), syn, data);
    host.segment_sent()
}
/// The cookie that the host grants on request.
fn ask(host: &mut SingleHost) -> FastOpenCookie {
    let answer = call(host, 999, syn(Some(FastOpenCookie::new())), b"not taken");
    assert_eq!(answer.header.acknowledgment.0, 101, "without a cookie no data");
    answer.header.options.fast_open.unwrap()
}
fn accepted(host: &mut SingleHost, listener: ListenerId) -> Option<TcpSocketId> {
    host.stack.tcp(host.now, &mut Ignore).accept(listener).unwrap().map(|accepted| accepted.socket)
}
/// A router's word about the segment `sequence` that the host sent to `to`.
fn unreachable(host: &mut SingleHost, to: u16, sequence: u32) {
    let frame = segment_frame(here(23), peer(to), header(Flags::ACK, sequence, 101), b"");
    let (code, next_hop_mtu) = (UnreachableCode::Host, 0);
    let message = emit(&Icmpv4Message::DestinationUnreachable { code, next_hop_mtu, invoking: &frame[..28] });
    host.icmp(Ipv4Addr::new(10, 0, 0, 9).into(), &message);
}
fn read(host: &mut SingleHost, socket: TcpSocketId) -> Vec<u8> {
    let mut place = [0; 2000];
    let count = host.stack.tcp(host.now, &mut Ignore).read(socket, &mut place).unwrap_or(0);
    place[..count].to_vec()
}

#[test]
fn the_second_call_is_answered_after_one_round_trip() {
    let mut net = Net::new(4);
    let listener = net.listen_with(1, 80, queue(8));
    let mut round_trips = Vec::new();
    for _ in 0..2 {
        let begun = net.now;
        let (now, sink) = (net.now, &mut net.sinks[0]);
        let options = fast(FastOpenCall::Now);
        let mut calls = net.stacks[0].tcp(now, sink);
        let caller = calls.connect(endpoint(1, 80), options).unwrap();
        assert_eq!(calls.send(caller, b"question"), Ok(8));
        let mut called = None;
        let done = net.run(Duration::from_secs(5), |net| {
            if let Some(accepted) = net.stacks[1].tcp(net.now, &mut Ignore).accept(listener).unwrap() {
                called = Some(accepted.socket);
            }
            if let Some(called) = called
                && net.read(1, called, 100) == b"question"
            {
                net.send(1, called, b"answer");
            }
            net.read(0, caller, 100) == b"answer"
        });
        assert!(done);
        round_trips.push(net.now.since(begun));
        net.close(0, caller);
        net.close(1, called.unwrap());
        net.pass(Duration::from_secs(1));
    }
    // The wire takes a millisecond each way, and the answer waits for the next round.
    assert!(round_trips[0] >= Duration::from_millis(4) && round_trips[1] <= Duration::from_millis(3));
    let [caller, called] = net.stacks.map(|stack| *stack.instruments().counters());
    assert_eq!((caller.fast_opens_acknowledged, caller.fast_opens_refused), (1, 0));
    assert_eq!((called.fast_opens_accepted, called.fast_open_cookies_granted), (1, 1));
}

#[test]
fn it_is_off_until_somebody_asks() {
    let mut host = SingleHost::new();
    let listener = listen(&mut host, ListenOptions::default());
    let answer = call(&mut host, 1, syn(Some(FastOpenCookie::new())), b"data");
    assert_eq!((answer.header.options.fast_open, answer.header.acknowledgment.0), (None, 101));
    assert_eq!(accepted(&mut host, listener), None);
    host.stack.tcp(host.now, &mut Ignore).connect(peer(80), ConnectOptions::default()).unwrap();
    host.flush();
    assert_eq!(host.segment_sent().header.options.fast_open, None);
}

#[test]
fn only_a_cookie_that_holds_is_worth_anything() {
    let mut host = SingleHost::new();
    let listener = listen(&mut host, queue(8));
    let cookie = ask(&mut host);
    let forged = FastOpenCookie::from_slice(&[9; 8]);
    let answer = call(&mut host, 1, syn(forged), b"hello");
    assert_eq!((answer.header.options.fast_open, answer.header.acknowledgment.0), (Some(cookie), 101));
    assert_eq!(accepted(&mut host, listener), None);
    // For the right address it holds, whatever the port; in the other form too.
    let mut other_form = syn(Some(cookie));
    other_form.options.fast_open_experimental = true;
    for (from, syn) in [(2, syn(Some(cookie))), (3, other_form)] {
        let answer = call(&mut host, from, syn, b"hello");
        assert_eq!((answer.header.options.fast_open, answer.header.acknowledgment.0), (None, 106));
        let socket = accepted(&mut host, listener).unwrap();
        let ready = host.stack.readiness(socket);
        assert!(ready.contains(Readiness::READABLE.union(Readiness::WRITABLE).union(Readiness::CONNECTED)));
        assert_eq!(read(&mut host, socket), b"hello");
    }
    let elsewhere = Endpoint::new(Ipv4Addr::new(10, 0, 0, 7), 1);
    host.segment(elsewhere, here(23), syn(Some(cookie)), b"hello");
    assert_eq!(host.segment_sent().header.acknowledgment.0, 101);
}

#[test]
fn a_routers_word_ends_a_caller_that_waits_only_where_resets_are_given_out() {
    for gives_out_reset in [false, true] {
        let mut host = SingleHost::new();
        let mut options = queue(8);
        options.gives_out_reset = gives_out_reset;
        let listener = listen(&mut host, options);
        let cookie = Some(ask(&mut host));
        let number = call(&mut host, 1, syn(cookie), b"hello").header.sequence.0;
        for about in [number.wrapping_add(5000), number] {
            unreachable(&mut host, 1, about);
        }
        let socket = accepted(&mut host, listener).unwrap();
        let ended = host.stack.instruments().info(socket, host.now).unwrap().state == Some(TcpState::Closed);
        assert_eq!(ended, gives_out_reset);
    }
}

#[test]
fn too_many_at_once_are_ordinary_calls() {
    // RFC 7413 §5.1
    let mut host = SingleHost::new();
    let listener = listen(&mut host, queue(2));
    let cookie = Some(ask(&mut host));
    let answers: Vec<Sent> = (1..=3).map(|from| call(&mut host, from, syn(cookie), b"hello")).collect();
    let taken: Vec<u32> = answers.iter().map(|sent| sent.header.acknowledgment.0).collect();
    assert_eq!(taken, [106, 106, 101]);
    assert_eq!(host.stack.instruments().counters().fast_opens_over_limit, 1);
    // One whose handshake is done makes room; one that was reset does not, for a minute.
    let next = answers[0].header.sequence.0.wrapping_add(1);
    host.segment(peer(1), here(23), header(Flags::ACK, 106, next), b"");
    assert_eq!(call(&mut host, 4, syn(cookie), b"hello").header.acknowledgment.0, 106);
    host.segment(peer(2), here(23), header(Flags::RST, 106, 0), b"");
    assert_eq!(call(&mut host, 5, syn(cookie), b"hello").header.acknowledgment.0, 101);
    host.pass(Duration::from_secs(61));
    host.sent.clear();
    assert_eq!(call(&mut host, 6, syn(cookie), b"hello").header.acknowledgment.0, 106);
    assert!(accepted(&mut host, listener).is_some());
}

#[test]
fn keys_change_and_the_one_before_still_holds() {
    let life = Duration::from_secs(100);
    let mut config = StackConfig::default();
    config.fast_open.key_life = life;
    let mut host = SingleHost::with(config, |link| link);
    listen(&mut host, queue(100));
    let first = ask(&mut host);
    host.pass(life);
    host.sent.clear();
    let answer = call(&mut host, 1, syn(Some(first)), b"hello");
    let second = answer.header.options.fast_open.unwrap();
    assert_eq!((answer.header.acknowledgment.0, second == first), (106, false), "taken, and renewed");
    host.pass(life);
    host.sent.clear();
    assert_eq!(call(&mut host, 2, syn(Some(first)), b"hello").header.acknowledgment.0, 101);
    assert_eq!(call(&mut host, 3, syn(Some(second)), b"hello").header.acknowledgment.0, 106);
    // Hosts that share an address share a key.
    let shared = || {
        let mut host = SingleHost::new();
        host.stack.tcp(host.now, &mut Ignore).set_fast_open_keys([5; 16], None);
        listen(&mut host, queue(1));
        ask(&mut host)
    };
    assert_eq!(shared(), shared());
}

#[test]
fn data_without_a_cookie_is_taken_where_that_was_agreed() {
    let mut host = SingleHost::new();
    let mut listen_options = queue(8);
    listen_options.fast_open_without_cookie = true;
    listen(&mut host, listen_options);
    assert_eq!(call(&mut host, 1, syn(None), b"hello").header.acknowledgment.0, 106);
    let mut options = fast(FastOpenCall::Now);
    options.fast_open_without_cookie = true;
    let socket = host.stack.tcp(host.now, &mut Ignore).connect(peer(80), options).unwrap();
    host.stack.tcp(host.now, &mut Ignore).send(socket, b"hello").unwrap();
    host.flush();
    let sent = host.segment_sent();
    assert_eq!((sent.payload.as_slice(), sent.header.options.fast_open), (&b"hello"[..], None));
}

/// Answers the call that `sent` begins; with `cookie`, and taking so much of its data.
fn answer(host: &mut SingleHost, sent: &Sent, cookie: Option<FastOpenCookie>, taken: u32) {
    let acknowledges = sent.header.sequence.0.wrapping_add(1 + taken);
    let mut answer = header(Flags::SYN | Flags::ACK, 700, acknowledges);
    answer.options = TcpOptions { mss: Some(1000), fast_open: cookie, ..TcpOptions::NONE };
    host.segment(sent.to, sent.from, answer, b"");
}
/// A first call, which brings the host a cookie.
fn learned(host: &mut SingleHost) -> FastOpenCookie {
    let cookie = FastOpenCookie::from_slice(&[3; 8]).unwrap();
    let socket = host.stack.tcp(host.now, &mut Ignore).connect(peer(80), fast(FastOpenCall::Now)).unwrap();
    host.flush();
    let sent = host.segment_sent();
    assert_eq!(sent.header.options.fast_open, Some(FastOpenCookie::new()));
    answer(host, &sent, Some(cookie), 0);
    host.stack.tcp(host.now, &mut Ignore).abort(socket).unwrap();
    host.flush();
    host.sent.clear();
    cookie
}
fn call_out(host: &mut SingleHost, text: &[u8]) -> (TcpSocketId, Sent) {
    let options = fast(FastOpenCall::Now);
    let socket = host.stack.tcp(host.now, &mut Ignore).connect(peer(80), options).unwrap();
    let _ = host.stack.tcp(host.now, &mut Ignore).send(socket, text);
    host.flush();
    (socket, host.segment_sent())
}

#[test]
fn a_syn_that_waits_for_data_goes_with_it_or_with_the_first_read() {
    let mut host = SingleHost::new();
    let options = fast(FastOpenCall::OnFirstSend);
    let cookie = learned(&mut host);
    let socket = host.stack.tcp(host.now, &mut Ignore).connect(peer(80), options.clone()).unwrap();
    host.pass(Duration::from_secs(3));
    assert!(host.segments().is_empty());
    assert!(host.stack.readiness(socket).contains(Readiness::CONNECTED.union(Readiness::WRITABLE)));
    assert_eq!(host.stack.tcp(host.now, &mut Ignore).send(socket, &[1; 1200]), Ok(1200));
    host.flush();
    let sent = host.segment_sent();
    // The size that the peer named the last time, less the options.
    assert_eq!((sent.payload.len(), sent.header.options.fast_open), (960, Some(cookie)));
    let reader = host.stack.tcp(host.now, &mut Ignore).connect(peer(80), options).unwrap();
    host.flush();
    assert!(host.segments().is_empty());
    assert!(host.stack.tcp(host.now, &mut Ignore).read(reader, &mut [0; 10]).is_err());
    host.flush();
    assert_eq!(host.segment_sent().payload.len(), 0);
    assert!(!host.stack.readiness(reader).contains(Readiness::CONNECTED));
}

#[test]
fn a_destination_that_loses_such_syns_is_spared_them_for_a_while() {
    // RFC 7413 §4.1.3.1
    let mut host = SingleHost::new();
    let cookie = learned(&mut host);
    for _ in 0..2 {
        let (socket, sent) = call_out(&mut host, b"hello");
        assert_eq!(sent.header.options.fast_open, Some(cookie));
        host.pass(Duration::from_millis(1_100));
        let again = host.segment_sent();
        assert_eq!((again.payload.len(), again.header.options.fast_open), (0, None));
        answer(&mut host, &sent, None, 0);
        host.stack.tcp(host.now, &mut Ignore).abort(socket).unwrap();
        host.flush();
        host.sent.clear();
    }
    let (_, sent) = call_out(&mut host, b"hello");
    assert_eq!((sent.payload.len(), sent.header.options.fast_open), (0, None));
    host.pass(Duration::from_secs(241));
    host.sent.clear();
    assert_eq!(call_out(&mut host, b"hello").1.payload, b"hello");
}

#[test]
fn silence_after_data_in_a_syn_stops_it_everywhere() {
    let mut host = SingleHost::new();
    learned(&mut host);
    let (socket, sent) = call_out(&mut host, b"hello");
    answer(&mut host, &sent, None, 5);
    assert_eq!(host.stack.instruments().counters().fast_opens_acknowledged, 1);
    host.stack.tcp(host.now, &mut Ignore).send(socket, b"more").unwrap();
    host.pass(Duration::from_secs(400));
    assert!(host.stack.readiness(socket).contains(Readiness::ERROR));
    assert_eq!(host.stack.instruments().counters().fast_open_pauses, 1);
    host.sent.clear();
    assert_eq!(call_out(&mut host, b"hello").1.header.options.fast_open, None);
    host.pass(Duration::from_secs(3700));
    host.sent.clear();
    assert_eq!(call_out(&mut host, b"hello").1.payload, b"hello");
}

#[test]
fn what_is_known_of_destinations_is_bounded() {
    let mut config = StackConfig::default();
    config.fast_open.destinations_limit = 2;
    let mut host = SingleHost::with(config, |link| link);
    let cookie = learned(&mut host);
    for last in [20, 21] {
        host.pass(Duration::from_secs(1));
        let there = Endpoint::new(Ipv4Addr::new(10, 0, 0, last), 80);
        host.stack.tcp(host.now, &mut Ignore).connect(there, fast(FastOpenCall::Now)).unwrap();
        host.flush();
        let sent = host.segments().into_iter().find(|sent| sent.to == there).unwrap();
        answer(&mut host, &sent, Some(cookie), 0);
        host.sent.clear();
    }
    assert_eq!(call_out(&mut host, b"hello").1.header.options.fast_open, Some(FastOpenCookie::new()));
}

#[test]
fn the_form_of_the_experiment_is_tried_once() {
    let mut host = SingleHost::new();
    let forms: Vec<_> = (0..4)
        .map(|_| {
            let (socket, sent) = call_out(&mut host, b"hello");
            answer(&mut host, &sent, None, 0);
            host.stack.tcp(host.now, &mut Ignore).abort(socket).unwrap();
            host.flush();
            host.sent.clear();
            sent.header.options.fast_open_experimental
        })
        .collect();
    assert_eq!(forms, [false, true, false, false]);
}

#[test]
fn destinations_can_be_forgotten() {
    let mut host = SingleHost::new();
    let cookie = learned(&mut host);
    assert_eq!(call_out(&mut host, b"hello").1.header.options.fast_open, Some(cookie));
    host.stack.tcp(host.now, &mut Ignore).forget_destinations();
    let (_, sent) = call_out(&mut host, b"hello");
    assert_eq!((sent.payload.len(), sent.header.options.fast_open), (0, Some(FastOpenCookie::new())));
}

#[test]
fn cookies_of_the_key_before_hold_while_it_is_named() {
    let mut host = SingleHost::new();
    listen(&mut host, queue(8));
    host.stack.tcp(host.now, &mut Ignore).set_fast_open_keys([5; 16], None);
    let old = ask(&mut host);
    host.stack.tcp(host.now, &mut Ignore).set_fast_open_keys([6; 16], Some([5; 16]));
    let answer = call(&mut host, 1, syn(Some(old)), b"hello");
    let renewed = answer.header.options.fast_open.unwrap();
    assert_eq!((answer.header.acknowledgment.0, renewed == old), (106, false));
    host.stack.tcp(host.now, &mut Ignore).set_fast_open_keys([6; 16], None);
    assert_eq!(call(&mut host, 2, syn(Some(old)), b"hello").header.acknowledgment.0, 101);
    assert_eq!(call(&mut host, 3, syn(Some(renewed)), b"hello").header.acknowledgment.0, 106);
}
