//! A forwarder between a client and name servers, on two hosts: servers that answer, lie, cut, hide and die.

use crate::network::Network;
use futures_lite::future;
use hickory_proto::op::{Message, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, CNAME, SOA, TXT};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use inhost_base::{Duration, Endpoint, IpAddr, Ipv6Addr};
use inhost_common::{Callers, Transport};
use inhost_names::forward::{ClientLimits, ForwardConfig, Forwarding, serve};
use inhost_names::{AnswerError, AttemptOutcome, DnsClient, Failed, Hosts, Mismatch, Question, Resolution};
use inhost_socket::{Ends, Host, UdpSocket};
use inhost_stack::{ConnectOptions, ListenOptions, Local, UdpOptions};
use std::cell::RefCell;
use std::rc::Rc;
use std::str::FromStr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Log = Rc<RefCell<Vec<String>>>;

fn name(text: &str) -> Name {
    Name::from_str(text).unwrap()
}
fn record(owner: &Name, seconds: u32, last: u8) -> Record {
    Record::from_rdata(owner.clone(), seconds, RData::A(A::new(192, 0, 2, last)))
}

/// What the server says of a name.
fn answer(question: &[u8], over_tcp: bool, log: &Log) -> Message {
    let asked = Message::from_vec(question).unwrap();
    let query = asked.queries[0].clone();
    let text = query.name().to_lowercase().to_string();
    log.borrow_mut().push(format!("{} {text}", if over_tcp { "tcp" } else { "udp" }));
    let mut reply = Message::response(asked.metadata.id, OpCode::Query);
    reply.add_query(query.clone());
    let owner = query.name().clone();
    match text.as_str() {
        "long.example." if !over_tcp => reply.metadata.truncation = true,
        "long.example." => reply.answers.extend((0..100).map(|n| record(&owner, 60, n))),
        "huge.example." if !over_tcp => reply.metadata.truncation = true,
        "huge.example." => {
            let text = |n: u8| TXT::from_bytes(vec![&[n; 250]; 16]);
            reply.answers.extend((0..15).map(|n| Record::from_rdata(owner.clone(), 60, RData::TXT(text(n)))));
        }
        "loop.example." => {
            let (a, b) = (owner.clone(), name("b.example."));
            reply.add_answer(Record::from_rdata(a.clone(), 60, RData::CNAME(CNAME(b.clone()))));
            reply.add_answer(Record::from_rdata(b, 60, RData::CNAME(CNAME(a))));
        }
        "alias.example." => {
            reply.add_answer(Record::from_rdata(owner, 60, RData::CNAME(CNAME(name("www.example.")))));
        }
        "missing.example." => {
            reply.metadata.response_code = ResponseCode::NXDomain;
            let soa = SOA::new(name("ns.example."), name("root.example."), 1, 2, 3, 4, 30);
            reply.add_authority(Record::from_rdata(name("example."), 600, RData::SOA(soa)));
        }
        "broken.example." => reply.metadata.response_code = ResponseCode::ServFail,
        // With a record that nobody asked for: a bank's address.
        "evil.example." => {
            reply.add_answer(record(&owner, 60, 1));
            reply.add_answer(record(&name("bank.example."), 86_400, 66));
            reply.add_additional(record(&name("bank.example."), 86_400, 66));
        }
        _ => reply.answers.push(record(&owner, 60, 1)),
    }
    reply
}

