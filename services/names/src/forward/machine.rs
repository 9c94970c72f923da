//! The state machine of a forwarder.

use super::clients::{ClientLimits, Clients};
use super::reply::{Request, header_alone};
use crate::answer::{Answer, AnswerError, Source};
use crate::asked::Question;
use crate::cache::{Cache, Key};
use crate::codec::HEADER_BYTES;
use crate::hosts::Hosts;
use crate::local;
use crate::machine::{Failed, Resolution};
use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::{DNSClass, RecordType};
use inhost_base::{Cidr, Duration, Endpoint, Instant, IpAddr};
use inhost_common::AdmissionLimits;
use std::collections::BTreeMap;

/// For how long it is remembered that the servers failed (RFC 9520 §3.2: from one second to five minutes).
pub const FAILURE_KEPT_FOR: Duration = Duration::from_secs(5);
/// Clients that wait for one and the same question.
pub const WAITING_FOR_ONE: usize = 256;

/// Configuration of a forwarder.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ForwardConfig {
    /// The servers that it asks, in order. At most [`crate::ASKED_LIMIT`] are asked about one question.
    pub servers: Vec<Endpoint>,
    /// Networks whose clients are answered, beside loopback and the networks of the host's links. Default: none. With
    /// `0.0.0.0/0` and `::/0` it is an open resolver, which others will misuse.
    pub allow: Vec<Cidr>,
    /// Memory for answers, in bytes, about. Default 8 MiB.
    pub cache_bytes: usize,
    /// Rate limits of clients.
    pub clients: ClientLimits,
    /// Questions that are asked of the servers at a time. Default 256. Cost: a task and a socket each.
    pub asked_limit: usize,
    /// Connections at a time and of one client; any number in a minute, since a question may have its own. Default: 64, of
    /// which one client has 8. Cost: two tasks each.
    pub limits: AdmissionLimits,
}

impl Default for ForwardConfig {
    fn default() -> Self {
        ForwardConfig {
            servers: Vec::new(),
            allow: Vec::new(),
            cache_bytes: 8 << 20,
            clients: ClientLimits::default(),
            asked_limit: 256,
            limits: AdmissionLimits::per_minute(64, 8, u32::MAX),
        }
    }
}

/// The client and its transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Visitor {
    /// Its address.
    pub address: IpAddr,
    /// Whether that is in a network of one of the host's links.
    pub is_near: bool,
    /// Whether it asks over TCP.
    pub over_tcp: bool,
}

/// Decision on a question.
#[derive(PartialEq, Debug)]
pub enum Decision<T> {
    /// Send this back.
    Answer(Settled<T>),
    /// Ask the servers this, and tell [`Forwarder::settled`] under this number what came of it.
    Ask(u64, Question),
    /// Others have asked the same; its answer comes with theirs.
    Wait,
    /// Nothing: it is not a question, or too many came.
    Ignore,
}

/// A reply for one of those who asked.
#[derive(Debug, PartialEq)]
pub struct Settled<T> {
    /// What the driver gave with the question.
    pub to: T,
    /// The reply.
    pub bytes: Vec<u8>,
}

/// Counters of a forwarder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Questions that came.
    pub questions: u64,
    /// Answered by what the host knows at home.
    pub local: u64,
    /// Answered by what was kept.
    pub kept: u64,
    /// Asked of the servers.
    pub asked: u64,
    /// Added to a question that was being asked.
    pub joined: u64,
    /// Refused: clients outside the allowed networks, and unsupported requests.
    pub refused: u64,
    /// Passed over or failed because of a limit.
    pub limited: u64,
    /// Questions that the servers did not answer.
    pub failed: u64,
}

struct Waiting<T> {
    to: T,
    address: IpAddr,
    request: Request,
}

struct Pending<T> {
    key: Key,
    question: Question,
    waiting: Vec<Waiting<T>>,
}

/// The machine. `T` is what the driver finds the way back by.
///
/// In: [`Forwarder::question`] for what a client sends, and [`Forwarder::settled`] for what the servers said. Out: what
/// these give. It has no timer: an exchange with the servers ends by itself, and what is kept is judged by `now`.
pub struct Forwarder<T> {
    config: ForwardConfig,
    hosts: Hosts,
    cache: Cache,
    clients: Clients,
    pending: BTreeMap<u64, Pending<T>>,
    numbers: BTreeMap<Key, u64>,
    next_number: u64,
    counters: Counters,
}

