use super::machine::FAILURE_KEPT_FOR;
use super::*;
use crate::answer::{Answer, AnswerError};
use crate::machine::{Failed, Resolution};
use crate::{Hosts, Question};
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, SOA, TXT};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use inhost_base::{Duration, Instant, IpAddr};

fn at(seconds: u64) -> Instant {
    Instant::from_millis(1000 * seconds)
}
fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}
fn visitor(address: &str) -> Visitor {
    let address: IpAddr = address.parse().unwrap();
    Visitor { address, is_near: address.to_string().starts_with("10."), over_tcp: false }
}

/// A forwarder; the way back is a number.
struct Fixture {
    machine: Forwarder<u32>,
    next: u32,
}

impl Fixture {
    fn new(config: ForwardConfig) -> Fixture {
        Fixture { machine: Forwarder::new(config, Hosts::parse("10.0.0.7 multics.lan\n")), next: 0 }
    }
    fn asks(&mut self, from: &str, question: &Message, now: Instant) -> Decision<u32> {
        self.next += 1;
        self.machine.question(&question.to_vec().unwrap(), visitor(from), self.next, now)
    }
    /// The code that comes back at once.
    fn code(&mut self, from: &str, question: &Message, now: Instant) -> ResponseCode {
        reply(self.asks(from, question, now)).metadata.response_code
    }
    fn settles(&mut self, number: u64, result: Result<Answer, Failed>, now: Instant) -> Vec<Message> {
        let question = Question::new(name("www.example."), RecordType::A);
        let report = Resolution { question, result, attempts: Vec::new() };
        let replies = self.machine.settled(number, &report, now);
        replies.iter().map(|settled| Message::from_vec(&settled.bytes).unwrap()).collect()
    }
}