/// A name server at `port` of all addresses of `host`. `forgers` are asked to send what they like before each answer.
fn server(host: &Host, port: u16, forger: impl Fn(&Message, &mut Vec<Message>) + 'static) -> Log {
    let log = Log::default();
    let at = Endpoint::new(Ipv6Addr::UNSPECIFIED, port);
    let socket = host.udp(at, UdpOptions::default()).unwrap();
    let udp_log = log.clone();
    host.spawn(async move {
        let mut buffer = [0; 2048];
        loop {
            let Ok(received) = socket.receive_from(&mut buffer).await else { continue };
            let reply = answer(&buffer[..received.length_bytes], false, &udp_log);
            let mut forged = Vec::new();
            forger(&reply, &mut forged);
            for message in forged.iter().chain([&reply]) {
                let bytes = message.to_vec().unwrap();
                socket.send_between(&bytes, Ends::back(&received)).await.unwrap();
            }
        }
    })
    .detach();
    let listener = host.listen(at, ListenOptions::default()).unwrap();
    let (tcp_log, tcp_host) = (log.clone(), host.clone());
    host.spawn(async move {
        while let Ok(mut stream) = listener.accept().await {
            let log = tcp_log.clone();
            let task = async move {
                while let Ok(length) = stream.read_u16().await {
                    let mut question = vec![0; usize::from(length)];
                    stream.read_exact(&mut question).await.unwrap();
                    let reply = answer(&question, true, &log).to_vec().unwrap();
                    stream
                        .write_all(&[&(reply.len() as u16).to_be_bytes()[..], &reply].concat())
                        .await
                        .unwrap();
                }
            };
            tcp_host.spawn(task).detach();
        }
    })
    .detach();
    log
}

fn honest(_: &Message, _: &mut Vec<Message>) {}

const UPSTREAM: u16 = 5300;

fn upstream(last: u8) -> Endpoint {
    Endpoint::new([10, 9, 0, last], UPSTREAM)
}

/// Host 0 forwards to `servers`, and asks itself as a client.
struct Place {
    network: Network,
    forwarding: Rc<Forwarding>,
    client: Rc<DnsClient>,
    callers: Callers,
}

impl Place {
    fn new(servers: &[Endpoint], more: ForwardConfig) -> Place {
        let network = Network::new();
        let host = network.ends[0].host.clone();
        let mut config = more;
        config.servers = servers.to_vec();
        let hosts = Hosts::parse("10.0.0.7 multics.lan\n");
        let callers = Callers::default();
        let forwarding = Rc::new(serve(&host, 53, config, hosts, callers.clone(), [1; 32]).unwrap());
        let client = Rc::new(DnsClient::new(&host, [2; 32]));
        Place { network, forwarding, client, callers }
    }
    fn asks_at(&mut self, at: &str, text: &str, over_tcp: bool) -> Resolution {
        let question = Question::new(name(text), RecordType::A);
        let at = Endpoint::new(at.parse::<IpAddr>().unwrap(), 53);
        let client = self.client.clone();
        self.network.run(async move { client.ask(question, &[at], over_tcp).await })
    }
    fn asks(&mut self, text: &str) -> Resolution {
        self.asks_at("127.0.0.1", text, false)
    }
    /// The addresses that come back.
    fn finds(&mut self, text: &str) -> Vec<String> {
        let answer = self.asks(text).result.unwrap();
        answer.wanted(RecordType::A).map(|record| record.data.to_string()).collect()
    }
    fn passes(&mut self, time: Duration) {
        let host = self.network.ends[0].host.clone();
        self.network.run(async move { host.sleep(time).await });
    }
}

