//! Fuzz targets. Random octets go to each machine; the invariants are asserted.

use crate::forward::{ClientLimits, Decision, ForwardConfig, Forwarder, Settled, Visitor};
use crate::mdns::{MDNS_PORT, MdnsAction, MdnsQuery};
use crate::{
    ASKED_LIMIT, Action, Exchange, Failed, Health, Hosts, QUESTION_LIMIT, Question, RECORDS_LIMIT,
    Resolution, RetrySchedule, Servers,
};
use hickory_proto::op::{Message, MessageType};
use hickory_proto::rr::{Name, RecordType};
use inhost_base::{Duration, Endpoint, Instant, IpAddr, Random};

/// Messages that one run makes of its input.
const PIECES_LIMIT: usize = 64;

const START: Instant = Instant::from_millis(1000);

/// The input in pieces: an octet that says what the piece is for, one for its length, and so many octets.
fn pieces(input: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = input;
    std::iter::from_fn(move || {
        let [what, length, body @ ..] = rest else { return None };
        let (piece, after) = body.split_at(usize::from(*length).min(body.len()));
        rest = after;
        Some((*what, piece))
    })
    .take(PIECES_LIMIT)
}

fn question() -> Question {
    Question::new(Name::from_ascii("www.example.").unwrap_or_default(), RecordType::A)
}

/// An exchange whose servers answer with the input: as it is, or behind the header and the question that fit.
pub fn fuzz_answer(input: &[u8]) {
    let servers: Vec<Endpoint> = (0..12).map(|last| Endpoint::new([192, 0, 2, last], 53)).collect();
    let (mut health, mut random, mut now) = (Health::new(), Random::from_number(1), START);
    let asked = input.first().map_or(1, |octet| usize::from(*octet) % 12);
    let over_tcp = input.len().is_multiple_of(2);
    let mut exchange = Exchange::new(
        question(),
        &servers[..asked],
        over_tcp,
        RetrySchedule::default(),
        &health,
        &mut random,
        now,
    );
    let mut current = None;
    let mut sent = 0;
    for (what, piece) in pieces(input) {
        match exchange.action() {
            Some(Action::Over) => break,
            Some(action) => {
                sent += 1;
                current = Some(action);
            }
            None => {}
        }
        now += Duration::from_millis(u64::from(what));
        let Some(Action::Udp(server, bytes) | Action::Tcp(server, bytes)) = &current else { break };
        let reply = match what % 4 {
            0 => piece.to_vec(),
            _ => fitting(bytes, piece),
        };
        match what % 8 {
            7 => exchange.timeout(
                &mut health,
                &mut random,
                exchange.deadline().map_or(now, |due| due.max(now)),
            ),
            6 => exchange.failed("refused".into(), &mut health, &mut random, now),
            5 => exchange.reply(&reply, &mut health, &mut random, now),
            _ if matches!(current, Some(Action::Tcp(..))) => {
                exchange.reply(&reply, &mut health, &mut random, now)
            }
            _ => exchange.datagram(*server, &reply, &mut health, &mut random, now),
        }
    }
    for _ in 0..1000 {
        let Some(due) = exchange.deadline() else { break };
        assert!(due <= now.max(START + QUESTION_LIMIT), "it ends in its time");
        now = now.max(due);
        exchange.timeout(&mut health, &mut random, now);
    }
    assert!(exchange.is_over(), "it ends");
    assert!(sent <= 6 * ASKED_LIMIT + PIECES_LIMIT);
    judge(&exchange.into_report());
}

/// A reply with the identifier and the question of `asked`, and the rest of `piece`.
fn fitting(asked: &[u8], piece: &[u8]) -> Vec<u8> {
    let mut reply = asked.get(..asked.len().min(29)).unwrap_or(&[]).to_vec();
    let (counts, body) = piece.split_at(piece.len().min(8));
    for (at, octet) in counts.iter().enumerate() {
        // Flags, then the counts of answers, proofs and additions, small enough to be there.
        let place = [2, 3, 7, 9, 11, 7, 9, 11][at];
        if let Some(to) = reply.get_mut(place) {
            *to = if place > 3 { octet % 8 } else { *octet };
        }
    }
    if let Some(flags) = reply.get_mut(2) {
        *flags |= 0x80;
    }
    reply.extend_from_slice(body);
    reply
}

/// Nothing is believed that was not asked for.
fn judge(report: &Resolution) {
    let Ok(answer) = &report.result else { return };
    assert!(answer.records.len() <= RECORDS_LIMIT);
    let mut names = vec![report.question.name.clone()];
    for record in &answer.records {
        let is_of_the_way = names.contains(&record.name)
            || record.record_type() != RecordType::A && names.iter().any(|name| record.name.zone_of(name));
        assert!(is_of_the_way, "{record} was not asked for: {answer:?}");
        if let hickory_proto::rr::RData::CNAME(target) = &record.data {
            names.push(target.0.clone());
        }
    }
    assert!(answer.proof.iter().all(|record| record.ttl <= 24 * 3600));
}

