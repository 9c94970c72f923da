use super::*;
use hickory_proto::op::{Message, MessageType};
use hickory_proto::rr::rdata::{A, CNAME, NS};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use std::str::FromStr;

const NOW: Instant = Instant::from_millis(1000);

fn server(last: u8) -> Endpoint {
    Endpoint::new([192, 0, 2, last], 53)
}

/// An exchange with what it needs around it.
struct Talk {
    exchange: Exchange,
    health: Health,
    random: Random,
    now: Instant,
    action: Option<Action>,
}

impl Talk {
    fn new(servers: &[Endpoint], over_tcp: bool) -> Talk {
        let (health, mut random) = (Health::new(), Random::from_number(7));
        let question = Question::new(Name::from_str("www.example.").unwrap(), RecordType::A);
        let mut exchange =
            Exchange::new(question, servers, over_tcp, RetrySchedule::default(), &health, &mut random, NOW);
        let action = exchange.action();
        Talk { exchange, health, random, now: NOW, action }
    }
    /// Whom it asks now, how, and with or without EDNS.
    fn asks(&self) -> String {
        let shown = |at: &Endpoint, bytes: &[u8], how: &str| {
            let plain = if Message::from_vec(bytes).unwrap().edns.is_none() { " plain" } else { "" };
            format!("{how}{plain} {}", at.address.to_string().rsplit('.').next().unwrap())
        };
        match &self.action {
            Some(Action::Udp(at, bytes)) => shown(at, bytes, "udp"),
            Some(Action::Tcp(at, bytes)) => shown(at, bytes, "tcp"),
            Some(Action::Over) => match &self.exchange.result {
                Some(Ok(_)) => "answer".into(),
                _ => "failure".into(),
            },
            None => "waits".into(),
        }
    }
    fn sent(&self) -> (Endpoint, Message) {
        match &self.action {
            Some(Action::Udp(at, bytes) | Action::Tcp(at, bytes)) => (*at, Message::from_vec(bytes).unwrap()),
            other => panic!("{other:?}"),
        }
    }
    /// The server that is asked says what `change` makes of an empty reply.
    fn says(&mut self, change: impl FnOnce(&mut Message)) -> String {
        let (at, mut reply) = self.sent();
        reply.metadata.message_type = MessageType::Response;
        change(&mut reply);
        self.hears(at, &reply.to_vec().unwrap())
    }
    fn hears(&mut self, from: Endpoint, bytes: &[u8]) -> String {
        self.now += Duration::from_millis(20);
        match &self.action {
            Some(Action::Tcp(..)) => self.exchange.reply(bytes, &mut self.health, &mut self.random, self.now),
            _ => self.exchange.datagram(from, bytes, &mut self.health, &mut self.random, self.now),
        }
        self.acts()
    }
    fn fails(&mut self) -> String {
        self.exchange.failed("refused".into(), &mut self.health, &mut self.random, self.now);
        self.acts()
    }
    fn waits(&mut self) -> String {
        self.now = self.exchange.deadline().unwrap_or(self.now);
        self.exchange.timeout(&mut self.health, &mut self.random, self.now);
        self.acts()
    }
    fn acts(&mut self) -> String {
        match self.exchange.action() {
            None => "waits".into(),
            some => {
                self.action = some;
                self.asks()
            }
        }
    }
}

fn address(reply: &mut Message) {
    let name = reply.queries[0].name().clone();
    reply.add_answer(Record::from_rdata(name, 60, RData::A(A::new(192, 0, 2, 80))));
}
fn alias_of_itself(reply: &mut Message) {
    let name = reply.queries[0].name().clone();
    reply.add_answer(Record::from_rdata(name.clone(), 60, RData::CNAME(CNAME(name))));
}
fn servers_only(reply: &mut Message) {
    let name = Name::from_str("example.").unwrap();
    reply.add_authority(Record::from_rdata(name.clone(), 60, RData::NS(NS(name))));
}
fn code(reply: &mut Message, code: ResponseCode) {
    reply.metadata.response_code = code;
    reply.edns = None;
}