fn code(report: &Resolution) -> ResponseCode {
    match &report.result {
        Ok(answer) => answer.code,
        Err(Failed::AnswerError(AnswerError::Code(code))) => *code,
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn questions_are_forwarded_and_answers_kept_for_their_time() {
    let mut place = Place::new(&[upstream(2)], ForwardConfig::default());
    let log = server(&place.network.ends[1].host, UPSTREAM, honest);
    for (at, over_tcp) in [("127.0.0.1", false), ("::1", true), ("10.9.0.1", true), ("2001:db8:9::1", false)]
    {
        let answer = place.asks_at(at, "www.example.", over_tcp).result.unwrap();
        assert_eq!(answer.records[0].data.to_string(), "192.0.2.1", "{at}");
    }
    assert_eq!(*log.borrow(), ["udp www.example."]);
    place.passes(Duration::from_secs(20));
    let ttl = place.asks("WWW.example.").result.unwrap().records[0].ttl;
    assert!((39..=40).contains(&ttl), "{ttl}");
    place.passes(Duration::from_secs(41));
    place.finds("www.example.");
    assert_eq!(log.borrow().len(), 2);
    assert_eq!(place.finds("multics.lan."), ["10.0.0.7"]);
}

/// spec: RFC2308 5
#[test]
fn that_there_is_nothing_is_kept_as_long_as_the_zone_says() {
    let mut place = Place::new(&[upstream(2)], ForwardConfig::default());
    let log = server(&place.network.ends[1].host, UPSTREAM, honest);
    for _ in 0..3 {
        assert_eq!(code(&place.asks("missing.example.")), ResponseCode::NXDomain);
        place.passes(Duration::from_secs(9));
    }
    assert_eq!(log.borrow().len(), 1);
    place.passes(Duration::from_secs(4));
    place.asks("missing.example.");
    assert_eq!(log.borrow().len(), 2);
}

#[test]
fn what_is_too_long_comes_over_tcp_on_both_sides() {
    let mut place = Place::new(&[upstream(2)], ForwardConfig::default());
    let log = server(&place.network.ends[1].host, UPSTREAM, honest);
    let report = place.asks("long.example.");
    assert_eq!(report.result.unwrap().records.len(), 100);
    let outcomes: Vec<&AttemptOutcome> = report.attempts.iter().map(|attempt| &attempt.outcome).collect();
    assert!(
        matches!(outcomes[..], [AttemptOutcome::Truncated, AttemptOutcome::Answered(ResponseCode::NoError)]),
        "{outcomes:?}"
    );
    assert_eq!(*log.borrow(), ["udp long.example.", "tcp long.example."]);
}

#[test]
fn aliases_that_go_round_end_and_others_are_followed() {
    let mut place = Place::new(&[upstream(2)], ForwardConfig::default());
    let log = server(&place.network.ends[1].host, UPSTREAM, honest);
    assert_eq!(code(&place.asks("loop.example.")), ResponseCode::ServFail);
    assert_eq!(log.borrow().len(), 1, "one look is enough: {log:?}");
    assert_eq!(place.finds("alias.example."), ["192.0.2.1"]);
    assert_eq!(log.borrow()[1..], ["udp alias.example.", "udp www.example."]);
}

#[test]
fn a_dead_server_costs_its_time_once() {
    let mut place = Place::new(&[upstream(99), upstream(2)], ForwardConfig::default());
    server(&place.network.ends[1].host, UPSTREAM, honest);
    let mut times = Vec::new();
    for n in 0..6 {
        let started = place.network.now;
        assert_eq!(place.finds(&format!("n{n}.example.")), ["192.0.2.1"]);
        times.push(place.network.now.since(started));
    }
    assert!(times[0] >= Duration::from_secs(1), "{times:?}");
    assert!(times[2..].iter().all(|time| *time < Duration::from_millis(50)), "{times:?}");
}

#[test]
fn when_nobody_answers_that_is_said_and_remembered_for_a_moment() {
    let mut place = Place::new(&[upstream(98), upstream(99)], ForwardConfig::default());
    let started = place.network.now;
    let host = place.network.ends[0].host.clone();
    let client = place.client.clone();
    // The client waits long enough for it.
    let report = place.network.run(async move {
        let here = Endpoint::new([127, 0, 0, 1], 53);
        let mut report =
            client.ask(Question::new(name("www.example."), RecordType::A), &[here; 4], false).await;
        if report.result == Err(Failed::Silence) {
            host.sleep(Duration::from_secs(2)).await;
            report = client.ask(Question::new(name("www.example."), RecordType::A), &[here; 4], false).await;
        }
        report
    });
    assert_eq!(code(&report), ResponseCode::ServFail);
    assert!(place.network.now.since(started) < Duration::from_secs(15));
    let started = place.network.now;
    assert_eq!(code(&place.asks("www.example.")), ResponseCode::ServFail);
    assert!(place.network.now.since(started) < Duration::from_millis(10));
}

#[test]
fn a_server_that_fails_is_passed_over_for_the_next_one() {
    let mut place = Place::new(&[upstream(2), Endpoint::new([10, 9, 0, 2], 5301)], ForwardConfig::default());
    server(&place.network.ends[1].host, UPSTREAM, |_, _| {});
    let second = server(&place.network.ends[1].host, 5301, honest);
    assert_eq!(code(&place.asks("broken.example.")), ResponseCode::ServFail);
    assert_eq!(second.borrow().len(), 1, "both were asked");
}

/// spec: RFC5452 — a forger who guesses is not believed, and one who guesses much is asked by another way.
#[test]
fn forged_answers_are_not_believed() {
    let mut place = Place::new(&[upstream(2)], ForwardConfig::default());
    let forger = |reply: &Message, forged: &mut Vec<Message>| {
        let poisoned = |change: fn(&mut Message)| {
            let mut poison = reply.clone();
            poison.answers = vec![record(reply.queries[0].name(), 86_400, 66)];
            change(&mut poison);
            poison
        };
        forged.push(poisoned(|poison| poison.metadata.id ^= 1));
        forged.push(poisoned(|poison| {
            let other = Name::from_str("other.example.").unwrap();
            poison.queries[0].set_name(other);
        }));
        forged.push(poisoned(|poison| {
            poison.queries[0].set_query_type(RecordType::TXT);
        }));
        if reply.queries[0].name().to_lowercase().to_string() == "flood.example." {
            (0..200).for_each(|n| {
                let mut poison = poisoned(|_| {});
                poison.metadata.id = poison.metadata.id.wrapping_add(1 + n);
                forged.push(poison);
            });
        }
    };
    let log = server(&place.network.ends[1].host, UPSTREAM, forger);
    assert_eq!(place.finds("www.example."), ["192.0.2.1"]);
    assert_eq!(place.finds("flood.example."), ["192.0.2.1"]);
    assert_eq!(*log.borrow(), ["udp www.example.", "udp flood.example.", "tcp flood.example."]);
    // And the client's own side counts what it passed over.
    let client = place.client.clone();
    let report = place.network.run(async move {
        client.ask(Question::new(name("direct.example."), RecordType::A), &[upstream(2)], false).await
    });
    let mismatches = &report.attempts[0].mismatches;
    assert_eq!((mismatches[&Mismatch::OtherIdentifier], mismatches[&Mismatch::OtherQuestion]), (1, 2));
}

#[test]
fn a_forger_who_does_not_know_the_letters_is_caught_by_them() {
    let mut place = Place::new(&[upstream(2)], ForwardConfig::default());
    // He knows identifier and port, and not the case.
    let log = server(&place.network.ends[1].host, UPSTREAM, |reply, forged| {
        let mut poison = reply.clone();
        poison.answers = vec![record(&reply.queries[0].name().to_lowercase(), 86_400, 66)];
        poison.queries[0].set_name(reply.queries[0].name().to_lowercase());
        forged.push(poison);
    });
    let letters = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnop.example.";
    assert_eq!(place.finds(letters), ["192.0.2.1"]);
    assert!(log.borrow().contains(&format!("tcp {letters}")), "{log:?}");
}

#[test]
fn a_server_cannot_speak_of_what_it_was_not_asked() {
    let mut place = Place::new(&[upstream(2)], ForwardConfig::default());
    let log = server(&place.network.ends[1].host, UPSTREAM, honest);
    let answer = place.asks("evil.example.").result.unwrap();
    assert_eq!(answer.records.len(), 1);
    assert_eq!(place.finds("bank.example."), ["192.0.2.1"], "asked for, and not taken from what evil said");
    assert_eq!(log.borrow()[1], "udp bank.example.");
}

#[test]
fn an_answer_from_another_port_is_not_heard() {
    let mut place = Place::new(&[upstream(2)], ForwardConfig::default());
    let host = place.network.ends[1].host.clone();
    let at = Endpoint::new(Ipv6Addr::UNSPECIFIED, UPSTREAM);
    let question: UdpSocket = host.udp(at, UdpOptions::default()).unwrap();
    let elsewhere = host.udp(Endpoint::new(Ipv6Addr::UNSPECIFIED, 0), UdpOptions::default()).unwrap();
    host.spawn(async move {
        let (mut buffer, log) = ([0; 2048], Log::default());
        loop {
            let Ok(received) = question.receive_from(&mut buffer).await else { continue };
            let reply = answer(&buffer[..received.length_bytes], false, &log).to_vec().unwrap();
            elsewhere.send_to(&reply, received.from).await.unwrap();
        }
    })
    .detach();
    let client = place.client.clone();
    let report = place.network.run(async move {
        client.ask(Question::new(name("www.example."), RecordType::A), &[upstream(2)], false).await
    });
    assert_eq!(report.result, Err(Failed::Silence));
}

#[test]
fn connections_are_bounded_and_silent_ones_closed() {
    let mut more = ForwardConfig::default();
    more.limits.sessions = 3;
    more.clients = ClientLimits::default();
    let mut place = Place::new(&[upstream(2)], more);
    let host = place.network.ends[0].host.clone();
    let (kept, over) = place.network.run(async move {
        let at = Endpoint::new([127, 0, 0, 1], 53);
        let mut streams = Vec::new();
        for _ in 0..3 {
            streams.push(host.connect(at).await.unwrap());
        }
        host.sleep(Duration::from_millis(10)).await;
        let mut extra = host.connect(at).await.unwrap();
        let over = extra.read_u8().await.is_err();
        let started = host.now();
        let silent = streams[0].read(&mut [0; 1]).await.unwrap();
        ((silent, host.now().since(started)), over)
    });
    assert!(over, "the fourth is reset");
    assert_eq!(kept.0, 0, "the silent one is closed");
    assert!(kept.1 >= Duration::from_secs(9) && kept.1 < Duration::from_secs(12), "{}", kept.1);
    assert_eq!(place.forwarding.counters().questions, 0);
}

#[test]
fn many_questions_on_one_connection_are_all_answered() {
    let mut place = Place::new(&[upstream(2)], ForwardConfig::default());
    server(&place.network.ends[1].host, UPSTREAM, honest);
    let host = place.network.ends[0].host.clone();
    let count = place.network.run(async move {
        let stream = host.connect(Endpoint::new([127, 0, 0, 1], 53)).await.unwrap();
        let (mut input, mut output) = tokio::io::split(stream);
        let asking = async {
            for n in 0..200u16 {
                let mut message = Message::new(n, hickory_proto::op::MessageType::Query, OpCode::Query);
                message.metadata.recursion_desired = true;
                let owner = name(&format!("n{}.example.", n % 50));
                message.add_query(hickory_proto::op::Query::query(owner, RecordType::A));
                let bytes = message.to_vec().unwrap();
                output.write_all(&[&(bytes.len() as u16).to_be_bytes()[..], &bytes].concat()).await.unwrap();
            }
        };
        let hearing = async {
            let mut seen = std::collections::BTreeSet::new();
            while seen.len() < 200 {
                let length = input.read_u16().await.unwrap();
                let mut reply = vec![0; usize::from(length)];
                input.read_exact(&mut reply).await.unwrap();
                let reply = Message::from_vec(&reply).unwrap();
                assert_eq!(reply.answers.len(), 1);
                seen.insert(reply.metadata.id);
            }
            seen.len()
        };
        future::zip(asking, hearing).await.1
    });
    assert_eq!(count, 200);
    assert!(place.forwarding.counters().asked <= 50);
}

/// A question over TCP, behind its length.
fn framed(id: u16, text: &str, kind: RecordType) -> Vec<u8> {
    let mut message = Message::new(id, hickory_proto::op::MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(hickory_proto::op::Query::query(name(text), kind));
    let bytes = message.to_vec().unwrap();
    [&(bytes.len() as u16).to_be_bytes()[..], &bytes].concat()
}

#[test]
fn a_client_that_asks_on_and_reads_nothing_is_left_within_bounds() {
    let mut clients = ClientLimits::default();
    clients.per_second = 100_000;
    clients.burst = 100_000;
    let mut place = Place::new(&[upstream(2)], {
        let mut config = ForwardConfig::default();
        config.clients = clients;
        config
    });
    server(&place.network.ends[1].host, UPSTREAM, honest);
    let host = place.network.ends[0].host.clone();
    let (forwarding, client) = (place.forwarding.clone(), place.client.clone());
    let (most, ended_after) = place.network.run(async move {
        let mut stream = host.connect(Endpoint::new([127, 0, 0, 1], 53)).await.unwrap();
        stream.set_receive_buffer_limit(4096);
        let (began, mut most) = (host.now(), 0);
        // Many at once, and then one each second for five minutes.
        for n in 0..2000u16 {
            let question = framed(n, "huge.example.", RecordType::TXT);
            let write = host.timeout(Duration::from_millis(5), stream.write_all(&question)).await;
            if n % 100 == 0 {
                host.sleep(Duration::from_millis(1)).await;
            }
            most = most.max(forwarding.waiting_bytes());
            if matches!(write, Ok(Err(_))) {
                break;
            }
        }
        for n in 0..300u16 {
            let question = framed(n, "www.example.", RecordType::A);
            let write = host.timeout(Duration::from_secs(1), stream.write_all(&question)).await;
            most = most.max(forwarding.waiting_bytes());
            if matches!(write, Ok(Err(_))) || stream.error().is_some() {
                break;
            }
            host.sleep(Duration::from_secs(1)).await;
        }
        // Others are served meanwhile and after.
        let at = [Endpoint::new([127, 0, 0, 1], 53)];
        let other = client.ask(Question::new(name("www.example."), RecordType::A), &at, true).await;
        assert!(other.result.is_ok());
        (most, host.now().since(began))
    });
    assert!(most > 0 && most <= 256 << 10, "{most} bytes waited");
    assert!(ended_after < Duration::from_secs(180), "it held its place for {ended_after}");
    assert_eq!(place.forwarding.waiting_bytes(), 0);
    assert!(place.forwarding.counters().questions < 300, "{:?}", place.forwarding.counters());
}

#[test]
fn limits_count_the_outer_callers_of_a_gateway() {
    let mut clients = ClientLimits::default();
    clients.burst = 3;
    clients.per_second = 1;
    let mut place = Place::new(&[upstream(2)], {
        let mut config = ForwardConfig::default();
        config.clients = clients;
        config
    });
    server(&place.network.ends[1].host, UPSTREAM, honest);
    let host = place.network.ends[0].host.clone();
    let callers = place.callers.clone();
    place.network.run(async move {
        let at = Endpoint::new([127, 0, 0, 1], 53);
        let mut answered = Vec::new();
        for outer in 1..=3u8 {
            let mut replied = 0;
            for n in 0..5 {
                let socket = host.udp(Endpoint::new([127, 0, 0, 1], 0), UdpOptions::default()).unwrap();
                let outer = Endpoint::new([192, 0, 2, outer], 1000 + n);
                let _entry = callers.enter(Transport::Udp, socket.local(), outer);
                socket.send_to(&framed(n, "www.example.", RecordType::A)[2..], at).await.unwrap();
                let mut place = [0; 512];
                let reply = host.timeout(Duration::from_millis(50), socket.receive_from(&mut place)).await;
                replied += u32::from(reply.is_ok());
            }
            answered.push(replied);
        }
        assert_eq!(answered, [3, 3, 3], "each has its own burst");
        // Connections, too: eight of one caller, and there is room for another.
        let mut kept = Vec::new();
        let mut entries = Vec::new();
        for n in 0..9u16 {
            let outer = Endpoint::new([192, 0, 2, 9 + u8::from(n == 8)], 2000 + n);
            let local = Endpoint::new([127, 0, 0, 1], 40_000 + n);
            entries.push(callers.enter(Transport::Tcp, local, outer));
            let mut options = ConnectOptions::default();
            options.local = Local { address: Some(local.address), port: local.port };
            kept.push(host.connect_with(at, options).await.unwrap());
        }
        host.sleep(Duration::from_millis(10)).await;
        assert!(kept.iter().all(|stream| stream.error().is_none()));
    });
}

#[test]
fn a_reply_does_not_wait_for_the_acknowledgment_of_the_one_before() {
    let mut place = Place::new(&[upstream(2)], ForwardConfig::default());
    server(&place.network.ends[1].host, UPSTREAM, honest);
    let far = place.network.ends[1].host.clone();
    let took = place.network.run(async move {
        let stream = far.connect(Endpoint::new([10, 9, 0, 1], 53)).await.unwrap();
        let (mut input, mut output) = tokio::io::split(stream);
        let began = far.now();
        for n in 0..2u16 {
            output.write_all(&framed(n, &format!("n{n}.example."), RecordType::A)).await.unwrap();
        }
        for _ in 0..2 {
            let length = input.read_u16().await.unwrap();
            input.read_exact(&mut vec![0; usize::from(length)]).await.unwrap();
        }
        far.now().since(began)
    });
    assert!(took < Duration::from_millis(20), "{took}");
}
