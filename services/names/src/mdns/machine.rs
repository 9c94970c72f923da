//! One question to everybody on the link, and what is believed of the answers.

use crate::answer::Answer;
use crate::asked::Question;
use crate::codec::HEADER_BYTES;
use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, RData, Record, RecordType};
use inhost_base::{Duration, Endpoint, Instant, IpAddr, Ipv4Addr, Ipv6Addr, Random};

/// mDNS's port, from which alone answers come (RFC 6762 §6).
pub const MDNS_PORT: u16 = 5353;
/// The groups that are asked (RFC 6762 §3).
pub const GROUPS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(224, 0, 0, 251)), IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb))];
/// When the question goes out, after the beginning: RFC 6762 §5.2 has the first two a second apart, and then at least
/// twice as long.
const SENT_AT: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(3)];
/// Timeout without an answer.
const SILENCE: Duration = Duration::from_millis(4500);
/// Wait for further answers after the first: those that others share come within 120 ms (RFC 6762 §6).
const GATHERING: Duration = Duration::from_millis(250);
/// Records kept of all answers together.
const RECORDS_LIMIT: usize = 256;
/// Hosts noted as having answered.
const RESPONDERS_LIMIT: usize = 16;
/// The bit of the class by which an answer replaces what was known, and a question asks for an answer to itself alone
/// (RFC 6762 §5.4, §10.2).
const TOP_BIT: u16 = 0x8000;

/// Kinds of a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asking {
    /// From its own port; the answer comes to that port (RFC 6762 §5.1, §6.7).
    OneShot,
    /// From mDNS's port; the answer goes to all (RFC 6762 §5.2).
    Everybody,
}

/// Action for the driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MdnsAction {
    /// Send this to the [`GROUPS`] on every link.
    Send(Asking, Vec<u8>),
    /// Nothing more: [`MdnsQuery::into_report`] has what came of it.
    Over,
}

/// Result of a query.
#[derive(Clone, PartialEq, Debug)]
pub struct MdnsReport {
    /// The question.
    pub question: Question,
    /// The answer; `None` where nobody has the name.
    pub answer: Option<Answer>,
    /// The responders, each with its response time.
    pub responders: Vec<(Endpoint, Duration)>,
    /// Times that the question went out.
    pub sent: usize,
    /// Ignored messages: from off-link sources, or not responses.
    pub passed_over: u32,
}

/// The machine: [`MdnsQuery::action`] until it gives nothing, [`MdnsQuery::message`] for what comes, and
/// [`MdnsQuery::timeout`] at [`MdnsQuery::deadline`].
pub struct MdnsQuery {
    question: Question,
    id: u16,
    began: Instant,
    sent: usize,
    ends: Instant,
    action: Option<MdnsAction>,
    records: Vec<Record>,
    responders: Vec<(Endpoint, Duration)>,
    /// Whether the name's owner said that it has no such record.
    nothing: bool,
    passed_over: u32,
    over: bool,
}

impl MdnsQuery {
    /// Begins to ask.
    pub fn new(question: Question, random: &mut Random, now: Instant) -> MdnsQuery {
        let mut query = MdnsQuery {
            question,
            id: random.private_u32() as u16,
            began: now,
            sent: 0,
            ends: now + SILENCE,
            action: None,
            records: Vec::new(),
            responders: Vec::new(),
            nothing: false,
            passed_over: 0,
            over: false,
        };
        query.send();
        query
    }
    /// The next action.
    pub fn action(&mut self) -> Option<MdnsAction> {
        self.action.take()
    }
    /// When to call [`MdnsQuery::timeout`].
    pub fn deadline(&self) -> Option<Instant> {
        (!self.over).then(|| SENT_AT.get(self.sent).map_or(self.ends, |at| self.ends.min(self.began + *at)))
    }
    /// The result.
    pub fn into_report(self) -> MdnsReport {
        let answer = self.answer();
        let MdnsQuery { question, responders, sent, passed_over, .. } = self;
        MdnsReport { question, answer, responders, sent, passed_over }
    }
    /// A message came. `to_group` says that it was sent to one of the [`GROUPS`], and `is_near` that its sender is in a
    /// network of the link that it came by.
    pub fn message(&mut self, from: Endpoint, to_group: bool, is_near: bool, bytes: &[u8], now: Instant) {
        if self.over {
            return;
        }
        let Some(message) = self.believed(from, to_group, is_near, bytes) else {
            self.passed_over += 1;
            return;
        };
        let had = self.is_answered();
        let records = message.answers.into_iter().chain(message.additionals);
        for mut record in records {
            let class = u16::from(record.dns_class);
            if class & !TOP_BIT != u16::from(DNSClass::IN) {
                continue;
            }
            record.dns_class = DNSClass::IN;
            if record.record_type() == RecordType::NSEC && record.name == self.question.name {
                self.nothing |= denies(&record.data, self.question.kind);
            } else if let Some(known) = self.records.iter_mut().find(|known| **known == record) {
                // RFC 6762 §10.1: a time of nothing is a farewell.
                known.ttl = record.ttl;
            } else if record.ttl > 0 && self.records.len() < RECORDS_LIMIT {
                self.records.push(record);
            }
        }
        self.records.retain(|record| record.ttl > 0);
        if self.is_answered() {
            let after = now.since(self.began);
            if self.responders.len() < RESPONDERS_LIMIT
                && !self.responders.iter().any(|(known, _)| *known == from)
            {
                self.responders.push((from, after));
            }
            if !had {
                self.ends = self.ends.min(now + GATHERING);
            }
        }
    }
    /// Time has passed.
    pub fn timeout(&mut self, now: Instant) {
        if self.over {
        } else if now >= self.ends {
            self.over = true;
            self.action = Some(MdnsAction::Over);
        } else if SENT_AT.get(self.sent).is_some_and(|at| now >= self.began + *at) {
            self.send();
        }
    }

