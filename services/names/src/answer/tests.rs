use super::*;
use hickory_proto::op::OpCode;
use hickory_proto::rr::rdata::{A, CNAME, NS, SOA};
use std::str::FromStr;

fn name(text: &str) -> Name {
    Name::from_str(text).unwrap()
}
fn a(owner: &str, ttl: u32) -> Record {
    Record::from_rdata(name(owner), ttl, RData::A(A::new(192, 0, 2, 1)))
}
fn alias(owner: &str, target: &str, ttl: u32) -> Record {
    Record::from_rdata(name(owner), ttl, RData::CNAME(CNAME(name(target))))
}
fn soa(zone: &str, ttl: u32, minimum: u32) -> Record {
    let data = SOA::new(name("ns.example."), name("root.example."), 1, 2, 3, 4, minimum);
    Record::from_rdata(name(zone), ttl, RData::SOA(data))
}
fn read(code: ResponseCode, answers: Vec<Record>, authorities: Vec<Record>) -> Result<Answer, AnswerError> {
    let mut message = Message::response(1, OpCode::Query);
    message.metadata.response_code = code;
    message.answers = answers;
    message.authorities = authorities;
    Answer::read(&message, &Question::new(name("www.example."), RecordType::A))
}
fn says(answers: Vec<Record>) -> Answer {
    read(ResponseCode::NoError, answers, Vec::new()).unwrap()
}

#[test]
fn what_was_not_asked_for_is_left_out() {
    let answer = says(vec![a("www.example.", 60), a("bank.example.", 60), alias("www.other.", "x.", 60)]);
    assert_eq!((answer.records.len(), answer.left_out), (1, 2));
    assert_eq!(answer.keep_for, Duration::from_secs(60));
    assert_eq!(answer.unfinished, None);
}

#[test]
fn aliases_are_followed_in_any_order_and_the_shortest_time_holds() {
    let answer = says(vec![
        a("end.example.", 300),
        alias("mid.example.", "end.example.", 5),
        alias("www.example.", "mid.example.", 60),
    ]);
    let owners: Vec<String> = answer.records.iter().map(|record| shown(&record.name)).collect();
    assert_eq!(owners, ["www.example", "mid.example", "end.example"]);
    assert_eq!(answer.keep_for, Duration::from_secs(5));
    let unfinished = says(vec![alias("WWW.example.", "elsewhere.test.", 60)]);
    assert_eq!(unfinished.unfinished, Some(name("elsewhere.test.")));
    assert_eq!(unfinished.records[0].name.to_string(), "www.example.", "the letters that were asked for");
}

#[test]
fn aliases_that_go_round_end() {
    let looped = read(
        ResponseCode::NoError,
        vec![alias("www.example.", "b.example.", 60), alias("b.example.", "www.example.", 60)],
        Vec::new(),
    );
    assert_eq!(
        looped.unwrap_err().to_string(),
        "the aliases go round: www.example -> b.example -> www.example"
    );
    let failed = read(ResponseCode::ServFail, vec![alias("www.example.", "www.example.", 60)], Vec::new());
    assert!(matches!(failed, Err(AnswerError::AliasLoop(_))));
    let long = (0..40).map(|n| alias(&format!("n{n}.example."), &format!("n{}.example.", n + 1), 60));
    let long = std::iter::once(alias("www.example.", "n0.example.", 60)).chain(long).collect();
    assert_eq!(read(ResponseCode::NoError, long, Vec::new()), Err(AnswerError::TooManyAliases));
}

#[test]
fn an_answer_is_whole_or_none() {
    let of = |count: usize| {
        let addresses = (0..count as u32).map(|n| {
            let data = RData::A(std::net::Ipv4Addr::from(n).into());
            Record::from_rdata(name("www.example."), 60, data)
        });
        read(ResponseCode::NoError, addresses.collect(), Vec::new())
    };
    assert_eq!(of(RECORDS_LIMIT).unwrap().records.len(), RECORDS_LIMIT);
    assert_eq!(of(RECORDS_LIMIT + 1), Err(AnswerError::TooManyRecords));
}

#[test]
fn aliases_that_go_round_over_several_answers_end_too() {
    let first = says(vec![alias("www.example.", "b.test.", 60)]);
    let message = {
        let mut message = Message::response(1, OpCode::Query);
        message.answers = vec![alias("b.test.", "www.example.", 60)];
        message
    };
    let second = Answer::read(&message, &Question::new(name("b.test."), RecordType::A)).unwrap();
    assert!(matches!(first.continued(&second), Err(AnswerError::AliasLoop(_))));
}

/// spec: RFC2308 5
#[test]
fn what_is_not_there_is_kept_by_the_zones_own_word() {
    let missing = read(ResponseCode::NXDomain, Vec::new(), vec![soa("example.", 900, 60)]).unwrap();
    assert_eq!((missing.is_no_such_name(), missing.keep_for), (true, Duration::from_secs(60)));
    let shorter = read(ResponseCode::NoError, Vec::new(), vec![soa("example.", 30, 600)]).unwrap();
    assert_eq!((shorter.is_no_such_name(), shorter.keep_for), (false, Duration::from_secs(30)));
    let long = read(ResponseCode::NXDomain, Vec::new(), vec![soa(".", 1_000_000, 1_000_000)]).unwrap();
    assert_eq!(long.keep_for, NEGATIVE_LIMIT);
    // Without a proof, or with that of another zone, it is not kept.
    for authorities in [Vec::new(), vec![soa("other.", 900, 60)]] {
        let bare = read(ResponseCode::NXDomain, Vec::new(), authorities).unwrap();
        assert_eq!((bare.keep_for, bare.proof.len()), (Duration::ZERO, 0));
    }
}

