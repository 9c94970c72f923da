use super::*;
use crate::Question;
use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, NULL, PTR};
use hickory_proto::rr::{DNSClass, RData, Record, RecordType};
use inhost_base::{Duration, Endpoint, Instant, Random};
use std::str::FromStr;

const START: Instant = Instant::from_millis(1000);

struct Talk {
    query: MdnsQuery,
    sent: Vec<(Asking, Message)>,
    now: Instant,
}

impl Talk {
    fn new(name: &str, kind: RecordType) -> Talk {
        let question = Question::new(Name::from_str(name).unwrap(), kind);
        let query = MdnsQuery::new(question, &mut Random::from_number(1), START);
        let mut talk = Talk { query, sent: Vec::new(), now: START };
        talk.act();
        talk
    }
    fn act(&mut self) {
        if let Some(MdnsAction::Send(asking, bytes)) = self.query.action() {
            self.sent.push((asking, Message::from_vec(&bytes).unwrap()));
        }
    }
    /// Lets time pass to the end.
    fn ends(mut self) -> (MdnsReport, Duration, Vec<(Asking, Message)>) {
        while let Some(deadline) = self.query.deadline() {
            self.now = deadline;
            self.query.timeout(self.now);
            self.act();
        }
        (self.query.into_report(), self.now.since(START), self.sent)
    }
    fn hears(&mut self, message: &Message) {
        self.hears_from(Endpoint::new([10, 9, 0, 7], MDNS_PORT), true, true, message);
    }
    fn hears_from(&mut self, from: Endpoint, to_group: bool, near: bool, message: &Message) {
        self.now += Duration::from_millis(10);
        self.query.message(from, to_group, near, &message.to_vec().unwrap(), self.now);
    }
}

fn says(records: Vec<Record>) -> Message {
    let mut message = Message::response(0, OpCode::Query);
    message.answers = records;
    message
}
fn address(name: &str, last: u8, ttl: u32) -> Record {
    let mut record = Record::from_rdata(Name::from_str(name).unwrap(), ttl, RData::A(A::new(10, 9, 0, last)));
    // The bit by which it replaces what was known.
    record.dns_class = DNSClass::from(0x8001);
    record
}

/// spec: RFC6762 5.1, RFC6762 5.2, RFC6762 18.1
#[test]
fn nobody_answers() {
    let (report, took, sent) = Talk::new("nobody.local.", RecordType::A).ends();
    assert_eq!((report.answer, report.sent, took), (None, 3, Duration::from_millis(4500)));
    assert_eq!([sent[0].0, sent[1].0, sent[2].0], [Asking::OneShot, Asking::Everybody, Asking::Everybody]);
    assert_eq!((sent[1].1.metadata.id, sent[0].1.metadata.recursion_desired), (0, false));
}

#[test]
fn the_first_answer_ends_the_waiting_after_a_moment() {
    let mut talk = Talk::new("multics.local.", RecordType::A);
    talk.hears(&says(vec![address("Multics.local.", 7, 120), address("other.local.", 8, 120)]));
    talk.hears(&says(vec![address("multics.local.", 9, 120)]));
    let (report, took, sent) = talk.ends();
    let answer = report.answer.unwrap();
    assert_eq!((answer.records.len(), sent.len()), (2, 1));
    assert_eq!(took, Duration::from_millis(260));
    assert_eq!(report.responders, [(Endpoint::new([10, 9, 0, 7], MDNS_PORT), Duration::from_millis(10))]);
}

/// spec: RFC6762 6, RFC6762 11, RFC6762 18.3, RFC6762 18.11
#[test]
fn strangers_and_what_is_no_answer_are_not_believed() {
    let mut talk = Talk::new("multics.local.", RecordType::A);
    let good = says(vec![address("multics.local.", 66, 120)]);
    let responder = Endpoint::new([10, 9, 0, 7], MDNS_PORT);
    talk.hears_from(Endpoint::new([10, 9, 0, 7], 5000), true, true, &good);
    talk.hears_from(responder, false, false, &good);
    let mut question = good.clone();
    question.metadata.message_type = MessageType::Query;
    let mut failed = good.clone();
    failed.metadata.response_code = ResponseCode::ServFail;
    let mut other = good.clone();
    other.metadata.op_code = OpCode::Notify;
    let mut forged = good;
    forged.metadata.id = talk.sent[0].1.metadata.id ^ 1;
    for message in [&question, &failed, &other] {
        talk.hears(message);
    }
    talk.hears_from(responder, false, true, &forged);
    let (report, _, _) = talk.ends();
    assert_eq!((report.answer, report.passed_over), (None, 6));
}

/// spec: RFC6762 6.7
#[test]
fn the_answer_to_a_one_shot_repeats_its_identifier() {
    let mut talk = Talk::new("multics.local.", RecordType::A);
    let mut reply = says(vec![address("multics.local.", 7, 10)]);
    reply.metadata.id = talk.sent[0].1.metadata.id;
    talk.hears_from(Endpoint::new([10, 9, 0, 7], MDNS_PORT), false, true, &reply);
    assert_eq!(talk.ends().0.answer.unwrap().records[0].data.to_string(), "10.9.0.7");
}

/// spec: RFC6762 7.1, RFC6762 10.1
#[test]
fn what_is_known_is_told_and_farewells_are_heard() {
    let mut talk = Talk::new("_http._tcp.local.", RecordType::PTR);
    let service = |name: &str, ttl| {
        let data = RData::PTR(PTR(Name::from_str(name).unwrap()));
        Record::from_rdata(Name::from_str("_http._tcp.local.").unwrap(), ttl, data)
    };
    talk.now = START + Duration::from_millis(900);
    talk.hears(&says(vec![service("a._http._tcp.local.", 4500), service("b._http._tcp.local.", 4500)]));
    talk.hears(&says(vec![service("b._http._tcp.local.", 0)]));
    let (report, _, sent) = talk.ends();
    assert_eq!(report.answer.unwrap().records.len(), 1);
    assert_eq!(sent[1].1.answers.len(), 1, "{:?}", sent[1].1);
}

/// spec: RFC6762 6.1
#[test]
fn its_owner_may_say_that_a_name_has_no_such_record() {
    let name = Name::from_str("multics.local.").unwrap();
    // Next name by a pointer to itself, window 0 with A (bit 1) alone.
    let nsec = |bits: u8| {
        let data =
            RData::Unknown { code: RecordType::NSEC, rdata: NULL::with(vec![0xc0, 12, 0, 4, bits, 0, 0, 0]) };
        Record::from_rdata(name.clone(), 120, data)
    };
    let mut talk = Talk::new("multics.local.", RecordType::AAAA);
    talk.hears(&says(vec![nsec(0x40)]));
    let (report, took, _) = talk.ends();
    assert!(report.answer.is_some_and(|answer| answer.records.is_empty()) && took < Duration::from_secs(1));
    let mut talk = Talk::new("multics.local.", RecordType::A);
    talk.hears(&says(vec![nsec(0x40)]));
    assert_eq!(talk.ends().0.answer, None, "it has one");
}

#[test]
fn which_names_are_of_the_link() {
    let of = |text: &str| is_of_the_link(&Name::from_str(text).unwrap());
    assert!(of("multics.local.") && of("MULTICS.Local") && of("1.2.254.169.in-addr.arpa."));
    assert!(!of("local.example.") && !of("notlocal.") && !of("1.0.0.10.in-addr.arpa."));
}