    /// Reads a message that may be believed.
    fn believed(&self, from: Endpoint, to_group: bool, is_near: bool, bytes: &[u8]) -> Option<Message> {
        // RFC 6762 §6 and §11: from mDNS's port, and of this link. What was sent to a group of the link is of it.
        if from.port != MDNS_PORT || !(to_group || is_near) || bytes.len() < HEADER_BYTES {
            return None;
        }
        let message = Message::from_vec(bytes).ok()?;
        let metadata = &message.metadata;
        // RFC 6762 §18.3 and §18.11: other codes are passed over in silence.
        let fits = metadata.message_type == MessageType::Response
            && metadata.op_code == OpCode::Query
            && metadata.response_code == ResponseCode::NoError;
        // RFC 6762 §6.7: the answer to a one-shot repeats its identifier; that to all has none.
        (fits && (to_group || metadata.id == self.id || metadata.id == 0)).then_some(message)
    }
    fn is_answered(&self) -> bool {
        self.nothing || self.answer().is_some()
    }
    fn answer(&self) -> Option<Answer> {
        let mut message = Message::response(self.id, OpCode::Query);
        message.answers.clone_from(&self.records);
        let answer = Answer::read(&message, &self.question).ok()?;
        let is_there = !answer.records.is_empty() && answer.unfinished.is_none();
        (is_there || self.nothing).then_some(answer)
    }
    fn send(&mut self) {
        let asking = if self.sent == 0 { Asking::OneShot } else { Asking::Everybody };
        self.sent += 1;
        // RFC 6762 §18.1: what goes to all has no identifier.
        let id = if asking == Asking::OneShot { self.id } else { 0 };
        let mut message = Message::new(id, MessageType::Query, OpCode::Query);
        let mut query = Query::query(self.question.name.clone(), self.question.kind);
        query.set_query_class(DNSClass::IN);
        message.add_query(query);
        if asking == Asking::Everybody {
            // RFC 6762 §7.1: nobody need say again what is known.
            let is_known = |record: &&Record| {
                record.name == self.question.name && record.record_type() == self.question.kind
            };
            message.add_answers(self.records.iter().filter(is_known).take(16).cloned());
        }
        self.action = message.to_vec().ok().map(|bytes| MdnsAction::Send(asking, bytes));
    }
}

/// Whether an NSEC record says that its name has no records of `kind` (RFC 6762 §6.1): the types are a map of bits
/// behind the next name.
fn denies(data: &RData, kind: RecordType) -> bool {
    let RData::Unknown { rdata, .. } = data else { return false };
    denied(&rdata.anything, u16::from(kind)).unwrap_or(false)
}

fn denied(data: &[u8], kind: u16) -> Option<bool> {
    let mut at = 0;
    loop {
        match usize::from(*data.get(at)?) {
            0 => break at += 1,
            length if length >= 0xc0 => break at += 2,
            length => at += 1 + length,
        }
    }
    let [window, bits] = kind.to_be_bytes();
    while let Some([number, length]) = data.get(at..at + 2) {
        let map = data.get(at + 2..at + 2 + usize::from(*length))?;
        if *number == window {
            let octet = map.get(usize::from(bits / 8)).copied().unwrap_or(0);
            return Some(octet & (0x80 >> (bits % 8)) == 0);
        }
        at += 2 + usize::from(*length);
    }
    Some(true)
}