#[test]
fn a_referral_is_no_answer() {
    let servers = vec![Record::from_rdata(name("example."), 60, RData::NS(NS(name("ns.example."))))];
    assert_eq!(read(ResponseCode::NoError, Vec::new(), servers), Err(AnswerError::Referral));
    let code = read(ResponseCode::Refused, vec![a("www.example.", 1)], Vec::new());
    assert_eq!(code, Err(AnswerError::Code(ResponseCode::Refused)));
}

#[test]
fn times_are_bounded_level_and_run_down() {
    let mut second = a("www.example.", 10);
    second.data = RData::A(A::new(192, 0, 2, 2));
    let answer = says(vec![a("www.example.", 400_000), second]);
    assert!(answer.records.iter().all(|record| record.ttl == 10));
    let later = answer.aged(Duration::from_secs(4));
    assert_eq!((later.records[0].ttl, later.keep_for), (6, Duration::from_secs(6)));
    assert_eq!(says(vec![a("www.example.", u32::MAX)]).keep_for, Duration::ZERO);
    assert_eq!(says(vec![a("www.example.", 400_000)]).keep_for, TIME_TO_LIVE_LIMIT);
}

/// A signature of `signer` over the records of `kind` at `owner`.
fn signature(owner: &str, kind: RecordType, signer: &str) -> Record {
    let mut rdata = hickory_proto::rr::rdata::NULL::new();
    rdata.anything = [&u16::from(kind).to_be_bytes()[..], &[0; 16], &octets(signer), &[1, 2, 3]].concat();
    Record::from_rdata(name(owner), 60, RData::Unknown { code: RecordType::RRSIG, rdata })
}
fn nsec(owner: &str, next: &str, ttl: u32) -> Record {
    let mut rdata = hickory_proto::rr::rdata::NULL::new();
    rdata.anything = [&octets(next)[..], &[0, 1, 0x40]].concat();
    Record::from_rdata(name(owner), ttl, RData::Unknown { code: RecordType::NSEC, rdata })
}
fn octets(text: &str) -> Vec<u8> {
    let mut written: Vec<u8> = Vec::new();
    for label in &name(text) {
        written.push(label.len() as u8);
        written.extend_from_slice(label);
    }
    written.push(0);
    written
}
fn read_signed(answers: Vec<Record>, authorities: Vec<Record>) -> Answer {
    let mut message = Message::response(1, OpCode::Query);
    message.answers = answers;
    message.authorities = authorities;
    let question = Question { signed: true, ..Question::new(name("www.example."), RecordType::A) };
    Answer::read(&message, &question).unwrap()
}

/// spec: RFC4035 3.1.3.3 — the answer that a wildcard gives comes with the proof that nothing closer exists.
#[test]
fn the_proof_of_a_wildcard_is_kept_for_its_time_and_only_of_the_zones_on_the_way() {
    let answers = || vec![a("www.example.", 60), signature("www.example.", RecordType::A, "example.")];
    let proof = || {
        vec![
            nsec("alpha.example.", "zulu.example.", 20),
            signature("alpha.example.", RecordType::NSEC, "example."),
        ]
    };
    let answer = read_signed(answers(), proof());
    assert_eq!((answer.records.len(), answer.proof.len()), (2, 2));
    assert_eq!(answer.keep_for, Duration::from_secs(20));
    // Another zone's, one that its zone did not sign, and one without a signature prove nothing here.
    let other = vec![nsec("a.other.", "b.other.", 20), signature("a.other.", RecordType::NSEC, "other.")];
    assert!(read_signed(answers(), other).proof.is_empty());
    let outside = vec![nsec("a.other.", "b.other.", 20), signature("a.other.", RecordType::NSEC, "example.")];
    assert!(read_signed(answers(), outside).proof.is_empty());
    assert!(read_signed(answers(), proof()[..1].to_vec()).proof.is_empty());
    // Who does not ask for signatures gets none.
    assert!(read(ResponseCode::NoError, vec![a("www.example.", 60)], proof()).unwrap().proof.is_empty());
}

#[test]
fn aliases_keep_the_proofs_of_their_own_zones_over_several_answers() {
    let answers =
        vec![alias("www.example.", "b.test.", 60), signature("www.example.", RecordType::CNAME, "example.")];
    let first = read_signed(
        answers,
        vec![nsec("a.example.", "z.example.", 60), signature("a.example.", RecordType::NSEC, "example.")],
    );
    assert_eq!(first.unfinished, Some(name("b.test.")));
    let mut message = Message::response(1, OpCode::Query);
    message.authorities = vec![
        soa("test.", 60, 60),
        nsec("b.test.", "c.test.", 60),
        signature("b.test.", RecordType::NSEC, "test."),
    ];
    let question = Question { signed: true, ..Question::new(name("b.test."), RecordType::A) };
    let second = Answer::read(&message, &question).unwrap();
    assert_eq!((first.proof.len(), second.proof.len()), (2, 3));
    assert_eq!(first.continued(&second).unwrap().proof.len(), 5);
}