fn question(text: &str, kind: RecordType) -> Message {
    let mut message = Message::new(77, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(name(text), kind));
    message
}
fn www() -> Message {
    question("www.Example.", RecordType::A)
}
fn reply<T: std::fmt::Debug>(decision: Decision<T>) -> Message {
    match decision {
        Decision::Answer(settled) => Message::from_vec(&settled.bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}
fn number<T: std::fmt::Debug>(decision: Decision<T>) -> u64 {
    match decision {
        Decision::Ask(number, _) => number,
        other => panic!("{other:?}"),
    }
}
fn answer(count: u8, seconds: u32) -> Answer {
    let record = |n| Record::from_rdata(name("www.example."), seconds, RData::A(A::new(192, 0, 2, n)));
    Answer {
        code: ResponseCode::NoError,
        records: (0..count).map(record).collect(),
        proof: Vec::new(),
        keep_for: Duration::from_secs(u64::from(seconds)),
        unfinished: None,
        left_out: 0,
    }
}

#[test]
fn a_question_is_asked_once_and_then_answered_from_what_was_kept() {
    let mut fixture = Fixture::new(ForwardConfig::default());
    let asked = number(fixture.asks("10.0.0.1", &www(), at(1)));
    assert_eq!(fixture.asks("10.0.0.2", &www(), at(1)), Decision::Wait);
    assert_eq!(fixture.machine.waiting(), 2);
    let replies = fixture.settles(asked, Ok(answer(1, 60)), at(2));
    assert_eq!(replies.len(), 2);
    assert_eq!((replies[0].metadata.id, replies[0].answers[0].ttl), (77, 60));
    assert!(
        replies[0].metadata.recursion_available
            && !replies[0].metadata.authentic_data
            && replies[0].edns.is_none()
    );
    assert_eq!(replies[0].queries[0].name().to_string(), "www.Example.");
    assert_eq!(fixture.machine.waiting(), 0);
    let kept = reply(fixture.asks("10.0.0.1", &question("WWW.EXAMPLE.", RecordType::A), at(22)));
    assert_eq!((kept.answers.len(), kept.answers[0].ttl), (1, 40));
    number(fixture.asks("10.0.0.1", &www(), at(62)));
    let counters = fixture.machine.counters();
    assert_eq!((counters.questions, counters.asked, counters.joined, counters.kept), (4, 2, 1, 1));
}

/// spec: RFC2308 5
#[test]
fn what_is_not_there_is_kept_too() {
    let mut fixture = Fixture::new(ForwardConfig::default());
    let soa = SOA::new(name("ns.example."), name("root.example."), 1, 2, 3, 4, 30);
    let missing = Answer {
        code: ResponseCode::NXDomain,
        records: Vec::new(),
        proof: vec![Record::from_rdata(name("example."), 30, RData::SOA(soa))],
        keep_for: Duration::from_secs(30),
        unfinished: None,
        left_out: 0,
    };
    let asked = number(fixture.asks("10.0.0.1", &www(), at(1)));
    assert_eq!(fixture.settles(asked, Ok(missing), at(1))[0].metadata.response_code, ResponseCode::NXDomain);
    let kept = reply(fixture.asks("10.0.0.1", &www(), at(11)));
    assert_eq!((kept.metadata.response_code, kept.authorities[0].ttl), (ResponseCode::NXDomain, 20));
    number(fixture.asks("10.0.0.1", &www(), at(31)));
}

/// spec: RFC9520 3.2
#[test]
fn a_failure_is_remembered_for_a_moment() {
    let mut fixture = Fixture::new(ForwardConfig::default());
    let asked = number(fixture.asks("10.0.0.1", &www(), at(1)));
    assert_eq!(
        fixture.settles(asked, Err(Failed::Silence), at(1))[0].metadata.response_code,
        ResponseCode::ServFail
    );
    assert_eq!(fixture.code("10.0.0.1", &www(), at(2)), ResponseCode::ServFail);
    number(fixture.asks("10.0.0.1", &www(), at(1) + FAILURE_KEPT_FOR));
    let refused = Failed::AnswerError(AnswerError::Code(ResponseCode::Refused));
    assert_eq!(fixture.settles(1, Err(refused), at(9))[0].metadata.response_code, ResponseCode::Refused);
}

/// spec: RFC5358
#[test]
fn strangers_are_refused_unless_they_are_allowed() {
    let mut fixture = Fixture::new(ForwardConfig::default());
    assert_eq!(fixture.code("192.0.2.9", &www(), at(1)), ResponseCode::Refused);
    assert_eq!(
        fixture.code("192.0.2.9", &question("multics.lan.", RecordType::A), at(1)),
        ResponseCode::Refused
    );
    assert_eq!(
        fixture.code("127.0.0.1", &question("multics.lan.", RecordType::A), at(1)),
        ResponseCode::NoError
    );
    let allow = vec!["192.0.2.0/24".parse().unwrap()];
    let mut fixture = Fixture::new(ForwardConfig { allow, ..ForwardConfig::default() });
    number(fixture.asks("192.0.2.9", &www(), at(1)));
    assert_eq!(fixture.code("198.51.100.1", &www(), at(1)), ResponseCode::Refused);
}

#[test]
fn what_is_not_done_here_is_refused() {
    let mut fixture = Fixture::new(ForwardConfig::default());
    let mut code = |message: &Message| fixture.code("10.0.0.1", message, at(1));
    for kind in [RecordType::AXFR, RecordType::IXFR, RecordType::ANY] {
        assert_eq!(code(&question("example.", kind)), ResponseCode::Refused, "{kind}");
    }
    let mut chaos = question("version.bind.", RecordType::TXT);
    chaos.queries[0].set_query_class(DNSClass::CH);
    assert_eq!(code(&chaos), ResponseCode::Refused);
    let mut two = www();
    two.add_query(Query::query(name("b.example."), RecordType::A));
    assert_eq!(code(&two), ResponseCode::FormErr);
    let mut notify = www();
    notify.metadata.op_code = OpCode::Notify;
    assert_eq!(code(&notify), ResponseCode::NotImp);
    let mut alone = www();
    alone.metadata.recursion_desired = false;
    assert_eq!(code(&alone), ResponseCode::Refused);
    let mut newer = www();
    newer.set_edns({
        let mut edns = Edns::new();
        edns.set_version(1);
        edns
    });
    assert_eq!(u16::from(code(&newer)), 16, "BADVERS");
    let bytes =
        |bytes: &[u8], fixture: &mut Fixture| fixture.machine.question(bytes, visitor("10.0.0.1"), 0, at(1));
    assert_eq!(bytes(&[0; 11], &mut fixture), Decision::Ignore);
    let mut garbage = www().to_vec().unwrap();
    garbage[5] = 9;
    assert_eq!(reply(bytes(&garbage, &mut fixture)).metadata.response_code, ResponseCode::FormErr);
    garbage[2] |= 0x80;
    assert_eq!(bytes(&garbage, &mut fixture), Decision::Ignore, "an answer is not answered");
}

#[test]
fn a_reply_that_is_too_long_says_so_and_goes_whole_over_tcp() {
    let mut fixture = Fixture::new(ForwardConfig::default());
    let asked = number(fixture.asks("10.0.0.1", &www(), at(1)));
    let replies = fixture.settles(asked, Ok(answer(60, 60)), at(1));
    assert!(replies[0].metadata.truncation && replies[0].answers.is_empty());
    let mut larger = www();
    larger.set_edns({
        let mut edns = Edns::new();
        edns.set_max_payload(4096);
        edns
    });
    let whole = reply(fixture.asks("10.0.0.1", &larger, at(1)));
    assert_eq!((whole.metadata.truncation, whole.answers.len()), (false, 60));
    assert_eq!(whole.edns.unwrap().max_payload(), 1232);
    let over_tcp = Visitor { over_tcp: true, ..visitor("10.0.0.1") };
    let whole = reply(fixture.machine.question(&www().to_vec().unwrap(), over_tcp, 0, at(1)));
    assert_eq!(whole.answers.len(), 60);
}

#[test]
fn clients_have_limits_each_and_together() {
    let clients = ClientLimits { waiting_each: 3, waiting_all: 5, per_second: 10, burst: 8 };
    let mut fixture = Fixture::new(ForwardConfig { clients, ..ForwardConfig::default() });
    let mut asks =
        |from: &str, n: u32| fixture.asks(from, &question(&format!("n{n}.example."), RecordType::A), at(1));
    let failed = |decision| reply(decision).metadata.response_code == ResponseCode::ServFail;
    for n in 0..3 {
        number(asks("10.0.0.1", n));
    }
    assert!(failed(asks("10.0.0.1", 3)), "its places are taken");
    number(asks("10.0.0.2", 4));
    number(asks("10.0.0.2", 5));
    assert!(failed(asks("10.0.0.3", 6)), "all places are taken");
    for _ in 4..8 {
        asks("10.0.0.1", 0);
    }
    assert_eq!(asks("10.0.0.1", 0), Decision::Ignore, "too many in a moment");
    let mut fixture = Fixture::new(ForwardConfig { asked_limit: 1, ..ForwardConfig::default() });
    number(fixture.asks("10.0.0.1", &www(), at(1)));
    assert!(failed(fixture.asks("10.0.0.1", &question("b.example.", RecordType::A), at(1))));
}

#[test]
fn names_of_the_table_and_of_nobody_are_answered_here() {
    let mut fixture = Fixture::new(ForwardConfig::default());
    let found = reply(fixture.asks("10.0.0.1", &question("Multics.LAN.", RecordType::A), at(1)));
    assert_eq!(found.answers[0].data.to_string(), "10.0.0.7");
    let back = reply(fixture.asks("10.0.0.1", &question("7.0.0.10.in-addr.arpa.", RecordType::PTR), at(1)));
    assert_eq!(back.answers[0].data.to_string(), "multics.lan.");
    assert_eq!(
        fixture.code("10.0.0.1", &question("printer.local.", RecordType::A), at(1)),
        ResponseCode::NXDomain
    );
    assert_eq!(fixture.machine.counters().local, 3);
}

#[test]
fn what_was_kept_goes_when_the_servers_change() {
    let mut fixture = Fixture::new(ForwardConfig::default());
    let asked = number(fixture.asks("10.0.0.1", &www(), at(1)));
    let mut text = answer(1, 60);
    text.records.push(Record::from_rdata(name("www.example."), 60, RData::TXT(TXT::new(vec!["x".into()]))));
    fixture.settles(asked, Ok(text), at(1));
    assert_eq!(fixture.machine.kept().0, 1);
    let servers = vec![inhost_base::Endpoint::new([192, 0, 2, 1], 53)];
    fixture.machine.change(ForwardConfig { servers, ..ForwardConfig::default() }, Hosts::default());
    assert_eq!(fixture.machine.kept().0, 0);
    number(fixture.asks("10.0.0.1", &question("multics.lan.", RecordType::A), at(1)));
}