impl<T> Forwarder<T> {
    /// A forwarder with nothing kept.
    pub fn new(config: ForwardConfig, hosts: Hosts) -> Forwarder<T> {
        Forwarder {
            cache: Cache::new(config.cache_bytes),
            config,
            hosts,
            clients: Clients::default(),
            pending: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next_number: 0,
            counters: Counters::default(),
        }
    }
    /// Its configuration.
    pub fn config(&self) -> &ForwardConfig {
        &self.config
    }
    /// Takes another configuration and table of hosts; what was kept stays, if the servers do.
    pub fn change(&mut self, config: ForwardConfig, hosts: Hosts) {
        if config.servers != self.config.servers || config.cache_bytes != self.config.cache_bytes {
            self.cache = Cache::new(config.cache_bytes);
        }
        (self.config, self.hosts) = (config, hosts);
    }
    /// Counters since start.
    pub fn counters(&self) -> Counters {
        self.counters
    }
    /// Answers kept, memory that they take, and questions that are being asked.
    pub fn kept(&self) -> (usize, usize, usize) {
        (self.cache.len(), self.cache.used_bytes(), self.pending.len())
    }

    /// A client sent `bytes`; `to` is the way back to it.
    pub fn question(&mut self, bytes: &[u8], visitor: Visitor, to: T, now: Instant) -> Decision<T> {
        // Responses and short messages are never answered, to avoid loops.
        let Some(header) = bytes.get(..HEADER_BYTES).filter(|header| header[2] & 0x80 == 0) else {
            return Decision::Ignore;
        };
        self.counters.questions += 1;
        if !self.clients.asks(visitor.address, &self.config.clients, now) {
            self.counters.limited += 1;
            return Decision::Ignore;
        }
        let id = u16::from_be_bytes([header[0], header[1]]);
        let Ok(message) = Message::from_vec(bytes) else {
            self.counters.refused += 1;
            return answer(to, header_alone(id, ResponseCode::FormErr));
        };
        let request = Request::of(&message, visitor.over_tcp);
        match self.judge(&message, visitor) {
            Ok(question) => self.look(question, &message, visitor, request, to, now),
            Err(code) => {
                self.counters.refused += 1;
                answer(to, request.refusal(code))
            }
        }
    }
    /// Whether this is a question that is answered here, to this client.
    fn judge(&self, message: &Message, visitor: Visitor) -> Result<Question, ResponseCode> {
        // RFC 5358: clients outside the allowed networks are refused.
        let is_allowed = |cidr: &Cidr| cidr.contains(visitor.address);
        if !visitor.address.is_loopback() && !visitor.is_near && !self.config.allow.iter().any(is_allowed) {
            return Err(ResponseCode::Refused);
        }
        if message.metadata.op_code != OpCode::Query || message.metadata.message_type != MessageType::Query {
            return Err(ResponseCode::NotImp);
        }
        // RFC 9619: a query has one question.
        let [query] = message.queries.as_slice() else { return Err(ResponseCode::FormErr) };
        // RFC 6891 §6.1.3.
        if message.edns.as_ref().is_some_and(|edns| edns.version() > 0) {
            return Err(ResponseCode::BADVERS);
        }
        if query.query_class() != DNSClass::IN {
            return Err(ResponseCode::Refused);
        }
        match query.query_type() {
            // Whole zones are for the servers that have them; RFC 8482 lets ANY be refused, which draws floods.
            RecordType::AXFR | RecordType::IXFR | RecordType::ANY => Err(ResponseCode::Refused),
            // RFC 1035 §3.2.3 and RFC 6891: types that stand for no records.
            kind if matches!(u16::from(kind), 0 | 41 | 249..=254) => Err(ResponseCode::NotImp),
            kind => Ok(Question {
                name: query.name().clone(),
                kind,
                signed: message.edns.as_ref().is_some_and(|edns| edns.flags().dnssec_ok),
                unchecked: message.metadata.checking_disabled,
            }),
        }
    }
    fn look(
        &mut self,
        question: Question,
        message: &Message,
        visitor: Visitor,
        request: Request,
        to: T,
        now: Instant,
    ) -> Decision<T> {
        if let Some(known) = local::answer(&question, &self.hosts) {
            self.counters.local += 1;
            return answer(to, request.answer(&known));
        }
        if let Some((known, _)) = self.cache.look_up(&question, now) {
            self.counters.kept += 1;
            return answer(to, request.answer(&known));
        }
        // RFC 1034 §4.3.1: who does not want others to be asked gets what is here.
        if !message.metadata.recursion_desired {
            self.counters.refused += 1;
            return answer(to, request.refusal(ResponseCode::Refused));
        }
        self.ask(question, visitor, request, to, now)
    }
    fn ask(
        &mut self,
        question: Question,
        visitor: Visitor,
        request: Request,
        to: T,
        now: Instant,
    ) -> Decision<T> {
        let key = Key::of(&question);
        let number = self.numbers.get(&key).copied();
        let is_full = match number.and_then(|number| self.pending.get(&number)) {
            Some(pending) => pending.waiting.len() >= WAITING_FOR_ONE,
            None => self.pending.len() >= self.config.asked_limit,
        };
        if is_full || !self.clients.waits(visitor.address, &self.config.clients, now) {
            self.counters.limited += 1;
            return answer(to, request.refusal(ResponseCode::ServFail));
        }
        let waiting = Waiting { to, address: visitor.address, request };
        // RFC 5452 §5: the same question is not asked twice at a time, which would double a forger's chances.
        if let Some(pending) = number.and_then(|number| self.pending.get_mut(&number)) {
            pending.waiting.push(waiting);
            self.counters.joined += 1;
            return Decision::Wait;
        }
        let number = self.next_number;
        self.next_number += 1;
        self.numbers.insert(key.clone(), number);
        let pending = Pending { key, question: question.clone(), waiting: vec![waiting] };
        self.pending.insert(number, pending);
        self.counters.asked += 1;
        Decision::Ask(number, question)
    }