type Event = (&'static str, fn(&mut Talk) -> String);

/// What can happen.
const EVENTS: [Event; 17] = [
    ("answer", |talk| talk.says(address)),
    ("no such name", |talk| talk.says(|reply| code(reply, ResponseCode::NXDomain))),
    ("truncated", |talk| talk.says(|reply| reply.metadata.truncation = true)),
    ("format error", |talk| talk.says(|reply| code(reply, ResponseCode::FormErr))),
    ("server failure", |talk| talk.says(|reply| code(reply, ResponseCode::ServFail))),
    ("refused", |talk| talk.says(|reply| code(reply, ResponseCode::Refused))),
    ("referral", |talk| talk.says(servers_only)),
    ("alias loop", |talk| talk.says(alias_of_itself)),
    ("other identifier", |talk| talk.says(|reply| reply.metadata.id ^= 1)),
    ("other question", |talk| {
        talk.says(|reply| {
            reply.queries[0].set_query_type(RecordType::AAAA);
        })
    }),
    ("other case", |talk| {
        talk.says(|reply| {
            let flipped: String = reply.queries[0]
                .name()
                .to_ascii()
                .chars()
                .map(|c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
                .collect();
            reply.queries[0].set_name(Name::from_ascii(flipped).unwrap());
        })
    }),
    ("other source", |talk| {
        let (_, mut reply) = talk.sent();
        reply.metadata.message_type = MessageType::Response;
        talk.hears(server(66), &reply.to_vec().unwrap())
    }),
    ("a question", |talk| talk.says(|reply| reply.metadata.message_type = MessageType::Query)),
    ("unreadable", |talk| {
        let (at, mut reply) = talk.sent();
        reply.metadata.message_type = MessageType::Response;
        let mut bytes = reply.to_vec().unwrap();
        bytes[7] = 200;
        talk.hears(at, &bytes)
    }),
    ("much that does not fit", |talk| {
        let mut last = String::new();
        for _ in 0..MISMATCHES_LIMIT {
            last = talk.says(|reply| reply.metadata.id ^= 1);
            if last != "waits" {
                break;
            }
        }
        last
    }),
    ("unreachable", Talk::fails),
    ("time", Talk::waits),
];

/// States, each reached by what happens.
fn states() -> Vec<(&'static str, Talk)> {
    let two = [server(1), server(2)];
    let after = |event: &str, servers: &[Endpoint]| {
        let mut talk = Talk::new(servers, false);
        let (_, happen) = EVENTS.iter().find(|(name, _)| *name == event).unwrap();
        happen(&mut talk);
        talk
    };
    let mut last = Talk::new(&two[..1], false);
    last.waits();
    vec![
        ("first", Talk::new(&two, false)),
        ("plain", after("format error", &two)),
        ("long", after("truncated", &two)),
        ("second", after("server failure", &two)),
        ("last", last),
        ("tcp only", Talk::new(&two, true)),
    ]
}

/// Whom it asks next in each state after each event. To accept a change, run with INHOST_SNAPSHOTS=write and read the
/// difference.
#[test]
fn every_event_in_every_state() {
    let mut text = format!("{:24}", "");
    states().iter().for_each(|(name, _)| text += &format!("{name:14}"));
    text = text.trim_end().to_owned() + "\n";
    text += &format!("{:24}", "");
    states().iter().for_each(|(_, talk)| text += &format!("{:14}", format!("({})", talk.asks())));
    text = text.trim_end().to_owned() + "\n";
    for (name, happen) in EVENTS {
        let mut row = format!("{name:24}");
        for (_, mut talk) in states() {
            row += &format!("{:14}", happen(&mut talk));
        }
        text += &(row.trim_end().to_owned() + "\n");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/machine/table.txt");
    if std::env::var_os("INHOST_SNAPSHOTS").is_some_and(|value| value == "write") {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(path).unwrap_or_default());
}

#[test]
fn the_report_says_who_was_asked_and_what_came_of_it() {
    let mut talk = Talk::new(&[server(1), server(2)], false);
    talk.says(|reply| reply.metadata.id ^= 1);
    assert_eq!(talk.waits(), "udp 2");
    assert_eq!(talk.says(|reply| reply.metadata.truncation = true), "tcp 2");
    assert_eq!(talk.says(address), "answer");
    assert!(talk.exchange.is_over() && talk.exchange.deadline().is_none());
    let Talk { exchange, .. } = talk;
    let report = exchange.into_report();
    assert_eq!(report.result.unwrap().records[0].name.to_string(), "www.example.");
    let lines: Vec<String> = report
        .attempts
        .iter()
        .map(|a| format!("{} {} {} after {}", a.server.address, a.transport, a.outcome, a.took))
        .collect();
    assert_eq!(
        lines,
        [
            "192.0.2.1 UDP no answer after 1.500 s",
            "192.0.2.2 UDP too long for a datagram, asked again over TCP after 20.000 ms",
            "192.0.2.2 TCP answered after 20.000 ms",
        ]
    );
    assert_eq!(report.attempts[0].mismatches[&Mismatch::OtherIdentifier], 1);
}

#[test]
fn all_is_given_up_in_time() {
    let servers: Vec<Endpoint> = (0..20).map(server).collect();
    let mut talk = Talk::new(&servers, false);
    for _ in 0..100 {
        if talk.waits() == "failure" {
            break;
        }
    }
    assert_eq!(talk.exchange.result, Some(Err(Failed::Silence)));
    assert!(talk.now.since(NOW) <= QUESTION_LIMIT, "{:?}", talk.now);
    assert_eq!(Talk::new(&[], false).exchange.into_report().result, Err(Failed::NoServers));
}

#[test]
fn what_comes_late_is_ignored() {
    let mut talk = Talk::new(&[server(1)], false);
    let (at, mut reply) = talk.sent();
    reply.metadata.message_type = MessageType::Response;
    address(&mut reply);
    talk.waits();
    // The answer to the first question, now that the second one has another identifier.
    assert_eq!(talk.hears(at, &reply.to_vec().unwrap()), "waits");
    talk.says(address);
    talk.fails();
    talk.waits();
    assert!(matches!(talk.exchange.result, Some(Ok(_))));
}