/// A forwarder whose clients and servers are the input.
pub fn fuzz_forward(input: &[u8]) {
    let clients = ClientLimits { waiting_each: 4, waiting_all: 10, ..ClientLimits::default() };
    let config = ForwardConfig { cache_bytes: 4096, clients, asked_limit: 6, ..ForwardConfig::default() };
    let mut machine = Forwarder::new(config, Hosts::parse("10.0.0.7 multics.lan\n"));
    let (mut now, mut asked) = (START, Vec::new());
    for (index, (what, piece)) in pieces(input).enumerate() {
        now += Duration::from_millis(u64::from(what) * 16);
        if what % 5 == 4 {
            if let Some((number, question)) = asked.pop() {
                settle(&mut machine, number, question, piece, now);
            }
            continue;
        }
        let address = IpAddr::from([10, 0, 0, what % 3]);
        let visitor = Visitor { address, is_near: what & 0x80 == 0, over_tcp: what & 0x40 != 0 };
        match machine.question(piece, visitor, (index, visitor.over_tcp), now) {
            Decision::Answer(settled) => check_reply(piece, &settled),
            Decision::Ask(number, question) => asked.push((number, question)),
            Decision::Wait => assert!(!asked.is_empty()),
            Decision::Ignore => {}
        }
        assert!(machine.waiting() <= 10 && asked.len() <= 6);
        assert!(machine.kept().1 <= 4096);
    }
    for (number, question) in asked {
        settle(&mut machine, number, question, &[], now);
    }
    assert_eq!((machine.waiting(), machine.kept().2), (0, 0), "everybody is told");
}

fn settle(
    machine: &mut Forwarder<(usize, bool)>,
    number: u64,
    question: Question,
    piece: &[u8],
    now: Instant,
) {
    let (mut health, mut random) = (Health::new(), Random::from_number(2));
    let server = Endpoint::new([192, 0, 2, 1], 53);
    let mut exchange =
        Exchange::new(question.clone(), &[server], true, RetrySchedule::default(), &health, &mut random, now);
    if let Some(Action::Tcp(_, bytes)) = exchange.action() {
        exchange.reply(&fitting(&bytes, piece), &mut health, &mut random, now);
    }
    let report = match exchange.is_over() {
        true => exchange.into_report(),
        false => Resolution { question, result: Err(Failed::Silence), attempts: Vec::new() },
    };
    for settled in machine.settled(number, &report, now) {
        let (_, over_tcp) = settled.to;
        assert!(over_tcp || settled.bytes.len() <= 1232);
    }
}

fn check_reply(question: &[u8], settled: &Settled<(usize, bool)>) {
    assert!(settled.bytes.len() >= 12 && question.len() >= 12);
    assert_eq!(settled.bytes[..2], question[..2], "it has the question's identifier");
    assert_eq!((settled.bytes[2] & 0x80, question[2] & 0x80), (0x80, 0), "answers are not answered");
    assert!(settled.to.1 || settled.bytes.len() <= 1232);
    let reply = Message::from_vec(&settled.bytes).map(|message| message.metadata.message_type);
    assert_eq!(reply.ok(), Some(MessageType::Response));
}

/// A question on the link to which the input answers.
pub fn fuzz_mdns(input: &[u8]) {
    let kind = if input.len().is_multiple_of(3) { RecordType::PTR } else { RecordType::A };
    let name = Name::from_ascii("multics.local.").unwrap_or_default();
    let mut query = MdnsQuery::new(Question::new(name, kind), &mut Random::from_number(3), START);
    let (mut now, mut sent) = (START, 0);
    let count = |query: &mut MdnsQuery| usize::from(matches!(query.action(), Some(MdnsAction::Send(..))));
    sent += count(&mut query);
    for (what, piece) in pieces(input) {
        now += Duration::from_millis(u64::from(what) * 4);
        let port = if what % 8 == 7 { 9 } else { MDNS_PORT };
        query.message(Endpoint::new([10, 9, 0, what % 4], port), what & 1 == 0, what & 2 == 0, piece, now);
        if what % 4 == 3 {
            query.timeout(now);
            sent += count(&mut query);
        }
    }
    for _ in 0..8 {
        let Some(due) = query.deadline() else { break };
        now = now.max(due);
        query.timeout(now);
        sent += count(&mut query);
    }
    assert!(query.deadline().is_none() && sent <= 3);
    let report = query.into_report();
    assert!(report.responders.len() <= 16 && report.answer.is_none_or(|answer| answer.records.len() <= 256));
}

/// The texts of a hosts table and of a resolv.conf.
pub fn fuzz_files(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let hosts = Hosts::parse(&text);
    assert!(hosts.len() <= input.len());
    let servers = Servers::parse(&text);
    assert!(servers.servers.len() <= crate::SERVERS_LIMIT && servers.search.len() <= crate::SEARCH_LIMIT);
    assert!(servers.attempts <= 5 && servers.timeout <= Duration::from_secs(30));
}