    /// Takes the servers' result for question `number`; returns the replies to the waiting clients.
    pub fn settled(&mut self, number: u64, report: &Resolution, now: Instant) -> Vec<Settled<T>> {
        let Some(Pending { key, question, waiting }) = self.pending.remove(&number) else {
            return Vec::new();
        };
        self.numbers.remove(&key);
        let answer = match &report.result {
            Ok(answer) => answer.clone(),
            Err(why) => {
                self.counters.failed += 1;
                failure(why)
            }
        };
        self.cache.store(&question, &answer, now);
        let mut replies = Vec::with_capacity(waiting.len());
        for Waiting { to, address, request } in waiting {
            self.clients.served(address);
            let bytes = request.answer(&answer);
            replies.push(Settled { to, bytes });
        }
        replies
    }
    /// What is known of `question` without asking anybody, for the host itself, which no limit holds; and whether it is
    /// what servers said before. That they failed is not believed: a person who asks again wants them asked again.
    pub(crate) fn known(&mut self, question: &Question, now: Instant) -> Option<(Answer, Source)> {
        if let Some(answer) = local::answer(question, &self.hosts) {
            return Some((answer, Source::Table));
        }
        let (kept, _) = self.cache.look_up(question, now)?;
        matches!(kept.code, ResponseCode::NoError | ResponseCode::NXDomain).then_some((kept, Source::Kept))
    }
    /// Caches answers to the host's own queries.
    pub(crate) fn keep(&mut self, question: &Question, answer: &Answer, now: Instant) {
        self.cache.store(question, answer, now);
    }
    /// The table of hosts.
    pub(crate) fn hosts(&self) -> &Hosts {
        &self.hosts
    }
    /// Questions that wait for servers, by their clients' count; for tests and instruments.
    pub fn waiting(&self) -> usize {
        self.clients.waiting()
    }
}

fn answer<T>(to: T, bytes: Vec<u8>) -> Decision<T> {
    Decision::Answer(Settled { to, bytes })
}

/// The reply to clients when the servers give no usable answer, and its lifetime.
fn failure(why: &Failed) -> Answer {
    let code = match why {
        Failed::AnswerError(AnswerError::Code(ResponseCode::Refused)) => ResponseCode::Refused,
        _ => ResponseCode::ServFail,
    };
    Answer {
        code,
        records: Vec::new(),
        proof: Vec::new(),
        keep_for: FAILURE_KEPT_FOR,
        unfinished: None,
        left_out: 0,
    }
}
